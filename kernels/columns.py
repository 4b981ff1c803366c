"""Scores that stand row by row in a grid, laid out label by label.

Whatever orders or counts the scores of one label then reads them one after the other. What has to
be known of every row, the highest score of its block and that it is a number, is found on the way:
the scores of some blocks are in a cache then, label by label, and blocks beside each other are
compared without a branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_TOGETHER = 256  # blocks taken together: long runs of each label, out of rows that stay in a cache


@inner
def _turn(
    rows: Array, width: int, column: Array, block: int, together: int, place: Array, best: Array
) -> int:
    """Whole blocks to the columns; the number of them is known to the compiler where it is one.

    Returns 0 where all scores are finite, else 1.
    """
    highest, at = best[block : block + together], place[block : block + together]
    for j in range(together):
        highest[j], at[j] = -np.inf, 0
    wrong = 0
    for k in range(width):
        out = column[k, block : block + together]
        for j in range(together):
            out[j] = rows[j * width + k]
        for j in range(together):
            value = out[j]
            more = value > highest[j]
            highest[j] = value if more else highest[j]
            at[j] = np.int32(k) if more else at[j]
            wrong |= int(not abs(value) < np.inf)
    return wrong


@kernel
def _lay(score: Array, offset: int, width: int, column: Array, place: Array, best: Array) -> bool:
    """Scores of rows from ``offset`` on to ``column[row % width, row // width]``."""
    block, at, i, wrong = offset // width, offset % width, 0, 0
    while i < score.size:
        whole = (score.size - i) // width if at == 0 else 0
        if whole == 0:  # a block that the piece before began, or that the next one ends
            value = score[i]
            column[at, block] = value
            wrong |= int(not abs(value) < np.inf)
            if at == 0 or value > best[block]:
                best[block] = value
                place[block] = at
            i += 1
            at += 1
            if at == width:
                block, at = block + 1, 0
            continue
        together = min(whole, _TOGETHER)
        rows = score[i : i + together * width]
        if together == _TOGETHER:
            wrong |= _turn(rows, width, column, block, _TOGETHER, place, best)
        else:
            wrong |= _turn(rows, width, column, block, together, place, best)
        block += together
        i += together * width
    return wrong == 0


def lay_columns(score: Array, offset: int, column: Array, place: Array, best: Array) -> bool:
    """Write scores of rows of a grid to their labels' columns; find the best label of each block.

    Args:
        score: float64 [m], rows from ``offset`` on; pieces are given in turn, from row 0 on.
        offset: row of the first score.
        column: float64 [labels, blocks], changed: row r goes to ``[r % labels, r // labels]``.
        place: int32 [blocks], changed: place of the highest score among the labels, from 0; the
            first of equal ones.
        best: float64 [blocks], changed: that score.

    Returns:
        whether all scores are finite; else ``place`` and ``best`` hold nothing of use.
    """
    return bool(_lay(frozen(score, np.float64), offset, column.shape[0], column, place, best))
