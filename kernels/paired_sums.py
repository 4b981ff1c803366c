"""Rows of two numbers brought together by cell, and exact sums of what the two make there.

A pass walks over the rows of each cell by blocks and makes one number after the other of a block
that lies in the cache: errors, their squares, products of numbers less the mean of their cell.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .block_sums import BLOCK, add_block, scratch
from .jit import frozen, inner, kernel
from .sums import ExactSums

Array = np.ndarray[Any, Any]

MOMENTS = {
    name: code
    for code, name in enumerate(
        (
            "absolute", "squared", "error", "target", "prediction", "size",
            "target-", "prediction-", "error-",
            "target*target", "prediction*prediction", "error*error", "target*prediction",
        )
    )
}  # fmt: skip
"""What is summed: absolute errors, their squares, errors, both sides, absolute targets; sides and
errors less their means, and products of these."""


class Laid(NamedTuple):
    """Rows by cell.

    Attributes:
        target: float64 [n].
        prediction: float64 [n].
        weight: float64 [n]; [0] where all weigh 1.
        start: int64 [cells + 1], first row of each cell.
    """

    target: Array
    prediction: Array
    weight: Array
    start: Array


class Scales(NamedTuple):
    """What the numbers of each cell are multiplied by, powers of two, so that no square is lost.

    Attributes:
        target: float64 [cells].
        prediction: float64 [cells].
        sides: float64 [cells], at most 1, what both are multiplied by before errors are made.
        error: float64 [cells], at least 1, what these are multiplied by then.
    """

    target: Array
    prediction: Array
    sides: Array
    error: Array


class Means(NamedTuple):
    """Means of the cells, of scaled numbers, float64 [cells] each."""

    target: Array
    prediction: Array
    error: Array


@kernel
def _count_rows(cell: Array, weight: Array, start: Array) -> None:
    for i in range(cell.size):
        if cell[i] >= 0 and (weight.size == 0 or weight[i] > 0.0):
            start[cell[i] + 1] += 1
    for c in range(start.size - 1):
        start[c + 1] += start[c]


@kernel
def _place_rows(cell: Array, weight: Array, at: Array, order: Array) -> None:
    for i in range(cell.size):
        if cell[i] >= 0 and (weight.size == 0 or weight[i] > 0.0):
            order[at[cell[i]]] = i
            at[cell[i]] += 1


@kernel
def _place_sides(
    cell: Array, weight: Array, at: Array, target: Array, prediction: Array, own: Array
) -> None:
    for i in range(cell.size):
        if cell[i] >= 0 and (weight.size == 0 or weight[i] > 0.0):
            place = at[cell[i]]
            at[cell[i]] = place + 1
            own[0, place], own[1, place] = target[i], prediction[i]


def _starts(cell: Array, weight: Array | None, n_cells: int) -> tuple[Array, Array, Array]:
    """Cells and weights as kernels take them, and where the rows of each cell begin."""
    of = frozen(np.zeros(0) if weight is None else weight, np.float64)
    inputs = frozen(cell, np.int32), of
    start = np.zeros(n_cells + 1, np.int64)
    _count_rows(*inputs, start)
    return *inputs, start


def by_cell(cell: Array, weight: Array | None, n_cells: int) -> tuple[Array, Array]:
    """Rows by cell, in their order within each; those that weigh nothing are left out.

    Args:
        cell: int32 [n], -1 for rows outside.
        weight: float64 [n]; None for all alike.
        n_cells: number of cells.

    Returns:
        int64 [cells + 1], where those of each cell begin; int64 [m], the rows.
    """
    *inputs, start = _starts(cell, weight, n_cells)
    order = np.empty(start[-1], np.int64)
    _place_rows(*inputs, start[:-1].copy(), order)
    return start, order


def sides_by_cell(
    cell: Array, weight: Array | None, n_cells: int, target: Array, prediction: Array
) -> tuple[Array, Array]:
    """Two numbers of rows by cell, in the order of :func:`by_cell`, sooner than by that.

    Returns:
        int64 [cells + 1], where the rows of each cell begin; targets and predictions, float64
        [2, m].
    """
    *inputs, start = _starts(cell, weight, n_cells)
    own = np.empty((2, start[-1]))
    sides = frozen(target, np.float64), frozen(prediction, np.float64)
    _place_sides(*inputs, start[:-1].copy(), *sides, own)
    return start, own


@inner
def _numbers(
    code: int, rows: Any, at: int, n: int, c: int, scales: Any, means: Any, out: Array
) -> None:
    """The numbers of some rows of a cell, each times its weight."""
    target, prediction = rows.target[at : at + n], rows.prediction[at : at + n]
    of_target, of_prediction = scales.target[c], scales.prediction[c]
    before, after = scales.sides[c], scales.error[c]
    t0, p0, e0 = means.target[c], means.prediction[c], means.error[c]
    if code == 0:
        for i in range(n):
            out[i] = abs((prediction[i] * before - target[i] * before) * after)
    elif code == 1:
        for i in range(n):
            out[i] = ((prediction[i] * before - target[i] * before) * after) ** 2
    elif code == 2:
        for i in range(n):
            out[i] = (prediction[i] * before - target[i] * before) * after
    elif code == 3:
        for i in range(n):
            out[i] = target[i] * of_target
    elif code == 4:
        for i in range(n):
            out[i] = prediction[i] * of_prediction
    elif code == 5:
        for i in range(n):
            out[i] = abs(target[i] * of_target)
    elif code == 6:
        for i in range(n):
            out[i] = target[i] * of_target - t0
    elif code == 7:
        for i in range(n):
            out[i] = prediction[i] * of_prediction - p0
    elif code == 8:
        for i in range(n):
            out[i] = (prediction[i] * before - target[i] * before) * after - e0
    elif code == 9:
        for i in range(n):
            out[i] = (target[i] * of_target - t0) ** 2
    elif code == 10:
        for i in range(n):
            out[i] = (prediction[i] * of_prediction - p0) ** 2
    elif code == 11:
        for i in range(n):
            out[i] = ((prediction[i] * before - target[i] * before) * after - e0) ** 2
    else:
        for i in range(n):
            out[i] = (target[i] * of_target - t0) * (prediction[i] * of_prediction - p0)
    if rows.weight.size:
        for i in range(n):
            out[i] *= rows.weight[at + i]


@kernel
def _add_moments(
    codes: Array, rows: Any, scales: Any, means: Any,
    chunks: Array, odd: Array, first: int, state: Array, need: Array,
) -> bool:  # fmt: skip
    out, room = np.empty(BLOCK), scratch()
    for c in range(state[0], rows.start.size - 1):
        at, end = max(rows.start[c], state[1]), rows.start[c + 1]
        while at < end:
            n = min(BLOCK, end - at)
            for j in range(state[2], codes.size):
                _numbers(codes[j], rows, at, n, c, scales, means, out)
                if not add_block(out, n, chunks, odd, c * codes.size + j, first, need, room):
                    state[0], state[1], state[2] = c, at, j
                    return False
            state[2] = 0
            at += n
    return True


@inner
def _most(bits: Array, n: int, most: int) -> int:
    """The largest of some absolute values, as bits, whose order is that of the values."""
    for i in range(n):
        most = max(most, bits[i] & 0x7FFFFFFFFFFFFFFF)
    return most


@kernel
def _largest(rows: Any, out: Array) -> None:
    error = np.empty(BLOCK)
    for c in range(rows.start.size - 1):
        for at in range(rows.start[c], rows.start[c + 1], BLOCK):
            n = min(BLOCK, rows.start[c + 1] - at)
            target, prediction = rows.target[at : at + n], rows.prediction[at : at + n]
            for i in range(n):
                error[i] = prediction[i] - target[i]
            out[c, 0] = _most(target.view(np.int64), n, out[c, 0])
            out[c, 1] = _most(prediction.view(np.int64), n, out[c, 1])
            out[c, 2] = _most(error.view(np.int64), n, out[c, 2])


def _fixed(rows: Laid) -> Laid:
    target, prediction, weight = (frozen(one, np.float64) for one in rows[:3])
    return Laid(target, prediction, weight, frozen(rows.start, np.int64))


def largest(rows: Laid, out: Array) -> None:
    """The largest absolute target, prediction and error of each cell.

    Args:
        rows: finite.
        out: float64 [cells, 3], what they were before.
    """
    _largest(_fixed(rows), out.view(np.int64))


def add_moments(
    codes: list[int], rows: Laid, scales: Scales, means: Means, sums: ExactSums
) -> None:
    """Add numbers of rows to the sums of their cells.

    Args:
        codes: which, of :data:`MOMENTS`.
        rows: by cell.
        scales: of the cells.
        means: of the cells, which numbers that have some are counted from.
        sums: of [cells, codes].
    """
    inputs = (
        frozen(np.array(codes), np.int64),
        _fixed(rows),
        Scales(*(frozen(one, np.float64) for one in scales)),
        Means(*(frozen(one, np.float64) for one in means)),
    )
    sums.resumed(lambda *state: _add_moments(*inputs, *state), 3)
