"""Why a prediction is wrong: what it overlaps, and whether that was still to be had.

Source: D. Bolya, S. Foley, J. Hays, J. Hoffman, "TIDE: A General Toolbox for Identifying Object
Detection Errors" (ECCV 2020), and its code tidecv 1.0.1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

NONE, CLASS, LOCATION, BOTH, DUPLICATE, BACKGROUND = range(6)
"""What is wrong with a prediction; nothing where it hits, or does not count."""


class Overlaps(NamedTuple):
    """Overlaps of at least the background threshold, by prediction.

    Attributes:
        start: int64 [n + 1], offsets of each prediction's overlaps.
        truth: int32 [k], the ground truth.
        iou: float64 [k].
    """

    start: Array
    truth: Array
    iou: Array


@kernel
def _find(
    start: Array,
    truth: Array,
    iou: Array,
    judged: Array,
    p_label: Array,
    g_label: Array,
    g_row: Array,
    g_used: Array,
    background: float,
    positive: float,
    kind: Array,
    target: Array,
    best: Array,
) -> None:
    """See :func:`find_errors`."""
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


def find_errors(
    overlaps: Overlaps,
    judged: Array,
    labels: tuple[Array, Array],
    g_row: Array,
    g_used: Array,
    *,
    background: float,
    positive: float,
) -> tuple[Array, Array, Array]:
    """What is wrong with predictions, by the first rule that holds.

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
    n = judged.size
    kind, target, best = np.zeros(n, np.int8), np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    _find(
        frozen(overlaps.start, np.int64),
        frozen(overlaps.truth, np.int32),
        frozen(overlaps.iou, np.float64),
        frozen(judged, np.uint8),
        frozen(labels[0], np.int32),
        frozen(labels[1], np.int32),
        frozen(g_row, np.int64),
        frozen(g_used, np.bool_),
        background,
        positive,
        kind,
        target,
        best,
    )
    return kind, target, best


@kernel
def _take(
    order: Array,
    datum: Array,
    start: Array,
    truth: Array,
    iou: Array,
    p_label: Array,
    g_label: Array,
    g_row: Array,
    crowd: Array,
    positive: float,
    cap: int,
    state: Array,
    taker: Array,
) -> None:
    """See :func:`match_first_best`."""
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


def match_first_best(
    order: Array,
    datum: Array,
    overlaps: Overlaps,
    labels: tuple[Array, Array],
    g_row: Array,
    crowd: Array,
    *,
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
    state = np.zeros(order.size, np.uint8)
    taker = np.full(g_row.size, -1, np.int32)
    _take(
        frozen(order, np.int32),
        frozen(datum, np.int32),
        frozen(overlaps.start, np.int64),
        frozen(overlaps.truth, np.int32),
        frozen(overlaps.iou, np.float64),
        frozen(labels[0], np.int32),
        frozen(labels[1], np.int32),
        frozen(g_row, np.int64),
        frozen(crowd, np.bool_),
        positive,
        cap,
        state,
        taker,
    )
    return state, taker
