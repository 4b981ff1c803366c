"""Points of the curves over all distinct scores: true and false positives at or above each.

One walk down two sorted lists, of positives and of negatives, stops once at every distinct score.
ROC, precision-recall and DET curves, average precision and best thresholds all rest on its points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .chunks import add_bits, nearest
from .jit import frozen, kernel
from .sums import ExactSums

Array = np.ndarray[Any, Any]


@kernel
def _points(
    p_start: Array,
    p_stop: Array,
    n_start: Array,
    n_stop: Array,
    score: Array,
    weight: Array,
    bits: Array,
    first: int,
    sums: Array,
    start: Array,
    threshold: Array,
    tp: Array,
    fp: Array,
    onward: bool,
) -> int:
    """Fill the points of every segment, highest score first; returns how many there are."""
    at = 0
    for s in range(p_start.size):
        start[s] = at
        j, p_end = p_stop[s] - 1, p_start[s]
        i, n_end = n_stop[s] - 1, n_start[s]
        positive = 0.0
        negative = 0.0
        if onward:
            positive = nearest(sums, 0, first)
            negative = nearest(sums, 1, first)
        else:
            sums[:] = 0
        while True:
            while weight.size and j >= p_end and weight[j] == 0.0:
                j -= 1
            while weight.size and i >= n_end and weight[i] == 0.0:
                i -= 1
            if j < p_end and i < n_end:
                break
            from_positive = i < n_end or (j >= p_end and score[j] >= score[i])
            here = score[j if from_positive else i]
            above = i, j
            if weight.size:
                while j >= p_end and score[j] == here:
                    add_bits(sums, 0, first, bits[j])
                    j -= 1
                while i >= n_end and score[i] == here:
                    add_bits(sums, 1, first, bits[i])
                    i -= 1
                if j < above[1]:
                    positive = nearest(sums, 0, first)
                if i < above[0]:
                    negative = nearest(sums, 1, first)
            else:
                while j >= p_end and score[j] == here:
                    j -= 1
                while i >= n_end and score[i] == here:
                    i -= 1
                positive += above[1] - j
                negative += above[0] - i
            threshold[at] = here
            tp[at] = positive
            fp[at] = negative
            at += 1
    start[p_start.size] = at
    return at


def points(
    positives: tuple[Array, Array],
    negatives: tuple[Array, Array],
    score: Array,
    weight: Array | None = None,
    above: ExactSums | None = None,
) -> tuple[Array, Array, Array, Array]:
    """True and false positives at or above every distinct score.

    Args:
        positives: int64 [s] starts and stops of each segment's positives.
        negatives: the same of its negatives.
        score: float64 [n], ascending within each of these ranges.
        weight: float64 [n], finite, weight of each row, or None; rows without any make no points.
        above: of one segment, weight of the positives and of the negatives that stand above its
            rows, two cells, which take in theirs; None where nothing does.

    Returns:
        ``start``, int64 [s + 1], CSR offsets of the points; thresholds, true positives and false
        positives, float64 [m] each, thresholds descending within a segment.
    """
    room = int(sum((stop - start).sum() for start, stop in (positives, negatives)))
    start = np.zeros(positives[0].size + 1, np.int64)
    threshold, tp, fp = (np.empty(room) for _ in range(3))
    sums = ExactSums(2) if above is None else above
    weight = np.zeros(0) if weight is None else weight
    bits = sums.reserve(weight)
    found = _points(
        *(frozen(bound, np.int64) for bound in (*positives, *negatives)),
        frozen(score, np.float64),
        frozen(weight, np.float64),
        bits,
        sums.first,
        sums.chunks,
        start,
        threshold,
        tp,
        fp,
        above is not None,
    )
    sums.carry()
    return start, threshold[:found], tp[:found], fp[:found]
