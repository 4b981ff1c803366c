"""Preprocessing of texts for TER: case, punctuation and Chinese characters, by sacrebleu's options.

As sacrebleu 2.6 after Tercom, which puts a space on both sides of a text. Its rules for a
possessive
at the very end and for texts with only kana therefore never apply and are omitted.
"""

from __future__ import annotations

import polars as pl

from .settings import Settings
from .tokenizers import BETWEEN, SPACES

_WESTERN = (
    ("\n-", ""),
    ("\n", " "),
    ("&quot;", '"'),
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    (r"([{-~\[-`\x20-&(-+:-@/])", " ${1} "),
    ("'s ", " 's "),
    (r"([^0-9])([.,])", "${1} ${2} "),
    (r"([.,])([^0-9])", " ${1} ${2}"),
    (r"([0-9])(-)", "${1} ${2} "),
)
_MARKS = r"[\u{3001}\u{3002}\u{3008}-\u{3011}\u{3014}-\u{301F}\u{FF61}-\u{FF65}\u{30FB}]"
_WIDE_MARKS = r"[\u{FF0E}\u{FF0C}\u{FF1F}\u{FF1A}\u{FF1B}\u{FF01}\u{FF02}\u{FF08}\u{FF09}]"
_EASTERN = (
    r"[\u{4E00}-\u{9FFF}\u{3400}-\u{4DBF}]",
    r"[\u{31C0}-\u{31EF}\u{2E80}-\u{2EFF}]",
    r"[\u{3300}-\u{33FF}\u{F900}-\u{FAFF}\u{FE30}-\u{FE4F}]",
    r"[\u{3200}-\u{3F22}]",
    _MARKS,
    _WIDE_MARKS,
)
"""Characters that become words, one range after the other."""
_PUNCTUATION = r'[.,?:;!"()]'


def prepared(texts: pl.Series, settings: Settings) -> pl.Series:
    """Return texts whose words are separated by white space.

    Args:
        texts: String.
    """
    if not settings.ter_case_sensitive:
        texts = texts.str.to_lowercase()
    if settings.ter_normalized:
        texts = " " + texts.str.strip_chars_end(SPACES) + " "
        for pattern, instead in _WESTERN:
            texts = texts.str.replace_all(pattern, instead)
        if settings.ter_asian_support:
            for kind in _EASTERN:
                texts = texts.str.replace_all(f"({kind})", " ${1} ")
    if settings.ter_no_punct:
        texts = texts.str.replace_all(_PUNCTUATION, "")
        if settings.ter_asian_support:
            texts = texts.str.replace_all(_MARKS, "").str.replace_all(_WIDE_MARKS, "")
    return texts


def prepared_references(texts: pl.Series, settings: Settings) -> pl.Series:
    """Return references whose words are separated by white space.

    sacrebleu preprocesses references twice. This matters if the first pass creates input for the
    second: "&amp;quot;", or a full stop between punctuation and a digit ("...5").

    Args:
        texts: String.
    """
    texts = prepared(texts, settings)
    if not settings.ter_normalized:
        return texts
    return prepared(texts.str.replace_all(BETWEEN, " ").str.strip_chars(" "), settings)
