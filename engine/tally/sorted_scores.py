"""Cached results of a view of scored labels: hard counts, sorted scores, curve points."""

from __future__ import annotations

import msgspec
import numpy as np

from ..kernels.few_scores import MOST, count_few
from ..kernels.label_matching import HIT, N_OUTCOMES, OTHER, STRAY
from ..kernels.reached import weights_reaching
from ..kernels.roc import pair_wins, wins
from ..kernels.sorting import sort_range, sort_short, sort_with
from ..schemas.arrays import Array
from ..schemas.tuning import tuning
from .points import Points as Points
from .ranked_view import Over
from .units import Scored

__all__ = [
    "HIT",
    "N_OUTCOMES",
    "OTHER",
    "STRAY",
    "HardCounts",
    "Points",
    "Sorted",
    "sort_segments",
    "sorted_by_counts",
    "wins_of_groups",
]

_PAIRS = 64  # pairs per score up to which a comparison of all of them beats a sort
_EXACT = 1 << 26  # rows below which pairs of them are counted exactly in halves in a float64
_SHORT = 48  # scores up to which a range is sorted by our own kernel


class HardCounts(msgspec.Struct, frozen=True):
    """Counts of hard predictions, float64 [group, label] each; integers without weights.

    Attributes:
        right: truth and prediction agree.
        wrong: predicted, and not the truth.
        predicted: predicted, on units with or without a truth.
        judged: predicted on units that have a truth.
        actual: truths.
        missed: truths that are not predicted: exactly ``actual`` minus ``right``, rounded once.
        mistaken: exactly ``judged`` minus ``right``, rounded once.
    """

    right: Array
    wrong: Array
    predicted: Array
    judged: Array
    actual: Array
    missed: Array
    mistaken: Array


class Sorted(msgspec.Struct, frozen=True):
    """Scores by (group, scored label, outcome), ascending within each.

    Attributes:
        start: int64 [groups * slots * 3 + 1], CSR offsets.
        score: float64 [m].
        weight: float64 [m], or None for 1 each: sample weights, or number of rows with the score.
    """

    start: Array
    score: Array
    weight: Array | None

    def bounds(self, outcome: int) -> tuple[Array, Array]:
        """Starts and stops of one outcome's segments, int64 [groups * slots] each."""
        return self.start[outcome:-1:N_OUTCOMES], self.start[outcome + 1 :: N_OUTCOMES]

    def sums(self, outcome: int) -> Array:
        """(Weighted) rows of one outcome, float64 [groups * slots]."""
        first, last = self.bounds(outcome)
        if self.weight is None:
            return (last - first).astype(np.float64)
        return weights_reaching(first, last, self.score, self.weight, np.zeros(0))[1]


def sort_segments(laid: Sorted, over: Over) -> None:
    """Sort the scores of every segment in ascending order, in place.

    Args:
        laid: scores, unsorted within each segment, with their weights.
        over: calls a function on ranges of segments, possibly in parallel.
    """
    start, score, weight = laid.start, laid.score, laid.weight

    def sort(first: int, last: int) -> None:
        if weight is not None:
            sort_with(start, first, last, score, weight)
            return
        bounds = start[first : last + 1]
        sort_short(start, first, last, _SHORT, score)
        long = np.flatnonzero(np.diff(bounds) > _SHORT)
        for a, b in zip(bounds[long].tolist(), bounds[long + 1].tolist(), strict=True):
            sort_range(score[a:b])

    over(start, sort)


def wins_of_groups(laid: Sorted, over: Over) -> Array:
    """Return twice the pairs that positives win, int64 [groups * slots], as ``kernels.roc.wins``.

    Pairs of small groups are compared directly, which is cheaper than sorting.

    Args:
        laid: scores without weights by (group, scored label, outcome), unsorted within each; ranges
            of large groups are sorted.
        over: calls a function on ranges of segments, possibly in parallel.
    """
    bounds = [*laid.bounds(HIT), *laid.bounds(OTHER)]
    out = np.zeros(bounds[0].size, np.int64)

    def some(first: int, last: int) -> None:
        p, p_stop, n, n_stop = (bound[first:last] for bound in bounds)
        positives, negatives = p_stop - p, n_stop - n
        few = positives * negatives <= _PAIRS * (positives + negatives)
        at = np.flatnonzero(few)
        out[first + at] = pair_wins((p[at], p_stop[at]), (n[at], n_stop[at]), laid.score)
        at = np.flatnonzero(~few)
        for begin, end in ((p[at], p_stop[at]), (n[at], n_stop[at])):
            for a, b in zip(begin.tolist(), end.tolist(), strict=True):
                sort_range(laid.score[a:b])
        out[first + at] = wins((p[at], p_stop[at]), (n[at], n_stop[at]), laid.score)

    over(laid.start[::N_OUTCOMES], some)
    return out


def sorted_by_counts(scored: Scored, whole: int | None = None) -> Sorted | None:
    """Return the distinct scores of one label in one group by outcome, weighted by their counts.

    Sums of such weights are exact, so that results equal those of the rows.

    Args:
        scored: scored labels, all of one label.
        whole: rows of the run that contains them; None if these are all.

    Returns:
        None if there are many distinct scores, or few rows.
    """
    found = _counted(scored, len(scored) if whole is None else whole)
    if found is None:
        return None
    score, count = found
    there = count > 0
    start = np.zeros(N_OUTCOMES + 1, np.int64)
    np.cumsum(there.sum(axis=1), out=start[1:])
    return Sorted(start, np.broadcast_to(score, there.shape)[there], count[there].astype(float))


def _counted(scored: Scored, whole: int) -> tuple[Array, Array] | None:
    """The distinct scores ascending, and rows of each outcome at each."""
    n = len(scored)
    if n < tuning().counted_rows or whole >= _EXACT:
        return None
    step = max(1, n // tuning().sample_rows)
    some = np.concatenate([part[::step] for part in scored.parts])
    if np.unique(some).size > min(MOST, some.size // 2):
        return None
    return count_few(scored.parts, scored.outcome, N_OUTCOMES)
