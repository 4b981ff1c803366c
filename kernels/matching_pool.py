"""Pool matching, by the letter of Valor's document (``rank_ious``).

Walking the predictions of a datum and label by score, each is paired with the ground truth of
highest IoU that is still in the pool (the first among equals, even at IoU 0), and both leave the
pool whatever the threshold. Predictions of a label that the datum's ground truths lack are left
out of average precision. Source: Valor's metrics document, "Matching Ground Truths with
Predictions".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .boxes import box_iou
from .jit import kernel
from .matching_greedy import _reached, _record

Array = np.ndarray[Any, Any]


@kernel
def pool(
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

    ``skipped`` is bool [n] here: True where the datum has no ground truth of the label.
    """
    every = prefix[thresholds.size]
    where = np.full(n_datums, -1, np.int32)
    seen = np.zeros(n_datums, np.int32)
    longest = 1
    for k in range(first, last):
        longest = max(longest, g_start[k + 1] - g_start[k])
    gone = np.zeros(longest, np.bool_)
    wants_taker = taker.size > 0
    for k in range(first, last):
        g0, g1 = g_start[k], g_start[k + 1]
        for j in range(g1 - 1, g0 - 1, -1):
            where[g_datum[j]] = j
            gone[j - g0] = False
        for i in range(p_start[k], p_start[k + 1]):
            p = p_order[i]
            datum = p_datum[p]
            rank[i] = seen[datum]
            seen[datum] += 1
            hit[i] = 0
            ignored[i] = 0
            j = where[datum]
            skipped[i] = j < 0
            if rank[i] >= max_rank:
                ignored[i] = every
                continue
            best = -1.0
            pick = -1
            while 0 <= j < g1 and g_datum[j] == datum:
                if not gone[j - g0]:
                    iou = box_iou(p_boxes[p], p_area[p], g_boxes[j], g_area[j], False)
                    if iou > best:
                        best = iou
                        pick = j
                j += 1
            taken = np.uint64(0)
            if pick >= 0:
                gone[pick - g0] = True
                taken = prefix[_reached(best, thresholds)]
                hit[i] = taken & g_regular[pick]
                ignored[i] = taken & ~g_regular[pick]
                if wants_taker:
                    _record(hit[i] & area_bits[0], thresholds.size, pick, i, taker)
            for a in range(area_bits.size):
                if p_area[p] < area_ranges[a, 0] or p_area[p] > area_ranges[a, 1]:
                    ignored[i] |= area_bits[a] & ~taken
        for j in range(g0, g1):
            where[g_datum[j]] = -1
        for i in range(p_start[k], p_start[k + 1]):
            seen[p_datum[p_order[i]]] = 0
