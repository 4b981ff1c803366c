"""Pairs of one datum and label key that overlap: of boxes exactly, of other shapes at the most.

Detailed curves, the confusion matrix and outcomes start from pairs of boxes whatever their labels.
Of polygons and masks, bounding boxes and areas alone tell the pairs that are worth intersecting:
two shapes share at most the smaller of their areas and of what their bounding boxes share, so that
their IoU is at most s / (area + area' - s), or s / area of the detection against a crowd region.

In most datums every pair is looked at. Where that would be too many, a line sweeps over the boxes
from left to right and only those that it cuts at once meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]
Found = tuple[Array, Array, Array]

_MANY = 1 << 18  # pairs of one datum from which sorting its boxes costs less than it saves
_ROUNDING = 1e-9


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


@inner
def _iou(shared: float, area: float, other: float, crowd: Any, lowest: float, bound: bool) -> Any:
    """IoU of two boxes, or the most that shapes in them may have; -1 where it is below ``lowest``.

    Most pairs that overlap end here without a division.
    """
    if bound:
        shared = min(shared, area, other)
    union = area if crowd else area + other - shared
    if (bound and shared <= 0.0) or shared < 0.999 * lowest * union:
        return -1.0
    iou = shared / union
    return iou if iou >= lowest else -1.0  # NaN is no overlap


@kernel
def _every(
    first: int, last: int,
    p_start: Array, p_place: Array, p_boxes: Array, p_area: Array, p_key: Array,
    g_start: Array, g_place: Array, g_boxes: Array, g_area: Array, g_key: Array, g_crowd: Array,
    lowest: float, bound: bool,
) -> Any:  # fmt: skip
    """Pairs of the datums [first, last), in growing arrays; ground truths stand by datum."""
    capacity = 1024
    p_out = np.empty(capacity, np.int32)
    g_out = np.empty(capacity, np.int32)
    iou_out = np.empty(capacity, np.float64)
    n = 0
    for d in range(first, last):
        for i in range(p_start[d], p_start[d + 1]):
            a = p_place[i]
            for b in range(g_start[d], g_start[d + 1]):
                w = min(p_boxes[a, 2], g_boxes[b, 2]) - max(p_boxes[a, 0], g_boxes[b, 0])
                h = min(p_boxes[a, 3], g_boxes[b, 3]) - max(p_boxes[a, 1], g_boxes[b, 1])
                if w <= 0.0 or h <= 0.0:
                    continue
                iou = _iou(w * h, p_area[a], g_area[b], g_crowd[b], lowest, bound)
                if iou < 0.0 or p_key[a] != g_key[b]:
                    continue
                if n == capacity:
                    capacity *= 2
                    p_out = np.concatenate((p_out, np.empty(n, np.int32)))
                    g_out = np.concatenate((g_out, np.empty(n, np.int32)))
                    iou_out = np.concatenate((iou_out, np.empty(n, np.float64)))
                p_out[n] = a
                g_out[n] = b
                iou_out[n] = iou
                n += 1
    return p_out[:n], g_out[:n], iou_out[:n]


@kernel
def _swept(
    p_boxes: Array, p_area: Array, p_key: Array,
    g_boxes: Array, g_area: Array, g_key: Array, g_crowd: Array,
    lowest: float, bound: bool, p_out: Array, g_out: Array, iou_out: Array,
) -> int:  # fmt: skip
    """How many pairs one datum has, both sides of which stand by ascending left edge.

    They are written as far as there is room: arrays that grow would slow the loop down.
    """
    n = 0
    # a ground truth that ends before a prediction begins meets none that follows: it is unlinked
    following = np.arange(g_area.size + 1)  # the first one, then what follows each
    for a in range(p_area.size):
        before = 0
        after = following[0]
        while after < g_area.size and g_boxes[after, 0] < p_boxes[a, 2]:
            b = after
            after = following[b + 1]
            if g_boxes[b, 2] <= p_boxes[a, 0]:
                following[before] = after
                continue
            before = b + 1
            h = min(p_boxes[a, 3], g_boxes[b, 3]) - max(p_boxes[a, 1], g_boxes[b, 1])
            if h <= 0.0:
                continue
            w = min(p_boxes[a, 2], g_boxes[b, 2]) - max(p_boxes[a, 0], g_boxes[b, 0])
            iou = _iou(w * h, p_area[a], g_area[b], g_crowd[b], lowest, bound)
            if iou < 0.0 or w <= 0.0 or p_key[a] != g_key[b]:
                continue
            if n < p_out.size:
                p_out[n] = a
                g_out[n] = b
                iou_out[n] = iou
            n += 1
    return n


def _of_many(predictions: list[Array], ground_truths: list[Array], *rule: Any) -> Found:
    """Rows of a datum's predictions and ground truths that are pairs, by both, and their IoUs."""
    p_order, g_order = (np.argsort(side[0][:, 0]) for side in (predictions, ground_truths))
    given = [
        frozen(column[order], column.dtype)
        for side, order in ((predictions, p_order), (ground_truths, g_order))
        for column in side
    ]
    n = 4 * (p_order.size + g_order.size)
    while True:
        p, g, iou = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float64)
        found: int = _swept(*given, *rule, p, g, iou)
        if found <= n:
            break
        n = found
    rows, truths = p_order[p[:found]], g_order[g[:found]]
    order = np.lexsort((truths, rows))
    return rows[order], truths[order], iou[:found][order]


