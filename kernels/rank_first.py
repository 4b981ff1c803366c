"""Where the first relevant document stands, and whether all were reached.

Of n documents of equal score, r of them relevant, none is among the first m with chance
C(n - r, m) / C(n, m), and all are with chance C(n - r, m - r) / C(n, m) (hypergeometric).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]


@inner
def _none_within(many: int, hits: int, places: int) -> float:
    chance = 1.0
    # both products are the same number; the shorter one is rounded less often
    if places < hits:
        for i in range(places):
            chance *= max(0, many - hits - i) / (many - i)
    else:
        for i in range(hits):
            chance *= max(0, many - places - i) / (many - i)
    return chance


@inner
def _all_within(many: int, hits: int, places: int) -> float:
    chance = 1.0
    for i in range(hits):
        chance *= max(0, places - i) / (many - i)
    return chance


@inner
def _reciprocal(low: int, many: int, hits: int, places: int) -> float:
    """Expected 1 / rank of the first relevant one, 0 where it is behind the places."""
    if many == 1:
        return 1.0 / low
    waiting, total = 1.0, 0.0
    for j in range(min(places, many - hits + 1)):
        left = many - j
        total += waiting * (hits / left) / (low + j)
        waiting *= (left - hits) / left
    return total


@kernel
def _first_relevant(
    start: Array,
    first: Array,
    size: Array,
    relevant: Array,
    cuts: Array,
    begin: int,
    end: int,
    reciprocal: Array,
    reached: Array,
) -> None:
    for q in range(begin, end):
        low, many, hits = 0, 0, 0
        for h in range(start[q], start[q + 1]):
            if hits > 0 and first[h] != low:
                break
            if relevant[h]:
                low, many = first[h], size[h]
                hits += 1
        for c in range(cuts.size):
            reciprocal[q, c] = 0.0
            reached[q, c] = 0.0
            places = min(many, cuts[c] - low + 1)
            if hits > 0 and places > 0:
                reciprocal[q, c] = _reciprocal(low, many, hits, places)
                reached[q, c] = 1.0 - _none_within(many, hits, places)


@kernel
def _untied_first_relevant(
    start: Array,
    rank: Array,
    relevant: Array,
    cuts: Array,
    begin: int,
    end: int,
    reciprocal: Array,
    reached: Array,
) -> None:
    """The same where every document has a rank of its own, which compiles in a fraction."""
    for q in range(begin, end):
        found = 0
        for h in range(start[q], start[q + 1]):
            if relevant[h]:
                found = rank[h]
                break
        for c in range(cuts.size):
            inside = 0 < found <= cuts[c]
            reciprocal[q, c] = 1.0 / found if inside else 0.0
            reached[q, c] = 1.0 if inside else 0.0


def first_relevant(
    start: Array,
    first: Array,
    size: Array,
    relevant: Array,
    cuts: Array,
    begin: int,
    end: int,
    reciprocal: Array,
    reached: Array,
) -> None:
    """Reciprocal rank of the first relevant document, and whether there is one, up to cut-offs.

    Args:
        start: int64 [q + 1], CSR offsets of the documents of each query.
        first: int32 [h], lowest rank of the document's group of equal scores, ascending.
        size: int32 [h], documents in that group.
        relevant: bool [h].
        cuts: int64 [k], ascending.
        begin: first query of the range.
        end: one past its last.
        reciprocal: float64 [q, k]; rows ``begin`` to ``end`` are written.
        reached: float64 [q, k], likewise: the chance that a relevant document is among the first.
    """
    if bool((size == 1).all()):
        _untied_first_relevant(
            frozen(start, np.int64),
            frozen(first, np.int32),
            frozen(relevant, np.bool_),
            frozen(cuts, np.int64),
            begin,
            end,
            reciprocal,
            reached,
        )
        return
    _first_relevant(
        frozen(start, np.int64),
        frozen(first, np.int32),
        frozen(size, np.int32),
        frozen(relevant, np.bool_),
        frozen(cuts, np.int64),
        begin,
        end,
        reciprocal,
        reached,
    )


@kernel
def _last_relevant(
    start: Array,
    first: Array,
    size: Array,
    relevant: Array,
    wanted: Array,
    cuts: Array,
    begin: int,
    end: int,
    out: Array,
) -> None:
    for q in range(begin, end):
        total = 0
        low, many, hits = 0, 0, 0
        for h in range(start[q], start[q + 1]):
            if relevant[h]:
                total += 1
                if first[h] != low:
                    low, many, hits = first[h], size[h], 0
                hits += 1
        for c in range(cuts.size):
            out[q, c] = 0.0
            if wanted[q] > 0 and total >= wanted[q] and cuts[c] >= low:
                out[q, c] = _all_within(many, hits, min(many, cuts[c] - low + 1))


def all_relevant(
    start: Array,
    first: Array,
    size: Array,
    relevant: Array,
    wanted: Array,
    cuts: Array,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """The chance that all relevant documents are among the first, up to cut-offs.

    Args:
        start: int64 [q + 1], CSR offsets of the documents of each query.
        first: int32 [h], lowest rank of the document's group of equal scores, ascending.
        size: int32 [h], documents in that group.
        relevant: bool [h].
        wanted: int64 [q], relevant documents that there are, retrieved or not.
        cuts: int64 [k], ascending.
        begin: first query of the range.
        end: one past its last.
        out: float64 [q, k]; rows ``begin`` to ``end`` are written, 0.0 where none is wanted.
    """
    _last_relevant(
        frozen(start, np.int64),
        frozen(first, np.int32),
        frozen(size, np.int32),
        frozen(relevant, np.bool_),
        frozen(wanted, np.int64),
        frozen(cuts, np.int64),
        begin,
        end,
        out,
    )
