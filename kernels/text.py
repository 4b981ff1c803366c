"""Texts compared as sequences of codes: edits, common subsequences, n-grams.

Arguments of these names are the same everywhere:

    first, last: range [first, last) of references, for which ``out`` is written.
    candidate: int64 [m], the candidate of each reference.
    candidates, references: :data:`Tokens` or :data:`Lines`, with codes in [0, n_codes).
    out: int64 [m].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .bits import set_bits
from .jit import I32, I64, Array, inner, kernel
from .passages import fill, walk

# Layouts of texts as codes.


Tokens = tuple[I64, I32]
"""Offsets int64 of the tokens of each text, and the codes of the tokens, int32."""

Lines = tuple[I64, I64, I32]
"""Offsets int64 of the lines or sentences of each text, offsets of their tokens, and the codes."""


# Words that two texts share, each counted once: anywhere, and in common subsequences.


@kernel
def shared_words(
    first: int,
    last: int,
    candidate: I64,
    candidates: Tokens,
    references: Tokens,
    n_codes: int,
    out: Array,
) -> None:
    """Count the different words that each reference shares with its candidate."""
    c_start, c_code = candidates
    r_start, r_code = references
    mark = np.zeros(n_codes, np.int64)
    stamp = 0
    for u in range(first, last):
        stamp += 2
        for i in range(r_start[u], r_start[u + 1]):
            mark[r_code[i]] = stamp
        shared = 0
        for j in range(c_start[candidate[u]], c_start[candidate[u] + 1]):
            if mark[c_code[j]] == stamp:
                mark[c_code[j]] = stamp + 1
                shared += 1
        out[u] = shared


@kernel
def union_hits(
    first: int,
    last: int,
    candidate: I64,
    candidates: Lines,
    references: Lines,
    n_codes: int,
    out: Array,
) -> None:
    """Count the different words in longest common subsequences of any two sentences.

    If there are several, it uses the one of :func:`.passages.walk`.

    Args:
        candidates: no sentence is empty.
        out: int64 [m, 3]: words that are hit, different words of the candidate and of the
            reference.
    """
    c_lines, c_start, c_code = candidates
    r_lines, r_start, r_code = references
    longest = 0
    for u in range(first, last):
        for line in range(c_lines[candidate[u]], c_lines[candidate[u] + 1]):
            longest = max(longest, c_start[line + 1] - c_start[line])
    head, link = np.full(n_codes, -1, np.int32), np.empty(longest, np.int32)
    in_r, in_c = np.full(n_codes, -1, np.int64), np.full(n_codes, -1, np.int64)
    hit = np.full(n_codes, -1, np.int64)
    rows = np.empty(1024, np.uint64)
    for u in range(first, last):
        rl0, rl1 = r_lines[u], r_lines[u + 1]
        cl0, cl1 = c_lines[candidate[u]], c_lines[candidate[u] + 1]
        theirs, ours, possible, hits = 0, 0, 0, 0
        for i in range(r_start[rl0], r_start[rl1]):
            if in_r[r_code[i]] != u:
                in_r[r_code[i]] = u
                theirs += 1
        for j in range(c_start[cl0], c_start[cl1]):
            if in_c[c_code[j]] != u:
                in_c[c_code[j]] = u
                ours += 1
                if in_r[c_code[j]] == u:
                    possible += 1
        for r_line in range(rl0, rl1):
            x = r_code[r_start[r_line] : r_start[r_line + 1]]
            for c_line in range(cl0, cl1):
                if hits == possible:
                    break  # no more to be hit
                y = c_code[c_start[c_line] : c_start[c_line + 1]]
                need = (x.size + 1) * ((y.size + 63) >> 6)
                if rows.size < need:
                    rows = np.empty(2 * need, np.uint64)
                fill(x, x.size, y, y.size, rows, head, link)
                hits += walk(x, x.size, y, y.size, rows, hit, u)
        out[u, 0], out[u, 1], out[u, 2] = hits, ours, theirs


# Levenshtein distances, bit-parallel: Myers, "A fast bit-vector algorithm for approximate string
# matching", 1999, in the blocks of Hyyrö, "A bit-vector algorithm for computing Levenshtein and
# Damerau edit distances", 2003.

_ONE, _ZERO, _FULL = np.uint64(1), np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)


@inner
def _narrow(r_code: Array, r0: int, r1: int, c_code: Array, c0: int, c1: int, mask: Array) -> int:
    for i in range(r0, r1):
        mask[r_code[i]] |= _ONE << np.uint64(i - r0)
    top = _ONE << np.uint64(r1 - r0 - 1)
    up, down = _FULL, _ZERO
    distance = r1 - r0
    for j in range(c0, c1):
        equal = mask[c_code[j]]
        diagonal = (((equal & up) + up) ^ up) | equal | down
        right = down | ~(diagonal | up)
        left = up & diagonal
        if right & top:
            distance += 1
        elif left & top:
            distance -= 1
        right = (right << _ONE) | _ONE
        left <<= _ONE
        up = left | ~(diagonal | right)
        down = right & diagonal
    for i in range(r0, r1):
        mask[r_code[i]] = _ZERO
    return distance


@inner
def _wide(
    r_code: Array, r0: int, r1: int, c_code: Array, c0: int, c1: int, mask: Array, step: Array
) -> int:
    """Distance to a longer reference, in blocks of 64 of its tokens against the whole candidate.

    Places of a token are marked for only one block, so that texts of few different tokens take as
    long as others. ``step`` is the gain of each column from a block to the next: 1 for one more, 2
    for one less.
    """
    for j in range(c1 - c0):
        step[j] = 1
    distance = r1 - r0
    for begin in range(r0, r1, 64):
        end = min(begin + 64, r1)
        for i in range(begin, end):
            mask[r_code[i]] |= _ONE << np.uint64(i - begin)
        top = np.uint64(end - begin - 1)
        up, down = _FULL, _ZERO
        for j in range(c1 - c0):
            more, less = np.uint64(step[j]) & _ONE, np.uint64(step[j]) >> _ONE
            equal = mask[c_code[c0 + j]]
            first = equal | down
            equal |= less
            diagonal = (((equal & up) + up) ^ up) | equal | down
            right = down | ~(diagonal | up)
            left = up & diagonal
            step[j] = ((right >> top) & _ONE) | (((left >> top) & _ONE) << _ONE)
            right = (right << _ONE) | more
            left = (left << _ONE) | less
            up = left | ~(first | right)
            down = right & first
        for i in range(begin, end):
            mask[r_code[i]] = _ZERO
    for j in range(c1 - c0):
        distance += (step[j] & 1) - (step[j] >> 1)
    return distance


@kernel
def edit_distances(
    first: int,
    last: int,
    candidate: I64,
    candidates: Tokens,
    references: Tokens,
    n_codes: int,
    out: Array,
) -> None:
    """Fewest insertions, deletions and replacements from each reference to its candidate."""
    c_start, c_code = candidates
    r_start, r_code = references
    longest = 0
    for u in range(first, last):
        longest = max(longest, c_start[candidate[u] + 1] - c_start[candidate[u]])
    mask, step = np.zeros(n_codes, np.uint64), np.empty(longest, np.uint8)
    for u in range(first, last):
        r0, r1 = r_start[u], r_start[u + 1]
        c0, c1 = c_start[candidate[u]], c_start[candidate[u] + 1]
        # A common prefix and suffix cost no edits.
        while r0 < r1 and c0 < c1 and r_code[r0] == c_code[c0]:
            r0 += 1
            c0 += 1
        while r0 < r1 and c0 < c1 and r_code[r1 - 1] == c_code[c1 - 1]:
            r1 -= 1
            c1 -= 1
        if r0 == r1 or c0 == c1:
            out[u] = max(r1 - r0, c1 - c0)
        elif r1 - r0 <= 64:
            out[u] = _narrow(r_code, r0, r1, c_code, c0, c1, mask)
        else:
            out[u] = _wide(r_code, r0, r1, c_code, c0, c1, mask, step)


# Longest common subsequences, bit-parallel: Hyyrö, "Bit-parallel LCS-length computation revisited",
# 2004. Bit i of the column after j tokens of the candidate is zero if the subsequence grows from i
# to i + 1 tokens of the reference.


@inner
def place_codes(code: Array, begin: int, end: int, head: Array, link: Array) -> None:
    """Link the places of each code, from its last to its first: ``head``, then ``link``."""
    for i in range(begin, end):
        link[i - begin] = head[code[i]]
        head[code[i]] = i - begin


@inner
def step_wide(old: Array, new: Array, at: int, to: int, width: int, mask: Array) -> None:
    """Next column of ``width`` words, from ``old[at:]`` into ``new[to:]``."""
    carry = np.uint64(0)
    for w in range(width):
        row, bits = old[at + w], mask[w]
        both = row & bits
        total = row + both
        over = total < row
        total += carry
        carry = _ONE if over or total < carry else np.uint64(0)
        new[to + w] = total | (row & ~bits)


@kernel
def _lengths(
    first: int,
    last: int,
    candidate: I64,
    candidates: Tokens,
    references: Tokens,
    n_codes: int,
    out: Array,
) -> None:
    """Lengths for references of at most 64 tokens."""
    c_start, c_code = candidates
    r_start, r_code = references
    narrow = np.zeros(n_codes, np.uint64)
    for u in range(first, last):
        r0, r1 = r_start[u], r_start[u + 1]
        if r1 - r0 > 64:
            continue
        for i in range(r0, r1):
            narrow[r_code[i]] |= _ONE << np.uint64(i - r0)
        bits = _FULL
        for j in range(c_start[candidate[u]], c_start[candidate[u] + 1]):
            both = bits & narrow[c_code[j]]
            bits = (bits + both) | (bits - both)
        for i in range(r0, r1):
            narrow[r_code[i]] = np.uint64(0)
        if r1 - r0 < 64:
            bits |= ~((_ONE << np.uint64(r1 - r0)) - _ONE)
        out[u] = np.int64(set_bits(~bits))


@kernel
def _long_lengths(
    first: int,
    last: int,
    candidate: I64,
    candidates: Tokens,
    references: Tokens,
    n_codes: int,
    longest: int,
    out: Array,
) -> None:
    """Lengths for references of more tokens, ``longest`` at most."""
    c_start, c_code = candidates
    r_start, r_code = references
    head = np.full(n_codes, -1, np.int32)
    link = np.empty(longest, np.int32)
    row, mask = np.empty((longest + 63) >> 6, np.uint64), np.zeros((longest + 63) >> 6, np.uint64)
    for u in range(first, last):
        r0, r1 = r_start[u], r_start[u + 1]
        c0, c1 = c_start[candidate[u]], c_start[candidate[u] + 1]
        if r1 - r0 <= 64:
            continue
        width = (r1 - r0 + 63) >> 6
        place_codes(r_code, r0, r1, head, link)
        for w in range(width):
            row[w] = _FULL
        for j in range(c0, c1):
            i = head[c_code[j]]
            if i < 0:
                continue
            at = i
            while at >= 0:
                mask[at >> 6] |= _ONE << np.uint64(at & 63)
                at = link[at]
            step_wide(row, row, 0, 0, width, mask)
            while i >= 0:
                mask[i >> 6] = np.uint64(0)
                i = link[i]
        if (r1 - r0) & 63:
            row[width - 1] |= ~((_ONE << np.uint64((r1 - r0) & 63)) - _ONE)
        length: Any = 0
        for w in range(width):
            length += np.int64(set_bits(~row[w]))
        out[u] = length
        for i in range(r0, r1):
            head[r_code[i]] = -1


def lcs_lengths(
    first: int,
    last: int,
    candidate: Array,
    candidates: Tokens,
    references: Tokens,
    n_codes: int,
    out: Array,
) -> None:
    """Length of the longest common subsequence of each reference and its candidate."""
    longest = int(np.diff(references[0][first : last + 1]).max(initial=0))
    _lengths(first, last, candidate, candidates, references, n_codes, out)
    if longest > 64:  # most runs need not compile this
        _long_lengths(first, last, candidate, candidates, references, n_codes, longest, out)


# Clipped n-gram overlap, order by order. The key of an n-gram is exact and short: the pair of its
# prefix's key and its last token. A candidate's n-gram can only match if its prefix is in a
# reference.

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


@inner
def _slot_of(key: int, mask: int) -> Any:
    mixed = key * _MIX
    return (mixed >> _SHIFT ^ mixed) & mask


@kernel
def ngram_matches(
    first: int,
    last: int,
    units: tuple[I64, I64],
    candidates: Tokens,
    references: Tokens,
    n_codes: int,
    out: Array,
) -> None:
    """Count n-grams of candidates in references, each at most as often as in one reference.

    Args:
        first: first unit of comparison.
        last: one past the last.
        units: the candidate of each, int64 [u]; offsets of its references, int64 [u + 1]; an n-gram
            may match as often as in the reference with most of it.
        out: int64 [u, orders], matches of the orders 1, 2, ...
    """
    c_start, c_code = candidates
    r_start, r_code = references
    candidate, reference_start = units
    orders = out.shape[1]
    longest_c, longest_r = 0, 0
    for u in range(first, last):
        longest_c = max(longest_c, c_start[candidate[u] + 1] - c_start[candidate[u]])
        r0, r1 = r_start[reference_start[u]], r_start[reference_start[u + 1]]
        longest_r = max(longest_r, r1 - r0)
    room = 16
    while room < 2 * longest_r:
        room *= 2
    slot = np.empty(room, np.int32)
    keys = np.empty(longest_r + 1, np.uint64)
    clip = np.empty(longest_r + 1, np.int32)  # maximum over references, minus matches
    times = np.empty(longest_r + 1, np.int32)
    latest = np.empty(longest_r + 1, np.int64)  # reference that ``times`` counts in
    before_r, before_c = np.empty(longest_r, np.int32), np.empty(longest_c, np.int32)
    one = np.zeros(n_codes, np.int32)
    once = np.zeros(n_codes, np.int32)
    where = np.zeros(n_codes, np.int64)  # one more than the last reference that has the code
    for u in range(first, last):
        c0, c1 = c_start[candidate[u]], c_start[candidate[u] + 1]
        g0, g1 = reference_start[u], reference_start[u + 1]
        r0, r1 = r_start[g0], r_start[g1]
        for g in range(g0, g1):
            for i in range(r_start[g], r_start[g + 1]):
                code = r_code[i]
                before_r[i - r0] = code
                if where[code] != g + 1:
                    where[code] = g + 1
                    once[code] = 0
                once[code] += 1
                one[code] = max(one[code], once[code])
        matches, standing = 0, 0
        for i in range(c0, c1):
            code = c_code[i]
            if one[code] > 0:
                one[code] -= 1
                matches += 1
            # A used-up n-gram is still in a reference: its last count is not subtracted again.
            match = where[code] > g0 and where[code] <= g1
            before_c[i - c0] = code if match else -1
            standing += match
        out[u, 0] = matches
        for i in range(r0, r1):
            one[r_code[i]] = 0
        for order in range(1, orders):
            out[u, order] = 0
            if standing == 0:
                continue
            size = 16
            while size < 2 * (r1 - r0):
                size *= 2
            mask = np.uint64(size - 1)
            for s in range(size):
                slot[s] = -1
            n_keys = 0
            for g in range(g0, g1):
                for i in range(r_start[g], r_start[g + 1] - order):
                    key = np.uint64(before_r[i - r0]) << _SHIFT | np.uint64(r_code[i + order])
                    at = _slot_of(key, mask)
                    match = slot[at]
                    while match >= 0 and keys[match] != key:
                        at = (at + np.uint64(1)) & mask
                        match = slot[at]
                    if match < 0:
                        match = np.int32(n_keys)
                        slot[at] = match
                        keys[match] = key
                        clip[match] = 0
                        latest[match] = -1
                        n_keys += 1
                    if latest[match] != g:
                        latest[match] = g
                        times[match] = 0
                    times[match] += 1
                    clip[match] = max(clip[match], times[match])
                    before_r[i - r0] = match
            matches, standing = 0, 0
            for i in range(c0, c1 - order):
                if before_c[i - c0] < 0:
                    continue
                key = np.uint64(before_c[i - c0]) << _SHIFT | np.uint64(c_code[i + order])
                at = _slot_of(key, mask)
                match = slot[at]
                while match >= 0 and keys[match] != key:
                    at = (at + np.uint64(1)) & mask
                    match = slot[at]
                before_c[i - c0] = match
                if match < 0:
                    continue
                standing += 1
                if clip[match] > 0:
                    clip[match] -= 1
                    matches += 1
            out[u, order] = matches


# Summary-level ROUGE-L of Google's rouge-score 0.1.2: tokens of a reference's line that are in a
# longest common subsequence with any line of the candidate are hits, each no more often than in
# either text (Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004, 3.2). The
# backtrack, from both ends, takes equal tokens; otherwise it goes back in the candidate if table[i,
# j-1] > table[i-1, j], else in the reference.
# The table is stored as columns of bits: bit i - 1 of column j is zero if table[i, j] > table[i-1,
# j].


@inner
def _mark(
    r: Array, c: Array, head: Array, link: Array, mask: Array, columns: Array, hit: Array
) -> None:
    """Mark tokens of a line of the reference on the backtrack through one line's table.

    ``head`` and ``link`` are the places of the line's tokens.
    """
    width = (r.size + 63) >> 6
    for w in range(width):
        columns[w] = _FULL
    for j in range(c.size):
        i = head[c[j]]
        at = i
        while at >= 0:
            mask[at >> 6] |= _ONE << np.uint64(at & 63)
            at = link[at]
        step_wide(columns, columns, j * width, (j + 1) * width, width, mask)
        while i >= 0:
            mask[i >> 6] = np.uint64(0)
            i = link[i]
    i, j = r.size, c.size
    while i > 0 and j > 0:
        if r[i - 1] == c[j - 1]:
            hit[i - 1] = 1
            i -= 1
            j -= 1
        elif columns[j * width + ((i - 1) >> 6)] >> np.uint64((i - 1) & 63) & _ONE:
            i -= 1
        else:
            j -= 1


@kernel
def summary_hits(
    first: int,
    last: int,
    candidate: I64,
    candidates: Lines,
    references: Lines,
    n_codes: int,
    out: Array,
) -> None:
    """Tokens of each reference that are hit, line by line.

    Args:
        out: int64 [m], lengths of longest common subsequences, which are the hits if both texts
            have one line; replaced if there are several lines.
    """
    c_lines, c_start, c_code = candidates
    r_lines, r_start, r_code = references
    longest_r, longest_c = 0, 0
    for u in range(first, last):
        for i in range(r_lines[u], r_lines[u + 1]):
            longest_r = max(longest_r, r_start[i + 1] - r_start[i])
        for i in range(c_lines[candidate[u]], c_lines[candidate[u] + 1]):
            longest_c = max(longest_c, c_start[i + 1] - c_start[i])
    width = (longest_r + 63) >> 6
    columns, mask = np.empty((longest_c + 1) * width, np.uint64), np.zeros(width, np.uint64)
    head, link = np.full(n_codes, -1, np.int32), np.empty(longest_r, np.int32)
    hit = np.zeros(longest_r, np.uint8)
    left_r, left_c = np.zeros(n_codes, np.int32), np.zeros(n_codes, np.int32)
    for u in range(first, last):
        rl0, rl1 = r_lines[u], r_lines[u + 1]
        cl0, cl1 = c_lines[candidate[u]], c_lines[candidate[u] + 1]
        if rl1 - rl0 < 2 and cl1 - cl0 < 2:
            continue  # the length of the only subsequence is already there
        for i in range(r_start[rl0], r_start[rl1]):
            left_r[r_code[i]] += 1
        for i in range(c_start[cl0], c_start[cl1]):
            left_c[c_code[i]] += 1
        hits = 0
        for r_line in range(rl0, rl1):
            r0, r1 = r_start[r_line], r_start[r_line + 1]
            place_codes(r_code, r0, r1, head, link)
            for c_line in range(cl0, cl1):
                line = c_code[c_start[c_line] : c_start[c_line + 1]]
                _mark(r_code[r0:r1], line, head, link, mask, columns, hit)
            for i in range(r0, r1):
                code = r_code[i]
                head[code] = -1
                if hit[i - r0]:
                    hit[i - r0] = 0
                    if left_r[code] > 0 and left_c[code] > 0:
                        left_r[code] -= 1
                        left_c[code] -= 1
                        hits += 1
        for i in range(r_start[rl0], r_start[rl1]):
            left_r[r_code[i]] = 0
        for i in range(c_start[cl0], c_start[cl1]):
            left_c[c_code[i]] = 0
        out[u] = hits


# Word alignments near the diagonal, as in sacrebleu 2.6 for TER after Tercom. Only cells within 25
# columns of the diagonal are kept, or more if one text is many times as long as the other, so
# memory grows linearly.

_BEAM = 25
_NEVER = np.int32(1 << 28)
_KEEP, _REPLACE, _DELETE, _INSERT = np.uint8(0), np.uint8(1), np.uint8(2), np.uint8(3)


@inner
def _width(n: int, m: int) -> int:
    """Distance from the diagonal within which cells are searched."""
    ratio = m / n
    return math.ceil(ratio / 2 + _BEAM) if ratio / 2 > _BEAM else _BEAM


@inner
def row_cells(n: int, m: int) -> int:
    """Number of cells kept per row: those of its band, and of the next one's."""
    return min(m + 2, 2 * _width(n, m) + math.ceil(m / n) + 4)