def _pairs(
    first: int, last: int, predictions: tuple[Array, ...], ground_truths: tuple[Array, ...],
    lowest: float, bound: bool,
) -> Found:  # fmt: skip
    """Places in the layouts and IoUs, by datum, prediction and ground truth."""
    starts = [frozen(side[0], np.int64) for side in (predictions, ground_truths)]
    p_place = frozen(predictions[1], np.int32)
    boxes, area = (frozen(column, np.float64) for column in predictions[2:4])
    key = frozen(predictions[4], np.int32)
    g_place, *theirs = ground_truths[1:]
    many = np.diff(starts[0][first : last + 1]) * np.diff(starts[1][first : last + 1]) > _MANY
    parts: list[Found] = []
    at = first
    for dense in [*(first + np.flatnonzero(many)).tolist(), last]:
        if at < dense or not parts:
            parts.append(
                _every(
                    at, dense, starts[0], p_place, boxes, area, key,
                    starts[1], g_place, *theirs, lowest, bound,
                )
            )  # fmt: skip
        if dense < last:
            rows = p_place[starts[0][dense] : starts[0][dense + 1]]
            low, high = starts[1][dense : dense + 2].tolist()
            p, g, iou = _of_many(
                [column[rows] for column in (boxes, area, key)],
                [column[low:high] for column in theirs], lowest, bound,
            )  # fmt: skip
            parts.append((rows[p], (g + low).astype(np.int32), iou))
        at = dense + 1
    p, g, iou = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    return p, g_place[g], iou


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
) -> Found:
    """Pairs of boxes with IoU >= ``lowest`` and the same label key, datum by datum.

    IoU is that of :func:`evalengine.kernels.boxes.box_iou`.

    Args:
        first: first datum.
        last: one past the last datum.
        predictions: start int64 [n_datums + 1] and place int32 [n] as :func:`rows_by_datum` gives
            them; boxes float64 [n, 4], area float64 [n] and key int32 [n] by place: each is read
            once, so laying them out by datum would cost more than it saves.
        ground_truths: as :func:`truths_by_datum` gives them.
        lowest: smallest IoU kept, above 0.

    Returns:
        prediction int32, ground truth int32 and IoU float64, one entry per pair; by datum, then
        prediction place, then ground truth place.
    """
    return _pairs(first, last, predictions, ground_truths, lowest, False)


def candidates(
    first: int,
    last: int,
    predictions: tuple[Array, ...],
    ground_truths: tuple[Array, ...],
    lowest: float,
) -> tuple[Array, Array]:
    """Pairs of shapes of one datum and key whose IoU may reach ``lowest``, datum by datum.

    Args:
        first: first datum.
        last: one past the last datum.
        predictions: as in :func:`close_pairs`: bounding boxes, and areas of the shapes.
        ground_truths: as :func:`truths_by_datum` gives them.
        lowest: smallest IoU of interest, some less than which is kept for rounding; 0 for every
            pair that may overlap at all.

    Returns:
        prediction int32 and ground truth int32; by datum, then prediction, then ground truth.
    """
    lowest *= 1 - _ROUNDING
    return _pairs(first, last, predictions, ground_truths, lowest, True)[:2]


def truths_by_datum(
    datum: Array, n_datums: int, boxes: Array, area: Array, key: Array, crowd: Array | None = None
) -> tuple[Array, ...]:
    """Ground truths laid out by datum, as pairs are looked for.

    Args:
        datum: int32 [m], datum codes.
        n_datums: number of datums.
        boxes: float64 [m, 4], bounding boxes.
        area: float64 [m], areas of the shapes.
        key: int32 [m], rows of different keys never meet.
        crowd: bool [m], regions of many objects; None for none.

    Returns:
        start int64 [n_datums + 1]; place int32 [m]; boxes, area, key and crowd in that order.
    """
    start, place = rows_by_datum(datum, n_datums)
    many = np.zeros(place.size, np.bool_) if crowd is None else crowd[place]
    return (
        frozen(start, np.int64),
        frozen(place, np.int32),
        frozen(boxes[place], np.float64),
        frozen(area[place], np.float64),
        frozen(key[place], np.int32),
        frozen(many, np.bool_),
    )
