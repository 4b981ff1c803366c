"""Locked matching: every prediction keeps its one best ground truth, free or not.

A prediction is tied to the ground truth of its datum and label that it overlaps most (the first
among equals). Walking predictions by score, then IoU, it is a true positive at threshold t when
its IoU is at least t and no prediction before it with IoU at least t is tied to the same ground
truth; that is, on the half-open interval (best earlier IoU, own IoU]. A score of zero is never a
true positive. Source: Valor's detection evaluation (valor-lite ``rank_table``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .boxes import box_iou
from .jit import inner, kernel

Array = np.ndarray[Any, Any]


@inner
def _prefix_of(iou: float, thresholds: Array, prefix: Array) -> Any:
    """Variants whose threshold is at most ``iou``."""
    reached = 0
    while reached < thresholds.size and iou >= thresholds[reached]:
        reached += 1
    return prefix[reached]


@inner
def _sort_tied(order: Array, first: int, last: int, own: Array, base: int, room: Array) -> None:
    """Merge sort of order[first:last] by descending own[order - base]; equal ones keep their place.

    NumPy's stable argsort would do the same, but takes four times as long to compile.
    """
    width = 1
    while width < last - first:
        for low in range(first, last, 2 * width):
            middle, high = min(low + width, last), min(low + 2 * width, last)
            if middle == high or own[order[middle - 1] - base] >= own[order[middle] - base]:
                continue  # in order as it stands
            for k in range(low, middle):
                room[k - low] = order[k]
            waiting, i, j, k = middle - low, 0, middle, low
            while i < waiting:
                if j < high and own[order[j] - base] > own[room[i] - base]:
                    order[k] = order[j]
                    j += 1
                else:
                    order[k] = room[i]
                    i += 1
                k += 1
        width *= 2


@kernel
def locked(
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
    """Match every label of [first, last); arguments as in :func:`.matching_greedy.greedy`.

    ``p_order`` is rewritten: runs of equal score come out by descending IoU, which is also what
    ``tie`` [n] tells.
    """
    every = prefix[thresholds.size]
    one = np.uint64(1)
    none = np.uint64(0)
    most = 1
    for k in range(first, last):
        most = max(most, p_start[k + 1] - p_start[k])
    own = np.zeros(most, np.float64)
    tied = np.zeros(most, np.int64)
    room = np.empty(most, np.int32)
    wants_taker = taker.size > 0
    given = pair_start.size > 0
    for k in range(first, last):
        g0, g1 = g_start[k], g_start[k + 1]
        p0, p1 = p_start[k], p_start[k + 1]
        for g in range(g1 - 1, g0 - 1, -1):
            where[g_datum[g]] = g
            ious[g - g0] = 0.0  # best IoU of the predictions before
        for p in range(p0, p1):
            xmin, ymin, xmax, ymax = p_boxes[p, 0], p_boxes[p, 1], p_boxes[p, 2], p_boxes[p, 3]
            area = p_area[p]
            datum = p_datum[p]
            own[p - p0] = 0.0
            tied[p - p0] = -1
            near: Any = pair_start[p] if given else np.int64(where[datum])
            while near < pair_start[p + 1] if given else 0 <= near < g1 and g_datum[near] == datum:
                if given:
                    j = np.int64(pair_gt[near])
                    iou = pair_iou[near]
                else:
                    j = near
                    iou = box_iou(xmin, ymin, xmax, ymax, area, g_boxes, g_area, j, False)
                near += 1
                if iou > own[p - p0]:
                    own[p - p0] = iou
                    tied[p - p0] = j
        # Among equal scores the higher IoU goes first; equal ones keep their place.
        i = p0
        while i < p1:
            c = i + 1
            while c < p1 and p_score[p_order[c]] == p_score[p_order[i]]:
                c += 1
            if c - i > 1:
                _sort_tied(p_order, i, c, own, p0, room)
            i = c
        for i in range(p0, p1):
            p = p_order[i]
            rank[i] = seen[p_datum[p]]
            seen[p_datum[p]] += 1
            hit[i] = none
            ignored[i] = every
            tie[i] = own[p - p0]
            if rank[i] >= max_rank:
                continue
            ignored[i] = none
            taken = none
            j = tied[p - p0]
            if j >= 0 and p_score[p] > 0.0 and own[p - p0] > ious[j - g0]:
                taken = _prefix_of(own[p - p0], thresholds, prefix) & ~_prefix_of(
                    ious[j - g0], thresholds, prefix
                )
                ious[j - g0] = own[p - p0]
                hit[i] = taken & g_regular[j]
                ignored[i] = taken & ~g_regular[j]
                if wants_taker:
                    for t in range(thresholds.size):
                        if (hit[i] >> np.uint64(t)) & one:
                            taker[t, j] = i
            for a in range(area_bits.size):
                if p_area[p] < area_ranges[a, 0] or p_area[p] > area_ranges[a, 1]:
                    ignored[i] |= area_bits[a] & ~taken
        for g in range(g0, g1):
            where[g_datum[g]] = -1
        for i in range(p0, p1):
            seen[p_datum[p_order[i]]] = 0
