"""Documents ordered by majority of the runs (Condorcet fusion)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]


@inner
def _loses(rank: Array, one: int, other: int) -> bool:
    """Whether more runs rank the other above the one than the one above the other."""
    votes = 0
    for run in range(rank.shape[1]):
        if rank[other, run] < rank[one, run]:
            votes += 1
        elif rank[one, run] < rank[other, run]:
            votes -= 1
    return votes > 0


@kernel
def _majority(rank: Array, start: Array, place: Array) -> None:
    """Fill ``place`` query by query; see :func:`majority_order`."""
    n = 0
    for query in range(start.size - 1):
        n = max(n, start[query + 1] - start[query])
    order = np.empty(n, np.int64)
    merged = np.empty(n, np.int64)
    for query in range(start.size - 1):
        first, size = start[query], start[query + 1] - start[query]
        for i in range(size):
            order[i] = first + size - 1 - i
        width = 1
        while width < size:
            for low in range(0, size, 2 * width):
                middle, high = min(low + width, size), min(low + 2 * width, size)
                left, right = low, middle
                for to in range(low, high):
                    if right == high or (
                        left < middle and not _loses(rank, order[left], order[right])
                    ):
                        merged[to] = order[left]
                        left += 1
                    else:
                        merged[to] = order[right]
                        right += 1
            for i in range(size):
                order[i] = merged[i]
            width *= 2
        for i in range(size):
            place[order[i]] = i


def majority_order(rank: Array, start: Array) -> Array:
    """Order the candidates of each query so that none loses to the one behind it.

    Of two candidates the one wins that more runs rank higher. That may go round in circles, so the
    relation alone gives no order; merging sorted halves gives one in which every candidate is at
    least as good as its successor (Montague and Aslam, Condorcet fusion, CIKM 2002, section 3.1).
    Candidates start in descending order of their places, so ties and circles always end alike.

    Args:
        rank: int32 [m, runs], rank of each candidate in each run; large where a run lacks it.
        start: int64 [q + 1], offsets of the candidates of each query.

    Returns:
        place of each candidate within its query from 0, int64 [m].
    """
    place = np.empty(rank.shape[0], np.int64)
    _majority(frozen(rank, np.int32), frozen(start, np.int64), place)
    return place