@inner
def bands(n: int, m: int, low: Array, top: Array) -> None:
    """First column of each row that is searched, and one past the last, [n + 1]."""
    ratio, width = m / n, _width(n, m)
    low[0], top[0] = 0, min(m + 1, row_cells(n, m) - 1)
    for i in range(1, n + 1):
        diagonal = math.floor(i * ratio)
        low[i] = max(0, diagonal - width)
        top[i] = m + 1 if i == n else min(m + 1, diagonal + width)


@inner
def fill_rows(
    h: Array,
    n: int,
    ref: Array,
    m: int,
    from_row: int,
    low: Array,
    top: Array,
    cost: Array,
    step: Array,
    stepped: bool,
) -> int:
    """Rows of the table after ``from_row``; returns the distance.

    ``cost[i, 1 + k]`` is of column ``low[i] + k``, so that every cell has one before it; ``step``
    has no such cell.
    """
    for i in range(from_row + 1, n + 1):
        first, last = low[i], top[i]
        past = first - low[i - 1]  # place at which the row before has the column before the first
        for k in range(top[i - 1] - low[i - 1], last - low[i - 1]):
            cost[i - 1, k + 1] = _NEVER
        cost[i, 0] = _NEVER
        word = h[i - 1]
        for j in range(first, last):
            k = j - first
            best, op = _NEVER, _KEEP
            if j == 0:
                best, op = cost[i - 1, 1] + np.int32(1), _DELETE
            else:
                best = cost[i - 1, past + k]
                if word != ref[j - 1]:
                    best, op = best + np.int32(1), _REPLACE
                above = cost[i - 1, past + k + 1] + np.int32(1)
                if best > above:
                    best, op = above, _DELETE
                left = cost[i, k] + np.int32(1)
                if best > left:
                    best, op = left, _INSERT
            cost[i, k + 1] = best
            if stepped:
                step[i, k] = op
    return cost[n, m - low[n] + 1]


