"""Paired values: predicted and true numbers by datum and label key, and what is summed of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import msgspec
import numpy as np

from ..kernels.drawn_sums import drawn_counts, drawn_sums, on_grid, step_of_grid
from ..kernels.sums import ExactSums
from .counted_draws import CountDraws
from .counted_rows import CountsView
from .datums import Labels
from .draws import Draws, by_draw

Array = np.ndarray[Any, Any]


class Paired(msgspec.Struct, frozen=True):
    """One row a datum and label key that both sides have.

    Attributes:
        datum: int32 [n], datum code.
        key: int32 [n], code of the label key.
        target: float64 [n], true values.
        prediction: float64 [n], predicted values.
        weight: float64 [n], how much each counts; None for all alike.
        beside: further columns of the rows, float64 [n] (of ids their hashes, uint64), by name.
    """

    datum: Array
    key: Array
    target: Array
    prediction: Array
    weight: Array | None
    beside: dict[str, Array]

    @property
    def error(self) -> Array:
        """Prediction less target, float64 [n]."""
        difference: Array = self.prediction - self.target
        return difference

    def chosen(self, rows: Any) -> Paired:
        """Some of the rows, in their order.

        Args:
            rows: what indexes them.
        """
        return Paired(
            self.datum[rows],
            self.key[rows],
            self.target[rows],
            self.prediction[rows],
            None if self.weight is None else self.weight[rows],
            {name: values[rows] for name, values in self.beside.items()},
        )

    def bare(self) -> Paired:
        """What all datums share, without rows."""
        return self.chosen(slice(0, 0))

    def blocks(self, group: Array | None) -> Iterator[tuple[Paired, Array | None, Array | None]]:
        """As :meth:`evalengine.tally.stats.Stats.blocks` has them."""
        yield self, group, None


def merge_paired(parts: Sequence[Paired], datums: Sequence[Array], keys: Sequence[Array]) -> Paired:
    """The rows of all parts, by datum and label key.

    Args:
        parts: of disjoint sets of datums, with the same columns.
        datums: new datum codes of each part.
        keys: new codes of each part's label keys.
    """
    datum = np.concatenate([new[part.datum] for part, new in zip(parts, datums, strict=True)])
    key = np.concatenate([new[part.key] for part, new in zip(parts, keys, strict=True)])
    order = np.lexsort((key, datum))

    def joined(of: Callable[[Paired], Array]) -> Array:
        return np.concatenate([of(part) for part in parts])[order]

    weight = None
    if any(part.weight is not None for part in parts):
        weight = joined(
            lambda part: np.ones(part.datum.size) if part.weight is None else part.weight
        )
    return Paired(
        datum[order].astype(np.int32),
        key[order].astype(np.int32),
        joined(lambda part: part.target),
        joined(lambda part: part.prediction),
        weight,
        {name: joined(partial(_beside, name)) for name in parts[0].beside},
    )


def _beside(name: str, rows: Paired) -> Array:
    return rows.beside[name]


_PIECE = 1 << 17

Values = Callable[[Paired, "Array | None"], Array]
"""From rows and the cell of each (None where there is one) to numbers, float64 [n] or [n, c]."""


OfRows = Callable[[Paired, "Array | None"], float]
"""From rows and their weights, None for all alike, to a number."""


class PairedView(CountsView):
    """Paired values by groups of datums; numbers have the axes [group, key].

    Args:
        counts: :class:`Paired`, or :class:`~evalengine.tally.counted_rows.CountParts` of it.
        labels: whose keys are the targets.
        stats: numbers of single datums.
        **grouping: see :class:`~evalengine.tally.ranked_view.View`.
    """

    slack: float = 4 * float(np.finfo(np.float64).eps)
    """Share of a sum of squares below which its difference from another is rounding."""

    def __init__(self, counts: Any, labels: Labels, stats: Any, **grouping: Any) -> None:
        super().__init__(counts, labels, stats, **grouping)
        self.shape = self.n_groups, len(labels.key_names)
        self._totals: dict[str, Array] = {}

    @property
    def _n_cells(self) -> int:
        return self.shape[0] * self.shape[1]

    def _cell(self, rows: Paired, group: Array | None) -> Array | None:
        """Cell of each row, the number of cells for those outside; None where there is one."""
        n_keys = self.shape[1]
        if group is None:
            return None if n_keys == 1 and self._n_cells == 1 else rows.key.astype(np.int64)
        own = group[rows.datum].astype(np.int64)
        cell = own if n_keys == 1 else own * n_keys + rows.key
        outside = own < 0
        return np.where(outside, self._n_cells, cell) if outside.any() else cell

    @cached_property
    def _held(self) -> tuple[Array | None, Array | None]:
        """Cells and weights of the rows of a tally in memory, for all sums."""
        return self._cell(self.counts, self.group), self._factor(self.counts)

    def _factor(self, rows: Paired) -> Array | None:
        """How much each row counts; None for all alike."""
        if self.weights is None:
            return rows.weight
        times: Array = self.weights[rows.datum].astype(np.float64)
        return times if rows.weight is None else times * rows.weight

    def _each(self) -> Iterator[tuple[Paired, Array | None, Array | None]]:
        """Rows, cells and weights, block by block."""
        for rows, group in self._blocks():
            if rows is self.counts:
                yield rows, *self._held
            else:
                yield rows, self._cell(rows, group), self._factor(rows)

    def _pieces(self) -> Iterator[tuple[Paired, Array | None, Array | None]]:
        """The same in runs of rows so short that what is made of them stays in the cache."""
        length = max(_PIECE, 4 * self._n_cells)
        for rows, cell, factor in self._each():
            for first in range(0, max(rows.datum.size, 1), length):
                some = slice(first, first + length)
                yield (
                    rows.chosen(some),
                    None if cell is None else cell[some],
                    None if factor is None else factor[some],
                )

    def total(self, name: str, of: Values) -> Array:
        """Exact sums of numbers of rows, each times its weight.

        Args:
            name: of the sum, by which it is made once.
            of: the numbers.

        Returns:
            float64 [group, key], or [group, key, c]; NaN where one of the numbers is.
        """
        if name not in self._totals:
            self._totals[name] = self._summed(of)
        return self._totals[name]

    def _summed(self, of: Values) -> Array:
        sums: list[ExactSums] = []
        flat = True
        for rows, cell, factor in self._pieces():
            values = of(rows, cell)
            flat = values.ndim == 1
            columns = values[:, None] if flat else values
            sums = sums or [ExactSums(self._n_cells + 1) for _ in range(columns.shape[1])]
            for i, one in enumerate(sums):
                value = columns[:, i]
                one.add(value if factor is None else value * factor, cell)
        found = np.stack([one.rounded()[:-1] for one in sums], axis=-1)
        return found.reshape(self.shape if flat else (*self.shape, len(sums)))

    @cached_property
    def rows(self) -> Array:
        """How many rows there are, as often as they are drawn, int64 [group, key]."""
        out = np.zeros(self._n_cells + 1)
        for rows, cell, _ in self._each():
            times = None if self.weights is None else self.weights[rows.datum]
            place = np.zeros(rows.datum.size, np.int64) if cell is None else cell
            out += np.bincount(place, times, minlength=out.size)
        return out[:-1].reshape(self.shape).astype(np.int64)

    @cached_property
    def weight(self) -> Array:
        """Sum of the weights of the rows, float64 [group, key]."""
        if self.whole.weight is None:
            return self.rows.astype(np.float64)
        return self.total("weight", lambda rows, cell: np.ones(rows.datum.size))

    def mean(self, name: str, of: Values) -> Array:
        """Weighted means of numbers of rows, float64 [group, key]; NaN over nothing."""
        total = self.total(name, of)
        out = np.full(self.shape, np.nan)
        np.divide(total, self.weight, out=out, where=self.weight > 0)
        return out

    @property
    def base(self) -> PairedView:
        """The view whose means numbers are counted from, so that squares lose no digits."""
        return self

    def _from_mean(self, name: str, of: Values) -> Values:
        """Numbers less the mean of their cell."""
        base = self.base
        centre = np.append(base.mean(name, of).ravel(), 0.0)
        centre[np.isnan(centre)] = 0.0
        single = float(centre[0])

        def moved(rows: Paired, cell: Array | None) -> Array:
            values = of(rows, cell)
            return values - (single if cell is None else centre[cell])

        return moved

    def comoment(self, one: str, other: str) -> Array:
        """Sums of products of two numbers less their means, float64 [group, key].

        Args:
            one: ``target``, ``prediction`` or ``error``.
            other: the same.
        """
        numbers = {name: self._from_mean(name, _field(name)) for name in {one, other}}
        first, second = numbers[one], numbers[other]
        square = self.total(f"{one}*{other}", lambda r, c: first(r, c) * second(r, c))
        left = self.total(f"{one}-mean", first)
        right = self.total(f"{other}-mean", second)
        off = np.zeros(self.shape)
        np.divide(left * right, self.weight, out=off, where=self.weight > 0)
        # What the rounding of the mean leaves; squares of a constant are no more.
        moved = square - off
        if one == other:
            return np.where(moved <= self.slack * square, 0.0, moved)
        spread = self.comoment(one, one) * self.comoment(other, other)
        return np.where(spread == 0, 0.0, moved)

    @cached_property
    def ordered(self) -> tuple[Paired, Array, Array | None]:
        """All rows by cell, as :func:`_by_cell` has them, with their weights; those of 0 left out.

        In files, too, all rows are read: what rests on their order needs them at once.
        """
        blocks = []
        for rows, cell, factor in self._each():
            if factor is not None and not (factor > 0).all():
                some = np.flatnonzero(factor > 0)
                rows, factor = rows.chosen(some), factor[some]
                cell = None if cell is None else cell[some]
            blocks.append((rows, cell, factor))
        return _by_cell(blocks, self._n_cells)

    def by_cell(self, of: OfRows) -> Array:
        """A number of the rows of each cell, float64 [group, key]; NaN where there are none.

        Args:
            of: from rows and their weights, None for all alike, to the number.
        """
        rows, start, factor = self.ordered
        out = np.full(self._n_cells, np.nan)
        for cell in np.flatnonzero(np.diff(start)).tolist():
            some = slice(start[cell], start[cell + 1])
            out[cell] = of(rows.chosen(some), None if factor is None else factor[some])
        return out.reshape(self.shape)


def _by_cell(
    blocks: Sequence[tuple[Paired, Array | None, Array | None]], n_cells: int
) -> tuple[Paired, Array, Array | None]:
    """Rows of all blocks by cell, those outside left out.

    Args:
        blocks: rows, cells as views have them, and numbers of the rows [n, ...], or None.
        n_cells: number of cells.

    Returns:
        the rows, whose datum codes mean nothing; int64 [cells + 1], offsets; the numbers.
    """
    every = _joined([rows for rows, _, _ in blocks])
    cells = np.concatenate(
        [np.zeros(rows.datum.size, np.int64) if at is None else at for rows, at, _ in blocks]
    )
    numbers = [one for _, _, one in blocks if one is not None]
    beside = None if not numbers else np.concatenate(numbers)
    start = np.zeros(n_cells + 1, np.int64)
    np.cumsum(np.bincount(cells, minlength=n_cells + 1)[:n_cells], out=start[1:])
    if n_cells > 1 or start[-1] < cells.size:
        order = np.argsort(cells.astype(np.min_scalar_type(n_cells)), kind="stable")[: start[-1]]
        every = every.chosen(order)
        beside = None if beside is None else beside[order]
    return every, start, beside


def _joined(blocks: Sequence[Paired]) -> Paired:
    """Rows of blocks one after the other."""
    if len(blocks) == 1:
        return blocks[0]

    def column(of: Callable[[Paired], Array]) -> Array:
        return np.concatenate([of(block) for block in blocks])

    weight = None
    if blocks[0].weight is not None:
        weight = np.concatenate([one.weight for one in blocks if one.weight is not None])
    return Paired(
        column(lambda block: block.datum),
        column(lambda block: block.key),
        column(lambda block: block.target),
        column(lambda block: block.prediction),
        weight,
        {name: column(partial(_beside, name)) for name in blocks[0].beside},
    )


def _field(name: str) -> Values:
    def values(rows: Paired, cell: Array | None) -> Array:
        found: Array = getattr(rows, name)
        return found

    return values


class PairedDraws(CountDraws, PairedView):
    """A view of paired values whose groups are draws.

    Args:
        view: the view whose datums are drawn.
        draws: the block.
    """

    slack: float = 1e-10

    def __init__(self, view: PairedView, draws: Draws) -> None:
        super().__init__(view, draws)
        self._base = view

    @property
    def base(self) -> PairedView:
        return self._base

    @cached_property
    def ordered(self) -> tuple[Paired, Array, Array | None]:
        """All rows by cell of the view that is drawn from; how often each is drawn, [n, draws]."""
        blocks = [
            (rows, self._base._cell(rows, group), weights[rows.datum])
            for rows, group, weights in self._drawn_blocks()
        ]
        return _by_cell(blocks, self._base._n_cells)

    def by_cell(self, of: OfRows) -> Array:
        rows, start, drawn = self.ordered
        assert drawn is not None
        out = np.full((start.size - 1, drawn.shape[1]), np.nan)
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

    def _cells_of(self, rows: Paired, group: Array | None) -> tuple[Array | None, Array]:
        cell = self._base._cell(rows, group)
        n_cells = self._base._n_cells
        if cell is None:
            return None, np.zeros(rows.datum.size, np.int64)
        return cell, np.where(cell == n_cells, -1, cell)

    def _one_by_one(self, of: Values, cells: Array, width: int) -> Array:
        """Exact sums of each draw over some cells, of numbers that no one grid holds: some
        undefined, or some so much larger than many others that these would be lost on it.

        Args:
            of: the numbers.
            cells: int64 [m], which.
            width: how many numbers a row has.

        Returns:
            float64 [m, width, draws].
        """
        n_draws, m = len(self._draws), cells.size
        own = np.full(self._base._n_cells + 1, -1, np.int64)  # the last: rows outside
        own[cells] = np.arange(m)
        sums = [ExactSums(m * n_draws) for _ in range(width)]
        for rows, group, weights in self._drawn_blocks():
            cell, place = self._cells_of(rows, group)
            values = _weighed(of(rows, cell), rows).reshape(-1, width)
            here = np.flatnonzero(own[place] >= 0)
            values, place, datum = values[here], own[place[here]] * n_draws, rows.datum[here]
            for draw in range(n_draws):
                times = weights[datum, draw]
                some = np.flatnonzero(times)
                for i, one in enumerate(sums):
                    one.add(values[some, i] * times[some], place[some] + draw)
        return np.stack([one.rounded().reshape(m, n_draws) for one in sums], axis=1)

    def _sizes(self, of: Values) -> Iterator[tuple[Array, Array]]:
        """Cells of rows, -1 outside, and absolute values of their numbers, block by block."""
        for rows, group, _ in self._drawn_blocks():
            cell, place = self._cells_of(rows, group)
            yield place, np.abs(_weighed(of(rows, cell), rows))

    def _grids(self, of: Values) -> tuple[Array, bool]:
        """The grid of each cell's numbers, and whether a row has one number.

        Returns:
            float64 [cells + 1, width], steps; NaN where no grid holds the numbers of a cell. The
            last is of rows outside.
        """
        n, largest, flat = np.zeros((self._base._n_cells + 1, 1)), np.zeros(0), True
        for place, size in self._sizes(of):
            flat = size.ndim == 1
            size = size.reshape(place.size, -1)
            largest = largest if largest.size else np.zeros((n.size, size.shape[1]))
            n += np.bincount(place % n.size, minlength=n.size)[:, None]
            if n[0] == place.size:
                largest[0] = np.maximum(largest[0], size.max(axis=0, initial=0.0))
            else:
                np.maximum.at(largest, place, size)
        few = np.zeros(largest.shape)
        for place, size in self._sizes(of):
            size = size.reshape(place.size, -1)
            row, column = np.nonzero((size != 0) & (size < (largest * _TINY)[place]))
            np.add.at(few, (place[row], column), 1)
        held = np.isfinite(largest) & (few * 100 <= n)
        held = held & held.all(axis=1, keepdims=True)
        held[-1] = True
        return np.where(held, step_of_grid(np.where(held, largest, 0.0), n), np.nan), flat

    def _summed(self, of: Values) -> Array:
        step, flat = self._grids(of)
        left = np.isnan(step[:, 0])
        step[left] = 0.0
        width = step.shape[1]
        sums = np.zeros((self._base._n_cells, width, len(self._draws)))
        for rows, group, weights in self._drawn_blocks():
            cell, place = self._cells_of(rows, group)
            values = _weighed(of(rows, cell), rows).reshape(-1, width)
            values = on_grid(values, step[:1] if cell is None else step[place])
            place = np.where(left[place], -1, place) if left.any() else place
            drawn_sums(rows.datum, place, values, weights, sums)
        if left.any():
            sums[left[:-1]] = self._one_by_one(of, np.flatnonzero(left), width)
        found = by_draw(sums, self._groups)
        return found[..., 0] if flat else found

    @cached_property
    def rows(self) -> Array:
        sums = np.zeros((self._base._n_cells, 1, len(self._draws)))
        for rows, group, weights in self._drawn_blocks():
            drawn_counts(rows.datum, self._cells_of(rows, group)[1], None, weights, sums)
        return by_draw(sums, self._groups)[..., 0].astype(np.int64)


_TINY = 2.0**-30


def _weighed(values: Array, rows: Paired) -> Array:
    if rows.weight is None:
        return values
    return values * (rows.weight if values.ndim == 1 else rows.weight[:, None])
