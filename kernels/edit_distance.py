"""Levenshtein distances of token codes, bit-parallel.

Myers, "A fast bit-vector algorithm for approximate string matching", 1999, in the blocks of Hyyrö,
"A bit-vector algorithm for computing Levenshtein and Damerau edit distances", 2003.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .coded_texts import coded_texts
from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_ONE, _ZERO, _FULL = np.uint64(1), np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)


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
    mask: Array,
    step: Array,
) -> int:
    """Distance to a longer reference, 64 of its tokens beside all of the candidate at a time.

    Places of a token are marked for one block alone, so that texts of few different tokens take as
    long as others. ``step`` tells what each column gains from a block to the next: 1 for one more,
    2 for one less.
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
        longest = max(longest, c_start[candidate[u] + 1] - c_start[candidate[u]])
    mask, step = np.zeros(n_codes, np.uint64), np.empty(longest, np.uint8)
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
            out[u] = _narrow(r_code, r0, r1, c_code, c0, c1, mask)
        else:
            out[u] = _wide(r_code, r0, r1, c_code, c0, c1, mask, step)


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
