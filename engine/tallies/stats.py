"""Values: one row per datum, for every metric that is computed per datum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array
from ..schemas.errors import InputError
from .datums import Datums
from .draws import Draws, Summands, by_draw
from .merging import merge_labels
from .registry import stored_as
from .stored import Part, Parts
from .tables import Coded, Codes, InFiles, Table, TableView, merged

# Stats: one row a datum, the tally of everything that is computed datum by datum.


def same(values: Array) -> Array:
    """The values as they are."""
    return values


@stored_as("values.column/2", oldest=1)
class Column(msgspec.Struct, frozen=True, kw_only=True):
    """Per-datum values of one metric, for all its variants.

    Attributes:
        metric: name in the output frames.
        statistic: statistic of the metric, or None.
        parameters: JSON of each variant, or None, in order.
        k: cut-off of each, None for the whole list, in order.
        values: float64 [n_datums, n_parameters, n_k]; NaN if undefined.
        reason: why a value is undefined.
        status: names and codes of each datum's status, if specific to the metric.
        share: whether the mean is a proportion: every value is the answer to a yes-or-no question;
            None if no value is known.
    """

    metric: str
    statistic: str | None = None
    parameters: tuple[str | None, ...] = (None,)
    k: tuple[int | None, ...] = (None,)
    values: Array
    reason: str | None = None
    status: Coded | None = None
    share: bool | None = None


@stored_as("values/2", oldest=1)
class Stats(Table, frozen=True):
    """Per-datum values: one row per datum.

    Attributes:
        counted: bool [n_datums], datums that enter means.
        columns: need -> columns.
        status: names of each datum's status (``scored``, ``not_retrieved``, ...) and their codes,
            int8 [n_datums].
        truth: uint64 [n_datums], hash of each datum's ground truths; None if unknown.
    """

    counted: Array
    columns: dict[str, tuple[Column, ...]]
    status: Coded
    truth: Array | None = None


class StatsView(TableView):
    """Stats by groups of datums, or of their resamples.

    Args:
        tally: :class:`Stats`, or :class:`~evalengine.tallies.tables.InFiles` of them.
    """

    def drawn(self, draws: Draws) -> StatsView:
        """Return the view of a block of resamples."""
        return StatsView(
            self.tally, self.labels, draws=draws, group=self.group, n_groups=self.slices
        )

    @property
    def columns(self) -> dict[str, tuple[Column, ...]]:
        """Need -> columns; without values if these are in files."""
        return self.tally.columns

    def n_codes(self, by: str) -> int:
        """Datums have no code: one cell per group."""
        return 1

    def placed(self, rows: Any, group: Array | None, name: str, by: str) -> tuple[None, Array]:
        """Return None (row i is datum i), and the group of each datum that counts, else -1."""
        cell = np.zeros(rows.counted.size, np.int64) if group is None else group
        return None, np.where(rows.counted, cell, -1)

    @property
    def support(self) -> Array:
        """Datums that count, float64 [group]."""
        return self.size("", "")[:, 0]

    def same_column(self, stats: Stats, column: Column) -> Column:
        """The block's column at the place of the whole's."""
        need, i = next(
            (need, i)
            for need, columns in self.columns.items()
            for i, one in enumerate(columns)
            if one is column
        )
        return stats.columns[need][i]

    def _statuses(self, stats: Stats, column: Column) -> Array:
        """Status of each datum of a block, int64, under the codes of the whole's column."""
        status = self.same_column(stats, column).status
        assert status is not None
        assert column.status is not None
        place = {name: i for i, name in enumerate(column.status[0])}
        return np.array([place[name] for name in status[0]], np.int64)[status[1]]

    def standings(self, column: Column) -> tuple[Array, Array, Array]:
        """Count each status among the datums of each group that count.

        Returns:
            group int64, code int64 and count float64 of all pairs that occur, sorted.
        """
        assert column.status is not None
        n_codes = len(column.status[0])
        if self.draws is not None:

            def summands() -> Summands:
                for stats, group, keys in self.tally.blocks(self.group):
                    _, cell = self.placed(stats, group, "", "")
                    code = self._statuses(stats, column)
                    yield keys, None, np.where(cell < 0, -1, cell * n_codes + code), None

            sums = self.draws.sums(self.slices * n_codes, summands)
            drawn = by_draw(sums, self.slices)
            group, code = np.nonzero(drawn)
            return group, code, drawn[group, code]
        pairs, many = [np.zeros(0, np.int64)], [np.zeros(0)]
        for stats, inside, cell, times in self.in_groups("", ""):
            # With many groups and many codes, few of the possible pairs occur.
            code = self._statuses(stats, column)[inside]
            distinct, at = np.unique(cell * n_codes + code, return_inverse=True)
            pairs.append(distinct)
            many.append(np.bincount(at, times, minlength=distinct.size).astype(np.float64))
        distinct, at = np.unique(np.concatenate(pairs), return_inverse=True)
        count = np.bincount(at, np.concatenate(many), minlength=distinct.size)
        return distinct // n_codes, distinct % n_codes, count

    def total(self, column: Column, of: Callable[[Array], Array] = same) -> tuple[Array, Array]:
        """Return exact sums over the datums of each group, without undefined values.

        Args:
            column: values float64 [n_datums, ...].
            of: maps values to summands, float64 [n_datums, ...].

        Returns:
            sums float64 [group, ...]; number of values in each, float64 of that shape.
        """

        def values(stats: Stats) -> Array:
            return of(self.same_column(stats, column).values)

        total, many = self.exact_sums("", values, "")
        return total[:, 0], many[:, 0]