@inner
def align_words(
    n: int, m: int, low: Array, step: Array, align: Array, h_wrong: Array, r_wrong: Array
) -> None:
    """Positions of the words of the reference in the hypothesis, and running counts of errors."""
    i, j = n, m
    while i > 0 or j > 0:
        op = step[i, j - low[i]] if i > 0 else _INSERT
        if op == _INSERT:
            align[j - 1] = i - 1
            r_wrong[j] = 1
            j -= 1
        elif op == _DELETE:
            h_wrong[i] = 1
            i -= 1
        else:
            align[j - 1] = i - 1
            h_wrong[i] = r_wrong[j] = op
            i -= 1
            j -= 1
    h_wrong[0] = r_wrong[0] = 0
    for k in range(n):
        h_wrong[k + 1] += h_wrong[k]
    for k in range(m):
        r_wrong[k + 1] += r_wrong[k]


# Translation edit rate: edits and shifts of words, as in sacrebleu 2.6 after Tercom. Snover et al.,
# "A Study of Translation Edit Rate with Targeted Human Annotation", 2006. While it lowers the edit
# distance, the best shift of words that are also in the reference is made: of equal gains the
# longest, then the earliest, then that to the earliest place. Shifts are of up to 10 words over up
# to 50 places; at most 1,000 are tried.

