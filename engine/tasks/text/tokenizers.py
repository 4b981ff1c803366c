"""Tokenizers of BLEU by name: from texts to hashes of tokens."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from ...kernels.code_points import code_points
from ...kernels.mteval_words import mteval_words
from ...kernels.text_words import words_at_spaces, words_by_rules
from ...schemas.arrays import Array
from ..packing import packed
from .characters import codes_needed, regex_kinds

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
    data, start = packed(texts)
    return words_by_rules(data, start, regex_kinds(codes_needed(data)))


def at_spaces(texts: pl.Series) -> Hashed:
    """Tokens between white space."""
    return words_at_spaces(*packed(texts))


def mteval(texts: pl.Series) -> Hashed:
    """sacrebleu's 13a."""
    column = pl.col(texts.name).str.strip_chars_end(SPACES)
    joined = _replaced(texts, column, (("<skipped>", ""), ("-\n", ""), ("\n", " ")))
    data, start = packed(joined)
    if bool((data == ord("&")).any()):
        data, start = packed(_replaced(joined, pl.col(texts.name), _ENTITIES))
    return mteval_words(data, start, padded=True)


def _replaced(texts: pl.Series, column: pl.Expr, pairs: tuple[tuple[str, str], ...]) -> pl.Series:
    """Texts with pieces replaced one after the other, in one query: each costs a millisecond."""
    for piece, instead in pairs:
        column = column.str.replace_all(piece, instead, literal=True)
    return texts.to_frame().select(column).to_series()


def chinese(texts: pl.Series) -> Hashed:
    """Tokenize as sacrebleu's zh: Chinese characters separately, the rest by the rules of 13a."""
    texts = texts.str.strip_chars(SPACES).str.replace_all(f"({_CHINESE})", " ${1} ")
    return mteval_words(*packed(texts), padded=False)


def international(texts: pl.Series) -> Hashed:
    """Tokenize as sacrebleu's intl: separate symbols, and punctuation not between digits."""
    texts = texts.str.strip_chars_end(SPACES)
    for pattern, instead in (
        (r"(\P{N})(\p{P})", "${1} ${2} "),
        (r"(\p{P})(\P{N})", " ${1} ${2}"),
        (r"(\p{S})", " ${1} "),
    ):
        texts = texts.str.replace_all(pattern, instead)
    return words_at_spaces(*packed(texts))


def characters(texts: pl.Series) -> Hashed:
    """Characters but white space."""
    return _hashed(*code_points(*packed(texts), spaces=False))


def every_character(texts: pl.Series) -> Hashed:
    """All characters."""
    return _hashed(*code_points(*packed(texts), spaces=True))


def _hashed(start: Array, codes: Array) -> Hashed:
    """Code points as their own hashes."""
    exact = codes.astype(np.uint64)
    return exact * np.uint64(0x9E3779B97F4A7C15), exact, start


TOKENIZERS: dict[str, Callable[[pl.Series], Hashed]] = {
    "words": by_rules,
    "none": at_spaces,
    "13a": mteval,
    "char": characters,
    "intl": international,
    "zh": chinese,
}
"""Name of a tokenizer -> function."""
