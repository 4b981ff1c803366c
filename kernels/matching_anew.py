"""Matching anew at every score: ground truths take predictions, and what that changes is counted.

Twice the ground truths of a label and datum are walked in their order, regular and ignored ones.
First each takes the free prediction of the highest score that overlaps enough, small ones and those
of other labels that are small among them: a regular ground truth with one that is not small is a
hit. Its score is one at which precision is looked at. Then, with the predictions from each score
on, each takes the free one that it overlaps most and that is not small: how many true and false
positives there are from that score on. Only differences to the score before are kept, so that any
score of any datum can be asked for by a sum. Source: KITTI's ``evaluate_object.cpp``,
``computeStatistics``; it lets a small prediction stand in where there is no other, which changes
neither count.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .jit import inner, kernel
from .matching import sort_tied

Array = np.ndarray[Any, Any]

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
    """What is written, by place of predictions.

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
def _first(k0: int, k1: int, threshold: float, at: Any, p0: int, p1: int,
           place: Array, iou: Array, score: Array, row: Array, small: Array, used: Array,
           stamp: int) -> int:  # fmt: skip
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
def _most(k0: int, k1: int, threshold: float, at: Any, p0: int, p1: int, lowest: float,
          place: Array, iou: Array, score: Array, row: Array, small: Array, used: Array,
          stamp: int) -> int:  # fmt: skip
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
                    p = _first(near[j], near[j + 1], low, at, p0, p2,
                               place, iou, score, p_row, small, used, stamp)  # fmt: skip
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
                        p = _most(near[j], near[j + 1], low, at, p0, p2, lowest,
                                  place, iou, score, p_row, small, used, stamp)  # fmt: skip
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
