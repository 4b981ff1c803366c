"""Ranked documents per query: layout, ties, and metrics at cuts.

Arguments of these names are the same everywhere:

    start: int64 [q + 1], CSR offsets of the documents (rows) of each query.
    first: int32 [h], lowest rank, from 1, of the document's group of equal scores, ascending within
        a query.
    size: int32 [h], documents in that group, including those without a row.
    rank: int32 [h], from 1, ascending within a query.
    relevant: bool [h].
    gain: float64 [h].
    ideal_start, ideal: CSR offsets of the judgments by query, int64 [q + 1]; their gains, float64
        [g], descending within a query.
    cuts: int64 [k], last ranks that count, ascending.
    begin, end: range [begin, end) of queries, for which outputs are written.
    out: float64 [q, k].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .jit import F64, I32, I64, U64, Array, Bools, inner, kernel

# Rows laid out by query: key, score and row number side by side, so that each costs one write.

KEY, SCORE, ROW = 0, 1, 2
"""Columns of a row laid out by query: adjacent, so that each row costs one write."""


@kernel
def by_query(query: I32, key: U64, score: F64, n_queries: int) -> tuple[Array, Array]:
    """Group rows by query, in their order.

    Args:
        query: int32 [n], query of each row.
        key: uint64 [n], key of its document.
        score: float64 [n].

    Returns:
        offsets int64 [n_queries + 1]; uint64 [n, 3], key, bits of the score and row number.
    """
    start = np.zeros(n_queries + 1, np.int64)
    for i in range(query.size):
        start[query[i] + 1] += 1
    for q in range(n_queries):
        start[q + 1] += start[q]
    laid = np.empty((query.size, 3), np.uint64)
    bits = score.view(np.uint64)
    place = start[:-1].copy()
    for i in range(query.size):
        q = query[i]
        at = place[q]
        place[q] = at + 1
        laid[at, KEY] = key[i]
        laid[at, SCORE] = bits[i]
        laid[at, ROW] = i
    return start, laid


def scores_of(laid: Array) -> Array:
    """Scores of rows laid out by query, float64 [n], a view."""
    column: Array = laid.view(np.float64)[:, SCORE]
    return column


# Ranks of judged documents: one plus the number of greater scores, counted for every row by a
# binary search among the scores of the judged ones, which are found in a hash table per query.


@inner
def _sized(n: int) -> int:
    """Size of a table for n entries, a power of two, at most half full; at most 4 max(1, n)."""
    size = 4
    while size < 2 * n:
        size *= 2
    return size


@inner
def _find(table: Array, mask: np.uint64, laid: Array, offset: int, key: np.uint64) -> Any:
    """Position of a key, occupied or free: entries are 1 + index from the offset, 0 if free."""
    at = key & mask
    while table[at] != 0 and laid[offset + table[at] - 1, KEY] != key:
        at = (at + np.uint64(1)) & mask
    return at


@inner
def _by_score(hits: Array, base: int, n: int, values: Array) -> None:
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(base + gap, base + n):
            mine = hits[i]
            value = values[mine, SCORE]
            j = i
            while j >= base + gap:
                other = hits[j - gap]
                if values[other, SCORE] > value:
                    break
                if values[other, SCORE] == value and other < mine:
                    break
                hits[j] = other
                j -= gap
            hits[j] = mine
        gap //= 3


@inner
def _longest(start: I64, first: int, last: int) -> int:
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    return longest


@kernel
def rank_judgments(
    first: int,
    last: int,
    start: I64,
    laid: U64,
    gold_start: I64,
    golds: U64,
    room: I64,
    out: tuple[Array, Array, Array, Array, Array, Array],
) -> None:
    """Find the judged rows of the queries [first, last) and their ranks.

    Args:
        laid: uint64 [n, 3], retrieved rows by query, scores without NaN, keys well mixed.
        gold_start: int64 [q + 1], offsets of the judgments.
        golds: uint64 [g, 3], judgments by query.
        room: int64 [q + 1], offsets of the places for each query's hits.
        out: ``hits`` int64, positions of judged rows by descending score, then ascending position;
            ``gold`` int32, the judgment of each; ``greater`` and ``equal`` int32 zeros, rows of its
            query with a greater score, and with an equal one, itself included (all by ``room``);
            ``many`` int64 [q], hits of each query; ``repeats`` int64 zeros [3, q], 1 + position of
            some row, and of some judgment, with a repeated key, and the number of repeated rows.
    """
    hits, gold, greater, equal, many, repeats = out
    values = laid.view(np.float64)
    longest, most = _longest(start, first, last), _longest(gold_start, first, last)
    seen = np.empty(_sized(longest), np.uint64)
    slots = np.empty(_sized(most), np.int32)
    gold_of, ordered = np.empty(longest, np.int32), np.empty(longest)
    for q in range(first, last):
        low, high = start[q], start[q + 1]
        g_low, g_high = gold_start[q], gold_start[q + 1]
        size = _sized(g_high - g_low)
        mask = np.uint64(size - 1)
        for entry in range(size):
            slots[entry] = 0
        for g in range(g_low, g_high):
            place = _find(slots, mask, golds, g_low, golds[g, KEY])
            if slots[place] != 0:
                repeats[1, q] = g + 1
            else:
                slots[place] = g - g_low + 1
        run_size = _sized(high - low)
        run_mask = np.uint64(run_size - 1)
        for entry in range(run_size):
            seen[entry] = 0
        base = room[q]
        n = 0
        nought = False
        for i in range(low, high):
            key = laid[i, KEY]
            at = key & run_mask
            while seen[at] != 0 and seen[at] != key:
                at = (at + np.uint64(1)) & run_mask
            if seen[at] != 0 or (key == 0 and nought):
                repeats[0, q] = i + 1
                repeats[2, q] += 1
            seen[at] = key
            nought = nought or key == 0  # its place is as empty as before
            place = _find(slots, mask, golds, g_low, key)
            if slots[place] != 0 and base + n < room[q + 1]:
                gold_of[i - low] = g_low + slots[place] - 1
                hits[base + n] = i
                n += 1
        many[q] = n
        if n == 0:
            continue
        _by_score(hits, base, many[q], values)  # n began as a literal, of another type
        for h in range(n):
            gold[base + h] = gold_of[hits[base + h] - low]
            ordered[h] = values[hits[base + h], SCORE]
        lowest = ordered[n - 1]
        for i in range(low, high):
            score = values[i, SCORE]
            if score < lowest:
                continue
            below, end = 0, n  # the first hit whose score is less
            while below < end:
                middle = (below + end) // 2
                if ordered[middle] < score:
                    end = middle
                else:
                    below = middle + 1
            if below < n:
                greater[base + below] += 1
            if below > 0 and ordered[below - 1] == score:
                equal[base + below - 1] += 1
        ahead = 0
        for h in range(n):
            ahead += greater[base + h]
            greater[base + h] = ahead
        for h in range(n - 2, -1, -1):  # counted at the last hit of a score
            if ordered[h] == ordered[h + 1]:
                equal[base + h] = equal[base + h + 1]


# Rows that share the score of a judged document: all that has to be ordered by id or by row.


@kernel
def _tied_rows(
    start: I64, values: F64, hit_start: I64, hits: I64, equal: I32, tied: Array, of: Array
) -> int:
    """Find rows that share the score of a hit with another row; return their number."""
    count = 0
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
                tied[count] = i
                of[count] = below
                count += 1
    return count


def tied_rows(
    start: Array, laid: Array, hit_start: Array, hits: Array, equal: Array
) -> tuple[Array, Array]:
    """Rows that share the score of a hit with others, by query and position.

    Args:
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
    n_tied = _tied_rows(start, laid.view(np.float64), hit_start, hits, equal, tied, of)
    return tied[:n_tied], of[:n_tied]


