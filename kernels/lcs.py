"""Longest common subsequences of token codes, bit-parallel.

Hyyrö, "Bit-parallel LCS-length computation revisited", 2004: bit i of the column after j tokens of
the candidate is zero where the subsequence grows from i to i + 1 tokens of the reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .coded_texts import coded_texts
from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_ONE, _FULL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)


@inner
def ones(bits: Any) -> Any:
    """Bits that are set."""
    bits -= (bits >> _ONE) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + (
        (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inner
def place_codes(code: Array, begin: int, end: int, head: Array, link: Array) -> None:
    """Lists of the places of each code, from its last to its first: ``head``, then ``link``."""
    for i in range(begin, end):
        link[i - begin] = head[code[i]]
        head[code[i]] = i - begin


@inner
def step_wide(old: Array, new: Array, at: int, to: int, width: int, mask: Array) -> None:
    """The next column of ``width`` words, from ``old[at:]`` into ``new[to:]``."""
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
    """Lengths of the units [begin, stop) whose references have no more than 64 tokens."""
    narrow = np.zeros(n_codes, np.uint64)
    for u in range(begin, stop):
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
        out[u] = ones(~bits)


@kernel
def _long_lengths(
    begin: int,
    stop: int,
    candidate: Array,
    c_start: Array,
    c_code: Array,
    r_start: Array,
    r_code: Array,
    n_codes: int,
    longest: int,
    out: Array,
) -> None:
    """Lengths of the units [begin, stop) whose references have more, ``longest`` at most."""
    head = np.full(n_codes, -1, np.int32)
    link = np.empty(longest, np.int32)
    row, mask = np.empty((longest + 63) >> 6, np.uint64), np.zeros((longest + 63) >> 6, np.uint64)
    for u in range(begin, stop):
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
        length = 0
        for w in range(width):
            length += ones(~row[w])
        out[u] = length
        for i in range(r0, r1):
            head[r_code[i]] = -1


def lcs_lengths(
    first: int,
    last: int,
    candidate: Array,
    candidates: tuple[Array, Array],
    references: tuple[Array, Array],
    n_codes: int,
    out: Array,
) -> None:
    """Length of the longest common subsequence of each reference and its candidate.

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
    longest = int(np.diff(references[0][first : last + 1]).max(initial=0))
    given = (
        first,
        last,
        frozen(candidate, np.int64),
        *coded_texts(candidates, references),
        n_codes,
    )
    _lengths(*given, out)
    if longest > 64:  # most runs need not compile this
        _long_lengths(*given, longest, out)
