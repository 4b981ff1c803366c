"""ROUGE-L recall between components."""

from __future__ import annotations

import numpy as np
import polars as pl

from ....kernels.hash_codes import hash_codes
from ....kernels.union_lcs import match_by_union_lcs
from ....kernels.walk_depth import walks_too_far
from ....kernels.words import words_between_stops, words_of_sentences
from ....schemas.arrays import Array
from ...packing import packed
from ...sentences import sentences_of
from ...workers import Workers
from .components import Components
from .wanted import Wanted

RECURSION = 989
"""Steps that fit below Python's default limit of 1,000 calls, after the calls that led there."""


def _words(texts: pl.Series, wanted: Wanted) -> tuple[tuple[Array, Array, Array], int]:
    """Sentences of each text, words of each sentence, codes of the words; how many codes."""
    if wanted.rules.reference_rouge:
        first, second, word_start, sentence_start = words_between_stops(*packed(texts))
    else:
        sentences, sentence_start = sentences_of(texts)
        first, second, every = words_of_sentences(*packed(sentences.str.to_lowercase()))
        filled = np.flatnonzero(np.diff(every))  # nothing but punctuation is no sentence
        word_start = np.concatenate((np.zeros(1, np.int64), every[filled + 1]))
        sentence_start = np.searchsorted(filled, sentence_start)
    codes, rows = hash_codes(first, second)
    return (sentence_start, word_start, codes), rows.size


def match_rouge(found: Components, wanted: Wanted, workers: Workers, out: Array) -> None:
    """Set ``out`` if ROUGE-L recall of the gold, given the retrieved text, passes.

    Recall is that of summary-level ROUGE-L over distinct words: a word of the gold is hit if it is
    in a longest common subsequence of one of its sentences and a sentence of the retrieved text
    (Lin,
    "ROUGE: A Package for Automatic Evaluation of Summaries", 2004, 3.2). Words are in lower case
    and
    without punctuation (see :func:`evalengine.kernels.words.words_of_sentences`); a text without
    any
    word never matches. Under ``reference_rouge`` sentences and words are those of the package rouge
    1.0.1, and texts that exceed its recursion limit do not match.
    """
    words, n_words = _words(found.texts, wanted)

    def match(first: int, last: int) -> None:
        match_by_union_lcs(
            first,
            last,
            (found.retrieved_start, found.retrieved),
            (found.gold_start, found.gold),
            words,
            n_words,
            wanted.threshold,
            wanted.rules.match_at_threshold,
            found.pair_start,
            out,
        )

    workers.over(found.pair_start, match)
    if wanted.rules.reference_rouge:
        _fail_deep(found, words, out)


def _fail_deep(found: Components, words: tuple[Array, Array, Array], out: Array) -> None:
    """Remove matches on which the reference exceeds Python's recursion limit.

    Its traceback is recursive, one call per step, and it treats the error as no match. Only
    sentences of
    hundreds of words are affected, so pairs are checked one by one.
    """
    start, offsets, _ = words
    longest = np.zeros(start.size, np.int64)
    np.maximum.at(longest, np.repeat(np.arange(start.size - 1), np.diff(start)), np.diff(offsets))
    if 2 * longest.max(initial=0) <= RECURSION:
        return
    pairs = np.flatnonzero(out)
    query = np.searchsorted(found.pair_start, pairs, side="right") - 1
    n_gold = np.diff(found.gold_start)[query]
    place = pairs - found.pair_start[query]
    text = found.retrieved[found.retrieved_start[query] + place // n_gold]
    gold = found.gold[found.gold_start[query] + place % n_gold]
    for i in np.flatnonzero(longest[text] + longest[gold] > RECURSION).tolist():
        if walks_too_far(int(gold[i]), int(text[i]), words, RECURSION):
            out[pairs[i]] = 0
