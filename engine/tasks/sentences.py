"""Sentences of texts in English."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..kernels.sentences import split_sentences
from .abbreviations import ABBREVIATIONS, STARTERS, TITLES
from .packing import packed, unpacked

Array = np.ndarray[Any, Any]


def sentences_of(texts: pl.Series) -> tuple[pl.Series, Array]:
    """Sentences of texts in English, and offsets of those of each text, int64 [n + 1].

    See :func:`evalengine.kernels.sentences.split_sentences` for the rules. NLTK's Punkt, which
    the reference uses, learned its abbreviations from newspapers; ours are a list.
    """
    data, start, text_start = split_sentences(*packed(texts), ABBREVIATIONS, TITLES, STARTERS)
    return unpacked(data, start), text_start