# Sums over documents weighted by rank, up to cut-offs: precision, recall, DCG and rank-biased
# precision. A document of a group of equal scores has the mean weight of the group's ranks
# (McSherry & Najork 2008, "Computing information retrieval performance measures efficiently in the
# presence of tied scores").


@kernel
def rank_sums(
    start: I64,
    first: I32,
    size: I32,
    value: F64,
    weight: F64,
    upto: F64,
    cuts: I64,
    begin: int,
    end: int,
    out: Array,
    divides: bool = False,
) -> None:
    """Add up values times the weights of their ranks, in the order of ranks, up to each cut-off.

    Args:
        value: float64 [h].
        weight: float64 [longest + 1], by rank; place 0 is unused.
        upto: float64 [longest + 1], running sums of the weights, from 0.0 at rank 0.
        cuts: int64 [1 or q, k]; one row for all or one each.
        divides: values are divided by ``weight`` instead, and ``upto`` sums its reciprocals.
    """
    n_cuts = cuts.shape[1]
    for q in range(begin, end):
        cut_row = 0 if cuts.shape[0] == 1 else q
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
            while c < n_cuts and cuts[cut_row, c] < high:
                out[q, c] = total
                if cuts[cut_row, c] >= low:
                    out[q, c] += inside * ((upto[cuts[cut_row, c]] - upto[low - 1]) / many)
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


