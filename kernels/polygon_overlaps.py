"""Areas that pairs of valid polygons share, as a sum over pairs of their edges.

A point lies in a polygon if the edges above it, counted +1 where they bound the polygon from above
and -1 where they bound it from below, add up to 1. So the shared area of two polygons is the sum,
over all pairs of edges whose extents in x overlap, of the product of both signs and the integral of
the lower edge over that overlap. Holes and several parts are but more edges, no point where edges
cross has to be kept, and no input makes it fail.

Source: Green's theorem; the method is that of O'Rourke, Computational Geometry in C, 1998, 1.3, for
two polygons at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .polygon_runs import sort_range
from .run_layout import Array

Edges = tuple[Array, Array]
"""int64 [n + 1], offsets of each polygon's edges; float64 [e, 5]: left x and y, right x and y, and
1 or -1 for an upper or a lower edge, by ascending left x."""

_WHOLE = 1e-12  # of the smaller area: less than this from nothing or from all of it is rounding


@kernel
def _edges(
    xy: Array, ring_start: Array, part_start: Array, start: Array, loose: Array,
    edge_start: Array, edge: Array,
) -> int:  # fmt: skip
    end = 0
    for i in range(start.size - 1):
        at = 0
        for part in range(start[i], start[i + 1]):
            for ring in range(part_start[part], part_start[part + 1]):
                low, high = ring_start[ring], ring_start[ring + 1]
                twice, k = 0.0, high - 1
                x, y = xy[low, 0], xy[low, 1]  # near the origin areas are more exact
                for p in range(low, high):
                    twice += (xy[k, 0] - x) * (xy[p, 1] - y) - (xy[p, 0] - x) * (xy[k, 1] - y)
                    k = p
                # anticlockwise outside and clockwise holes have upper edges that lead left
                outside = 1.0 if (twice > 0) == (ring == part_start[part]) else -1.0
                k = high - 1
                for p in range(low, high):
                    if xy[k, 0] != xy[p, 0]:
                        leads_left = xy[p, 0] < xy[k, 0]
                        left, right = (p, k) if leads_left else (k, p)
                        loose[at, 0], loose[at, 1] = xy[left, 0], xy[left, 1]
                        loose[at, 2], loose[at, 3] = xy[right, 0], xy[right, 1]
                        loose[at, 4] = outside if leads_left else -outside
                        at += 1
                    k = p
        order = np.argsort(loose[:at, 0])
        for k in range(at):
            for field in range(5):
                edge[end + k, field] = loose[order[k], field]
        end += at
        edge_start[i + 1] = end
    return end


def edges(xy: Array, ring_start: Array, part_start: Array, start: Array) -> Edges:
    """Edges of polygons that are not vertical.

    Args:
        xy: float64 [p, 2].
        ring_start: int64 [r + 1], offsets of the rings' points, from 0.
        part_start: int64 [q + 1], offsets of the parts' rings, the first being the outside.
        start: int64 [n + 1], offsets of the polygons' parts.
    """
    points = frozen(xy, np.float64)
    edge_start = np.zeros(start.size, np.int64)
    edge = np.empty((points.shape[0], 5), np.float64)
    most = int(np.diff(ring_start[part_start[start]]).max(initial=0))
    n = _edges(
        points, frozen(ring_start, np.int64), frozen(part_start, np.int64),
        frozen(start, np.int64), np.empty((most, 5), np.float64), edge_start, edge,
    )  # fmt: skip
    return edge_start, edge[:n]


@kernel
def _areas(start: Array, edge: Array, box: Array, area: Array) -> None:
    for i in range(area.size):
        first, base = start[i], box[i, 1]
        terms = np.empty(start[i + 1] - first, np.float64)
        for k in range(terms.size):
            left, y, right, far_y, sign = edge[first + k]
            terms[k] = sign * (right - left) * ((y - base) + (far_y - base))
        sort_range(terms, 0, terms.size)  # the order of a ring's points makes no difference
        total = 0.0
        for term in terms:
            total += term
        area[i] = max(0.5 * total, 0.0)


def areas(edges: Edges, box: Array) -> Array:
    """Areas of polygons, the same to the bit whichever point and way round their rings have.

    Args:
        edges: of n polygons.
        box: float64 [n, 4], their xmin, ymin, xmax, ymax.

    Returns:
        float64 [n].
    """
    area = np.empty(box.shape[0], np.float64)
    start, edge = edges
    _areas(frozen(start, np.int64), frozen(edge, np.float64), frozen(box, np.float64), area)
    return area


@inner
def _height(edge: Array, i: int, x: float, base: float) -> Any:
    """An edge's height above ``base`` at x, exact at its ends.

    Taken from ``base`` before anything is multiplied: far from the origin, as map coordinates
    are, a y between two ends would lose the digits that areas rest on.
    """
    if x == edge[i, 0]:
        return edge[i, 1] - base
    if x == edge[i, 2]:
        return edge[i, 3] - base
    share = (x - edge[i, 0]) / (edge[i, 2] - edge[i, 0])
    return (edge[i, 1] - base) + share * (edge[i, 3] - edge[i, 1])


@inner
def _below_both(a: Array, i: int, b: Array, j: int, base: float) -> Any:
    """Integral of the lower of two edges, above ``base``, where their extents in x overlap."""
    left, right = max(a[i, 0], b[j, 0]), min(a[i, 2], b[j, 2])
    one, two = _height(a, i, left, base), _height(b, j, left, base)
    far_one, far_two = _height(a, i, right, base), _height(b, j, right, base)
    near, far = one - two, far_one - far_two
    low, far_low = min(one, two), min(far_one, far_two)
    width = 0.5 * (right - left)
    if near * far >= 0:
        return width * (low + far_low)
    share = near / (near - far)
    crossing = one + share * (far_one - one)
    return width * (share * (low + crossing) + (1.0 - share) * (crossing + far_low))


@kernel
def _shared_areas(
    start: Array, edge: Array, area: Array, box: Array,
    other_start: Array, other_edge: Array, other_area: Array, other_box: Array,
    row: Array, other: Array, following: Array, shared: Array,
) -> None:  # fmt: skip
    for k in range(row.size):
        a, b = row[k], other[k]
        shared[k] = 0.0
        left, right = max(box[a, 0], other_box[b, 0]), min(box[a, 2], other_box[b, 2])
        base, top = max(box[a, 1], other_box[b, 1]), min(box[a, 3], other_box[b, 3])
        if left >= right or base >= top:
            continue
        total = 0.0
        # Edges ascend by their left ends: one of the other polygon that ends before this one
        # begins meets none that follows either, and is unlinked.
        first, last = other_start[b], other_start[b + 1]
        for j in range(last - first + 1):
            following[j] = j  # the head at 0, then of each edge
        for i in range(start[a], start[a + 1]):
            if edge[i, 0] >= right:
                break
            if edge[i, 2] <= left:
                continue
            before = 0
            at: Any = following[0]
            while at < last - first:
                j = first + at
                if other_edge[j, 0] >= edge[i, 2]:
                    break
                after: Any = following[at + 1]
                if other_edge[j, 2] > edge[i, 0]:
                    sign = edge[i, 4] * other_edge[j, 4]
                    total += sign * _below_both(edge, i, other_edge, j, base)
                    before = at + 1
                else:
                    following[before] = after
                at = after
        most = min(area[a], other_area[b])
        if total > _WHOLE * most:
            shared[k] = total if total < most - _WHOLE * most else most


def shared_areas(
    one: tuple[Edges, Array, Array], two: tuple[Edges, Array, Array], row: Array, other: Array
) -> Array:
    """Areas that pairs of polygons share.

    Args:
        one: edges, areas float64 [n] and boxes float64 [n, 4] (xmin, ymin, xmax, ymax) of n valid
            polygons, whose rings neither cross themselves nor each other.
        two: those of m polygons.
        row: int32 [k], the polygon of each pair, in [0, n).
        other: int32 [k], its partner, in [0, m).

    Returns:
        float64 [k]; exactly 0, or the whole smaller area, where 1e-12 of it is all that is missing.
    """
    shared = np.empty(row.size, np.float64)
    most = int(np.diff(two[0][0]).max(initial=0))
    sides = [
        (
            frozen(start, np.int64), frozen(edge, np.float64),
            frozen(area, np.float64), frozen(box, np.float64),
        )
        for (start, edge), area, box in (one, two)
    ]  # fmt: skip
    _shared_areas(
        *sides[0], *sides[1], frozen(row, np.int32), frozen(other, np.int32),
        np.empty(most + 1, np.int64), shared,
    )  # fmt: skip
    return shared
