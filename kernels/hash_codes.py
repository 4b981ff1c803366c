"""Dense codes of values by their hashes: open addressing with linear probing.

Two values are taken as one where both of their 64-bit hashes agree. Integers give themselves as the
second, so their codes are exact; strings give an independent second hash, so that a million of
them collide with a chance below 1e-26.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

_SMALLEST = 1 << 12


@kernel
def _encode(
    first: Array,
    second: Array,
    begin: int,
    known: int,
    table: Array,
    seen: Array,
    codes: Array,
    rows: Array,
) -> tuple[int, int]:
    """Code rows from ``begin`` on until the table is half full; returns where, and how many."""
    mask = np.uint64(table.size - 1)
    room = table.size // 2
    previous = -1
    for i in range(begin, first.size):
        a, b = first[i], second[i]
        if previous >= 0 and seen[0, previous] == a and seen[1, previous] == b:
            codes[i] = previous
            continue
        at = a & mask
        while True:
            code = table[at] - 1
            if code < 0:
                if known == room:
                    return i, known
                code = known
                known += 1
                table[at] = known
                seen[0, code] = a
                seen[1, code] = b
                rows[code] = i
                break
            if seen[0, code] == a and seen[1, code] == b:
                break
            at = (at + np.uint64(1)) & mask
        codes[i] = code
        previous = code
    return first.size, known


@kernel
def _place_again(seen: Array, known: int, table: Array) -> None:
    """Enter known hashes into an empty table."""
    mask = np.uint64(table.size - 1)
    for code in range(known):
        at = seen[0, code] & mask
        while table[at] > 0:
            at = (at + np.uint64(1)) & mask
        table[at] = code + 1


def hash_codes(first: Array, second: Array) -> tuple[Array, Array]:
    """Codes of values in the order in which they first appear.

    Args:
        first: uint64 [n], well mixed hashes.
        second: uint64 [n], the values themselves or other hashes of them.

    Returns:
        codes int32 [n]; the row of each code's first appearance int64 [k].
    """
    first, second = frozen(first, np.uint64), frozen(second, np.uint64)
    size = _SMALLEST
    seen = np.empty((2, size // 2), np.uint64)
    rows = np.empty(size // 2, np.int64)
    table = np.zeros(size, np.int32)
    codes = np.empty(first.size, np.int32)
    done, known = 0, 0
    while True:
        done, known = _encode(first, second, done, known, table, seen, codes, rows)
        if done == first.size:
            return codes, rows[:known].copy()
        size *= 4
        table = np.zeros(size, np.int32)
        more_seen, more_rows = np.empty((2, size // 2), np.uint64), np.empty(size // 2, np.int64)
        more_seen[:, :known], more_rows[:known] = seen[:, :known], rows[:known]
        seen, rows = more_seen, more_rows
        _place_again(seen, known, table)
