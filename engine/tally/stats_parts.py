"""Values per datum whose buckets are stored in files, and values that several runs share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array
from .datums import Datums
from .merging import merge_labels, merge_stats
from .registry import stored_as
from .stats import Column, Stats
from .stored import Part, PartGroups, Parts

# Stats whose parts are in files, and single datums of all parts in the order they are shown.

Cuts = Mapping[str, set[int | None]]


@stored_as("bucket.datums/1")
class ShownDatums(msgspec.Struct, frozen=True):
    """The datums of a part in display order, which is that of its rows.

    Attributes:
        id: their ids.
        row: int64 [n], ascending row of each in the single table, then -1 for datums that are only
            in the table of datums, by id; None if all are in order of their ids.
    """

    id: pl.Series
    row: Array | None


class StatsParts(msgspec.Struct, frozen=True):
    """Per-datum values on disk.

    Attributes:
        parts: the files.
        columns: need -> columns, without values.
        rows: extracts the stats from a part.
    """

    parts: Parts
    columns: dict[str, tuple[Column, ...]]
    rows: Callable[[Part], Stats]

    def blocks(
        self, group: PartGroups | None
    ) -> Iterator[tuple[Stats, Array | None, Array | None]]:
        """The rows of each part, the group of each of its datums, and its key."""
        for part in self.parts:
            yield self.rows(part), None if group is None else group.of(part), part.keys


# -- single datums ---------------------------------------------------------------------------------


def chosen_stats(stats: Stats, rows: Any) -> Stats:
    """Select the rows of some datums.

    Args:
        rows: a slice, or int [m].
    """

    def few(column: Column) -> Column:
        own = None if column.status is None else (column.status[0], column.status[1][rows])
        return msgspec.structs.replace(column, values=column.values[rows], status=own)

    columns = {need: tuple(map(few, made)) for need, made in stats.columns.items()}
    return Stats(stats.counted[rows], columns, (stats.status[0], stats.status[1][rows]))


def variants(stats: StatsParts, cuts: Cuts) -> Iterator[tuple[str, int, int, int]]:
    """Need and places of column, parameters and cut-off, in the order in which they are shown."""
    for need, columns in stats.columns.items():
        for i, column in enumerate(columns):
            for p in range(len(column.parameters)):
                for k, at in enumerate(column.k):
                    if at in cuts.get(need, ()):
                        yield need, i, p, k


class Few(msgspec.Struct, frozen=True):
    """A few datums of all parts, in display order.

    Attributes:
        datums: the datums.
        rows: parts that contain some of them, with their rows.
        codes: int64, new codes per part.
    """

    datums: Datums
    rows: list[tuple[Part, slice]]
    codes: list[Array]


def few_datums(parts: Parts) -> list[Callable[[], Few]]:
    """Return providers of a few datums each, which together cover all parts."""
    ranges = _ranges(list(parts.shown()), max(1, parts.place.rows // 4))

    def of(rows: tuple[slice, ...]) -> Few:
        some, ids, keys = [], [], []
        for part, shown, few in zip(parts, parts.shown(), rows, strict=True):
            if few.start < few.stop:
                some.append((part, few))
                ids.append(shown.id[few])
                keys.append(_key(shown)[few])
        both = pl.DataFrame([pl.concat(keys), pl.concat(ids).alias("id")])
        order = both.select(pl.arg_sort_by("key", "id")).to_series().to_numpy()
        code = np.empty(order.size, np.int64)
        code[order] = np.arange(order.size)
        codes = np.split(code, np.cumsum([few.stop - few.start for _, few in some])[:-1])
        return Few(Datums(pl.concat(ids)[order], pl.DataFrame()), some, codes)

    return [partial(of, rows) for rows in ranges]


def single_datums(stats: StatsParts, cuts: Cuts) -> Iterator[tuple[Datums, Stats, Cuts]]:
    """Yield a few datums with one of their metrics, and its need and cut-off.

    They are in the order of the rows of a per-datum frame.

    Args:
        cuts: need -> the cut-offs to show.
    """
    every = few_datums(stats.parts)
    for need, i, p, k in variants(stats, cuts):
        for few in (make() for make in every):
            some = [_one_metric(stats.rows(part), need, (i, p, k), rows) for part, rows in few.rows]
            at = stats.columns[need][i].k[k]
            yield few.datums, merge_stats(some, few.codes), {need: {at}}


def _one_metric(stats: Stats, need: str, places: tuple[int, int, int], rows: slice) -> Stats:
    """Some datums with one variant of one column."""
    i, p, k = places
    made = stats.columns[need][i]
    few = msgspec.structs.replace(
        made,
        parameters=(made.parameters[p],),
        k=(made.k[k],),
        values=made.values[:, p : p + 1, k : k + 1],
    )
    return chosen_stats(msgspec.structs.replace(stats, columns={need: (few,)}), rows)


def _key(shown: ShownDatums) -> pl.Series:
    """Return the primary sort key of datums: rows, unknown ones last."""
    if shown.row is None:
        return pl.Series("key", np.zeros(len(shown.id), np.int64))
    return pl.Series("key", np.where(shown.row < 0, np.iinfo(np.int64).max, shown.row))


def _ranges(parts: Sequence[ShownDatums], most: int) -> list[tuple[slice, ...]]:
    """Split the datums of each part into ranges that are displayed together.

    Args:
        most: approximate datums per range.
    """
    first = [0] * len(parts)
    found: list[tuple[slice, ...]] = []
    named = [0 if one.row is None else int((one.row >= 0).sum()) for one in parts]
    keys = [
        pl.Series(one.row[:n]) for one, n in zip(parts, named, strict=True) if one.row is not None
    ]
    phases = [keys] if any(named) else []
    phases.append([one.id[n:] for one, n in zip(parts, named, strict=True)])
    for columns in phases:
        cuts = _cuts(columns, most)
        bounds = [
            [
                begin,
                *(begin + np.atleast_1d(column.search_sorted(cuts, "left"))).tolist(),
                begin + len(column),
            ]
            for begin, column in zip(first, columns, strict=True)
        ]
        for i in range(len(cuts) + 1):
            rows = tuple(slice(bound[i], bound[i + 1]) for bound in bounds)
            if any(few.start < few.stop for few in rows):
                found.append(rows)
        first = [bound[-1] for bound in bounds]
    return found


def _cuts(columns: Sequence[pl.Series], most: int) -> pl.Series:
    """Values at which ranges of about so many rows begin, but the first."""
    n = sum(map(len, columns))
    every = max(1, most // (4 * len(columns)))
    sample = pl.concat([column.gather_every(every) for column in columns]).sort()
    ranges = -(-n // most)
    places = np.linspace(0, len(sample), ranges, endpoint=False)[1:].astype(np.int64)
    return sample[places].unique().sort()


# Per-datum values that all compared runs have: no run may gain by skipping hard datums.

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
