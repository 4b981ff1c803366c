"""Close pairs: every prediction and ground truth of one datum and label key that overlap enough.

Detailed curves, the confusion matrix and outcomes all start from these, whatever the labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .boxes import box_iou
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
    """Pairs of the datums [first, last), in growing arrays."""
    capacity = 1024
    p_out = np.empty(capacity, np.int32)
    g_out = np.empty(capacity, np.int32)
    iou_out = np.empty(capacity, np.float64)
    n = 0
    for d in range(first, last):
        for a in range(p_start[d], p_start[d + 1]):
            p = p_place[a]
            xmin, ymin, xmax, ymax = p_boxes[p, 0], p_boxes[p, 1], p_boxes[p, 2], p_boxes[p, 3]
            area = p_area[p]
            for b in range(g_start[d], g_start[d + 1]):
                g = g_place[b]
                if p_key[p] != g_key[g]:
                    continue
                iou = box_iou(xmin, ymin, xmax, ymax, area, g_boxes, g_area, g, False)
                if iou < lowest:
                    continue
                if n == capacity:
                    capacity *= 2
                    p_out = np.concatenate((p_out, np.empty(n, np.int32)))
                    g_out = np.concatenate((g_out, np.empty(n, np.int32)))
                    iou_out = np.concatenate((iou_out, np.empty(n, np.float64)))
                p_out[n] = p
                g_out[n] = g
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
    predictions: tuple[Array, Array, Array, Array, Array],
    ground_truths: tuple[Array, Array, Array, Array, Array],
    lowest: float,
) -> tuple[Array, Array, Array]:
    """Pairs with IoU >= ``lowest`` and the same label key, datum by datum.

    Args:
        first: first datum.
        last: one past the last datum.
        predictions: start int64 [n_datums + 1] and place int32 [n] as :func:`rows_by_datum`
            gives them, boxes float64 [n, 4], area float64 [n], key code int32 [n].
        ground_truths: the same of the ground truths.
        lowest: smallest IoU kept.

    Returns:
        prediction int32, ground truth int32 and IoU float64, one entry per pair; by datum, then
        prediction place, then ground truth place.
    """

    def prepared(side: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, ...]:
        dtypes = (np.int64, np.int32, np.float64, np.float64, np.int32)
        return tuple(frozen(a, t) for a, t in zip(side, dtypes, strict=True))

    p, g, iou = _close(first, last, *prepared(predictions), *prepared(ground_truths), lowest)
    return p, g, iou
