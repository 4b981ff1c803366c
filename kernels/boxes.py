"""Boxes, rotated boxes and keypoints: layouts, overlaps, and pairs of both sides.

Arguments of these names are the same everywhere:

    first, last: range [first, last) of datums.
    row, other: int32 [k], indices of the two members of each pair.
    lowest: smallest similarity (IoU or OKS) of interest.
    points, truth: points of the predictions and of the ground truths.
    people: attributes of the ground truths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from .jit import F32, F64, I8, I32, I64, Array, Bools, frozen, inner, kernel
from .sums import row_sum

# IoU of axis-aligned boxes on closed real coordinates, without added pixels or epsilon. Against a
# crowd region it is intersection / detection area. Source: pycocotools ``bbIou``.

Over = Callable[[Array, Callable[[int, int], None]], Any]

_BLOCK = 1 << 14  # fewest rows per call of a thread


@kernel
def _lay_out(
    position: Array,
    datum: Array,
    columns: tuple[Array, Array, Array, Array, Array, Array, Array],
    from_extent: bool,
    first: int,
    out: tuple[Array, Array, Array, Array, Array],
) -> None:
    xmin, ymin, xmax, ymax, width, height, score = columns
    boxes, area, datum_out, row_out, score_out = out
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
    """Consecutive rows of a table, as columns."""

    corners: tuple[Array, Array, Array, Array]  # xmin, ymin, xmax, ymax, float64 [n] each, pixels
    # width and height as annotated, float64 [n] each; None to take differences of corners
    extent: tuple[Array, Array] | None
    score: Array  # float64 [n], or [0] without scores


def lay_out(
    position: Array, datum: Array, pieces: Sequence[Piece], over: Over, *, from_extent: bool
) -> tuple[Array, Array, Array, Array, Array]:
    """Lay boxes out in the order of matching.

    Args:
        position: int32 [n], target place of each row.
        datum: int32 [n], dense datum codes.
        pieces: consecutive ranges of the n rows, which need not be joined first.
        over: calls a function on ranges of groups with CSR offsets, possibly in parallel.
        from_extent: recompute the far corner as near corner + extent, as pycocotools does.

    Returns:
        boxes float64 [n, 4] (xmin, ymin, xmax, ymax); area float64 [n], width * height; datum int32
        [n]; row int32 [n], the original row; score float64 [n], or [0] without scores.
    """
    n = position.size
    none = np.empty(0, np.float64)
    out = (
        np.empty((n, 4), np.float64),
        np.empty(n, np.float64),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n if any(piece.score.size for piece in pieces) else 0, np.float64),
    )
    codes = frozen(position, np.int32), frozen(datum, np.int32)
    blocks: list[tuple[int, Any]] = []  # first row in the table, columns of the block
    starts = [0]
    for piece in pieces:
        given = (*piece.corners, *(piece.extent or (none, none)), piece.score)
        columns = [*map(frozen, given, repeat(np.float64))]
        for at in range(0, columns[0].size, _BLOCK):
            here = tuple(column[at : at + _BLOCK] for column in columns)
            blocks.append((starts[-1], here))
            starts.append(starts[-1] + here[0].size)

    def run(first: int, last: int) -> None:
        for start, here in blocks[first:last]:
            rows = slice(start, start + here[0].size)
            _lay_out(codes[0][rows], codes[1][rows], here, from_extent, start, out)

    # Each row has a separate target, so ranges of rows do not overlap.
    over(np.array(starts, np.int64), run)
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
    """IoU of a detection and ground truth j, 0 if they do not overlap.

    Args:
        xmin: left edge of the detection; ymin, xmax and ymax its other edges, pixels.
        area: area of the detection.
        boxes: float64 [m, 4], ground truths (xmin, ymin, xmax, ymax).
        areas: float64 [m], their areas.
        crowd: divide by the area of the detection instead of the union.
    """
    w = min(xmax, boxes[j, 2]) - max(xmin, boxes[j, 0])
    if w <= 0.0:
        return 0.0
    h = min(ymax, boxes[j, 3]) - max(ymin, boxes[j, 1])
    if h <= 0.0:
        return 0.0
    overlap = w * h
    return overlap / (area if crowd else area + areas[j] - overlap)


# Pairs of one datum and label key that overlap: exact for boxes, candidates for other shapes, whose
# IoU is at most s / (area + area' - s), s being the minimum of both areas and of the overlap of
# their bounding boxes.
# Small datums compare every pair; larger ones use a sweep line over left edges.

Reached = tuple[Array, Array, Array]

_MANY = 1 << 18  # pairs of one datum from which sorting its boxes costs less than it saves
_ROUNDING = 1e-9


@inner
def _iou(shared: float, area: float, other: float, crowd: Any, lowest: float, bound: bool) -> Any:
    """IoU of two boxes, or an upper bound for shapes inside them; -1 if below ``lowest``."""
    if bound:
        shared = min(shared, area, other)
    union = area if crowd else area + other - shared
    if (bound and shared <= 0.0) or shared < 0.999 * lowest * union:
        return -1.0
    iou = shared / union
    return iou if iou >= lowest else -1.0  # NaN is no overlap


@kernel
def _every(
    first: int,
    last: int,
    predictions: tuple[I64, I32, F64, F64, I32],
    ground_truths: tuple[I64, I32, F64, F64, I32, Bools],
    lowest: float,
    bound: bool,
) -> Any:
    p_start, p_place, p_boxes, p_area, p_key = predictions
    g_start, _g_place, g_boxes, g_area, g_key, g_crowd = ground_truths
    capacity = 1024
    p_out = np.empty(capacity, np.int32)
    g_out = np.empty(capacity, np.int32)
    iou_out = np.empty(capacity, np.float64)
    n = 0
    for d in range(first, last):
        for i in range(p_start[d], p_start[d + 1]):
            a = p_place[i]
            for b in range(g_start[d], g_start[d + 1]):
                w = min(p_boxes[a, 2], g_boxes[b, 2]) - max(p_boxes[a, 0], g_boxes[b, 0])
                h = min(p_boxes[a, 3], g_boxes[b, 3]) - max(p_boxes[a, 1], g_boxes[b, 1])
                if w <= 0.0 or h <= 0.0:
                    continue
                iou = _iou(w * h, p_area[a], g_area[b], g_crowd[b], lowest, bound)
                if iou < 0.0 or p_key[a] != g_key[b]:
                    continue
                if n == capacity:
                    capacity *= 2
                    p_out = np.concatenate((p_out, np.empty(n, np.int32)))
                    g_out = np.concatenate((g_out, np.empty(n, np.int32)))
                    iou_out = np.concatenate((iou_out, np.empty(n, np.float64)))
                p_out[n] = a
                g_out[n] = b
                iou_out[n] = iou
                n += 1
    return p_out[:n], g_out[:n], iou_out[:n]


@kernel
def _swept(
    predictions: tuple[F64, F64, I32],
    ground_truths: tuple[F64, F64, I32, Bools],
    lowest: float,
    bound: bool,
    out: tuple[Array, Array, Array],
) -> int:
    """Count the pairs of one datum; both sides are ordered by left edge.

    Pairs are written up to the length of the outputs: arrays that grow would slow the loop down.
    """
    p_boxes, p_area, p_key = predictions
    g_boxes, g_area, g_key, g_crowd = ground_truths
    p_out, g_out, iou_out = out
    n = 0
    # a ground truth that ends before a prediction begins overlaps no later one: it is unlinked
    following = np.arange(g_area.size + 1)  # the first one, then the successor of each
    for a in range(p_area.size):
        before = 0
        after = following[0]
        while after < g_area.size and g_boxes[after, 0] < p_boxes[a, 2]:
            b = after
            after = following[b + 1]
            if g_boxes[b, 2] <= p_boxes[a, 0]:
                following[before] = after
                continue
            before = b + 1
            h = min(p_boxes[a, 3], g_boxes[b, 3]) - max(p_boxes[a, 1], g_boxes[b, 1])
            if h <= 0.0:
                continue
            w = min(p_boxes[a, 2], g_boxes[b, 2]) - max(p_boxes[a, 0], g_boxes[b, 0])
            iou = _iou(w * h, p_area[a], g_area[b], g_crowd[b], lowest, bound)
            if iou < 0.0 or w <= 0.0 or p_key[a] != g_key[b]:
                continue
            if n < p_out.size:
                p_out[n] = a
                g_out[n] = b
                iou_out[n] = iou
            n += 1
    return n


def _of_many(
    predictions: list[Array], ground_truths: list[Array], lowest: float, bound: bool
) -> Reached:
    """Pairs of a large datum: rows of its predictions and ground truths, by both, and IoUs."""
    p_order, g_order = (np.argsort(side[0][:, 0]) for side in (predictions, ground_truths))
    ours: Any = tuple(column[p_order] for column in predictions)
    theirs: Any = tuple(column[g_order] for column in ground_truths)
    n = 4 * (p_order.size + g_order.size)
    while True:
        p, g, iou = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float64)
        n_pairs = _swept(ours, theirs, lowest, bound, (p, g, iou))
        if n_pairs <= n:
            break
        n = n_pairs
    rows, truths = p_order[p[:n_pairs]], g_order[g[:n_pairs]]
    order = np.lexsort((truths, rows))
    return rows[order], truths[order], iou[:n_pairs][order]


def _pairs(
    first: int,
    last: int,
    predictions: tuple[Any, ...],
    ground_truths: tuple[Any, ...],
    lowest: float,
    bound: bool,
) -> Reached:
    """Places in the layouts and IoUs, by datum, prediction and ground truth."""
    start, p_place, *ours = predictions
    g_start, g_place, *theirs = ground_truths
    many = np.diff(start[first : last + 1]) * np.diff(g_start[first : last + 1]) > _MANY
    parts: list[Reached] = []
    at = first
    for dense in [*(first + np.flatnonzero(many)).tolist(), last]:
        if at < dense or not parts:
            parts.append(_every(at, dense, predictions, ground_truths, lowest, bound))
        if dense < last:
            rows = p_place[start[dense] : start[dense + 1]]
            low, high = g_start[dense : dense + 2].tolist()
            p, g, iou = _of_many(
                [column[rows] for column in ours],
                [column[low:high] for column in theirs],
                lowest,
                bound,
            )
            parts.append((rows[p], (g + low).astype(np.int32), iou))
        at = dense + 1
    p, g, iou = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    return p, g_place[g], iou


@kernel
def rows_by_datum(datum: I32, n_datums: int) -> tuple[Array, Array]:
    """CSR offsets int64 [n_datums + 1] and places int32 [n] of each datum's rows, in order."""
    start = np.zeros(n_datums + 1, np.int64)
    for i in range(datum.size):
        start[datum[i] + 1] += 1
    for d in range(n_datums):
        start[d + 1] += start[d]
    free = start[:-1].copy()
    place = np.empty(datum.size, np.int32)
    for i in range(datum.size):
        place[free[datum[i]]] = i
        free[datum[i]] += 1
    return start, place


