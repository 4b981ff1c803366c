"""Pixels under the weights of many draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..kernels.drawn_sums import drawn_counts, drawn_sums, on_grid, step_of_grid
from .draws import Draws, OneByOne, by_draw
from .pixels import Pixels, PixelView
from .stats_draws import StatsDraws

Array = np.ndarray[Any, Any]


class PixelDraws(PixelView):
    """A view of pixels whose groups are draws.

    Args:
        view: the view whose datums are drawn.
        draws: the block.
    """

    def __init__(self, view: PixelView, draws: Draws) -> None:
        super().__init__(
            view.pixels,
            view.labels,
            view.single.stats,
            group=view.group,
            n_groups=view.n_groups * len(draws),
        )
        self._draws = draws
        self._groups = view.n_groups
        self.single = StatsDraws(view.single, draws)

    def _drawn_blocks(self) -> Iterator[tuple[Pixels, Array | None, Array]]:
        for pixels, group, keys in self.pixels.blocks(self.group):
            yield pixels, group, self._draws.weights if keys is None else self._draws.of(keys)

    def area_total(self, of: Callable[[Pixels], Array]) -> tuple[Array, Array]:
        n_keys = len(self.labels.key_names)
        shape = self._groups * n_keys, 1, len(self._draws)
        sums, many = np.zeros(shape), np.zeros(shape)
        largest, n = 0.0, 0
        for pixels, _, _ in self.pixels.blocks(self.group):
            value = of(pixels)
            largest = max(largest, float(np.abs(value[~np.isnan(value)]).max(initial=0.0)))
            n += value.size
        step = step_of_grid(largest, n)
        for pixels, group, weights in self._drawn_blocks():
            areas = pixels.areas
            values = on_grid(of(pixels), step)[:, None]
            cell = _cells(areas.datum, group, self.labels.key[areas.label], n_keys)
            drawn_sums(areas.datum, cell, values, weights, sums)
            drawn_counts(areas.datum, cell, values, weights, many)
        return by_draw(sums, self._groups)[..., 0], by_draw(many, self._groups)[..., 0]

    def _summed(self, of: Callable[[Pixels], tuple[Array, Array, Array]], n_codes: int) -> Array:
        sums = np.zeros((self._groups * n_codes, 1, len(self._draws)))
        for pixels, group, weights in self._drawn_blocks():
            datum, code, values = of(pixels)
            cell = _cells(datum, group, code, n_codes)
            drawn_sums(datum, cell, values.astype(np.float64)[:, None], weights, sums)
        return by_draw(sums, self._groups)[..., 0].astype(np.int64)

    @property
    def crossed(self) -> tuple[Array, Array, Array, Array]:
        """Not of many draws at once: pairs that occur differ between them."""
        raise OneByOne


def _cells(datum: Array, group: Array | None, code: Array, n_codes: int) -> Array:
    """Cells of [group, code], int64 [m], -1 outside of groups."""
    if group is None:
        return code.astype(np.int64)
    own = group[datum].astype(np.int64)
    return np.where(own < 0, -1, own * n_codes + code)
