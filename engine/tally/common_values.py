"""Values of single datums that all of several runs have.

A mean leaves out datums without a value. If runs are compared, each mean has to leave out the same
ones: else the run that has no value of what is hard looks better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from .merging import merge_labels
from .stats import Column, Stats

Array = np.ndarray[Any, Any]
Fill = Callable[[str], float]
"""Map the need of a metric to what counts in place of a missing value; NaN to skip the datum."""


def skip(need: str) -> float:
    """Skip datums that some run has no value for."""
    return np.nan


def aligned(
    places: Sequence[Array], values: Sequence[Array], fill: Array | float = np.nan
) -> list[Array] | None:
    """Values of rows that all runs have, undefined in all runs if one has none, or filled there.

    A row that not all runs have stays as it is: nothing is missing if there is nothing to measure.

    Args:
        places: int64 [n] per run, place of each row among all that are compared, -1 for others.
        values: float64 [n, width] per run, NaN where undefined.
        fill: float64 [width], what counts as a missing value; NaN to skip it.

    Returns:
        the values per run; None if no run lacks one that another has.
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
    """Tallies of one row per datum with the values that all runs have.

    Args:
        stats: of each run.
        codes: int32 [n_datums] per run, place of each datum among those compared, -1 for others.
        fill: what counts as a missing value; datums that do not count are missing, too.
        cuts: whether several values of a column are those of cut-offs; else they are counts, which
            are never filled.
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
    """Place of each row among all rows of all runs, by datum and label or key, int64 [n] per run.

    Args:
        tallies: of each run, with ``labels``.
        rows: of each run, with ``datum`` and the named column of codes.
        codes: int32 [n_datums] per run, place of each datum among those compared, -1 for others.
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
