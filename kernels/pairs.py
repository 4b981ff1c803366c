"""Close pairs: every prediction and ground truth of one datum and label key that overlap enough.

Detailed curves, the confusion matrix and outcomes all start from these, whatever the labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _by_datum(datum: Array, n_datums: int) -> Any:
    """CSR offsets by datum and the places of its rows, in order."""
    start = np.zeros(n_datums + 1, np.int64)
    for i in range(datum.size):
        start[datum[i] + 1] += 1
    for d in range(n_datums):
        start[d + 1] += start[d]
    free = start[:-1].copy()
    place = np.empty(datum.size, np.int32)
    for i in range(datum.size):
        place[free[datum[i]]] = i
        free[datum[i]] += 1
    return start, place


@kernel
def _close(
    first: int,
    last: int,
    p_start: Array,
    p_place: Array,
    p_boxes: Array,
    p_area: Array,
    p_key: Array,
    g_start: Array,
    g_place: Array,
    g_boxes: Array,
    g_area: Array,
    g_key: Array,
    lowest: float,
) -> Any:
    """Pairs of the datums [first, last), in growing arrays; ground truths stand by datum."""
    capacity = 1024
    p_out = np.empty(capacity, np.int32)
    g_out = np.empty(capacity, np.int32)
    iou_out = np.empty(capacity, np.float64)
    n = 0
    for d in range(first, last):
        b0, b1 = g_start[d], g_start[d + 1]
        if b0 == b1:
            continue
        for i in range(p_start[d], p_start[d + 1]):
            a = p_place[i]
            xmin, ymin, xmax, ymax = p_boxes[a, 0], p_boxes[a, 1], p_boxes[a, 2], p_boxes[a, 3]
            area = p_area[a]
            for b in range(b0, b1):
                w = min(xmax, g_boxes[b, 2]) - max(xmin, g_boxes[b, 0])
                h = min(ymax, g_boxes[b, 3]) - max(ymin, g_boxes[b, 1])
                # Most pairs end here, without a division: overlap can be at most the smaller area.
                if w <= 0.0 or h <= 0.0 or w * h < lowest * 0.999 * max(area, g_area[b]):
                    continue
                iou = w * h / (area + g_area[b] - w * h)
                if not iou >= lowest or p_key[a] != g_key[b]:  # NaN is no overlap
                    continue
                if n == capacity:
                    capacity *= 2
                    p_out = np.concatenate((p_out, np.empty(n, np.int32)))
                    g_out = np.concatenate((g_out, np.empty(n, np.int32)))
                    iou_out = np.concatenate((iou_out, np.empty(n, np.float64)))
                p_out[n] = a
                g_out[n] = g_place[b]
                iou_out[n] = iou
                n += 1
    return p_out[:n], g_out[:n], iou_out[:n]


def rows_by_datum(datum: Array, n_datums: int) -> tuple[Array, Array]:
    """CSR offsets int64 [n_datums + 1] and places int32 [n] of each datum's rows, in order.

    Args:
        datum: int32 [n], datum codes.
        n_datums: number of datums.
    """
    start, place = _by_datum(frozen(datum, np.int32), n_datums)
    return start, place


def close_pairs(
    first: int,
    last: int,
    predictions: tuple[Array, ...],
    ground_truths: tuple[Array, ...],
    lowest: float,
) -> tuple[Array, Array, Array]:
    """Pairs with IoU >= ``lowest`` and the same label key, datum by datum.

    IoU is that of :func:`evalengine.kernels.boxes.box_iou`, no ground truth being a crowd.

    Args:
        first: first datum.
        last: one past the last datum.
        predictions: start int64 [n_datums + 1] and place int32 [n] as :func:`rows_by_datum` gives
            them; boxes float64 [n, 4], area float64 [n] and key int32 [n] by place: each is read
            once, so laying them out by datum would cost more than it saves.
        ground_truths: as :func:`by_datum` gives them.
        lowest: smallest IoU kept, above 0.

    Returns:
        prediction int32, ground truth int32 and IoU float64, one entry per pair; by datum, then
        prediction place, then ground truth place.
    """
    start, place, boxes, area, key = predictions
    p, g, iou = _close(
        first,
        last,
        frozen(start, np.int64),
        frozen(place, np.int32),
        frozen(boxes, np.float64),
        frozen(area, np.float64),
        frozen(key, np.int32),
        *ground_truths,
        lowest,
    )
    return p, g, iou


def by_datum(
    datum: Array, n_datums: int, boxes: Array, area: Array, key: Array
) -> tuple[Array, ...]:
    """One side's rows laid out by datum, as :func:`close_pairs` wants them.

    Args:
        datum: int32 [n], datum codes.
        n_datums: number of datums.
        boxes: float64 [n, 4].
        area: float64 [n].
        key: int32 [n], label key codes.

    Returns:
        start int64 [n_datums + 1]; place int32 [n]; boxes, area and key in that order.
    """
    start, place = rows_by_datum(datum, n_datums)
    return (
        frozen(start, np.int64),
        frozen(place, np.int32),
        frozen(boxes[place], np.float64),
        frozen(area[place], np.float64),
        frozen(key[place], np.int32),
    )