@kernel
def log_discounts(longest: int, shift: int) -> Array:
    """Base-2 logarithms of ranks, at least 1, by the C library, as in trec_eval.

    Args:
        longest: highest rank.
        shift: added to the rank; 1, or 0 to weigh ranks 1 and 2 the same.

    Returns:
        float64 [longest + 1], by rank; place 0 is 1.0.
    """
    out = np.ones(longest + 1)
    for rank in range(1, out.size):
        out[rank] = max(1.0, math.log2(rank + shift))
    return out


@kernel
def count_within(
    start: I64, gold: F64, gold_rank: I32, level: float, cuts: I64, begin: int, end: int, out: Array
) -> None:
    """Count the judgments that reach a level and were retrieved up to each cut-off.

    Args:
        start: int64 [q + 1], CSR offsets of the judgments of each query.
        gold: float64 [g], relevance, descending within a query.
        gold_rank: int32 [g], rank, from 1, at which each was retrieved, otherwise 0.
        level: lowest relevance that counts.
    """
    n_cuts = cuts.size
    for q in range(begin, end):
        for c in range(n_cuts):
            out[q, c] = 0.0
        for g in range(start[q], start[q + 1]):
            if gold[g] < level:
                break
            if gold_rank[g] <= 0:
                continue
            c = 0
            while c < n_cuts and cuts[c] < gold_rank[g]:
                c += 1
            if c < n_cuts:
                out[q, c] += 1.0
        for c in range(1, n_cuts):
            out[q, c] += out[q, c - 1]


# Rank of the first relevant document, and the chance to reach all. Of n documents of equal score, r
# of them relevant, none is among the first m with chance C(n - r, m) / C(n, m), and all are with
# chance C(n - r, m - r) / C(n, m) (hypergeometric).


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
    """Expected 1 / rank of the first relevant document, 0 if it is after the places."""
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
    start: I64,
    first: I32,
    size: I32,
    relevant: Bools,
    cuts: I64,
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
    start: I64,
    rank: I32,
    relevant: Bools,
    cuts: I64,
    begin: int,
    end: int,
    reciprocal: Array,
    reached: Array,
) -> None:
    """Variant without ties, which compiles much faster."""
    for q in range(begin, end):
        first_rank = 0
        for h in range(start[q], start[q + 1]):
            if relevant[h]:
                first_rank = rank[h]
                break
        for c in range(cuts.size):
            inside = 0 < first_rank <= cuts[c]
            reciprocal[q, c] = 1.0 / first_rank if inside else 0.0
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
    """Reciprocal rank of the first relevant document, and the chance to reach one, up to cut-offs.

    Args:
        reciprocal: float64 [q, k].
        reached: float64 [q, k], the chance that a relevant document is among the first.
    """
    if bool((size == 1).all()):
        _untied_first_relevant(start, first, relevant, cuts, begin, end, reciprocal, reached)
        return
    _first_relevant(start, first, size, relevant, cuts, begin, end, reciprocal, reached)


