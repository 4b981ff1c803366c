"""Similarity of strings by edits, computed by rapidfuzz on many pairs at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Levenshtein

from ....kernels.approximate_search import characters_of, least_distances
from ....schemas.arrays import Array
from ...packing import packed
from ...workers import Workers
from .components import Components
from .wanted import Wanted

_PAIRS = 1 << 16  # handed over at once, so that lists of pairs stay small
_SLACK = 1e-4  # rapidfuzz loses scores up to 1e-8 above its cut-off, which here only saves time


def _scores(
    texts: list[str], pairs: tuple[Array, Array], scorer: Callable[..., float], cutoff: float
) -> Array:
    """Return similarities of pairs, float64 [p]; 0 below the cut-off."""
    left, right = ([texts[i] for i in side.tolist()] for side in pairs)
    found: Array = process.cpdist(
        left, right, scorer=scorer, score_cutoff=max(cutoff, 0.0), dtype=np.float64
    )
    return found


def match_fuzzily(found: Components, wanted: Wanted, workers: Workers, out: Array) -> None:
    """Set ``out`` if rapidfuzz's partial ratio, divided by 100, passes.

    That is the best normalised indel similarity of the shorter text with a substring of the longer
    one, so that a chunk cut from a gold scores 1, and a gold within a chunk too. An empty text
    never
    matches.

    The ratio of a text of m characters is at most 1 - d / 2m, d being its least distance to a
    substring of the other, since the substring is no longer than m and indel distance is at least
    Levenshtein's. Only pairs whose bound passes are computed by rapidfuzz.
    """
    texts = found.texts.to_list()
    characters = characters_of(*packed(found.texts))
    lengths = np.diff(characters[1])
    lowest = wanted.threshold - _SLACK

    def match(first: int, last: int) -> None:
        begin = int(found.pair_start[first])
        retrieved, gold = found.pairs(first, last)
        shorter = np.minimum(lengths[retrieved], lengths[gold])
        for at in range(0, retrieved.size, _PAIRS):
            some = at + np.flatnonzero(shorter[at : at + _PAIRS])
            sides = retrieved[some], gold[some]
            distance = least_distances(characters, *sides)
            ratio = 1 - distance / (2 * shorter[some])
            asked = np.flatnonzero((distance > 0) & (ratio >= lowest))
            ratio[asked] = _scores(
                texts, (sides[0][asked], sides[1][asked]), fuzz.partial_ratio, 100 * lowest
            )
            ratio[asked] /= 100
            out[begin + some] = wanted.passes(ratio)

    workers.over(found.pair_start, match)


def match_by_levenshtein(found: Components, wanted: Wanted, workers: Workers, out: Array) -> None:
    """Set ``out`` if 1 - Levenshtein distance / length of the longer text passes.

    The distance counts insertions, deletions and replacements of characters (the similarity of
    ragas'
    NonLLMStringSimilarity). Two empty texts are equal.
    """
    texts = found.texts.to_list()

    def match(first: int, last: int) -> None:
        part = out[found.pair_start[first] : found.pair_start[last]]
        retrieved, gold = found.pairs(first, last)
        for at in range(0, part.size, _PAIRS):
            sides = retrieved[at : at + _PAIRS], gold[at : at + _PAIRS]
            scores = _scores(
                texts, sides, Levenshtein.normalized_similarity, wanted.threshold - _SLACK
            )
            part[at : at + _PAIRS] = wanted.passes(scores)

    workers.over(found.pair_start, match)
