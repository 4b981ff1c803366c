"""Area and bounding box of masks. Source: pycocotools ``rleArea``, ``rleToBbox``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel
from .run_layout import Array, Runs


@kernel
def _extents(
    start: Array, begin: Array, end: Array, height: Array, area: Array, box: Array
) -> None:
    for i in range(area.size):
        h = height[i]
        total: Any = 0
        top = h
        bottom: Any = 0
        first, last = start[i], start[i + 1]
        # A column costs a division; runs ascend, so most lie in the column found last.
        column: Any = -1
        for k in range(first, last):
            low, high = np.int64(begin[k]), np.int64(end[k]) - 1
            total += high + 1 - low
            if column < 0 or low >= column + h:
                column = low - low % h
            if high >= column + h:
                top, bottom = 0, h
                column = high - high % h
            else:
                top = min(top, low - column)
                bottom = max(bottom, high - column + 1)
        area[i] = total
        if total > 0:
            box[i, 0] = np.int64(begin[first]) // h
            box[i, 1] = top
            box[i, 2] = (np.int64(end[last - 1]) - 1) // h + 1
            box[i, 3] = bottom


def extents(runs: Runs, height: Array) -> tuple[Array, Array]:
    """Area and bounding box of each mask.

    The box is xmin, ymin, xmax, ymax of the set pixels with their full extent; a run that goes on
    into another column makes it as high as the image, as in pycocotools, and an empty mask has
    zeros.

    Args:
        runs: of n masks, down the columns.
        height: int64 [n], pixels.

    Returns:
        area int64 [n], pixels; boxes float64 [n, 4].
    """
    start, begin, end = runs
    area, box = np.zeros(height.size, np.int64), np.zeros((height.size, 4), np.float64)
    _extents(
        frozen(start, np.int64), frozen(begin, np.uint32), frozen(end, np.uint32),
        frozen(height, np.int64), area, box,
    )  # fmt: skip
    return area, box
