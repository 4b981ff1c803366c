"""Joint histogram of two label maps: how many pixels have each pair of indices.

Maps are made of regions, so that most runs of eight pixels hold one index. Both maps are read as
64-bit words, a block of them at a time. Where a pixel differs from the one before is found for a
whole block first, which the compiler does in vectors; a list of the words in which one does comes
next, without a branch; and only those are counted pixel by pixel, their last pixel for all words
that go on with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

BYTES = 256
"""Indices that a byte can hold; the table of pairs has that many rows and columns."""

_TABLES = 4  # neighbouring pixels often add to one pair; each has a table of its own to add to
_PLACE = BYTES * BYTES + 24  # from one table to the next: not the same lines of the cache again
_BLOCK = 64  # words whose changes are found at a time; they stay in the nearest cache
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
    """The place in a table of one pair of indices, as :func:`_packed` has it."""
    return (byte_a << 8) | ((byte_b ^ (byte_a << 3)) & 0xFF)


@kernel
def _count_bytes(
    a: Any, b: Any, words_a: Any, words_b: Any, table: Any, seen: Any, change: Any, border: Any
) -> None:
    """Add the pixels of two maps to tables of pairs.

    Args:
        a: uint8 [n], indices.
        b: uint8 [n], indices of the same pixels in the other map.
        words_a: uint64 [n // 8], the same bytes as ``a``, eight to a word.
        words_b: the same of ``b``.
        table: int64 [4 * 65560], counts of pairs, in four parts; added to.
        seen: uint64 [2], bits that occur in the words of either side; added to.
        change: uint64 [64], used here.
        border: uint16 [65], used here.
    """
    zero = np.uint64(0)
    seen_a, seen_b = seen[0], seen[1]
    if words_a.size > 0:
        seen_a, seen_b = seen_a | words_a[0], seen_b | words_b[0]
        held, last = _add_seven(words_a[0], words_b[0], table), np.int64(0)  # it goes on from there
        bytes_of = change.view(np.uint8)
        for start in range(1, words_a.size, change.size):
            n = min(change.size, words_a.size - start)
            first, after = 8 * start, 8 * (start + n)
            side_a, before_a = a[first:after], a[first - 1 : after - 1]
            side_b, before_b = b[first:after], b[first - 1 : after - 1]
            # Bits in which a pixel differs from the one before, in vectors of bytes.
            for k in range(8 * n):
                bytes_of[k] = (side_a[k] ^ before_a[k]) | (side_b[k] ^ before_b[k])
            found = 0
            for k in range(n):
                border[found] = k
                found += change[k] != zero
            here_a, here_b = words_a[start : start + n], words_b[start : start + n]
            for k in range(found):
                at = np.int64(border[k])
                word_a, word_b = here_a[at], here_b[at]
                seen_a |= word_a
                seen_b |= word_b
                table[held] += 8 * (start + at - last) - 7
                held, last = _add_seven(word_a, word_b, table), start + at
        table[held] += 8 * (words_a.size - last) - 7
    for i in range(8 * words_a.size, a.size):
        seen_a |= np.uint64(a[i])
        seen_b |= np.uint64(b[i])
        table[_place(np.int64(a[i]), np.int64(b[i]))] += 1
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
            at = _place(a, b)
            total = 0
            for part in range(_TABLES):
                total += table[_PLACE * part + at]
                table[_PLACE * part + at] = 0
            if total != 0:
                out[0, found], out[1, found], out[2, found] = a, b, total
                found += 1
    return found


@kernel
def _count_coded(a: Any, b: Any, low: Any, codes_a: Any, codes_b: Any, out: Any) -> None:
    """Joint histogram of wider integers, whose indices have codes.

    Args:
        a: int32 [n], indices.
        b: int32 [n], indices of the same pixels in the other map.
        low: int64 [2], lowest index of either side.
        codes_a: int32 [highest - lowest + 1], code of each index of the first.
        codes_b: the same of the second.
        out: int64 [codes of a, codes of b]; added to.
    """
    for i in range(a.size):
        out[codes_a[a[i] - low[0]], codes_b[b[i] - low[1]]] += 1


def _words(side: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Bytes as read-only words, without those at the end that fill none.

    Words must begin where words can; a view that does not is copied, which costs no more than
    reading it.
    """
    words = side[: side.size // 8 * 8].view(np.uint64)
    if not words.flags.aligned:
        words = words.copy()
    words.flags.writeable = False
    return words


class ByteCounter:
    """Joint histograms of pairs of byte maps, one after the other, in the same tables."""

    def __init__(self) -> None:
        self._table = np.zeros(_TABLES * _PLACE, np.int64)
        self._seen = np.zeros(2, np.uint64)
        self._change = np.empty(_BLOCK, np.uint64)
        self._border = np.empty(_BLOCK + 1, np.uint16)
        self._out = np.empty((3, BYTES * BYTES), np.int64)

    def add(self, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> None:
        """Count the pixels of two maps, or of a part of them.

        Args:
            a: uint8, any shape.
            b: uint8, of the same shape.
        """
        a, b = frozen(a.reshape(-1), np.uint8), frozen(b.reshape(-1), np.uint8)
        _count_bytes(
            a, b, _words(a), _words(b), self._table, self._seen, self._change, self._border
        )

    def take(self) -> np.ndarray[Any, Any]:
        """What was counted since the last time.

        Returns:
            int64 [3, m]: indices of the first map, of the second, and pixels.
        """
        n = _take_pairs(self._table, self._seen, self._out)
        return self._out[:, :n].copy()


def count_wide(
    a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Joint histogram of two maps whose indices do not fit into bytes.

    Args:
        a: integers within int32, any shape.
        b: the same of the same shape.

    Returns:
        indices of the first map int64 [m], of the second int64 [m], pixels int64 [m].
    """
    if a.size == 0:
        none = np.empty(0, np.int64)
        return none, none.copy(), none.copy()
    sides = [frozen(side.reshape(-1), np.int32) for side in (a, b)]
    low = np.array([side.min() for side in sides], np.int64)
    span = [int(side.max()) - int(least) + 1 for side, least in zip(sides, low, strict=True)]
    if max(span) > _SPAN:
        return _count_sorted(*sides)
    values, codes = [], []
    for side, least, width in zip(sides, low, span, strict=True):
        here = np.zeros(width, bool)
        here[side - np.int32(least) if width <= 2**31 - 1 else side.astype(np.int64) - least] = True
        values.append(np.flatnonzero(here) + least)
        codes.append((np.cumsum(here) - 1).astype(np.int32))
    if values[0].size * values[1].size > _CELLS:
        return _count_sorted(*sides)
    out = np.zeros((values[0].size, values[1].size), np.int64)
    _count_coded(*sides, frozen(low, np.int64), *(frozen(c, np.int32) for c in codes), out)
    at, to = np.nonzero(out)
    return values[0][at], values[1][to], out[at, to]


_SPAN = 1 << 24  # places in the table of codes of one side
_CELLS = 1 << 24  # pairs of codes


def _count_sorted(
    a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The same for indices that lie far apart, by sorting the pairs."""
    joint = (a.astype(np.int64) << 32) | (b.astype(np.int64) & 0xFFFFFFFF)
    pair, count = np.unique(joint, return_counts=True)
    return pair >> 32, (pair & 0xFFFFFFFF).astype(np.uint32).view(np.int32).astype(np.int64), count
