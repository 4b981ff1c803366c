"""Values: one row per datum, for every metric that is computed per datum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ..kernels.datums import drawn_counts, drawn_sums, largest_of_cells, on_grid, step_of_grid
from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from .datums import Labels
from .draws import Draws, OneByOne, by_draw
from .ranked_view import View
from .registry import stored_as

# Stats: one row a datum, the tally of everything that is computed datum by datum.

Rows = tuple[Array, Array, Array | None]
"""Datums that count, the group of each, and how often each counts (None: once)."""


def same(values: Array) -> Array:
    """The values as they are."""
    return values


@stored_as("values.column/1")
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
    """

    metric: str
    statistic: str | None = None
    parameters: tuple[str | None, ...] = (None,)
    k: tuple[int | None, ...] = (None,)
    values: Array
    reason: str | None = None
    status: tuple[tuple[str, ...], Array] | None = None


def codes_of(block: Column, column: Column) -> Array:
    """Each datum's standing in a block, int64 [n_datums], under the codes of the whole's column."""
    assert block.status is not None
    assert column.status is not None
    place = {name: i for i, name in enumerate(column.status[0])}
    return np.array([place[name] for name in block.status[0]], np.int64)[block.status[1]]


@stored_as("values/1")
class Stats(msgspec.Struct, frozen=True):
    """Per-datum values: one row per datum.

    Attributes:
        counted: bool [n_datums], datums that enter means.
        columns: need -> columns.
        status: names of each datum's status (``scored``, ``not_retrieved``, ...) and their codes,
            int8 [n_datums].
    """

    counted: Array
    columns: dict[str, tuple[Column, ...]]
    status: tuple[tuple[str, ...], Array]

    def blocks(self, group: Array | None) -> Iterator[tuple[Stats, Array | None, Array | None]]:
        """Yield the rows of all datums with group and key of each; here in one block.

        Keys, uint64 [n_datums], give the resampling weights; None in memory, since
        :class:`~evalengine.tally.draws.Draws` has them.
        """
        yield self, group, None


class StatsView(View):
    """Stats by groups of datums; sums are exact, so that the order of blocks does not matter.

    Args:
        stats: :class:`Stats` or :class:`~evalengine.tally.stats_parts.StatsParts`.
        labels: labels of the run; empty if the task has none.
        **grouping: see :class:`View`.
    """

    def __init__(self, stats: Any, labels: Labels, **grouping: Any) -> None:
        super().__init__(labels, **grouping)
        self.stats = stats

    def _blocks(self) -> Iterator[tuple[Stats, Rows]]:
        """Datums of each block, and those that count and are in a group."""
        for stats, group, _ in self.stats.blocks(self.group):
            if stats is not self.stats:
                self.refuse_draws()
            yield stats, self._rows if stats is self.stats else self._rows_of(stats, group)

    @cached_property
    def _rows(self) -> Rows:
        """Rows of a tally in memory, for all columns."""
        return self._rows_of(self.stats, self.group)

    def _rows_of(self, stats: Stats, group: Array | None) -> Rows:
        inside = stats.counted if group is None else stats.counted & (group >= 0)
        rows = np.flatnonzero(inside)
        of = np.zeros(rows.size, np.int64) if group is None else group[rows]
        return rows, of, None if self.weights is None else self.weights[rows].astype(np.float64)

    @cached_property
    def support(self) -> Array:
        """Datums that count, float64 [group]."""
        out = np.zeros(self.n_groups)
        for _, (_, group, weight) in self._blocks():
            out += np.bincount(group, weight, minlength=self.n_groups)
        return out

    def _each(self, column: Column) -> Iterator[tuple[Column, Rows]]:
        """A column in every block, and the datums that count."""
        for stats, rows in self._blocks():
            yield self.same_column(stats, column), rows

    def same_column(self, stats: Stats, column: Column) -> Column:
        """The column of a block that is the given one of the whole."""
        need, i = next(
            (need, i)
            for need, columns in self.stats.columns.items()
            for i, one in enumerate(columns)
            if one is column
        )
        return stats.columns[need][i]

    def standings(self, column: Column) -> tuple[Array, Array, Array]:
        """Count each status among the datums of each group that count.

        Args:
            column: a column with a status.

        Returns:
            group int64, code int64 and count float64 of all pairs that occur, sorted.
        """
        assert column.status is not None
        n_codes = len(column.status[0])
        pairs, many = [np.zeros(0, np.int64)], [np.zeros(0)]
        for here, (rows, group, weight) in self._each(column):
            # With many groups and many codes, few of the possible pairs occur.
            code = codes_of(here, column)[rows]
            there, at = np.unique(group * n_codes + code, return_inverse=True)
            pairs.append(there)
            many.append(np.bincount(at, weight, minlength=there.size).astype(np.float64))
        there, at = np.unique(np.concatenate(pairs), return_inverse=True)
        count = np.bincount(at, np.concatenate(many), minlength=there.size)
        return there // n_codes, there % n_codes, count

    def total(self, column: Column, of: Callable[[Array], Array] = same) -> tuple[Array, Array]:
        """Return exact sums over the datums of each group, without undefined values.

        Args:
            column: values float64 [n_datums, ...].
            of: maps values to summands, float64 [n_datums, ...].

        Returns:
            sums float64 [group, ...]; number of values in each, float64 of that shape.
        """
        shape = of(column.values[:0]).shape[1:]
        width = math.prod(shape)
        sums = [ExactSums(self.n_groups) for _ in range(width)]
        many = np.zeros((width, self.n_groups))
        for here, (rows, group, weight) in self._each(column):
            values = of(here.values)
            flat = values.reshape(values.shape[0], width)
            for i, total in enumerate(sums):
                value = flat[rows, i]
                known = ~np.isnan(value)
                if known.all():
                    at, times = group, weight
                else:
                    value, at = value[known], group[known]
                    times = None if weight is None else weight[known]
                total.add(value if times is None else value * times, at)
                many[i] += np.bincount(at, times, minlength=self.n_groups)
        rounded = np.array([total.rounded() for total in sums]).reshape(width, self.n_groups)
        return rounded.T.reshape(self.n_groups, *shape), many.T.reshape(self.n_groups, *shape)


