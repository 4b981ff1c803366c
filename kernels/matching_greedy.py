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
    max_rank: int,
    pair_start: Array,
    pair_gt: Array,
    pair_iou: Array,
    where: Array,
    seen: Array,
    matched: Array,
    ious: Array,
    reach: Array,
    places: Array,
    rank: Array,
    hit: Array,
    ignored: Array,
    skipped: Array,
    tie: Array,
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
        max_rank: predictions of rank >= this in their (datum, label) are ignored throughout.
        pair_start: int64 [n + 1], offsets of the pairs of each place of the layout, for geometry
            whose IoU was computed before; or [0] to compute that of the boxes here.
        pair_gt: int32 [k], ground truth of each pair, ascending within a prediction.
        pair_iou: float64 [k]; pairs that are not there have IoU 0.
        where: int32 [n_datums], scratch, all -1, and so again afterwards.
        seen: int32 [n_datums], scratch, all 0, and so again afterwards.
        matched: uint64 [most ground truths of a label], scratch.
        ious: float64, scratch of that size.
        reach: uint64, scratch of that size.
        places: int64, scratch of that size.
        rank: int32 [n], out: rank within (datum, label), from 0.
        hit: uint64 [n], out: variants in which the prediction hit a regular ground truth.
        ignored: uint64 [n], out: variants in which it counts as neither hit nor miss.
        skipped: bool [n] or [0], out: predictions that average precision leaves out; none here.
        tie: float64 [n] or [0], out: what orders equal scores before datum and row, higher
            first; nothing here.
        taker: int32 [t, m] or [0, 0], out: the ranked prediction that hit each ground truth in
            the first area range, by threshold.
    """
    n_thresholds = thresholds.size
    every = prefix[n_thresholds]
    one = np.uint64(1)
    none = np.uint64(0)
    wants_taker = taker.size > 0
    given = pair_start.size > 0
    for k in range(first, last):
        g0, g1 = g_start[k], g_start[k + 1]
        for g in range(g1 - 1, g0 - 1, -1):
            where[g_datum[g]] = g
            matched[g - g0] = none
        for i in range(p_start[k], p_start[k + 1]):
            p = p_order[i]
            datum = p_datum[p]
            rank[i] = seen[datum]
            seen[datum] += 1
            hit[i] = none
            ignored[i] = every
            if rank[i] >= max_rank:
                continue
            xmin, ymin, xmax, ymax = p_boxes[p, 0], p_boxes[p, 1], p_boxes[p, 2], p_boxes[p, 3]
            area = p_area[p]
            # Candidates by descending IoU; of equal ones the later ground truth comes first.
            n = 0
            near: Any = pair_start[p] if given else np.int64(where[datum])
            while near < pair_start[p + 1] if given else 0 <= near < g1 and g_datum[near] == datum:
                if given:
                    j = np.int64(pair_gt[near])
                    iou = pair_iou[near]
                else:
                    j = near
                    iou = box_iou(xmin, ymin, xmax, ymax, area, g_boxes, g_area, j, g_crowd[j])
                near += 1
                if iou >= thresholds[0]:
                    reached = 1
                    while reached < n_thresholds and iou >= thresholds[reached]:
                        reached += 1
                    at = n
                    while at > 0 and ious[at - 1] <= iou:
                        ious[at] = ious[at - 1]
                        places[at] = places[at - 1]
                        reach[at] = reach[at - 1]
                        at -= 1
                    ious[at] = iou
                    places[at] = j
                    reach[at] = prefix[reached]
                    n += 1
            wanted = every
            hits = none
            for c in range(n):
                j = places[c]
                free = g_regular[j] & ~matched[j - g0] & wanted & reach[c]
                if free != none:
                    matched[j - g0] |= free
                    wanted &= ~free
                    hits |= free
                    if wants_taker:
                        for t in range(n_thresholds):
                            if (free >> np.uint64(t)) & one:
                                taker[t, j] = i
            beside = none
            for c in range(n):
                j = places[c]
                free = ~g_regular[j] & wanted & reach[c]
                if not g_crowd[j]:
                    free &= ~matched[j - g0]
                matched[j - g0] |= free
                wanted &= ~free
                beside |= free
            for a in range(area_bits.size):
                if area < area_ranges[a, 0] or area > area_ranges[a, 1]:
                    beside |= wanted & area_bits[a]
            hit[i] = hits
            ignored[i] = beside
        for g in range(g0, g1):
            where[g_datum[g]] = -1
        for i in range(p_start[k], p_start[k + 1]):
            seen[p_datum[p_order[i]]] = 0