def close_pairs(
    first: int,
    last: int,
    predictions: tuple[Array, ...],
    ground_truths: tuple[Array, ...],
    lowest: float,
) -> Reached:
    """Pairs of boxes with IoU >= ``lowest`` and the same label key.

    Args:
        predictions: start int64 [n_datums + 1] and place int32 [n] from :func:`rows_by_datum`;
            boxes float64 [n, 4], area float64 [n] and key int32 [n] by place.
        ground_truths: result of :func:`truths_by_datum`.
        lowest: above 0.

    Returns:
        prediction int32, ground truth int32 and IoU float64 per pair; by datum, then prediction
        place, then ground truth place.
    """
    return _pairs(first, last, predictions, ground_truths, lowest, False)


def candidates(
    first: int,
    last: int,
    predictions: tuple[Array, ...],
    ground_truths: tuple[Array, ...],
    lowest: float,
) -> tuple[Array, Array]:
    """Pairs of shapes of one datum and key whose IoU may reach ``lowest``.

    Args:
        predictions: as in :func:`close_pairs`, with bounding boxes and areas of the shapes.
        ground_truths: result of :func:`truths_by_datum`.
        lowest: reduced slightly against rounding; 0 for every pair that may overlap.

    Returns:
        prediction int32 and ground truth int32; by datum, then prediction, then ground truth.
    """
    lowest *= 1 - _ROUNDING
    return _pairs(first, last, predictions, ground_truths, lowest, True)[:2]


