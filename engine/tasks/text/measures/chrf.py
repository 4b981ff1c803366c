"""chrF and chrF++: overlap of character n-grams, and of words."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from ....kernels.words import code_points, words_and_marks
from ....schemas.arrays import Array
from ....tally.stats import Column
from ...encoding import Workers, packed
from ..metrics.chrf_formula import chrf
from ..pairs import Pairs, Tokens, best_reference, localised, of_code_points
from ..settings import Settings
from .per_reference import ngrams_of_each, unusual

CHARACTERS, WORDS = 6, 2
"""n-gram orders of characters and, in chrF++, of words."""


def cased(texts: pl.Series, settings: Settings) -> pl.Series:
    """Return texts, in lower case if case is ignored."""
    return texts.str.to_lowercase() if settings.lowercase else texts


def named(settings: Settings) -> tuple[str | None, ...]:
    """Return the ``parameters`` if case is ignored."""
    return unusual(settings, {"lowercase": False})


def _counts(pairs: Pairs, tokens: Tokens, orders: int, workers: Workers) -> Array:
    """n-grams of the candidate, of the reference, and matches, int64 [m, orders, 3]."""
    match = ngrams_of_each(pairs, tokens, orders, workers)
    steps = np.arange(orders)
    ours = np.maximum(np.diff(tokens.candidates[0])[pairs.candidate, None] - steps, 0)
    theirs = np.maximum(np.diff(tokens.references[0])[:, None] - steps, 0)
    return np.stack((np.where(theirs > 0, ours, 0), theirs, match), axis=2)


def of_characters(
    pairs: Pairs,
    settings: Settings,
    workers: Workers,
    *,
    orders: int = CHARACTERS,
    spaces: bool = False,
) -> Array:
    """Count character n-grams up to an order, with or without white space.

    Returns:
        int64 [m, orders, 3]: of the candidate, of the reference, matches.
    """

    def make() -> Array:
        ours, theirs = (
            code_points(*packed(cased(texts, settings)), spaces=spaces)
            for texts in (pairs.candidates, pairs.references)
        )
        return _counts(pairs, of_code_points(ours, theirs), orders, workers)

    return pairs.once(("chrf characters", orders, spaces), make)


def of_words(pairs: Pairs, settings: Settings, workers: Workers, *, orders: int = WORDS) -> Array:
    """Counts of n-grams of words and marks up to an order, as :func:`of_characters`."""
    ours, theirs = (
        words_and_marks(*packed(cased(texts, settings)))
        for texts in (pairs.candidates, pairs.references)
    )
    return _counts(pairs, localised(pairs, ours, theirs, workers), orders, workers)


def _chrf(
    metric: str, words: bool, pairs: Pairs, settings: Settings, workers: Workers
) -> tuple[Column, ...]:
    """The value of the best reference of each candidate, and its counts."""
    counts = of_characters(pairs, settings, workers)
    if words:
        counts = np.concatenate((counts, of_words(pairs, settings, workers)), axis=1)
    value = chrf(counts, percent=settings.rules.percent)
    best = best_reference(value, pairs.start)
    flat = counts[best].reshape(best.size, counts.shape[1] * 3).astype(np.float64)
    return (
        Column(metric=metric, parameters=named(settings), values=value[best][:, None, None]),
        Column(
            metric=metric,
            parameters=named(settings),
            k=tuple(range(flat.shape[1])),
            values=flat[:, None, :],
        ),
    )


MEASURES = {"chrf": partial(_chrf, "chrF", False), "chrf++": partial(_chrf, "chrF++", True)}
SUMS = frozenset(MEASURES)
