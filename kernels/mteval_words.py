"""Tokens as mteval-v13a cuts them, without a regular expression.

Four rewritings follow each other, each from left to right and without overlap: most marks of ASCII
are apart; a full stop or comma is apart unless a digit stands before it, then unless one stands
behind it; a hyphen is apart behind a digit. What is left between white space are the tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .token_hashes import put_token
from .words import space_at

Array = np.ndarray[Any, Any]

_APART = np.zeros(256, np.bool_)
_APART[np.r_[32:39, 40:44, 47, 58:65, 91:97, 123:127]] = True  # all but ' , - .
_APART.flags.writeable = False
_SPACE, _COMMA, _HYPHEN, _STOP = np.uint8(32), np.uint8(44), np.uint8(45), np.uint8(46)


@inner
def _digit(byte: int) -> bool:
    return 48 <= byte <= 57


@inner
def _pointed(byte: int) -> bool:
    return byte in (_STOP, _COMMA)


@inner
def _behind(text: Array, n: int, out: Array) -> int:
    """A stop or comma that no digit precedes is set apart."""
    i, m = 0, 0
    while i < n:
        out[m] = text[i]
        m += 1
        if i + 1 < n and not _digit(text[i]) and _pointed(text[i + 1]):
            out[m], out[m + 1], out[m + 2] = _SPACE, text[i + 1], _SPACE
            m += 3
            i += 1
        i += 1
    return m


@inner
def _before(text: Array, n: int, out: Array) -> int:
    """A stop or comma that no digit follows is set apart."""
    i, m = 0, 0
    while i < n:
        if i + 1 < n and _pointed(text[i]) and not _digit(text[i + 1]):
            out[m], out[m + 1], out[m + 2], out[m + 3] = _SPACE, text[i], _SPACE, text[i + 1]
            m += 4
            i += 2
            continue
        out[m] = text[i]
        m += 1
        i += 1
    return m


@inner
def _dashed(text: Array, n: int, out: Array) -> int:
    """A hyphen behind a digit is set apart."""
    i, m = 0, 0
    while i < n:
        out[m] = text[i]
        m += 1
        if i + 1 < n and _digit(text[i]) and text[i + 1] == _HYPHEN:
            out[m], out[m + 1], out[m + 2] = _SPACE, _HYPHEN, _SPACE
            m += 3
            i += 1
        i += 1
    return m


@kernel
def _tokens(
    data: Array, start: Array, padded: bool, first: Array, second: Array, text_end: Array
) -> int:
    longest = 0
    for t in range(start.size - 1):
        longest = max(longest, start[t + 1] - start[t])
    a, b = np.empty(6 * longest + 16, np.uint8), np.empty(12 * longest + 16, np.uint8)
    c = np.empty(24 * longest + 16, np.uint8)
    n = 0
    for t in range(start.size - 1):
        size = 0
        if padded:
            a[0] = _SPACE
            size = 1
        for i in range(start[t], start[t + 1]):
            byte = data[i]
            if _APART[byte]:
                a[size], a[size + 1], a[size + 2] = _SPACE, byte, _SPACE
                size += 3
            else:
                a[size] = byte
                size += 1
        if padded:
            a[size] = _SPACE
            size += 1
        size = _behind(a, size, b)
        size = _before(b, size, c)
        if 4 * size > b.size:
            b = np.empty(8 * size, np.uint8)
        size = _dashed(c, size, b)
        i = 0
        while i < size:
            width = space_at(b, i, size) if b[i] <= 32 or b[i] >= 0x80 else 0
            if width > 0:
                i += width
                continue
            begin = i
            while i < size and ((32 < b[i] < 0x80) or space_at(b, i, size) == 0):
                i += 1
            put_token(b, begin, i, n, first, second)
            n += 1
        text_end[t + 1] = n
    return n


def mteval_words(data: Array, start: Array, *, padded: bool) -> tuple[Array, Array, Array]:
    """Tokens of texts by the rules of mteval-v13a for Western languages.

    Entities, ``<skipped>`` and hyphens before line breaks are the caller's.

    Args:
        data: uint8, UTF-8 of all texts.
        start: int64 [t + 1], offsets of the texts.
        padded: whether a space stands before and behind each text.

    Returns:
        first and second hash of each token, uint64; offsets of the tokens of each text,
        int64 [t + 1].
    """
    room = int(start[-1] - start[0]) + 1
    first, second = np.empty(room, np.uint64), np.empty(room, np.uint64)
    text_end = np.zeros(start.size, np.int64)
    n = _tokens(frozen(data, np.uint8), frozen(start, np.int64), padded, first, second, text_end)
    return first[:n], second[:n], text_end
