"""Words of UTF-8 texts as pairs of 64-bit hashes: two ways to cut a text into sentences of words.

A word is its hashes from here on; :func:`evalengine.kernels.hash_codes.hash_codes` makes dense
codes of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_SEED, _OTHER_SEED = np.uint64(0xCBF29CE484222325), np.uint64(0x9AE16A3B2F90404F)
_STEP, _OTHER_STEP = np.uint64(0x100000001B3), np.uint64(0xC6A4A7935BD1E995)
_MIX, _OTHER_MIX = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)

_APART, _WORD, _ALONE = 0, 1, 2
_ASCII = np.zeros(256, np.uint8)
_ASCII[np.r_[48:58, 65:91, 95, 97:123]] = _WORD
_ASCII.flags.writeable = False


@inner
def _put(data: Array, begin: int, end: int, n: int, first: Array, second: Array) -> None:
    """Write the two hashes of the bytes [begin, end) as word ``n``."""
    a, b = _SEED, _OTHER_SEED
    for i in range(begin, end):
        byte = np.uint64(data[i])
        a = (a ^ byte) * _STEP
        b = (b + byte + np.uint64(1)) * _OTHER_STEP
        b ^= b >> _SHIFT
    a = (a ^ (a >> _SHIFT)) * _MIX
    b = (b ^ (b >> _SHIFT)) * _OTHER_MIX
    first[n] = a ^ (a >> _SHIFT)
    second[n] = b ^ (b >> _SHIFT)


@inner
def space_at(data: Array, i: int, end: int) -> Any:
    """Bytes of the whitespace character at ``i``, 0 if there is none: those of Python's split."""
    byte = data[i]
    if byte < 0x80:
        return 1 if 9 <= byte <= 13 or 28 <= byte <= 32 else 0
    if byte == 0xC2 and i + 1 < end:
        return 2 if data[i + 1] == 0x85 or data[i + 1] == 0xA0 else 0
    if i + 2 < end:
        second, third = data[i + 1], data[i + 2]
        if byte == 0xE2:
            if second == 0x80 and (
                third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF
            ):
                return 3
            return 3 if second == 0x81 and third == 0x9F else 0
        if byte == 0xE1:
            return 3 if second == 0x9A and third == 0x80 else 0
        if byte == 0xE3:
            return 3 if second == 0x80 and third == 0x80 else 0
    return 0


@inner
def code_at(data: Array, i: int) -> tuple[Any, Any]:
    """The code point at ``i`` and its bytes, of valid UTF-8."""
    byte = np.int64(data[i])
    if byte < 0x80:
        return byte, 1
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | np.int64(data[i + 1]) & 0x3F, 2
    low = (np.int64(data[i + 1]) & 0x3F) << 6 | np.int64(data[i + 2]) & 0x3F
    if byte < 0xF0:
        return (byte & 0x0F) << 12 | low, 3
    return (byte & 0x07) << 18 | low << 6 | np.int64(data[i + 3]) & 0x3F, 4


@inner
def _kind(code: int) -> Any:
    """Whether a character separates words, is part of one, or is one by itself."""
    if code < 0x80:
        return np.int64(_ASCII[code])
    if code < 0xC0:
        return _WORD if code == 0xAA or code == 0xB5 or code == 0xBA else _APART
    if code == 0xD7 or code == 0xF7:
        return _APART
    if code < 0x1680:
        return _WORD
    if code == 0x1680 or 0x2000 <= code < 0x2C00 or 0x2E00 <= code < 0x2E80:
        return _APART
    if 0x3000 <= code < 0x3005 or 0x3008 <= code < 0x3021 or code == 0x3030:
        return _APART
    if code == 0x30FB or 0xFE10 <= code < 0xFE70 or code == 0xFEFF or 0xE000 <= code < 0xF900:
        return _APART
    if 0xFF00 <= code < 0xFF66:  # full-width forms of ASCII
        inside = 0xFF10 <= code < 0xFF1A or 0xFF21 <= code < 0xFF3B or 0xFF41 <= code < 0xFF5B
        return _WORD if inside else _APART
    if 0x1F000 <= code < 0x1FC00 or 0xFFF0 <= code < 0x10000:
        return _APART
    if 0x3040 <= code < 0x3100 or 0x3400 <= code < 0xA000 or 0xF900 <= code < 0xFB00:
        return _ALONE
    return _ALONE if 0x20000 <= code < 0x40000 else _WORD


