"""Where judged documents stand among what was retrieved: a hash table and counts per query.

Nothing is sorted but the few judged documents: a document's rank is one more than the number of
greater scores, which every row adds to by a binary search among the judged ones' scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .query_rows import KEY, SCORE

Array = np.ndarray[Any, Any]


@inner
def _sized(n: int) -> int:
    """The power of two that leaves a table of n entries at most half full; 4 max(1, n) at most."""
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
        _by_score(hits, base, many[q], values)  # n began as a literal, of a type of its own
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
        np.empty(4 * max(1, longest), np.uint64),  # no table is larger, see _sized()
        np.empty(4 * max(1, most), np.int32),
        np.empty(longest, np.int32),
        np.empty(longest),
        *out,
    )
