"""Paired values under the weights of many resamples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ..kernels.drawn_sums import (
    count_tiny,
    drawn_counts,
    drawn_sums,
    largest_of_cells,
    on_grid,
    step_of_grid,
)  # fmt: skip
from ..kernels.paired_sums import by_cell
from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from .counted_draws import CountDraws
from .draws import Draws, by_draw
from .paired_rows import Paired, joined
from .paired_values import OfRows, PairedView, Scaling, Values

_Numbers = Callable[[Paired, "Array | None"], Array]
"""Map rows and their cells (-1 outside, None if there is one cell) to numbers."""

_TINY = 2.0**-30


class PairedDraws(CountDraws, PairedView):
    """A view of paired values whose groups are resamples."""

    slack: float = 1e-10

    def __init__(self, view: PairedView, draws: Draws) -> None:
        super().__init__(view, draws)
        self._base = view

    @property
    def base(self) -> PairedView:
        return self._base

    @property
    def scaling(self) -> Scaling:
        return self._base.scaling

    @property
    def largest_error(self) -> Array:
        return self.by_cell(lambda rows, weight: float(np.abs(rows.error).max()))

    # -- sums --------------------------------------------------------------------------------------

    def total(self, name: str, of: Values) -> Array:
        if name not in self._totals:
            with np.errstate(over="ignore", invalid="ignore"):
                self._totals[name] = self._drawn(name, lambda rows, cell: of(rows))
        return self._totals[name]

    def _moments(self, name: str) -> dict[str, Array]:
        return {name: self._drawn(name, self._numbers(name))}

    def undone(self, name: str) -> Array:
        return np.tile(self._base.undone(name), (len(self._draws), 1))

    def _numbers(self, name: str) -> _Numbers:
        """The numbers of a moment, as the kernel makes them."""
        base, scaling = self._base, self._base.scaling
        means = base.centres(name)
        factors = scaling.scales if scaling.powers.any() else None

        def at(values: Array, cell: Array | None) -> Any:
            return values[0] if cell is None else np.append(values, 1.0)[cell]

        def side(one: str, rows: Paired, cell: Array | None) -> Array:
            if factors is None:
                found: Array = getattr(rows, one)
            elif one == "error":
                sides = at(factors.sides, cell)
                found = rows.prediction * sides - rows.target * sides
                found = found * at(factors.error, cell)
            else:
                found = getattr(rows, one) * at(getattr(factors, one), cell)
            return found - at(means[one], cell) if means[one].any() else found

        def numbers(rows: Paired, cell: Array | None) -> Array:
            if name == "size":
                return np.abs(side("target", rows, cell))
            if name in ("absolute", "squared"):
                error = side("error", rows, cell)
                return np.abs(error) if name == "absolute" else error**2
            first, *second = (side(one, rows, cell) for one in name.rstrip("-").split("*"))
            return first * second[0] if second else first

        return numbers

    def _of_blocks(self, of: _Numbers) -> Iterator[tuple[Paired, Array, Array, Array]]:
        """Rows, their cells, -1 outside, their weighed numbers and the weights of datums."""
        for rows, group, weights in self._drawn_blocks():
            cell = self._base.cell_of(rows, group)
            values = of(rows, cell)
            place = np.zeros(rows.datum.size, np.int32) if cell is None else cell
            if rows.weight is not None:  # what weighs nothing counts nowhere, undefined or not
                values = np.where(rows.weight > 0, values * rows.weight, 0.0)
            yield rows, place, values, weights

    def _one_by_one(self, of: _Numbers, cells: Array) -> Array:
        """Return exact sums per resample for cells whose numbers do not fit one grid.

        These have undefined values, or some so large that others would be lost on a common grid.

        Args:
            of: computes the numbers.
            cells: int64 [m].

        Returns:
            float64 [m, draws].
        """
        n_draws = len(self._draws)
        own = np.full(self._base.n_cells + 1, -1, np.int64)  # the last: rows outside
        own[cells] = np.arange(cells.size)
        sums = ExactSums(cells.size * n_draws)
        for rows, place, values, weights in self._of_blocks(of):
            here = np.flatnonzero(own[place] >= 0)
            some, first, datum = values[here], own[place[here]] * n_draws, rows.datum[here]
            for draw in range(n_draws):
                times = weights[datum, draw]
                drawn = np.flatnonzero(times)
                sums.add(some[drawn] * times[drawn], first[drawn] + draw)
        return sums.rounded().reshape(cells.size, n_draws)

    def _grid(self, name: str, of: _Numbers) -> Array:
        """Return the grid of each cell's numbers, float64 [cells + 1]; NaN if no grid fits.

        The last is for rows outside. Resamples of one view share it.
        """
        if name not in self._base.kept:
            n_cells = self._base.n_cells
            n, most, few = (np.zeros(n_cells) for _ in range(3))
            for _, place, values, _ in self._of_blocks(of):
                largest_of_cells(place, values, n, most)
            least = np.where(np.isfinite(most), most * _TINY, 0.0)
            for _, place, values, _ in self._of_blocks(of):
                count_tiny(place, values, least, few)
            held = np.isfinite(most) & (few * 100 <= n)
            step = np.where(held, step_of_grid(np.where(held, most, 0.0), n), np.nan)
            self._base.kept[name] = np.append(step, 0.0)
        found: Array = self._base.kept[name]
        return found

    def _drawn(self, name: str, of: _Numbers) -> Array:
        step = self._grid(name, of)
        left = np.isnan(step)
        own = np.where(left, 0.0, step)
        sums = np.zeros((self._base.n_cells, 1, len(self._draws)))
        for rows, place, values, weights in self._of_blocks(of):
            values = on_grid(values, own[0] if own.size == 2 else own[place])
            place = np.where(left[place], -1, place) if left.any() else place
            drawn_sums(rows.datum, place, values[:, None], weights, sums)
        if left.any():
            cells = np.flatnonzero(left)
            sums[cells, 0] = self._one_by_one(of, cells)
        return by_draw(sums, self._groups)[..., 0]

    @cached_property
    def rows(self) -> Array:
        sums = np.zeros((self._base.n_cells, 1, len(self._draws)))
        for rows, group, weights in self._drawn_blocks():
            cell = self._base.cell_of(rows, group)
            place = np.zeros(rows.datum.size, np.int32) if cell is None else cell
            drawn_counts(rows.datum, place, None, weights, sums)
        return by_draw(sums, self._groups)[..., 0].astype(np.int64)

    # -- order -------------------------------------------------------------------------------------

    @cached_property
    def _by_cell(self) -> tuple[Paired, Array, Array]:
        """Return rows sorted by cell of the base view, cell offsets, and weights [n, draws]."""
        blocks = [
            (rows, self._base.cell_of(rows, group), weights[rows.datum])
            for rows, group, weights in self._drawn_blocks()
        ]
        cell = [np.zeros(rows.datum.size, np.int32) if at is None else at for rows, at, _ in blocks]
        start, order = by_cell(np.concatenate(cell), None, self._base.n_cells)
        drawn = np.concatenate([times for _, _, times in blocks])[order]
        return joined([rows for rows, _, _ in blocks]).chosen(order), start, drawn

    def by_cell(self, of: OfRows) -> Array:
        rows, start, drawn = self._by_cell
        out = np.full((start.size - 1, drawn.shape[1]), np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            for cell in np.flatnonzero(np.diff(start)).tolist():
                first, last = start[cell], start[cell + 1]
                for draw in range(drawn.shape[1]):
                    times = drawn[first:last, draw].astype(np.float64)
                    if rows.weight is not None:
                        times *= rows.weight[first:last]
                    some = np.flatnonzero(times)
                    if some.size:
                        out[cell, draw] = of(rows.chosen(first + some), times[some])
        return by_draw(out, self._groups)
