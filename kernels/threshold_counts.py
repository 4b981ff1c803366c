"""True and false positives by score threshold, for every IoU threshold and area range.

A prediction counts from every threshold that its score reaches, so one walk fills a histogram by
the number of thresholds reached, and cumulating it from the top gives the counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _histogram(
    start: Array,
    order: Array,
    hit: Array,
    ignored: Array,
    score: Array,
    weight: Array,
    n_thresholds: int,
    n_areas: int,
    score_thresholds: Array,
    plain: Array,
    true_positives: Array,
    false_positives: Array,
) -> None:
    """Fill both histograms; see :func:`count_by_threshold`."""
    one = np.uint64(1)
    n_variants = n_thresholds * n_areas
    every = ~np.uint64(0) >> np.uint64(64 - n_variants)
    of_area = ~np.uint64(0) >> np.uint64(64 - n_thresholds)
    lows = np.uint64(0)
    for a in range(n_areas):
        lows |= one << np.uint64(a * n_thresholds)
    n_scores = score_thresholds.size
    for s in range(start.size - 1):
        reached = n_scores
        for a in range(n_areas):
            for c in range(n_scores + 1):
                plain[a, c] = 0
        for i in range(start[s], start[s + 1]):
            r = order[i]
            while reached > 0 and score[r] < score_thresholds[reached - 1]:
                reached -= 1
            if reached == 0:
                break
            w = weight[r]
            missed = every & ~hit[r] & ~ignored[r]
            pattern = missed & lows
            # Missed alike at every threshold of an area range: see average_precision.
            if hit[r] == 0 and pattern * of_area == missed:
                for a in range(n_areas):
                    plain[a, reached] += w & -np.int64(pattern & one)
                    pattern >>= np.uint64(n_thresholds)
                continue
            bits = hit[r]
            for v in range(n_variants):
                true_positives[s, reached, v] += w & -np.int64(bits & one)
                false_positives[s, reached, v] += w & -np.int64(missed & one)
                bits >>= one
                missed >>= one
        for c in range(n_scores - 1, -1, -1):
            for a in range(n_areas):
                plain[a, c] += plain[a, c + 1]
            for v in range(n_variants):
                true_positives[s, c, v] += true_positives[s, c + 1, v]
                false_positives[s, c, v] += false_positives[s, c + 1, v]
        for c in range(n_scores + 1):
            for v in range(n_variants):
                false_positives[s, c, v] += plain[v // n_thresholds, c]


def count_by_threshold(
    first: int,
    last: int,
    start: Array,
    order: Array,
    outcomes: tuple[Array, Array, Array],
    weight: Array,
    shape: tuple[int, int],
    score_thresholds: Array,
    out: tuple[Array, Array],
) -> None:
    """True and false positives with score >= each threshold.

    Args:
        first: first segment.
        last: one past the last segment.
        start: int64 [s + 1], segment offsets; rows of a segment stand by descending score.
        order: int32 [n], rows of the outcomes by segment.
        outcomes: hit uint64 [n], ignored uint64 [n], score float64 [n].
        weight: int64 [n], how often each row counts.
        shape: (t, a), thresholds and area ranges; variant v = area * t + threshold is bit v.
        score_thresholds: float64 [k], ascending.
        out: zeros, written for segments [first, last): true and false positives, int64
            [s, k + 1, t * a] each; entry c + 1 is of threshold c, entry 0 of no threshold at all.
    """
    hit, ignored, score = outcomes
    _histogram(
        frozen(start[first : last + 1], np.int64),
        frozen(order, np.int32),
        frozen(hit, np.uint64),
        frozen(ignored, np.uint64),
        frozen(score, np.float64),
        frozen(weight, np.int64),
        shape[0],
        shape[1],
        frozen(score_thresholds, np.float64),
        np.empty((shape[1], score_thresholds.size + 1), np.int64),
        *(array[first:last] for array in out),
    )
