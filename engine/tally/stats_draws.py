"""Stats under the weights of many resamples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from ..kernels.drawn_sums import (
    drawn_counts,
    drawn_sums,
    largest_of_cells,
    on_grid,
    step_of_grid,
)
from ..schemas.arrays import Array
from .draws import Draws, OneByOne, by_draw
from .stats import Column, Stats, StatsView, codes_of, same


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
        """Reshape [groups, columns, draws] to [draws * groups, columns]."""
        return np.ascontiguousarray(np.moveaxis(sums, -1, 0)).reshape(self.n_groups, -1)

    def _zeros(self, width: int) -> Array:
        return np.zeros((self._view.n_groups, width, len(self._draws)))

    @cached_property
    def support(self) -> Array:
        """Datums that count, float64 [draw * group]."""
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
