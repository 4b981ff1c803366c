"""Tokenizers of BLEU by name: from texts to hashes of tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from ...kernels.text_words import words_at_spaces, words_by_rules
from ..packing import packed
from .characters import codes_needed, regex_kinds

Array = np.ndarray[Any, Any]

Hashed = tuple[Array, Array, Array]
"""First and second hash of each token, uint64; offsets of the tokens of each text, int64."""


def by_rules(texts: pl.Series) -> Hashed:
    r"""The tokens of Valor's regular expression, ``\w+|\$[\d]+|[^\s\.]+``."""
    data, start = packed(texts)
    return words_by_rules(data, start, regex_kinds(codes_needed(data)))


def at_spaces(texts: pl.Series) -> Hashed:
    """Tokens between white space."""
    return words_at_spaces(*packed(texts))


TOKENIZERS: dict[str, Callable[[pl.Series], Hashed]] = {
    "words": by_rules,
    "none": at_spaces,
}
"""Name of a tokenizer -> what cuts texts."""
