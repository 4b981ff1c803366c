"""Porter's stemmer with the extensions of NLTK's ``PorterStemmer()``, on tokens of ASCII.

Porter, "An algorithm for suffix stripping", Program 14.3 (1980). NLTK's additions: a dozen
irregular words, "ies" and "ied" of four letters, "y" after a consonant, "bli", "fulli", "logi", and
"alli" before "bli". Digits are consonants.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .rouge_words import lower_at
from .token_hashes import put_token

Array = np.ndarray[Any, Any]
Rules = tuple[Array, Array]


def _table(rules: Iterable[tuple[str, str]]) -> Rules:
    """Bytes of suffixes and replacements, one after the other; offsets of both, [2 rules + 1]."""
    parts = [part.encode() for rule in rules for part in rule]
    offsets = np.cumsum([0, *map(len, parts)])
    return np.frombuffer(b"".join(parts), np.uint8), offsets


_IRREGULAR = _table(
    (
        ("sky", "sky"), ("skies", "sky"), ("dying", "die"), ("lying", "lie"), ("tying", "tie"),
        ("news", "news"), ("innings", "inning"), ("inning", "inning"), ("outings", "outing"),
        ("outing", "outing"), ("cannings", "canning"), ("canning", "canning"), ("howe", "howe"),
        ("proceed", "proceed"), ("exceed", "exceed"), ("succeed", "succeed"),
    )
)  # fmt: skip
_SECOND = _table(
    (
        ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"),
        ("izer", "ize"), ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"),
        ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"),
        ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
        ("iviti", "ive"), ("biliti", "ble"), ("fulli", "ful"), ("logi", "log"),
    )
)  # fmt: skip
_LOGI = 21  # its "l" counts with the stem
_ALLI = 6
_THIRD = _table(
    (
        ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"),
        ("ful", ""), ("ness", ""),
    )
)  # fmt: skip
_FOURTH = _table(
    (suffix, "")
    for suffix in (
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion",
        "ou", "ism", "ate", "iti", "ous", "ive", "ize",
    )
)  # fmt: skip
_ION = 11  # only behind s or t
_IRREGULAR_BYTES, _IRREGULAR_START = _IRREGULAR
_SECOND_BYTES, _SECOND_START = _SECOND
_THIRD_BYTES, _THIRD_START = _THIRD
_FOURTH_BYTES, _FOURTH_START = _FOURTH


@inner
def _vowel(byte: int) -> bool:
    return byte == 97 or byte == 101 or byte == 105 or byte == 111 or byte == 117


@inner
def _consonant(w: Array, i: int) -> bool:
    """Whether letter ``i`` is a consonant; y is one at the start and behind a vowel."""
    found = True
    k = i
    while k > 0 and w[k] == 121:
        k -= 1
        found = not found
    return found if not _vowel(w[k]) else not found


@inner
def _measure(w: Array, n: int) -> int:
    """How often consonants follow vowels in the first ``n`` letters."""
    found, before = 0, True
    for i in range(n):
        now = not _vowel(w[i])
        if w[i] == 121:
            now = i == 0 or not before
        if now and not before:
            found += 1
        before = now
    return found


@inner
def _has_vowel(w: Array, n: int) -> bool:
    before = True
    for i in range(n):
        now = not _vowel(w[i])
        if w[i] == 121:
            now = i == 0 or not before
        if not now:
            return True
        before = now
    return False


@inner
def _short(w: Array, n: int) -> bool:
    """Whether the first ``n`` letters end consonant, vowel, consonant but w, x, y; or are v, c."""
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
def _ends(w: Array, n: int, text: Array, begin: int, end: int) -> bool:
    """Whether the word ends with the bytes [begin, end) of ``text``."""
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
        if _ends(w, n, text, start[2 * rule], start[2 * rule + 1]):
            return rule
    return -1


@inner
def _replace(w: Array, n: int, text: Array, start: Array, rule: int) -> int:
    """The word's length after a rule."""
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
    """Stem the first ``n`` letters in place, at least 3; returns how many are left."""
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
        found = _measure(w, n - 1)
        if found > 1 or (found == 1 and not _short(w, n - 1)):
            n -= 1
    if n > 1 and w[n - 1] == 108 and w[n - 2] == 108 and _measure(w, n - 1) > 1:
        n -= 1
    return n


@kernel
def _stem_all(
    data: Array, place: Array, stop: Array, shortest: int, first: Array, second: Array
) -> None:
    """Hashes of the stems of tokens."""
    w = np.empty(256, np.uint8)
    for t in range(place.size):
        n, i = 0, place[t]
        while i < stop[t]:
            # Up to the end of the data: a token that ends in the dotted capital I ends in the
            # middle of that letter, whose second byte tells what it is.
            byte, width = lower_at(data, i, data.size)
            if n + 2 > w.size:  # a step may write one letter more
                more = np.empty(2 * w.size, np.uint8)
                for k in range(n):
                    more[k] = w[k]
                w = more
            w[n] = byte
            n += 1
            i += width
        if n >= shortest:
            n = _stem(w, n)
        put_token(w, 0, n, t, first, second)


def stem_hashes(data: Array, place: Array, stop: Array, shortest: int = 4) -> tuple[Array, Array]:
    """Hashes of the stems of tokens as :func:`.rouge_words.rouge_words` finds them.

    Args:
        data: uint8, UTF-8.
        place: int64 [n], the byte where each token begins.
        stop: int64 [n], one past its last.
        shortest: letters from which a token is stemmed, 3 or more; rouge-score leaves those of 3
            alone.

    Returns:
        first and second hash of each stem, uint64 [n].
    """
    first, second = np.empty(place.size, np.uint64), np.empty(place.size, np.uint64)
    _stem_all(
        frozen(data, np.uint8),
        frozen(place, np.int64),
        frozen(stop, np.int64),
        shortest,
        first,
        second,
    )
    return first, second
