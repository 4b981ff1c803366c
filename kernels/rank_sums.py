"""Sums over the documents of a list, each weighted by its rank, at cut-offs.

Precision, recall, DCG and rank-biased precision are such sums. Where equal scores are averaged
over, a document stands with the same chance at every rank that its group of equal scores takes, so
that it counts with the mean weight of those ranks (McSherry & Najork 2008, "Computing information
retrieval performance measures efficiently in the presence of tied scores").
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _sums(
    start: Array,
    first: Array,
    size: Array,
    value: Array,
    weight: Array,
    divides: bool,
    upto: Array,
    cuts: Array,
    begin: int,
    end: int,
    out: Array,
) -> None:
    n_cuts = cuts.shape[1]
    for q in range(begin, end):
        own = 0 if cuts.shape[0] == 1 else q
        total = 0.0
        c = 0
        h = start[q]
        while h < start[q + 1]:
            low, many = first[h], size[h]
            high = low + many - 1
            inside = 0.0
            while h < start[q + 1] and first[h] == low:
                inside += value[h]
                h += 1
            while c < n_cuts and cuts[own, c] < high:
                out[q, c] = total
                if cuts[own, c] >= low:
                    out[q, c] += inside * ((upto[cuts[own, c]] - upto[low - 1]) / many)
                c += 1
            if many > 1:
                total += inside * ((upto[high] - upto[low - 1]) / many)
            elif divides:
                total += inside / weight[low]
            else:
                total += inside * weight[low]
        while c < n_cuts:
            out[q, c] = total
            c += 1


def rank_sums(
    start: Array,
    first: Array,
    size: Array,
    value: Array,
    weight: Array,
    upto: Array,
    cuts: Array,
    begin: int,
    end: int,
    out: Array,
    *,
    divides: bool = False,
) -> None:
    """Add up values times the weights of their ranks, in the order of ranks, up to each cut-off.

    Args:
        start: int64 [q + 1], CSR offsets of the documents of each query.
        first: int32 [h], lowest rank, from 1, of the document's group of equal scores, ascending
            within a query.
        size: int32 [h], how many documents are in that group, those without a row included.
        value: float64 [h].
        weight: float64 [longest + 1], by rank; place 0 is unused.
        upto: float64 [longest + 1], running sums of the weights, from 0.0 at rank 0.
        cuts: int64 [1 or q, k], last rank that counts, ascending; one row for all or one each.
        begin: first query of the range.
        end: one past its last.
        out: float64 [q, k]; rows ``begin`` to ``end`` are written.
        divides: values are divided by ``weight`` instead, whose reciprocals ``upto`` sums.
    """
    _sums(
        frozen(start, np.int64),
        frozen(first, np.int32),
        frozen(size, np.int32),
        frozen(value, np.float64),
        frozen(weight, np.float64),
        divides,
        frozen(upto, np.float64),
        frozen(cuts, np.int64),
        begin,
        end,
        out,
    )


@kernel
def _logs(shift: int, out: Array) -> None:
    for rank in range(1, out.size):
        out[rank] = max(1.0, math.log2(rank + shift))


def log_discounts(longest: int, shift: int) -> Array:
    """Base-2 logarithms of ranks, at least 1, by the C library, as trec_eval takes them.

    Args:
        longest: highest rank.
        shift: added to the rank; 1, or 0 where ranks 1 and 2 weigh the same.

    Returns:
        float64 [longest + 1], by rank; place 0 is 1.0.
    """
    out = np.ones(longest + 1)
    _logs(shift, out)
    return out


@kernel
def _found(
    start: Array,
    gold: Array,
    found: Array,
    level: float,
    cuts: Array,
    begin: int,
    end: int,
    out: Array,
) -> None:
    n_cuts = cuts.size
    for q in range(begin, end):
        for c in range(n_cuts):
            out[q, c] = 0.0
        for g in range(start[q], start[q + 1]):
            if gold[g] < level:
                break
            if found[g] <= 0:
                continue
            c = 0
            while c < n_cuts and cuts[c] < found[g]:
                c += 1
            if c < n_cuts:
                out[q, c] += 1.0
        for c in range(1, n_cuts):
            out[q, c] += out[q, c - 1]


def found_within(
    start: Array,
    gold: Array,
    found: Array,
    level: float,
    cuts: Array,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Count the judgments that reach a level and were retrieved up to each cut-off.

    Args:
        start: int64 [q + 1], CSR offsets of the judgments of each query.
        gold: float64 [g], relevance, descending within a query.
        found: int32 [g], rank, from 1, at which each was retrieved, 0 where it was not.
        level: lowest relevance that counts.
        cuts: int64 [k], ascending.
        begin: first query of the range.
        end: one past its last.
        out: float64 [q, k]; rows ``begin`` to ``end`` are written.
    """
    _found(
        frozen(start, np.int64),
        frozen(gold, np.float64),
        frozen(found, np.int32),
        level,
        frozen(cuts, np.int64),
        begin,
        end,
        out,
    )
