"""Grids of scores: every datum lists the same labels in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from ..kernels.label_matching import HIT, OTHER, STRAY
from ..kernels.partition import partition
from ..kernels.reached import first_reaching
from ..kernels.score_grid import add_wins, best_of_blocks, count_reaching, place_table
from ..schemas.arrays import Array
from .registry import stored_as

_PIECE = 1 << 20  # scores that one thread takes at a time
_SHARE = 4  # positives are at most one in so many rows, or a sort of all rows costs less
_MOST = 1 << 17  # positives of a label at most, whose table then stays in a cache


@stored_as("classification.grid/1")
class Grid(msgspec.Struct, frozen=True):
    """Label and unit of each row, for rows that repeat the same labels in the same order.

    Attributes:
        label: int32 [w], unique label codes; row r has ``label[r % w]``.
        unit: int32 [b], unique units; row r has ``unit[r // w]``.
    """

    label: Array
    unit: Array

    @property
    def labels(self) -> Array:
        """Label code of every row, int32 [b * w]."""
        return np.tile(self.label, self.unit.size)

    @property
    def units(self) -> Array:
        """Unit of every row, int32 [b * w]."""
        return np.repeat(self.unit, self.label.size)


def pieces(parts: tuple[Array, ...], longest: int = _PIECE) -> Iterator[tuple[int, Array]]:
    """Yield short pieces of scores with their first row.

    Args:
        parts: float64 arrays, n scores in total.
        longest: maximum rows per piece.
    """
    first = 0
    for part in parts:
        for at in range(0, part.size, longest):
            yield first + at, part[at : at + longest]
        first += part.size


def outcomes_of(grid: Grid, truth: Array) -> Array:
    """Return the outcome of every row, uint8 [b * w]; see ``match_labels``.

    Args:
        truth: int32 [u], true label of each unit, -1 for none.
    """
    width, blocks = grid.label.size, grid.unit.size
    out = np.full(blocks * width, OTHER, np.uint8)
    true = truth[grid.unit]
    column = np.full(int(max(grid.label.max(), true.max(initial=-1))) + 2, -1, np.int64)
    column[grid.label] = np.arange(width)  # the last one stays for -1
    at = column[true]
    hit = np.flatnonzero(at >= 0)
    out[hit * width + at[hit]] = HIT
    out.reshape(blocks, width)[true < 0] = STRAY
    return out


def best_labels(grid: Grid, parts: tuple[Array, ...], n_units: int) -> tuple[Array, Array]:
    """Return the hard prediction of every unit: the label with the highest score, first among ties.

    Args:
        parts: float64 arrays, all scores in total.
        n_units: number of units; 0 if not needed.

    Returns:
        label codes int32 [u], -1 for units without a row; their scores float64 [u], NaN for them.
    """
    hard, hard_score = np.full(n_units, -1, np.int32), np.full(n_units, np.nan)
    if n_units:
        place, best = np.empty(grid.unit.size, np.int32), np.empty(grid.unit.size)
        for first, piece in pieces(parts):
            best_of_blocks(piece, first, grid.label.size, place, best)
        hard[grid.unit] = grid.label[place]
        hard_score[grid.unit] = best
    return hard, hard_score


class GridCounts:
    """Areas and counts at thresholds, for a grid in which every unit has a truth.

    Only the positives are sorted; other rows are counted in place.

    Args:
        parts: float64 arrays, all scores in total.
        hits: int64 [m], ascending, rows whose label is true.
        over: calls a function on ranges with offsets, possibly in parallel.
    """

    def __init__(
        self, grid: Grid, parts: tuple[Array, ...], hits: Array, n_labels: int, over: Any
    ) -> None:
        self._grid, self._over, self._n_labels = grid, over, n_labels
        self._pieces = list(pieces(parts))
        width = grid.label.size
        column = (hits % width).astype(np.int32)
        of_hit = np.empty(hits.size)
        for first, piece in self._pieces:
            a, b = np.searchsorted(hits, (first, first + piece.size))
            of_hit[a:b] = piece[hits[a:b] - first]
        outcome = np.zeros(hits.size, np.uint8)
        self.start, self.score, _ = partition([of_hit], outcome, column, None, None, (1, width, 1))
        for a, b in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            self.score[a:b].sort()

    @staticmethod
    def fits(hits: Array, grid: Grid) -> bool:
        """Return True if positives are few enough for this method to be faster.

        Args:
            hits: int64 [m], rows whose label is true.
        """
        width, blocks = grid.label.size, grid.unit.size
        if hits.size * _SHARE > width * blocks:
            return False
        return bool(np.bincount(hits % width, minlength=1).max() <= _MOST)

    def _sum(self, shape: tuple[int, ...], add: Any) -> Array:
        """Return the int64 array to which ``add`` contributes for every piece."""
        found: list[Array] = []
        offsets = np.array([first for first, _ in self._pieces] + [self._rows])

        def some(first: int, last: int) -> None:
            out = np.zeros(shape, np.int64)
            for offset, piece in self._pieces[first:last]:
                add(piece, offset, out)
            found.append(out)  # a list takes this from several threads

        self._over(offsets, some)
        return sum(found, np.zeros(shape, np.int64))

    @property
    def _rows(self) -> int:
        return self._grid.label.size * self._grid.unit.size

    def _by_label(self, by_column: Array) -> Array:
        """[w, ...] to [1, label, ...], zeros for labels without a column."""
        out = np.zeros((self._n_labels, *by_column.shape[1:]))
        out[self._grid.label] = by_column
        return out[None]

    @property
    def listed(self) -> tuple[Array, Array, Array]:
        """Rows that hit, that do not, and that are stray, float64 [1, label] each."""
        hits = np.diff(self.start)
        return (
            self._by_label(hits),
            self._by_label(self._grid.unit.size - hits),
            np.zeros((1, self._n_labels)),
        )

    def won(self) -> Array:
        """Pairs that the positive wins, ties counting half, float64 [1, label]."""
        tables = place_table(self.start, self.score)
        n = np.diff(self.start)
        twice = self._sum(n.shape, lambda piece, row, out: add_wins(piece, row, tables, out))
        return self._by_label((twice - n * n) / 2)  # positives are among the rows themselves

    def reached(self, thresholds: Array) -> tuple[Array, Array, Array]:
        """Count hits, others and strays at or above each threshold, float64 [1, label, threshold].

        Args:
            thresholds: float64 [t], ascending.
        """
        width, t = self._grid.label.size, thresholds.size
        hits = self.start[1:, None] - first_reaching(
            self.start[:-1], self.start[1:], self.score, thresholds
        )
        every = np.zeros((width, t), np.int64)
        if t:
            every = self._sum(
                every.shape,
                lambda piece, row, out: count_reaching(piece, row, width, thresholds, out),
            )
        every = every[:, ::-1].cumsum(axis=1)[:, ::-1]
        strays = np.zeros((1, self._n_labels, t))
        return self._by_label(hits), self._by_label(every - hits), strays
