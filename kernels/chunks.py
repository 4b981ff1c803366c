"""Sums as whole numbers: chunks of 32 bits that lie side by side; see :mod:`.sums`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .jit import inner

Array = np.ndarray[Any, Any]

ABOVE = 4
"""Chunks from the lowest that the highest addend reaches to the last one that a carry does."""

_LOW = 0xFFFFFFFF


@inner
def add_bits(chunks: Array, cell: int, first: int, bits: int) -> None:
    """Add a finite double to a sum.

    Args:
        chunks: int64 [cells, width].
        cell: which sum.
        first: which of all chunks ``chunks[:, 0]`` is.
        bits: the double's bits as int64.
    """
    exponent = (bits >> 52) & 0x7FF
    mantissa = bits & 0xFFFFFFFFFFFFF
    if exponent == 0:
        if mantissa == 0:
            return
        exponent = 1  # subnormal
    else:
        mantissa |= 1 << 52
    at = ((exponent - 1) >> 5) - first
    shift = (exponent - 1) & 31
    rest = mantissa >> (32 - shift)
    if bits < 0:
        chunks[cell, at] -= (mantissa << shift) & _LOW
        chunks[cell, at + 1] -= rest & _LOW
        chunks[cell, at + 2] -= rest >> 32
    else:
        chunks[cell, at] += (mantissa << shift) & _LOW
        chunks[cell, at + 1] += rest & _LOW
        chunks[cell, at + 2] += rest >> 32


@inner
def carry(chunks: Array, cell: int) -> None:
    """Bring all chunks of a sum but the last, which bears the sign, into [0, 2^32)."""
    for i in range(chunks.shape[1] - 1):
        over = chunks[cell, i] >> 32
        chunks[cell, i] &= _LOW
        chunks[cell, i + 1] += over


@inner
def nearest(chunks: Array, cell: int, first: int) -> float:
    """The double nearest to a sum, ties to even; carries first.

    Args:
        chunks: int64 [cells, width].
        cell: which sum.
        first: which of all chunks ``chunks[:, 0]`` is.
    """
    width = chunks.shape[1]
    if width == 0:
        return 0.0
    carry(chunks, cell)
    sign = 1.0
    if chunks[cell, width - 1] < 0:
        sign = -1.0
        for i in range(width):
            chunks[cell, i] = -chunks[cell, i]
        carry(chunks, cell)
    top = width - 1
    while top >= 0 and chunks[cell, top] == 0:
        top -= 1
    value = 0.0
    if top >= 0:
        # Of 96 bits the upper 22 to 53 and the lower 43 are doubles without loss, and so is one bit
        # more for whatever lies below: their sum is rounded once, by the processor.
        second = chunks[cell, top - 1] if top > 0 else 0
        third = chunks[cell, top - 2] if top > 1 else 0
        sticky = 0
        for i in range(top - 2):
            if chunks[cell, i] != 0:
                sticky = 1
                break
        high = (chunks[cell, top] << 21) | (second >> 11)
        low = ((((second & 0x7FF) << 32) | third) << 1) | sticky
        value = math.ldexp(float(high) * 17592186044416.0 + float(low),
                           32 * (first + top - 2) - 1 - 1074)  # fmt: skip
    if sign < 0:
        for i in range(width):
            chunks[cell, i] = -chunks[cell, i]
        carry(chunks, cell)
    return sign * value
