"""Matching of predictions and ground truths, error types, and counts of matched labels."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .boxes import box_iou
from .jit import F64, I32, I64, U8, U64, Array, Bools, inner, kernel
from .order import group_by_label

# Matching: predictions and ground truths of one datum and label meet, under one of five rules.
#
# Predictions are walked by rank, and all variants (IoU threshold times area range) are bits of one
# word, so that one walk settles them together. The rules differ in what a prediction takes:
#
# - ``GREEDY``: at each threshold the best ground truth that is still free; a regular one goes
# before   an ignored one, a crowd is never used up. Source: pycocotools ``COCOeval.evaluateImg``. -
# ``NEAREST``: the same, but of equal ones the first ground truth. Source: nuscenes-devkit
# ``detection.algo.accumulate``. - ``LOCKED``: its one best ground truth, free or not (the first
# among equals). Of predictions by   score, then IoU, it is a true positive at threshold t when its
# IoU is at least t and that of no   prediction before it with the same ground truth is: on the
# half-open interval (best earlier IoU,   own IoU]. A score of zero is never a true positive.
# Source: Valor's detection evaluation   (valor-lite ``rank_table``). - ``BEST``: its one best
# ground truth, free or not (the first among equals): a true positive at the   thresholds that the
# IoU reaches and at which no prediction before it is one with that ground   truth, a false one
# where one is; an ignored ground truth is never used up. Source: the development   kits of Pascal
# VOC, ``VOCevaldet.m``. What neither hits nor is ignored by that is held against the   crowd
# regions, which are no such ground truths: the first with a score above zero in one that is
# regular is a true positive, the others are ignored. Source: Open Images' evaluation,
# TensorFlow's ``per_image_evaluation``. - ``POOL``: the best ground truth that is still in the pool
# (the first among equals, even at IoU 0);   both leave it, whatever the threshold. Predictions of a
# label that the datum's ground truths lack   are left out of average precision. Source: Valor's
# metrics document, "Matching Ground Truths with   Predictions".

GREEDY, LOCKED, POOL, BEST, NEAREST = 0, 1, 2, 3, 4


class Predictions(NamedTuple):
    """Predictions by label, then datum, then row.

    Attributes:
        start: int64 [n_labels + 1], CSR offsets by label.
        score: float64 [n].
        boxes: float64 [n, 4].
        area: float64 [n], tested against the area ranges.
        datum: int32 [n].
    """

    start: Array
    score: Array
    boxes: Array
    area: Array
    datum: Array


class GroundTruths(NamedTuple):
    """Ground truths by label, then datum, then row.

    Attributes:
        start: int64 [n_labels + 1], CSR offsets by label.
        boxes: float64 [m, 4].
        area: float64 [m], area of the box (not the annotated one).
        datum: int32 [m].
        crowd: bool [m].
        regular: uint64 [m], variants in which the ground truth is not ignored.
    """

    start: Array
    boxes: Array
    area: Array
    datum: Array
    crowd: Array
    regular: Array


class Pairs(NamedTuple):
    """IoUs of predictions and ground truths of one datum and label, where boxes do not tell them.

    Attributes:
        start: int64 [n + 1], offsets by place of the prediction in its layout; [0] for none given,
            so that IoUs are those of the boxes.
        ground_truth: int32 [k], place in the layout of ground truths, ascending in a prediction.
        iou: float64 [k]; of pairs that are not there it counts as 0.
    """

    start: Array
    ground_truth: Array
    iou: Array


class Bits(NamedTuple):
    """Meaning of the bits of a word.

    Attributes:
        thresholds: float64 [t], ascending.
        prefix: uint64 [t + 1], variants whose threshold is among the first c thresholds.
        area_ranges: float64 [a, 2], both ends included.
        area_bits: uint64 [a], variants of that area range.
        max_rank: predictions of rank >= this in their (datum, label) are ignored throughout.
    """

    thresholds: Array
    prefix: Array
    area_ranges: Array
    area_bits: Array
    max_rank: int


class Scratch(NamedTuple):
    """Room to work in, of one thread; ``most`` ground truths of a label there are, at most.

    Attributes:
        where: int32 [n_datums], all -1 between calls: first ground truth of each datum.
        seen: int32 [n_datums], all 0 between calls: predictions of each datum so far.
        matched: uint64 [most], variants in which a ground truth is taken.
        ious: float64 [most], best IoU of the predictions before, or those of candidates.
        reach: uint64 [most], variants that candidates reach.
        places: int64 [most], candidates.
        own: float64 [most predictions of a label], best IoU of each, under ``LOCKED`` and ``BEST``.
        tied: int64 of that size, whose it is, -1 for nobody's.
        room: int32 of that size.
    """

    where: Array
    seen: Array
    matched: Array
    ious: Array
    reach: Array
    places: Array
    own: Array
    tied: Array
    room: Array


class Outcomes(NamedTuple):
    """Outcome of every prediction, in rank order.

    Attributes:
        order: int32 [n], place in the layout of the i-th ranked prediction; ``LOCKED`` brings runs
            of equal score into the order of descending IoU.
        rank: int32 [n], rank within (datum, label), from 0.
        hit: uint64 [n], variants in which the prediction hit a regular ground truth.
        ignored: uint64 [n], variants in which it counts as neither hit nor miss.
        skipped: bool [n] under ``POOL``, else [0]: predictions that average precision leaves out,
            whose datum has no ground truth of the label.
        tie: float64 [n] under ``LOCKED``, else [0]: what orders equal scores before datum and row,
            higher first.
        taker: int32 [t, m], the ranked prediction that hit each ground truth in the first area
            range, by threshold; or [0, 0].
        took: int32 [variants of the word, n] filled with -1, the ground truth that each ranked
            prediction took, regular or ignored; or [0, 0].
    """

    order: Array
    rank: Array
    hit: Array
    ignored: Array
    skipped: Array
    tie: Array
    taker: Array
    took: Array


@inner
def _note(took: Array, taken: Any, i: int, ground_truth: int) -> None:
    """Write which ground truth prediction ``i`` took in the variants ``taken``, where asked for."""
    for v in range(took.shape[0]):
        if (taken >> np.uint64(v)) & np.uint64(1):
            took[v, i] = ground_truth


@inner
def _give(taker: Array, hits: Any, i: int, ground_truth: int) -> None:
    """Write at which thresholds prediction ``i`` hit a ground truth, where asked for."""
    for t in range(taker.shape[0]):
        if (hits >> np.uint64(t)) & np.uint64(1):
            taker[t, ground_truth] = i


@inner
def _reached(iou: float, thresholds: Array) -> int:
    """Count the thresholds at most ``iou``."""
    reached = 0
    while reached < thresholds.size and iou >= thresholds[reached]:
        reached += 1
    return reached


@inner
def sort_tied(order: Array, first: int, last: int, own: Array, base: int, room: Array) -> None:
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
    """Match every label of [first, last).

    Args:
        first: first label.
        last: one past the last label.
        rule: ``GREEDY``, ``NEAREST``, ``LOCKED``, ``POOL`` or ``BEST``.
        ours: predictions.
        theirs: ground truths.
        pairs: their IoUs, where boxes do not tell them.
        bits: what the bits of words stand for.
        scratch: room to work in.
        out: written.
    """
    # Named once: Numba counts a reference at every look into a tuple, which would cost the most.
    p_start, p_score, p_boxes, p_area, p_datum = ours
    g_start, g_boxes, g_area, g_datum, g_crowd, g_regular = theirs
    pair_start, pair_gt, pair_iou = pairs
    thresholds, prefix, area_ranges, area_bits, max_rank = bits
    where, seen, matched, ious, reach, places, own, tied, room = scratch
    order, rank, hit, ignored, skipped, tie, taker, took = out

    n_thresholds = thresholds.size
    every = prefix[n_thresholds]
    one = np.uint64(1)
    none = np.uint64(0)
    given = pair_start.size > 0
    for k in range(first, last):
        g0, g1 = g_start[k], g_start[k + 1]
        p0, p1 = p_start[k], p_start[k + 1]
        crowds = False
        for g in range(g1 - 1, g0 - 1, -1):
            crowds |= g_crowd[g]
            where[g_datum[g]] = g
            matched[g - g0] = none
            ious[g - g0] = 0.0
        for p in range(p0, p1 if rule in (LOCKED, BEST) else p0):
            # The best ground truth of each prediction, before any is walked.
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
                if iou > own[p - p0] and not (rule == BEST and g_crowd[j]):
                    own[p - p0] = iou
                    tied[p - p0] = j
        i = p0
        while i < p1 and rule == LOCKED:
            # Among equal scores the higher IoU goes first; equal ones keep their place.
            c = i + 1
            while c < p1 and p_score[order[c]] == p_score[order[i]]:
                c += 1
            if c - i > 1:
                sort_tied(order, i, c, own, p0, room)
            i = c
        for i in range(p0, p1):
            p = order[i]
            datum = p_datum[p]
            rank[i] = seen[datum]
            seen[datum] += 1
            hit[i] = none
            ignored[i] = every
            if rule == LOCKED:
                tie[i] = own[p - p0]
            elif rule == POOL:
                skipped[i] = where[datum] < 0
            if rank[i] >= max_rank:
                continue
            xmin, ymin, xmax, ymax = p_boxes[p, 0], p_boxes[p, 1], p_boxes[p, 2], p_boxes[p, 3]
            area = p_area[p]
            hits = none
            aside = none
            if rule in (GREEDY, NEAREST):
                # Candidates by descending IoU; of equal ones the later ground truth comes first,
                # or the earlier one.
                n = 0
                near = pair_start[p] if given else np.int64(where[datum])
                while (
                    near < pair_start[p + 1] if given else 0 <= near < g1 and g_datum[near] == datum
                ):
                    if given:
                        j = np.int64(pair_gt[near])
                        iou = pair_iou[near]
                    else:
                        j = near
                        iou = box_iou(xmin, ymin, xmax, ymax, area, g_boxes, g_area, j, g_crowd[j])
                    near += 1
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
                wanted = every
                for c in range(n):
                    j = places[c]
                    free = g_regular[j] & ~matched[j - g0] & wanted & reach[c]
                    if free != none:
                        matched[j - g0] |= free
                        wanted &= ~free
                        hits |= free
                        _note(took, free, i, j)
                        _give(taker, free, i, j)
                for c in range(n):
                    j = places[c]
                    free = ~g_regular[j] & wanted & reach[c]
                    if not g_crowd[j]:
                        free &= ~matched[j - g0]
                    matched[j - g0] |= free
                    wanted &= ~free
                    aside |= free
                    _note(took, free, i, j)
            else:
                pick: Any = np.int64(-1)
                taken = none
                if rule == LOCKED:
                    j = tied[p - p0]
                    if j >= 0 and p_score[p] > 0.0 and own[p - p0] > ious[j - g0]:
                        pick = j
                        before = prefix[_reached(ious[j - g0], thresholds)]
                        taken = prefix[_reached(own[p - p0], thresholds)] & ~before
                        ious[j - g0] = own[p - p0]
                elif rule == BEST:
                    pick = tied[p - p0]
                    if pick >= 0:
                        taken = prefix[_reached(own[p - p0], thresholds)]
                        taken &= ~(matched[pick - g0] & g_regular[pick])
                        matched[pick - g0] |= taken
                else:
                    best = -1.0
                    pair: Any = pair_start[p] if given else np.int64(0)
                    pairs_end: Any = pair_start[p + 1] if given else np.int64(0)
                    j = np.int64(where[datum])
                    while 0 <= j < g1 and g_datum[j] == datum:
                        iou = 0.0
                        if given and pair < pairs_end and pair_gt[pair] == j:
                            iou = pair_iou[pair]
                            pair += 1
                        if matched[j - g0] == none:
                            if not given:
                                iou = box_iou(
                                    xmin, ymin, xmax, ymax, area, g_boxes, g_area, j, False
                                )
                            if iou > best:
                                best = iou
                                pick = j
                        j += 1
                    if pick >= 0:
                        matched[pick - g0] = one  # it has left the pool
                        taken = prefix[_reached(best, thresholds)]
                if pick >= 0:
                    hits = taken & g_regular[pick]
                    aside = taken & ~g_regular[pick]
                    _note(took, taken, i, pick)
                    _give(taker, hits, i, pick)
                if rule == BEST and crowds:
                    best = 0.0
                    pick = np.int64(-1)
                    near = pair_start[p] if given else np.int64(where[datum])
                    while (
                        near < pair_start[p + 1]
                        if given
                        else 0 <= near < g1 and g_datum[near] == datum
                    ):
                        if given:
                            j = np.int64(pair_gt[near])
                            iou = pair_iou[near]
                        else:
                            j = near
                            iou = box_iou(xmin, ymin, xmax, ymax, area, g_boxes, g_area, j, True)
                        near += 1
                        if g_crowd[j] and iou > best:
                            best = iou
                            pick = j
                    if pick >= 0:
                        taken = prefix[_reached(best, thresholds)] & ~hits & ~aside
                        _note(took, taken, i, pick)
                        first_in = none
                        if p_score[p] > 0.0:
                            first_in = taken & g_regular[pick] & ~matched[pick - g0]
                        matched[pick - g0] |= first_in
                        hits |= first_in
                        aside |= taken & ~first_in
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


# Matching anew at every score: ground truths take predictions, and what that changes is counted.
#
# Twice the ground truths of a label and datum are walked in their order, regular and ignored ones.
# First each takes the free prediction of the highest score that overlaps enough, small ones and
# those of other labels that are small among them: a regular ground truth with one that is not small
# is a hit. Its score is one at which precision is looked at. Then, with the predictions from each
# score on, each takes the free one that it overlaps most and that is not small: how many true and
# false positives there are from that score on. Only differences to the score before are kept, so
# that any score of any datum can be asked for by a sum. Source: KITTI's ``evaluate_object.cpp``,
# ``computeStatistics``; it lets a small prediction stand in where there is no other, which changes
# neither count.

LOW = 27
"""Bits of the lower half of a similarity, as :class:`Gains` splits it."""


class Anew(NamedTuple):
    """Both sides by label, then datum, then row, and what overlaps.

    Attributes:
        p_start: int64 [labels + 1], CSR offsets of predictions by label.
        p_datum: int32 [n].
        p_row: int64 [n], which of equal scores comes first.
        score: float64 [n].
        small: uint64 [n], variants in which a prediction is small.
        absorbed: uint64 [n], variants in which it is no false positive.
        p_alpha: float64 [n], or [0] where angles do not matter.
        g_start: int64 [labels + 1].
        g_datum: int32 [m].
        regular: uint64 [m], variants in which a ground truth is not ignored.
        g_alpha: float64 [m] or [0].
        near: int64 [m + 1], offsets of what overlaps each ground truth.
        place: int32 [k], predictions of any label.
        iou: float64 [k].
    """

    p_start: Array
    p_datum: Array
    p_row: Array
    score: Array
    small: Array
    absorbed: Array
    p_alpha: Array
    g_start: Array
    g_datum: Array
    regular: Array
    g_alpha: Array
    near: Array
    place: Array
    iou: Array


class Gains(NamedTuple):
    """Output, by place of predictions.

    Attributes:
        rank: int32 [n], within (datum, label) by score, from 0.
        hit: uint64 [n], variants in which a prediction is hit at first.
        ignored: uint64 [n], those in which it is neither hit nor miss.
        taken: int32 [variants, n], the ground truth that took it at first; -1 for none.
        gains: float64 [2 or 4, variants, n], true and false positives from its score on beside
            those before, and halves of the true positives' similarities of angles in units of
            2^-54: multiples of 2^27 of these, and what is left.
    """

    rank: Array
    hit: Array
    ignored: Array
    taken: Array
    gains: Array


@inner
def _first(
    k0: int,
    k1: int,
    threshold: float,
    at: Any,
    p0: int,
    p1: int,
    place: Array,
    iou: Array,
    score: Array,
    row: Array,
    small: Array,
    used: Array,
    stamp: int,
) -> int:
    """The free prediction of the highest score that overlaps a ground truth enough; -1 for none."""
    best = -1
    for k in range(k0, k1):
        p = place[k]
        if iou[k] < threshold or used[p] == stamp:
            continue
        if (p < p0 or p >= p1) and small[p] & at == np.uint64(0):
            continue
        if best < 0 or score[p] > score[best] or (score[p] == score[best] and row[p] < row[best]):
            best = p
    return best


@inner
def _most(
    k0: int,
    k1: int,
    threshold: float,
    at: Any,
    p0: int,
    p1: int,
    lowest: float,
    place: Array,
    iou: Array,
    score: Array,
    row: Array,
    small: Array,
    used: Array,
    stamp: int,
) -> int:
    """The free one of a score from ``lowest`` on that is overlapped most; -1 for none."""
    best = -1
    most = 0.0
    for k in range(k0, k1):
        p = place[k]
        if iou[k] < threshold or used[p] == stamp or p < p0 or p >= p1:
            continue
        if score[p] < lowest or small[p] & at != np.uint64(0):
            continue
        if best < 0 or iou[k] > most or (iou[k] == most and row[p] < row[best]):
            best = p
            most = iou[k]
    return best


@kernel
def match_anew(first: int, last: int, both: Anew, thresholds: Array, out: Gains) -> None:
    """Match every label of [first, last).

    Args:
        first: first label.
        last: one past the last.
        both: the sides.
        thresholds: float64 [variants], IoU from which a pair overlaps enough.
        out: written.
    """
    p_start, p_datum, p_row, score, small, absorbed, p_alpha = both[:7]
    g_start, g_datum, regular, g_alpha, near, place, iou = both[7:]
    rank, hit, ignored, taken, gains = out
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
                for k in range(near[g0], near[g]):
                    if iou[k] >= low:
                        linked[place[k]] = stamp
                of_pairs = stamp
                for j in range(g0, g):
                    p = _first(
                        near[j],
                        near[j + 1],
                        low,
                        at,
                        p0,
                        p2,
                        place,
                        iou,
                        score,
                        p_row,
                        small,
                        used,
                        stamp,
                    )
                    if p < 0:
                        continue
                    used[p] = stamp
                    if p0 <= p < p2:
                        taken[v, p] = j
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
                        p = _most(
                            near[j],
                            near[j + 1],
                            low,
                            at,
                            p0,
                            p2,
                            lowest,
                            place,
                            iou,
                            score,
                            p_row,
                            small,
                            used,
                            stamp,
                        )
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


# Cross-label matching for the confusion matrix, all score thresholds at once.
#
# What label-wise matching leaves over, at a given IoU and score threshold, is matched greedily
# across the labels of a key: leftover predictions by descending score take the leftover ground
# truth they overlap most. Score thresholds are bits of one word: a prediction takes part where its
# score reaches the threshold, a ground truth is left over where its own match does not.


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
        predictions: hit uint64 [n], ignored uint64 [n], score bits uint64 [n] (thresholds the
            score reaches), label int32 [n].
        g_label: int32 [m].
        g_free: uint64 [m], thresholds at which the ground truth is left over; used up here.

    Returns:
        prediction int32, ground truth int32, and uint64 score thresholds at which they met, one
        entry per event.
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
        wanted = np.uint64(0)
        before = -1
        for i in range(start[s], start[s + 1]):
            p = prediction[i]
            g = ground_truth[i]
            if p != before:
                before = p
                wanted = p_bits[p]
                if (hit[p] | ignored[p]) & mask != 0:
                    wanted = np.uint64(0)
            if wanted == 0 or not iou[i] >= threshold or p_label[p] == g_label[g]:
                continue
            taken = wanted & g_free[g]
            if taken == 0:
                continue
            g_free[g] &= ~taken
            wanted &= ~taken
            if n == capacity:
                capacity *= 2
                p_out = np.concatenate((p_out, np.empty(n, np.int32)))
                g_out = np.concatenate((g_out, np.empty(n, np.int32)))
                bits_out = np.concatenate((bits_out, np.empty(n, np.uint64)))
            p_out[n] = p
            g_out[n] = g
            bits_out[n] = taken
            n += 1
    return p_out[:n], g_out[:n], bits_out[:n]


# Federated annotation: which labels of which datum were looked for, and which exhaustively.
#
# Source: LVIS, Gupta, Dollar and Girshick 2019, and lvis-api ``LVISEval._prepare``; Open Images'
# challenge evaluators likewise.


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
        ground_truths: likewise; a datum's labels among them are judged there.
        listed: (label, datum) pairs that are said something of, likewise.
        flags: of each pair whether the label is judged there, and whether not every object of it
            is annotated, bool [k] each.
        n_datums: number of datums.

    Returns:
        bool [n] each: whether the label is judged in the datum; whether not exhaustively.
    """
    start, datum = predictions
    gt_start, gt_datum = ground_truths
    listed_start, listed_datum = listed
    checked, partial = flags
    kept, lenient = np.zeros(datum.size, np.bool_), np.zeros(datum.size, np.bool_)
    seen = np.zeros(n_datums, np.uint8)
    for k in range(start.size - 1):
        for i in range(listed_start[k], listed_start[k + 1]):
            seen[listed_datum[i]] |= np.uint8(checked[i]) | np.uint8(partial[i]) << np.uint8(1)
        for i in range(gt_start[k], gt_start[k + 1]):
            seen[gt_datum[i]] |= np.uint8(1)
        for i in range(start[k], start[k + 1]):
            bits = seen[datum[i]]
            kept[i] = bits & np.uint8(1) != 0
            lenient[i] = bits & np.uint8(2) != 0
        for i in range(listed_start[k], listed_start[k + 1]):
            seen[listed_datum[i]] = 0
        for i in range(gt_start[k], gt_start[k + 1]):
            seen[gt_datum[i]] = 0
    return kept, lenient


