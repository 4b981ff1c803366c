"""Where judged documents stand among what was retrieved: a hash table and counts per query.

Nothing is sorted but the few judged documents: a document's rank is one more than the number of
greater scores, which every row adds to by a binary search among the judged ones' scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

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


@inner
def _sized(n: int) -> int:
    """The power of two that leaves a table of n entries at most half full."""
    size = 4
    while size < 2 * n:
        size *= 2
    return size


@inner
def _find(table: Array, mask: np.uint64, laid: Array, offset: int, key: np.uint64) -> Any:
    """Where a key is, or would be: entries are 1 + index from the offset, 0 for none."""
    at = key & mask
    while table[at] != 0 and laid[offset + table[at] - 1, KEY] != key:
        at = (at + np.uint64(1)) & mask
    return at


@inner
def _by_score(hits: Array, base: int, n: int, values: Array) -> None:
    """Shell sort of n positions by descending score, then ascending position."""
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


@kernel
def _meet(
    first: int,
    last: int,
    start: Array,
    laid: Array,
    values: Array,
    gold_start: Array,
    golds: Array,
    room: Array,
    seen: Array,
    wanted: Array,
    gold_of: Array,
    ordered: Array,
    hits: Array,
    gold: Array,
    greater: Array,
    equal: Array,
    many: Array,
    repeats: Array,
) -> None:
    """Judged rows of the queries [first, last), with what is ahead of and beside each."""
    for q in range(first, last):
        low, high = start[q], start[q + 1]
        g_low, g_high = gold_start[q], gold_start[q + 1]
        size = _sized(g_high - g_low)
        mask = np.uint64(size - 1)
        for entry in range(size):
            wanted[entry] = 0
        for g in range(g_low, g_high):
            place = _find(wanted, mask, golds, g_low, golds[g, KEY])
            if wanted[place] != 0:
                repeats[1, q] = g + 1
            else:
                wanted[place] = g - g_low + 1
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
            nought = nought or key == 0  # which leaves its place as empty as it was
            place = _find(wanted, mask, golds, g_low, key)
            if wanted[place] != 0 and base + n < room[q + 1]:
                gold_of[i - low] = g_low + wanted[place] - 1
                hits[base + n] = i
                n += 1
        many[q] = n
        if n == 0:
            continue
        _by_score(hits, base, n, values)
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


@kernel
def _beside(
    start: Array, values: Array, hit_start: Array, hits: Array, equal: Array, tied: Array, of: Array
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
            score = values[i, SCORE]
            below, end = low, high
            while below < end:
                middle = (below + end) // 2
                if values[hits[middle], SCORE] <= score:
                    end = middle
                else:
                    below = middle + 1
            if below < high and values[hits[below], SCORE] == score and equal[below] > 1:
                tied[found] = i
                of[found] = below
                found += 1
    return found


def table_size(n: int) -> int:
    """The power of two that leaves a table of n entries at most half full, 4 or more."""
    return max(4, 1 << (2 * n - 1).bit_length()) if n else 4


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


def meet(
    first: int,
    last: int,
    start: Array,
    laid: Array,
    gold_start: Array,
    golds: Array,
    room: Array,
    out: tuple[Array, ...],
) -> None:
    """Judged rows of the queries [first, last).

    Args:
        first: first query.
        last: one past the last.
        start: int64 [q + 1], offsets of the rows of each query.
        laid: uint64 [n, 3], retrieved rows by query, scores without NaN, keys well mixed.
        gold_start: int64 [q + 1], offsets of the judgments.
        golds: uint64 [g, 3], judgments by query.
        room: int64 [q + 1], offsets of the places for each query's hits.
        out: ``hits`` int64, positions of judged rows by descending score, then ascending position;
            ``gold`` int32, the judgment of each; ``greater`` and ``equal`` int32 zeros, rows of its
            query with a greater score, and with an equal one, itself included (all by ``room``);
            ``many`` int64 [q], hits of each query; ``repeats`` int64 zeros [3, q], 1 + position of
            some row, and of some judgment, whose key stands twice in its query, and how many rows
            repeat one before.
    """
    rows = frozen(laid, np.uint64)
    longest = int(np.diff(start[first : last + 1]).max(initial=0))
    most = int(np.diff(gold_start[first : last + 1]).max(initial=0))
    _meet(
        first,
        last,
        frozen(start, np.int64),
        rows,
        rows.view(np.float64),
        frozen(gold_start, np.int64),
        frozen(golds, np.uint64),
        frozen(room, np.int64),
        np.empty(table_size(longest), np.uint64),
        np.empty(table_size(most), np.int32),
        np.empty(longest, np.int32),
        np.empty(longest),
        *out,
    )


def beside(
    start: Array, laid: Array, hit_start: Array, hits: Array, equal: Array
) -> tuple[Array, Array]:
    """Rows that share the score of a hit with others, by query and position.

    Args:
        start: int64 [q + 1], offsets of the rows of each query.
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
    found = _beside(
        frozen(start, np.int64),
        frozen(laid, np.uint64).view(np.float64),
        frozen(hit_start, np.int64),
        frozen(hits, np.int64),
        frozen(equal, np.int32),
        tied,
        of,
    )
    return tied[:found], of[:found]
