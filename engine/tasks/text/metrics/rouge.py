"""ROUGE, as in rouge-score 0.1.2, and ROUGE-L of the package rouge."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ....geometry.columns import text_bytes
from ....kernels.datums import hash_codes
from ....kernels.language import stem_hashes
from ....kernels.text import lcs_lengths, summary_hits, union_hits
from ....kernels.words import rouge_words, words_between_stops
from ....schemas.arrays import Array
from ....schemas.options import DECLARED
from ..pairs import Measure, Texts, Tokens, Values, metric
from ..tokenizers import codes_needed, token_kinds

# ROUGE-L of the package rouge 1.0.1, over different words, as continuous-eval calls it.

_PUNCTUATION = r"^[!-/:-@\[-`{-~]*$"
_SMALL = 1e-8
"""Added by the package to the sum of precision and recall."""


def sequence_scores(texts: Texts) -> tuple[Array, Array, Array]:
    """Return F, precision and recall of each reference, float64 [m]; NaN if it has no sentence.

    Sentences end at every full stop, words at white space; a word counts once, and is hit if it is
    in a longest common subsequence of any two sentences (Lin, "ROUGE: A Package for Automatic
    Evaluation of Summaries", 2004, 3.2). A candidate with only ASCII punctuation scores 0; a
    reference with only full stops gives NaN.
    """
    pairs = texts.pairs
    ours, theirs = texts.sides(lambda some: words_between_stops(*text_bytes(some)))
    tokens = texts.coded(*((side[0], side[1], side[2][side[3]]) for side in (ours, theirs)))
    coded = zip((ours, theirs), (tokens.candidates[1], tokens.references[1]), strict=True)
    lines = ((side[3], side[2], codes) for side, codes in coded)
    counts = texts.each(union_hits, tokens, *lines, shape=(3,)).T
    hits, our_words, their_words = counts
    bare = pairs.candidates.str.contains(_PUNCTUATION).to_numpy()[pairs.candidate]
    precision, recall = hits / np.maximum(our_words, 1), hits / np.maximum(their_words, 1)
    f = 2 * (precision * recall / (precision + recall + _SMALL))
    for value in (f, precision, recall):
        value[their_words == 0] = np.nan
        value[bare] = 0.0
    return f, precision, recall


def _distinct_sequence(texts: Texts) -> list[Values]:
    """F, precision and recall, each of the reference that makes it highest, NaN ones aside."""
    start, why = texts.pairs.start[:-1], "there is no sentence in the reference"
    return [
        Values(np.fmax.reduceat(value, start) if value.size else value, statistic, why)
        for statistic, value in zip(
            (None, "precision", "recall"), sequence_scores(texts), strict=True
        )
    ]


# ROUGE of rouge-score.

WORDS = "rouge words"
"""Cache key of :class:`Words` in pairs; an entry there is used as tokenized."""


class Words(msgspec.Struct, frozen=True):
    """Tokens of ROUGE and their lines.

    Attributes:
        tokens: of all texts.
        candidate_lines: offsets of the lines of each candidate that have tokens, int64 [n + 1];
            offsets of the tokens of each line.
        reference_lines: same for the references.
    """

    tokens: Tokens
    candidate_lines: tuple[Array, Array]
    reference_lines: tuple[Array, Array]


def _words(texts: Texts) -> Words:
    settings = texts.settings

    def cut(some: pl.Series) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
        """Hashes and offsets of the tokens, of stems if asked for, and their lines."""
        if settings.rouge_tokenizer == "unicode":
            data, start = text_bytes(some.str.to_lowercase())
            words = rouge_words(data, start, token_kinds(codes_needed(data)))
        else:
            data, start = text_bytes(some)
            words = rouge_words(data, start)
        first, second, place, stop, stops = words[:5]
        if settings.use_stemmer:  # each distinct token is stemmed once
            codes, rows = hash_codes(first, second)
            first, second = (one[codes] for one in stem_hashes(data, place[rows], stop[rows]))
        return (first, second, stops), (words[6], words[5])

    def make() -> Words:
        (ours, our_lines), (theirs, their_lines) = texts.sides(cut)
        return Words(texts.coded(ours, theirs), our_lines, their_lines)

    return texts.pairs.once(WORDS, make)


def _lcs(texts: Texts, words: Words) -> Array:
    """Length of the longest common subsequence of each reference, int64 [m]."""
    return texts.pairs.once("rouge lcs", lambda: texts.each(lcs_lengths, words.tokens))


def _scores(texts: Texts, match: Array, ours: Array, theirs: Array) -> list[Values]:
    """Return F, precision and recall of the best reference by F.

    Args:
        match: int64 [m], shared by each reference and its candidate.
        ours: int64 [n], total of the candidate.
        theirs: int64 [m], total of the reference.
    """
    precision = match / np.maximum(ours[texts.pairs.candidate], 1)
    recall = match / np.maximum(theirs, 1)
    total = precision + recall
    f = np.zeros(match.size)
    np.divide(2 * precision * recall, total, out=f, where=total > 0)
    return texts.best({None: f, "precision": precision, "recall": recall})


def _grams(order: int, texts: Texts) -> list[Values]:
    """Clipped n-gram overlap of one order; matches up to the highest order are made once."""
    tokens, most = _words(texts).tokens, max(order, 2)
    match = texts.pairs.once(("rouge matches", most), lambda: texts.ngrams(tokens, most))
    return _scores(
        texts, match[:, order - 1], *(np.maximum(one - order + 1, 0) for one in tokens.lengths)
    )


def _sequence(texts: Texts) -> list[Values]:
    """Longest common subsequence of the whole texts, or as the package rouge has it."""
    if texts.settings.rules.sequence == "rouge":
        return _distinct_sequence(texts)
    words = _words(texts)
    return _scores(texts, _lcs(texts, words), *words.tokens.lengths)


def _summary(texts: Texts) -> list[Values]:
    """Union of longest common subsequences, line by line."""
    words = _words(texts)
    tokens, match = words.tokens, _lcs(texts, words)
    lines = words.candidate_lines, words.reference_lines
    if any(bool((np.diff(first) > 1).any()) for first, _ in lines):
        sides = (*lines[0], tokens.candidates[1]), (*lines[1], tokens.references[1])
        match = texts.each(summary_hits, tokens, *sides, out=match.copy())
    return _scores(texts, match, *tokens.lengths)


PARAMS = ("use_stemmer", "rouge_tokenizer")
_SOURCE = "rouge-score 0.1.2; Lin 2004"
_F = r"\frac{2 P R}{P + R}, \quad P = \frac{M}{|c|}, \quad R = \frac{M}{|r|}"


def rouge(order: int) -> Measure:
    """ROUGE of n-grams of any order."""
    return Measure(f"ROUGE{order}", partial(_grams, order), PARAMS)


_metric = partial(metric, formula=_F, params=PARAMS)

METRICS = (
    *(
        _metric(
            f"ROUGE{order}",
            f"rouge{order}",
            partial(_grams, order),
            f"F of {order}-grams that candidate and reference share, each as often as in both;"
            " precision and recall as statistics; mean over datums",
            source=_SOURCE,
            aliases=(f"rouge{order}", f"rouge-{order}", f"ROUGE-{order}"),
        )
        for order in (1, 2, 3)
    ),
    _metric(
        "ROUGEL",
        "rougel",
        _sequence,
        "F of the longest common subsequence of tokens; precision and recall as statistics; in the"
        " dialect continuous-eval of the different words in longest common subsequences of any two"
        " sentences, F, precision and recall each of its best reference; mean over datums",
        source=f"{_SOURCE}; in continuous-eval rouge 1.0.1",
        aliases=("rougeL", "rouge-l", "rouge-L", "ROUGE-L"),
    ),
    _metric(
        "ROUGELsum",
        "rougelsum",
        _summary,
        "F of the tokens of the reference in a longest common subsequence of one of its lines and"
        " a line of the candidate; precision and recall as statistics; mean over datums",
        source=_SOURCE,
        aliases=("rougeLsum", "rouge-lsum", "ROUGE-Lsum"),
    ),
)

_TYPES = {one.aliases[0]: one.name for one in METRICS}
"""Type of ROUGE as rouge-score names it -> the metric."""


def _chosen(options: Any) -> tuple[str, ...]:
    """The types that the option ``rouge_types`` names."""
    types = options.rouge_types or DECLARED["rouge_types"].default
    # Unknown types are refused when options are resolved to settings.
    return tuple(_TYPES.get(name, name) for name in types)


GROUPS = {"ROUGE": _chosen}
"""Group name -> function that returns its metrics for given options."""
