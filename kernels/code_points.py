"""Code points of UTF-8 texts, with white space or without, and the words of chrF++."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel
from .token_hashes import put_token
from .words import code_at, space_at

Array = np.ndarray[Any, Any]

_PUNCTUATION = np.zeros(256, np.bool_)
_PUNCTUATION[np.r_[33:48, 58:65, 91:97, 123:127]] = True
_PUNCTUATION.flags.writeable = False


@kernel
def _decode(data: Array, start: Array, spaces: bool, code: Array, text_end: Array) -> int:
    n = 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        while i < end:
            byte = data[i]
            if not spaces and (byte <= 32 or byte >= 0x80):
                width = space_at(data, i, end)
                if width > 0:
                    i += width
                    continue
            if byte < 0x80:
                code[n] = byte
                i += 1
            else:
                found, width = code_at(data, i)
                code[n] = found
                i += width
            n += 1
        text_end[t + 1] = n
    return n


def code_points(data: Array, start: Array, *, spaces: bool) -> tuple[Array, Array]:
    """Code points of texts.

    Args:
        data: uint8, UTF-8 of all texts.
        start: int64 [t + 1], offsets of the texts.
        spaces: whether white space (as Python's ``str.split`` knows it) stays.

    Returns:
        offsets of the code points of each text, int64 [t + 1]; int32, all of them.
    """
    code = np.empty(int(start[-1] - start[0]), np.int32)
    text_end = np.zeros(start.size, np.int64)
    n = _decode(frozen(data, np.uint8), frozen(start, np.int64), spaces, code, text_end)
    return text_end, code[:n]


@kernel
def _bare_words(data: Array, start: Array, first: Array, second: Array, text_end: Array) -> int:
    n = 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        while i < end:
            width = space_at(data, i, end) if data[i] <= 32 or data[i] >= 0x80 else 0
            if width > 0:
                i += width
                continue
            begin = i
            while i < end and ((32 < data[i] < 0x80) or space_at(data, i, end) == 0):
                i += 1
            cut = i
            if i - begin > code_at(data, begin)[1]:  # more than one character
                if _PUNCTUATION[data[i - 1]]:
                    cut = i - 1
                elif _PUNCTUATION[data[begin]]:
                    cut = begin + 1
            put_token(data, begin, cut, n, first, second)
            n += 1
            if cut < i:
                put_token(data, cut, i, n, first, second)
                n += 1
        text_end[t + 1] = n
    return n


def words_and_marks(data: Array, start: Array) -> tuple[Array, Array, Array]:
    """Words between white space; one mark of ASCII punctuation at the end, else start, is apart.

    The rule of chrF++ (Popović, "chrF++: words helping character n-grams", 2017).

    Args:
        data: uint8, UTF-8 of all texts.
        start: int64 [t + 1], offsets of the texts.

    Returns:
        first and second hash of each token, uint64; offsets of the tokens of each text,
        int64 [t + 1].
    """
    room = int(start[-1] - start[0]) + 1
    first, second = np.empty(room, np.uint64), np.empty(room, np.uint64)
    text_end = np.zeros(start.size, np.int64)
    n = _bare_words(frozen(data, np.uint8), frozen(start, np.int64), first, second, text_end)
    return first[:n], second[:n], text_end
