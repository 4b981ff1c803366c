"""Outlines of masks, and how far the pixels of one lie from those of another."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

_FAR = np.iinfo(np.int32).max // 4  # rows: farther than any image is high


@kernel
def _outline(mask: Any, rows: Any, columns: Any) -> int:
    """Pixels that are set and have a neighbour beside, above or below that is not; how many."""
    height, width = mask.shape
    n = 0
    for r in range(height):
        for c in range(width):
            if mask[r, c] == 0:
                continue
            inside = 0 < r < height - 1 and 0 < c < width - 1
            if (
                inside
                and mask[r - 1, c] != 0
                and mask[r + 1, c] != 0
                and mask[r, c - 1] != 0
                and mask[r, c + 1] != 0
            ):
                continue
            rows[n], columns[n] = r, c
            n += 1
    return n


def outline(mask: Array) -> tuple[Array, Array]:
    """The pixels of a mask that one erosion by a cross takes away, around the image being zero.

    Args:
        mask: uint8 [height, width], not 0 where it is set.

    Returns:
        rows int32 [n] and columns int32 [n], row by row.
    """
    most = int(np.count_nonzero(mask))
    rows, columns = np.empty(most, np.int32), np.empty(most, np.int32)
    n = _outline(frozen(mask, np.uint8), rows, columns)
    return rows[:n], columns[:n]


@kernel
def _nearest(
    rows: Any, columns: Any, to_rows: Any, to_columns: Any, steps: Any, size: Any, out: Any
) -> None:
    """Distance of each pixel to the nearest of others.

    The nearest one of each column is found going down and up; of a pixel those of its own column,
    then of columns farther and farther away are looked at, as long as any could be nearer.

    Args:
        rows: int32 [n], from 0, below the height.
        columns: int32 [n].
        to_rows: int32 [m], m at least 1.
        to_columns: int32 [m].
        steps: float64 [2], height and width of a pixel.
        size: int64 [2], height and width of the image.
        out: float64 [n].
    """
    height, width = size
    away = np.full((height, width), _FAR, np.int32)
    for k in range(to_rows.size):
        away[to_rows[k], to_columns[k]] = 0
    for r in range(1, height):
        for c in range(width):
            away[r, c] = min(away[r, c], away[r - 1, c] + 1)
    for r in range(height - 2, -1, -1):
        for c in range(width):
            away[r, c] = min(away[r, c], away[r + 1, c] + 1)
    for k in range(rows.size):
        r, c = rows[k], columns[k]
        least = np.inf
        for aside in range(width):
            across = (steps[1] * aside) ** 2
            if across >= least:
                break
            if c >= aside and away[r, c - aside] < _FAR:
                least = min(least, across + (steps[0] * away[r, c - aside]) ** 2)
            if c + aside < width and away[r, c + aside] < _FAR:
                least = min(least, across + (steps[0] * away[r, c + aside]) ** 2)
        out[k] = np.sqrt(least)


def distances(
    pixels: tuple[Array, Array], others: tuple[Array, Array], steps: tuple[float, float]
) -> Array:
    """How far each pixel lies from the nearest of others, float64 [n].

    Args:
        pixels: rows int32 [n] and columns int32 [n].
        others: the same of others, at least one.
        steps: height and width of a pixel; distances are in their unit.
    """
    low = [min(a.min(), b.min()) for a, b in zip(pixels, others, strict=True)]
    high = [max(a.max(), b.max()) for a, b in zip(pixels, others, strict=True)]
    moved = [
        frozen(one - np.int32(least), np.int32)
        for side in (pixels, others)
        for one, least in zip(side, low, strict=True)
    ]
    size = np.array(high, np.int64) - np.array(low, np.int64) + 1
    out = np.empty(pixels[0].size)
    _nearest(*moved, frozen(np.array(steps), np.float64), frozen(size, np.int64), out)
    return out
