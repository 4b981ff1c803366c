"""Rows that share the score of a judged document: all that has to be ordered by id or by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel
from .query_rows import SCORE, scores_of

Array = np.ndarray[Any, Any]


@kernel
def _beside(
    start: Array, values: Array, hit_start: Array, hits: Array, equal: Array, tied: Array, of: Array
) -> int:
    """Rows whose score is that of a hit which is not alone with it; returns how many."""
    found = 0
    for q in range(start.size - 1):
        low, high = hit_start[q], hit_start[q + 1]
        shared = False
        for h in range(low, high):
            shared = shared or equal[h] > 1
        if not shared:
            continue
        for i in range(start[q], start[q + 1]):
            score = values[i, SCORE]
            below, end = low, high
            while below < end:
                middle = (below + end) // 2
                if values[hits[middle], SCORE] <= score:
                    end = middle
                else:
                    below = middle + 1
            if below < high and values[hits[below], SCORE] == score and equal[below] > 1:
                tied[found] = i
                of[found] = below
                found += 1
    return found


def beside(
    start: Array, laid: Array, hit_start: Array, hits: Array, equal: Array
) -> tuple[Array, Array]:
    """Rows that share the score of a hit with others, by query and position.

    Args:
        start: int64 [q + 1], offsets of the rows of each query.
        laid: uint64 [n, 3], rows by query.
        hit_start: int64 [q + 1], offsets of its hits.
        hits: int64 [h], positions by descending score.
        equal: int32 [h], rows with the score of each.

    Returns:
        positions int64 [m]; for each the first hit with its score, int64 [m].
    """
    # A score that several hits share is counted once.
    mine = scores_of(laid)[hits]
    same = np.zeros(hits.size, bool)
    if hits.size > 1:
        same[1:] = mine[1:] == mine[:-1]
        same[hit_start[:-1][hit_start[:-1] < hits.size]] = False
    room = int(equal[(equal > 1) & ~same].sum())
    tied, of = np.empty(room, np.int64), np.empty(room, np.int64)
    found = _beside(
        frozen(start, np.int64),
        frozen(laid, np.uint64).view(np.float64),
        frozen(hit_start, np.int64),
        frozen(hits, np.int64),
        frozen(equal, np.int32),
        tied,
        of,
    )
    return tied[:found], of[:found]