def merge_stats(parts: Sequence[Stats], datums: Sequence[Array]) -> Stats:
    """Merge tallies of one row per datum.

    Args:
        parts: tallies of disjoint sets of datums, with the same columns.
        datums: new datum codes per part.

    Raises:
        InputError: the parts were measured differently.
    """
    first = parts[0].columns
    for part in parts[1:]:
        if list(part.columns) != list(first):
            raise InputError("partitions were measured by different metrics.")
        pairs = [
            pair for need in first for pair in zip(first[need], part.columns[need], strict=False)
        ]
        for one, other in pairs:
            if one.parameters != other.parameters:
                raise InputError(
                    f"partitions were measured differently: {one.metric} with {one.parameters} in"
                    f" one and with {other.parameters} in another. Metrics scaled by the highest"
                    " relevance of all cannot be merged: score all partitions in one run, or"
                    " remove the metric."
                )
            if (one.metric, one.statistic, one.k) != (other.metric, other.statistic, other.k):
                raise InputError(f"partitions were measured at different cut-offs of {one.metric}.")
    none = np.zeros(0, np.int32)
    result: Stats = merged(parts, [Codes(codes, none, none) for codes in datums])
    for need, columns in result.columns.items():
        shares = {part.columns[need][0].share for part in parts} - {None}
        if shares:
            share = msgspec.structs.replace(columns[0], share=all(shares))
            result.columns[need] = (share, *columns[1:])
    return result


# Stats whose parts are in files, and single datums of all parts in the order they are shown.

Cuts = Mapping[str, set[int | None]]


@stored_as("bucket.datums/1")
class DisplayedDatums(msgspec.Struct, frozen=True):
    """The datums of a part in display order, which is that of its rows.

    Attributes:
        id: their ids.
        row: int64 [n], ascending row of each in the single table, then -1 for datums that are only
            in the table of datums, by id; None if all are in order of their ids.
    """

    id: pl.Series
    row: Array | None


# -- single datums ---------------------------------------------------------------------------------


