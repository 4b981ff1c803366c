"""Measures that hold the gain so far against the ideal gain so far: G, nDCG at relevant documents.

All three are trec_eval's own (m_G.c, m_ndcg_rel.c, m_Rndcg.c). The ideal order is walked beside
the list: both are sorted, so one pass over each will do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _gain_costs(
    start: Array,
    rank: Array,
    gain: Array,
    ideal_start: Array,
    ideal: Array,
    begin: int,
    end: int,
    out: Array,
) -> None:
    for q in range(begin, end):
        i = ideal_start[q]
        cost, taken, total = 0.0, 0.0, 0.0
        at = 0
        for h in range(start[q], start[q + 1]):
            while at < rank[h] and i < ideal_start[q + 1] and ideal[i] > 0:
                cost += max(1.0, ideal[i])
                at += 1
                i += 1
            cost += rank[h] - at
            at = rank[h]
            taken += gain[h]
            if gain[h] != 0:
                total += gain[h] / math.log2(2 + cost - taken)
        best = 0.0
        for j in range(ideal_start[q], ideal_start[q + 1]):
            if ideal[j] > 0:
                best += ideal[j]
        out[q] = total / best if best > 0 else 0.0


def gain_costs(
    start: Array,
    rank: Array,
    gain: Array,
    ideal_start: Array,
    ideal: Array,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Normalised gain G: gain / log2(2 + ideal cost - gain so far), over all ideal gain.

    Args:
        start: int64 [q + 1], CSR offsets of the judged documents of each query.
        rank: int32 [h], from 1, ascending within a query.
        gain: float64 [h].
        ideal_start: int64 [q + 1], CSR offsets of the judgments.
        ideal: float64 [g], gains, descending within a query.
        begin: first query of the range.
        end: one past its last.
        out: float64 [q]; entries ``begin`` to ``end`` are written.
    """
    _gain_costs(
        frozen(start, np.int64),
        frozen(rank, np.int32),
        frozen(gain, np.float64),
        frozen(ideal_start, np.int64),
        frozen(ideal, np.float64),
        begin,
        end,
        out,
    )


@kernel
def _ndcg_means(
    start: Array,
    rank: Array,
    gain: Array,
    retrieved: Array,
    ideal_start: Array,
    ideal: Array,
    discount: Array,
    begin: int,
    end: int,
    at_relevant: Array,
    at_levels: Array,
) -> None:
    for q in range(begin, end):
        # at every relevant document; those not retrieved count the end of the list
        i, dcg, best, total = ideal_start[q], 0.0, 0.0, 0.0
        wanted = 0
        while i + wanted < ideal_start[q + 1] and ideal[i + wanted] > 0:
            wanted += 1
        at_relevant[q] = 0.0
        at_levels[q] = 0.0
        if wanted == 0:
            continue
        at, got = 0, 0
        for h in range(start[q], start[q + 1]):
            while at < rank[h] and at < wanted:
                at += 1
                best += ideal[i] / discount[at]
                i += 1
            if gain[h] != 0:
                dcg += gain[h] / discount[rank[h]]
            if gain[h] > 0:
                total += dcg / best
                got += 1
        while at < wanted:
            at += 1
            best += ideal[i] / discount[at]
            i += 1
        total += (wanted - got) * dcg / best
        at_relevant[q] = max(0.0, total) / wanted

        # at every rank where the ideal gain falls, and at the end of what was retrieved
        h, dcg, best, total = start[q], 0.0, 0.0, 0.0
        steps = 0
        for at in range(1, wanted + 1):
            i = ideal_start[q] + at - 1
            best += ideal[i] / discount[at]
            if at < wanted and ideal[i + 1] == ideal[i]:
                continue
            while h < start[q + 1] and rank[h] <= at:
                dcg += gain[h] / discount[rank[h]]
                h += 1
            total += dcg / best
            steps += 1
        if retrieved[q] >= wanted + 2:
            while h < start[q + 1]:
                dcg += gain[h] / discount[rank[h]]
                h += 1
            total += dcg / best
            steps += 1
        at_levels[q] = total / steps


def ndcg_means(
    start: Array,
    rank: Array,
    gain: Array,
    retrieved: Array,
    ideal_start: Array,
    ideal: Array,
    discount: Array,
    begin: int,
    end: int,
    at_relevant: Array,
    at_levels: Array,
) -> None:
    """Means of nDCG over cut-offs that the judgments set.

    The end of the list enters ``at_levels`` only where it is at least two ranks behind the last
    relevant document of the ideal order: trec_eval's loop leaves out the case of one.

    Args:
        start: int64 [q + 1], CSR offsets of the judged documents of each query.
        rank: int32 [h], from 1, ascending within a query.
        gain: float64 [h].
        retrieved: int64 [q], documents retrieved.
        ideal_start: int64 [q + 1], CSR offsets of the judgments.
        ideal: float64 [g], gains, descending within a query.
        discount: float64 [longest + 1], by rank, long enough for both.
        begin: first query of the range.
        end: one past its last.
        at_relevant: float64 [q], mean over relevant documents (trec_eval: ndcg_rel); entries
            ``begin`` to ``end`` are written.
        at_levels: float64 [q], mean over the steps of the ideal gain (Rndcg), likewise.
    """
    _ndcg_means(
        frozen(start, np.int64),
        frozen(rank, np.int32),
        frozen(gain, np.float64),
        frozen(retrieved, np.int64),
        frozen(ideal_start, np.int64),
        frozen(ideal, np.float64),
        frozen(discount, np.float64),
        begin,
        end,
        at_relevant,
        at_levels,
    )
