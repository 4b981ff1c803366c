"""Object keypoint similarity (OKS) of the people of one datum, in pycocotools' order of operations.

OKS is the mean over a person's labelled points of exp(-e), where e = (dx^2 + dy^2) / var / (area +
2^-52) / 2 and var = (2 sigma)^2. Of a person without a labelled point, distances are those to its
box, enlarged by its own width and height to every side. Source: pycocotools'
``COCOeval.computeOks``.

Numba's exp may differ from NumPy's in the last bit, so that no exp stands here: the exponents of
pairs that may reach a similarity are written out, NumPy raises them all in one call, and their sums
are taken in the order of NumPy's pairwise sum. That a pair cannot reach it is told by exp(-e) <=
1 / (1 + e + e^2 / 2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import inner, kernel

Array = np.ndarray[Any, Any]

_ROUNDING = 1e-9
_TINY = 2.0**-52
_BLOCK = 128  # numbers that NumPy adds up without halving


class Rows(NamedTuple):
    """One side's rows by datum.

    Attributes:
        start: int64 [n_datums + 1], CSR offsets by datum.
        place: int32 [n], places of each datum's rows in the layout, in order.
        key: int32 [n] by place; rows of different keys do not meet.
        row: int32 [n] by place, row of the table.
    """

    start: Array
    place: Array
    key: Array
    row: Array


class Points(NamedTuple):
    """Points of one side's rows.

    Attributes:
        start: int64 [rows + 1], first number of each row in ``values``.
        values: float64, x, y and visibility of every point; a point counts where that is above 0.
    """

    start: Array
    values: Array


class People(NamedTuple):
    """What ground truths have beside their points, by row of the table.

    Attributes:
        labelled: int64 [rows], points of visibility above 0.
        area: float64 [rows], that distances are held against.
        boxes: float64 [rows, 4], x, y, width, height; NaN without a box.
        n_points: int64 [rows], points that rows of the person's label have.
        variance_at: int64 [rows], where in ``variance`` those of the row's label begin.
        variance: float64, (2 sigma)^2 of every point.
    """

    labelled: Array
    area: Array
    boxes: Array
    n_points: Array
    variance_at: Array
    variance: Array


@kernel
def extents(start: Array, values: Array, every: bool) -> Any:
    """What is around the points of every row, and how many there are.

    Args:
        start: int64 [n + 1], first number of each row.
        values: float64, x, y and visibility of every point.
        every: whether all points count, or those of visibility above 0 alone.

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
    """How far a value lies outside of [low, high]."""
    return max(0.0, low - value) + max(0.0, value - high)


@kernel
def reaching(
    first: int,
    last: int,
    ours: Rows,
    theirs: Rows,
    found: Points,
    truth: Points,
    people: People,
    lowest: float,
) -> Any:
    """Pairs whose OKS may reach ``lowest``, datum by datum.

    Args:
        first: first datum.
        last: one past the last datum.
        ours: predictions.
        theirs: ground truths.
        found: points of the predictions.
        truth: points of the ground truths.
        people: the ground truths.
        lowest: smallest OKS of interest; 0 for every pair.

    Returns:
        prediction int32 [k] and ground truth int32 [k], places in their layouts, by datum,
        prediction and ground truth.
    """
    p_start, p_place, p_key, p_row = ours
    g_start, g_place, g_key, g_row = theirs
    d_start, d_values = found
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
def exponents(
    row: Array, other_row: Array, found: Points, truth: Points, people: People
) -> tuple[Array, Array]:
    """-e of every counted point of pairs of rows, one pair after the other.

    Args:
        row: int64 [k], rows of the predictions.
        other_row: int64 [k], rows of the ground truths, with as many points or a box alone.
        found: points of the predictions.
        truth: points of the ground truths.
        people: the ground truths.

    Returns:
        int64 [k + 1], first number of each pair; float64, the numbers.
    """
    d_start, d_values = found
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


@inner
def _block_sum(values: Array, first: int, n: int) -> float:
    """Sum of at most 128 numbers: in order below eight, else in eight running sums."""
    if n < 8:
        total = 0.0
        for i in range(first, first + n):
            total += values[i]
        return total
    r0, r1, r2, r3 = values[first], values[first + 1], values[first + 2], values[first + 3]
    r4, r5, r6, r7 = values[first + 4], values[first + 5], values[first + 6], values[first + 7]
    whole = n - n % 8
    for i in range(first + 8, first + whole, 8):
        r0 += values[i]
        r1 += values[i + 1]
        r2 += values[i + 2]
        r3 += values[i + 3]
        r4 += values[i + 4]
        r5 += values[i + 5]
        r6 += values[i + 6]
        r7 += values[i + 7]
    total = ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
    for i in range(first + whole, first + n):
        total += values[i]
    return total


@kernel
def means(start: Array, values: Array) -> Any:
    """Mean of each pair's numbers, added up in the order of NumPy's pairwise sum.

    Args:
        start: int64 [k + 1], first number of each pair.
        values: float64, the numbers.

    Returns:
        float64 [k]; NaN of a pair without numbers.
    """
    out = np.empty(start.size - 1, np.float64)
    # Halves that wait for their sum: where they begin, how long they are, how deep they lie.
    begin = np.empty(64, np.int64)
    long = np.empty(64, np.int64)
    depth = np.empty(64, np.int64)
    sums = np.empty(64, np.float64)
    level = np.empty(64, np.int64)
    for i in range(out.size):
        n = start[i + 1] - start[i]
        begin[0], long[0], depth[0] = start[i], n, 0
        waiting, done = 1, 0
        while waiting > 0:
            waiting -= 1
            at, size, deep = begin[waiting], long[waiting], depth[waiting]
            if size > _BLOCK:
                half = size // 2
                half -= half % 8
                begin[waiting], long[waiting] = at + half, size - half
                begin[waiting + 1], long[waiting + 1] = at, half
                depth[waiting] = depth[waiting + 1] = deep + 1
                waiting += 2
                continue
            sums[done], level[done] = _block_sum(values, at, size), deep
            done += 1
            while done > 1 and level[done - 1] == level[done - 2]:
                sums[done - 2] += sums[done - 1]
                level[done - 2] -= 1
                done -= 1
        out[i] = sums[0] / n
    return out
