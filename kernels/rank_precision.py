"""Average precision and interpolated precision of ranked lists, from relevant documents alone.

Means over equal scores: a group of n documents, r of them relevant, behind c relevant ones puts at
its j-th place a relevant document with chance r/n, with c + 1 + (j - 1)(r - 1)/(n - 1) relevant
ones expected up to there (McSherry & Najork 2008, equation for AP).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]


@inner
def _group_sums(low: int, places: int) -> tuple[float, float]:
    """Sums over the first places of a group: of 1 / rank, and of places before / rank."""
    plain, before = 0.0, 0.0
    for j in range(places):
        plain += 1.0 / (low + j)
        before += j / (low + j)
    return plain, before


@inner
def _expected(low: int, many: int, hits: int, places: int, earlier: int) -> float:
    """Expected sum of precisions at the relevant ones among the first places of a group."""
    plain, before = _group_sums(low, places)
    slope = (hits - 1) / (many - 1)
    return hits / many * ((earlier + 1) * plain + slope * before)


@inner
def _expected_mean(
    low: int, many: int, hits: int, places: int, earlier: int, total: float
) -> float:
    """Expected mean of precisions at relevant documents up to some places of a group.

    How many relevant ones the places hold is hypergeometric; given that number they are spread
    evenly over the places.
    """
    plain, before = _group_sums(low, places)
    least, most = max(0, places - (many - hits)), min(places, hits)
    mode = min(most, max(least, (places + 1) * (hits + 1) // (many + 2)))
    mass, mean = 0.0, 0.0
    for direction in range(2):
        chance = 1.0
        x = mode
        while True:
            if direction == 0 or x != mode:
                mass += chance
                if earlier + x > 0:
                    inside = 0.0
                    if x > 0:
                        slope = (x - 1) / (places - 1) if places > 1 else 0.0
                        inside = x / places * ((earlier + 1) * plain + slope * before)
                    mean += chance * (total + inside) / (earlier + x)
            if direction == 0:
                if x == most:
                    break
                chance *= (hits - x) * (places - x) / ((x + 1) * (many - hits - places + x + 1))
                x += 1
            else:
                if x == least:
                    break
                chance *= x * (many - hits - places + x) / ((hits - x + 1) * (places - x + 1))
                x -= 1
    return mean / mass


@kernel
def _average_precision(
    start: Array,
    first: Array,
    size: Array,
    relevant: Array,
    cuts: Array,
    over_retrieved: bool,
    begin: int,
    end: int,
    out: Array,
) -> None:
    n_cuts = cuts.size
    for q in range(begin, end):
        total = 0.0
        earlier = 0
        c = 0
        h = start[q]
        while h < start[q + 1]:
            low, many = first[h], size[h]
            high = low + many - 1
            hits = 0
            while h < start[q + 1] and first[h] == low:
                hits += relevant[h]
                h += 1
            while c < n_cuts and cuts[c] < high:
                places = cuts[c] - low + 1
                if places <= 0 or hits == 0:
                    out[q, c] = total
                    if over_retrieved and earlier > 0:
                        out[q, c] /= earlier
                elif over_retrieved:
                    out[q, c] = _expected_mean(low, many, hits, places, earlier, total)
                else:
                    out[q, c] = total + _expected(low, many, hits, places, earlier)
                c += 1
            if hits > 0:
                if many == 1:
                    total += (earlier + 1) / low
                else:
                    total += _expected(low, many, hits, many, earlier)
                earlier += hits
        while c < n_cuts:
            out[q, c] = total
            if over_retrieved and earlier > 0:
                out[q, c] /= earlier
            c += 1


@kernel
def _untied_average_precision(
    start: Array,
    rank: Array,
    relevant: Array,
    cuts: Array,
    over_retrieved: bool,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """The same where every document has a rank of its own, which compiles in a fraction."""
    for q in range(begin, end):
        total, earlier, c = 0.0, 0, 0
        for h in range(start[q], start[q + 1] + 1):
            while c < cuts.size and (h == start[q + 1] or cuts[c] < rank[h]):
                out[q, c] = total / earlier if over_retrieved and earlier > 0 else total
                c += 1
            if h < start[q + 1] and relevant[h]:
                earlier += 1
                total += earlier / rank[h]


def precision_sums(
    start: Array,
    first: Array,
    size: Array,
    relevant: Array,
    cuts: Array,
    begin: int,
    end: int,
    out: Array,
    *,
    over_retrieved: bool,
) -> None:
    """Sum the precisions at the ranks of relevant documents, up to each cut-off.

    Args:
        start: int64 [q + 1], CSR offsets of the documents of each query.
        first: int32 [h], lowest rank of the document's group of equal scores, ascending.
        size: int32 [h], documents in that group.
        relevant: bool [h].
        cuts: int64 [k], ascending.
        begin: first query of the range.
        end: one past its last.
        out: float64 [q, k]; rows ``begin`` to ``end`` are written.
        over_retrieved: sums are divided by the relevant documents up to the cut-off.
    """
    if bool((size == 1).all()):
        _untied_average_precision(
            frozen(start, np.int64),
            frozen(first, np.int32),
            frozen(relevant, np.bool_),
            frozen(cuts, np.int64),
            over_retrieved,
            begin,
            end,
            out,
        )
        return
    _average_precision(
        frozen(start, np.int64),
        frozen(first, np.int32),
        frozen(size, np.int32),
        frozen(relevant, np.bool_),
        frozen(cuts, np.int64),
        over_retrieved,
        begin,
        end,
        out,
    )


@kernel
def _interpolated(
    start: Array, rank: Array, relevant: Array, needed: Array, begin: int, end: int, out: Array
) -> None:
    for q in range(begin, end):
        many = 0
        for h in range(start[q], start[q + 1]):
            many += relevant[h]
        c = needed.shape[1] - 1
        while c >= 0 and needed[q, c] > many:
            out[q, c] = 0.0
            c -= 1
        best = 0.0
        for h in range(start[q + 1] - 1, start[q] - 1, -1):
            if not relevant[h]:
                continue
            best = max(best, many / rank[h])
            while c >= 0 and needed[q, c] == many:
                out[q, c] = best
                c -= 1
            many -= 1
        while c >= 0:
            out[q, c] = best
            c -= 1


def interpolated_precision(
    start: Array, rank: Array, relevant: Array, needed: Array, begin: int, end: int, out: Array
) -> None:
    """Highest precision at or behind the rank where so many relevant documents are reached.

    Args:
        start: int64 [q + 1], CSR offsets of the documents of each query.
        rank: int32 [h], from 1, ascending within a query.
        relevant: bool [h].
        needed: int64 [q, r], relevant documents to be reached, ascending.
        begin: first query of the range.
        end: one past its last.
        out: float64 [q, r]; rows ``begin`` to ``end`` are written, 0.0 where that is not reached.
    """
    _interpolated(
        frozen(start, np.int64),
        frozen(rank, np.int32),
        frozen(relevant, np.bool_),
        frozen(needed, np.int64),
        begin,
        end,
        out,
    )
