"""Levenshtein distances of token codes, bit-parallel.

Myers, "A fast bit-vector algorithm for approximate string matching", 1999, in the blocks of Hyyrö,
"A bit-vector algorithm for computing Levenshtein and Damerau edit distances", 2003.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .coded_texts import coded_texts
from .jit import frozen, inner, kernel
from .lcs import place_codes

Array = np.ndarray[Any, Any]

_ONE, _ZERO, _FULL = np.uint64(1), np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)
_LAST = np.uint64(63)


@inner
def _narrow(r_code: Array, r0: int, r1: int, c_code: Array, c0: int, c1: int, mask: Array) -> int:
    """Distance to a reference of 1 to 64 tokens."""
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
    r_code: Array,
    r0: int,
    r1: int,
    c_code: Array,
    c0: int,
    c1: int,
    head: Array,
    link: Array,
    mask: Array,
    up: Array,
    down: Array,
) -> int:
    """Distance to a longer reference."""
    width = (r1 - r0 + 63) >> 6
    place_codes(r_code, r0, r1, head, link)
    for w in range(width):
        up[w], down[w] = _FULL, _ZERO
    top = _ONE << np.uint64((r1 - r0 - 1) & 63)
    distance = r1 - r0
    for j in range(c0, c1):
        i = head[c_code[j]]
        at = i
        while at >= 0:
            mask[at >> 6] |= _ONE << np.uint64(at & 63)
            at = link[at]
        more, less = _ONE, _ZERO  # what comes in from the row above
        for w in range(width):
            equal, ups, downs = mask[w], up[w], down[w]
            first = equal | downs
            equal |= less
            diagonal = (((equal & ups) + ups) ^ ups) | equal | downs
            right = downs | ~(diagonal | ups)
            left = ups & diagonal
            if w == width - 1:
                if right & top:
                    distance += 1
                elif left & top:
                    distance -= 1
            out_more, out_less = right >> _LAST, left >> _LAST
            right = (right << _ONE) | more
            left = (left << _ONE) | less
            up[w] = left | ~(first | right)
            down[w] = right & first
            more, less = out_more, out_less
        while i >= 0:
            mask[i >> 6] = _ZERO
            i = link[i]
    for i in range(r0, r1):
        head[r_code[i]] = -1
    return distance


@kernel
def _distances(
    begin: int,
    stop: int,
    candidate: Array,
    c_start: Array,
    c_code: Array,
    r_start: Array,
    r_code: Array,
    n_codes: int,
    out: Array,
) -> None:
    """Distances of the units [begin, stop)."""
    longest = 0
    for u in range(begin, stop):
        longest = max(longest, r_start[u + 1] - r_start[u])
    narrow = np.zeros(n_codes, np.uint64)
    wide = longest if longest > 64 else 0
    head, link = np.full(n_codes if wide > 0 else 0, -1, np.int32), np.empty(wide, np.int32)
    words = (wide + 63) >> 6
    mask, up, down = (
        np.zeros(words, np.uint64),
        np.empty(words, np.uint64),
        np.empty(words, np.uint64),
    )
    for u in range(begin, stop):
        r0, r1 = r_start[u], r_start[u + 1]
        c0, c1 = c_start[candidate[u]], c_start[candidate[u] + 1]
        # What both begin and end with costs nothing.
        while r0 < r1 and c0 < c1 and r_code[r0] == c_code[c0]:
            r0 += 1
            c0 += 1
        while r0 < r1 and c0 < c1 and r_code[r1 - 1] == c_code[c1 - 1]:
            r1 -= 1
            c1 -= 1
        if r0 == r1 or c0 == c1:
            out[u] = max(r1 - r0, c1 - c0)
        elif r1 - r0 <= 64:
            out[u] = _narrow(r_code, r0, r1, c_code, c0, c1, narrow)
        else:
            out[u] = _wide(r_code, r0, r1, c_code, c0, c1, head, link, mask, up, down)


def edit_distances(
    first: int,
    last: int,
    candidate: Array,
    candidates: tuple[Array, Array],
    references: tuple[Array, Array],
    n_codes: int,
    out: Array,
) -> None:
    """Fewest insertions, deletions and replacements from each reference to its candidate.

    Args:
        first: first reference.
        last: one past the last.
        candidate: int64 [m], the candidate of each reference.
        candidates: offsets of the tokens of each candidate, int64; their codes, int32 in
            [0, n_codes).
        references: the same of the references, int64 [m + 1].
        n_codes: one more than the highest code.
        out: int64 [m], filled.
    """
    _distances(
        first,
        last,
        frozen(candidate, np.int64),
        *coded_texts(candidates, references),
        n_codes,
        out,
    )
