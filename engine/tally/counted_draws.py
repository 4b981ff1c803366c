"""Rows of counts under the weights of many resamples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..kernels.drawn_sums import (
    drawn_counts,
    drawn_sums,
    largest_of_cells,
    on_grid,
    step_of_grid,
)
from ..schemas.arrays import Array
from .counted_rows import CountsView, Rows
from .draws import Draws, OneByOne, by_draw
from .stats_draws import StatsDraws


class CountDraws(CountsView):
    """Mixin for views of counts whose groups are resamples."""

    def __init__(self, view: CountsView, draws: Draws) -> None:
        super().__init__(
            view.counts,
            view.labels,
            view.single.stats,
            group=view.group,
            n_groups=view.n_groups * len(draws),
        )
        self._draws = draws
        self._groups = view.n_groups
        self.single = StatsDraws(view.single, draws)

    def _drawn_blocks(self) -> Iterator[tuple[Any, Array | None, Array]]:
        for counts, group, keys in self.counts.blocks(self.group):
            yield counts, group, self._draws.weights if keys is None else self._draws.of(keys)

    def exact_total(self, of: Rows, n_codes: int) -> tuple[Array, Array]:
        shape = self._groups * n_codes, 1, len(self._draws)
        sums, many = np.zeros(shape), np.zeros(shape)
        n, largest = np.zeros(shape[0]), np.zeros(shape[0])
        for counts, group, _ in self.counts.blocks(self.group):
            datum, code, value = of(counts)
            cell = _cells(datum, group, code, n_codes)
            largest_of_cells(cell, np.where(np.isnan(value), 0.0, value), n, largest)
        if not np.isfinite(largest).all():
            raise OneByOne
        step = step_of_grid(largest, n)
        for counts, group, weights in self._drawn_blocks():
            datum, code, value = of(counts)
            cell = _cells(datum, group, code, n_codes)
            values = on_grid(value, step[cell])[:, None]
            drawn_sums(datum, cell, values, weights, sums)
            drawn_counts(datum, cell, values, weights, many)
        return by_draw(sums, self._groups)[..., 0], by_draw(many, self._groups)[..., 0]

    def summed(self, of: Rows, n_codes: int) -> Array:
        sums = np.zeros((self._groups * n_codes, 1, len(self._draws)))
        for counts, group, weights in self._drawn_blocks():
            datum, code, values = of(counts)
            cell = _cells(datum, group, code, n_codes)
            drawn_sums(datum, cell, values.astype(np.float64)[:, None], weights, sums)
        return by_draw(sums, self._groups)[..., 0].astype(np.int64)

    @property
    def crossed(self) -> tuple[Array, Array, Array, Array]:
        """Raise OneByOne: the pairs that occur differ between resamples."""
        raise OneByOne


def _cells(datum: Array, group: Array | None, code: Array, n_codes: int) -> Array:
    """Cells of [group, code], int64 [m], -1 outside of groups."""
    if group is None:
        return code.astype(np.int64)
    own = group[datum].astype(np.int64)
    return np.where(own < 0, -1, own * n_codes + code)
