"""Where judged documents stand among what was retrieved: a hash table and counts per query.

Nothing is sorted but the few judged documents: a document's rank is one more than the number of
greater scores, which every row adds to by a binary search among the judged ones' scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]


@kernel
def _scatter(
    query: Array, key: Array, score: Array, place: Array, rows: Array, keys: Array, scores: Array
) -> None:
    """Rows by query, in their own order within one."""
    for i in range(query.size):
        q = query[i]
        at = place[q]
        place[q] = at + 1
        rows[at] = i
        keys[at] = key[i]
        scores[at] = score[i]


@inner
def _sized(n: int) -> int:
    """The power of two that leaves a table of n entries at most half full."""
    size = 4
    while size < 2 * n:
        size *= 2
    return size


@inner
def _find(table: Array, mask: np.uint64, keys: Array, offset: int, key: np.uint64) -> int:
    """Where a key is, or would be: entries are 1 + index from the offset, 0 for none."""
    at = key & mask
    while table[at] != 0 and keys[offset + table[at] - 1] != key:
        at = (at + np.uint64(1)) & mask
    return at


@inner
def _by_score(hits: Array, scores: Array, n: int) -> None:
    """Shell sort of positions by descending score, then ascending position."""
    for gap in (1750, 701, 301, 132, 57, 23, 10, 4, 1):
        for i in range(gap, n):
            mine = hits[i]
            value = scores[mine]
            j = i
            while j >= gap and (
                scores[hits[j - gap]] < value
                or (scores[hits[j - gap]] == value and hits[j - gap] > mine)
            ):
                hits[j] = hits[j - gap]
                j -= gap
            hits[j] = mine


@kernel
def _meet(
    first: int,
    last: int,
    start: Array,
    keys: Array,
    scores: Array,
    gold_start: Array,
    gold_keys: Array,
    room: Array,
    hits: Array,
    gold: Array,
    greater: Array,
    equal: Array,
    many: Array,
    repeats: Array,
) -> None:
    """Judged rows of the queries [first, last), with what is ahead of and beside each."""
    longest = most = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
        most = max(most, gold_start[q + 1] - gold_start[q])
    seen = np.zeros(_sized(longest), np.int32)
    wanted = np.zeros(_sized(most), np.int32)
    gold_of = np.empty(longest, np.int32)
    for q in range(first, last):
        low, high = start[q], start[q + 1]
        g_low, g_high = gold_start[q], gold_start[q + 1]
        size = _sized(g_high - g_low)
        mask = np.uint64(size - 1)
        wanted[:size] = 0
        for g in range(g_low, g_high):
            at = _find(wanted, mask, gold_keys, g_low, gold_keys[g])
            if wanted[at] != 0:
                repeats[1, q] = g + 1
            else:
                wanted[at] = g - g_low + 1
        run_size = _sized(high - low)
        run_mask = np.uint64(run_size - 1)
        seen[:run_size] = 0
        base = room[q]
        n = 0
        for i in range(low, high):
            key = keys[i]
            at = _find(seen, run_mask, keys, low, key)
            if seen[at] != 0:
                repeats[0, q] = i + 1
            else:
                seen[at] = i - low + 1
            at = _find(wanted, mask, gold_keys, g_low, key)
            if wanted[at] != 0 and base + n < room[q + 1]:
                gold_of[i - low] = g_low + wanted[at] - 1
                hits[base + n] = i
                n += 1
        many[q] = n
        if n == 0:
            continue
        mine = hits[base : base + n]
        _by_score(mine, scores, n)
        for h in range(n):
            gold[base + h] = gold_of[mine[h] - low]
        lowest = scores[mine[n - 1]]
        for i in range(low, high):
            score = scores[i]
            if score < lowest:
                continue
            below, end = 0, n  # the first hit whose score is less
            while below < end:
                middle = (below + end) // 2
                if scores[mine[middle]] < score:
                    end = middle
                else:
                    below = middle + 1
            if below < n:
                greater[base + below] += 1
            if below > 0 and scores[mine[below - 1]] == score:
                equal[base + below - 1] += 1
        ahead = 0
        for h in range(n):
            ahead += greater[base + h]
            greater[base + h] = ahead
        for h in range(n - 2, -1, -1):  # counted at the last hit of a score
            if scores[mine[h]] == scores[mine[h + 1]]:
                equal[base + h] = equal[base + h + 1]


@kernel
def _beside(
    start: Array, scores: Array, hit_start: Array, hits: Array, equal: Array, tied: Array, of: Array
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
            score = scores[i]
            below, end = low, high
            while below < end:
                middle = (below + end) // 2
                if scores[hits[middle]] <= score:
                    end = middle
                else:
                    below = middle + 1
            if below < high and scores[hits[below]] == score and equal[below] > 1:
                tied[found] = i
                of[found] = below
                found += 1
    return found


def by_query(query: Array, key: Array, score: Array, n_queries: int) -> tuple[Array, ...]:
    """Rows laid out by query, in their own order within one.

    Args:
        query: int32 [n], query of each row.
        key: uint64 [n], what stands for its document.
        score: float64 [n].
        n_queries: number of queries.

    Returns:
        offsets int64 [n_queries + 1]; row numbers int32 [n], keys and scores in that layout.
    """
    start = np.zeros(n_queries + 1, np.int64)
    np.cumsum(np.bincount(query, minlength=n_queries), out=start[1:])
    if query.size < 2 or bool((query[1:] >= query[:-1]).all()):
        return start, np.arange(query.size, dtype=np.int32), key, score
    rows = np.empty(query.size, np.int32)
    keys, scores = np.empty(query.size, np.uint64), np.empty(query.size)
    _scatter(
        frozen(query, np.int32),
        frozen(key, np.uint64),
        frozen(score, np.float64),
        start[:-1].copy(),
        rows,
        keys,
        scores,
    )
    return start, rows, keys, scores


def meet(
    first: int,
    last: int,
    start: Array,
    keys: Array,
    scores: Array,
    gold_start: Array,
    gold_keys: Array,
    room: Array,
    out: tuple[Array, ...],
) -> None:
    """Judged rows of the queries [first, last).

    Args:
        first: first query.
        last: one past the last.
        start: int64 [q + 1], offsets of the rows of each query.
        keys: uint64 [n], what stands for each row's document, well mixed.
        scores: float64 [n], without NaN.
        gold_start: int64 [q + 1], offsets of the judgments.
        gold_keys: uint64 [g].
        room: int64 [q + 1], offsets of the places for each query's hits.
        out: ``hits`` int64, positions of judged rows by descending score, then ascending position;
            ``gold`` int32, the judgment of each; ``greater`` and ``equal`` int32 zeros, rows of its
            query with a greater score, and with an equal one, itself included (all by ``room``);
            ``many`` int64 [q], hits of each query; ``repeats`` int64 zeros [2, q], 1 + position of
            some row, and of some judgment, whose key stands twice in its query.
    """
    _meet(
        first,
        last,
        frozen(start, np.int64),
        frozen(keys, np.uint64),
        frozen(scores, np.float64),
        frozen(gold_start, np.int64),
        frozen(gold_keys, np.uint64),
        frozen(room, np.int64),
        *out,
    )


def beside(
    start: Array, scores: Array, hit_start: Array, hits: Array, equal: Array
) -> tuple[Array, Array]:
    """Rows that share the score of a hit with others, by query and position.

    Args:
        start: int64 [q + 1], offsets of the rows of each query.
        scores: float64 [n].
        hit_start: int64 [q + 1], offsets of its hits.
        hits: int64 [h], positions by descending score.
        equal: int32 [h], rows with the score of each.

    Returns:
        positions int64 [m]; for each the first hit with its score, int64 [m].
    """
    # A score that several hits share is counted once.
    same = np.zeros(hits.size, bool)
    if hits.size > 1:
        same[1:] = scores[hits[1:]] == scores[hits[:-1]]
        same[hit_start[:-1][hit_start[:-1] < hits.size]] = False
    room = int(equal[(equal > 1) & ~same].sum())
    tied, of = np.empty(room, np.int64), np.empty(room, np.int64)
    found = _beside(
        frozen(start, np.int64),
        frozen(scores, np.float64),
        frozen(hit_start, np.int64),
        frozen(hits, np.int64),
        frozen(equal, np.int32),
        tied,
        of,
    )
    return tied[:found], of[:found]
