"""Integers marked in a table of flags, and looked up in one: proofs and codes without sorting.

Each pass does one access to the table a row. Where rows stand in random order that access misses
the cache, so flags are bits while they are set: eight times as many are within reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _mark(value: Array, low: int, bits: Array) -> None:
    """Set the bit of every value."""
    for i in range(value.size):
        at = value[i] - low
        bits[at >> 3] |= np.uint8(1 << (at & 7))


@kernel
def _look_up(value: Array, low: int, code: Array, out: Array) -> None:
    """The code of every value."""
    for i in range(value.size):
        out[i] = code[value[i] - low]


@kernel
def _place(at: Array, value: Array, out: Array) -> None:
    """Every value at its place; of several at one place the last stays."""
    for i in range(at.size):
        out[at[i]] = value[i]


@kernel
def _rises(first: Array, second: Array) -> bool:
    """Whether each pair is greater than the one before, the first number deciding."""
    for i in range(1, first.size):
        if first[i] < first[i - 1] or (first[i] == first[i - 1] and second[i] <= second[i - 1]):
            return False
    return True


def mark(value: Array, low: int, bits: Array) -> None:
    """Set the bit of every value, in place.

    Args:
        value: int64 [n], from ``low`` on, below ``low + 8 * bits.size`` (in two's complement, so
            that unsigned integers may be given as the signed ones of the same bits).
        low: what the first bit stands for.
        bits: uint8, the lowest bit of each first; changed.
    """
    _mark(frozen(value, np.int64), low, bits)


def look_up(value: Array, low: int, code: Array, out: Array) -> None:
    """The code of every value, written to ``out``.

    Args:
        value: int64 [n], as for :func:`mark`.
        low: the value of the first code.
        code: int32 [span].
        out: int32 [n], written.
    """
    _look_up(frozen(value, np.int64), low, frozen(code, np.int32), out)


def place(at: Array, value: Array, out: Array) -> None:
    """Write every value to its place; of several at one place the last stays.

    Args:
        at: int32 [n], places, each below ``out.size``.
        value: int32 [n].
        out: int32 [m], changed.
    """
    _place(frozen(at, np.int32), frozen(value, np.int32), out)


def rises(first: Array, second: Array) -> bool:
    """Whether pairs of integers stand in strict order, the first number deciding.

    Args:
        first: int64 [n].
        second: int64 [n].
    """
    return bool(_rises(frozen(first, np.int64), frozen(second, np.int64)))
