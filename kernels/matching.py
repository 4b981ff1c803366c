"""Matching of predictions and ground truths, error types, and counts of matched labels.

``first`` and ``last`` are a range [first, last) of labels; ``out`` is written for that range.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .boxes import box_iou
from .jit import F64, I32, I64, U8, U64, Array, Bools, inner, kernel
from .order import group_by_label

# Matching of predictions and ground truths of one datum and label. All variants (IoU threshold
# times area range) are bits of one word and are matched in one pass by rank. Rules:
# GREEDY: at each threshold the best free ground truth; regular ones before ignored ones, and a
# crowd is never used up. Source: pycocotools ``COCOeval.evaluateImg``.
# NEAREST: the same, with the first ground truth among equals. Source: nuscenes-devkit
# ``detection.algo.accumulate``.
# LOCKED: the best ground truth, free or not (the first among equals). In order of score, then IoU,
# a true positive at thresholds in the half-open interval (best earlier IoU with it, IoU]; never at
# a score of zero. Source: Valor's detection evaluation (valor-lite ``rank_table``).
# BEST: the best ground truth, free or not (the first among equals): a true positive at the
# thresholds that the IoU reaches, unless an earlier one is, then a false one. An ignored ground
# truth is never used up. Source: Pascal VOC's ``VOCevaldet.m``. Predictions still open go to crowd
# regions: the first with a score above zero in a regular region is a true positive, others are
# ignored. Source: Open Images' evaluation, TensorFlow's ``per_image_evaluation``.
# POOL: the best ground truth still in the pool (the first among equals, even at IoU 0); both are
# removed at all thresholds. Average precision skips predictions of labels without a ground truth in
# the datum. Source: Valor's metrics document, "Matching Ground Truths with Predictions".

GREEDY, LOCKED, POOL, BEST, NEAREST = 0, 1, 2, 3, 4


class Predictions(NamedTuple):
    """Predictions by label, then datum, then row."""

    start: I64  # [n_labels + 1], CSR offsets by label
    score: F64  # [n]
    boxes: F64  # [n, 4]
    area: F64  # [n], tested against the area ranges
    datum: I32  # [n]


class GroundTruths(NamedTuple):
    """Ground truths by label, then datum, then row."""

    start: I64  # [n_labels + 1], CSR offsets by label
    boxes: F64  # [m, 4]
    area: F64  # [m], area of the box (not the annotated one)
    datum: I32  # [m]
    crowd: Bools  # [m]
    regular: U64  # [m], variants in which the ground truth is not ignored


class Pairs(NamedTuple):
    """IoUs of predictions and ground truths of one datum and label, for shapes other than boxes."""

    start: I64  # [n + 1], offsets by place of the prediction; [0] to use boxes
    ground_truth: I32  # [k], place in the layout, ascending in a prediction
    iou: F64  # [k]; missing pairs count as 0


class Bits(NamedTuple):
    """Meaning of the bits of a word."""

    thresholds: F64  # [t], ascending
    prefix: U64  # [t + 1], variants whose threshold is among the first c thresholds
    area_ranges: F64  # [a, 2], both ends included
    area_bits: U64  # [a], variants of that area range
    max_rank: int  # predictions of rank >= this in their (datum, label) are ignored throughout


class Scratch(NamedTuple):
    """Scratch memory of one thread; ``most`` is the largest number of ground truths of a label."""

    where: Array  # int32 [n_datums], all -1 between calls: first ground truth of each datum
    seen: Array  # int32 [n_datums], all 0 between calls: predictions of each datum so far
    matched: Array  # uint64 [most], variants in which a ground truth is taken
    ious: Array  # float64 [most], best IoU of the previous predictions, or of candidates
    reach: Array  # uint64 [most], variants that candidates reach
    places: Array  # int64 [most], candidates
    own: Array  # float64 [most predictions of a label], their best IoU (``LOCKED``, ``BEST``)
    tied: Array  # int64 of that size, its ground truth, -1 for none
    room: Array  # int32 of that size


class Outcomes(NamedTuple):
    """Outcome of every prediction, in rank order."""

    order: Array  # int32 [n], place of the i-th ranked prediction; ``LOCKED`` sorts ties by IoU
    rank: Array  # int32 [n], rank within (datum, label), from 0
    hit: Array  # uint64 [n], variants in which the prediction hit a regular ground truth
    ignored: Array  # uint64 [n], variants in which it counts as neither hit nor miss
    skipped: Array  # bool [n] under ``POOL``, else [0]: skipped by average precision
    tie: Array  # float64 [n] under ``LOCKED``, else [0]: order of equal scores, descending
    taker: Array  # int32 [t, m] or [0, 0], ranked prediction that hit, in the first area range
    took: Array  # int32 [variants of the word, n], all -1, or [0, 0]: ground truth, also ignored


@inner
def _note(took: Array, variants: Any, i: int, ground_truth: int) -> None:
    """Record in ``took`` the ground truth of prediction ``i`` in the ``variants``."""
    for v in range(took.shape[0]):
        if (variants >> np.uint64(v)) & np.uint64(1):
            took[v, i] = ground_truth


@inner
def _give(taker: Array, hits: Any, i: int, ground_truth: int) -> None:
    """Record in ``taker`` the thresholds at which prediction ``i`` hit a ground truth."""
    for t in range(taker.shape[0]):
        if (hits >> np.uint64(t)) & np.uint64(1):
            taker[t, ground_truth] = i


@inner
def _reached(iou: float, thresholds: Array) -> int:
    reached = 0
    while reached < thresholds.size and iou >= thresholds[reached]:
        reached += 1
    return reached


@inner
def sort_tied(order: Array, first: int, last: int, own: Array, base: int, room: Array) -> None:
    """Merge sort order[first:last] by descending own[order - base]; equal ones keep their order.

    NumPy's stable argsort would do the same, but takes four times as long to compile.
    """
    width = 1
    while width < last - first:
        for low in range(first, last, 2 * width):
            middle, high = min(low + width, last), min(low + 2 * width, last)
            if middle == high or own[order[middle - 1] - base] >= own[order[middle] - base]:
                continue  # already in order
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
def match(
    first: int,
    last: int,
    rule: int,
    ours: Predictions,
    theirs: GroundTruths,
    pairs: Pairs,
    bits: Bits,
    scratch: Scratch,
    out: Outcomes,
) -> None:
    """Match every label of [first, last) by ``GREEDY`` or ``NEAREST``.

    A prediction takes the free ground truth of the highest IoU.

    Args:
        rule: one of the two.
        ours: predictions.
        theirs: ground truths.
    """
    # Named once: Numba counts a reference at every look into a tuple, which would cost the most.
    p_start, _p_score, p_boxes, p_area, p_datum = ours
    g_start, g_boxes, g_area, g_datum, g_crowd, g_regular = theirs
    pair_start, pair_gt, pair_iou = pairs
    thresholds, prefix, area_ranges, area_bits, max_rank = bits
    where, seen, matched, ious, reach, places, _own, _tied, _room = scratch
    order, rank, hit, ignored, _skipped, _tie, taker, took = out

    n_thresholds = thresholds.size
    every = prefix[n_thresholds]
    none = np.uint64(0)
    paired = pair_start.size > 0
    for k in range(first, last):
        g0, g1 = g_start[k], g_start[k + 1]
        for g in range(g1 - 1, g0 - 1, -1):
            where[g_datum[g]] = g
            matched[g - g0] = none
            ious[g - g0] = 0.0
        for i in range(p_start[k], p_start[k + 1]):
            p = order[i]
            datum = p_datum[p]
            rank[i] = seen[datum]
            seen[datum] += 1
            hit[i] = none
            ignored[i] = every
            if rank[i] >= max_rank:
                continue
            xmin, ymin, xmax, ymax = p_boxes[p, 0], p_boxes[p, 1], p_boxes[p, 2], p_boxes[p, 3]
            area = p_area[p]
            hits = none
            aside = none
            # Candidates by descending IoU; of equal ones the later ground truth comes first,
            # or the earlier one.
            n = 0
            item: Any = pair_start[p] if paired else np.int64(where[datum])
            while item < pair_start[p + 1] if paired else 0 <= item < g1 and g_datum[item] == datum:
                if paired:
                    j = np.int64(pair_gt[item])
                    iou = pair_iou[item]
                else:
                    j = item
                    iou = box_iou(xmin, ymin, xmax, ymax, area, g_boxes, g_area, j, g_crowd[j])
                item += 1
                if iou >= thresholds[0]:
                    reached = prefix[_reached(iou, thresholds)]
                    at = n
                    while at > 0 and (
                        ious[at - 1] < iou or (ious[at - 1] == iou and rule == GREEDY)
                    ):
                        ious[at] = ious[at - 1]
                        places[at] = places[at - 1]
                        reach[at] = reach[at - 1]
                        at -= 1
                    ious[at] = iou
                    places[at] = j
                    reach[at] = reached
                    n += 1
            open_bits = every
            for c in range(n):
                j = places[c]
                free = g_regular[j] & ~matched[j - g0] & open_bits & reach[c]
                if free != none:
                    matched[j - g0] |= free
                    open_bits &= ~free
                    hits |= free
                    _note(took, free, i, j)
                    _give(taker, free, i, j)
            for c in range(n):
                j = places[c]
                free = ~g_regular[j] & open_bits & reach[c]
                if not g_crowd[j]:
                    free &= ~matched[j - g0]
                matched[j - g0] |= free
                open_bits &= ~free
                aside |= free
                _note(took, free, i, j)
            for a in range(area_bits.size):
                if area < area_ranges[a, 0] or area > area_ranges[a, 1]:
                    aside |= area_bits[a] & ~hits
            hit[i] = hits
            ignored[i] = aside
        for g in range(g0, g1):
            where[g_datum[g]] = -1
        for i in range(p_start[k], p_start[k + 1]):
            seen[p_datum[order[i]]] = 0


@kernel
def match_best(
    first: int,
    last: int,
    rule: int,
    ours: Predictions,
    theirs: GroundTruths,
    pairs: Pairs,
    bits: Bits,
    scratch: Scratch,
    out: Outcomes,
) -> None:
    """Match every label of [first, last) by ``LOCKED``, ``POOL`` or ``BEST``.

    With ``LOCKED`` and ``BEST`` a prediction takes the ground truth of its highest IoU, matched
    before or not; with ``POOL`` the best one that is not yet matched.

    Args:
        rule: one of the three.
        ours: predictions.
        theirs: ground truths.
    """
    # Named once: Numba counts a reference at every look into a tuple, which would cost the most.
    p_start, p_score, p_boxes, p_area, p_datum = ours
    g_start, g_boxes, g_area, g_datum, g_crowd, g_regular = theirs
    pair_start, pair_gt, pair_iou = pairs
    thresholds, prefix, area_ranges, area_bits, max_rank = bits
    where, seen, matched, ious, _reach, _places, best_iou, tied, room = scratch
    order, rank, hit, ignored, skipped, tie, taker, took = out

    n_thresholds = thresholds.size
    every = prefix[n_thresholds]
    one = np.uint64(1)
    none = np.uint64(0)
    paired = pair_start.size > 0
    for k in range(first, last):
        g0, g1 = g_start[k], g_start[k + 1]
        p0, p1 = p_start[k], p_start[k + 1]
        crowds = False
        for g in range(g1 - 1, g0 - 1, -1):
            crowds |= g_crowd[g]
            where[g_datum[g]] = g
            matched[g - g0] = none
            ious[g - g0] = 0.0
        for p in range(p0, p1 if rule != POOL else p0):
            # Find the best ground truth of each prediction before matching any.
            xmin, ymin, xmax, ymax = p_boxes[p, 0], p_boxes[p, 1], p_boxes[p, 2], p_boxes[p, 3]
            area = p_area[p]
            datum = p_datum[p]
            best_iou[p - p0] = 0.0
            tied[p - p0] = -1
            item: Any = pair_start[p] if paired else np.int64(where[datum])
            while item < pair_start[p + 1] if paired else 0 <= item < g1 and g_datum[item] == datum:
                if paired:
                    j = np.int64(pair_gt[item])
                    iou = pair_iou[item]
                else:
                    j = item
                    iou = box_iou(xmin, ymin, xmax, ymax, area, g_boxes, g_area, j, False)
                item += 1
                if iou > best_iou[p - p0] and not (rule == BEST and g_crowd[j]):
                    best_iou[p - p0] = iou
                    tied[p - p0] = j
        i = p0
        while i < p1 and rule == LOCKED:
            # Among equal scores the higher IoU goes first; equal ones keep their place.
            c = i + 1
            while c < p1 and p_score[order[c]] == p_score[order[i]]:
                c += 1
            if c - i > 1:
                sort_tied(order, i, c, best_iou, p0, room)
            i = c
        for i in range(p0, p1):
            p = order[i]
            datum = p_datum[p]
            rank[i] = seen[datum]
            seen[datum] += 1
            hit[i] = none
            ignored[i] = every
            if rule == LOCKED:
                tie[i] = best_iou[p - p0]
            elif rule == POOL:
                skipped[i] = where[datum] < 0
            if rank[i] >= max_rank:
                continue
            xmin, ymin, xmax, ymax = p_boxes[p, 0], p_boxes[p, 1], p_boxes[p, 2], p_boxes[p, 3]
            area = p_area[p]
            hits = none
            aside = none
            pick: Any = np.int64(-1)
            assigned = none
            if rule == LOCKED:
                j = tied[p - p0]
                if j >= 0 and p_score[p] > 0.0 and best_iou[p - p0] > ious[j - g0]:
                    pick = j
                    before = prefix[_reached(ious[j - g0], thresholds)]
                    assigned = prefix[_reached(best_iou[p - p0], thresholds)] & ~before
                    ious[j - g0] = best_iou[p - p0]
            elif rule == BEST:
                pick = tied[p - p0]
                if pick >= 0:
                    assigned = prefix[_reached(best_iou[p - p0], thresholds)]
                    assigned &= ~(matched[pick - g0] & g_regular[pick])
                    matched[pick - g0] |= assigned
            else:
                best = -1.0
                pair: Any = pair_start[p] if paired else np.int64(0)
                pairs_end: Any = pair_start[p + 1] if paired else np.int64(0)
                j = np.int64(where[datum])
                while 0 <= j < g1 and g_datum[j] == datum:
                    iou = 0.0
                    if paired and pair < pairs_end and pair_gt[pair] == j:
                        iou = pair_iou[pair]
                        pair += 1
                    if matched[j - g0] == none:
                        if not paired:
                            iou = box_iou(xmin, ymin, xmax, ymax, area, g_boxes, g_area, j, False)
                        if iou > best:
                            best = iou
                            pick = j
                    j += 1
                if pick >= 0:
                    matched[pick - g0] = one  # it has left the pool
                    assigned = prefix[_reached(best, thresholds)]
            if pick >= 0:
                hits = assigned & g_regular[pick]
                aside = assigned & ~g_regular[pick]
                _note(took, assigned, i, pick)
                _give(taker, hits, i, pick)
            if rule == BEST and crowds:
                best = 0.0
                pick = np.int64(-1)
                item = pair_start[p] if paired else np.int64(where[datum])
                while (
                    item < pair_start[p + 1]
                    if paired
                    else 0 <= item < g1 and g_datum[item] == datum
                ):
                    if paired:
                        j = np.int64(pair_gt[item])
                        iou = pair_iou[item]
                    else:
                        j = item
                        iou = box_iou(xmin, ymin, xmax, ymax, area, g_boxes, g_area, j, True)
                    item += 1
                    if g_crowd[j] and iou > best:
                        best = iou
                        pick = j
                if pick >= 0:
                    assigned = prefix[_reached(best, thresholds)] & ~hits & ~aside
                    _note(took, assigned, i, pick)
                    first_in = none
                    if p_score[p] > 0.0:
                        first_in = assigned & g_regular[pick] & ~matched[pick - g0]
                    matched[pick - g0] |= first_in
                    hits |= first_in
                    aside |= assigned & ~first_in
                    _give(taker, first_in, i, pick)
            for a in range(area_bits.size):
                if area < area_ranges[a, 0] or area > area_ranges[a, 1]:
                    aside |= area_bits[a] & ~hits
            hit[i] = hits
            ignored[i] = aside
        for g in range(g0, g1):
            where[g_datum[g]] = -1
        for i in range(p0, p1):
            seen[p_datum[order[i]]] = 0


# Matching at every score. Ground truths take predictions twice. First, in order, each takes the
# free prediction of the highest score that overlaps enough, small ones (also of other labels)
# included: a hit if ground truth and prediction count. Precision is evaluated at these scores.
# Then, with the predictions from each of these scores on, each takes the free prediction that is
# not small with the largest overlap. Only differences of the counts to the previous score are kept,
# so sums give the counts at any score.
# Source: KITTI's ``evaluate_object.cpp``, ``computeStatistics``.

LOW = 27
"""Bits of the lower half of a similarity in :class:`Gains`."""


class Both(NamedTuple):
    """Both sides by label, then datum, then row, and their overlaps."""

    p_start: I64  # [labels + 1], CSR offsets of predictions by label
    p_datum: I32  # [n]
    p_row: I64  # [n], order of equal scores
    score: F64  # [n]
    small: U64  # [n], variants in which a prediction is small
    absorbed: U64  # [n], variants in which it is no false positive
    p_alpha: F64  # [n], or [0] without angles
    g_start: I64  # [labels + 1]
    g_datum: I32  # [m]
    regular: U64  # [m], variants in which a ground truth is not ignored
    g_alpha: F64  # [m] or [0]
    pairs: I64  # [m + 1], offsets of the overlaps of each ground truth
    place: I32  # [k], predictions of any label
    iou: F64  # [k]


class Gains(NamedTuple):
    """Output, by place of predictions."""

    rank: Array  # int32 [n], within (datum, label) by score, from 0
    hit: Array  # uint64 [n], variants in which a prediction is hit at first
    ignored: Array  # uint64 [n], those in which it is neither hit nor miss
    taken: Array  # int32 [variants, n], the ground truth that took it at first; -1 for none
    # float64 [2 or 4, variants, n], change of true and false positives at its score, and of the
    # true positives' similarities of angles in units of 2^-54, split into multiples of 2^27 and the
    # remainder
    gains: Array


@inner
def _first(both: Both, j: int, low: float, at: Any, p0: int, p1: int, used: Array, now: int) -> int:
    """Free prediction of the highest score with enough overlap with a ground truth; -1 for none."""
    score, row, place = both.score, both.p_row, both.place
    best = -1
    for k in range(both.pairs[j], both.pairs[j + 1]):
        p = place[k]
        if both.iou[k] < low or used[p] == now:
            continue
        if (p < p0 or p >= p1) and both.small[p] & at == np.uint64(0):
            continue
        if best < 0 or score[p] > score[best] or (score[p] == score[best] and row[p] < row[best]):
            best = p
    return best


@inner
def _most(
    both: Both, j: int, low: float, at: Any, p0: int, p1: int, lowest: float, used: Array, now: int
) -> int:
    """Free prediction with the largest overlap and a score from ``lowest`` on; -1 for none."""
    row, place, iou = both.p_row, both.place, both.iou
    best = -1
    most = 0.0
    for k in range(both.pairs[j], both.pairs[j + 1]):
        p = place[k]
        if iou[k] < low or used[p] == now or p < p0 or p >= p1:
            continue
        if both.score[p] < lowest or both.small[p] & at != np.uint64(0):
            continue
        if best < 0 or iou[k] > most or (iou[k] == most and row[p] < row[best]):
            best = p
            most = iou[k]
    return best


@kernel
def rematch(first: int, last: int, both: Both, thresholds: F64, out: Gains) -> None:
    """Match every label of [first, last).

    Args:
        thresholds: float64 [variants], IoU from which a pair overlaps enough.
    """
    p_start, p_datum, _p_row, score, small, absorbed, p_alpha = both[:7]
    g_start, g_datum, regular, g_alpha, pair_start, place, iou = both[7:]
    rank, hit, ignored, assigned, gains = out
    used, linked = np.zeros(score.size, np.int64), np.zeros(score.size, np.int64)
    longest = 0
    for label in range(first, last):
        longest = max(longest, p_start[label + 1] - p_start[label])
    order, room = np.empty(longest, np.int32), np.empty(longest, np.int32)
    turned = p_alpha.size > 0
    one = np.uint64(1)
    none = np.uint64(0)
    stamp = 0
    for label in range(first, last):
        p0, p1 = p_start[label], p_start[label + 1]
        g, g_end = g_start[label], g_start[label + 1]
        while p0 < p1:
            datum = p_datum[p0]
            p2 = p0
            while p2 < p1 and p_datum[p2] == datum:
                p2 += 1
            while g < g_end and g_datum[g] < datum:
                g += 1
            g0 = g
            while g < g_end and g_datum[g] == datum:
                g += 1
            many = p2 - p0
            for i in range(many):
                order[i] = p0 + i
            sort_tied(order, 0, many, score, 0, room)
            for i in range(many):
                rank[order[i]] = i
            for v in range(thresholds.size):
                at = one << np.uint64(v)
                low = thresholds[v]
                stamp += 1
                for k in range(pair_start[g0], pair_start[g]):
                    if iou[k] >= low:
                        linked[place[k]] = stamp
                of_pairs = stamp
                for j in range(g0, g):
                    p = _first(both, j, low, at, p0, p2, used, stamp)
                    if p < 0:
                        continue
                    used[p] = stamp
                    if p0 <= p < p2:
                        assigned[v, p] = j
                        if regular[j] & at != none and small[p] & at == none:
                            hit[p] |= at
                        else:
                            ignored[p] |= at
                for p in range(p0, p2):
                    if used[p] != stamp and (small[p] | absorbed[p]) & at != none:
                        ignored[p] |= at
                tp, fp = 0, 0
                high, rest = np.int64(0), np.int64(0)
                i = 0
                while i < many:
                    lowest = score[order[i]]
                    head = i
                    again = False
                    while i < many and score[order[i]] == lowest:
                        again |= linked[order[i]] == of_pairs
                        i += 1
                    true, wrong, more, less = tp, fp, high, rest
                    begin = head
                    if again:
                        stamp += 1
                        begin = 0
                        true, wrong = 0, 0
                        more, less = np.int64(0), np.int64(0)
                    for j in range(g0, g if again else g0):
                        p = _most(both, j, low, at, p0, p2, lowest, used, stamp)
                        if p < 0:
                            continue
                        used[p] = stamp
                        if regular[j] & at != none:
                            true += 1
                            if turned:
                                units = np.int64(
                                    (1.0 + math.cos(g_alpha[j] - p_alpha[p])) * 2.0**53
                                )
                                more += units >> np.int64(LOW)
                                less += units & np.int64((1 << LOW) - 1)
                    for k in range(begin, i):
                        p = order[k]
                        if used[p] != stamp and (small[p] | absorbed[p]) & at == none:
                            wrong += 1
                    gains[0, v, order[head]] = true - tp
                    gains[1, v, order[head]] = wrong - fp
                    if turned:
                        gains[2, v, order[head]] = more - high
                        gains[3, v, order[head]] = less - rest
                    tp, fp, high, rest = true, wrong, more, less
            p0 = p2


# Cross-label matching for the confusion matrix, at all score thresholds (bits of one word) at once:
# predictions and ground truths unmatched by label are matched greedily across the labels of a key,
# predictions by descending score, each with the free ground truth of the largest overlap.


@kernel
def match_across_labels(
    pairs: tuple[I64, I32, I32, F64],
    threshold: float,
    bit: int,
    predictions: tuple[U64, U64, U64, I32],
    g_label: I32,
    g_free: Array,
) -> tuple[Array, Array, Array]:
    """Match leftovers across labels at one IoU threshold.

    Args:
        pairs: start int64 [d + 1], offsets by datum; prediction int32, ground truth int32, IoU
            float64: within a datum by descending score of the prediction, then descending IoU.
        threshold: IoU threshold.
        bit: position of the threshold's bit in ``hit`` and ``ignored``.
        predictions: hit uint64 [n], ignored uint64 [n], score bits uint64 [n] (thresholds the score
            reaches), label int32 [n].
        g_label: int32 [m].
        g_free: uint64 [m], score thresholds at which the ground truth is unmatched; changed.

    Returns:
        prediction int32, ground truth int32, and uint64 score thresholds of the match, one entry
        per event.
    """
    start, prediction, ground_truth, iou = pairs
    hit, ignored, p_bits, p_label = predictions
    mask = np.uint64(1) << np.uint64(bit)
    capacity = 256
    p_out = np.empty(capacity, np.int32)
    g_out = np.empty(capacity, np.int32)
    bits_out = np.empty(capacity, np.uint64)
    n = 0
    for s in range(start.size - 1):
        open_bits = np.uint64(0)
        before = -1
        for i in range(start[s], start[s + 1]):
            p = prediction[i]
            g = ground_truth[i]
            if p != before:
                before = p
                open_bits = p_bits[p]
                if (hit[p] | ignored[p]) & mask != 0:
                    open_bits = np.uint64(0)
            if open_bits == 0 or not iou[i] >= threshold or p_label[p] == g_label[g]:
                continue
            assigned = open_bits & g_free[g]
            if assigned == 0:
                continue
            g_free[g] &= ~assigned
            open_bits &= ~assigned
            if n == capacity:
                capacity *= 2
                p_out = np.concatenate((p_out, np.empty(n, np.int32)))
                g_out = np.concatenate((g_out, np.empty(n, np.int32)))
                bits_out = np.concatenate((bits_out, np.empty(n, np.uint64)))
            p_out[n] = p
            g_out[n] = g
            bits_out[n] = assigned
            n += 1
    return p_out[:n], g_out[:n], bits_out[:n]


# Federated annotation: labels per datum that were annotated, and exhaustively so. Source: LVIS,
# Gupta, Dollar and Girshick 2019, and lvis-api ``LVISEval._prepare``; Open Images' challenge
# evaluators.


@kernel
def judged(
    predictions: tuple[I64, I32],
    ground_truths: tuple[I64, I32],
    listed: tuple[I64, I32],
    flags: tuple[Bools, Bools],
    n_datums: int,
) -> tuple[Array, Array]:
    """Flags of predictions that can be judged, and of those judged leniently.

    Args:
        predictions: CSR offsets by label, int64 [labels + 1], and datums, int32 [n].
        ground_truths: the same; a datum's labels among them are judged there.
        listed: the same of the annotated (label, datum) pairs.
        flags: of each listed pair whether the label is judged there, and whether not every object
            of it is annotated, bool [k] each.

    Returns:
        bool [n] each: the label is judged in the datum; not exhaustively.
    """
    start, datum = predictions
    gt_start, gt_datum = ground_truths
    listed_start, listed_datum = listed
    checked, partial = flags
    allowed, lenient = np.zeros(datum.size, np.bool_), np.zeros(datum.size, np.bool_)
    seen = np.zeros(n_datums, np.uint8)
    for k in range(start.size - 1):
        for i in range(listed_start[k], listed_start[k + 1]):
            seen[listed_datum[i]] |= np.uint8(checked[i]) | np.uint8(partial[i]) << np.uint8(1)
        for i in range(gt_start[k], gt_start[k + 1]):
            seen[gt_datum[i]] |= np.uint8(1)
        for i in range(start[k], start[k + 1]):
            bits = seen[datum[i]]
            allowed[i] = bits & np.uint8(1) != 0
            lenient[i] = bits & np.uint8(2) != 0
        for i in range(listed_start[k], listed_start[k + 1]):
            seen[listed_datum[i]] = 0
        for i in range(gt_start[k], gt_start[k + 1]):
            seen[gt_datum[i]] = 0
    return allowed, lenient


# Types of wrong predictions. Source: D. Bolya, S. Foley, J. Hays, J. Hoffman, "TIDE: A General
# Toolbox for Identifying Object Detection Errors" (ECCV 2020), and its code tidecv 1.0.1.

NONE, CLASS, LOCATION, BOTH, DUPLICATE, BACKGROUND = range(6)
"""Error type of a prediction; ``NONE`` if it hits or does not count."""


class Overlaps(NamedTuple):
    """Overlaps of at least the background threshold, by prediction."""

    start: I64  # int64 [n + 1], offsets of each prediction's overlaps
    truth: I32  # int32 [k], the ground truth
    iou: F64  # float64 [k]


@kernel
def find_errors(
    overlaps: Overlaps,
    judged: U8,
    labels: tuple[I32, I32],
    g_row: I64,
    g_used: Bools,
    background: float,
    positive: float,
) -> tuple[Array, Array, Array]:
    """Classify wrong predictions by the first rule that applies.

    Location: the best IoU with a ground truth of the same label is from ``background`` to
    ``positive``. Class: the best IoU with one of another label reaches ``positive``. Duplicate: the
    best IoU with a used one of the same label does. Background: none is above ``background``.
    Otherwise both.

    Args:
        overlaps: with ground truths that count.
        judged: uint8 [n], 0 for predictions that are not wrong, 1 if no ground truth of the datum
            counts, 2 for the others.
        labels: int32 [n] and [m], of predictions and ground truths.
        g_row: int64 [m], row of each ground truth; of equal overlaps the first one counts.
        g_used: bool [m], whether it was hit.
        background: IoU up to which a prediction counts as background.
        positive: IoU from which a prediction hits.

    Returns:
        int8 [n], error type; int32 [n], the ground truth that a location or class error would hit,
        otherwise -1; int32 [n], the ground truth that determined the type, -1 for none.
    """
    p_label, g_label = labels
    n = judged.size
    kind, target, best = np.zeros(n, np.int8), np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    start, truth, iou = overlaps
    for p in range(judged.size):
        if judged[p] == 0:
            continue
        own, other, used, most = 0.0, 0.0, 0.0, 0.0
        at_own, at_other, at_used, at_most = -1, -1, -1, -1
        for i in range(start[p], start[p + 1]):
            g, v = truth[i], iou[i]
            if v > most or (v == most and at_most >= 0 and g_row[g] < g_row[at_most]):
                most, at_most = v, g
            if g_label[g] != p_label[p]:
                if v > other or (v == other and at_other >= 0 and g_row[g] < g_row[at_other]):
                    other, at_other = v, g
                continue
            if v > own or (v == own and at_own >= 0 and g_row[g] < g_row[at_own]):
                own, at_own = v, g
            if g_used[g] and (
                v > used or (v == used and at_used >= 0 and g_row[g] < g_row[at_used])
            ):
                used, at_used = v, g
        best[p] = at_most
        if judged[p] == 1:  # no ground truth counts in this datum
            kind[p] = 5
        elif background <= own <= positive:
            kind[p], target[p], best[p] = 2, at_own, at_own
        elif other >= positive:
            kind[p], target[p], best[p] = 1, at_other, at_other
        elif used >= positive:
            kind[p], best[p] = 4, at_used
        elif most <= background:
            kind[p] = 5
        else:
            kind[p] = 3
    return kind, target, best


@kernel
def match_first_best(
    order: I32,
    datum: I32,
    overlaps: Overlaps,
    labels: tuple[I32, I32],
    g_row: I64,
    crowd: Bools,
    positive: float,
    cap: int,
) -> tuple[Array, Array]:
    """Match as tidecv does: all labels of a datum under one cap, the first of equal overlaps.

    Args:
        order: int32 [n], predictions by datum, descending score and row.
        datum: int32 [n], datum of each prediction.
        overlaps: IoU with ground truths, and share of the prediction inside crowd regions.
        labels: int32 [n] and [m].
        g_row: int64 [m].
        crowd: bool [m], regions in which predictions do not count.
        positive: IoU from which a prediction hits, and above which it is inside a region.
        cap: most predictions per datum.

    Returns:
        uint8 [n]: 0 for a false positive, 1 for a true one, 2 in a region, 3 beyond the cap; int32
        [m], the prediction that hit each ground truth, -1 for none.
    """
    p_label, g_label = labels
    state = np.zeros(order.size, np.uint8)
    taker = np.full(g_row.size, -1, np.int32)
    start, truth, iou = overlaps
    before, many = -1, 0
    for i in range(order.size):
        p = order[i]
        if datum[p] != before:
            before, many = datum[p], 0
        many += 1
        if many > cap:
            state[p] = 3
            continue
        best, at = 0.0, -1
        within = 0.0
        for j in range(start[p], start[p + 1]):
            g, v = truth[j], iou[j]
            if g_label[g] != p_label[p]:
                continue
            if crowd[g]:
                within = max(within, v)
            elif taker[g] < 0 and (v > best or (v == best and at >= 0 and g_row[g] < g_row[at])):
                best, at = v, g
        if at >= 0 and best >= positive:
            state[p] = 1
            taker[at] = p
        elif within > positive:
            state[p] = 2
    return state, taker


# Cells of confusion matrices in the order of their table. Matches of one IoU threshold, actual and
# predicted label are adjacent, so one row of counters per score threshold suffices, without sorting
# or hashing. The first pass subtracts matches from false positives and negatives and counts cells;
# the second writes them. The unmatched label (null) is the code past the last label.


@kernel
def _cells(
    start: I64,
    order: I32,
    matches: tuple[I32, U64, I64],
    ious: F64,
    score_thresholds: F64,
    counts: tuple[Array, Array, Array],
    write: bool,
    end: Array,
    out: tuple[Array, Array, Array, Array, Array],
) -> None:
    """Run one of the two passes; see :func:`confusion_cells`."""
    predicted, bits, times = matches
    tp, fp, fn = counts
    out_actual, out_predicted, out_iou, out_score, out_count = out
    n_groups, n_labels, n_ious, n_scores = tp.shape
    row = np.empty(n_scores, np.int64)
    one = np.uint64(1)
    n = 0
    segment = 0
    for g in range(n_groups):
        for t in range(n_ious):
            for a in range(n_labels + 1):
                null = a == n_labels
                i = start[segment]
                stop = i if null else start[segment + 1]
                segment += not null
                p = -1  # predicted label of the cell, searched for below
                while p < n_labels:
                    # Next: the next matched predicted label, before it the diagonal, at last null.
                    # Without an actual label every predicted label is checked.
                    following = predicted[order[i]] if i < stop else n_labels
                    if null:
                        following = p + 1
                    elif p < a <= following and write:
                        following = a
                    p = following
                    if null and (p == n_labels or not write):
                        break
                    for s in range(n_scores):
                        if null:
                            row[s] = fp[g, p, t, s]
                        elif write and p == n_labels:
                            row[s] = fn[g, a, t, s]
                        elif write and p == a:
                            row[s] = tp[g, a, t, s]
                        else:
                            row[s] = 0
                    while i < stop and predicted[order[i]] == p:
                        r = order[i]
                        i += 1
                        for w in range(bits.shape[0]):
                            left = bits[w, r]
                            s = 64 * w
                            while left != 0:
                                row[s] += times[r] & -np.int64(left & one)
                                left >>= one
                                s += 1
                    if not write and p < n_labels:
                        for s in range(n_scores):
                            fp[g, p, t, s] -= row[s]
                            fn[g, a, t, s] -= row[s]
                    for s in range(n_scores):
                        if row[s] == 0:
                            continue
                        if write:
                            out_actual[n] = a
                            out_predicted[n] = p
                            out_iou[n] = ious[t]
                            out_score[n] = score_thresholds[s]
                            out_count[n] = row[s]
                        n += 1
        end[g] = n


def confusion_cells(
    meetings: tuple[Array, Array, Array, Array],
    group: Array,
    times: Array,
    ious: Array,
    score_thresholds: Array,
    counts: tuple[Array, Array, Array],
) -> tuple[Array, tuple[Array, Array, Array, Array, Array]]:
    """Cells with a count, by group, IoU threshold, actual, predicted and score threshold.

    Args:
        meetings: matches: actual int32 [n], predicted int32 [n], index of the IoU threshold int32
            [n], bits uint64 [words, n] of their score thresholds.
        group: int32 [n], group of each match, -1 for none.
        times: int64 [n], weight of each.
        ious: float64 [t], thresholds to write.
        score_thresholds: float64 [k], thresholds to write.
        counts: true positives, false positives and false negatives by label, before matches are
            subtracted, int64 [groups, labels, t, k] each.

    Returns:
        int64 [groups], one past each group's last cell; and of each cell actual and predicted
        uint32 (one past the last label for unmatched), IoU threshold and score threshold float64,
        count int64.
    """
    actual, predicted, threshold, bits = meetings
    tables: Any = tuple(np.array(table, np.int64, order="C") for table in counts)
    n_groups, n_labels, n_ious, _ = tables[0].shape
    n_segments = n_groups * n_ious * n_labels
    segment = (group * n_ious + threshold) * n_labels + actual
    segment[group < 0] = n_segments
    start, position = group_by_label(predicted, segment, n_labels, n_segments + 1)
    order = np.empty(position.size, np.int32)
    order[position] = np.arange(position.size, dtype=np.int32)
    end = np.empty(n_groups, np.int64)
    n = 0
    for write in (False, True):
        out = (
            np.empty(n, np.uint32),
            np.empty(n, np.uint32),
            np.empty(n),
            np.empty(n),
            np.empty(n, np.int64),
        )
        matches = predicted, bits, times
        _cells(start, order, matches, ious, score_thresholds, tables, write, end, out)
        n = sum(int(np.count_nonzero(table)) for table in tables) + int(end[-1])
    return end, out
