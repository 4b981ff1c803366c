"""Pairs of boxes that overlap in the same frame, and their IoU."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .boxes import Over, box_iou
from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

_EPSILON = 2.0**-52  # boxes of no more area overlap with nothing


class Boxes(NamedTuple):
    """Boxes by frame.

    Attributes:
        corners: float64 [n, 4]: xmin, ymin, xmax, ymax.
        area: float64 [n].
    """

    corners: Array
    area: Array

    @staticmethod
    def of(corners: Array) -> Boxes:
        """From corners, float64 [n, 4]."""
        width, height = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
        return Boxes(frozen(corners, np.float64), frozen(width * height, np.float64))


@kernel
def _overlapping(
    first: int,
    last: int,
    truth_start: Array,
    found_start: Array,
    truth: Boxes,
    found: Boxes,
    pair_start: Array,
    pair_truth: Array,
    pair_found: Array,
    overlap: Array,
) -> None:
    """Count the pairs of frames, behind their place in ``pair_start``; or write them.

    They are written where there is room, which is known once they are counted.
    """
    write = overlap.size > 0
    for frame in range(first, last):
        g, t = truth_start[frame], found_start[frame]
        at = pair_start[frame]
        many = 0
        for i in range(g, truth_start[frame + 1]):
            if truth.area[i] <= _EPSILON:
                continue
            xmin, ymin = truth.corners[i, 0], truth.corners[i, 1]
            xmax, ymax = truth.corners[i, 2], truth.corners[i, 3]
            for j in range(t, found_start[frame + 1]):
                if found.area[j] <= _EPSILON:
                    continue
                iou = box_iou(
                    xmin, ymin, xmax, ymax, truth.area[i], found.corners, found.area, j, False
                )
                if iou <= 0.0:
                    continue
                if write:
                    pair_truth[at + many] = i - g
                    pair_found[at + many] = j - t
                    overlap[at + many] = iou
                many += 1
        if not write:
            pair_start[frame + 1] = many


def pairs_of(
    truth_start: Array, found_start: Array, truth: Boxes, found: Boxes, over: Over
) -> tuple[Array, Array, Array, Array]:
    """The pairs of boxes that overlap, frame by frame, row by row.

    Args:
        truth_start: int64 [frames + 1], rows of the first side before each frame.
        found_start: int64 [frames + 1], of the other side.
        truth: boxes of the first side.
        found: of the other.
        over: calls a function on ranges of frames with CSR offsets, perhaps side by side.

    Returns:
        int64 [frames + 1], pairs before each frame; int32 [p], the row of either side of each,
        from 0 in its frame; float64 [p], its IoU.
    """
    starts = frozen(truth_start, np.int64), frozen(found_start, np.int64)
    many = np.zeros(truth_start.size, np.int64)
    none = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float64)
    offsets = truth_start + found_start

    def run(place: Array, out: tuple[Array, Array, Array]) -> None:
        over(
            offsets,
            lambda first, last: _overlapping(first, last, *starts, truth, found, place, *out),
        )

    run(many, none)
    start = np.cumsum(many)
    n = int(start[-1])
    out = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float64)
    if n:
        run(start, out)
    return start, *out
