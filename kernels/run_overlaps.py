"""Pixels that pairs of masks share, counted on their runs. Source: pycocotools ``rleIou``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .run_layout import Array, Runs


@inner
def _first_after(end: Array, low: int, high: int, position: Any) -> Any:
    """The first run of [low, high) that ends after a position."""
    while low < high:
        middle = (low + high) >> 1
        if end[middle] <= position:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def shared(
    begin: Array, end: Array, i: Any, last: int,
    other_begin: Array, other_end: Array, j: Any, other_last: int,
) -> Any:  # fmt: skip
    """Pixels that the runs [i, last) of one mask share with the runs [j, other_last) of another."""
    if i == last or j == other_last:
        return 0
    i = _first_after(end, i, last, other_begin[j])
    if i == last:
        return 0
    j = _first_after(other_end, j, other_last, begin[i])
    total: Any = 0
    while i < last and j < other_last:
        e, f = np.int64(end[i]), np.int64(other_end[j])
        common: Any = min(e, f) - max(np.int64(begin[i]), np.int64(other_begin[j]))
        total += max(common, 0)
        i += np.int64(e <= f)
        j += np.int64(f <= e)
    return total


@kernel
def _overlaps(
    start: Array, begin: Array, end: Array, box: Array,
    other_start: Array, other_begin: Array, other_end: Array, other_box: Array,
    row: Array, other: Array, n: Array,
) -> None:  # fmt: skip
    for k in range(n.size):
        a, b = row[k], other[k]
        n[k] = 0
        if (
            min(box[a, 2], other_box[b, 2]) > max(box[a, 0], other_box[b, 0])
            and min(box[a, 3], other_box[b, 3]) > max(box[a, 1], other_box[b, 1])
        ):  # fmt: skip
            n[k] = shared(
                begin, end, start[a], start[a + 1],
                other_begin, other_end, other_start[b], other_start[b + 1],
            )  # fmt: skip


def overlaps(
    runs: Runs, box: Array, other_runs: Runs, other_box: Array, row: Array, other: Array
) -> Array:
    """Shared pixels of pairs of masks of equal size.

    Args:
        runs: of n masks.
        box: float64 [n, 4], their bounding boxes; pairs whose boxes lie apart share nothing.
        other_runs: of m masks.
        other_box: float64 [m, 4].
        row: int32 [k], the mask of each pair, in [0, n).
        other: int32 [k], its partner, in [0, m).

    Returns:
        int64 [k], pixels.
    """
    n = np.empty(row.size, np.int64)
    sides = [
        (
            frozen(start, np.int64), frozen(begin, np.uint32), frozen(end, np.uint32),
            frozen(boxes, np.float64),
        )
        for (start, begin, end), boxes in ((runs, box), (other_runs, other_box))
    ]  # fmt: skip
    _overlaps(*sides[0], *sides[1], frozen(row, np.int32), frozen(other, np.int32), n)
    return n
