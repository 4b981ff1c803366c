"""Isotonic regression: blocks of adjacent values whose means never fall.

Pool adjacent violators, one pass with a stack of blocks, each with its sum and weight.
Source: M. Ayer, H. D. Brunk, G. M. Ewing, W. T. Reid, E. Silverman, "An empirical distribution
function for sampling with incomplete information" (1955).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _blocks(total: Array, weight: Array, sums: Array, weights: Array, stop: Array) -> int:
    """Fill the ends of the blocks; how many there are."""
    n = 0
    for i in range(total.size):
        sums[n] = total[i]
        weights[n] = weight[i]
        stop[n] = i + 1
        n += 1
        while n > 1 and sums[n - 2] * weights[n - 1] >= sums[n - 1] * weights[n - 2]:
            sums[n - 2] += sums[n - 1]
            weights[n - 2] += weights[n - 1]
            stop[n - 2] = stop[n - 1]
            n -= 1
    return n


def pooled_blocks(total: Array, weight: Array) -> tuple[Array, Array, Array]:
    """The blocks of an isotonic fit; more places may follow, put behind the blocks so far.

    Args:
        total: float64 [n], sum of what is fitted, at each place.
        weight: float64 [n], above 0, what it is the sum over.

    Returns:
        where blocks end, int64 [b]; their sums and weights, float64 [b] each.
    """
    sums, weights = np.empty((2, total.size))
    stop = np.empty(total.size, np.int64)
    n = _blocks(frozen(total, np.float64), frozen(weight, np.float64), sums, weights, stop)
    return stop[:n], sums[:n], weights[:n]
