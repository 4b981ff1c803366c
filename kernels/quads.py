"""Areas that pairs of quadrilaterals share: oriented boxes, and any other four corners.

A convex one is clipped by the edges of the other, one after the other (Sutherland and Hodgman,
1974). Any other is the signed sum of two triangles, as its area is, so that one that is hollow is
exact, too, and of one that crosses itself what it surrounds the other way round counts against the
rest. All of it is computed from a corner of the pair on: far from the origin, as map coordinates
are, the digits that areas rest on would be lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_WHOLE = 1e-12  # of the smaller area: less than this from nothing or from all of it is rounding
_LEVEL = 1e-9  # sine of an angle that is none
_ROOM = 16  # corners of what is left; four edges add four to four


@kernel
def _measure(corner: Array, turned: Array, area: Array, pieces: Array, crossed: Array) -> None:
    around = np.empty(8)
    for i in range(area.size):
        lead = 0  # the same corner first whichever was given first, so that areas are the same
        for k in range(1, 4):
            x, y = corner[i, 2 * k] - corner[i, 2 * lead], corner[i, 2 * k + 1]
            if x < 0.0 or (x == 0.0 and y < corner[i, 2 * lead + 1]):
                lead = k
        for k in range(4):
            at = (lead + k) % 4
            around[2 * k] = corner[i, 2 * at] - corner[i, 2 * lead]
            around[2 * k + 1] = corner[i, 2 * at + 1] - corner[i, 2 * lead + 1]
        twice = around[2] * around[5] - around[4] * around[3]
        twice += around[4] * around[7] - around[6] * around[5]
        for k in range(4):
            at = (lead + (k if twice >= 0.0 else 4 - k)) % 4
            turned[i, 2 * k] = corner[i, 2 * at]
            turned[i, 2 * k + 1] = corner[i, 2 * at + 1]
        area[i] = 0.5 * abs(twice)
        left, right, bent = 0, 0, 0
        for k in range(4):
            a, b, c = 2 * k, 2 * ((k + 1) % 4), 2 * ((k + 2) % 4)
            ux, uy = turned[i, b] - turned[i, a], turned[i, b + 1] - turned[i, a + 1]
            vx, vy = turned[i, c] - turned[i, b], turned[i, c + 1] - turned[i, b + 1]
            turn = ux * vy - uy * vx
            least = _LEVEL * np.sqrt((ux * ux + uy * uy) * (vx * vx + vy * vy))
            if turn > least:
                left += 1
            elif turn < -least:
                right += 1
            if turn < 0.0:
                bent += 1
        crossed[i] = left == 2 and right == 2
        pieces[i] = 1 if bent == 0 else 2


def measure(corner: Array) -> tuple[Array, Array, Array, Array]:
    """Quadrilaterals as :func:`shared_areas` takes them.

    Args:
        corner: float64 [n, 8], x and y of the corners around each, either way round, finite.

    Returns:
        corners float64 [n, 8], all the same way round; area float64 [n]; int8 [n], 1 where it is
        convex and 2 where it is to be taken apart; bool [n], whether it crosses itself, of which
        the area is what is left of one side after the other.
    """
    n = corner.shape[0]
    out = np.empty((n, 8)), np.empty(n), np.empty(n, np.int8), np.empty(n, np.bool_)
    _measure(frozen(corner, np.float64), *out)
    return out


@inner
def _laid(turned: Array, i: int, pieces: int, piece: int, x: float, y: float, out: Array) -> Any:
    """Write a piece of a quadrilateral, from (x, y) on and anticlockwise: its sign.

    Its corners are 4 of one that is whole, and 3 of a triangle.
    """
    if pieces == 1:
        for k in range(4):
            out[k, 0], out[k, 1] = turned[i, 2 * k] - x, turned[i, 2 * k + 1] - y
        return 1.0
    for k in range(3):
        at = 0 if k == 0 else k + piece
        out[k, 0], out[k, 1] = turned[i, 2 * at] - x, turned[i, 2 * at + 1] - y
    ux, uy = out[1, 0] - out[0, 0], out[1, 1] - out[0, 1]
    vx, vy = out[2, 0] - out[0, 0], out[2, 1] - out[0, 1]
    if ux * vy - uy * vx >= 0.0:
        return 1.0
    out[1, 0], out[1, 1], out[2, 0], out[2, 1] = out[2, 0], out[2, 1], out[1, 0], out[1, 1]
    return -1.0


@inner
def _common(one: Array, n: int, two: Array, m: int, left: Array, then: Array) -> Any:
    """Area that two convex polygons share, whose corners stand anticlockwise."""
    for k in range(n):
        left[k, 0], left[k, 1] = one[k, 0], one[k, 1]
    for edge in range(m):
        x, y = two[edge, 0], two[edge, 1]
        end = edge + 1 if edge + 1 < m else 0
        dx, dy = two[end, 0] - x, two[end, 1] - y
        if dx == 0.0 and dy == 0.0:
            continue
        kept = 0
        px, py = left[n - 1, 0], left[n - 1, 1]
        before = dx * (py - y) - dy * (px - x)
        for k in range(n):
            qx, qy = left[k, 0], left[k, 1]
            after = dx * (qy - y) - dy * (qx - x)
            if (before >= 0.0) != (after >= 0.0):
                share = before / (before - after)
                then[kept, 0], then[kept, 1] = px + share * (qx - px), py + share * (qy - py)
                kept += 1
            if after >= 0.0:
                then[kept, 0], then[kept, 1] = qx, qy
                kept += 1
            px, py, before = qx, qy, after
        if kept < 3:
            return 0.0
        n = kept
        left, then = then, left
    x, y, twice = left[0, 0], left[0, 1], 0.0
    for k in range(1, n - 1):
        twice += (left[k, 0] - x) * (left[k + 1, 1] - y) - (left[k + 1, 0] - x) * (left[k, 1] - y)
    return 0.5 * twice if twice > 0.0 else 0.0


@kernel
def _shared(
    turned: Array, area: Array, pieces: Array,
    other_turned: Array, other_area: Array, other_pieces: Array,
    row: Array, other: Array, room: Array, shared: Array,
) -> None:  # fmt: skip
    one, two, left, then = room[0], room[1], room[2], room[3]
    for k in range(row.size):
        a, b = row[k], other[k]
        x, y = turned[a, 0], turned[a, 1]
        total = 0.0
        for i in range(pieces[a]):
            sign = _laid(turned, a, pieces[a], i, x, y, one)
            for j in range(other_pieces[b]):
                turns = sign * _laid(other_turned, b, other_pieces[b], j, x, y, two)
                n, m = 5 - pieces[a], 5 - other_pieces[b]
                total += turns * _common(one, n, two, m, left, then)
        most = min(area[a], other_area[b])
        shared[k] = 0.0
        if total > _WHOLE * most:
            whole = abs(total - most) <= _WHOLE * most
            shared[k] = most if whole else total


def shared_areas(
    one: tuple[Array, Array, Array], two: tuple[Array, Array, Array], row: Array, other: Array
) -> Array:
    """Areas that pairs of quadrilaterals share.

    Args:
        one: corners, areas and pieces of n as :func:`measure` gives them.
        two: those of m.
        row: int32 [k], of each pair, in [0, n).
        other: int32 [k], its partner, in [0, m).

    Returns:
        float64 [k]; exactly 0, or the whole smaller area, where 1e-12 of it is all that is missing.
    """
    shared = np.empty(row.size)
    sides = [
        (frozen(turned, np.float64), frozen(area, np.float64), frozen(pieces, np.int8))
        for turned, area, pieces in (one, two)
    ]
    _shared(
        *sides[0], *sides[1], frozen(row, np.int32), frozen(other, np.int32),
        np.empty((4, _ROOM, 2)), shared,
    )  # fmt: skip
    return shared