# Why a prediction is wrong: what it overlaps, and whether that was still to be had.
#
# Source: D. Bolya, S. Foley, J. Hays, J. Hoffman, "TIDE: A General Toolbox for Identifying Object
# Detection Errors" (ECCV 2020), and its code tidecv 1.0.1.

NONE, CLASS, LOCATION, BOTH, DUPLICATE, BACKGROUND = range(6)
"""What is wrong with a prediction; nothing where it hits, or does not count."""


class Overlaps(NamedTuple):
    """Overlaps of at least the background threshold, by prediction.

    Attributes:
        start: int64 [n + 1], offsets of each prediction's overlaps.
        truth: int32 [k], the ground truth.
        iou: float64 [k].
    """

    start: I64
    truth: I32
    iou: F64


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

    Location: the best IoU with a ground truth of the own label lies from ``background`` to
    ``positive``. Class: that with one of another label reaches ``positive``. Duplicate: that with a
    used one of the own label does. Background: none is above ``background``. Else both.

    Args:
        overlaps: of at least ``background`` with ground truths that count.
        judged: uint8 [n], 0 for predictions that are not wrong, 1 where no ground truth of the
            datum counts, 2 for the others.
        labels: int32 [n] and [m], of predictions and ground truths.
        g_row: int64 [m], row of each ground truth; of equal overlaps the first one counts.
        g_used: bool [m], whether it was hit.
        background: IoU up to which nothing was seen.
        positive: IoU from which a prediction hits.

    Returns:
        int8 [n], what is wrong; int32 [n], the ground truth that a location or class error would
        hit, else -1; int32 [n], the ground truth that tells it, -1 for none.
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
        if judged[p] == 1:  # nothing to be found in this datum
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
        overlaps: with ground truths and crowd regions, of these the share of the prediction.
        labels: int32 [n] and [m].
        g_row: int64 [m].
        crowd: bool [m], regions in which predictions are left out of the count.
        positive: IoU from which a prediction hits, and above which it lies in a region.
        cap: predictions of a datum that are looked at.

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


