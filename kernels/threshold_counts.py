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
    datum: Array,
    weights: Array,
    n_thresholds: int,
    n_areas: int,
    score_thresholds: Array,
    true_positives: Array,
    false_positives: Array,
) -> None:
    """Fill both histograms; see :func:`count_by_threshold`."""
    one = np.uint64(1)
    n_variants = n_thresholds * n_areas
    every = ~np.uint64(0) if n_variants == 64 else (one << np.uint64(n_variants)) - one
    plain = np.zeros(score_thresholds.size + 1, np.int64)  # misses in every variant alike
    for s in range(start.size - 1):
        reached = score_thresholds.size
        plain[:] = 0
        for i in range(start[s], start[s + 1]):
            r = order[i] if order.size else i
            while reached > 0 and score[r] < score_thresholds[reached - 1]:
                reached -= 1
            if reached == 0:
                break
            w = weights[datum[r]] if weights.size else 1
            if hit[r] == 0 and ignored[r] == 0:
                plain[reached] += w
                continue
            missed = every & ~hit[r] & ~ignored[r]
            for v in range(n_variants):
                true_positives[s, v, reached] += w * np.int64((hit[r] >> np.uint64(v)) & one)
                false_positives[s, v, reached] += w * np.int64((missed >> np.uint64(v)) & one)
        for v in range(n_variants):
            for c in range(score_thresholds.size - 1, -1, -1):
                true_positives[s, v, c] += true_positives[s, v, c + 1]
        total = 0
        for c in range(score_thresholds.size, -1, -1):
            total += plain[c]
            plain[c] = total
        for v in range(n_variants):
            carried = 0
            for c in range(score_thresholds.size, -1, -1):
                carried += false_positives[s, v, c]
                false_positives[s, v, c] = carried + plain[c]


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
        weights: int32 [n_datums], how often each datum counts, or None for once.
        shape: (t, a), thresholds and area ranges; variant v = area * t + threshold is bit v.
        score_thresholds: float64 [k], ascending.

    Returns:
        true and false positives, int64 [s, t * a, k] each.
    """
    full = (start.size - 1, shape[0] * shape[1], score_thresholds.size + 1)
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
        frozen(np.empty(0, np.int32) if weights is None else weights, np.int32),
        shape[0],
        shape[1],
        frozen(score_thresholds, np.float64),
        true_positives,
        false_positives,
    )
    return true_positives[:, :, 1:], false_positives[:, :, 1:]