def truths_by_datum(
    datum: Array, n_datums: int, boxes: Array, area: Array, key: Array, crowd: Array | None = None
) -> tuple[Array, ...]:
    """Lay ground truths out by datum, for the search for pairs.

    Args:
        datum: int32 [m], datum codes.
        boxes: float64 [m, 4], bounding boxes.
        area: float64 [m], areas of the shapes.
        key: int32 [m], rows of different keys never match.
        crowd: bool [m], crowd regions; or None.

    Returns:
        start int64 [n_datums + 1]; place int32 [m]; boxes, area, key and crowd in that order.
    """
    start, place = rows_by_datum(datum, n_datums)
    many = np.zeros(place.size, np.bool_) if crowd is None else crowd[place]
    return (
        frozen(start, np.int64),
        frozen(place, np.int32),
        frozen(boxes[place], np.float64),
        frozen(area[place], np.float64),
        frozen(key[place], np.int32),
        frozen(many, np.bool_),
    )


# Shared areas of pairs of quadrilaterals. Convex ones are clipped edge by edge (Sutherland and
# Hodgman, 1974); others are the signed sum of two triangles, which is exact for concave ones.
# Coordinates are relative to a corner of the pair, to keep digits far from the origin.

_WHOLE = 1e-12  # relative to the smaller area: a smaller difference from 0 or all of it is rounding
_QUAD_LEVEL = 1e-9  # sine of an angle that is none
_ROOM = 16  # corners of the clipped polygon; four edges add four to four


