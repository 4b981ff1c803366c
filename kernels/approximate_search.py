"""How closely a text occurs anywhere in another: a bound that spares most costly comparisons.

The least Levenshtein distance of a needle to any stretch of a haystack, by bit-parallel rows
(Myers, "A fast bit-vector algorithm for approximate string matching", 1999; blocks after Hyyrö,
"A bit-vector algorithm for computing Levenshtein and Damerau edit distances", 2003).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .words import code_at

Array = np.ndarray[Any, Any]

_ONE, _FULL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_TOP, _ZERO = np.uint64(63), np.uint64(0)


@kernel
def _characters(data: Array, start: Array) -> Any:
    """Dense codes of all characters, offsets of those of each text, and how many codes."""
    code_of = np.full(0x110000, -1, np.int32)
    out = np.empty(data.size, np.int32)
    out_start = np.zeros(start.size, np.int64)
    n, known = 0, 0
    for t in range(start.size - 1):
        i = start[t]
        while i < start[t + 1]:
            code, width = np.int64(data[i]), 1
            if code >= 0x80:
                code, width = code_at(data, i)
            if code_of[code] < 0:
                code_of[code] = known
                known += 1
            out[n] = code_of[code]
            n += 1
            i += width
        out_start[t + 1] = n
    return out[:n].copy(), out_start, known


@inner
def _least(needle: Array, hay: Array, masks: Array, plus: Array, minus: Array) -> np.int64:
    """The least distance of the whole needle to any stretch of the haystack."""
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
def _distances(
    characters: Array, start: Array, n_codes: int, left: Array, right: Array, out: Array
) -> None:
    """Fill ``out`` for all pairs."""
    longest = 1
    for k in range(left.size):
        a, b = left[k], right[k]
        longest = max(longest, min(start[a + 1] - start[a], start[b + 1] - start[b]))
    blocks = (longest + 63) >> 6
    masks = np.zeros((n_codes, blocks), np.uint64)
    plus, minus = np.empty(blocks, np.uint64), np.empty(blocks, np.uint64)
    for k in range(left.size):
        x = characters[start[left[k]] : start[left[k] + 1]]
        y = characters[start[right[k]] : start[right[k] + 1]]
        if x.size > y.size:
            x, y = y, x
        if x.size == 0:
            out[k] = 0
            continue
        least = _least(x, y, masks, plus, minus)
        if x.size == y.size and least > 0:
            least = min(least, _least(y, x, masks, plus, minus))
        out[k] = least


def characters_of(data: Array, start: Array) -> tuple[Array, Array, int]:
    """Texts as dense codes of their characters.

    Args:
        data: uint8, the UTF-8 bytes of all texts.
        start: int64 [n + 1], offsets of the texts.

    Returns:
        int32 codes; offsets of the texts int64 [n + 1]; number of codes.
    """
    codes, code_start, known = _characters(frozen(data, np.uint8), frozen(start, np.int64))
    return codes, code_start, known


def least_distances(texts: tuple[Array, Array, int], left: Array, right: Array) -> Array:
    """Least Levenshtein distance of the shorter text to any stretch of the longer one.

    Of texts of one length either is held against the stretches of the other.

    Args:
        texts: of :func:`characters_of`.
        left: int32 [p], one text of each pair.
        right: int32 [p], the other.

    Returns:
        int64 [p], 0 where the shorter one is a substring.
    """
    out = np.empty(left.size, np.int64)
    codes, start, known = texts
    _distances(
        frozen(codes, np.int32),
        frozen(start, np.int64),
        known,
        frozen(left, np.int32),
        frozen(right, np.int32),
        out,
    )
    return out