_LONGEST_SHIFT, _FARTHEST, _MOST_TRIED = 10, 50, 1000


@inner
def _shift(h: Array, n: int, start: int, length: int, target: int, out: Array) -> None:
    """Move the words [start, start + length) to ``target``."""
    k = 0
    if target < start:
        for i in range(target):
            out[i] = h[i]
        k = target
        for i in range(start, start + length):
            out[k] = h[i]
            k += 1
        for i in range(target, start):
            out[k] = h[i]
            k += 1
        for i in range(start + length, n):
            out[k] = h[i]
            k += 1
        return
    until = target if target > start + length else min(length + target, n)
    for i in range(start):
        out[i] = h[i]
    k = start
    for i in range(start + length, until):
        out[k] = h[i]
        k += 1
    for i in range(start, start + length):
        out[k] = h[i]
        k += 1
    for i in range(until, n):
        out[k] = h[i]
        k += 1


@inner
def _edits(
    h: Array, n: int, ref: Array, tables: Any, bounds: Any, flags: Any, shifted: Array
) -> int:
    """Edits and shifts of one hypothesis, which is shifted in place."""
    (cost, step, tried), (low, top), (align, h_wrong, r_wrong) = tables, bounds, flags
    m = ref.size
    bands(n, m, low, top)
    for j in range(top[0]):
        cost[0, j + 1] = tried[0, j + 1] = j
    shifts, checked = 0, 0
    while True:
        before = fill_rows(h, n, ref, m, 0, low, top, cost, step, True)
        align_words(n, m, low, step, align, h_wrong, r_wrong)
        any_shift = False
        gain, size, first, place = 0, 0, 0, 0
        for start in range(n):
            if checked >= _MOST_TRIED:
                break
            for at in range(max(0, start - _FARTHEST), min(m, start + _FARTHEST + 1)):
                if checked >= _MOST_TRIED:
                    break
                length = 0
                while (
                    length < _LONGEST_SHIFT
                    and start + length < n
                    and at + length < m
                    and h[start + length] == ref[at + length]
                ):
                    length += 1
                    if h_wrong[start + length] == h_wrong[start]:
                        continue
                    if r_wrong[at + length] == r_wrong[at]:
                        continue
                    if start <= align[at] < start + length:
                        continue
                    previous = -1
                    for offset in range(-1, length):
                        target = 0 if at + offset == -1 else align[at + offset] + 1
                        if target == previous:
                            continue
                        previous = target
                        _shift(h, n, start, length, target, shifted)
                        same = min(start, target)
                        for k in range(cost.shape[1]):
                            tried[same, k] = cost[same, k]
                        after = fill_rows(shifted, n, ref, m, same, low, top, tried, step, False)
                        checked += 1
                        won = before - after
                        if (
                            not any_shift
                            or won > gain
                            or (
                                won == gain
                                and (
                                    length > size
                                    or (
                                        length == size
                                        and (start < first or (start == first and target < place))
                                    )
                                )
                            )
                        ):
                            any_shift = True
                            gain, size, first, place = won, length, start, target
                    if checked >= _MOST_TRIED:
                        break
        if checked >= _MOST_TRIED or not any_shift or gain <= 0:
            return shifts + before
        shifts += 1
        _shift(h, n, first, size, place, shifted)
        for i in range(n):
            h[i] = shifted[i]


