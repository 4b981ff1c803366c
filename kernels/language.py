"""Sentences, syllables and stems of English text.

Everywhere, ``data`` is uint8, the UTF-8 bytes of all texts, and ``start`` int64 [n + 1] the offsets
of the texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .jit import I64, U8, U64, Array, inner, kernel
from .words import WORD, kind_at, lower_at, put_token, space_at

# Sentences of UTF-8 texts by fixed rules: no model, no download.

_SEED, _STEP = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@inner
def _is_letter(byte: int) -> bool:
    return 97 <= byte <= 122 or 65 <= byte <= 90 or byte >= 0x80


@inner
def _is_listed(data: Array, begin: int, end: int, table: Array) -> bool:
    """Check that the bytes in lower case (ASCII) are among the hashed, ascending words."""
    code = _SEED
    for i in range(begin, end):
        byte = data[i]
        code = (code ^ np.uint64(byte + 32 if 65 <= byte <= 90 else byte)) * _STEP
    at = np.searchsorted(table, code)
    return bool(at < table.size and table[at] == code)


@inner
def _closers(data: Array, i: int, end: int) -> int:
    """Position after the closing quotes and brackets at ``i``."""
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
    """Check for a full stop, exclamation or question mark of Chinese or Japanese at ``i``."""
    if i + 2 >= end:
        return False
    a, b, c = data[i], data[i + 1], data[i + 2]
    return (a == 0xE3 and b == 0x80 and c == 0x82) or (
        a == 0xEF and b == 0xBC and (c == 0x81 or c == 0x9F)
    )


@inner
def _final(
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
    """Check that the stops in [stop, after) end a sentence; ``follow`` is the next token."""
    if data[after - 1] != 46:
        return True  # a question or exclamation mark
    while begin < stop and not _is_letter(data[begin]) and not 48 <= data[begin] <= 57:
        begin += 1  # opening quotes and brackets
    next_end = follow
    while next_end < end and (_is_letter(data[next_end]) or data[next_end] == 39):
        next_end += 1
    lower = follow < end and 97 <= data[follow] <= 122
    starter = not lower and next_end > follow and _is_listed(data, follow, next_end, starters)
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
    if _is_listed(data, part, stop, titles):
        return False
    if (letters and stop - begin > 1) or _is_listed(data, part, stop, abbreviations):
        return starter
    return True


@kernel
def _split(
    data: U8, start: I64, abbreviations: U64, titles: U64, starters: U64, out: Array, bounds: Array
) -> Any:
    """Copy the sentences into ``out`` without the whitespace between them."""
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
                if not _final(data, token, stop, i, quoted, end, abbreviations, titles, starters):
                    continue
            for k in range(begin, close):
                out[size] = data[k]
                size += 1
            n += 1
            bounds[n] = size
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
            bounds[n] = size
        text_start[t + 1] = n
    return n, size, text_start


def hashed_words(words: tuple[str, ...]) -> Array:
    """Words in lower case, as :func:`split_sentences` looks them up: ascending uint64."""
    codes = []
    for text in words:
        code = int(_SEED)
        for byte in text.encode():
            code = (code ^ byte) * int(_STEP) % 2**64
        codes.append(code)
    return np.array(sorted(codes), np.uint64)


def split_sentences(
    data: Array, start: Array, abbreviations: Array, titles: Array, starters: Array
) -> tuple[Array, Array, Array]:
    """Split texts into sentences, without whitespace around them.

    A sentence ends at a run of ".", "!" or "?", with the closing quotes and brackets after it, if
    whitespace follows. A run that ends in "." does not end one

    - after a title;
    - after an abbreviation, single letter or letters with stops between ("U.S."), unless the next
      word often begins a sentence and is capitalised;
    - after a number or as an ellipsis, if the next word begins with a small letter.

    The full stops, question and exclamation marks of Chinese and Japanese always end one.

    Args:
        abbreviations: result of :func:`hashed_words`, without their last stop.
        titles: the same; words that a name always follows.
        starters: the same; words that often begin a sentence.

    Returns:
        uint8, bytes of the sentences; their offsets int64 [sentences + 1]; offsets of the sentences
        of each text, int64 [n + 1].
    """
    out = np.empty(data.size, np.uint8)
    bounds = np.zeros(data.size // 2 + start.size + 1, np.int64)
    n, size, text_start = _split(data, start, abbreviations, titles, starters, out, bounds)
    return out[:size], bounds[: n + 1], text_start


# Syllables by the sonority of letters (Selkirk, "On the major class features and syllable theory",
# 1984), with the levels and rules of NLTK's SyllableTokenizer. Letters beyond ASCII count as
# vowels; digits and the underscore end a syllable.

_UNDERSCORE = 95
_BREAK = -1
_LEVELS = ("bcdgtkpqxhj", "zvsf", "lmnrw", "aeiouy")


def _levels() -> Array:
    """Sonority 1 to 4 of the letters of ASCII, int8 [128]; -1 for other characters."""
    levels = np.full(128, _BREAK, np.int8)
    for level, letters in enumerate(_LEVELS, 1):
        for letter in letters + letters.upper():
            levels[ord(letter)] = level
    return levels


_LEVEL = _levels()


@inner
def _width(byte: int) -> int:
    """Bytes of a UTF-8 character, given its first byte."""
    if byte < 0x80:
        return 1
    return 2 if byte < 0xE0 else (3 if byte < 0xF0 else 4)


@inner
def _level(data: Array, i: int, level: Array) -> int:
    return level[data[i]] if data[i] < 0x80 else 4


@inner
def _vowel(data: Array, i: int, level: Array) -> bool:
    """Check for a small vowel, or any letter beyond ASCII."""
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
        now, then = _level(data, at, level), _level(data, after, level)
        broken = now == _BREAK or (before >= now == then) or (before > now < then)
        joined = before >= now == then and now != _BREAK
        if joined or not broken:
            length += 1
            vowel = vowel or _vowel(data, at, level)
            bare = False
        if broken:
            if length == 0 or (length == 1 and bare) or vowel:
                n += 1
            length, vowel, bare = 0, False, False
            if now == _BREAK:
                if data[at] == _UNDERSCORE:
                    n += 1
            elif not joined:
                length, vowel = 1, _vowel(data, at, level)
        before = now
        at = after
        after += _width(data[after])
    length += 1
    vowel = vowel or _vowel(data, at, level)
    if (length == 1 and data[at] == _UNDERSCORE) or vowel:
        n += 1
    return n


@kernel
def words_and_syllables(data: U8, start: I64, kinds: U8) -> tuple[Array, Array]:
    """Numbers of words and syllables of each text, int64 [n] each.

    Args:
        kinds: uint8 by code point, at least up to the highest one in ``data``; words are runs with
            the bit ``WORD``.
    """
    words, syllables = np.empty(start.size - 1, np.int64), np.empty(start.size - 1, np.int64)
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
                vowels += _vowel(data, i, _LEVEL)
                i += width
                kind, width = kind_at(kinds, data, i, end)
            n_words += 1
            n_syllables += 1 if vowels <= 1 else _of_word(data, begin, i, _LEVEL)
        words[t] = n_words
        syllables[t] = n_syllables
    return words, syllables


# Porter's stemmer ("An algorithm for suffix stripping", Program 14.3, 1980) with the extensions of
# NLTK's ``PorterStemmer()``, on ASCII tokens: a dozen irregular words, "ies" and "ied" of four
# letters, "y" after a consonant, "bli", "fulli", "logi", and "alli" before "bli". Digits are
# consonants.

Rules = tuple[Array, Array]


def _table(rules: Iterable[tuple[str, str]]) -> Rules:
    """Concatenated bytes of suffixes and replacements; offsets of both, [2 rules + 1]."""
    parts = [part.encode() for rule in rules for part in rule]
    offsets = np.cumsum([0, *map(len, parts)])
    return np.frombuffer(b"".join(parts), np.uint8), offsets


_IRREGULAR = _table(
    (
        ("sky", "sky"),
        ("skies", "sky"),
        ("dying", "die"),
        ("lying", "lie"),
        ("tying", "tie"),
        ("news", "news"),
        ("innings", "inning"),
        ("inning", "inning"),
        ("outings", "outing"),
        ("outing", "outing"),
        ("cannings", "canning"),
        ("canning", "canning"),
        ("howe", "howe"),
        ("proceed", "proceed"),
        ("exceed", "exceed"),
        ("succeed", "succeed"),
    )
)
_SECOND = _table(
    (
        ("ational", "ate"),
        ("tional", "tion"),
        ("enci", "ence"),
        ("anci", "ance"),
        ("izer", "ize"),
        ("bli", "ble"),
        ("alli", "al"),
        ("entli", "ent"),
        ("eli", "e"),
        ("ousli", "ous"),
        ("ization", "ize"),
        ("ation", "ate"),
        ("ator", "ate"),
        ("alism", "al"),
        ("iveness", "ive"),
        ("fulness", "ful"),
        ("ousness", "ous"),
        ("aliti", "al"),
        ("iviti", "ive"),
        ("biliti", "ble"),
        ("fulli", "ful"),
        ("logi", "log"),
    )
)
_LOGI = 21  # its "l" counts with the stem
_ALLI = 6
_THIRD = _table(
    (
        ("icate", "ic"),
        ("ative", ""),
        ("alize", "al"),
        ("iciti", "ic"),
        ("ical", "ic"),
        ("ful", ""),
        ("ness", ""),
    )
)
_FOURTH = _table(
    (suffix, "")
    for suffix in (
        "al",
        "ance",
        "ence",
        "er",
        "ic",
        "able",
        "ible",
        "ant",
        "ement",
        "ment",
        "ent",
        "ion",
        "ou",
        "ism",
        "ate",
        "iti",
        "ous",
        "ive",
        "ize",
    )
)
_ION = 11  # only behind s or t
_IRREGULAR_BYTES, _IRREGULAR_START = _IRREGULAR
_SECOND_BYTES, _SECOND_START = _SECOND
_THIRD_BYTES, _THIRD_START = _THIRD
_FOURTH_BYTES, _FOURTH_START = _FOURTH


@inner
def _porter_vowel(byte: int) -> bool:
    return byte == 97 or byte == 101 or byte == 105 or byte == 111 or byte == 117


@inner
def _consonant(w: Array, i: int) -> bool:
    """Check that letter ``i`` is a consonant; y is one at the start and after a vowel."""
    consonant = True
    k = i
    while k > 0 and w[k] == 121:
        k -= 1
        consonant = not consonant
    return consonant if not _porter_vowel(w[k]) else not consonant


@inner
def _measure(w: Array, n: int) -> int:
    """Count how often consonants follow vowels in the first ``n`` letters."""
    count, before = 0, True
    for i in range(n):
        now = not _porter_vowel(w[i])
        if w[i] == 121:
            now = i == 0 or not before
        if now and not before:
            count += 1
        before = now
    return count


@inner
def _has_vowel(w: Array, n: int) -> bool:
    before = True
    for i in range(n):
        now = not _porter_vowel(w[i])
        if w[i] == 121:
            now = i == 0 or not before
        if not now:
            return True
        before = now
    return False


@inner
def _short(w: Array, n: int) -> bool:
    """Check that ``n`` letters end consonant, vowel, consonant except w, x, y; or are vc."""
    if n >= 3:
        last = w[n - 1]
        return (
            _consonant(w, n - 3)
            and not _consonant(w, n - 2)
            and _consonant(w, n - 1)
            and last != 119
            and last != 120
            and last != 121
        )
    return n == 2 and not _consonant(w, 0) and _consonant(w, 1)


@inner
def _ends_with(w: Array, n: int, text: Array, begin: int, end: int) -> bool:
    """Check that the word ends with the bytes [begin, end) of ``text``."""
    size = end - begin
    if n < size:
        return False
    for k in range(size):  # noqa: SIM110  # kernels know no generators
        if w[n - size + k] != text[begin + k]:
            return False
    return True


@inner
def _rule_of(w: Array, n: int, text: Array, start: Array) -> int:
    """The first rule whose suffix the word has, or -1."""
    for rule in range((start.size - 1) // 2):
        if _ends_with(w, n, text, start[2 * rule], start[2 * rule + 1]):
            return rule
    return -1


@inner
def _replace(w: Array, n: int, text: Array, start: Array, rule: int) -> int:
    """Apply a rule; return the word's length."""
    n -= start[2 * rule + 1] - start[2 * rule]
    for k in range(start[2 * rule + 1], start[2 * rule + 2]):
        w[n] = text[k]
        n += 1
    return n


