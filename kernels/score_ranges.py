"""Scores of one label brought together range by range, so that all of them are never laid out.

Every range is a look at all rows, which costs less than a copy of them where memory is short.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _count(outcome: Array, offset: int, value: Array, edge: Array, count: Array) -> None:
    """Rows of outcomes 0 and 1 that are not below each edge; several rows at a time."""
    for k in range(edge.size):
        least, every, hits = edge[k], 0, 0
        for i in range(value.size):
            above = int(value[i] >= least)
            every += above
            hits += above & int(outcome[offset + i] == 1)
        count[k, 0] += every - hits
        count[k, 1] += hits


@kernel
def _gather(
    outcome: Array, offset: int, value: Array, low: float, high: float, at: Array, out: Array
) -> None:
    """Values from ``low`` to below ``high``: outcome 0 from the front, outcome 1 from the back.

    Every value is written, and the place moves on behind those of the range: no branch on what is
    a coin toss.
    """
    front, back = at[0], at[1]
    for i in range(value.size):
        v = value[i]
        inside = np.int64(v >= low) & np.int64(v < high)
        hit = np.int64(outcome[offset + i])
        out[front + (back - front) * hit] = v
        front += inside & (1 - hit)
        back -= inside & hit
    at[0], at[1] = front, back


def count_ranges(parts: Sequence[Array], outcome: Array, edge: Array) -> Array:
    """Rows by range of scores and outcome.

    Args:
        parts: float64 arrays of n finite values together, in row order.
        outcome: uint8 [n], 0 or 1.
        edge: float64 [ranges - 1], ascending: the first value of each range but the lowest.

    Returns:
        int64 [ranges, 2].
    """
    above = np.zeros((edge.size + 2, 2), np.int64)
    outcome, edge = frozen(outcome, np.uint8), frozen(np.r_[-np.inf, edge], np.float64)
    offset = 0
    for part in parts:
        value = frozen(part, np.float64)
        _count(outcome, offset, value, edge, above)
        offset += value.size
    return above[:-1] - above[1:]


def gather_range(
    parts: Sequence[Array],
    outcome: Array,
    bounds: tuple[float, float],
    sizes: tuple[int, int],
    room: Array,
) -> tuple[Array, Array]:
    """The values of one range by outcome.

    Args:
        parts: float64 arrays of n finite values together, in row order.
        outcome: uint8 [n], 0 or 1.
        bounds: lowest value, and one that all values are below.
        sizes: rows of outcome 0 and of outcome 1 within these bounds.
        room: float64, for two values more than these; written.

    Returns:
        int64 [4], CSR offsets: of outcome 0, of two places that hold nothing of use, of outcome 1;
        the beginning of ``room``, in row order values of outcome 0, in reverse those of outcome 1.
    """
    others, hits = sizes
    out = room[: others + hits + 2]  # two places that are written to while nothing moves on
    at = np.array([0, out.size - 1])
    outcome = frozen(outcome, np.uint8)
    offset = 0
    for part in parts:
        value = frozen(part, np.float64)
        _gather(outcome, offset, value, bounds[0], bounds[1], at, out)
        offset += value.size
    return np.array([0, others, others + 2, out.size]), out
