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
from .jit import kernel
from .matching_greedy import _reached, _record

Array = np.ndarray[Any, Any]


@kernel
def _by_iou_within_ties(score: Array, lo: int, hi: int, order: Array, iou: Array) -> None:
    """Within runs of equal score, put higher IoU first; equal ones keep their place."""
    i = lo
    while i < hi:
        j = i + 1
        while j < hi and score[order[j]] == score[order[i]]:
            j += 1
        if j - i > 1:
            run = order[i:j].copy()
            by_iou = np.argsort(-iou[run - lo], kind="mergesort")
            for k in range(j - i):
                order[i + k] = run[by_iou[k]]
        i = j


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
    n_datums: int,
    max_rank: int,
    rank: Array,
    hit: Array,
    ignored: Array,
    skipped: Array,
    taker: Array,
) -> None:
    """Match every label of [first, last); arguments as in :func:`.matching_greedy.greedy`.

    ``p_order`` is rewritten: runs of equal score come out by descending IoU.
    """
    every = prefix[thresholds.size]
    where = np.full(n_datums, -1, np.int32)
    seen = np.zeros(n_datums, np.int32)
    longest = 1
    most = 1
    for k in range(first, last):
        longest = max(longest, g_start[k + 1] - g_start[k])
        most = max(most, p_start[k + 1] - p_start[k])
    best_before = np.zeros(longest, np.float64)
    iou = np.zeros(most, np.float64)
    tied = np.zeros(most, np.int32)
    wants_taker = taker.size > 0
    for k in range(first, last):
        g0, g1 = g_start[k], g_start[k + 1]
        p0, p1 = p_start[k], p_start[k + 1]
        for j in range(g1 - 1, g0 - 1, -1):
            where[g_datum[j]] = j
            best_before[j - g0] = 0.0
        for p in range(p0, p1):
            datum = p_datum[p]
            iou[p - p0] = 0.0
            tied[p - p0] = -1
            j = where[datum]
            if j < 0:
                continue
            while j < g1 and g_datum[j] == datum:
                o = box_iou(p_boxes[p], p_area[p], g_boxes[j], g_area[j], False)
                if o > iou[p - p0]:
                    iou[p - p0] = o
                    tied[p - p0] = j
                j += 1
        _by_iou_within_ties(p_score, p0, p1, p_order, iou)
        for i in range(p0, p1):
            p = p_order[i]
            rank[i] = seen[p_datum[p]]
            seen[p_datum[p]] += 1
            hit[i] = 0
            ignored[i] = 0
            if rank[i] >= max_rank:
                ignored[i] = every
                continue
            taken = np.uint64(0)
            j = tied[p - p0]
            if j >= 0 and p_score[p] > 0.0 and iou[p - p0] > best_before[j - g0]:
                taken = (
                    prefix[_reached(iou[p - p0], thresholds)]
                    & ~prefix[_reached(best_before[j - g0], thresholds)]
                )
                best_before[j - g0] = iou[p - p0]
                hit[i] = taken & g_regular[j]
                ignored[i] = taken & ~g_regular[j]
                if wants_taker:
                    _record(hit[i] & area_bits[0], thresholds.size, j, i, taker)
            for a in range(area_bits.size):
                if p_area[p] < area_ranges[a, 0] or p_area[p] > area_ranges[a, 1]:
                    ignored[i] |= area_bits[a] & ~taken
        for j in range(g0, g1):
            where[g_datum[j]] = -1
        for i in range(p0, p1):
            seen[p_datum[p_order[i]]] = 0
