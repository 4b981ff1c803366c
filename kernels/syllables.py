"""Words and syllables of texts, by the sonority of letters.

A syllable ends before a letter that sounds less than both beside it, and after one that sounds as
much as the next and no more than the one before; pieces without a vowel belong to their neighbours
(Selkirk, "On the major class features and syllable theory", 1984; the four levels and the order of
the rules are those of NLTK's SyllableTokenizer). A word with at most one small vowel is one
syllable. Letters beyond ASCII sound as vowels do; digits and the underscore end a syllable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .text_words import WORD, kind_at

Array = np.ndarray[Any, Any]

_UNDERSCORE = 95
_BREAK = -1
_LEVELS = ("bcdgtkpqxhj", "zvsf", "lmnrw", "aeiouy")


def _levels() -> Array:
    """Sonority 1 to 4 of the letters of ASCII, int8 [128]; -1 for what ends a syllable."""
    levels = np.full(128, _BREAK, np.int8)
    for level, letters in enumerate(_LEVELS, 1):
        for letter in letters + letters.upper():
            levels[ord(letter)] = level
    return levels


_LEVEL = _levels()


@inner
def _width(byte: int) -> int:
    """Bytes of a character of UTF-8, by its first."""
    if byte < 0x80:
        return 1
    return 2 if byte < 0xE0 else (3 if byte < 0xF0 else 4)


@inner
def _level(data: Array, i: int, level: Array) -> int:
    return level[data[i]] if data[i] < 0x80 else 4


@inner
def _vowel(data: Array, i: int, level: Array) -> bool:
    """A small vowel, or any letter beyond ASCII."""
    return data[i] >= 0x80 or (data[i] >= 97 and level[data[i]] == 4)


@inner
def _of_word(data: Array, begin: int, end: int, level: Array) -> int:
    """Syllables of one word of two characters or more."""
    n = 0
    length, vowel, bare = 1, _vowel(data, begin, level), data[begin] == _UNDERSCORE
    before = _level(data, begin, level)
    at = begin + _width(data[begin])
    after = at + _width(data[at])
    while after < end:
        here, there = _level(data, at, level), _level(data, after, level)
        broken = here == _BREAK or (before >= here == there) or (before > here < there)
        joined = before >= here == there and here != _BREAK
        if joined or not broken:
            length += 1
            vowel = vowel or _vowel(data, at, level)
            bare = False
        if broken:
            if length == 0 or (length == 1 and bare) or vowel:
                n += 1
            length, vowel, bare = 0, False, False
            if here == _BREAK:
                if data[at] == _UNDERSCORE:
                    n += 1
            elif not joined:
                length, vowel = 1, _vowel(data, at, level)
        before = here
        at = after
        after += _width(data[after])
    length += 1
    vowel = vowel or _vowel(data, at, level)
    if (length == 1 and data[at] == _UNDERSCORE) or vowel:
        n += 1
    return n


@kernel
def _count(
    data: Array, start: Array, kinds: Array, level: Array, words: Array, syllables: Array
) -> None:
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        n_words, n_syllables = 0, 0
        while i < end:
            kind, width = kind_at(kinds, data, i, end)
            if not kind & WORD:
                i += width
                continue
            begin, vowels = i, 0
            while kind & WORD:
                vowels += _vowel(data, i, level)
                i += width
                kind, width = kind_at(kinds, data, i, end)
            n_words += 1
            n_syllables += 1 if vowels <= 1 else _of_word(data, begin, i, level)
        words[t] = n_words
        syllables[t] = n_syllables


def words_and_syllables(data: Array, start: Array, kinds: Array) -> tuple[Array, Array]:
    """How many words and syllables each text has.

    Args:
        data: uint8, UTF-8 of all texts.
        start: int64 [t + 1], offsets of the texts.
        kinds: uint8 by code point; words are runs with the bit ``WORD``; as long as the highest
            one in ``data`` needs.

    Returns:
        words and syllables, int64 [t] each.
    """
    words, syllables = np.empty(start.size - 1, np.int64), np.empty(start.size - 1, np.int64)
    _count(
        frozen(data, np.uint8),
        frozen(start, np.int64),
        frozen(kinds, np.uint8),
        frozen(_LEVEL, np.int8),
        words,
        syllables,
    )
    return words, syllables
