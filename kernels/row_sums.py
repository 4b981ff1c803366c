"""Sums to the bit as NumPy adds the values of a row, where their last bits decide ties."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import inner

Array = np.ndarray[Any, Any]


@inner
def _short_sum(values: Array, first: int, n: int) -> float:
    """The sum of up to 128 values in the order in which NumPy adds them: eight at a time."""
    if n < 8:
        out = 0.0
        for i in range(first, first + n):
            out += values[i]
        return out
    a, b, c, d = values[first], values[first + 1], values[first + 2], values[first + 3]
    e, f, g, h = values[first + 4], values[first + 5], values[first + 6], values[first + 7]
    whole = n - n % 8
    for i in range(first + 8, first + whole, 8):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        e += values[i + 4]
        f += values[i + 5]
        g += values[i + 6]
        h += values[i + 7]
    out = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(first + whole, first + n):
        out += values[i]
    return out


@inner
def row_sum(values: Array, first: int, n: int) -> float:
    """The sum of values that stand side by side, to the bit as NumPy adds a row.

    Sums decide ties of the assignment, so that their last bits count. Rows of more than 128 are
    halved, at a multiple of eight, until they are short; the halves wait on a stack.
    """
    if n <= 128:
        return _short_sum(values, first, n)
    begin = np.empty(64, np.int64)
    many = np.empty(64, np.int64)
    total = np.empty(64, np.float64)
    stage = np.zeros(64, np.int8)
    begin[0], many[0] = first, n
    depth = 0
    result = 0.0
    while depth >= 0:
        size = many[depth]
        if size <= 128:
            result = _short_sum(values, begin[depth], size)
            depth -= 1
            continue
        half = size // 2
        half -= half % 8
        if stage[depth] == 0:
            stage[depth] = 1
            depth += 1
            begin[depth], many[depth], stage[depth] = begin[depth - 1], half, 0
        elif stage[depth] == 1:
            total[depth] = result
            stage[depth] = 2
            depth += 1
            begin[depth], many[depth], stage[depth] = begin[depth - 1] + half, size - half, 0
        else:
            result = total[depth] + result
            depth -= 1
    return result
