"""BLEU: clipped n-grams of all references together, by sentence and summed."""

from __future__ import annotations

import numpy as np

from ....kernels.text import ngram_matches
from ....schemas.arrays import Array
from ....tally.stats import Column
from ...encoding import Workers
from ..metrics.bleu_formula import bleu, orders_of
from ..pairs import Pairs, best_reference, localised
from ..settings import Settings
from ..tokenizers import TOKENIZERS, every_character
from .chrf import cased
from .per_reference import unusual

_USUAL = {
    "tokenizer": "words",
    "smoothing": "none",
    "bleu_weights": (0.25,) * 4,
    "lowercase": False,
}


def _closest(length: Array, theirs: Array, pairs: Pairs) -> Array:
    """Return each candidate's closest reference length, the shorter on ties."""
    if theirs.size == length.size:
        return theirs
    away = np.abs(theirs - length[pairs.candidate])
    key = away * (int(theirs.max(initial=0)) + 1) + theirs
    chosen: Array = np.minimum.reduceat(key, pairs.start[:-1]) % (int(theirs.max(initial=0)) + 1)
    return chosen


def sentence_counts(pairs: Pairs, settings: Settings, workers: Workers) -> Array:
    """Return length, closest reference length, matches and totals of each candidate.

    Returns:
        int64 [n, 2 + 2 orders].
    """

    def make() -> Array:
        cut = every_character if settings.rules.characters else TOKENIZERS[settings.tokenizer]
        sides = [cased(texts, settings) for texts in (pairs.candidates, pairs.references)]
        tokens = localised(pairs, cut(sides[0]), cut(sides[1]), workers)
        orders = orders_of(settings.bleu_weights, settings.smoothing)
        match = np.empty((len(pairs), orders), np.int64)
        units = np.arange(len(pairs)), pairs.start

        def run(first: int, last: int) -> None:
            ngram_matches(
                first, last, units, tokens.candidates, tokens.references, tokens.n_codes, match
            )

        workers.over(tokens.candidates[0], run)
        length, theirs = np.diff(tokens.candidates[0]), np.diff(tokens.references[0])
        total = np.maximum(length[:, None] - np.arange(orders), 0)
        closest = _closest(length, theirs, pairs)
        return np.column_stack((length, closest, match, total))

    return pairs.once("bleu counts", make)


def _sentence(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """BLEU of each candidate by itself."""
    if settings.rules.characters:
        every = pairs.candidates.gather(pairs.candidate)
        apart = Pairs(every, pairs.references, np.arange(len(every) + 1), {})
        value = bleu(sentence_counts(apart, settings, workers), settings, sentence=True)
        value = value[best_reference(value, pairs.start)]
    else:
        value = bleu(sentence_counts(pairs, settings, workers), settings, sentence=True)
    return (
        Column(
            metric="BLEU",
            parameters=unusual(settings, _USUAL),
            values=value[:, None, None],
            reason="smoothing method6 needs trigrams that match",
        ),
    )


def _corpus(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Counts that CorpusBLEU sums."""
    counts = sentence_counts(pairs, settings, workers).astype(np.float64)
    if settings.rules.bleu == "nltk" and settings.rules.floor == 0:
        half = 2 + (counts.shape[1] - 2) // 2
        counts[:, half:] = np.maximum(counts[:, half:], 1)  # nltk's own denominators
    return (
        Column(
            metric="CorpusBLEU",
            parameters=unusual(settings, _USUAL),
            k=tuple(range(counts.shape[1])),
            values=counts[:, None, :],
        ),
    )


MEASURES = {"bleu": _sentence, "bleu_counts": _corpus}
SUMS = frozenset({"bleu_counts"})
