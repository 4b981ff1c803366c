"""Digests of tables: sums of the hashes of their rows, free of the order of rows and columns.

The hashes are fixed: lines to cite contain their sums. Values become 64-bit hashes (SplitMix64's
finaliser, Steele, Lea, Flood 2014). A row is the sum of the hashes of its values, salted by their
columns; two finalisers of that sum are the 128 bits that are added, modulo 2^128.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .bits import ABOVE_NINE, HIGH_BITS, POWERS_OF_TEN, ZERO_DIGITS, decimal, word
from .datums import mixed
from .jit import F64, I64, U8, U64, Array, Bools, inner, kernel

_GOLDEN = 0x9E3779B97F4A7C15
_PRIME = 0x100000001B3
_EXACT = 2.0**53
_DIGITS = 19
_LARGEST = 2**63 - 1


@kernel
def add_integers(values: U64, present: Bools, salt: int, rows: Array) -> None:
    """Add a column of integers, as their 64 bits, to the sums of rows.

    Args:
        present: False for nulls, which add nothing; empty if there are none.
        rows: uint64 [n].
    """
    start = np.uint64(salt)
    for i in range(values.size):
        if present.size == 0 or present[i]:
            rows[i] += mixed((values[i] + start) * np.uint64(_GOLDEN))


@kernel
def add_floats(values: F64, present: Bools, salt: int, rows: Array) -> None:
    """Add a column of floats; whole ones as integers, NaN as a null."""
    start = np.uint64(salt)
    bits = values.view(np.uint64)
    for i in range(values.size):
        value = values[i]
        if value != value or (present.size and not present[i]):
            continue
        own = bits[i]
        if abs(value) < _EXACT and value == np.floor(value):
            own = np.uint64(np.int64(value))
        rows[i] += mixed((own + start) * np.uint64(_GOLDEN))


@inner
def _some(data: U8, at: int, n: int) -> Any:
    """Up to eight bytes as the low bytes of a word."""
    if at + 8 <= data.size:
        unused = np.uint64(64 - 8 * n)
        return word(data, np.uint64(at)) << unused >> unused if n else np.uint64(0)
    few = np.uint64(0)
    for k in range(n):
        few |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return few


@inner
def _integer(data: U8, at: int, end: int) -> tuple[bool, Any]:
    """Read bytes as the one way to write an int64 in decimal: no zeros in front, no plus."""
    value, negative = np.uint64(0), data[at] == ord("-")
    first = at + 1 if negative else at
    if not 0 < end - first <= _DIGITS or (data[first] == ord("0") and end - at > 1):
        return False, value
    while first < end:
        n = min(8, end - first)
        unused = np.uint64(64 - 8 * n)
        digits = (_some(data, first, n) << unused) ^ (ZERO_DIGITS << unused)
        if (digits | (digits + ABOVE_NINE)) & HIGH_BITS:
            return False, value
        value = value * POWERS_OF_TEN[n] + decimal(digits)
        first += n
    if value > np.uint64(_LARGEST):
        return False, value
    return True, np.uint64(0) - value if negative else value


@kernel
def hash_bytes(offsets: I64, data: U8, out: Array) -> None:
    """Hash texts, 8 bytes at a time; arguments as in :func:`.datums.hash_texts`.

    The hash of an integer's decimal text is the integer: CSV does not say which of both it is.
    """
    for i in range(out.size):
        at, end = offsets[i], offsets[i + 1]
        if at < end and data[at] <= ord("9"):
            is_integer, value = _integer(data, at, end)
            if is_integer:
                out[i] = value
                continue
        state = np.uint64(end - at)
        while at + 8 <= end:
            eight = word(data, np.uint64(at))
            state = mixed(state ^ eight) * np.uint64(_PRIME) + np.uint64(_GOLDEN)
            at += 8
        out[i] = mixed(state ^ _some(data, at, end - at))


@kernel
def hash_lists(offsets: I64, items: U64, out: Array) -> None:
    """Hash lists from the hashes of their items, in order.

    Args:
        offsets: int64 [n + 1].
        items: uint64 [offsets[n]].
        out: uint64 [n].
    """
    for i in range(out.size):
        state = np.uint64(offsets[i + 1] - offsets[i])
        for at in range(offsets[i], offsets[i + 1]):
            state = mixed(state + items[at]) * np.uint64(_PRIME) + np.uint64(_GOLDEN)
        out[i] = state


@kernel
def sum_rows(rows: U64, total: Array) -> None:
    """Add the 128 bits of each row.

    Args:
        rows: uint64 [n].
        total: uint64 [2], low and high word.
    """
    low, high = total[0], total[1]
    for i in range(rows.size):
        first = mixed(rows[i] + np.uint64(_GOLDEN))
        low += first
        high += mixed(rows[i] ^ np.uint64(0xD1B54A32D192ED03)) + np.uint64(low < first)
    total[0], total[1] = low, high
