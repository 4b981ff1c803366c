"""Absolute errors between two bounds: what is left to select a quantile from."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _between(
    target: Array, prediction: Array, low: float, high: float, out: Array
) -> tuple[int, int]:
    below, n = 0, 0
    for i in range(target.size):
        error = abs(prediction[i] - target[i])
        below += error < low
        if n < out.size:
            out[n] = error
        n += (error >= low) & (error <= high)
    return below, n


def errors_between(
    target: Array, prediction: Array, low: float, high: float, most: int
) -> tuple[int, Array | None]:
    """How many absolute errors are below a bound, and those from there to another.

    Args:
        target: float64 [n].
        prediction: float64 [n].
        low: the lower bound.
        high: the higher one.
        most: errors between them that there is room for.

    Returns:
        the number; float64 [m], or None where there are more.
    """
    out = np.empty(most)
    sides = frozen(target, np.float64), frozen(prediction, np.float64)
    below, n = _between(*sides, low, high, out)
    return below, out[:n] if n <= most else None