@kernel
def all_relevant(
    start: I64,
    first: I32,
    size: I32,
    relevant: Bools,
    golds: I64,
    cuts: I64,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Chance that all relevant documents are among the first, up to cut-offs.

    Args:
        golds: int64 [q], relevant documents, retrieved or not; without any the result is 0.0.
    """
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
            if golds[q] > 0 and total >= golds[q] and cuts[c] >= low:
                out[q, c] = _all_within(many, hits, min(many, cuts[c] - low + 1))


# Average and interpolated precision, from relevant documents only. Means over equal scores: a group
# of n documents, r of them relevant, after c relevant ones has at its j-th place a relevant
# document with chance r/n, and c + 1 + (j - 1)(r - 1)/(n - 1) expected relevant ones up to there
# (McSherry & Najork 2008, equation for AP).


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

    The number of relevant ones at these places is hypergeometric; given that number they are spread
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
    start: I64,
    first: I32,
    size: I32,
    relevant: Bools,
    cuts: I64,
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
    start: I64,
    rank: I32,
    relevant: Bools,
    cuts: I64,
    over_retrieved: bool,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Variant without ties, which compiles much faster."""
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
        over_retrieved: sums are divided by the relevant documents up to the cut-off.
    """
    if bool((size == 1).all()):
        _untied_average_precision(start, first, relevant, cuts, over_retrieved, begin, end, out)
        return
    _average_precision(start, first, size, relevant, cuts, over_retrieved, begin, end, out)


@kernel
def interpolated_precision(
    start: I64, rank: I32, relevant: Bools, needed: I64, begin: int, end: int, out: Array
) -> None:
    """Highest precision at or after the rank that reaches a number of relevant documents.

    Args:
        needed: int64 [q, r], numbers of relevant documents, ascending.
        out: float64 [q, r]; 0.0 if that number is not reached.
    """
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


# Measures that compare the gain so far with the ideal gain so far: G, nDCG at relevant documents
# and at gain levels, as in trec_eval (m_G.c, m_ndcg_rel.c, m_Rndcg.c). Both orders are sorted, so
# one pass over each suffices.


@kernel
def gain_costs(
    start: I64, rank: I32, gain: F64, ideal_start: I64, ideal: F64, begin: int, end: int, out: Array
) -> None:
    """Normalised gain G, float64 [q].

    It is gain / log2(2 + ideal cost - gain so far), over all ideal gain.
    """
    for q in range(begin, end):
        i = ideal_start[q]
        cost, gained, total = 0.0, 0.0, 0.0
        at = 0
        for h in range(start[q], start[q + 1]):
            while at < rank[h] and i < ideal_start[q + 1] and ideal[i] > 0:
                cost += max(1.0, ideal[i])
                at += 1
                i += 1
            cost += rank[h] - at
            at = rank[h]
            gained += gain[h]
            if gain[h] != 0:
                total += gain[h] / math.log2(2 + cost - gained)
        best = 0.0
        for j in range(ideal_start[q], ideal_start[q + 1]):
            if ideal[j] > 0:
                best += ideal[j]
        out[q] = total / best if best > 0 else 0.0


@kernel
def ndcg_means(
    start: I64,
    rank: I32,
    gain: F64,
    retrieved: I64,
    ideal_start: I64,
    ideal: F64,
    discount: F64,
    begin: int,
    end: int,
    at_relevant: Array,
    at_levels: Array,
) -> None:
    """Means of nDCG over cut-offs given by the judgments.

    The end of the list enters ``at_levels`` only if it is at least two ranks after the last
    relevant document of the ideal order: trec_eval's loop skips the case of one.

    Args:
        retrieved: int64 [q], documents retrieved.
        discount: float64 [longest + 1], by rank, long enough for both.
        at_relevant: float64 [q], mean over relevant documents (trec_eval: ndcg_rel).
        at_levels: float64 [q], mean over the steps of the ideal gain (Rndcg).
    """
    for q in range(begin, end):
        # at every relevant document; those not retrieved count the end of the list
        i, dcg, best, total = ideal_start[q], 0.0, 0.0, 0.0
        golds = 0
        while i + golds < ideal_start[q + 1] and ideal[i + golds] > 0:
            golds += 1
        at_relevant[q] = 0.0
        at_levels[q] = 0.0
        if golds == 0:
            continue
        at, got = 0, 0
        for h in range(start[q], start[q + 1]):
            while at < rank[h] and at < golds:
                at += 1
                best += ideal[i] / discount[at]
                i += 1
            if gain[h] != 0:
                dcg += gain[h] / discount[rank[h]]
            if gain[h] > 0:
                total += dcg / best
                got += 1
        while at < golds:
            at += 1
            best += ideal[i] / discount[at]
            i += 1
        total += (golds - got) * dcg / best
        at_relevant[q] = max(0.0, total) / golds

        # at every rank at which the ideal gain falls, and at the end of the retrieved documents
        h, dcg, best, total = start[q], 0.0, 0.0, 0.0
        steps = 0
        for at in range(1, golds + 1):
            i = ideal_start[q] + at - 1
            best += ideal[i] / discount[at]
            if at < golds and ideal[i + 1] == ideal[i]:
                continue
            while h < start[q + 1] and rank[h] <= at:
                dcg += gain[h] / discount[rank[h]]
                h += 1
            total += dcg / best
            steps += 1
        if retrieved[q] >= golds + 2:
            while h < start[q + 1]:
                dcg += gain[h] / discount[rank[h]]
                h += 1
            total += dcg / best
            steps += 1
        at_levels[q] = total / steps


# Expected reciprocal rank: a user stops at a document that satisfies.


@kernel
def cascade(
    start: I64, rank: I32, satisfies: F64, cuts: I64, begin: int, end: int, out: Array
) -> None:
    """Sum over ranks of 1 / rank times the chance to stop there, up to each cut-off.

    Args:
        satisfies: float64 [h], chance that a document satisfies its reader, 0 to 1.
    """
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


# Measures of incomplete judgments, from judged documents only. Negative relevance marks a document
# of the pool that was not judged (trec_eval: RELVALUE_UNJUDGED).

_EPSILON = 0.00001  # trec_eval's INFAP_EPSILON


@kernel
def preferences(
    start: I64,
    rank: I32,
    relevance: F64,
    gain: F64,
    level: float,
    relevant: I64,
    nonrelevant: I64,
    begin: int,
    end: int,
    bpref: Array,
    inferred: Array,
) -> None:
    """bpref (Buckley & Voorhees 2004) and infAP (Yilmaz & Aslam 2006) as in trec_eval.

    Args:
        relevance: float64 [h], negative for a document of the pool that was not judged.
        gain: credited relevance; ``relevance`` if every document is one judgment.
        level: lowest relevance that is relevant.
        relevant: int64 [q], judgments that are relevant.
        nonrelevant: int64 [q], judgments that are not, except negative ones.
        bpref: float64 [q].
        inferred: float64 [q].
    """
    for q in range(begin, end):
        bad, good, pooled = 0, 0, 0
        preferred, precision = 0.0, 0.0
        for h in range(start[q], start[q + 1]):
            if relevance[h] < 0:
                pooled += 1
            elif gain[h] >= level:
                good += 1
                if bad > 0 and nonrelevant[q] > 0:
                    worst = min(nonrelevant[q], relevant[q])
                    preferred += 1.0 - min(bad, worst) / worst
                else:
                    preferred += 1.0
                before = float(rank[h] - 1)
                if before == 0:
                    precision += 1.0
                else:
                    precision += 1.0 / (before + 1.0) + (before / (before + 1.0)) * (
                        (good - 1 + bad + pooled) / before
                    ) * ((good - 1 + _EPSILON) / (good - 1 + bad + 2 * _EPSILON))
            elif relevance[h] < level:
                bad += 1
        bpref[q] = preferred / relevant[q] if relevant[q] > 0 else 0.0
        inferred[q] = precision / relevant[q] if relevant[q] > 0 else 0.0


# Expected gain of a viewed document. A user at rank i continues with chance C(i); rank i weighs in
# proportion to the product of the chances before it (the C/W/L framework, Moffat, Bailey, Scholer &
# Thomas 2017). Lists continue to the depth with documents without gain.

INST, NERR8, NERR9, NERR10, NERR11, BPM = range(6)


@inner
def _looks_on(user: int, rank: int, gain: float, so_far: float, wish: float) -> float:
    """Chance to continue after a rank, given its gain and the gain so far."""
    if user == INST:
        place = rank + 2.0 * wish - so_far
        return ((place - 1.0) / place) ** 2.0
    if user == NERR8:
        return 1.0 - gain
    if user == NERR9:
        return rank / (rank + 1.0) * (1.0 - gain)
    if user == NERR10:
        return wish * (1.0 - gain)
    if user == NERR11:
        place = rank + 2.0 * wish
        return ((place - 1.0) / place) ** 2.0 * (1.0 - gain)
    return 1.0 if so_far < wish else 0.0


@kernel
def expected_gains(
    start: I64,
    rank: I32,
    gain: F64,
    user: int,
    wish: float,
    cuts: I64,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Expected gain of a viewed document for a user who stops at a cut-off at the latest.

    Args:
        gain: 0 to 1.
        user: one of this module's constants.
        wish: gain that the user wants; for ``NERR10`` the chance to continue.
        cuts: lists are evaluated up to the last of them.
    """
    for q in range(begin, end):
        looking, viewed, total, so_far = 1.0, 0.0, 0.0, 0.0
        h = start[q]
        c = 0
        for place in range(1, cuts[cuts.size - 1] + 1):
            while c < cuts.size and cuts[c] < place:
                out[q, c] = total / viewed if viewed > 0 else 0.0
                c += 1
            if h == start[q + 1] and user in (BPM, NERR8):
                # without gain these look on for certain, however far a cut-off is
                while c < cuts.size:
                    seen = viewed + looking * (cuts[c] - place + 1)
                    out[q, c] = total / seen if seen > 0 else 0.0
                    c += 1
                break
            here = 0.0
            if h < start[q + 1] and rank[h] == place:
                here = gain[h]
                h += 1
            viewed += looking
            total += looking * here
            so_far += here
            looking *= _looks_on(user, place, here, so_far, wish)
            if looking == 0:
                break
        while c < cuts.size:
            out[q, c] = total / viewed if viewed > 0 else 0.0
            c += 1
