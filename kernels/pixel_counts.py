"""Joint histogram of two label maps: how many pixels have each pair of indices.

Maps are made of regions, so that most pixels have the pair of indices of the pixel before. Of 64
pixels at a time a vector of comparisons tells which do not, a bit each of a word; what lies between
two of those is one run and is counted at once. Where there are many, as in noise, all 64 are
counted pixel by pixel instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .vectors import LANES, borders, lowest, set_bits, word

BYTES = 256
"""Indices that a byte can hold; the table of pairs has that many rows and columns."""

_TABLES = 4  # neighbouring pixels often add to one pair; each has a table of its own to add to
_PLACE = BYTES * BYTES + 24  # from one table to the next: not the same lines of the cache again
_MANY = 24  # changes among 64 pixels from which each pixel is counted, rather than each run
_EVEN = 0x00FF00FF00FF00FF


@inner
def _packed(byte_a: Any, byte_b: Any) -> Any:
    """Four places in a table, 16 bits each, of bytes that stand in such lanes.

    The row is the index of the first map; the column that of the second, moved by the row, since
    rows lie a power of two apart and their first columns would share few lines of the cache.
    """
    moved = (byte_b ^ (byte_a << np.uint64(3))) & np.uint64(_EVEN)
    return (byte_a << np.uint64(8)) | moved


@inner
def _add_seven(word_a: Any, word_b: Any, table: Any) -> Any:
    """Count seven pairs of indices, neighbours in a table each; the place of the last is given."""
    even, eight, lane = np.uint64(_EVEN), np.uint64(8), np.uint64(0xFFFF)
    two, three, four = np.uint64(16), np.uint64(32), np.uint64(48)
    second, third, fourth = np.uint64(_PLACE), np.uint64(2 * _PLACE), np.uint64(3 * _PLACE)
    pairs = _packed(word_a & even, word_b & even)
    table[pairs & lane] += 1
    table[second + ((pairs >> two) & lane)] += 1
    table[third + ((pairs >> three) & lane)] += 1
    table[fourth + (pairs >> four)] += 1
    pairs = _packed((word_a >> eight) & even, (word_b >> eight) & even)
    table[pairs & lane] += 1
    table[second + ((pairs >> two) & lane)] += 1
    table[third + ((pairs >> three) & lane)] += 1
    return fourth + (pairs >> four)


@inner
def _place(byte_a: Any, byte_b: Any) -> Any:
    """The place in a table of one pair of indices, uint64, as :func:`_packed` has it."""
    moved = (byte_b ^ (byte_a << np.uint64(3))) & np.uint64(0xFF)
    return (byte_a << np.uint64(8)) | moved


@inner
def _add_all(a: Any, b: Any, first: Any, table: Any, seen_a: Any, seen_b: Any) -> Any:
    """Count 64 pixels from one on, each by itself; bits that occur on either side are given."""
    for at in range(first, first + np.uint64(LANES), np.uint64(8)):
        word_a, word_b = word(a, at), word(b, at)
        table[_add_seven(word_a, word_b, table)] += 1
        seen_a, seen_b = seen_a | word_a, seen_b | word_b
    return seen_a, seen_b


@kernel
def _count_bytes(a: Any, b: Any, table: Any, seen: Any) -> None:
    """Add the pixels of two maps to tables of pairs.

    Args:
        a: uint8 [n], indices.
        b: uint8 [n], indices of the same pixels in the other map.
        table: int64 [4 * 65560], counts of pairs, in four parts; added to.
        seen: uint64 [2], bits that occur on either side, in any of eight bytes; added to.
    """
    zero, one, lanes, size = np.uint64(0), np.uint64(1), np.uint64(LANES), np.uint64(a.size)
    seen_a, seen_b, end = seen[0], seen[1], zero
    if size > lanes:
        # Pixels from ``since`` on go on with the pair at ``held`` and are counted when it ends.
        seen_a, seen_b = seen_a | np.uint64(a[0]), seen_b | np.uint64(b[0])
        held, since = _place(np.uint64(a[0]), np.uint64(b[0])), zero
        end = one + (size - one) // lanes * lanes
        for first in range(one, end, lanes):
            changed = borders(a, b, first)
            if set_bits(changed) > np.uint64(_MANY):
                # From the one before, that the last of them begins a run as a border does.
                table[held] += np.int64(first - one - since)
                seen_a, seen_b = _add_all(a, b, first - one, table, seen_a, seen_b)
                since, changed = first - one + lanes, one << (lanes - one)
            while changed != zero:
                at = first + lowest(changed)
                changed &= changed - one
                index_a, index_b = np.uint64(a[at]), np.uint64(b[at])
                seen_a, seen_b = seen_a | index_a, seen_b | index_b
                table[held] += np.int64(at - since)
                held, since = _place(index_a, index_b), at
        table[held] += np.int64(end - since)
    for i in range(end, size):
        seen_a, seen_b = seen_a | np.uint64(a[i]), seen_b | np.uint64(b[i])
        table[_place(np.uint64(a[i]), np.uint64(b[i]))] += 1
    seen[0], seen[1] = seen_a, seen_b


@kernel
def _take_pairs(table: Any, seen: Any, out: Any) -> int:
    """Move what the tables hold into lists, and leave the tables empty.

    Args:
        table: int64 [4 * 65560]; zeros afterwards.
        seen: uint64 [2], bits that occur on either side; they bound the indices, so that no cell
            beyond them was touched; zeros afterwards.
        out: int64 [3, 65536], out: index of the first map, of the second, and pixels, of the
            pairs that occur, ascending.

    Returns:
        how many there are.
    """
    for side in range(2):
        for half in (np.uint64(32), np.uint64(16), np.uint64(8)):
            seen[side] |= seen[side] >> half
    rows, columns = np.int64(seen[0] & np.uint64(0xFF)), np.int64(seen[1] & np.uint64(0xFF))
    seen[:] = np.uint64(0)
    found = 0
    for a in range(rows + 1):
        for b in range(columns + 1):
            at = np.int64(_place(np.uint64(a), np.uint64(b)))
            total = 0
            for part in range(_TABLES):
                total += table[_PLACE * part + at]
                table[_PLACE * part + at] = 0
            if total != 0:
                out[0, found], out[1, found], out[2, found] = a, b, total
                found += 1
    return found


class ByteCounter:
    """Joint histograms of pairs of byte maps, one after the other, in the same tables."""

    def __init__(self) -> None:
        self._table = np.zeros(_TABLES * _PLACE, np.int64)
        self._seen = np.zeros(2, np.uint64)
        self._out = np.empty((3, BYTES * BYTES), np.int64)

    def add(self, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> None:
        """Count the pixels of two maps, or of a part of them.

        Args:
            a: uint8, any shape.
            b: uint8, of the same shape.
        """
        a, b = frozen(a.reshape(-1), np.uint8), frozen(b.reshape(-1), np.uint8)
        _count_bytes(a, b, self._table, self._seen)

    def take(self) -> np.ndarray[Any, Any]:
        """What was counted since the last time.

        Returns:
            int64 [3, m]: indices of the first map, of the second, and pixels.
        """
        n = _take_pairs(self._table, self._seen, self._out)
        return self._out[:, :n].copy()
