"""Similarity of strings by edits, computed by rapidfuzz on many pairs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Levenshtein

from ...workers import Workers
from .components import Components
from .wanted import Wanted

Array = np.ndarray[Any, Any]

_PAIRS = 1 << 16  # handed over at once, so that lists of pairs stay small
_SLACK = 1e-4  # rapidfuzz loses scores up to 1e-8 above its cut-off, which here only saves time


def _match(
    found: Components,
    wanted: Wanted,
    workers: Workers,
    out: Array,
    scorer: Callable[..., float],
    scale: float,
    empty: bool,
) -> None:
    """Set ``out`` where the similarity, ``scale`` for equal texts, passes.

    Args:
        found: what is compared.
        wanted: threshold and rules.
        workers: where the work runs.
        out: uint8 [pairs], filled.
        scorer: similarity of two strings, one of rapidfuzz.
        scale: what equal strings score.
        empty: whether empty texts are compared at all; otherwise they match nothing.
    """
    texts = found.texts.to_list()
    filled = np.array([empty or text != "" for text in texts], bool)
    cutoff = max(wanted.threshold - _SLACK, 0.0) * scale

    def match(first: int, last: int) -> None:
        begin = int(found.pair_start[first])
        retrieved, gold = found.pairs(first, last)
        asked = np.flatnonzero(filled[retrieved] & filled[gold])
        for at in range(0, asked.size, _PAIRS):
            some = asked[at : at + _PAIRS]
            scores = process.cpdist(
                [texts[i] for i in retrieved[some].tolist()],
                [texts[i] for i in gold[some].tolist()],
                scorer=scorer,
                score_cutoff=cutoff,
                dtype=np.float64,
            )
            out[begin + some] = wanted.passes(scores / scale)

    workers.over(found.pair_start, match)


def match_fuzzily(found: Components, wanted: Wanted, workers: Workers, out: Array) -> None:
    """Set ``out`` where rapidfuzz's partial ratio, divided by 100, passes.

    That is the best normalised indel similarity of the shorter text with a stretch of the longer
    one, so a chunk cut from a gold scores 1, and a gold within a chunk too. An empty text matches
    nothing.
    """
    _match(found, wanted, workers, out, fuzz.partial_ratio, 100.0, False)


def match_by_levenshtein(found: Components, wanted: Wanted, workers: Workers, out: Array) -> None:
    """Set ``out`` where 1 - distance / length of the longer text passes.

    The distance of Levenshtein counts insertions, deletions and replacements of characters (the
    similarity of ragas' NonLLMStringSimilarity). Two empty texts are alike.
    """
    _match(found, wanted, workers, out, Levenshtein.normalized_similarity, 1.0, True)
