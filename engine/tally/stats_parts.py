"""Stats whose parts are in files, and single datums of all parts in the order they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array
from .datums import Datums
from .merging_stats import merge_stats
from .parts import Part, PartGroups, Parts
from .registry import stored_as
from .stats import Column, Stats

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
