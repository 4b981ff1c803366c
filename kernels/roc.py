"""Area under the ROC curve, by merging sorted scores of positives and negatives.

The area equals the share of (positive, negative) pairs in which the positive scores higher, a tie
counting half (Mann and Whitney 1947; Hanley and McNeil 1982): the trapezoid rule with one segment
for each group of tied scores. Counts stay integers until the one division, so the area is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _twice_wins(
    p_start: Array, p_stop: Array, n_start: Array, n_stop: Array, score: Array, out: Array
) -> None:
    """Twice the number of pairs won by the positive, ties counting one, per segment."""
    for s in range(p_start.size):
        j, p_end = p_start[s], p_stop[s]
        i, n_end = n_start[s], n_stop[s]
        n_first = i
        twice = 0
        while i < n_end and j < p_end:
            negative, positive = score[i], score[j]
            if negative == positive:
                below = i - n_first
                tied = 0
                while i < n_end and score[i] == positive:
                    i += 1
                    tied += 1
                while j < p_end and score[j] == positive:
                    j += 1
                    twice += 2 * below + tied
            else:
                # No branch on the outcome, which is a coin toss: the step is added instead.
                lower = np.int64(negative < positive)
                i += lower
                j += 1 - lower
                twice += 2 * (1 - lower) * (i - n_first)
        twice += 2 * (p_end - j) * (n_end - n_first)
        out[s] = twice


@kernel
def _pair_wins(
    p_start: Array, p_stop: Array, n_start: Array, n_stop: Array, score: Array, out: Array
) -> None:
    """The same of scores in any order: every pair is looked at, several at a time."""
    for s in range(p_start.size):
        negatives = score[n_start[s] : n_stop[s]]
        twice = 0
        for j in range(p_start[s], p_stop[s]):
            positive = score[j]
            won = 0
            for i in range(negatives.size):
                won += int(negatives[i] < positive) + int(negatives[i] <= positive)
            twice += won
        out[s] = twice


@kernel
def _weighted_wins(
    p_start: Array,
    p_stop: Array,
    n_start: Array,
    n_stop: Array,
    score: Array,
    weight: Array,
    out: Array,
) -> None:
    """Weight of pairs won by the positive, ties counting half, per segment."""
    for s in range(p_start.size):
        j, p_end = p_start[s], p_stop[s]
        i, n_end = n_start[s], n_stop[s]
        below = 0.0
        won = 0.0
        while j < p_end:
            positive = score[j]
            while i < n_end and score[i] < positive:
                below += weight[i]
                i += 1
            tied = 0.0
            k = i
            while k < n_end and score[k] == positive:
                tied += weight[k]
                k += 1
            here = 0.0
            while j < p_end and score[j] == positive:
                here += weight[j]
                j += 1
            won += here * (below + 0.5 * tied)
        out[s] = won


def wins(
    positives: tuple[Array, Array],
    negatives: tuple[Array, Array],
    score: Array,
    weight: Array | None = None,
) -> Array:
    """How many (positive, negative) pairs the positive wins, ties counting half.

    Args:
        positives: int64 [s] starts and stops of each segment's positives.
        negatives: the same of its negatives.
        score: float64 [n], ascending within each of these ranges.
        weight: float64 [n], weight of each row, or None.

    Returns:
        **twice** the number of pairs won, int64 [s]; with weights the weight of the pairs won,
        float64 [s].
    """
    bounds = [frozen(bound, np.int64) for bound in (*positives, *negatives)]
    score = frozen(score, np.float64)
    if weight is None:
        out = np.zeros(bounds[0].size, np.int64)
        _twice_wins(*bounds, score, out)
        return out
    out = np.zeros(bounds[0].size, np.float64)
    _weighted_wins(*bounds, score, frozen(weight, np.float64), out)
    return out


def pair_wins(
    positives: tuple[Array, Array], negatives: tuple[Array, Array], score: Array
) -> Array:
    """What :func:`wins` counts without weights, of scores in any order, in time of their product.

    Args:
        positives: int64 [s] starts and stops of each segment's positives.
        negatives: the same of its negatives.
        score: float64 [n], in any order within these ranges, without NaN.

    Returns:
        **twice** the number of pairs won, int64 [s].
    """
    bounds = [frozen(bound, np.int64) for bound in (*positives, *negatives)]
    out = np.zeros(bounds[0].size, np.int64)
    _pair_wins(*bounds, frozen(score, np.float64), out)
    return out
