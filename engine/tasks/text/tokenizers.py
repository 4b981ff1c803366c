"""Tokenizers, kinds of characters and content words."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache

import numpy as np
import polars as pl

from ...geometry.columns import text_bytes
from ...kernels.words import (
    DECIMAL,
    SINGLE,
    SPACE,
    TOKEN,
    WORD,
    code_points,
    mteval_words,
    words_at_spaces,
    words_by_rules,
)
from ...schemas.arrays import Array

# Kinds of characters by code point, as Python's Unicode tables have them.

_ASCII, _EVERY = 128, 0x110000
_OTHER_WORDS = (
    (0x200C, 0x200E),  # joiners
    (0x24B6, 0x24EA),  # circled letters
    (0x1F130, 0x1F14A),  # squared letters
    (0x1F150, 0x1F16A),
    (0x1F170, 0x1F18A),
)
"""Ranges of word characters that are neither letters, marks nor numbers by their category."""
_SINGLE = (
    (0x3040, 0x3100),  # kana
    (0x31F0, 0x3200),
    (0x3400, 0xA000),  # Chinese characters
    (0xF900, 0xFB00),
    (0x20000, 0x32000),
)
"""Ranges of scripts without spaces between words, whose letters are tokens one by one."""


def codes_needed(data: Array) -> int:
    """Return the length of a code table for a text's bytes: most are ASCII."""
    return _ASCII if data.size == 0 or int(data.max()) < 0x80 else _EVERY


@cache
def regex_kinds(size: int) -> Array:
    r"""Classify code points: ``WORD`` as ``\w``, ``DECIMAL`` as ``\d``, ``SPACE`` as ``\s``.

    These are the classes of the engine ``regex``, used by NLTK 3.10: marks, letter numbers, circled
    letters and joiners belong to words, superscripts and fractions do not; the four separators of
    ASCII (0x1C to 0x1F) are not white space.

    Returns:
        uint8 [size].
    """
    kinds = np.zeros(size, np.uint8)
    for code in range(size):
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Nd":
            kinds[code] = WORD | DECIMAL
        elif category[0] in "LM" or category in ("Nl", "Pc"):
            kinds[code] = WORD
        elif character.isspace() and not 0x1C <= code <= 0x1F:
            kinds[code] = SPACE
    for begin, end in _OTHER_WORDS:
        kinds[begin:end] = WORD
    return kinds


@cache
def token_kinds(size: int) -> Array:
    """Classify code points for the Unicode tokenizer of ROUGE.

    Letters, digits and combining marks form tokens; Chinese characters and kana are single tokens;
    everything else is a separator.

    Returns:
        uint8 [size].
    """
    kinds = np.zeros(size, np.uint8)
    for code in range(size):
        character = chr(code)
        if character.isalnum() or unicodedata.category(character)[0] == "M":
            kinds[code] = TOKEN
    for begin, end in _SINGLE:
        some = kinds[begin:end]
        some[some == TOKEN] = SINGLE
    return kinds


# Tokenizers of BLEU by name: from texts to hashes of tokens.

Hashed = tuple[Array, Array, Array]
"""First and second hash of each token, uint64; offsets of the tokens of each text, int64."""

SPACES = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""Characters removed by Python's ``str.strip``."""
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_CHINESE = (
    r"[\u{3400}-\u{4DB5}\u{4E00}-\u{9FBB}\u{F900}-\u{FA2D}\u{FA30}-\u{FA6A}\u{FA70}-\u{FAD9}"
    r"\u{2001}-\u{2A6D}\u{2F81}-\u{2FA1}\u{FF00}-\u{FFEF}\u{2E80}-\u{2EFF}\u{3000}-\u{303F}"
    r"\u{31C0}-\u{31EF}\u{2F00}-\u{2FDF}\u{2FF0}-\u{2FFF}\u{3100}-\u{312F}\u{31A0}-\u{31BF}"
    r"\u{FE10}-\u{FE1F}\u{FE30}-\u{FE4F}\u{2600}-\u{26FF}\u{2700}-\u{27BF}\u{3200}-\u{33FF}]"
)
"""Chinese characters for sacrebleu's tokenizer zh: its two ranges beyond U+FFFF are compared as
strings of two characters, and so mean U+2001 to U+2A6D and U+2F81 to U+2FA1.
"""


def by_rules(texts: pl.Series) -> Hashed:
    r"""The tokens of Valor's regular expression, ``\w+|\$[\d]+|[^\s\.]+``."""
    data, start = text_bytes(texts)
    return words_by_rules(data, start, regex_kinds(codes_needed(data)))


def mteval(texts: pl.Series) -> Hashed:
    """sacrebleu's 13a."""
    data, start = text_bytes(texts)
    last = data[start[1:][start[1:] > start[:-1]] - 1]
    # Most texts end in a visible ASCII character and have a single line.
    if ((last <= ord(" ")) | (last > ord("~"))).any() or any((data == ord(c)).any() for c in "\n<"):
        column = pl.col(texts.name).str.strip_chars_end(SPACES)
        texts = _replaced(texts, column, (("<skipped>", ""), ("-\n", ""), ("\n", " ")))
        data, start = text_bytes(texts)
    if bool((data == ord("&")).any()):
        data, start = text_bytes(_replaced(texts, pl.col(texts.name), _ENTITIES))
    return mteval_words(data, start, padded=True)


