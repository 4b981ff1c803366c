"""Per-datum values that all compared runs have.

Means skip datums without a value. In a comparison they must skip the same ones; otherwise a run
gains by not answering hard datums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from ..schemas.arrays import Array
from .merging import merge_labels
from .stats import Column, Stats

Fill = Callable[[str], float]
"""Map the need of a metric to the replacement of missing values; NaN to skip the datum."""


def skip(need: str) -> float:
    """Skip datums that some run has no value for."""
    return np.nan


def aligned(
    places: Sequence[Array], values: Sequence[Array], fill: Array | float = np.nan
) -> list[Array] | None:
    """Align values between runs: if one run has no value, it becomes undefined or filled in all.

    Rows that are not in all runs are unchanged, since they have no counterpart to compare.

    Args:
        places: int64 [n] per run, index of each row among those compared, -1 for others.
        values: float64 [n, width] per run, NaN if undefined.
        fill: float64 [width], replacement for missing values; NaN to skip.

    Returns:
        values per run; None if no run is missing a value that another has.
    """
    size = 1 + max(int(place.max(initial=-1)) for place in places)
    width = values[0].shape[1]
    rows = np.zeros((len(places), size), bool)
    there = np.zeros((len(places), size, width), bool)
    for i, (place, value) in enumerate(zip(places, values, strict=True)):
        inside = place >= 0
        rows[i, place[inside]] = True
        there[i, place[inside]] = ~np.isnan(value[inside])
    whole: Array = np.asarray(rows.all(axis=0))
    missing = there.any(axis=0) & ~there.all(axis=0) & whole[:, None]
    if not missing.any():
        return None
    filled = np.where(missing, fill, np.nan)
    made = []
    for i, (place, value) in enumerate(zip(places, values, strict=True)):
        inside = place >= 0
        at, own = place[inside], value[inside]
        other = np.where(there[i, at] & ~np.isnan(filled[at]), own, filled[at])
        out = value.copy()
        out[inside] = np.where(missing[at], other, own)
        made.append(out)
    return made


def common_stats(
    stats: Sequence[Stats], codes: Sequence[Array], fill: Fill, *, cuts: bool
) -> list[Stats] | None:
    """Align tallies with one row per datum; see :func:`aligned`.

    Args:
        codes: int32 [n_datums] per run, index of each datum among those compared, -1 for others.
        fill: replacement for missing values; datums that do not count are missing, too.
        cuts: several values of a column are cut-offs; otherwise they are counts, which are never
            filled.
    """
    needs = [need for need in stats[0].columns if all(need in one.columns for one in stats)]
    columns = [dict(one.columns) for one in stats]
    changed = False
    for need in needs:
        for i, column in enumerate(stats[0].columns[need]):
            shape = column.values.shape[1:]
            if any(one.columns[need][i].values.shape[1:] != shape for one in stats):
                continue
            values = [_counted(one, one.columns[need][i]) for one in stats]
            counts = len(column.k) > 1 and not cuts
            made = aligned(codes, values, np.nan if counts else fill(need))
            if made is None:
                continue
            changed = True
            for own, value in zip(columns, made, strict=True):
                whole = msgspec.structs.replace(own[need][i], values=value.reshape(-1, *shape))
                own[need] = (*own[need][:i], whole, *own[need][i + 1 :])
    if not changed:
        return None
    size = 1 + max(int(code.max(initial=-1)) for code in codes)
    some = np.zeros(size + 1, bool)  # one more, for datums that are not compared
    for one, code in zip(stats, codes, strict=True):
        some[code[one.counted & (code >= 0)]] = True
    return [
        msgspec.structs.replace(one, columns=own, counted=one.counted | some[code])
        for one, own, code in zip(stats, columns, codes, strict=True)
    ]


def _counted(stats: Stats, column: Column) -> Array:
    values = column.values.reshape(stats.counted.size, -1)
    return values if stats.counted.all() else np.where(stats.counted[:, None], values, np.nan)


def row_places(
    tallies: Sequence[Any], rows: Sequence[Any], codes: Sequence[Array], column: str
) -> list[Array]:
    """Return the index of each row among the rows of all runs, int64 [n] per run.

    Args:
        rows: per run, with ``datum`` and the named column of codes.
        codes: int32 [n_datums] per run, index of each datum among those compared, -1 for others.
        column: ``label`` or ``key``.
    """
    whole, of_label = merge_labels([one.labels for one in tallies])
    if column == "key":
        place = {name: i for i, name in enumerate(whole.key_names)}
        of_label = [
            np.array([place[name] for name in one.labels.key_names], np.int32) for one in tallies
        ]
    width = max(len(whole), 1)
    keys = [
        np.where(
            code[own.datum] >= 0,
            code[own.datum].astype(np.int64) * width + of[getattr(own, column)],
            -1,
        )
        for own, code, of in zip(rows, codes, of_label, strict=True)
    ]
    there, at = np.unique(np.concatenate(keys), return_inverse=True)
    at = at - int(there.size > 0 and there[0] < 0)
    return np.split(at, np.cumsum([key.size for key in keys])[:-1])
