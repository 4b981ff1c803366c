"""Candidates: pairs of shapes that may overlap enough, told by bounding boxes and areas alone.

Two shapes share at most the smaller of their areas and of what their bounding boxes share, so that
their IoU is at most s / (area + area' - s), or s / area of the detection against a crowd region.
Intersecting polygons or masks costs far more, and most pairs end here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel
from .pairs import rows_by_datum

Array = np.ndarray[Any, Any]


@kernel
def _candidates(
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
    g_crowd: Array,
    lowest: float,
) -> Any:
    """Pairs of the datums [first, last), in growing arrays; ground truths stand by datum."""
    capacity = 1024
    p_out = np.empty(capacity, np.int32)
    g_out = np.empty(capacity, np.int32)
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
                if p_key[a] != g_key[b]:
                    continue
                w = min(xmax, g_boxes[b, 2]) - max(xmin, g_boxes[b, 0])
                h = min(ymax, g_boxes[b, 3]) - max(ymin, g_boxes[b, 1])
                if w <= 0.0 or h <= 0.0:
                    continue
                most = min(w * h, area, g_area[b])
                union = area if g_crowd[b] else area + g_area[b] - most
                if most <= 0.0 or most < lowest * union:
                    continue
                if n == capacity:
                    capacity *= 2
                    p_out = np.concatenate((p_out, np.empty(n, np.int32)))
                    g_out = np.concatenate((g_out, np.empty(n, np.int32)))
                p_out[n] = a
                g_out[n] = g_place[b]
                n += 1
    return p_out[:n], g_out[:n]


def candidates(
    first: int,
    last: int,
    predictions: tuple[Array, ...],
    ground_truths: tuple[Array, ...],
    lowest: float,
) -> tuple[Array, Array]:
    """Pairs of one datum and key whose IoU may reach ``lowest``, datum by datum.

    Args:
        first: first datum.
        last: one past the last datum.
        predictions: start int64 [n_datums + 1] and place int32 [n] by datum; boxes float64 [n, 4],
            area float64 [n] and key int32 [n] by place.
        ground_truths: as :func:`truths_by_datum` gives them.
        lowest: smallest IoU of interest, some less than which is kept for rounding; 0 for every
            pair that may overlap at all.

    Returns:
        prediction int32 and ground truth int32; by datum, then prediction, then ground truth.
    """
    start, place, boxes, area, key = predictions
    p, g = _candidates(
        first,
        last,
        frozen(start, np.int64),
        frozen(place, np.int32),
        frozen(boxes, np.float64),
        frozen(area, np.float64),
        frozen(key, np.int32),
        *ground_truths,
        lowest * (1 - 1e-9),
    )
    return p, g


def truths_by_datum(
    datum: Array, n_datums: int, boxes: Array, area: Array, key: Array, crowd: Array
) -> tuple[Array, ...]:
    """Ground truths laid out by datum, as :func:`candidates` wants them.

    Args:
        datum: int32 [m], datum codes.
        n_datums: number of datums.
        boxes: float64 [m, 4], bounding boxes.
        area: float64 [m], areas of the shapes.
        key: int32 [m], rows of different keys never meet.
        crowd: bool [m], regions of many objects.
    """
    start, place = rows_by_datum(datum, n_datums)
    return (
        frozen(start, np.int64),
        frozen(place, np.int32),
        frozen(boxes[place], np.float64),
        frozen(area[place], np.float64),
        frozen(key[place], np.int32),
        frozen(crowd[place], np.bool_),
    )


def by_prediction(prediction: Array, n: int) -> tuple[Array, Array]:
    """Pairs in the order of their predictions.

    Args:
        prediction: int32 [k].
        n: number of predictions.

    Returns:
        start int64 [n + 1], offsets; order int64 [k], pairs by prediction, those of one as before.
    """
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(prediction, minlength=n), out=start[1:])
    return start, np.argsort(prediction, kind="stable")