@kernel
def measure_quads(corner: F64) -> tuple[Array, Array, Array, Array]:
    """Normalise quadrilaterals for :func:`shared_quad_areas`.

    Args:
        corner: float64 [n, 8], x and y of the corners around each, in either direction, finite.

    Returns:
        corners float64 [n, 8], all in the same direction; area float64 [n]; int8 [n], number of
        convex pieces, 1 or 2; bool [n], whether the outline crosses itself, in which case the area
        is the difference of both sides.
    """
    n = corner.shape[0]
    turned, area = np.empty((n, 8)), np.empty(n)
    pieces, crossed = np.empty(n, np.int8), np.empty(n, np.bool_)
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
            least = _QUAD_LEVEL * np.sqrt((ux * ux + uy * uy) * (vx * vx + vy * vy))
            if turn > least:
                left += 1
            elif turn < -least:
                right += 1
            if turn < 0.0:
                bent += 1
        crossed[i] = left == 2 and right == 2
        pieces[i] = 1 if bent == 0 else 2
    return turned, area, pieces, crossed


@inner
def _laid(turned: Array, i: int, pieces: int, piece: int, x: float, y: float, out: Array) -> Any:
    """Write a piece of a quadrilateral relative to (x, y), anticlockwise; return its sign.

    It has 4 corners if it is the whole quadrilateral, otherwise 3.
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
    """Area that two convex polygons with anticlockwise corners share."""
    for k in range(n):
        left[k, 0], left[k, 1] = one[k, 0], one[k, 1]
    for edge in range(m):
        x, y = two[edge, 0], two[edge, 1]
        end = edge + 1 if edge + 1 < m else 0
        dx, dy = two[end, 0] - x, two[end, 1] - y
        if dx == 0.0 and dy == 0.0:
            continue
        corners = 0
        px, py = left[n - 1, 0], left[n - 1, 1]
        before = dx * (py - y) - dy * (px - x)
        for k in range(n):
            qx, qy = left[k, 0], left[k, 1]
            after = dx * (qy - y) - dy * (qx - x)
            if (before >= 0.0) != (after >= 0.0):
                share = before / (before - after)
                then[corners, 0], then[corners, 1] = px + share * (qx - px), py + share * (qy - py)
                corners += 1
            if after >= 0.0:
                then[corners, 0], then[corners, 1] = qx, qy
                corners += 1
            px, py, before = qx, qy, after
        if corners < 3:
            return 0.0
        n = corners
        left, then = then, left
    x, y, twice = left[0, 0], left[0, 1], 0.0
    for k in range(1, n - 1):
        twice += (left[k, 0] - x) * (left[k + 1, 1] - y) - (left[k + 1, 0] - x) * (left[k, 1] - y)
    return 0.5 * twice if twice > 0.0 else 0.0


@kernel
def shared_quad_areas(
    one: tuple[F64, F64, I8], two: tuple[F64, F64, I8], row: I32, other: I32
) -> Array:
    """Areas that pairs of quadrilaterals share.

    Args:
        one: corners, areas and pieces from :func:`measure_quads`, of ``row``.
        two: the same, of ``other``.

    Returns:
        float64 [k]; exactly 0, or the whole smaller area, if the difference is at most 1e-12 of it.
    """
    turned, area, pieces = one
    other_turned, other_area, other_pieces = two
    shared = np.empty(row.size)
    room = np.empty((4, _ROOM, 2))
    piece_a, piece_b, left, then = room[0], room[1], room[2], room[3]
    for k in range(row.size):
        a, b = row[k], other[k]
        x, y = turned[a, 0], turned[a, 1]
        total = 0.0
        for i in range(pieces[a]):
            sign = _laid(turned, a, pieces[a], i, x, y, piece_a)
            for j in range(other_pieces[b]):
                winding = sign * _laid(other_turned, b, other_pieces[b], j, x, y, piece_b)
                n, m = 5 - pieces[a], 5 - other_pieces[b]
                total += winding * _common(piece_a, n, piece_b, m, left, then)
        most = min(area[a], other_area[b])
        shared[k] = 0.0
        if total > _WHOLE * most:
            contained = abs(total - most) <= _WHOLE * most
            shared[k] = most if contained else total
    return shared


# IoU of rotated boxes in single precision, in the order of operations of detectron2 and mmcv, so
# that values near a threshold round to the same side: the convex hull (Graham, 1972) of crossings
# of edges and of corners inside the other box. The two differ in the tolerance at ends of edges and
# in the sort.
# Source: detectron2 ``box_iou_rotated_utils.h`` (Apache 2.0, commit 02b5c4e), mmcv
# ``box_iou_rotated_utils.hpp`` (Apache 2.0, commit a8073c7).

_MOST = 24  # points: sixteen pairs of edges, four corners each
_PARALLEL = 1e-14
_LEVEL = 1e-6
_ONE_POINT = 1e-8
_FLAT = 1e-14  # area of a box that has none


@inner
def _corners(box: Array, x: Any, y: Any, out: Array) -> None:
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
    if margin > 0.0:
        return bool(-margin < value < end + margin)
    return bool(0.0 <= value <= end)


@inner
def _gather(one: Array, two: Array, margin: float, at: Array) -> int:
    """Write the points whose hull is the intersection of two boxes; return their number."""
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
    for i in range(1, n - 1):
        for j in range(i + 1, n):
            turn = _turn(q[i, 0], q[i, 1], q[j, 0], q[j, 1])
            if turn < -_LEVEL or (abs(turn) < _LEVEL and away[i] > away[j]):
                for k in range(2):
                    q[i, k], q[j, k] = q[j, k], q[i, k]
                away[i], away[j] = away[j], away[i]


@inner
def _before(x: Any, y: Any, distance: Any, q: Array, away: Array, at: int) -> bool:
    """Check that a point precedes another one around point 0."""
    turn = _turn(x, y, q[at, 0], q[at, 1])
    if abs(turn) < _LEVEL:
        return bool(distance < away[at])
    return bool(turn > 0)


@inner
def _insert(q: Array, away: Array, n: int) -> None:
    """Sort points 1 to n around point 0 by insertion, from the smallest one."""
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
            _turn(
                q[i, 0] - q[0, 0], q[i, 1] - q[0, 1], q[i + 1, 0] - q[0, 0], q[i + 1, 1] - q[0, 1]
            )
        )
    return area / np.float32(2.0) if m > 2 else np.float32(0.0)


@kernel
def rotated_ious(
    boxes: F32, others: F32, row: I32, other: I32, margin: float, insertion: bool
) -> Array:
    """IoUs of pairs of rotated boxes, float32 [k].

    Args:
        boxes: float32 [n, 8]: centre x and y, width, height, the factors of half the height and of
            half the width for x of the first corner, and the same for y.
        others: float32 [m, 8].
        margin: tolerance beyond the end of an edge, relative to its length.
        insertion: sort points by insertion instead of exchanges.
    """
    iou = np.empty(row.size, np.float32)
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
    return iou


# Object keypoint similarity (OKS) in pycocotools' order of operations: the mean over labelled
# points of exp(-e), e = (dx^2 + dy^2) / var / (area + 2^-52) / 2 and var = (2 sigma)^2. Without a
# labelled point, distances are to the box, enlarged to each side by its width and height.
# Numba's exp may differ from NumPy's in the last bit, so kernels return exponents and NumPy raises
# them; pairs out of reach are found by exp(-e) <= 1 / (1 + e + e^2 / 2).
# Source: pycocotools ``COCOeval.computeOks``.

_TINY = 2.0**-52


class PersonRows(NamedTuple):
    """One side's rows by datum."""

    start: I64  # [n_datums + 1], CSR offsets by datum
    place: I32  # [n], places of each datum's rows in the layout, in order
    key: I32  # [n] by place; rows of different keys do not match
    row: I32  # [n] by place, row of the table


