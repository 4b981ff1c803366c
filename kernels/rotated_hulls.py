"""IoU of rotated boxes in single precision, as detectron2 and mmcv compute it.

Where the edges of two boxes cross, and corners of one that lie in the other, are gathered, at most
24 points of which many may be one; the area of their convex hull (Graham, 1972) is what the boxes
share. In single precision that is right to about 1e-4 and depends on the order of operations,
which is theirs here, so that numbers near a threshold fall on the same side. The two differ in how
much is let pass at ends of edges, and in how points are sorted around the first one: by exchanges,
or by insertion as the C++ standard library does for few elements, under a comparison that is no
order where points nearly coincide.

Source: detectron2 ``box_iou_rotated_utils.h`` (Apache 2.0, commit 02b5c4e), mmcv
``box_iou_rotated_utils.hpp`` (Apache 2.0, commit a8073c7).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_MOST = 24  # points: sixteen pairs of edges, four corners each
_PARALLEL = 1e-14
_LEVEL = 1e-6
_ONE_POINT = 1e-8
_FLAT = 1e-14  # area of a box that has none


@inner
def _corners(box: Array, x: Any, y: Any, out: Array) -> None:
    """Write the corners of a box around a centre, float32 [4, 2]."""
    w, h = box[2], box[3]
    out[0, 0] = x + box[4] * h + box[5] * w
    out[0, 1] = y + box[6] * h - box[7] * w
    out[1, 0] = x - box[4] * h + box[5] * w
    out[1, 1] = y - box[6] * h - box[7] * w
    two = np.float32(2.0)
    for k in range(2):
        out[k + 2, 0] = two * x - out[k, 0]
        out[k + 2, 1] = two * y - out[k, 1]


@inner
def _within(value: Any, end: Any, margin: float) -> bool:
    """Whether a value lies from 0 to an end, both included, or within a margin around, that not."""
    if margin > 0.0:
        return bool(-margin < value < end + margin)
    return bool(0.0 <= value <= end)


@inner
def _gather(one: Array, two: Array, margin: float, at: Array) -> int:
    """Write the points of which the hull is what two boxes share: how many there are."""
    n = 0
    for i in range(4):
        ux, uy = one[(i + 1) % 4, 0] - one[i, 0], one[(i + 1) % 4, 1] - one[i, 1]
        for j in range(4):
            vx, vy = two[(j + 1) % 4, 0] - two[j, 0], two[(j + 1) % 4, 1] - two[j, 1]
            turn = vx * uy - ux * vy
            if abs(turn) <= _PARALLEL:
                continue
            x, y = two[j, 0] - one[i, 0], two[j, 1] - one[i, 1]
            s = (vx * y - x * vy) / turn
            t = (ux * y - x * uy) / turn
            if _within(s, 1.0, margin) and _within(t, 1.0, margin):
                at[n, 0], at[n, 1] = one[i, 0] + ux * s, one[i, 1] + uy * s
                n += 1
    for side in range(2):
        box, points = (two, one) if side == 0 else (one, two)
        ax, ay = box[1, 0] - box[0, 0], box[1, 1] - box[0, 1]
        dx, dy = box[0, 0] - box[3, 0], box[0, 1] - box[3, 1]
        across, down = ax * ax + ay * ay, dx * dx + dy * dy
        for k in range(4):
            x, y = points[k, 0] - box[0, 0], points[k, 1] - box[0, 1]
            along, below = x * ax + y * ay, -(x * dx + y * dy)
            if _within(along, across, margin) and _within(below, down, margin):
                at[n, 0], at[n, 1] = points[k, 0], points[k, 1]
                n += 1
    return n


@inner
def _turn(ax: Any, ay: Any, bx: Any, by: Any) -> Any:
    return ax * by - bx * ay


@inner
def _exchange(q: Array, away: Array, n: int) -> None:
    """Sort points 1 to n around point 0 by exchanging those that stand the other way round."""
    for i in range(1, n - 1):
        for j in range(i + 1, n):
            turn = _turn(q[i, 0], q[i, 1], q[j, 0], q[j, 1])
            if turn < -_LEVEL or (abs(turn) < _LEVEL and away[i] > away[j]):
                for k in range(2):
                    q[i, k], q[j, k] = q[j, k], q[i, k]
                away[i], away[j] = away[j], away[i]


@inner
def _before(x: Any, y: Any, distance: Any, q: Array, away: Array, at: int) -> bool:
    """Whether a point goes before another one around point 0."""
    turn = _turn(x, y, q[at, 0], q[at, 1])
    if abs(turn) < _LEVEL:
        return bool(distance < away[at])
    return bool(turn > 0)


@inner
def _insert(q: Array, away: Array, n: int) -> None:
    """Sort points 1 to n around point 0 by insertion, the smallest so far told first."""
    for i in range(2, n):
        x, y, distance = q[i, 0], q[i, 1], away[i]
        first = _before(x, y, distance, q, away, 1)
        at = i
        while at > 1 and (first or _before(x, y, distance, q, away, at - 1)):
            q[at, 0], q[at, 1], away[at] = q[at - 1, 0], q[at - 1, 1], away[at - 1]
            at -= 1
        q[at, 0], q[at, 1], away[at] = x, y, distance


@inner
def _hull_area(points: Array, n: int, insertion: bool, q: Array, away: Array) -> Any:
    """Area of the convex hull of n points."""
    t = 0
    for i in range(1, n):
        lower = points[i, 1] < points[t, 1]
        if lower or (points[i, 1] == points[t, 1] and points[i, 0] < points[t, 0]):
            t = i
    for i in range(n):
        q[i, 0], q[i, 1] = points[i, 0] - points[t, 0], points[i, 1] - points[t, 1]
    for k in range(2):
        q[0, k], q[t, k] = q[t, k], q[0, k]
    for i in range(n):
        away[i] = q[i, 0] * q[i, 0] + q[i, 1] * q[i, 1]
    if insertion:
        _insert(q, away, n)
    else:
        _exchange(q, away, n)
    k = 1
    while k < n and away[k] <= _ONE_POINT:
        k += 1
    area = np.float32(0.0)
    if k == n:
        return area
    q[1, 0], q[1, 1] = q[k, 0], q[k, 1]
    m = 2
    for i in range(k + 1, n):
        while m > 1:
            x, y = q[i, 0] - q[m - 2, 0], q[i, 1] - q[m - 2, 1]
            if x * (q[m - 1, 1] - q[m - 2, 1]) < (q[m - 1, 0] - q[m - 2, 0]) * y:
                break
            m -= 1
        q[m, 0], q[m, 1] = q[i, 0], q[i, 1]
        m += 1
    for i in range(1, m - 1):
        area += abs(
            _turn(q[i, 0] - q[0, 0], q[i, 1] - q[0, 1],
                  q[i + 1, 0] - q[0, 0], q[i + 1, 1] - q[0, 1])
        )  # fmt: skip
    return area / np.float32(2.0) if m > 2 else np.float32(0.0)


@kernel
def _ious(
    boxes: Array,
    others: Array,
    row: Array,
    other: Array,
    margin: float,
    insertion: bool,
    iou: Array,
) -> None:
    one, two = np.empty((4, 2), np.float32), np.empty((4, 2), np.float32)
    points, q = np.empty((_MOST, 2), np.float32), np.empty((_MOST, 2), np.float32)
    away = np.empty(_MOST, np.float32)
    for k in range(row.size):
        a, b = boxes[row[k]], others[other[k]]
        area, other_area = a[2] * a[3], b[2] * b[3]
        iou[k] = 0.0
        if area < _FLAT or other_area < _FLAT:
            continue
        x, y = (a[0] + b[0]) / np.float64(2.0), (a[1] + b[1]) / np.float64(2.0)
        _corners(a, np.float32(a[0] - x), np.float32(a[1] - y), one)
        _corners(b, np.float32(b[0] - x), np.float32(b[1] - y), two)
        n = _gather(one, two, margin, points)
        if n <= 2:
            continue
        shared = _hull_area(points, n, insertion, q, away)
        iou[k] = shared / (area + other_area - shared)


def rotated_ious(
    boxes: Array, others: Array, row: Array, other: Array, *, margin: float, insertion: bool
) -> Array:
    """IoUs of pairs of rotated boxes.

    Args:
        boxes: float32 [n, 8]: centre x and y, width, height, by what half of the height and half
            of the width are multiplied on the way to x of the first corner, and the same of y.
        others: float32 [m, 8].
        row: int32 [k], of each pair, in [0, n).
        other: int32 [k], its partner, in [0, m).
        margin: how far beyond its end an edge still counts, of its length.
        insertion: whether points are sorted by insertion, not by exchanges.

    Returns:
        float32 [k].
    """
    iou = np.empty(row.size, np.float32)
    _ious(
        frozen(boxes, np.float32), frozen(others, np.float32), frozen(row, np.int32),
        frozen(other, np.int32), margin, insertion, iou,
    )  # fmt: skip
    return iou