# Cells of confusion matrices, counted and written in the order their frame stands in.
#
# Meetings of one IoU threshold, ground-truth label and predicted label stand together, so a row of
# counters, one a score threshold, is filled and emptied for each such cell; no key is sorted or
# hashed. A first walk takes the meetings out of the false positives and negatives and counts the
# cells, a second writes them: group, IoU threshold, actual, predicted, score threshold, with the
# true positives at their place and the unmatched (null, the code past the last label) at the end.


@kernel
def _cells(
    start: I64,
    order: I32,
    predicted: I32,
    bits: U64,
    times: I64,
    ious: F64,
    score_thresholds: F64,
    tp: Array,
    fp: Array,
    fn: Array,
    row: Array,
    write: bool,
    end: Array,
    out_actual: Array,
    out_predicted: Array,
    out_iou: Array,
    out_score: Array,
    out_count: Array,
) -> None:
    """One of the two walks; see :func:`confusion_cells`."""
    n_groups, n_labels, n_ious, n_scores = tp.shape
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
                p = -1  # the cell's predicted label; the next one that may hold something is found
                while p < n_labels:
                    # Next: the next predicted label met, before it the diagonal, at last null.
                    # Without an actual label every predicted label is looked at.
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
        meetings: actual int32 [n], predicted int32 [n], index of the IoU threshold int32 [n], bits
            uint64 [words, n] of the score thresholds at which they met.
        group: int32 [n], group of each meeting, -1 for none.
        times: int64 [n], how often each counts.
        ious: float64 [t], as they are to be written.
        score_thresholds: float64 [k], likewise.
        counts: true positives, false positives and false negatives by label, before meetings are
            taken out, int64 [groups, labels, t, k] each.

    Returns:
        int64 [groups], one past each group's last cell; and of each cell actual and predicted
        uint32 (one past the last label for unmatched), IoU threshold and score threshold float64,
        count int64.
    """
    actual, predicted, threshold, bits = meetings
    tp, fp, fn = (np.array(table, np.int64, order="C") for table in counts)
    n_groups, n_labels, n_ious, n_scores = tp.shape
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
        _cells(
            start,
            order,
            predicted,
            bits,
            times,
            ious,
            score_thresholds,
            tp,
            fp,
            fn,
            np.empty(n_scores, np.int64),
            write,
            end,
            *out,
        )
        n = sum(int(np.count_nonzero(table)) for table in (tp, fp, fn)) + int(end[-1])
    return end, out