class Points(NamedTuple):
    """Points of one side's rows."""

    start: I64  # [rows + 1], first number of each row in ``values``
    values: F64  # x, y and visibility of every point, which counts if that is above 0


class People(NamedTuple):
    """Attributes of ground truths in addition to points, by row of the table."""

    labelled: I64  # [rows], points of visibility above 0
    area: F64  # [rows], scale of distances
    boxes: F64  # [rows, 4], x, y, width, height; NaN without a box
    n_points: I64  # [rows], points that rows of the person's label have
    variance_at: I64  # [rows], first index in ``variance`` of the row's label
    variance: F64  # (2 sigma)^2 of every point


@kernel
def person_extents(start: Array, values: Array, every: bool) -> Any:
    """Extent and number of the points of every row.

    Args:
        start: int64 [n + 1], first number of each row.
        values: float64, x, y and visibility of every point.
        every: count all points instead of those of visibility above 0.

    Returns:
        boxes float64 [n, 4], xmin, ymin, xmax, ymax, NaN without points; int64 [n].
    """
    boxes = np.full((start.size - 1, 4), np.nan)
    many = np.zeros(start.size - 1, np.int64)
    for i in range(many.size):
        for k in range(start[i], start[i + 1], 3):
            if not every and not values[k + 2] > 0:
                continue
            x, y = values[k], values[k + 1]
            many[i] += 1
            if many[i] == 1:
                boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3] = x, y, x, y
                continue
            boxes[i, 0] = min(boxes[i, 0], x)
            boxes[i, 1] = min(boxes[i, 1], y)
            boxes[i, 2] = max(boxes[i, 2], x)
            boxes[i, 3] = max(boxes[i, 3], y)
    return boxes, many


