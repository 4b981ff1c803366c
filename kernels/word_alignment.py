"""Word alignments near the diagonal, as sacrebleu 2.6 searches them for TER after Tercom.

Cells within 25 columns of the diagonal are searched, or more where one text is many times as long
as the other; only these are kept, so that memory grows with the words and not with their square.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .jit import inner

Array = np.ndarray[Any, Any]

_BEAM = 25
_NEVER = np.int32(1 << 28)
_KEEP, _REPLACE, _DELETE, _INSERT = np.uint8(0), np.uint8(1), np.uint8(2), np.uint8(3)


@inner
def _width(n: int, m: int) -> int:
    """How far from the diagonal cells are searched."""
    ratio = m / n
    return math.ceil(ratio / 2 + _BEAM) if ratio / 2 > _BEAM else _BEAM


@inner
def kept_cells(n: int, m: int) -> int:
    """Cells of a row that are kept: those of its own band, and of the next one's."""
    return min(m + 2, 2 * _width(n, m) + math.ceil(m / n) + 4)


@inner
def bands(n: int, m: int, low: Array, top: Array) -> None:
    """The first column of each row that is searched, and one past the last, [n + 1]."""
    ratio, width = m / n, _width(n, m)
    low[0], top[0] = 0, min(m + 1, kept_cells(n, m) - 1)
    for i in range(1, n + 1):
        diagonal = math.floor(i * ratio)
        low[i] = max(0, diagonal - width)
        top[i] = m + 1 if i == n else min(m + 1, diagonal + width)


@inner
def fill_rows(
    h: Array,
    n: int,
    ref: Array,
    m: int,
    from_row: int,
    low: Array,
    top: Array,
    cost: Array,
    step: Array,
    stepped: bool,
) -> int:
    """Rows of the table after ``from_row``; returns the distance.

    ``cost[i, 1 + k]`` is of column ``low[i] + k``, so that every cell has one before it; ``step``
    has no such cell.
    """
    for i in range(from_row + 1, n + 1):
        first, last = low[i], top[i]
        past = first - low[i - 1]  # where the row before has the column before the first
        for k in range(top[i - 1] - low[i - 1], last - low[i - 1]):
            cost[i - 1, k + 1] = _NEVER
        cost[i, 0] = _NEVER
        word = h[i - 1]
        for j in range(first, last):
            k = j - first
            best, op = _NEVER, _KEEP
            if j == 0:
                best, op = cost[i - 1, 1] + np.int32(1), _DELETE
            else:
                best = cost[i - 1, past + k]
                if word != ref[j - 1]:
                    best, op = best + np.int32(1), _REPLACE
                above = cost[i - 1, past + k + 1] + np.int32(1)
                if best > above:
                    best, op = above, _DELETE
                left = cost[i, k] + np.int32(1)
                if best > left:
                    best, op = left, _INSERT
            cost[i, k + 1] = best
            if stepped:
                step[i, k] = op
    return cost[n, m - low[n] + 1]


@inner
def align_words(
    n: int, m: int, low: Array, step: Array, align: Array, h_wrong: Array, r_wrong: Array
) -> None:
    """Where each word of the reference stands in the hypothesis, and running counts of errors."""
    i, j = n, m
    while i > 0 or j > 0:
        op = step[i, j - low[i]] if i > 0 else _INSERT
        if op == _INSERT:
            align[j - 1] = i - 1
            r_wrong[j] = 1
            j -= 1
        elif op == _DELETE:
            h_wrong[i] = 1
            i -= 1
        else:
            align[j - 1] = i - 1
            h_wrong[i] = r_wrong[j] = op
            i -= 1
            j -= 1
    h_wrong[0] = r_wrong[0] = 0
    for k in range(n):
        h_wrong[k + 1] += h_wrong[k]
    for k in range(m):
        r_wrong[k + 1] += r_wrong[k]
