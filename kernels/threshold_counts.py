"""True and false positives by score threshold, for every IoU threshold and area range.

A prediction counts from every threshold that its score reaches, so one walk fills a histogram by
the number of thresholds reached, and cumulating it from the top gives the counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .average_precision import area_pattern
from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _histogram(
    start: Array,
    order: Array,
    hit: Array,
    ignored: Array,
    score: Array,
    datum: Array,
    weights: Array,
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
    every = ~np.uint64(0) if n_variants == 64 else (one << np.uint64(n_variants)) - one
    of_area = ~np.uint64(0) if n_thresholds == 64 else (one << np.uint64(n_thresholds)) - one
    lows = np.uint64(0)
    for a in range(n_areas):
        lows |= one << np.uint64(a * n_thresholds)
    uneven = ~np.uint64(0)
    n_scores = score_thresholds.size
    for s in range(start.size - 1):
        reached = n_scores
        for a in range(n_areas):
            for c in range(n_scores + 1):
                plain[a, c] = 0
        for i in range(start[s], start[s + 1]):
            r = order[i] if order.size else i
            while reached > 0 and score[r] < score_thresholds[reached - 1]:
                reached -= 1
            if reached == 0:
                break
            w = weights[datum[r]] if weights.size else 1
            missed = every & ~hit[r] & ~ignored[r]
            pattern = area_pattern(missed, lows, of_area) if hit[r] == 0 else uneven
            if pattern != uneven:
                for a in range(n_areas):
                    plain[a, reached] += w & -np.int64(
                        (pattern >> np.uint64(a * n_thresholds)) & one
                    )
                continue
            for v in range(n_variants):
                true_positives[s, reached, v] += w & -np.int64((hit[r] >> np.uint64(v)) & one)
                false_positives[s, reached, v] += w & -np.int64((missed >> np.uint64(v)) & one)
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
    start: Array,
    order: Array | None,
    outcomes: tuple[Array, Array, Array, Array],
    weights: Array | None,
    shape: tuple[int, int],
    score_thresholds: Array,
) -> tuple[Array, Array]:
    """True and false positives with score >= each threshold.

    Args:
        start: int64 [s + 1], segment offsets; rows of a segment stand by descending score.
        order: int32 [n], rows of the outcomes by segment, or None if they already stand so.
        outcomes: hit uint64 [n], ignored uint64 [n], score float64 [n], datum int32 [n].
        weights: int64 [n_datums], how often each datum counts, or None for once.
        shape: (t, a), thresholds and area ranges; variant v = area * t + threshold is bit v.
        score_thresholds: float64 [k], ascending.

    Returns:
        true and false positives, int64 [s, k, t * a] each.
    """
    full = (start.size - 1, score_thresholds.size + 1, shape[0] * shape[1])
    true_positives = np.zeros(full, np.int64)
    false_positives = np.zeros(full, np.int64)
    hit, ignored, score, datum = outcomes
    _histogram(
        frozen(start, np.int64),
        frozen(np.empty(0, np.int32) if order is None else order, np.int32),
        frozen(hit, np.uint64),
        frozen(ignored, np.uint64),
        frozen(score, np.float64),
        frozen(datum, np.int32),
        frozen(np.empty(0, np.int64) if weights is None else weights, np.int64),
        shape[0],
        shape[1],
        frozen(score_thresholds, np.float64),
        np.empty((shape[1], score_thresholds.size + 1), np.int64),
        true_positives,
        false_positives,
    )
    return true_positives[:, 1:], false_positives[:, 1:]