@inner
def _beyond(value: float, low: float, high: float) -> float:
    return max(0.0, low - value) + max(0.0, value - high)


@kernel
def pairs_reaching(
    first: int,
    last: int,
    ours: PersonRows,
    theirs: PersonRows,
    points: Points,
    truth: Points,
    people: People,
    lowest: float,
) -> Any:
    """Pairs whose OKS may reach ``lowest``; every pair if it is 0.

    Returns:
        prediction int32 [k] and ground truth int32 [k], places in their layouts, by datum,
        prediction and ground truth.
    """
    p_start, p_place, p_key, p_row = ours
    g_start, g_place, g_key, g_row = theirs
    d_start, d_values = points
    t_start, t_values = truth
    labelled, areas, boxes, n_points, variance_at, variance = people
    p_out = np.empty(256, np.int32)
    g_out = np.empty(256, np.int32)
    n = 0
    least = lowest * (1 - _ROUNDING)
    for d in range(first, last):
        for i in range(p_start[d], p_start[d + 1]):
            p = p_place[i]
            at = d_start[p_row[p]]
            size = (d_start[p_row[p] + 1] - at) // 3
            for j in range(g_start[d], g_start[d + 1]):
                g = g_place[j]
                row = g_row[g]
                if p_key[p] != g_key[g] or size != n_points[row]:
                    continue
                if labelled[row] > 0:
                    t, v = t_start[row], variance_at[row]
                    scale = 1.0 / (2.0 * (areas[row] + _TINY))
                    room = labelled[row] * (1.0 - least)  # how far a sum of ones may fall
                    for q in range(size):
                        if t_values[t + 3 * q + 2] > 0:
                            dx = d_values[at + 3 * q] - t_values[t + 3 * q]
                            dy = d_values[at + 3 * q + 1] - t_values[t + 3 * q + 1]
                            e = (dx * dx + dy * dy) / variance[v + q] * scale
                            room -= 1.0 - 1.0 / (1.0 + e * (1.0 + 0.5 * e))
                            if room < 0.0:
                                break
                    if room < 0.0:
                        continue
                elif boxes[row, 0] != boxes[row, 0]:
                    continue  # neither points nor box
                if n == p_out.size:
                    p_out = np.concatenate((p_out, np.empty(n, np.int32)))
                    g_out = np.concatenate((g_out, np.empty(n, np.int32)))
                p_out[n] = p
                g_out[n] = g
                n += 1
    return p_out[:n], g_out[:n]


