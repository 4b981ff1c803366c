"""Scores that stand row by row in a grid, laid out label by label.

Whatever orders or counts the scores of one label then reads them one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_TOGETHER = 256  # blocks taken together: long runs of each label, out of rows that stay in a cache


@inner
def _turn(rows: Array, width: int, column: Array, block: int, together: int) -> None:
    """Whole blocks to the columns; the number of them is known to the compiler where it is one."""
    for k in range(width):
        out = column[k, block : block + together]
        for j in range(together):
            out[j] = rows[j * width + k]


@kernel
def _lay(score: Array, offset: int, width: int, column: Array) -> None:
    """Scores of rows from ``offset`` on to ``column[row % width, row // width]``."""
    block, at, i = offset // width, offset % width, 0
    while i < score.size:
        whole = (score.size - i) // width if at == 0 else 0
        if whole == 0:  # a block that the piece before began, or that the next one ends
            column[at, block] = score[i]
            i += 1
            at += 1
            if at == width:
                block, at = block + 1, 0
            continue
        together = min(whole, _TOGETHER)
        rows = score[i : i + together * width]
        if together == _TOGETHER:
            _turn(rows, width, column, block, _TOGETHER)
        else:
            _turn(rows, width, column, block, together)
        block += together
        i += together * width


def lay_columns(score: Array, offset: int, column: Array) -> None:
    """Write scores of rows of a grid to their labels' columns.

    Args:
        score: float64 [m], rows from ``offset`` on.
        offset: row of the first score.
        column: float64 [labels, blocks], changed: row r goes to ``[r % labels, r // labels]``.
    """
    _lay(frozen(score, np.float64), offset, column.shape[0], column)