# Stats under the weights of many resamples.


class StatsDraws:
    """:class:`~evalengine.tally.stats.StatsView` for a block of resamples."""

    def __init__(self, view: StatsView, draws: Draws) -> None:
        self._view = view
        self._draws = draws
        self.stats = view.stats
        self.labels = view.labels
        self.n_groups = view.n_groups * len(draws)

    def _blocks(self) -> Iterator[tuple[Stats, Array, Array]]:
        """Stats of each block, the group of each datum that counts (else -1), and weights."""
        for stats, group, keys in self.stats.blocks(self._view.group):
            cell = np.zeros(stats.counted.size, np.int64) if group is None else group
            weights = self._draws.weights if keys is None else self._draws.of(keys)
            yield stats, np.where(stats.counted, cell, -1), weights

    def _by_draw(self, sums: Array) -> Array:
        """Reshape [groups, columns, resamples] to [resamples * groups, columns]."""
        return np.ascontiguousarray(np.moveaxis(sums, -1, 0)).reshape(self.n_groups, -1)

    def _zeros(self, width: int) -> Array:
        return np.zeros((self._view.n_groups, width, len(self._draws)))

    @cached_property
    def support(self) -> Array:
        """Datums that count, float64 [resample * group]."""
        out = self._zeros(1)
        for _, cell, weights in self._blocks():
            drawn_counts(None, cell, None, weights, out)
        return self._by_draw(out)[:, 0]

    def standings(self, column: Column) -> tuple[Array, Array, Array]:
        """Return :meth:`.StatsView.standings` per resample and group."""
        assert column.status is not None
        n_codes = len(column.status[0])
        sums = np.zeros((self._view.n_groups * n_codes, 1, len(self._draws)))
        for stats, cell, weights in self._blocks():
            code = codes_of(self._view.same_column(stats, column), column)
            drawn_counts(None, np.where(cell < 0, -1, cell * n_codes + code), None, weights, sums)
        count = by_draw(sums, self._view.n_groups)[..., 0]
        group, code = np.nonzero(count)
        return group, code, count[group, code]

    def total(self, column: Column, of: Callable[[Array], Array] = same) -> tuple[Array, Array]:
        """Return :meth:`.StatsView.total` per resample and group."""
        shape = of(column.values[:0]).shape[1:]
        width = math.prod(shape)
        step, complete = self._grid(column, of)
        sums = self._zeros(width)
        many = None if complete else self._zeros(width)
        for stats, cell, weights in self._blocks():
            values = of(self._view.same_column(stats, column).values).reshape(-1, width)
            values = on_grid(values, step if len(step) == 1 else step[cell])
            drawn_sums(None, cell, values, weights, sums)
            if many is not None:
                drawn_counts(None, cell, values, weights, many)
        known = (
            np.repeat(self.support[:, None], width, axis=1) if many is None else self._by_draw(many)
        )
        return (
            self._by_draw(sums).reshape(self.n_groups, *shape),
            known.reshape(self.n_groups, *shape),
        )

    def _grid(self, column: Column, of: Callable[[Array], Array]) -> tuple[Array, bool]:
        """Return the grid step of each group's values; also True if all are defined.

        Returns:
            float64 [groups, width]; a separate step per group keeps small ones precise.
        """
        n_groups = self._view.n_groups
        width = math.prod(of(column.values[:0]).shape[1:])
        n, largest, complete = np.zeros((width, n_groups)), np.zeros((width, n_groups)), True
        for stats, group, _ in self.stats.blocks(self._view.group):
            cell = np.where(stats.counted, 0 if group is None else group, -1)
            values = of(self._view.same_column(stats, column).values).reshape(-1, width)
            known = ~np.isnan(values)
            complete = complete and bool(known[stats.counted].all())
            for j in range(width):
                some = np.where(known[:, j], values[:, j], 0.0)
                largest_of_cells(cell, some, n[j], largest[j])
        if not np.isfinite(largest).all():
            raise OneByOne
        return step_of_grid(largest, n).T, complete