@kernel
def oks_exponents(
    row: I64, other_row: I64, points: Points, truth: Points, people: People
) -> tuple[Array, Array]:
    """-e of every counted point of pairs of rows.

    Args:
        row: int64 [k], rows of the predictions.
        other_row: int64 [k], rows of the ground truths, with as many points or only a box.

    Returns:
        int64 [k + 1], first number of each pair; float64, the numbers.
    """
    d_start, d_values = points
    t_start, t_values = truth
    labelled, areas, boxes, _, variance_at, variance = people
    start = np.zeros(row.size + 1, np.int64)
    for i in range(row.size):
        size = (d_start[row[i] + 1] - d_start[row[i]]) // 3
        start[i + 1] = start[i] + (labelled[other_row[i]] or size)
    values = np.empty(start[-1], np.float64)
    for i in range(row.size):
        at, g, k = d_start[row[i]], other_row[i], start[i]
        size = (d_start[row[i] + 1] - at) // 3
        t, v = t_start[g], variance_at[g]
        size_of = areas[g] + _TINY
        boxed = labelled[g] == 0
        x0, x1 = boxes[g, 0] - boxes[g, 2], boxes[g, 0] + boxes[g, 2] * 2
        y0, y1 = boxes[g, 1] - boxes[g, 3], boxes[g, 1] + boxes[g, 3] * 2
        for q in range(size):
            x, y = d_values[at + 3 * q], d_values[at + 3 * q + 1]
            if boxed:
                dx, dy = _beyond(x, x0, x1), _beyond(y, y0, y1)
            elif t_values[t + 3 * q + 2] > 0:
                dx, dy = x - t_values[t + 3 * q], y - t_values[t + 3 * q + 1]
            else:
                continue
            values[k] = -((dx * dx + dy * dy) / variance[v + q] / size_of / 2)
            k += 1
    return start, values


@kernel
def oks_means(start: Array, values: Array) -> Any:
    """Mean of each pair's numbers in the order of NumPy's pairwise sum, float64 [k]; NaN if empty.

    Args:
        start: int64 [k + 1], first number of each pair.
        values: float64, the numbers.
    """
    out = np.empty(start.size - 1, np.float64)
    for i in range(out.size):
        n = start[i + 1] - start[i]
        out[i] = row_sum(values, start[i], n) / n
    return out


# Keypoint errors: each predicted point is compared, by exp(-e), with the same point of its person,
# with the mirrored one, and with those of other people of its datum and label. Source: M. R. Ronchi
# and P. Perona, "Benchmarking and Error Diagnosis in Multi-Instance Pose Estimation" (ICCV 2017),
# and its code coco-analyze.

GOOD, JITTER, INVERSION, SWAP, MISS = range(5)
LOW, ON = 0.5, 0.85
"""Similarity from which a point is near another one, and from which it is correct."""


class FoundPoints(NamedTuple):
    """People that were found, with the prediction that found them."""

    row: I64  # [k], rows of the predictions
    place: I64  # [k], places of the people in the layout


class LaidPoints(NamedTuple):
    """All people, ordered by label, then datum."""

    row: I64  # [m], rows of the table
    datum: I32  # [m]
    label: I32  # [m]


@inner
def _oks(x: float, y: float, truth: Array, at: int, variance: float, area: float) -> float:
    """Similarity of a position to a labelled point of a person, -1 if the point is not labelled."""
    if not truth[at + 2] > 0:
        return -1.0
    dx, dy = x - truth[at], y - truth[at + 1]
    return math.exp(-((dx * dx + dy * dy) / variance / (area + _TINY) / 2))


