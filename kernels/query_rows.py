"""Rows laid out by query: key, score and row number side by side, so that each costs one write."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

KEY, SCORE, ROW = 0, 1, 2
"""What stands where in a row laid out by query: side by side, so that each costs one write."""


@kernel
def _lay_out(query: Array, key: Array, score: Array, place: Array, laid: Array) -> None:
    """Rows by query, in their own order within one."""
    for i in range(query.size):
        q = query[i]
        at = place[q]
        place[q] = at + 1
        laid[at, KEY] = key[i]
        laid[at, SCORE] = score[i]
        laid[at, ROW] = i


def by_query(query: Array, key: Array, score: Array, n_queries: int) -> tuple[Array, Array]:
    """Rows laid out by query, in their own order within one.

    Args:
        query: int32 [n], query of each row.
        key: uint64 [n], what stands for its document.
        score: float64 [n].
        n_queries: number of queries.

    Returns:
        offsets int64 [n_queries + 1]; uint64 [n, 3], key, bits of the score and row number.
    """
    start = np.zeros(n_queries + 1, np.int64)
    np.cumsum(np.bincount(query, minlength=n_queries), out=start[1:])
    laid = np.empty((query.size, 3), np.uint64)
    _lay_out(
        frozen(query, np.int32),
        frozen(key, np.uint64),
        frozen(score, np.float64).view(np.uint64),
        start[:-1].copy(),
        laid,
    )
    return start, laid


def scores_of(laid: Array) -> Array:
    """Scores of rows laid out by query, float64 [n], a view."""
    column: Array = laid.view(np.float64)[:, SCORE]
    return column
