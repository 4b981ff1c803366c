"""Passages searched in texts: substrings, approximate matches, common subsequences.

Arguments of these names are the same everywhere:

    first, last: range [first, last) of queries, for which ``out`` is written.
    data: uint8, the UTF-8 bytes of all texts.
    start: int64 [n + 1], offsets of the texts.
    pair_start: int64 [q + 1], offsets of each query's pairs; a row of golds for each retrieved
        text.
    words: offsets of the sentences of each text, int64 [texts + 1]; of the words of each sentence,
        int64 [sentences + 1]; codes of the words, int32 in [0, n_words).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .bits import set_bits
from .jit import F64, I32, I64, U8, Array, Bools, allocating, inner, kernel
from .words import code_at

# Least Levenshtein distance of a text to any stretch of another, a bound that avoids most costly
# comparisons. Bit-parallel (Myers, "A fast bit-vector algorithm for approximate string matching",
# 1999; blocks after Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit
# distances", 2003).

_ONE, _FULL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_TOP, _ZERO = np.uint64(63), np.uint64(0)


@inner
def _least(needle: Array, hay: Array, masks: Array, plus: Array, minus: Array) -> np.int64:
    """Least distance of the whole needle to any stretch of the haystack."""
    blocks = (needle.size + 63) >> 6
    for i in range(needle.size):
        masks[needle[i], i >> 6] |= _ONE << np.uint64(i & 63)
    plus[:blocks] = _FULL
    minus[:blocks] = _ZERO
    last = np.uint64((needle.size - 1) & 63)
    distance = np.int64(needle.size)
    least = distance
    for j in range(hay.size):
        character = hay[j]
        up, down = _ZERO, _ZERO
        for b in range(blocks):
            p, m = plus[b], minus[b]
            equal = masks[character, b]
            vertical = equal | m
            equal |= down
            horizontal = (((equal & p) + p) ^ p) | equal
            rise = m | ~(horizontal | p)
            fall = p & horizontal
            if b == blocks - 1:
                distance += np.int64((rise >> last) & _ONE) - np.int64((fall >> last) & _ONE)
            next_up, next_down = rise >> _TOP, fall >> _TOP
            rise = (rise << _ONE) | up
            fall = (fall << _ONE) | down
            plus[b] = fall | ~(vertical | rise)
            minus[b] = rise & vertical
            up, down = next_up, next_down
        least = min(least, distance)
    for i in range(needle.size):
        masks[needle[i], i >> 6] = _ZERO
    return least


@kernel
def characters_of(data: U8, start: I64) -> tuple[Array, Array, int]:
    """Texts as dense codes of their characters.

    Returns:
        int32 codes; offsets of the texts int64 [n + 1]; number of codes.
    """
    code_of = np.full(0x110000, -1, np.int32)
    out = np.empty(data.size, np.int32)
    out_start = np.zeros(start.size, np.int64)
    n, n_codes = 0, 0
    for t in range(start.size - 1):
        i = start[t]
        while i < start[t + 1]:
            code, width = np.int64(data[i]), 1
            if code >= 0x80:
                code, width = code_at(data, i)
            if code_of[code] < 0:
                code_of[code] = n_codes
                n_codes += 1
            out[n] = code_of[code]
            n += 1
            i += width
        out_start[t + 1] = n
    return out[:n].copy(), out_start, n_codes


@kernel
def least_distances(texts: tuple[I32, I64, int], left: I32, right: I32) -> Array:
    """Least Levenshtein distance of the shorter text to any stretch of the longer one.

    For texts of equal length, the smaller of both directions.

    Args:
        texts: result of :func:`characters_of`.
        left: int32 [p], one text of each pair.
        right: int32 [p], the other.

    Returns:
        int64 [p], 0 if the shorter one is a substring.
    """
    out = np.empty(left.size, np.int64)
    codes, start, n_codes = texts
    longest = 1
    for k in range(left.size):
        a, b = left[k], right[k]
        longest = max(longest, min(start[a + 1] - start[a], start[b + 1] - start[b]))
    blocks = (longest + 63) >> 6
    masks = np.zeros((n_codes, blocks), np.uint64)
    plus, minus = np.empty(blocks, np.uint64), np.empty(blocks, np.uint64)
    for k in range(left.size):
        x = codes[start[left[k]] : start[left[k] + 1]]
        y = codes[start[right[k]] : start[right[k] + 1]]
        if x.size > y.size:
            x, y = y, x
        if x.size == 0:
            out[k] = 0
            continue
        least = _least(x, y, masks, plus, minus)
        if x.size == y.size and least > 0:
            least = min(least, _least(y, x, masks, plus, minus))
        out[k] = least
    return out


# Substrings of haystacks, by query, on UTF-8 bytes. Each haystack has an index of its runs of eight
# bytes (chains by hash). Bytes are compared only at the places of the needle's rarest run.

_RUN = 8
_PROBES = 4
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@inner
def _run_at(data: Array, at: int) -> np.uint64:
    value = np.uint64(0)
    for i in range(at, at + _RUN):
        value = value << np.uint64(8) | np.uint64(data[i])
    return value


@inner
def _same(a: Array, at: int, b: Array, begin: int, length: int) -> bool:
    for i in range(length):  # noqa: SIM110 - compiled
        if a[at + i] != b[begin + i]:
            return False
    return True


@inner
def _index(data: Array, begin: int, end: int, bits: int, index: Any) -> None:
    """Chain the places of all runs of data[begin:end] by the hash of the run."""
    head, link, count = index
    shift = np.uint64(64 - bits)
    head[: 1 << bits] = -1
    count[: 1 << bits] = 0
    value = np.uint64(0)
    for i in range(begin, end):
        value = value << np.uint64(8) | np.uint64(data[i])
        at = i - begin - _RUN + 1
        if at >= 0:
            slot = np.int64((value * _MULTIPLIER) >> shift)
            link[at] = head[slot]
            head[slot] = at
            count[slot] += 1


@inner
def _occurs(
    hay: Array, first: int, last: int, bits: int, index: Any, needle: Array, begin: int, end: int
) -> bool:
    """Check that needle[begin:end], at least a run long, occurs in hay[first:last], as indexed."""
    head, link, count = index
    length = end - begin
    shift = np.uint64(64 - bits)
    fewest, offset, start = np.int64(1) << 62, 0, -1
    for p in range(_PROBES):
        o = (length - _RUN) * p // (_PROBES - 1)
        slot = np.int64((_run_at(needle, begin + o) * _MULTIPLIER) >> shift)
        if count[slot] < fewest:
            fewest, offset, start = count[slot], o, head[slot]
        if fewest == 0:
            return False
    while start >= 0:
        at = first + start - offset
        if at >= first and at + length <= last and _same(hay, at, needle, begin, length):
            return True
        start = link[start]
    return False


@inner
def _scan(hay: Array, hay_begin: int, hay_end: int, needle: Array, begin: int, end: int) -> bool:
    """The same check for a short needle, place by place."""
    length = end - begin
    if length == 0:
        return True
    byte = needle[begin]
    for at in range(hay_begin, hay_end - length + 1):
        if hay[at] == byte and _same(hay, at, needle, begin, length):
            return True
    return False


@kernel
def match_substrings(
    first: int,
    last: int,
    retrieved: tuple[I64, I32],
    gold: tuple[I64, I32],
    haystacks: tuple[U8, I64],
    needles: tuple[U8, I64],
    used: Bools,
    pair_start: I64,
    out: Array,
) -> None:
    """Set ``out`` to 1 if a retrieved needle is a substring of a gold; the rest is unchanged.

    An empty needle is found everywhere.

    Args:
        retrieved: offsets of the components of each query, int64 [q + 1]; needle of each, int32.
        gold: offsets of the golds of each query; haystack of each, below 2 GiB.
        haystacks: bytes uint8; offsets int64 [haystacks + 1].
        needles: bytes uint8; offsets int64 [needles + 1].
        used: bool [needles], needles to search for.
        out: uint8; a row is a retrieved component.
    """
    r_start, r_text = retrieved
    g_start, g_text = gold
    hay, hay_start = haystacks
    needle, needle_start = needles
    longest = 0
    for p in range(g_start[first], g_start[last]):
        longest = max(longest, hay_start[g_text[p] + 1] - hay_start[g_text[p]])
    most_bits = 8
    while 1 << most_bits < longest:
        most_bits += 1
    slots = 1 << most_bits
    index = np.empty(slots, np.int32), np.empty(longest, np.int32), np.empty(slots, np.int32)
    for q in range(first, last):
        n_gold = g_start[q + 1] - g_start[q]
        for g in range(n_gold):
            text = g_text[g_start[q] + g]
            begin, end = hay_start[text], hay_start[text + 1]
            bits = 0
            for r in range(r_start[q + 1] - r_start[q]):
                code = r_text[r_start[q] + r]
                n0, n1 = needle_start[code], needle_start[code + 1]
                place = pair_start[q] + r * n_gold + g
                if not used[code] or n1 - n0 > end - begin or out[place]:
                    continue
                if n1 - n0 < _RUN:
                    out[place] = _scan(hay, begin, end, needle, n0, n1)
                    continue
                if bits == 0:
                    bits = 8
                    while 1 << bits < end - begin:
                        bits += 1
                    _index(hay, begin, end, bits, index)
                out[place] = _occurs(hay, begin, end, bits, index, needle, n0, n1)


# Summary-level ROUGE-L: the union of longest common subsequences (LCS) of all pairs of sentences,
# over distinct words. The backtrack, from both ends, takes equal words; otherwise it goes up if
# table[i-1, j] > table[i, j-1], else left, as in the package rouge 1.0.1.
# Rows of the table are bits (Hyyrö, "Bit-parallel LCS-length computation revisited", 2004): a zero
# bit j of row i means table[i, j+1] = table[i, j] + 1.


@inner
def _zeros(rows: Array, at: int, columns: int) -> Any:
    """Count zero bits among the first ``columns`` of the row that begins at ``at``."""
    total = np.int64(0)
    words = columns >> 6
    for w in range(words + 1):
        bits = ~rows[at + w] if w < words or columns & 63 else np.uint64(0)
        if w == words and columns & 63:
            bits &= (_ONE << np.uint64(columns & 63)) - _ONE
        total = total + np.int64(set_bits(bits))
    return total


@allocating
def fill(x: Array, n: int, y: Array, c: int, rows: Array, head: Array, link: Array) -> None:
    """Fill rows 0 to n of the table of x[:n] by y[:c]; ``head`` is -1 before and after."""
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
    """Mark the words on the backtrack through the table; return the number of newly marked ones."""
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
def match_by_union_lcs(
    first: int,
    last: int,
    retrieved: tuple[I64, I32],
    gold: tuple[I64, I32],
    words: tuple[I64, I64, I32],
    n_words: int,
    threshold: float,
    reached: bool,
    pair_start: I64,
    out: Array,
) -> None:
    """Test each gold's ROUGE-L recall, given each retrieved text, against the threshold.

    Recall is the share of the gold's distinct words that are hit. A text without sentences matches
    no gold. A pair ends early if the retrieved text has too few words of the gold, and once enough
    are hit.

    Args:
        retrieved: offsets of the components of each query, int64 [q + 1]; text of each, int32.
        gold: the same of the golds.
        threshold: least recall.
        reached: whether a recall equal to it passes; otherwise recall must be above.
        out: uint8; a row is a retrieved component.
    """
    r_start, r_text = retrieved
    g_start, g_text = gold
    sentence_start, word_start, word = words
    longest, longest_sentence = 0, 0
    for side in range(2):
        start, texts = (r_start, r_text) if side == 0 else (g_start, g_text)
        for p in range(start[first], start[last]):
            s0, s1 = sentence_start[texts[p]], sentence_start[texts[p] + 1]
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
            truth = g_text[g_start[q] + g]
            gs0, gs1 = sentence_start[truth], sentence_start[truth + 1]
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
                if text == truth or _passes(0, distinct, threshold, reached):
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
                        # Words missing from the gold's sentence never turn the backtrack: it goes
                        # left.
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


# Length of the backtrack between long sentences.


@inner
def _steps(x: Array, y: Array, table: Array) -> int:
    """Steps from both ends until either sentence is used up.

    Equal words are a diagonal step; otherwise the step goes up if the table is greater there.
    """
    n, m = x.size, y.size
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if x[i - 1] == y[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    i, j, steps = n, m, 0
    while i > 0 and j > 0:
        steps += 1
        if x[i - 1] == y[j - 1]:
            i -= 1
            j -= 1
        elif table[i - 1, j] > table[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return steps


@kernel
def walks_too_far(gold: int, text: int, words: tuple[I64, I64, I32], limit: int) -> bool:
    """Check for a backtrack between sentences of two texts that is longer than a limit.

    Args:
        gold: code of the text whose sentences are the rows of the table.
        text: code of the other.
        limit: number of steps.
    """
    start, offsets, codes = words
    most = 0
    for g in range(start[gold], start[gold + 1]):
        for r in range(start[text], start[text + 1]):
            x = codes[offsets[g] : offsets[g + 1]]
            y = codes[offsets[r] : offsets[r + 1]]
            if x.size + y.size <= limit:
                continue
            table = np.zeros((x.size + 1, y.size + 1), np.int32)
            most = max(most, _steps(x, y, table))
            if most > limit:
                return True
    return False


# From matches of texts to hits: credit of each retrieved text, and ranks of found golds.


@kernel
def credit_passages(
    first: int,
    last: int,
    start: I64,
    gold_start: I64,
    pair_start: I64,
    match: U8,
    value: F64,
    out: tuple[Array, Array, Array],
) -> None:
    """Credit every retrieved text.

    Each text is credited with one gold, the most relevant that it matches and that no earlier text
    was credited with (of equal ones the first); a gold is found at its first match.

    Args:
        start: int64 [q + 1], offsets of retrieved texts, in rank order.
        gold_start: int64 [q + 1], offsets of golds.
        match: uint8 [p], whether a pair matches.
        value: float64 [g], relevance of each gold.
        out: highest relevance matched (NaN for none) and relevance credited, float64 [n] each; rank
            at which each gold is found, int32 zeros [g].
    """
    best, gain, first_rank = out
    for q in range(first, last):
        low, n_gold = gold_start[q], gold_start[q + 1] - gold_start[q]
        used = np.zeros(n_gold, np.bool_)
        for i in range(start[q], start[q + 1]):
            pair = pair_start[q] + (i - start[q]) * n_gold
            best[i], gain[i] = np.nan, 0.0
            credited = -1
            for g in range(n_gold):
                if match[pair + g] == 0:
                    continue
                if first_rank[low + g] == 0:
                    first_rank[low + g] = i - start[q] + 1
                worth = value[low + g]
                if not best[i] >= worth:
                    best[i] = worth
                if not used[g] and (credited < 0 or worth > value[low + credited]):
                    credited = g
            if credited >= 0:
                used[credited] = True
                gain[i] = value[low + credited]


# JSON strings in ASCII (RFC 8259; the escapes of Python's ``json.dumps``).

_QUOTE, _BACKSLASH = 34, 92


@inner
def _hex(out: Array, n: int, value: int) -> int:
    """Write a UTF-16 unit as a backslash, u and four digits."""
    out[n] = _BACKSLASH
    out[n + 1] = 117
    for d in range(4):
        digit = (value >> (12 - 4 * d)) & 15
        out[n + 2 + d] = 48 + digit if digit < 10 else 87 + digit
    return n + 6


@kernel
def escape_json(data: U8, start: I64, before: Bools, after: Bools) -> tuple[Array, Array]:
    """Escape texts, with the requested quotes.

    Args:
        before: bool [n], whether the opening quote is written.
        after: bool [n], whether the closing quote is written.

    Returns:
        uint8, the ASCII bytes; their offsets int64 [n + 1].
    """
    out = np.empty(6 * data.size + 2 * start.size, np.uint8)
    out_start = np.zeros(start.size, np.int64)
    n = 0
    for t in range(start.size - 1):
        if before[t]:
            out[n] = _QUOTE
            n += 1
        i = start[t]
        while i < start[t + 1]:
            code, width = code_at(data, i)
            i += width
            short = 0
            if code in (_QUOTE, _BACKSLASH):
                short = code
            elif code == 8:
                short = 98
            elif code == 9:
                short = 116
            elif code == 10:
                short = 110
            elif code == 12:
                short = 102
            elif code == 13:
                short = 114
            if short:
                out[n] = _BACKSLASH
                out[n + 1] = short
                n += 2
            elif 32 <= code < 127:
                out[n] = code
                n += 1
            elif code < 0x10000:
                n = _hex(out, n, code)
            else:
                n = _hex(out, n, 0xD800 + ((code - 0x10000) >> 10))
                n = _hex(out, n, 0xDC00 + ((code - 0x10000) & 0x3FF))
        if after[t]:
            out[n] = _QUOTE
            n += 1
        out_start[t + 1] = n
    return out[: out_start[-1]].copy(), out_start
