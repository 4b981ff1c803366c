"""Interpolated average precision and recall from ranked outcomes.

Precision is sampled at R recall levels as the largest precision at that recall or beyond; the
envelope only changes at true positives, so a first walk counts them and a second walk, from the
worst score up, carries the envelope and fills each recall level when its true positive is
reached: no curve is stored. Source: pycocotools ``COCOeval.accumulate``; with the integer grid,
Valor's 101-point rule (level j of R - 1 is reached once (R - 1) * tp >= j * n).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _reaches(tp: int, positives: int, j: int, levels: Array, integer_grid: bool) -> bool:
    """Whether ``tp`` true positives of ``positives`` reach recall level j."""
    if integer_grid:
        return (levels.size - 1) * tp >= j * positives
    return tp / positives >= levels[j]


@kernel
def _sampled(
    start: Array,
    order: Array,
    hit: Array,
    ignored: Array,
    rank: Array,
    skipped: Array,
    score: Array,
    datum: Array,
    weights: Array,
    n_thresholds: int,
    n_areas: int,
    positives: Array,
    caps: Array,
    levels: Array,
    integer_grid: bool,
    epsilon: float,
    precision: Array,
    scores: Array,
    true_positives: Array,
) -> None:
    """Both walks over every segment; see :func:`sample_precision`."""
    n_variants = n_thresholds * n_areas
    one = np.uint64(1)
    every = ~np.uint64(0) if n_variants == 64 else (one << np.uint64(n_variants)) - one
    of_area = ~np.uint64(0) if n_thresholds == 64 else (one << np.uint64(n_thresholds)) - one
    tp = np.zeros(n_variants, np.int64)
    fp = np.zeros(n_variants, np.int64)
    level = np.zeros(n_variants, np.int64)
    envelope = np.zeros(n_variants, np.float64)
    area_fp = np.zeros(n_areas, np.int64)
    last_cap = caps[caps.size - 1]
    for s in range(start.size - 1):
        n_positive = 0
        for v in range(n_variants):
            n_positive = max(n_positive, positives[s, v])
        if n_positive == 0:
            continue
        tp[:] = 0
        fp[:] = 0
        area_fp[:] = 0
        for i in range(start[s], start[s + 1]):
            r = order[i] if order.size else i
            if rank[r] >= last_cap or (skipped.size and skipped[r]):
                continue
            w = weights[datum[r]] if weights.size else 1
            missed = every & ~hit[r] & ~ignored[r]
            if hit[r] == 0:
                even = True
                for a in range(n_areas):
                    part = (missed >> np.uint64(a * n_thresholds)) & of_area
                    if part != 0 and part != of_area:
                        even = False
                if even:
                    for a in range(n_areas):
                        area_fp[a] += w * np.int64((missed >> np.uint64(a * n_thresholds)) & one)
                    continue
            for v in range(n_variants):
                fp[v] += w * np.int64((missed >> np.uint64(v)) & one)
            if hit[r] != 0:
                m = 0
                while rank[r] >= caps[m]:
                    m += 1
                for v in range(n_variants):
                    h = w * np.int64((hit[r] >> np.uint64(v)) & one)
                    tp[v] += h
                    true_positives[s, v, m] += h
        for v in range(n_variants):
            for m in range(1, caps.size):
                true_positives[s, v, m] += true_positives[s, v, m - 1]
        if precision.size == 0:
            continue
        for v in range(n_variants):
            envelope[v] = 0.0
            level[v] = levels.size - 1
            if positives[s, v] > 0 and tp[v] > 0:
                while not _reaches(tp[v], positives[s, v], level[v], levels, integer_grid):
                    level[v] -= 1
            else:
                level[v] = -1
        best = 0.0
        for i in range(start[s + 1] - 1, start[s] - 1, -1):
            r = order[i] if order.size else i
            if rank[r] >= last_cap or (skipped.size and skipped[r]):
                continue
            w = weights[datum[r]] if weights.size else 1
            if w == 0:
                continue
            best = score[r]
            missed = every & ~hit[r] & ~ignored[r]
            if hit[r] == 0:
                even = True
                for a in range(n_areas):
                    part = (missed >> np.uint64(a * n_thresholds)) & of_area
                    if part != 0 and part != of_area:
                        even = False
                if even:
                    for a in range(n_areas):
                        area_fp[a] -= w * np.int64((missed >> np.uint64(a * n_thresholds)) & one)
                    continue
            else:
                for v in range(n_variants):
                    if (hit[r] >> np.uint64(v)) & one == 0 or positives[s, v] == 0:
                        continue
                    wrong = fp[v] + area_fp[v // n_thresholds]
                    p = tp[v] / (tp[v] + wrong + epsilon)
                    envelope[v] = max(envelope[v], p)
                    tp[v] -= w
                    j = level[v]
                    while j >= 0 and (
                        tp[v] == 0
                        or not _reaches(tp[v], positives[s, v], j, levels, integer_grid)
                    ):
                        precision[s, v, j] = envelope[v]
                        if scores.size:
                            scores[s, v, j] = score[r]
                        j -= 1
                    level[v] = j
            for v in range(n_variants):
                fp[v] -= w * np.int64((missed >> np.uint64(v)) & one)
        if scores.size and levels[0] == 0.0:
            # recall 0 is reached before the first true positive: by the best score of all
            for v in range(n_variants):
                if positives[s, v] > 0:
                    scores[s, v, 0] = best


def sample_precision(
    start: Array,
    order: Array | None,
    outcomes: tuple[Array, Array, Array, Array, Array, Array],
    weights: Array | None,
    shape: tuple[int, int],
    positives: Array,
    caps: Array,
    levels: Array,
    *,
    integer_grid: bool,
    epsilon: float,
    want_precision: bool = True,
    want_scores: bool = False,
) -> tuple[Array, Array, Array]:
    """Precision at every recall level, and true positives, per segment and variant.

    Args:
        start: int64 [s + 1], segment offsets into ``order``; within a segment rows stand by
            descending score.
        order: int32 [n], rows of the outcomes by segment, or None if they already stand so.
        outcomes: hit uint64 [n], ignored uint64 [n], rank int32 [n], skipped bool [n] or [0],
            score float64 [n], datum int32 [n].
        weights: int32 [n_datums], how often each datum counts, or None for once.
        shape: (t, a), thresholds and area ranges; variant v = area * t + threshold is bit v.
        positives: int64 [s, t * a], (weighted) ground truths that are not ignored.
        caps: int64 [m], ascending caps on rank within (datum, label); precision is at the last.
        levels: float64 [r], ascending recall levels.
        integer_grid: reach level j at (r - 1) * tp >= j * n, instead of tp / n >= levels[j].
        epsilon: added to the denominator of precision.
        want_precision: whether to sample precision at all.
        want_scores: whether to return the score at which each level is reached.

    Returns:
        precision float64 [s, t * a, r], 0 at levels never reached; scores of the same shape (or
        empty); true positives int64 [s, t * a, m].
    """
    n_segments = start.size - 1
    n_variants = shape[0] * shape[1]
    full = (n_segments, n_variants, levels.size)
    precision = np.zeros(full if want_precision else (0, 0, 0))
    scores = np.zeros(full if want_scores and want_precision else (0, 0, 0))
    true_positives = np.zeros((n_segments, n_variants, caps.size), np.int64)
    hit, ignored, rank, skipped, score, datum = outcomes
    _sampled(
        frozen(start, np.int64),
        frozen(np.empty(0, np.int32) if order is None else order, np.int32),
        frozen(hit, np.uint64),
        frozen(ignored, np.uint64),
        frozen(rank, np.int32),
        frozen(skipped, np.bool_),
        frozen(score, np.float64),
        frozen(datum, np.int32),
        frozen(np.empty(0, np.int32) if weights is None else weights, np.int32),
        shape[0],
        shape[1],
        frozen(positives, np.int64),
        frozen(caps, np.int64),
        frozen(levels, np.float64),
        integer_grid,
        epsilon,
        precision,
        scores,
        true_positives,
    )
    return precision, scores, true_positives
