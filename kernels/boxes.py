"""Axis-aligned boxes: laying them out by label, and the IoU of two of them.

IoU = intersection / (area + area' - intersection), on closed real coordinates: no pixel is added
to widths and no epsilon to the union. Against a crowd region it is intersection / detection area.
Source: pycocotools ``bbIou``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
    score: Array,
    from_extent: bool,
    first: int,
    boxes: Array,
    area: Array,
    datum_out: Array,
    row_out: Array,
    score_out: Array,
) -> None:
    """Scatter columns into rows of one layout, reading them in order."""
    annotated = width.size > 0
    scored = score.size > 0
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
        if scored:
            score_out[at] = score[i]


class Piece(NamedTuple):
    """Some consecutive rows of a table, as its columns hold them.

    Attributes:
        corners: xmin, ymin, xmax, ymax, float64 [n] each, pixels.
        extent: width and height as annotated, float64 [n] each; or None to take differences.
        score: float64 [n], or [0] where there is none.
    """

    corners: tuple[Array, Array, Array, Array]
    extent: tuple[Array, Array] | None
    score: Array


def lay_out(
    position: Array,
    datum: Array,
    pieces: Sequence[Piece],
    over: Over,
    *,
    from_extent: bool,
) -> tuple[Array, Array, Array, Array, Array]:
    """Boxes side by side in the order that matching walks them.

    Args:
        position: int32 [n], target place of each row.
        datum: int32 [n], dense datum codes.
        pieces: the rows, in order; n together. Columns in several pieces need not be joined first.
        over: calls a function on ranges of groups with CSR offsets, perhaps side by side.
        from_extent: recompute the far corner as near corner + extent, as pycocotools does;
            otherwise the far corner is used as it stands.

    Returns:
        boxes float64 [n, 4] (xmin, ymin, xmax, ymax); area float64 [n], width * height;
        datum int32 [n]; row int32 [n], the original row; score float64 [n], or [0] without scores.
    """
    n = position.size
    none = np.empty(0, np.float64)
    scored = any(piece.score.size for piece in pieces)
    out = (
        np.empty((n, 4), np.float64),
        np.empty(n, np.float64),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.float64) if scored else none,
    )
    codes = frozen(position, np.int32), frozen(datum, np.int32)
    columns = [
        tuple(
            frozen(column, np.float64)
            for column in (*piece.corners, *(piece.extent or (none, none)), piece.score)
        )
        for piece in pieces
    ]
    blocks: list[tuple[int, int, int]] = []  # piece, its first row in the table, a row of it
    before = 0
    for number, piece in enumerate(pieces):
        size = piece.corners[0].size
        blocks += [(number, before, at) for at in range(0, size, _BLOCK)]
        before += size

    def run(first: int, last: int) -> None:
        for number, before, at in blocks[first:last]:
            here = [column[at : at + _BLOCK] for column in columns[number]]
            rows = slice(before + at, before + at + here[0].size)
            _lay_out(*(code[rows] for code in codes), *here, from_extent, rows.start, *out)

    # Each row has a place of its own, so that ranges of rows do not meet.
    starts = [before + at for _, before, at in blocks]
    over(np.array([*starts, n], np.int64), run)
    return out


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
