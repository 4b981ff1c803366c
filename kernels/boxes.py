"""Axis-aligned boxes: laying them out by label, and the IoU of two of them.

IoU = intersection / (area + area' - intersection), on closed real coordinates: no pixel is added
to widths and no epsilon to the union. Against a crowd region it is intersection / detection area.
Source: pycocotools ``bbIou``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]
Over = Callable[[Array, Callable[[int, int], None]], Any]

_BLOCK = 1 << 14  # rows laid out in one go at least, where several threads do


@kernel
def _lay_out(
    position: Array,
    datum: Array,
    xmin: Array,
    ymin: Array,
    xmax: Array,
    ymax: Array,
    width: Array,
    height: Array,
    from_extent: bool,
    first: int,
    boxes: Array,
    area: Array,
    datum_out: Array,
    row_out: Array,
) -> None:
    """Scatter columns into rows of one layout, reading them in order."""
    annotated = width.size > 0
    for i in range(position.size):
        at = position[i]
        w = width[i] if annotated else xmax[i] - xmin[i]
        h = height[i] if annotated else ymax[i] - ymin[i]
        boxes[at, 0] = xmin[i]
        boxes[at, 1] = ymin[i]
        if from_extent:
            boxes[at, 2] = xmin[i] + w
            boxes[at, 3] = ymin[i] + h
        else:
            boxes[at, 2] = xmax[i]
            boxes[at, 3] = ymax[i]
        area[at] = w * h
        datum_out[at] = datum[i]
        row_out[at] = first + i


def lay_out(
    position: Array,
    datum: Array,
    corners: tuple[Array, Array, Array, Array],
    extent: tuple[Array, Array] | None,
    over: Over,
    *,
    from_extent: bool,
) -> tuple[Array, Array, Array, Array]:
    """Boxes side by side in the order that matching walks them.

    Args:
        position: int32 [n], target place of each row.
        datum: int32 [n], dense datum codes.
        corners: xmin, ymin, xmax, ymax, each float64 [n], pixels.
        extent: width and height as annotated, float64 [n] each, or None to take differences.
        over: calls a function on ranges of groups with CSR offsets, perhaps side by side.
        from_extent: recompute the far corner as near corner + extent, as pycocotools does;
            otherwise the far corner is used as it stands.

    Returns:
        boxes float64 [n, 4] (xmin, ymin, xmax, ymax); area float64 [n], width * height;
        datum int32 [n]; row int32 [n], the original row.
    """
    n = position.size
    boxes = np.empty((n, 4), np.float64)
    area = np.empty(n, np.float64)
    datum_out = np.empty(n, np.int32)
    row = np.empty(n, np.int32)
    none = np.empty(0, np.float64)
    width, height = extent if extent is not None else (none, none)
    columns = (
        frozen(position, np.int32),
        frozen(datum, np.int32),
        *(frozen(column, np.float64) for column in corners),
        frozen(width, np.float64),
        frozen(height, np.float64),
    )
    out = (boxes, area, datum_out, row)

    def run(first: int, last: int) -> None:
        rows = slice(first * _BLOCK, last * _BLOCK)
        _lay_out(*(column[rows] for column in columns), from_extent, rows.start, *out)

    # Each row has a place of its own, so that ranges of rows do not meet.
    over(np.minimum(np.arange(-(-n // _BLOCK) + 1) * _BLOCK, n), run)
    return boxes, area, datum_out, row


@inner
def box_iou(
    xmin: float,
    ymin: float,
    xmax: float,
    ymax: float,
    area: float,
    boxes: Array,
    areas: Array,
    j: int,
    crowd: bool,
) -> float:
    """IoU of a detection and ground truth j, 0 where they do not overlap.

    Args:
        xmin: left edge of the detection; ymin, xmax and ymax its other edges, pixels.
        ymin: top edge.
        xmax: right edge.
        ymax: bottom edge.
        area: its area.
        boxes: float64 [m, 4], ground truths (xmin, ymin, xmax, ymax).
        areas: float64 [m], their areas.
        j: which ground truth.
        crowd: whether j is a crowd region, whose union is the detection alone.
    """
    w = min(xmax, boxes[j, 2]) - max(xmin, boxes[j, 0])
    if w <= 0.0:
        return 0.0
    h = min(ymax, boxes[j, 3]) - max(ymin, boxes[j, 1])
    if h <= 0.0:
        return 0.0
    overlap = w * h
    return overlap / (area if crowd else area + areas[j] - overlap)


def paired_iou(boxes_a: Array, boxes_b: Array) -> Array:
    """IoU row by row of two arrays of boxes.

    Args:
        boxes_a: float64 [n, 4].
        boxes_b: float64 [n, 4].

    Returns:
        float64 [n], 0 where the union is empty.
    """
    w = np.minimum(boxes_a[:, 2], boxes_b[:, 2]) - np.maximum(boxes_a[:, 0], boxes_b[:, 0])
    h = np.minimum(boxes_a[:, 3], boxes_b[:, 3]) - np.maximum(boxes_a[:, 1], boxes_b[:, 1])
    overlap = np.where((w > 0) & (h > 0), w * h, 0.0)
    area = [(b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in (boxes_a, boxes_b)]
    union = area[0] + area[1] - overlap
    return np.divide(overlap, union, out=np.zeros_like(overlap), where=union > 0)
