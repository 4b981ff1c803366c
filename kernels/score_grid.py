"""Scores of every label on every datum, datum after datum: what is counted of them as they stand.

Row r of such a grid is of label ``r % width`` and of block ``r // width``, so a column of scores is
read where it lies, piece by piece, and no codes are looked at.

Areas need no order of the negatives (Mann and Whitney 1947: how many positives are above each), and
of many labels few rows are positives. So these alone are sorted, and every score finds its place
among those of its label by a table: the bits of floats, read as integers, rise with them, and what
a shift leaves of their distance from the lowest positive's is a place in the table, which holds how
many positives come before. Floats are compared within that place alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_POSITIVE_BITS = np.int64(0x7FFFFFFFFFFFFFFF)
_BLOCKS = 4096  # rows of a label looked at together, as its table is then read once for many
_ROWS = 1 << 18  # rows of a grid looked at together at most
_PAD = 2  # NaN behind each label's positives, below which nothing is


@inner
def key_of(bits: Any) -> Any:
    """An integer that does not fall where the float of these bits rises; both zeros have one."""
    sign = bits >> 63
    return ((bits ^ (sign & _POSITIVE_BITS)) - sign) >> 1


@kernel
def _best(score: Array, offset: int, width: int, place: Array, best: Array) -> None:
    """The highest score of every block and its place there, of equal ones the first."""
    block, column = offset // width, offset % width
    i = 0
    while i < score.size:
        stop = min(score.size, i + width - column)
        highest, at = score[i], column
        if column > 0 and not highest > best[block]:
            highest, at = best[block], int(place[block])
        for k in range(i + 1, stop):
            if score[k] > highest:
                highest, at = score[k], column + k - i
        best[block] = highest
        place[block] = at
        block, column, i = block + 1, 0, stop


@kernel
def _reaching(score: Array, offset: int, width: int, thresholds: Array, count: Array) -> None:
    """Rows of every label by the highest threshold that they reach."""
    column = offset % width
    low = thresholds[0]
    for i in range(score.size):
        value = score[i]
        if value >= low:
            at = 0
            size = thresholds.size
            while size > 1:
                half = size >> 1
                at += half * int(value >= thresholds[at + half])
                size -= half
            count[column, at] += 1
        column += 1
        if column == width:
            column = 0


@kernel
def _fill(
    start: Array, positive: Array, bits: Array, low: Array, shift: Array, first: Array, table: Array
) -> None:
    """Tables of all labels; see :func:`place_table`."""
    for s in range(start.size - 1):
        end = start[s + 1] - _PAD
        if end == start[s]:
            continue
        low[s] = key_of(bits[start[s]])
        span = key_of(bits[end - 1]) - low[s]
        room = first[s + 1] - first[s] - 3
        while (span >> shift[s]) >= room:
            shift[s] += 1
        for i in range(start[s], end):
            at = (key_of(bits[i]) - low[s]) >> shift[s]
            table[first[s] + at + 2] += 1
        for k in range(first[s] + 1, first[s + 1]):
            table[k] += table[k - 1]


@inner
def _more(own: Array, first: int, stop: int, value: float) -> int:
    """How many of a sorted range are below a value, and how many at most it, added up."""
    low, high = first, stop
    while low < high:
        middle = (low + high) >> 1
        if own[middle] < value:
            low = middle + 1
        else:
            high = middle
    below = low
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if own[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return below + low - 2 * first if first < stop else 0


@kernel
def _wins(
    score: Array,
    bits: Array,
    offset: int,
    start: Array,
    positive: Array,
    low: Array,
    shift: Array,
    first: Array,
    table: Array,
    won: Array,
) -> None:
    """Add twice the positives above every row, ties counting one, to its label."""
    width = start.size - 1
    rows = max(width, min(_ROWS, _BLOCKS * width))
    for begin in range(0, score.size, rows):
        end = min(score.size, begin + rows)
        for s in range(width):
            n = start[s + 1] - start[s] - _PAD
            if n == 0:
                continue
            own = positive[start[s] : start[s + 1]]
            places = table[first[s] : first[s + 1]]
            origin, by, last = low[s], shift[s], first[s + 1] - first[s] - 2
            passed = 0  # positives that are not above, and those that are below
            seen = 0
            for i in range(begin + (s - offset - begin) % width, end, width):
                value = score[i]
                at = min(max(((key_of(bits[i]) - origin) >> by) + 1, 0), last)
                below = int(places[at])
                one, two = own[below], own[below + 1]
                passed += 2 * below + int(one < value) + int(one <= value)
                passed += int(two < value) + int(two <= value)
                seen += 1
                if two <= value:  # rare: there may be more of them at this place
                    passed += _more(own, below + 2, int(places[at + 1]), value)
            won[s] += 2 * n * seen - passed


def best_of_blocks(score: Array, offset: int, width: int, place: Array, best: Array) -> None:
    """The highest score of every block of rows, and its place there, the first of equal ones.

    Args:
        score: float64 [m], rows from ``offset`` on; pieces are given in turn, from row 0 on.
        offset: row of the first score.
        width: rows of a block, at least 1.
        place: int32 [blocks], changed: places from 0.
        best: float64 [blocks], changed.
    """
    _best(frozen(score, np.float64), offset, width, place, best)


def count_reaching(score: Array, offset: int, width: int, thresholds: Array, count: Array) -> None:
    """Count rows of every label by the highest threshold that their scores reach.

    Args:
        score: float64 [m], rows from ``offset`` on.
        offset: row of the first score.
        width: labels.
        thresholds: float64 [t], ascending, at least one.
        count: int64 [width, t], added to; rows that reach no threshold are not counted.
    """
    _reaching(frozen(score, np.float64), offset, width, frozen(thresholds, np.float64), count)


def place_table(start: Array, positive: Array) -> tuple[Array, ...]:
    """Tables that tell about how many positives of a label are below a score.

    Args:
        start: int64 [labels + 1], CSR offsets of each label's positives.
        positive: float64 [m], their scores, ascending within a label, without NaN.

    Returns:
        what :func:`add_wins` reads: ``start`` and ``positive``; int64 [labels] twice, the lowest
        positive's bits as an integer and a shift; int64 [labels + 1], where the label's table
        begins in the last array, int32: how many positives stand before each place. The first and
        the last place are those below and above all positives.
    """
    n = np.diff(start)
    to = np.arange(positive.size) + np.repeat(np.arange(n.size) * _PAD, n)
    padded = np.full(positive.size + n.size * _PAD, np.nan)
    padded[to] = positive
    start = frozen(start + np.arange(start.size) * _PAD, np.int64)
    positive = frozen(padded, np.float64)
    first = np.zeros(start.size, np.int64)
    np.cumsum(3 + (1 << np.ceil(np.log2(np.maximum(n, 2))).astype(np.int64)), out=first[1:])
    low, shift = np.zeros(n.size, np.int64), np.zeros(n.size, np.int64)
    table = np.zeros(int(first[-1]), np.int32)
    _fill(start, positive, frozen(positive.view(np.int64), np.int64), low, shift, first, table)
    return start, positive, low, shift, first, table


def add_wins(score: Array, offset: int, tables: tuple[Array, ...], won: Array) -> None:
    """Add twice the number of positives above each row, ties counting one, to its label's sum.

    Args:
        score: float64 [m], rows from ``offset`` on, positives and negatives alike, without NaN.
        offset: row of the first score.
        tables: what :func:`place_table` made.
        won: int64 [labels], added to. Over all rows of a label with n positives, n * n of it is
            what the positives win among themselves.
    """
    start, positive, low, shift, first, table = tables
    score = frozen(score, np.float64)
    _wins(
        score,
        frozen(score.view(np.int64), np.int64),
        offset,
        frozen(start, np.int64),
        frozen(positive, np.float64),
        frozen(low, np.int64),
        frozen(shift, np.int64),
        frozen(first, np.int64),
        frozen(table, np.int32),
        won,
    )