def _replaced(texts: pl.Series, column: pl.Expr, pairs: tuple[tuple[str, str], ...]) -> pl.Series:
    """Texts with pieces replaced one after the other, in one query: each costs a millisecond."""
    for piece, instead in pairs:
        column = column.str.replace_all(piece, instead, literal=True)
    return texts.to_frame().select(column).to_series()


def chinese(texts: pl.Series) -> Hashed:
    """Tokenize as sacrebleu's zh: Chinese characters separately, the rest by the rules of 13a."""
    texts = texts.str.strip_chars(SPACES).str.replace_all(f"({_CHINESE})", " ${1} ")
    return mteval_words(*text_bytes(texts), padded=False)


def international(texts: pl.Series) -> Hashed:
    """Tokenize as sacrebleu's intl: separate symbols, and punctuation not between digits."""
    texts = texts.str.strip_chars_end(SPACES)
    for pattern, instead in (
        (r"(\P{N})(\p{P})", "${1} ${2} "),
        (r"(\p{P})(\P{N})", " ${1} ${2}"),
        (r"(\p{S})", " ${1} "),
    ):
        texts = texts.str.replace_all(pattern, instead)
    return words_at_spaces(*text_bytes(texts))


def characters(texts: pl.Series) -> Hashed:
    """Characters but white space."""
    return _hashed(*code_points(*text_bytes(texts), spaces=False))


def every_character(texts: pl.Series) -> Hashed:
    """All characters."""
    return _hashed(*code_points(*text_bytes(texts), spaces=True))


def _hashed(start: Array, codes: Array) -> Hashed:
    """Code points as their own hashes."""
    exact = codes.astype(np.uint64)
    return exact * np.uint64(0x9E3779B97F4A7C15), exact, start


TOKENIZERS: dict[str, Callable[[pl.Series], Hashed]] = {
    "words": by_rules,
    "none": lambda texts: words_at_spaces(*text_bytes(texts)),
    "13a": mteval,
    "char": characters,
    "intl": international,
    "zh": chinese,
}
"""Name of a tokenizer -> function."""


# Content words of English texts: words without punctuation and function words.

PUNCTUATION = r"[!-/:-@\[-`{-~]"
BETWEEN = f"[{SPACES}]+"
_EDGE = r"[^\p{L}\p{N}]"
_FUNCTION_WORDS = (
    # determiners
    "a an the this that these those all any both each every few more most much many no other some"
    " such same own another either neither several"
    # pronouns
    " i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his"
    " himself she her hers herself it its itself they them their theirs themselves what which who"
    " whom whose"
    # verbs that help others
    " am is are was were be been being have has had having do does did doing can could will would"
    " shall should may might must"
    # prepositions
    " about above across after against along among around at before behind below beneath beside"
    " between beyond by down during for from in inside into near of off on onto out outside over"
    " since through throughout to toward towards under until up upon with within without"
    # conjunctions
    " and but or nor if because as while although though unless whether than so"
    # adverbs that point or grade
    " again further then once here there when where why how just only very too also now not"
)
FUNCTION_WORDS = tuple(_FUNCTION_WORDS.split())
"""English function words, by word class."""
_TWO_IN_ONE = (
    f"({_EDGE})(?:(can)(not)|(g[iı]m)(me)|(gon)(na)|(got)(ta)|(lem)(me))({_EDGE})",
    "${1} ${2}${4}${6}${8}${10} ${3}${5}${7}${9}${11} ${12}",
)
_BEFORE_SPACE = (f"({_EDGE})(wan)(na) ", "${1} ${2} ${3}  ")
_NUMBER = r" \p{Nd}+(?:e\p{Nd}+)? "


def _value(number: str) -> str:
    """The same spelling for the same number in double precision; no word has a ``#``."""
    decimal = all(letter.isdecimal() or letter == "e" for letter in number)
    return f"#{float(number)!r}" if decimal else number


def spaced_words(texts: pl.Series, words: tuple[str, ...]) -> pl.Series:
    """Return lowercase texts without ASCII punctuation and some words, double-spaced.

    Args:
        texts: String, without nulls.
        words: words to remove, lower case, without white space.
    """
    bare = texts.str.to_lowercase().str.replace_all(PUNCTUATION, "")
    separated = pl.concat_str(pl.lit(" "), bare.str.replace_all(BETWEEN, "  "), pl.lit(" "))
    spaced = pl.select(separated).to_series()
    if not words:
        return spaced
    return spaced.str.replace_many([f" {word} " for word in words], [""] * len(words))


def content_words(texts: pl.Series, words: tuple[str, ...] = FUNCTION_WORDS) -> pl.Series:
    """Return the content words of texts, separated by white space.

    Texts are lowercased; ASCII punctuation is removed ("$1,234.50" is 123450), then stop words;
    words such as "cannot" and "gonna" become two, as in the Penn treebank (R. MacIntyre's rules);
    numbers of the same value ("007", "7", "1e3") become the same word.

    Args:
        texts: String, without nulls.
        words: stop words, lower case, without white space.
    """
    cleaned = spaced_words(texts, words)
    for pattern, instead in (_TWO_IN_ONE, _TWO_IN_ONE, _BEFORE_SPACE):
        cleaned = cleaned.str.replace_all(pattern, instead)
    numbers = cleaned.str.extract_all(_NUMBER).explode(empty_as_null=False).unique().to_list()
    if numbers:
        cleaned = cleaned.str.replace_many(numbers, [f" {_value(one.strip())} " for one in numbers])
    return cleaned
