"""Rings of polygons to runs of masks, exactly as pycocotools rasterises them.

Vertices are scaled by 5 and rounded half up. Each edge is walked along its longer axis from its
smaller end, the other coordinate being interpolated and rounded half up. Where the walk steps
between the fine columns 5 x + 2 and 5 x + 3 it crosses the middle of the image's column x, at the
smaller y of the two points, brought back to pixels, clamped to the image and rounded up. The
crossings of a column, in order, are where its runs begin and end in turn.

Only those steps are looked at, so an edge costs as many operations as it crosses columns of the
image. Source: pycocotools ``rleFrPoly``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .run_layout import Array, Runs, closed, put

_SCALE = 5.0
_FAR = 1 << 30  # in fifths of a pixel; beyond it integers of the C source overflow


@inner
def _fine(value: float) -> Any:
    """A coordinate in fifths of a pixel, rounded half up, and towards zero below it."""
    return np.int64(min(max(_SCALE * value + 0.5, -1.0 * _FAR), 1.0 * _FAR))


@inner
def _columns(a: int, b: int, width: int) -> tuple[Any, Any]:
    """The image's columns [first, last) whose middle lies between two fine columns."""
    low, high = min(a, b), max(a, b)
    first = max((low + 2) // 5, 0)  # smallest x with 5 x + 2 >= low
    last = min((high - 3) // 5 + 1, width) if high >= 3 else 0
    return first, last


@inner
def _pixel(v: int, height: int) -> Any:
    """A fine row as a row of the image, rounded up."""
    return np.int64(np.ceil(min(max((v + 0.5) / _SCALE - 0.5, 0.0), 1.0 * height)))


@inner
def sort_range(values: Array, first: int, last: int) -> None:
    """Shell's sort of a few values in place."""
    gap = 1
    while gap < (last - first) // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, last):
            value = values[i]
            k = i
            while k >= first + gap and values[k - gap] > value:
                values[k] = values[k - gap]
                k -= gap
            values[k] = value
        gap //= 3


@inner
def _cross(
    xs: Any, ys: Any, xe: Any, ye: Any, height: int, first: int, last: int,
    place: Array, base: int, y: Array,
) -> None:  # fmt: skip
    """Write where an edge crosses the columns [first, last), into each column's next place."""
    dx, dy = abs(xe - xs), abs(ye - ys)
    if (dx >= dy and xs > xe) or (dx < dy and ys > ye):
        xs, xe, ys, ye = xe, xs, ye, ys
    slope = (ye - ys) / dx if dx >= dy else (xe - xs) / dy
    for column in range(first, last):
        u = 5 * column + 2
        if dx >= dy:
            t: Any = u - xs
            v: Any = min(np.int64(ys + slope * t + 0.5), np.int64(ys + slope * (t + 1) + 0.5))
        else:
            # The first step on the other side of the middle: estimated, then made exact with the
            # very expression of the walk.
            rising = slope > 0
            t = min(max(np.int64((u + 0.5 - xs) / slope), 1), dy)
            while t > 1 and (np.int64(xs + slope * (t - 1) + 0.5) > u) == rising:
                t -= 1
            while t < dy and (np.int64(xs + slope * t + 0.5) > u) != rising:
                t += 1
            v = ys + t - 1
        y[place[column - base]] = _pixel(v, height)
        place[column - base] += 1


@kernel
def _count(xy: Array, ring_start: Array, width: Array, n: Array, low: Array, high: Array) -> None:
    """Crossings of each ring, and the columns [low, high) they lie in."""
    for r in range(n.size):
        begin, end = ring_start[r], ring_start[r + 1]
        low[r], high[r], n[r] = width[r], 0, 0
        if begin == end:
            continue
        a = _fine(xy[end - 1, 0])
        for i in range(begin, end):
            b = _fine(xy[i, 0])
            first, last = _columns(a, b, width[r])
            if first < last:
                n[r] += last - first
                low[r] = min(low[r], first)
                high[r] = max(high[r], last)
            a = b


@kernel
def _fill(
    xy: Array, ring_start: Array, width: Array, height: Array, low: Array, high: Array,
    room: Array, to_begin: Array, to_end: Array, used: Array,
) -> None:  # fmt: skip
    place, y = np.empty(0, np.int64), np.empty(0, np.int64)
    for r in range(used.size):
        used[r] = 0
        columns, base = high[r] - low[r], low[r]
        if columns <= 0:
            continue
        begin, end = ring_start[r], ring_start[r + 1]
        if place.size < columns + 1:
            place = np.empty(2 * columns + 1, np.int64)
        if y.size < 2 * (room[r + 1] - room[r]):
            y = np.empty(4 * (room[r + 1] - room[r]), np.int64)
        place[: columns + 1] = 0
        # first where each column's crossings start ...
        a = _fine(xy[end - 1, 0])
        for i in range(begin, end):
            b = _fine(xy[i, 0])
            first, last = _columns(a, b, width[r])
            if first < last:
                place[first - base] += 1
                place[last - base] -= 1
            a = b
        total, crossing = 0, 0
        for c in range(columns):
            crossing += place[c]
            place[c] = total
            total += crossing
        # ... then the crossings
        xs, ys = _fine(xy[end - 1, 0]), _fine(xy[end - 1, 1])
        for i in range(begin, end):
            xe, ye = _fine(xy[i, 0]), _fine(xy[i, 1])
            first, last = _columns(xs, xe, width[r])
            if first < last:
                _cross(xs, ys, xe, ye, height[r], first, last, place, base, y)
            xs, ys = xe, ye
        at = room[r]
        k = 0
        for c in range(columns):
            column_end = place[c]
            sort_range(y, k, column_end)
            line = (base + c) * height[r]
            while k + 1 < column_end:
                at = put(to_begin, to_end, room[r], at, line + y[k], line + y[k + 1])
                k += 2
            k = column_end
        used[r] = at - room[r]


def rasterise_rings(xy: Array, ring_start: Array, height: Array, width: Array) -> Runs:
    """Runs of rings, each a mask of its own, down the columns.

    Args:
        xy: float64 [p, 2], vertices in pixels, finite; the last of a ring need not repeat the
            first. Beyond 2^30 fifths of a pixel they are taken as if they lay there.
        ring_start: int64 [n + 1], offsets of the rings' vertices; need not start at 0.
        height: int64 [n], of the image of each ring, pixels.
        width: int64 [n].

    Returns:
        runs of n masks.
    """
    points, start = frozen(xy, np.float64), frozen(ring_start, np.int64)
    h, w = frozen(height, np.int64), frozen(width, np.int64)
    n = np.empty(h.size, np.int64)
    low, high = np.empty_like(n), np.empty_like(n)
    _count(points, start, w, n, low, high)
    room = np.zeros(n.size + 1, np.int64)
    np.cumsum(n >> 1, out=room[1:])  # a closed ring crosses a column an even number of times
    begin, end = np.empty(int(room[-1]), np.uint32), np.empty(int(room[-1]), np.uint32)
    used = np.empty(n.size, np.int64)
    _fill(
        points, start, w, h, frozen(low, np.int64), frozen(high, np.int64),
        frozen(room, np.int64), begin, end, used,
    )  # fmt: skip
    return closed(room, used, begin, end)
