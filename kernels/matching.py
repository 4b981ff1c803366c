"""Matching: predictions and ground truths of one datum and label meet, under one of five rules.

Predictions are walked by rank, and all variants (IoU threshold times area range) are bits of one
word, so that one walk settles them together. The rules differ in what a prediction takes:

- ``GREEDY``: at each threshold the best ground truth that is still free; a regular one goes before
  an ignored one, a crowd is never used up. Source: pycocotools ``COCOeval.evaluateImg``.
- ``NEAREST``: the same, but of equal ones the first ground truth. Source: nuscenes-devkit
  ``detection.algo.accumulate``.
- ``LOCKED``: its one best ground truth, free or not (the first among equals). Of predictions by
  score, then IoU, it is a true positive at threshold t when its IoU is at least t and that of no
  prediction before it with the same ground truth is: on the half-open interval (best earlier IoU,
  own IoU]. A score of zero is never a true positive. Source: Valor's detection evaluation
  (valor-lite ``rank_table``).
- ``BEST``: its one best ground truth, free or not (the first among equals): a true positive at the
  thresholds that the IoU reaches and at which no prediction before it is one with that ground
  truth, a false one where one is; an ignored ground truth is never used up. Source: the development
  kits of Pascal VOC, ``VOCevaldet.m``. What neither hits nor is ignored by that is held against the
  crowd regions, which are no such ground truths: the first with a score above zero in one that is
  regular is a true positive, the others are ignored. Source: Open Images' evaluation,
  TensorFlow's ``per_image_evaluation``.
- ``POOL``: the best ground truth that is still in the pool (the first among equals, even at IoU 0);
  both leave it, whatever the threshold. Predictions of a label that the datum's ground truths lack
  are left out of average precision. Source: Valor's metrics document, "Matching Ground Truths with
  Predictions".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .boxes import box_iou
from .jit import inner, kernel

Array = np.ndarray[Any, Any]

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
    """What the bits of a word stand for.

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
    """What becomes of every prediction, in rank order.

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
    """How many thresholds are at most ``iou``."""
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