@kernel
def translation_edits(
    first: int, last: int, candidate: I64, candidates: Tokens, references: Tokens, out: Array
) -> None:
    """Insertions, deletions, replacements and shifts from each candidate to a reference."""
    c_start, c_code = candidates
    r_start, r_code = references
    n_max, m_max = 0, 0
    for u in range(first, last):
        n = c_start[candidate[u] + 1] - c_start[candidate[u]]
        m = r_start[u + 1] - r_start[u]
        n_max, m_max = max(n_max, n), max(m_max, m)
    align = np.empty(m_max, np.int64)
    flags = align, np.zeros(n_max + 1, np.int64), np.zeros(m_max + 1, np.int64)
    h, shifted = np.empty(n_max, np.int32), np.empty(n_max, np.int32)
    low, top = np.empty(n_max + 1, np.int64), np.empty(n_max + 1, np.int64)
    for u in range(first, last):
        c0, r0 = c_start[candidate[u]], r_start[u]
        n, m = c_start[candidate[u] + 1] - c0, r_start[u + 1] - r0
        if m == 0 or n == 0:
            out[u] = n + m
            continue
        for i in range(n):
            h[i] = c_code[c0 + i]
        cells = n + 1, row_cells(n, m)
        tables = np.empty(cells, np.int32), np.empty(cells, np.uint8), np.empty(cells, np.int32)
        out[u] = _edits(h, n, r_code[r0 : r0 + m], tables, (low, top), flags, shifted)
