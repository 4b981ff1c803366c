"""Sums over rows under the weights of many draws at once.

A row is visited once for a whole block of draws, whose weights lie side by side. Values are kept
on a grid so coarse that every sum of them is exact in a double: the sums of a draw do not depend on
the order of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .draw_weights import MOST
from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


def step_of_grid(largest: Array | float, n: Array | int) -> Array:
    """The step of a grid on which n weighted values add up exactly in doubles.

    Args:
        largest: of the absolute values, finite.
        n: how many values enter one sum.

    Returns:
        a power of two, float64 of their shape; 0 where all values are 0.
    """
    bits = np.frexp(largest)[1] + np.frexp(np.asarray(n, np.float64) * MOST)[1] - 53
    return np.where((np.asarray(largest) == 0) | (np.asarray(n) == 0), 0.0, np.ldexp(1.0, bits))


def on_grid(values: Array, step: Array | float) -> Array:
    """The values rounded to whole steps, float64; NaN stays."""
    step = np.asarray(step)
    fine = step == 0  # all values are 0, or so small that each is whole steps of what doubles have
    if not fine.any():
        return np.rint(values / step) * step
    own = np.where(fine, 1.0, step)
    return np.where(fine, values, np.rint(values / own) * own)


@kernel
def _largest(cell: Array, values: Array, n: Array, most: Array) -> None:
    bits = values.view(np.int64)  # in the order of absolute values, NaN above all
    for r in range(cell.size):
        c = cell[r]
        if c >= 0:
            n[c] += 1.0
            most[c] = max(most[c], bits[r] & 0x7FFFFFFFFFFFFFFF)


@kernel
def _count_tiny(cell: Array, values: Array, least: Array, few: Array) -> None:
    for r in range(cell.size):
        c = cell[r]
        if c >= 0 and values[r] != 0.0 and abs(values[r]) < least[c]:
            few[c] += 1.0


def largest_of_cells(cell: Array, values: Array, n: Array, most: Array) -> None:
    """Count the values of each cell, and find the largest absolute one, NaN where one is.

    Args:
        cell: int32 [m], -1 for values that count nowhere.
        values: float64 [m].
        n: float64 [cells], added to.
        most: float64 [cells], what it was before.
    """
    _largest(frozen(cell, np.int32), frozen(values, np.float64), n, most.view(np.int64))


def count_tiny(cell: Array, values: Array, least: Array, few: Array) -> None:
    """Count the values of each cell, but 0, that are smaller than one of the cell's own.

    Args:
        cell: int32 [m], -1 for values that count nowhere.
        values: float64 [m].
        least: float64 [cells].
        few: float64 [cells], added to.
    """
    inputs = frozen(cell, np.int32), frozen(values, np.float64), frozen(least, np.float64)
    _count_tiny(*inputs, few)


@kernel
def _add(datum: Array, cell: Array, values: Array, weights: Array, sums: Array) -> None:
    n_draws = weights.shape[1]
    for r in range(cell.size):
        c = cell[r]
        if c < 0:
            continue
        w = weights[datum[r] if datum.size else r]
        for j in range(values.shape[1]):
            value = values[r, j]
            if value == value and value != 0:
                out = sums[c, j]
                for d in range(n_draws):
                    out[d] += value * w[d]


@kernel
def _count(datum: Array, cell: Array, values: Array, weights: Array, sums: Array) -> None:
    n_draws = weights.shape[1]
    for r in range(cell.size):
        c = cell[r]
        if c < 0:
            continue
        w = weights[datum[r] if datum.size else r]
        for j in range(sums.shape[1]):
            if values.size == 0 or values[r, j] == values[r, j]:
                out = sums[c, j]
                for d in range(n_draws):
                    out[d] += w[d]


def drawn_sums(
    datum: Array | None, cell: Array, values: Array, weights: Array, sums: Array
) -> None:
    """Add weighted values to the sums of their cells, leaving out NaN.

    Args:
        datum: int32 [m], datum of each row; None where row i is datum i.
        cell: int64 [m], -1 for rows that count nowhere.
        values: float64 [m, c], on a grid (see :func:`step_of_grid`).
        weights: uint8 [n_datums, b].
        sums: float64 [cells, c, b], added to.
    """
    inputs = _datums(datum), frozen(cell, np.int64), frozen(values, np.float64)
    _add(*inputs, frozen(weights, np.uint8), sums)


def drawn_counts(
    datum: Array | None, cell: Array, values: Array | None, weights: Array, sums: Array
) -> None:
    """Add weights to the counts of their cells.

    Args:
        datum: as :func:`drawn_sums` has it.
        cell: likewise.
        values: float64 [m, c], of which NaN does not count; None where every row does.
        weights: uint8 [n_datums, b].
        sums: float64 [cells, c, b], added to.
    """
    some = np.zeros((0, 0)) if values is None else values
    inputs = _datums(datum), frozen(cell, np.int64), frozen(some, np.float64)
    _count(*inputs, frozen(weights, np.uint8), sums)


def _datums(datum: Array | None) -> Array:
    return frozen(np.zeros(0, np.int32) if datum is None else datum, np.int32)
