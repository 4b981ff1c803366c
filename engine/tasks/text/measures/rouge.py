"""ROUGE: overlap of n-grams and of longest common subsequences, as in rouge-score 0.1.2.

ROUGE-L of the package rouge is in :mod:`.distinct_rouge`.
"""

from __future__ import annotations

from functools import partial

import msgspec
import numpy as np

from ....kernels.datums import hash_codes
from ....kernels.language import stem_hashes
from ....kernels.text import lcs_lengths, summary_hits
from ....kernels.words import rouge_words
from ....schemas.arrays import Array
from ....tally.stats import Column
from ...encoding import Workers, packed
from ..pairs import Pairs, Tokens, localised
from ..settings import Settings
from ..tokenizers import codes_needed, token_kinds
from .distinct_rouge import distinct_sequence
from .per_reference import best_columns, each_reference, ngrams_of_each, unusual

_ORDERS = (1, 2, 3)
_USUAL = {"use_stemmer": False, "rouge_tokenizer": "ascii"}
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


def _words(pairs: Pairs, settings: Settings, workers: Workers) -> Words:
    def make() -> Words:
        sides = []
        for texts in (pairs.candidates, pairs.references):
            if settings.rouge_tokenizer == "unicode":
                data, start = packed(texts.str.to_lowercase())
                found = rouge_words(data, start, token_kinds(codes_needed(data)))
            else:
                data, start = packed(texts)
                found = rouge_words(data, start)
            sides.append((data, found))
        hashed = [(found[0], found[1]) for _, found in sides]
        if settings.use_stemmer:
            hashed = _stemmed([data for data, _ in sides], [found[:4] for _, found in sides])
        (ours, theirs) = [found for _, found in sides]
        tokens = localised(pairs, (*hashed[0], ours[4]), (*hashed[1], theirs[4]), workers)
        return Words(tokens, (ours[6], ours[5]), (theirs[6], theirs[5]))

    return pairs.once(WORDS, make)


def _stemmed(data: list[Array], found: list[tuple[Array, ...]]) -> list[tuple[Array, Array]]:
    """Return hashes of the stems of all tokens; each distinct token is stemmed once.

    Args:
        data: bytes of each side.
        found: hashes and positions of its tokens.
    """
    out = []
    for bytes_, (first, second, place, stop) in zip(data, found, strict=True):
        codes, rows = hash_codes(first, second)
        stems = stem_hashes(bytes_, place[rows], stop[rows])
        out.append((stems[0][codes], stems[1][codes]))
    return out


def _matches(pairs: Pairs, words: Words, order: int, workers: Workers) -> Array:
    """Clipped n-grams of each reference, int64 [m], up to the highest order made once."""

    return pairs.once(
        ("rouge matches", order), lambda: ngrams_of_each(pairs, words.tokens, order, workers)
    )


def _lcs(pairs: Pairs, words: Words, workers: Workers) -> Array:
    """Length of the longest common subsequence of each reference, int64 [m]."""

    return pairs.once(
        "rouge lcs", lambda: each_reference(lcs_lengths, pairs, words.tokens, workers)
    )


def _columns(
    metric: str, pairs: Pairs, settings: Settings, match: Array, ours: Array, theirs: Array
) -> tuple[Column, ...]:
    """Return F, precision and recall of the best reference by F.

    Args:
        metric: its name.
        match: int64 [m], shared by each reference and its candidate.
        ours: int64 [n], total of the candidate.
        theirs: int64 [m], total of the reference.
    """
    precision = match / np.maximum(ours[pairs.candidate], 1)
    recall = match / np.maximum(theirs, 1)
    both = precision + recall
    f = np.zeros(match.size)
    np.divide(2 * precision * recall, both, out=f, where=both > 0)
    every = {None: f, "precision": precision, "recall": recall}
    return best_columns(metric, every, pairs, unusual(settings, _USUAL))


def grams(order: int, pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Clipped n-gram overlap of one order: F, precision and recall."""
    words = _words(pairs, settings, workers)
    match = _matches(pairs, words, max(order, 2), workers)[:, order - 1]
    sides = words.tokens.candidates, words.tokens.references
    ours, theirs = (np.maximum(np.diff(start) - order + 1, 0) for start, _ in sides)
    return _columns(f"ROUGE{order}", pairs, settings, match, ours, theirs)


def _whole(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Longest common subsequence of the whole texts."""
    words = _words(pairs, settings, workers)
    ours, theirs = (np.diff(s) for s, _ in (words.tokens.candidates, words.tokens.references))
    match = _lcs(pairs, words, workers)
    return _columns("ROUGEL", pairs, settings, match, ours, theirs)


_SEQUENCES = {"rouge-score": _whole, "rouge": distinct_sequence}
"""Whose ROUGE-L -> the measure."""


def _sequence(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """ROUGE-L as the dialect has it."""
    return _SEQUENCES[settings.rules.sequence](pairs, settings, workers)


def _summary(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Union of longest common subsequences, line by line."""
    words = _words(pairs, settings, workers)
    tokens = words.tokens
    ours, theirs = (np.diff(start) for start, _ in (tokens.candidates, tokens.references))
    match = _lcs(pairs, words, workers)
    lines = words.candidate_lines, words.reference_lines
    if any(bool((np.diff(first) > 1).any()) for first, _ in lines):
        match = match.copy()

        def run(first: int, last: int) -> None:
            summary_hits(
                first,
                last,
                pairs.candidate,
                (*lines[0], tokens.candidates[1]),
                (*lines[1], tokens.references[1]),
                tokens.n_codes,
                match,
            )

        workers.over(tokens.references[0], run)
    return _columns("ROUGELsum", pairs, settings, match, ours, theirs)


MEASURES = {
    **{f"rouge{order}": partial(grams, order) for order in _ORDERS},
    "rougel": _sequence,
    "rougelsum": _summary,
}
ROUGE_WORDS = tuple(MEASURES)
