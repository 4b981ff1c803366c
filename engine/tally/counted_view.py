"""A view of classification in which single datums and rows are gone: whole numbers are left."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from .datums import Labels
from .score_counts import ScoreSums
from .scored_view import ScoredView
from .sorted_scores import HIT, OTHER, STRAY, Sorted
from .units import Scored, Units

Array = np.ndarray[Any, Any]


class UnitSums(msgspec.Struct, frozen=True):
    """What is counted of units without weights, float64 (whole numbers) with one group.

    Attributes:
        hard: [4, l], right, judged, stray and actual labels.
        positives: [1, l], true labels as rank metrics count them.
        every: [1, k], units with a truth or a prediction.
        known: [1], datums with either.
        datums: how many datums there are.
    """

    hard: Array
    positives: Array
    every: Array
    known: Array
    datums: int


class Counted(msgspec.Struct, frozen=True):
    """What is left of a classification tally.

    Attributes:
        units: of all units.
        scores: of all scored labels; None where nothing is scored.
        thresholds: float64 [t], ascending, at which scores were counted.
    """

    units: UnitSums
    scores: ScoreSums | None
    thresholds: Array


def sum_units(view: ScoredView, datums: int) -> UnitSums:
    """The counts of one part, from its view of one group without weights."""
    hard = np.concatenate(view._hard)
    return UnitSums(hard, view.positives, view.every, view.known_datums, datums)


def add_units(parts: Sequence[UnitSums]) -> UnitSums:
    """The counts of all parts, of disjoint sets of datums and the same labels."""
    summed = {
        name: np.sum([getattr(part, name) for part in parts], axis=0)
        for name in ("hard", "positives", "every", "known")
    }
    return UnitSums(**summed, datums=sum(part.datums for part in parts))


class CountedView(ScoredView):
    """The view of counts; it has no rows, and nothing that needs them.

    Args:
        counted: the counts.
        units: of a part, without its rows.
        scored: likewise.
        labels: what label codes stand for.
        **more: see :class:`~evalengine.tally.scored_view.ScoredView`.

    Raises:
        RuntimeError: weights of datums, which counts know nothing of.
    """

    def __init__(
        self, counted: Counted, units: Units, scored: Scored | None, labels: Labels, **more: Any
    ) -> None:
        super().__init__(units, scored, labels, **more)
        if self.weights is not None:
            raise RuntimeError("scores were counted: there are no rows to draw from")
        self._counted = counted
        self.positives = counted.units.positives
        self.every = counted.units.every
        self.known_datums = counted.units.known

    @property
    def _sums(self) -> ScoreSums:
        assert self._counted.scores is not None
        return self._counted.scores

    @cached_property
    def _hard(self) -> tuple[Array, Array, Array, Array]:
        right, judged, stray, actual = self._counted.units.hard[:, None]
        return right, judged, stray, actual

    @property
    def sorted(self) -> Sorted:
        """Refused: scores were counted, and are gone."""
        raise RuntimeError("scores were counted: this metric needs its rows")

    @cached_property
    def listed(self) -> tuple[Array, Array, Array]:
        """Rows that hit, that do not, and that are stray, [group, label] each."""
        found = self._sums.rows[:, None].astype(np.float64)
        return found[HIT], found[OTHER], found[STRAY]

    @property
    def _won(self) -> Array:
        won: Array = self._sums.twice[None].astype(np.float64) / 2
        return won

    def reached(self, thresholds: tuple[float, ...]) -> tuple[Array, Array, Array]:
        """Rows at or above each threshold, which is one of those that were counted at."""
        assert self.scored is not None
        grid = [self.scored.comparable(threshold) for threshold in thresholds]
        at = np.searchsorted(self._counted.thresholds, grid)
        found = self._sums.reached[:, None][..., at].astype(np.float64)
        return found[HIT], found[OTHER], found[STRAY]
