"""Tokens of texts as translation metrics cut them: at whitespace, by character, by NLTK's rules.

Characters are told by a table of kinds by code point, so that no regular expression runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .token_hashes import put_token
from .words import code_at, space_at

Array = np.ndarray[Any, Any]

WORD, DECIMAL, SPACE = 1, 2, 4
"""Bits of a character's kind: part of a word, a decimal digit, whitespace."""
_DOLLAR, _STOP = 36, 46


@kernel
def _at_spaces(data: Array, start: Array, first: Array, second: Array, text_end: Array) -> int:
    n = 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        while i < end:
            byte = data[i]
            width = 0
            if byte <= 32 or byte >= 0x80:
                width = space_at(data, i, end)
            if width > 0:
                i += width
                continue
            begin = i
            while i < end and ((32 < data[i] < 0x80) or space_at(data, i, end) == 0):
                i += 1
            put_token(data, begin, i, n, first, second)
            n += 1
        text_end[t + 1] = n
    return n


@inner
def kind_at(kinds: Array, data: Array, i: int, end: int) -> tuple[Any, Any]:
    """Kind and bytes of the character at ``i``; none and no bytes at the end."""
    if i >= end:
        return np.uint8(0), 0
    code, width = code_at(data, i)
    return kinds[code], width


@kernel
def _by_rules(
    data: Array, start: Array, kinds: Array, first: Array, second: Array, text_end: Array
) -> int:
    n = 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        while i < end:
            begin = i
            kind, width = kind_at(kinds, data, i, end)
            if kind & WORD:
                while kind & WORD:
                    i += width
                    kind, width = kind_at(kinds, data, i, end)
            elif data[i] == _STOP or kind & SPACE:
                i += width
                continue
            elif data[i] == _DOLLAR and kind_at(kinds, data, i + 1, end)[0] & DECIMAL:
                kind = np.uint8(DECIMAL)
                while kind & DECIMAL:
                    i += width
                    kind, width = kind_at(kinds, data, i, end)
            else:
                while width > 0 and data[i] != _STOP and not kind & SPACE:
                    i += width
                    kind, width = kind_at(kinds, data, i, end)
            put_token(data, begin, i, n, first, second)
            n += 1
        text_end[t + 1] = n
    return n


def _room(data: Array, start: Array) -> tuple[Array, Array, Array]:
    """Space for tokens; pages that are never written cost no memory."""
    room = int(start[-1] - start[0]) + 1
    return np.empty(room, np.uint64), np.empty(room, np.uint64), np.zeros(start.size, np.int64)


def words_at_spaces(data: Array, start: Array) -> tuple[Array, Array, Array]:
    """Tokens between whitespace, as Python's ``str.split`` cuts them.

    Args:
        data: uint8, UTF-8 of all texts.
        start: int64 [t + 1], offsets of the texts.

    Returns:
        first and second hash of each token, uint64; offsets of the tokens of each text,
        int64 [t + 1].
    """
    first, second, text_end = _room(data, start)
    n = _at_spaces(frozen(data, np.uint8), frozen(start, np.int64), first, second, text_end)
    return first[:n], second[:n], text_end


def words_by_rules(data: Array, start: Array, kinds: Array) -> tuple[Array, Array, Array]:
    r"""Tokens of the regular expression ``\w+|\$[\d]+|[^\s\.]+``, which Valor gives NLTK.

    Full stops part tokens and are none; other punctuation takes along what follows it up to a
    space or stop.

    Args:
        data: uint8, UTF-8 of all texts.
        start: int64 [t + 1], offsets of the texts.
        kinds: uint8 by code point, bits ``WORD``, ``DECIMAL`` and ``SPACE``; as long as the
            highest one in ``data`` needs.

    Returns:
        as :func:`words_at_spaces`.
    """
    first, second, text_end = _room(data, start)
    n = _by_rules(
        frozen(data, np.uint8),
        frozen(start, np.int64),
        frozen(kinds, np.uint8),
        first,
        second,
        text_end,
    )
    return first[:n], second[:n], text_end