@kernel
def judged_points(
    given: FoundPoints,
    laid: LaidPoints,
    points: Points,
    truth: Points,
    people: People,
    mirror: Array,
) -> Any:
    """Outcome of every labelled point of people that were found.

    Args:
        given: the people and the predictions that found them.
        laid: all people.
        mirror: int64, by place in ``people.variance``: the point on the other side, or the same.

    Returns:
        per labelled point its pair int64 [p], number int64 [p] and kind int8 [p], the place of the
        person with the most similar point int64 [p], and the similarity to the right point float64
        [p].
    """
    rows, places = given
    all_rows, datum, label = laid
    d_start, d_values = points
    t_start, t_values = truth
    labelled, areas, _, _, variance_at, variance = people
    many = 0
    for place in places:
        many += labelled[all_rows[place]]
    pair, point, other = np.empty((3, many), np.int64)
    kind = np.empty(many, np.int8)
    own_similarity = np.empty(many, np.float64)
    k = 0
    for i in range(rows.size):
        g = places[i]
        g_row = all_rows[g]
        t, d, v = t_start[g_row], d_start[rows[i]], variance_at[g_row]
        size = t_start[g_row + 1] - t
        first, last = g, g + 1
        while first > 0 and datum[first - 1] == datum[g] and label[first - 1] == label[g]:
            first -= 1
        while last < datum.size and datum[last] == datum[g] and label[last] == label[g]:
            last += 1
        for q in range(size // 3):
            if not t_values[t + 3 * q + 2] > 0:
                continue
            x, y, var = d_values[d + 3 * q], d_values[d + 3 * q + 1], variance[v + q]
            best = _oks(x, y, t_values, t + 3 * q, var, areas[g_row])
            own_similarity[k] = best
            which, whose = GOOD if best >= ON else JITTER, g
            across = 3 * mirror[v + q]
            for side in range(2):  # the same point of all people, then that on their other side
                if side == 1:
                    similarity = _oks(x, y, t_values, t + across, var, areas[g_row])
                    if similarity > best:
                        best, which, whose = similarity, INVERSION, g
                for h in range(first, last):
                    row = all_rows[h]
                    if h == g or t_start[row + 1] - t_start[row] != size:
                        continue
                    at = t_start[row] + (across if side == 1 else 3 * q)
                    similarity = _oks(x, y, t_values, at, var, areas[row])
                    if similarity > best:
                        best, which, whose = similarity, SWAP, h
            if best < LOW:
                which, whose = MISS, g
            pair[k], point[k], kind[k], other[k] = i, q, which, whose
            k += 1
    return pair, point, kind, other, own_similarity


@kernel
def flag_points(
    given: FoundPoints,
    counted: Bools,
    laid: LaidPoints,
    points: Points,
    truth: Points,
    size: F64,
    share: float,
    bit: int,
    bits: int,
    out: Array,
) -> None:
    """Mark labelled points, and points within a share of the size of a found one.

    Args:
        given: the people and the predictions that found them.
        counted: bool [m], whether a person counts, by place.
        laid: all people.
        size: float64 [rows], of each person; one that is not above 0 does not count.
        share: distance relative to the size.
        bit: bit of labelled points among the bits of a point; the next bit is for near points.
        bits: bits per point.
        out: uint64 [words, m], bits of all points of each person; written.
    """
    rows, places = given
    d_start, d_values = points
    t_start, t_values = truth
    finder = np.full(counted.size, -1, np.int64)
    for i in range(rows.size):
        finder[places[i]] = rows[i]
    one = np.uint64(1)
    for g in range(counted.size):
        row = laid.row[g]
        if not counted[g] or not size[row] > 0:
            continue
        t = t_start[row]
        for q in range((t_start[row + 1] - t) // 3):
            if not t_values[t + 3 * q + 2] > 0:
                continue
            at = q * bits + bit
            out[at // 64, g] |= one << np.uint64(at % 64)
            if finder[g] < 0:
                continue
            d = d_start[finder[g]]
            dx = d_values[d + 3 * q] - t_values[t + 3 * q]
            dy = d_values[d + 3 * q + 1] - t_values[t + 3 * q + 1]
            if math.sqrt(dx * dx + dy * dy) / size[row] <= share:
                at += 1
                out[at // 64, g] |= one << np.uint64(at % 64)
