"""Greedy matching by descending score, all IoU thresholds and area ranges at once.

Every detection takes, at each threshold, the best ground truth of its datum and label that is
still free; a regular ground truth goes before an ignored one, a crowd is never used up. All
threshold x area variants are bits of one word, so one scan over the candidates, best IoU first,
settles them together. Source: pycocotools ``COCOeval.evaluateImg``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .boxes import box_iou
from .jit import kernel

Array = np.ndarray[Any, Any]


@kernel
def _reached(iou: float, thresholds: Array) -> int:
    """How many of the ascending thresholds are at most ``iou``."""
    n = 0
    while n < thresholds.size and iou >= thresholds[n]:
        n += 1
    return n


@kernel
def _insert(iou: float, at: int, n: int, ious: Array, places: Array) -> None:
    """Keep candidates by descending IoU; of equal ones the later ground truth comes first."""
    j = n
    while j > 0 and ious[j - 1] <= iou:
        ious[j] = ious[j - 1]
        places[j] = places[j - 1]
        j -= 1
    ious[j] = iou
    places[j] = at


@kernel
def _record(bits: Any, n_thresholds: int, at: int, i: int, taker: Array) -> None:
    """Note which detection took ground truth ``at``, at the thresholds among the first bits."""
    for t in range(n_thresholds):
        if (bits >> np.uint64(t)) & np.uint64(1):
            taker[t, at] = i


@kernel
def greedy(
    first: int,
    last: int,
    p_start: Array,
    p_order: Array,
    p_score: Array,
    p_boxes: Array,
    p_area: Array,
    p_datum: Array,
    g_start: Array,
    g_boxes: Array,
    g_area: Array,
    g_datum: Array,
    g_crowd: Array,
    g_regular: Array,
    thresholds: Array,
    prefix: Array,
    area_ranges: Array,
    area_bits: Array,
    n_datums: int,
    max_rank: int,
    rank: Array,
    hit: Array,
    ignored: Array,
    skipped: Array,
    taker: Array,
) -> None:
    """Match every label of [first, last).

    Arrays of predictions (``p_``) and ground truths (``g_``) are laid out by label, then datum,
    then row; ``p_start``, ``g_start`` are CSR offsets by label. Results stand in rank order.

    Args:
        first: first label.
        last: one past the last label.
        p_start: int64 [n_labels + 1].
        p_order: int32 [n], place in the layout of the i-th ranked prediction.
        p_score: float64 [n].
        p_boxes: float64 [n, 4].
        p_area: float64 [n], tested against the area ranges.
        p_datum: int32 [n].
        g_start: int64 [n_labels + 1].
        g_boxes: float64 [m, 4].
        g_area: float64 [m], area of the box (not the annotated one).
        g_datum: int32 [m].
        g_crowd: bool [m].
        g_regular: uint64 [m], variants in which the ground truth is not ignored.
        thresholds: float64 [t], ascending.
        prefix: uint64 [t + 1], variants whose threshold is among the first c thresholds.
        area_ranges: float64 [a, 2], both ends included.
        area_bits: uint64 [a], variants of that area range.
        n_datums: number of datums.
        max_rank: predictions of rank >= this in their (datum, label) are ignored throughout.
        rank: int32 [n], out: rank within (datum, label), from 0.
        hit: uint64 [n], out: variants in which the prediction hit a regular ground truth.
        ignored: uint64 [n], out: variants in which it counts as neither hit nor miss.
        skipped: bool [n] or [0], out: predictions that average precision leaves out; none here.
        taker: int32 [t, m] or [0, 0], out: the ranked prediction that hit each ground truth in
            the first area range, by threshold.
    """
    n_thresholds = thresholds.size
    every = prefix[n_thresholds]
    lowest = thresholds[0]
    where = np.full(n_datums, -1, np.int32)
    seen = np.zeros(n_datums, np.int32)
    longest = 1
    for k in range(first, last):
        longest = max(longest, g_start[k + 1] - g_start[k])
    matched = np.zeros(longest, np.uint64)
    ious = np.empty(longest, np.float64)
    places = np.empty(longest, np.int32)
    wants_taker = taker.size > 0
    for k in range(first, last):
        g0, g1 = g_start[k], g_start[k + 1]
        for j in range(g1 - 1, g0 - 1, -1):
            where[g_datum[j]] = j
            matched[j - g0] = 0
        for i in range(p_start[k], p_start[k + 1]):
            p = p_order[i]
            datum = p_datum[p]
            rank[i] = seen[datum]
            seen[datum] += 1
            if rank[i] >= max_rank:
                hit[i] = 0
                ignored[i] = every
                continue
            n = 0
            j = where[datum]
            if j >= 0:
                while j < g1 and g_datum[j] == datum:
                    iou = box_iou(p_boxes[p], p_area[p], g_boxes[j], g_area[j], g_crowd[j])
                    if iou >= lowest:
                        _insert(iou, j, n, ious, places)
                        n += 1
                    j += 1
            wanted = every
            hits = np.uint64(0)
            for c in range(n):
                j = places[c]
                free = g_regular[j] & ~matched[j - g0] & wanted
                if free != 0:
                    free &= prefix[_reached(ious[c], thresholds)]
                    matched[j - g0] |= free
                    wanted &= ~free
                    hits |= free
                    if wants_taker:
                        _record(free & area_bits[0], n_thresholds, j, i, taker)
            beside = np.uint64(0)
            for c in range(n):
                j = places[c]
                free = every & ~g_regular[j] & wanted
                if free != 0:
                    if not g_crowd[j]:
                        free &= ~matched[j - g0]
                    free &= prefix[_reached(ious[c], thresholds)]
                    matched[j - g0] |= free
                    wanted &= ~free
                    beside |= free
            for a in range(area_bits.size):
                if p_area[p] < area_ranges[a, 0] or p_area[p] > area_ranges[a, 1]:
                    beside |= wanted & area_bits[a]
            hit[i] = hits
            ignored[i] = beside
        for j in range(g0, g1):
            where[g_datum[j]] = -1
        for i in range(p_start[k], p_start[k + 1]):
            seen[p_datum[p_order[i]]] = 0