@inner
def _plural(w: Array, n: int) -> int:
    """Step 1a."""
    if w[n - 1] != 115:
        return n
    if n >= 3 and w[n - 2] == 101 and w[n - 3] == 105:  # ies
        return 3 if n == 4 else n - 2
    if n >= 4 and w[n - 2] == 101 and w[n - 3] == 115 and w[n - 4] == 115:  # sses
        return n - 2
    return n if n >= 2 and w[n - 2] == 115 else n - 1


@inner
def _past(w: Array, n: int) -> int:
    """Step 1b."""
    if n >= 3 and w[n - 1] == 100 and w[n - 2] == 101 and w[n - 3] == 105:  # ied
        return 3 if n == 4 else n - 2
    if n >= 3 and w[n - 1] == 100 and w[n - 2] == 101 and w[n - 3] == 101:  # eed
        return n - 1 if _measure(w, n - 3) > 0 else n
    if n >= 2 and w[n - 1] == 100 and w[n - 2] == 101:
        stem = n - 2
    elif n >= 3 and w[n - 1] == 103 and w[n - 2] == 110 and w[n - 3] == 105:
        stem = n - 3
    else:
        return n
    if not _has_vowel(w, stem):
        return n
    a, b = w[stem - 2] if stem >= 2 else np.uint8(0), w[stem - 1]
    if (a == 97 and b == 116) or (a == 98 and b == 108) or (a == 105 and b == 122):  # at, bl, iz
        w[stem] = 101
        return stem + 1
    if stem >= 2 and a == b and _consonant(w, stem - 1):
        return stem if b == 108 or b == 115 or b == 122 else stem - 1
    if _measure(w, stem) == 1 and _short(w, stem):
        w[stem] = 101
        return stem + 1
    return stem


