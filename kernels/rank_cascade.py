"""Expected reciprocal rank: a reader who stops where a document satisfies."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _cascade(
    start: Array, rank: Array, satisfies: Array, cuts: Array, begin: int, end: int, out: Array
) -> None:
    for q in range(begin, end):
        reading, total = 1.0, 0.0
        c = 0
        for h in range(start[q], start[q + 1]):
            while c < cuts.size and cuts[c] < rank[h]:
                out[q, c] = total
                c += 1
            total += satisfies[h] * reading / rank[h]
            reading *= 1.0 - satisfies[h]
        while c < cuts.size:
            out[q, c] = total
            c += 1


def cascade(
    start: Array, rank: Array, satisfies: Array, cuts: Array, begin: int, end: int, out: Array
) -> None:
    """Sum over ranks of 1 / rank times the chance to stop there, up to each cut-off.

    Args:
        start: int64 [q + 1], CSR offsets of the judged documents of each query.
        rank: int32 [h], from 1, ascending within a query.
        satisfies: float64 [h], chance that a document satisfies its reader, 0 to 1.
        cuts: int64 [k], ascending.
        begin: first query of the range.
        end: one past its last.
        out: float64 [q, k]; rows ``begin`` to ``end`` are written.
    """
    _cascade(
        frozen(start, np.int64),
        frozen(rank, np.int32),
        frozen(satisfies, np.float64),
        frozen(cuts, np.int64),
        begin,
        end,
        out,
    )