def variants(stats: InFiles, cuts: Cuts) -> Iterator[tuple[str, int, int, int]]:
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
    ranges = _ranges(list(parts.frame_data()), max(1, parts.place.rows // 4))

    def of(rows: tuple[slice, ...]) -> Few:
        some, ids, keys = [], [], []
        for part, datums, few in zip(parts, parts.frame_data(), rows, strict=True):
            if few.start < few.stop:
                some.append((part, few))
                ids.append(datums.id[few])
                keys.append(_key(datums)[few])
        frame = pl.DataFrame([pl.concat(keys), pl.concat(ids).alias("id")])
        order = frame.select(pl.arg_sort_by("key", "id")).to_series().to_numpy()
        code = np.empty(order.size, np.int64)
        code[order] = np.arange(order.size)
        codes = np.split(code, np.cumsum([few.stop - few.start for _, few in some])[:-1])
        return Few(Datums(pl.concat(ids)[order], pl.DataFrame()), some, codes)

    return [partial(of, rows) for rows in ranges]


def single_datums(stats: InFiles, cuts: Cuts) -> Iterator[tuple[Datums, Stats, Cuts]]:
    """Yield a few datums with one of their metrics, and its need and cut-off.

    They are in the order of the rows of a per-datum frame.

    Args:
        cuts: need -> the cut-offs to show.
    """
    every = few_datums(stats.parts)
    for need, i, p, k in variants(stats, cuts):
        for few in (make() for make in every):
            some = [
                _one_metric(stats.rows_of(part), need, (i, p, k), rows) for part, rows in few.rows
            ]
            at = stats.columns[need][i].k[k]
            yield few.datums, merge_stats(some, few.codes), {need: {at}}


def _one_metric(stats: Stats, need: str, places: tuple[int, int, int], rows: slice) -> Stats:
    """Some datums with one variant of one column."""
    i, p, k = places
    column = stats.columns[need][i]
    few = msgspec.structs.replace(
        column,
        parameters=(column.parameters[p],),
        k=(column.k[k],),
        values=column.values[:, p : p + 1, k : k + 1],
    )
    return msgspec.structs.replace(stats, columns={need: (few,)}).take(rows)


def _key(datums: DisplayedDatums) -> pl.Series:
    """Return the primary sort key of datums: rows, unknown ones last."""
    if datums.row is None:
        return pl.Series("key", np.zeros(len(datums.id), np.int64))
    return pl.Series("key", np.where(datums.row < 0, np.iinfo(np.int64).max, datums.row))


def _ranges(parts: Sequence[DisplayedDatums], most: int) -> list[tuple[slice, ...]]:
    """Split the datums of each part into ranges that are displayed together.

    Args:
        most: approximate datums per range.
    """
    first = [0] * len(parts)
    result: list[tuple[slice, ...]] = []
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
                result.append(rows)
        first = [bound[-1] for bound in bounds]
    return result


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
    has_value = np.zeros((len(places), size, width), bool)
    for i, (place, value) in enumerate(zip(places, values, strict=True)):
        inside = place >= 0
        rows[i, place[inside]] = True
        has_value[i, place[inside]] = ~np.isnan(value[inside])
    common: Array = np.asarray(rows.all(axis=0))
    missing = has_value.any(axis=0) & ~has_value.all(axis=0) & common[:, None]
    if not missing.any():
        return None
    filled = np.where(missing, fill, np.nan)
    result = []
    for i, (place, value) in enumerate(zip(places, values, strict=True)):
        inside = place >= 0
        at, current = place[inside], value[inside]
        other = np.where(has_value[i, at] & ~np.isnan(filled[at]), current, filled[at])
        out = value.copy()
        out[inside] = np.where(missing[at], other, current)
        result.append(out)
    return result


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
            new_values = aligned(codes, values, np.nan if counts else fill(need))
            if new_values is None:
                continue
            changed = True
            for own, value in zip(columns, new_values, strict=True):
                replaced = msgspec.structs.replace(own[need][i], values=value.reshape(-1, *shape))
                own[need] = (*own[need][:i], replaced, *own[need][i + 1 :])
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
    labels, of_label = merge_labels([one.labels for one in tallies])
    if column == "key":
        place = {name: i for i, name in enumerate(labels.key_names)}
        of_label = [
            np.array([place[name] for name in one.labels.key_names], np.int32) for one in tallies
        ]
    width = max(len(labels), 1)
    keys = [
        np.where(
            code[table.datum] >= 0,
            code[table.datum].astype(np.int64) * width + of[getattr(table, column)],
            -1,
        )
        for table, code, of in zip(rows, codes, of_label, strict=True)
    ]
    distinct, at = np.unique(np.concatenate(keys), return_inverse=True)
    at = at - int(distinct.size > 0 and distinct[0] < 0)
    return np.split(at, np.cumsum([key.size for key in keys])[:-1])
