"""Summary-level ROUGE-L: the union of longest common subsequences, over distinct words.

Each sentence of one text is held against each sentence of the other; a word of the one is hit if
it stands in a longest common subsequence. As words are counted once, it matters which of several
longest subsequences is taken: walking back from both ends, equal words are taken; otherwise the
walk goes up where table[i-1, j] > table[i, j-1], else left (the package rouge 1.0.1 does so).

Rows of the table are kept as bits (Hyyrö, "Bit-parallel LCS-length computation revisited", 2004):
a zero bit j of row i says that table[i, j+1] = table[i, j] + 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_ONE, _FULL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)


@inner
def _zeros(rows: Array, at: int, columns: int) -> Any:
    """Zero bits among the first ``columns`` of the row that begins at ``at``."""
    total = np.int64(0)
    words = columns >> 6
    for w in range(words + 1):
        bits = ~rows[at + w] if w < words or columns & 63 else np.uint64(0)
        if w == words and columns & 63:
            bits &= (_ONE << np.uint64(columns & 63)) - _ONE
        bits -= (bits >> _ONE) & np.uint64(0x5555555555555555)
        bits = (bits & np.uint64(0x3333333333333333)) + (
            (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
        )
        bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        total = total + np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))
    return total


@inner
def fill(x: Array, n: int, y: Array, c: int, rows: Array, head: Array, link: Array) -> None:
    """Rows 0 to n of the table of x[:n] by y[:c]; ``head`` is -1 before and after."""
    width = (c + 63) >> 6
    mask = np.zeros(width, np.uint64)
    for j in range(c):
        link[j] = head[y[j]]
        head[y[j]] = j
    for w in range(width):
        rows[w] = _FULL
    for i in range(n):
        at = i * width
        j = head[x[i]]
        if j < 0:
            for w in range(width):
                rows[at + width + w] = rows[at + w]
            continue
        while j >= 0:
            mask[j >> 6] |= _ONE << np.uint64(j & 63)
            j = link[j]
        carry = np.uint64(0)
        for w in range(width):
            row, bits = rows[at + w], mask[w]
            both = row & bits
            total = row + both
            over = total < row
            total += carry
            carry = _ONE if over or total < carry else np.uint64(0)
            rows[at + width + w] = total | (row & ~bits)
            mask[w] = np.uint64(0)
    for j in range(c):
        head[y[j]] = -1


@inner
def walk(x: Array, n: int, y: Array, c: int, rows: Array, hit: Array, mark: int) -> int:
    """Mark the words on the walk back through the table; returns how many were not marked yet."""
    width = (c + 63) >> 6
    new = 0
    i, j = n, c
    here, above = _zeros(rows, i * width, j), _zeros(rows, (i - 1) * width, j)
    while here > 0:
        if x[i - 1] == y[j - 1]:
            if hit[x[i - 1]] != mark:
                hit[x[i - 1]] = mark
                new += 1
            i -= 1
            j -= 1
            here -= 1
            if here > 0:
                above = _zeros(rows, (i - 1) * width, j)
            continue
        w, shift = (j - 1) >> 6, np.uint64((j - 1) & 63)
        step = np.int64(~(rows[i * width + w] >> shift) & _ONE)
        if step == 1 and above == here:
            i -= 1
            above = _zeros(rows, (i - 1) * width, j)
        else:
            here -= step
            above -= np.int64(~(rows[(i - 1) * width + w] >> shift) & _ONE)
            j -= 1
    return new


@inner
def _passes(hits: int, of: int, threshold: float, reached: bool) -> bool:
    recall = hits / of
    return recall >= threshold if reached else recall > threshold


@kernel
def _match(
    first: int,
    last: int,
    r_start: Array,
    r_text: Array,
    g_start: Array,
    g_text: Array,
    sentence_start: Array,
    word_start: Array,
    word: Array,
    n_words: int,
    threshold: float,
    reached: bool,
    pair_start: Array,
    out: Array,
) -> None:
    """Fill ``out`` for the groups [first, last)."""
    longest, longest_sentence = 0, 0
    for side in range(2):
        start, text = (r_start, r_text) if side == 0 else (g_start, g_text)
        for p in range(start[first], start[last]):
            s0, s1 = sentence_start[text[p]], sentence_start[text[p] + 1]
            longest = max(longest, word_start[s1] - word_start[s0])
            for s in range(s0, s1):
                longest_sentence = max(longest_sentence, word_start[s + 1] - word_start[s])
    local = np.full(n_words, -1, np.int32)  # word -> its place among the gold's distinct words
    x_all, y_all = np.empty(longest, np.int32), np.empty(longest, np.int32)
    y = np.empty(longest_sentence, np.int32)
    link = np.empty(longest_sentence, np.int32)
    head = np.full(longest, -1, np.int32)
    seen, hit = np.zeros(longest, np.int32), np.zeros(longest, np.int32)
    inside = np.zeros(longest, np.int64)
    rows = np.empty(1024, np.uint64)
    mark, sentence_mark = 0, 0
    for q in range(first, last):
        n_gold = g_start[q + 1] - g_start[q]
        for g in range(n_gold):
            gold = g_text[g_start[q] + g]
            gs0, gs1 = sentence_start[gold], sentence_start[gold + 1]
            base, distinct = word_start[gs0], 0
            for k in range(base, word_start[gs1]):
                if local[word[k]] < 0:
                    local[word[k]] = distinct
                    distinct += 1
                x_all[k - base] = local[word[k]]
            for r in range(r_start[q + 1] - r_start[q]):
                text = r_text[r_start[q] + r]
                rs0, rs1 = sentence_start[text], sentence_start[text + 1]
                place = pair_start[q] + r * n_gold + g
                out[place] = 0
                if distinct == 0 or rs0 == rs1:
                    continue
                mark += 1
                r_base, possible = word_start[rs0], 0
                for k in range(r_base, word_start[rs1]):
                    v = local[word[k]]
                    y_all[k - r_base] = v
                    if v >= 0 and seen[v] != mark:
                        seen[v] = mark
                        possible += 1
                if not _passes(possible, distinct, threshold, reached):
                    continue
                if text == gold or _passes(0, distinct, threshold, reached):
                    out[place] = 1
                    continue
                hits = 0
                for s in range(gs0, gs1):
                    x = x_all[word_start[s] - base : word_start[s + 1] - base]
                    sentence_mark += 1
                    missing = 0
                    for k in range(x.size):
                        if inside[x[k]] != sentence_mark:
                            inside[x[k]] = sentence_mark
                            if seen[x[k]] == mark and hit[x[k]] != mark:
                                missing += 1
                    for e in range(rs0, rs1):
                        if missing == 0:
                            break
                        # Words that the gold's sentence lacks never turn the walk: it goes left.
                        c, fresh = 0, False
                        for k in range(word_start[e] - r_base, word_start[e + 1] - r_base):
                            v = y_all[k]
                            if v >= 0 and inside[v] == sentence_mark:
                                y[c] = v
                                c += 1
                                fresh |= hit[v] != mark
                        if not fresh:
                            continue
                        n, new = x.size, 0
                        while n > 0 and c > 0 and x[n - 1] == y[c - 1]:
                            n -= 1
                            c -= 1
                            if hit[x[n]] != mark:
                                hit[x[n]] = mark
                                new += 1
                        if n > 0 and c > 0 and new < missing:
                            need = (n + 1) * ((c + 63) >> 6)
                            if rows.size < need:
                                rows = np.empty(2 * need, np.uint64)
                            fill(x, n, y, c, rows, head, link)
                            new += walk(x, n, y, c, rows, hit, mark)
                        missing -= new
                        hits += new
                    if _passes(hits, distinct, threshold, reached):
                        out[place] = 1
                        break
            for k in range(base, word_start[gs1]):
                local[word[k]] = -1


def match_by_union_lcs(
    first: int,
    last: int,
    retrieved: tuple[Array, Array],
    gold: tuple[Array, Array],
    words: tuple[Array, Array, Array],
    n_words: int,
    threshold: float,
    reached: bool,
    pair_start: Array,
    out: Array,
) -> None:
    """Whether the ROUGE-L recall of each gold, given each retrieved text, passes the threshold.

    Recall is the number of distinct words of the gold that are hit over the number of its
    distinct words. A text without sentences matches nothing. A pair ends early where too few
    words of the gold stand in the retrieved text at all, and once enough are hit.

    Args:
        first: first query.
        last: one past the last query.
        retrieved: offsets of the components of each query, int64 [q + 1]; text of each, int32.
        gold: the same of the golds.
        words: offsets of the sentences of each text, int64 [texts + 1]; of the words of each
            sentence, int64 [sentences + 1]; codes of the words, int32 in [0, n_words).
        n_words: number of distinct words.
        threshold: what recall is compared with.
        reached: whether a recall equal to it passes; otherwise recall must be above.
        pair_start: int64 [q + 1], offsets into ``out``.
        out: uint8, filled for these queries; a row is a retrieved component.
    """
    _match(
        first,
        last,
        frozen(retrieved[0], np.int64),
        frozen(retrieved[1], np.int32),
        frozen(gold[0], np.int64),
        frozen(gold[1], np.int32),
        frozen(words[0], np.int64),
        frozen(words[1], np.int64),
        frozen(words[2], np.int32),
        n_words,
        float(threshold),
        bool(reached),
        frozen(pair_start, np.int64),
        out,
    )
