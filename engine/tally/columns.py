"""Grids of scores that were laid out label by label as they were read."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ..kernels.near_points import near_points
from .grid import Grid

Array = np.ndarray[Any, Any]

_MANY = 1 << 12  # scores of a label from which a sort of them all may be saved
_SHARE = 8  # points are at most one in so many scores, or most scores are near one


def ranks(score: Array, point: Array) -> tuple[Array, Array]:
    """How many scores are below each point, and how many are at most it, int64 [p] each.

    Args:
        score: float64 [n], finite, in any order.
        point: float64 [p], without NaN, in any order; ascending ones are looked up faster.
    """
    found = None
    if score.size >= _MANY and 0 < point.size * _SHARE <= score.size:
        found = near_points(score, point)
    near, others = (score.copy(), np.zeros(point.size, np.int64)) if found is None else found
    near.sort()
    below, at_most = (np.searchsorted(near, point, side) for side in ("left", "right"))
    return others + below, others + at_most


class Columns(msgspec.Struct, frozen=True):
    """Scores of a grid, the scores of a label one after the other.

    Attributes:
        score: float64 [w, b], of every label of the grid on every one of its units.
        cuts: float64 [t], ascending, thresholds that are likely to be asked for: rows there are
            counted where the scores of a label are in order anyway.
    """

    score: Array
    cuts: Array

    def rows(self) -> Array:
        """The scores in the order of the rows, float64 [b * w]."""
        return np.ascontiguousarray(self.score.T).ravel()


class ColumnCounts:
    """What areas and counts at thresholds need of a grid in which every unit has a truth.

    One label after the other, its positives and the thresholds are looked up among its scores. Of
    many scores and few positives only those near one of these are put in order.

    Args:
        grid: of which label and unit each score is.
        columns: the scores.
        truth: int32 [b], label code that is true of each unit of the grid.
        n_labels: number of labels.
        over: calls a function on ranges with offsets, perhaps side by side.
    """

    def __init__(
        self, grid: Grid, columns: Columns, truth: Array, n_labels: int, over: Any
    ) -> None:
        self._label, self._over, self._n_labels = grid.label, over, n_labels
        self._score, self._cuts = columns.score, columns.cuts
        # Positives by label: a stable order of the units by what is true of them.
        # Of codes that are short it is found digit by digit.
        code = truth.astype(np.int16) if n_labels <= np.iinfo(np.int16).max else truth
        self._unit = np.argsort(code, kind="stable")
        self._start = np.zeros(n_labels + 1, np.int64)
        np.cumsum(np.bincount(truth, minlength=n_labels), out=self._start[1:])
        self._found: dict[int, Array] = {}
        self._twice: Array | None = None
        self._at_cuts = np.zeros((grid.label.size, self._cuts.size), np.int64)

    def _positives(self, place: int) -> Array:
        """Scores of the label at a place of the grid where it is true, float64, ascending."""
        if place not in self._found:
            code = self._label[place]
            unit = self._unit[self._start[code] : self._start[code + 1]]
            self._found[place] = np.sort(self._score[place, unit])
        return self._found[place]

    def _each(self, one: Any) -> None:
        """Call a function on every place of a label in the grid."""
        width, blocks = self._score.shape

        def some(first: int, last: int) -> None:
            for place in range(first, last):
                one(place)

        self._over(np.arange(width + 1) * blocks, some)

    def _by_label(self, by_place: Array) -> Array:
        """[w, ...] to [1, label, ...], zeros for labels that the grid does not list."""
        out = np.zeros((self._n_labels, *by_place.shape[1:]))
        out[self._label] = by_place
        return out[None]

    @property
    def listed(self) -> tuple[Array, Array, Array]:
        """Rows that hit, that do not, and that are stray, float64 [1, label] each."""
        hits = np.diff(self._start)[self._label]
        return (
            self._by_label(hits),
            self._by_label(self._score.shape[1] - hits),
            np.zeros((1, self._n_labels)),
        )

    def won(self) -> Array:
        """Pairs that the positive wins, ties counting half, float64 [1, label]."""
        if self._twice is None:
            twice = np.zeros(self._label.size, np.int64)

            def one(place: int) -> None:
                positive = self._positives(place)
                below, at_most = ranks(self._score[place], np.r_[positive, self._cuts])
                n = positive.size
                twice[place] = below[:n].sum() + at_most[:n].sum()
                self._at_cuts[place] = self._score.shape[1] - below[n:]

            self._each(one)
            self._twice = twice
        n = np.diff(self._start)[self._label]
        return self._by_label((self._twice - n * n) / 2)  # positives are among the rows themselves

    def reached(self, thresholds: Array) -> tuple[Array, Array, Array]:
        """Rows at or above each threshold: hits, others and strays, float64 [1, label, threshold].

        Args:
            thresholds: float64 [t], ascending.
        """
        hits = np.zeros((self._label.size, thresholds.size), np.int64)
        known = self._twice is not None and np.array_equal(thresholds, self._cuts)
        every = self._at_cuts.copy() if known else np.zeros_like(hits)

        def one(place: int) -> None:
            positive = self._positives(place)
            hits[place] = positive.size - np.searchsorted(positive, thresholds)
            if not known:
                for at, threshold in enumerate(thresholds.tolist()):
                    every[place, at] = np.count_nonzero(self._score[place] >= threshold)

        self._each(one)
        strays = np.zeros((1, self._n_labels, thresholds.size))
        return self._by_label(hits), self._by_label(every - hits), strays