@kernel
def _split_at_stops(data: Array, start: Array, first: Array, second: Array, ends: Array) -> Any:
    """Sentences between full stops, words between whitespace; one empty word for a blank."""
    sentence_start = np.zeros(start.size, np.int64)
    n, sentences = 0, 0
    for t in range(start.size - 1):
        end = start[t + 1]
        i = start[t]
        while i < end:
            if data[i] == 46:
                i += 1
                continue
            before = n
            while i < end and data[i] != 46:
                width = space_at(data, i, end)
                if width > 0:
                    i += width
                    continue
                begin = i
                while i < end and data[i] != 46:
                    if (data[i] <= 32 or data[i] >= 0x80) and space_at(data, i, end) > 0:
                        break
                    i += 1
                _put(data, begin, i, n, first, second)
                n += 1
            if n == before:
                _put(data, i, i, n, first, second)
                n += 1
            sentences += 1
            ends[sentences] = n
        sentence_start[t + 1] = sentences
    return n, sentences, sentence_start


@kernel
def _split_words(data: Array, start: Array, first: Array, second: Array, ends: Array) -> int:
    """Words of sentences that are given."""
    n = 0
    for s in range(start.size - 1):
        i, end = start[s], start[s + 1]
        while i < end:
            code, width = np.int64(data[i]), 1
            if code < 0x80:
                kind = np.int64(_ASCII[code])
            else:
                code, width = code_at(data, i)
                kind = _kind(code)
            begin = i
            i += width
            if kind == _APART:
                continue
            while kind == _WORD and i < end:
                if _ASCII[data[i]] == _WORD:
                    i += 1
                    continue
                digit = 48 <= data[i - 1] <= 57
                code, width = code_at(data, i)
                if _kind(code) == _WORD:
                    i += width
                    continue
                # an apostrophe inside a word; a stop or comma between digits
                if i + width >= end:
                    break
                after = _kind(code_at(data, i + width)[0])
                quote = code in (39, 0x2019) and after == _WORD
                point = code in (44, 46) and digit and 48 <= data[i + width] <= 57
                if not quote and not point:
                    break
                i += width
            _put(data, begin, i, n, first, second)
            n += 1
        ends[s + 1] = n
    return n


def _room(data: Array, start: Array) -> tuple[Array, Array, Array]:
    """Space for the words of texts, which never outnumber half their bytes by more than a text.

    Pages that are never written cost no memory.
    """
    room = data.size // 2 + start.size + 1
    return np.empty(room, np.uint64), np.empty(room, np.uint64), np.zeros(room, np.int64)


def words_between_stops(data: Array, start: Array) -> tuple[Array, Array, Array, Array]:
    """Words as the package rouge 1.0.1 cuts them: sentences at every ".", words at whitespace.

    Case and all other punctuation stay. Nothing between two stops is no sentence; nothing but
    whitespace is a sentence of one empty word.

    Args:
        data: uint8, the UTF-8 bytes of all texts.
        start: int64 [n + 1], offsets of the texts.

    Returns:
        first and second hash of every word, uint64; offsets of the words of each sentence,
        int64 [sentences + 1]; offsets of the sentences of each text, int64 [n + 1].
    """
    first, second, ends = _room(data, start)
    n, sentences, sentence_start = _split_at_stops(
        frozen(data, np.uint8), frozen(start, np.int64), first, second, ends
    )
    return first[:n], second[:n], ends[: sentences + 1], sentence_start


def words_of_sentences(data: Array, start: Array) -> tuple[Array, Array, Array]:
    """Words without punctuation: runs of letters, digits and ``_``.

    An apostrophe between letters and a stop or comma between digits belong to the word ("don't",
    "3.14"). Beyond ASCII everything counts as a letter but the punctuation, symbols and emoji of
    Unicode's blocks for these; Chinese characters and kana are words of one character each.

    Args:
        data: uint8, the UTF-8 bytes of all sentences, in lower case if case is to be ignored.
        start: int64 [n + 1], offsets of the sentences.

    Returns:
        first and second hash of every word, uint64; offsets of the words of each sentence,
        int64 [n + 1].
    """
    first, second, ends = _room(data, start)
    n = _split_words(frozen(data, np.uint8), frozen(start, np.int64), first, second, ends)
    return first[:n], second[:n], ends[: start.size]
