"""Merging of sorted runs: rows of several tallies put into one order, label by label.

Within a label every run stands by descending score, then descending tie, then ascending datum; so
does the merged one. Runs are merged two by two, their keys moving along, so that every pass reads
and writes memory in order. No two runs share a datum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _merge(
    begin: Array, end: Array, score: Array, tie: Array, datum: Array, order: Array, longest: int
) -> None:
    """Write the merged order of every label; see :func:`merge_runs`."""
    n_runs, n_labels = begin.shape
    tied = tie.size > 0
    rows = np.empty((2, longest), np.int64)
    scores = np.empty((2, longest), np.float64)
    ties = np.empty((2, longest if tied else 1), np.float64)
    datums = np.empty((2, longest), np.int32)
    bound = np.empty((2, n_runs + 1), np.int64)
    out = 0
    for k in range(n_labels):
        n = 0
        many = 0
        bound[0, 0] = 0
        for r in range(n_runs):
            if end[r, k] == begin[r, k]:
                continue
            for i in range(begin[r, k], end[r, k]):
                rows[0, n] = i
                scores[0, n] = score[i]
                datums[0, n] = datum[i]
                if tied:
                    ties[0, n] = tie[i]
                n += 1
            many += 1
            bound[0, many] = n
        a = 0
        while many > 1:
            b = 1 - a
            left = 0
            for pair in range((many + 1) // 2):
                i = bound[a, 2 * pair]
                middle = bound[a, 2 * pair + 1]
                stop = bound[a, min(2 * pair + 2, many)]
                j = middle
                for at in range(i, stop):
                    second = i >= middle
                    if not second and j < stop:
                        if scores[a, j] != scores[a, i]:
                            second = scores[a, j] > scores[a, i]
                        elif tied and ties[a, j] != ties[a, i]:
                            second = ties[a, j] > ties[a, i]
                        else:
                            second = datums[a, j] < datums[a, i]
                    take = j if second else i
                    rows[b, at] = rows[a, take]
                    scores[b, at] = scores[a, take]
                    datums[b, at] = datums[a, take]
                    if tied:
                        ties[b, at] = ties[a, take]
                    if second:
                        j += 1
                    else:
                        i += 1
                bound[b, left] = bound[a, 2 * pair]
                left += 1
                bound[b, left] = stop
            many = left
            a = b
        for i in range(n):
            order[out + i] = rows[a, i]
        out += n


def merge_runs(begin: Array, end: Array, score: Array, tie: Array, datum: Array) -> Array:
    """The order that sorted runs make together, label by label.

    Args:
        begin: int64 [runs, labels], first row of each run's part of a label.
        end: int64 [runs, labels], one past its last row.
        score: float64 [n], rows of all runs; within a run and label descending, no NaN.
        tie: float64 [n], orders equal scores, higher first; or [0] where nothing does.
        datum: int32 [n], orders what is left, ascending; runs share no datum.

    Returns:
        int64 [n], rows by label, then score, tie and datum.
    """
    sizes = (end - begin).sum(axis=0) if begin.size else np.zeros(0, np.int64)
    order = np.empty(int(sizes.sum()), np.int64)
    _merge(
        frozen(begin, np.int64),
        frozen(end, np.int64),
        frozen(score, np.float64),
        frozen(tie, np.float64),
        frozen(datum, np.int32),
        order,
        max(1, int(sizes.max(initial=0))),
    )
    return order
