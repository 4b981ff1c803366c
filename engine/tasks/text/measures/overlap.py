"""Exact match and overlap of tokens, after SQuAD's normalisation or of content words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from ....kernels.text import shared_words
from ....kernels.words import words_at_spaces
from ....schemas.arrays import Array
from ....tally.cells import parameters
from ....tally.stats import Column
from ...encoding import Workers, packed
from ..pairs import Pairs, localised
from ..settings import Settings
from ..tokenizers import BETWEEN, FUNCTION_WORDS, MARKS, SPACES, content_words, spaced_words
from .per_reference import best_columns, each_reference, ngrams_of_each

_ARTICLES = r"(^|[^\p{L}\p{N}_])(?:a|an|the)($|[^\p{L}\p{N}_])"
r"""Articles between word boundaries of Python's ``\b``."""


def squad(texts: pl.Series) -> pl.Series:
    """Return texts in lower case, without ASCII punctuation and articles, one space between words.

    Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", 2016.
    """
    bare = texts.str.to_lowercase().str.replace_all(MARKS, "")
    for _ in range(2):  # of two articles in a row the first takes what is between them
        bare = bare.str.replace_all(_ARTICLES, "${1} ${2}")
    return bare.str.replace_all(BETWEEN, " ").str.strip_chars(" ")


def stripped(texts: pl.Series) -> pl.Series:
    """Lower case, without white space around."""
    return texts.str.strip_chars(SPACES).str.to_lowercase()


_NORMALISED: dict[str, Callable[[pl.Series], pl.Series]] = {"squad": squad, "strip": stripped}


def _exact(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Compute 1 if a reference is equal after normalisation."""
    normalise = _NORMALISED[settings.rules.normalise]
    ours, theirs = normalise(pairs.candidates), normalise(pairs.references)
    same = (ours.gather(pairs.candidate) == theirs).to_numpy().astype(np.float64)
    return best_columns("ExactMatch", {None: same}, pairs)


def _shared(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Array, Array, Array]:
    """Tokens that both have, that the candidate has, that the reference has, int64 [m] each."""

    def make() -> tuple[Array, Array, Array]:
        words = settings.stop_words
        ours, theirs = (
            words_at_spaces(*packed(squad(texts) if words is None else spaced_words(texts, words)))
            for texts in (pairs.candidates, pairs.references)
        )
        tokens = localised(pairs, ours, theirs, workers)
        match = ngrams_of_each(pairs, tokens, 1, workers)
        return match[:, 0], np.diff(ours[2])[pairs.candidate], np.diff(theirs[2])

    return pairs.once("squad overlap", make)


def _ratio(part: Array, whole: Array) -> Array:
    return part / np.maximum(whole, 1)


_PARTS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "TokenPrecision": lambda both, ours, theirs: _ratio(both, ours),
    "TokenRecall": lambda both, ours, theirs: _ratio(both, theirs),
    "TokenF1": lambda both, ours, theirs: _ratio(2 * both, ours + theirs),
}


def _squad_overlap(metric: str, pairs: Pairs, settings: Settings, workers: Workers) -> Array:
    """Compute the overlap of each reference, float64 [m]; two texts without tokens are equal."""
    both, ours, theirs = _shared(pairs, settings, workers)
    return np.where(ours + theirs == 0, 1.0, _PARTS[metric](both, ours, theirs))


def shared_content(
    pairs: Pairs, settings: Settings, workers: Workers
) -> tuple[Array, Array, Array]:
    """Different words that both have; all words of the candidate, of the reference, int64 [m]."""

    def make() -> tuple[Array, Array, Array]:
        words = FUNCTION_WORDS if settings.stop_words is None else settings.stop_words
        ours, theirs = (
            words_at_spaces(*packed(content_words(texts, words)))
            for texts in (pairs.candidates, pairs.references)
        )
        tokens = localised(pairs, ours, theirs, workers)
        both = each_reference(shared_words, pairs, tokens, workers)
        return both, np.diff(ours[2])[pairs.candidate], np.diff(theirs[2])

    return pairs.once("content overlap", make)


def _harmonic(precision: Array, recall: Array) -> Array:
    both, out = precision + recall, np.zeros(precision.size)
    np.divide(precision * recall, both, out=out, where=both > 0)
    return 2 * out


_CONTENT_PARTS: dict[str, Callable[[Array, Array], Array]] = {
    "TokenPrecision": lambda precision, recall: precision,
    "TokenRecall": lambda precision, recall: recall,
    "TokenF1": _harmonic,
}


def _content_overlap(metric: str, pairs: Pairs, settings: Settings, workers: Workers) -> Array:
    """Compute the overlap of each reference, float64 [m]; 0 without content words."""
    both, ours, theirs = shared_content(pairs, settings, workers)
    return _CONTENT_PARTS[metric](_ratio(both, ours), _ratio(both, theirs))


_OVERLAPS = {"squad": _squad_overlap, "content": _content_overlap}
"""Kind of overlap -> function that computes it for each reference."""


def _overlap(metric: str, pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Return the overlap with the best reference."""
    value = _OVERLAPS[settings.rules.overlap](metric, pairs, settings, workers)
    return best_columns(metric, {None: value}, pairs, told(settings))


def told(settings: Settings) -> tuple[str | None, ...]:
    """Return the number of given stop words as ``parameters``."""
    words = settings.stop_words
    return (None if words is None else parameters(stop_words=len(words)),)


MEASURES = {
    "exact_match": _exact,
    "token_precision": partial(_overlap, "TokenPrecision"),
    "token_recall": partial(_overlap, "TokenRecall"),
    "token_f1": partial(_overlap, "TokenF1"),
}
