"""Tokens as ROUGE knows them: runs of letters and digits in lower case, and the lines they are in.

Two ways: ASCII alone (Google's rouge-score 0.1.2, where every other letter parts tokens), and the
letters of all scripts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .token_hashes import OTHER_SEED, SEED, add_bytes, put_token
from .words import code_at

Array = np.ndarray[Any, Any]

_LOWER = np.zeros(256, np.uint8)
_LOWER[np.r_[48:58, 97:123]] = np.r_[48:58, 97:123]
_LOWER[65:91] = np.arange(97, 123)
_LOWER.flags.writeable = False
_EIGHT, _FULL = np.uint64(8), np.uint64(64)

APART, WORD, ALONE = 0, 1, 2
"""Kinds of characters: between tokens, part of one, a token by itself."""


@inner
def lower_at(data: Array, i: int, end: int) -> tuple[Any, Any]:
    """The ASCII letter or digit that the character at ``i`` is in lower case, 0 if none; its bytes.

    Beyond ASCII these are the Kelvin sign, which becomes k, and the dotted capital I, which becomes
    i and a mark that parts tokens; of the latter the first byte is told.
    """
    byte = data[i]
    if byte < 0x80:
        return _LOWER[byte], 1
    if byte == 0xE2 and i + 2 < end and data[i + 1] == 0x84 and data[i + 2] == 0xAA:
        return np.uint8(107), 3
    if byte == 0xC4 and i + 1 < end and data[i + 1] == 0xB0:
        return np.uint8(105), 1  # its second byte parts tokens
    return np.uint8(0), 1


@kernel
def _ascii_words(
    data: Array,
    start: Array,
    first: Array,
    second: Array,
    place: Array,
    stop: Array,
    line_end: Array,
    text_end: Array,
    lines: Array,
) -> int:
    """Tokens, the ends of non-empty lines and of texts; returns how many tokens."""
    n, line = 0, 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        before = n
        while i < end:
            byte = data[i]
            lower, width = _LOWER[byte], 1
            if lower == 0:
                if byte >= 0x80:
                    lower, width = lower_at(data, i, end)
                elif byte == 10 and n > before:
                    line_end[line] = n
                    line += 1
                    before = n
                if lower == 0:
                    i += 1
                    continue
            place[n] = i
            a, b = SEED, OTHER_SEED
            eight, shift, length = np.uint64(0), np.uint64(0), np.uint64(0)
            while lower > 0:
                if shift == _FULL:
                    a, b = add_bytes(a, b, eight)
                    eight, shift = np.uint64(0), np.uint64(0)
                eight |= np.uint64(lower) << shift
                shift += _EIGHT
                length += np.uint64(1)
                i += width
                if i >= end:
                    break
                lower = _LOWER[data[i]]
                width = 1
                if data[i] >= 0x80:
                    lower, width = lower_at(data, i, end)
            a, b = add_bytes(a, b, eight)
            first[n], second[n] = add_bytes(a, b, length)
            stop[n] = i
            n += 1
        if n > before:
            line_end[line] = n
            line += 1
        text_end[t + 1] = n
        lines[t + 1] = line
    return n


@kernel
def _letter_words(
    data: Array,
    start: Array,
    kinds: Array,
    first: Array,
    second: Array,
    place: Array,
    stop: Array,
    line_end: Array,
    text_end: Array,
    lines: Array,
) -> int:
    """The same for the kinds of all characters."""
    n, line = 0, 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        before = n
        while i < end:
            code, width = code_at(data, i)
            kind = kinds[code]
            begin = i
            i += width
            if kind == APART:
                if code == 10 and n > before:
                    line_end[line] = n
                    line += 1
                    before = n
                continue
            while kind == WORD and i < end:
                code, width = code_at(data, i)
                if kinds[code] != WORD:
                    break
                i += width
            put_token(data, begin, i, n, first, second)
            place[n] = begin
            stop[n] = i
            n += 1
        if n > before:
            line_end[line] = n
            line += 1
        text_end[t + 1] = n
        lines[t + 1] = line
    return n


def rouge_words(data: Array, start: Array, kinds: Array | None = None) -> tuple[Array, ...]:
    """Tokens of texts and of their lines.

    Args:
        data: uint8, UTF-8 of all texts; in lower case where ``kinds`` is given.
        start: int64 [t + 1], offsets of the texts.
        kinds: uint8 by code point, ``APART``, ``WORD`` or ``ALONE``; None for rouge-score's rule:
            lower case, runs of ``[a-z0-9]``.

    Returns:
        first and second hash of each token, uint64; the byte where each begins and one past its
        last, int64; offsets of
        the tokens of each text, int64 [t + 1]; offsets of the tokens of each line that has any,
        int64; offsets of these lines of each text, int64 [t + 1].
    """
    data, start = frozen(data, np.uint8), frozen(start, np.int64)
    used = int(start[-1] - start[0])
    # Tokens of one character without anything between them only come of kinds.
    room = (used // 2 + start.size if kinds is None else used) + 1
    first, second = np.empty(room, np.uint64), np.empty(room, np.uint64)
    place, stop = np.empty(room, np.int64), np.empty(room, np.int64)
    breaks = int(np.count_nonzero(data[start[0] : start[-1]] == 10))
    line_end = np.zeros(breaks + start.size + 1, np.int64)
    text_end, lines = np.zeros(start.size, np.int64), np.zeros(start.size, np.int64)
    out = first, second, place, stop, line_end[1:], text_end, lines
    if kinds is None:
        n = _ascii_words(data, start, *out)
    else:
        n = _letter_words(data, start, frozen(kinds, np.uint8), *out)
    found = first[:n], second[:n], place[:n], stop[:n]
    return *found, text_end, line_end[: lines[-1] + 1], lines
