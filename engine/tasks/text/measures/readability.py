"""Readability of a text, from the length of its sentences and words."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....kernels.language import words_and_syllables
from ....schemas.arrays import Array
from ....tally.stats import Column
from ...encoding import Workers, packed, sentences_of
from ..pairs import Pairs
from ..settings import Settings
from ..tokenizers import codes_needed, regex_kinds

_FORMULAS = {
    "FleschReadingEase": (206.835, -1.015, -84.6),
    "FleschKincaidGrade": (-15.59, 0.39, 11.8),
}
"""Constant, weight of words per sentence, weight of syllables per word. Flesch, "A new readability
yardstick", 1948; Kincaid et al., "Derivation of new readability formulas for Navy enlisted
personnel", 1975.
"""


def _lengths(pairs: Pairs) -> tuple[Array, Array]:
    """Words of a mean sentence, syllables of a mean word; NaN without words."""

    def make() -> tuple[Array, Array]:
        data, start = packed(pairs.candidates)
        words, syllables = words_and_syllables(data, start, regex_kinds(codes_needed(data)))
        _, sentence_start = sentences_of(pairs.candidates)
        sentences = np.diff(sentence_start)
        some = (words > 0) & (sentences > 0)
        out = np.full((2, words.size), np.nan)
        np.divide(words, sentences, out=out[0], where=some)
        np.divide(syllables, words, out=out[1], where=some)
        return out[0], out[1]

    return pairs.once("readability", make)


def _readability(
    metric: str, pairs: Pairs, settings: Settings, workers: Workers
) -> tuple[Column, ...]:
    """Compute readability of the candidates; references are ignored."""
    constant, of_sentence, of_word = _FORMULAS[metric]
    sentence, word = _lengths(pairs)
    value = constant + of_sentence * sentence + of_word * word
    wordless = settings.rules.wordless
    if wordless is not None:
        value[np.isnan(value)] = wordless[list(_FORMULAS).index(metric)]
    return (
        Column(metric=metric, values=value[:, None, None], reason="there is no word in the text"),
    )


MEASURES = {
    "flesch_reading_ease": partial(_readability, "FleschReadingEase"),
    "flesch_kincaid_grade": partial(_readability, "FleschKincaidGrade"),
}
