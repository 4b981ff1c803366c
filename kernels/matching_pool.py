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

    ``skipped`` is bool [n] here: True where the datum has no ground truth of the label.
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
            matched[g - g0] = none  # not none once it has left the pool
        for i in range(p_start[k], p_start[k + 1]):
            p = p_order[i]
            datum = p_datum[p]
            rank[i] = seen[datum]
            seen[datum] += 1
            hit[i] = none
            ignored[i] = every
            j: Any = np.int64(where[datum])
            skipped[i] = j < 0
            if rank[i] >= max_rank:
                continue
            xmin, ymin, xmax, ymax = p_boxes[p, 0], p_boxes[p, 1], p_boxes[p, 2], p_boxes[p, 3]
            area = p_area[p]
            best = -1.0
            pick: Any = np.int64(-1)
            pair: Any = pair_start[p] if given else np.int64(0)
            pairs_end: Any = pair_start[p + 1] if given else np.int64(0)
            while 0 <= j < g1 and g_datum[j] == datum:
                iou = 0.0
                if given and pair < pairs_end and pair_gt[pair] == j:
                    iou = pair_iou[pair]
                    pair += 1
                if matched[j - g0] == none:
                    if not given:
                        iou = box_iou(xmin, ymin, xmax, ymax, area, g_boxes, g_area, j, False)
                    if iou > best:
                        best = iou
                        pick = j
                j += 1
            taken = none
            ignored[i] = none
            if pick >= 0:
                matched[pick - g0] = one
                reached = 0
                while reached < n_thresholds and best >= thresholds[reached]:
                    reached += 1
                taken = prefix[reached]
                hit[i] = taken & g_regular[pick]
                ignored[i] = taken & ~g_regular[pick]
                if wants_taker:
                    for t in range(n_thresholds):
                        if (hit[i] >> np.uint64(t)) & one:
                            taker[t, pick] = i
            for a in range(area_bits.size):
                if area < area_ranges[a, 0] or area > area_ranges[a, 1]:
                    ignored[i] |= area_bits[a] & ~taken
        for g in range(g0, g1):
            where[g_datum[g]] = -1
        for i in range(p_start[k], p_start[k + 1]):
            seen[p_datum[p_order[i]]] = 0