@inner
def _stem(w: Array, n: int) -> int:
    """Stem the first ``n`` letters in place, at least 3; return the remaining number."""
    rule = _rule_of(w, n, _IRREGULAR_BYTES, _IRREGULAR_START)
    if rule >= 0 and _IRREGULAR_START[2 * rule + 1] - _IRREGULAR_START[2 * rule] == n:
        return _replace(w, n, _IRREGULAR_BYTES, _IRREGULAR_START, rule)
    n = _past(w, _plural(w, n))
    if w[n - 1] == 121 and n > 2 and _consonant(w, n - 2):
        w[n - 1] = 105
    rule = _rule_of(w, n, _SECOND_BYTES, _SECOND_START)
    while rule == _ALLI and _measure(w, n - 4) > 0:
        n = n - 2
        rule = _rule_of(w, n, _SECOND_BYTES, _SECOND_START)
    if rule >= 0:
        stem = n - (_SECOND_START[2 * rule + 1] - _SECOND_START[2 * rule])
        if _measure(w, stem + 1 if rule == _LOGI else stem) > 0:
            n = _replace(w, n, _SECOND_BYTES, _SECOND_START, rule)
    rule = _rule_of(w, n, _THIRD_BYTES, _THIRD_START)
    if rule >= 0 and _measure(w, n - (_THIRD_START[2 * rule + 1] - _THIRD_START[2 * rule])) > 0:
        n = _replace(w, n, _THIRD_BYTES, _THIRD_START, rule)
    rule = _rule_of(w, n, _FOURTH_BYTES, _FOURTH_START)
    if rule >= 0:
        stem = n - (_FOURTH_START[2 * rule + 1] - _FOURTH_START[2 * rule])
        if _measure(w, stem) > 1 and (rule != _ION or w[stem - 1] == 115 or w[stem - 1] == 116):
            n = stem
    if n > 0 and w[n - 1] == 101:
        measure = _measure(w, n - 1)
        if measure > 1 or (measure == 1 and not _short(w, n - 1)):
            n -= 1
    if n > 1 and w[n - 1] == 108 and w[n - 2] == 108 and _measure(w, n - 1) > 1:
        n -= 1
    return n


@kernel
def stem_hashes(data: U8, place: I64, stop: I64, shortest: int = 4) -> tuple[Array, Array]:
    """Hashes of the stems of tokens as :func:`.words.rouge_words` finds them.

    Args:
        place: int64 [n], the byte at which each token begins.
        stop: int64 [n], one past its last.
        shortest: fewest letters of a token that is stemmed, 3 or more; rouge-score skips those of
            3.

    Returns:
        first and second hash of each stem, uint64 [n].
    """
    first, second = np.empty(place.size, np.uint64), np.empty(place.size, np.uint64)
    w = np.empty(256, np.uint8)
    for t in range(place.size):
        n, i = 0, place[t]
        while i < stop[t]:
            # Up to the end of the data: a token that ends in the dotted capital I ends inside
            # that letter, and the second byte identifies it.
            byte, width = lower_at(data, i, data.size)
            if n + 2 > w.size:  # a step may write one letter more
                longer = np.empty(2 * w.size, np.uint8)
                for k in range(n):
                    longer[k] = w[k]
                w = longer
            w[n] = byte
            n += 1
            i += width
        if n >= shortest:
            n = _stem(w, n)
        put_token(w, 0, n, t, first, second)
    return first, second
