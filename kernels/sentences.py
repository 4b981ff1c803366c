"""Sentences of UTF-8 texts by fixed rules: no model, no download."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .words import space_at

Array = np.ndarray[Any, Any]

_SEED, _STEP = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@inner
def _is_letter(byte: int) -> bool:
    return 97 <= byte <= 122 or 65 <= byte <= 90 or byte >= 0x80


@inner
def _known(data: Array, begin: int, end: int, table: Array) -> bool:
    """Whether the bytes in lower case (ASCII) are among the hashed, ascending words."""
    code = _SEED
    for i in range(begin, end):
        byte = data[i]
        code = (code ^ np.uint64(byte + 32 if 65 <= byte <= 90 else byte)) * _STEP
    at = np.searchsorted(table, code)
    return bool(at < table.size and table[at] == code)


@inner
def _closers(data: Array, i: int, end: int) -> int:
    """The place after closing quotes and brackets that stand at ``i``."""
    while i < end:
        byte = data[i]
        if byte == 34 or byte == 39 or byte == 41 or byte == 93 or byte == 125:
            i += 1
        elif (
            byte == 0xE2
            and i + 2 < end
            and data[i + 1] == 0x80
            and (data[i + 2] == 0x99 or data[i + 2] == 0x9D)
        ):
            i += 3
        elif byte == 0xC2 and i + 1 < end and data[i + 1] == 0xBB:
            i += 2
        else:
            break
    return i


@inner
def _wide_stop(data: Array, i: int, end: int) -> bool:
    """Whether a full stop, exclamation or question mark of Chinese or Japanese stands at ``i``."""
    if i + 2 >= end:
        return False
    a, b, c = data[i], data[i + 1], data[i + 2]
    return (a == 0xE3 and b == 0x80 and c == 0x82) or (
        a == 0xEF and b == 0xBC and (c == 0x81 or c == 0x9F)
    )


@inner
def _ends(
    data: Array,
    begin: int,
    stop: int,
    after: int,
    follow: int,
    end: int,
    abbreviations: Array,
    titles: Array,
    starters: Array,
) -> bool:
    """Whether the stops in [stop, after) end a sentence; ``follow`` is the next token's place."""
    if data[after - 1] != 46:
        return True  # a question or exclamation mark
    while begin < stop and not _is_letter(data[begin]) and not 48 <= data[begin] <= 57:
        begin += 1  # opening quotes and brackets
    next_end = follow
    while next_end < end and (_is_letter(data[next_end]) or data[next_end] == 39):
        next_end += 1
    lower = follow < end and 97 <= data[follow] <= 122
    starter = not lower and next_end > follow and _known(data, follow, next_end, starters)
    if after - stop > 1:
        return not lower  # an ellipsis
    digits, letters, single = begin < stop, begin < stop, begin < stop
    part = begin
    for i in range(begin, stop):
        byte = data[i]
        digits &= 48 <= byte <= 57 or byte == 46 or byte == 44
        letters &= (_is_letter(byte) and byte < 0x80) if (i - begin) & 1 == 0 else byte == 46
        if byte == 45:
            part = i + 1
    single = stop - begin == 1 and _is_letter(data[begin])
    if digits:
        return not lower
    if single:
        return starter  # an initial
    if _known(data, part, stop, titles):
        return False
    if (letters and stop - begin > 1) or _known(data, part, stop, abbreviations):
        return starter
    return True


@kernel
def _split(
    data: Array,
    start: Array,
    abbreviations: Array,
    titles: Array,
    starters: Array,
    out: Array,
    ends: Array,
) -> Any:
    """Copy the sentences into ``out`` without what lies between them."""
    text_start = np.zeros(start.size, np.int64)
    n, size = 0, 0
    for t in range(start.size - 1):
        end = start[t + 1]
        i = start[t]
        width = 1
        while i < end and width > 0:
            width = space_at(data, i, end)
            i += width
        begin, token = i, i
        while i < end:
            byte = data[i]
            if byte < 0x80:  # most bytes: calls would cost more than the rest
                if 9 <= byte <= 13 or 28 <= byte <= 32:
                    token = i + 1
                if byte != 46 and byte != 33 and byte != 63:
                    i += 1
                    continue
                wide = False
            else:
                width = space_at(data, i, end)
                if width > 0:
                    i += width
                    token = i
                    continue
                wide = _wide_stop(data, i, end)
                if not wide:
                    i += 1
                    continue
            stop = i
            if wide:
                while _wide_stop(data, i, end):
                    i += 3
            else:
                while i < end and (data[i] == 46 or data[i] == 33 or data[i] == 63):
                    i += 1
            close = _closers(data, i, end)
            follow, width = close, 1
            while follow < end and width > 0:
                width = space_at(data, follow, end)
                follow += width
            if follow == end:
                break
            if not wide:
                if follow == close:
                    continue  # within a token: 3.14, example.org
                quoted = follow  # the next token without opening quotes and brackets
                while quoted < end and (
                    data[quoted] == 34
                    or data[quoted] == 39
                    or data[quoted] == 40
                    or data[quoted] == 91
                ):
                    quoted += 1
                if not _ends(data, token, stop, i, quoted, end, abbreviations, titles, starters):
                    continue
            for k in range(begin, close):
                out[size] = data[k]
                size += 1
            n += 1
            ends[n] = size
            begin, token, i = follow, follow, follow
        last = begin  # the rest, without whitespace at its end
        i = begin
        while i < end:
            width = 0 if 32 < data[i] < 0x80 else space_at(data, i, end)
            if width == 0:
                i += 1
                last = i
            else:
                i += width
        if last > begin:
            for k in range(begin, last):
                out[size] = data[k]
                size += 1
            n += 1
            ends[n] = size
        text_start[t + 1] = n
    return n, size, text_start


def hashed_words(words: tuple[str, ...]) -> Array:
    """Words in lower case, as :func:`split_sentences` looks them up: ascending uint64."""
    found = []
    for text in words:
        code = int(_SEED)
        for byte in text.encode():
            code = (code ^ byte) * int(_STEP) % 2**64
        found.append(code)
    return np.array(sorted(found), np.uint64)


def split_sentences(
    data: Array, start: Array, abbreviations: Array, titles: Array, starters: Array
) -> tuple[Array, Array, Array]:
    """Sentences of texts, one after the other, without whitespace around them.

    A sentence ends at a run of ".", "!" or "?", with the quotes and brackets that close behind
    it, where whitespace follows. A run that ends in "." does not end one

    - after a title;
    - after an abbreviation, single letter or letters with stops between ("U.S."), unless the next
      word is one that often begins a sentence and has a capital;
    - after a number or as an ellipsis, where the next word begins with a small letter.

    The full stops, question and exclamation marks of Chinese and Japanese always end one.

    Args:
        data: uint8, the UTF-8 bytes of all texts.
        start: int64 [n + 1], offsets of the texts.
        abbreviations: of :func:`hashed_words`, without their last stop.
        titles: the same; words that a name always follows.
        starters: words that often begin a sentence.

    Returns:
        uint8, bytes of the sentences; their offsets int64 [sentences + 1]; offsets of the
        sentences of each text, int64 [n + 1].
    """
    out = np.empty(data.size, np.uint8)
    ends = np.zeros(data.size // 2 + start.size + 1, np.int64)
    tables = [frozen(table, np.uint64) for table in (abbreviations, titles, starters)]
    n, size, text_start = _split(
        frozen(data, np.uint8), frozen(start, np.int64), *tables, out, ends
    )
    return out[:size], ends[: n + 1], text_start
