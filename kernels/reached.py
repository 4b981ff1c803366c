"""How many sorted scores, or how much weight, reach each of a few thresholds.

Counts are found by bisection. Weights are summed exactly, from the best score down.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .chunks import add_bits, nearest
from .jit import frozen, kernel
from .sums import ExactSums

Array = np.ndarray[Any, Any]


@kernel
def _first_reaching(begin: Array, end: Array, score: Array, thresholds: Array, out: Array) -> None:
    """The first place of every range whose score is at or above each threshold."""
    for s in range(begin.size):
        low = begin[s]
        for t in range(thresholds.size):
            high = end[s]
            while low < high:
                middle = (low + high) // 2
                if score[middle] < thresholds[t]:
                    low = middle + 1
                else:
                    high = middle
            out[s, t] = low  # thresholds ascend, so the next search starts here


def first_reaching(begin: Array, end: Array, score: Array, thresholds: Array) -> Array:
    """Where the scores at or above each threshold begin.

    Args:
        begin: int64 [s], starts of the ranges.
        end: int64 [s], their ends.
        score: float64 [n], ascending within each range.
        thresholds: float64 [t], ascending.

    Returns:
        int64 [s, t], places in ``score``; ``end - place`` scores reach the threshold.
    """
    out = np.empty((begin.size, thresholds.size), np.int64)
    _first_reaching(
        frozen(begin, np.int64),
        frozen(end, np.int64),
        frozen(score, np.float64),
        frozen(thresholds, np.float64),
        out,
    )
    return out


@kernel
def _weights_reaching(
    begin: Array,
    end: Array,
    score: Array,
    bits: Array,
    thresholds: Array,
    first: int,
    total: Array,
    out: Array,
) -> None:
    """Weight at or above each threshold; the last column is all there is."""
    n = thresholds.size
    for s in range(begin.size):
        i = end[s] - 1
        total[:] = 0
        for t in range(n - 1, -1, -1):
            while i >= begin[s] and score[i] >= thresholds[t]:
                add_bits(total, 0, first, bits[i])
                i -= 1
            out[s, t] = nearest(total, 0, first)
        while i >= begin[s]:
            add_bits(total, 0, first, bits[i])
            i -= 1
        out[s, n] = nearest(total, 0, first)


def weights_reaching(
    begin: Array, end: Array, score: Array, weight: Array, thresholds: Array
) -> tuple[Array, Array]:
    """Weight of the scores at or above each threshold, and of all scores.

    Args:
        begin: int64 [s], starts of the ranges.
        end: int64 [s], their ends.
        score: float64 [n], ascending within each range.
        weight: float64 [n], finite.
        thresholds: float64 [t], ascending.

    Returns:
        float64 [s, t] and float64 [s], the doubles nearest to the sums.
    """
    total = ExactSums(1)
    bits = total.reserve(weight)
    out = np.empty((begin.size, thresholds.size + 1))
    _weights_reaching(
        frozen(begin, np.int64),
        frozen(end, np.int64),
        frozen(score, np.float64),
        bits,
        frozen(thresholds, np.float64),
        total.first,
        total.chunks,
        out,
    )
    return out[:, :-1], out[:, -1]
