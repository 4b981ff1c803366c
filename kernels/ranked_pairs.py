"""How pairs of rows agree in the order of two numbers, in n log n: ties exact, rows weighted.

Rows go by the first number; of each, the weight of those before it that have a lower or a higher
second number is read from sums over ranks (Fenwick 1994, A new data structure for cumulative
frequency tables). Rows that tie in the first are asked before any of them is added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]


@inner
def _up_to(tree: Array, rank: int) -> float:
    """Weight of the ranks up to one, counted from 1."""
    total = 0.0
    while rank > 0:
        total += tree[rank]
        rank -= rank & -rank
    return total


@kernel
def _agreement(tie: Array, rank: Array, weight: Array, n_ranks: int) -> float:
    tree = np.zeros(n_ranks + 1)
    added, total, begin = 0.0, 0.0, 0
    while begin < tie.size:
        end = begin
        while end < tie.size and tie[end] == tie[begin]:
            lower = _up_to(tree, rank[end])
            higher = added - _up_to(tree, rank[end] + 1)
            total += weight[end] * (lower - higher)
            end += 1
        for i in range(begin, end):
            added += weight[i]
            at = rank[i] + 1
            while at <= n_ranks:
                tree[at] += weight[i]
                at += at & -at
        begin = end
    return total


def agreement(tie: Array, rank: Array, weight: Array) -> float:
    """Weight of pairs in the same order less that of pairs in opposite orders.

    Args:
        tie: int64 [n], rank of the first number, ascending; equal where that is.
        rank: int64 [n], rank of the second, from 0, without gaps.
        weight: float64 [n]; a pair weighs the product.
    """
    inputs = frozen(tie, np.int64), frozen(rank, np.int64), frozen(weight, np.float64)
    return float(_agreement(*inputs, int(rank.max(initial=0)) + 1))
