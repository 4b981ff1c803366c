"""Matching of texts: which retrieved texts, or sentences of them, match which golds."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import polars as pl

from ....schemas.arrays import Array
from ...encoding import Workers
from ..dialects import MATCHES, SENTENCES, RetrievalRules
from .rules import (
    Components,
    Wanted,
    find_components,
    match_by_levenshtein,
    match_chunks,
    match_exactly,
    match_fuzzily,
    match_rouge,
    token_counts,
)

__all__ = ["RULES", "Matched", "match_texts", "token_counts"]

Rule = Callable[[Components, Wanted, Workers, Array], None]
"""Sets the matching ones of uint8 [pairs], which is 0 before."""

RULES: dict[str, Rule] = {
    "chunk_from_original": match_chunks,
    "exact_chunk": match_exactly,
    "exact_sentence": match_exactly,
    "rouge_chunk": match_rouge,
    "rouge_sentence": match_rouge,
    "fuzzy": match_fuzzily,
    "levenshtein": match_by_levenshtein,
}
"""Matching rule -> function."""


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """Matching components, for all pairs of every query.

    A component is a text, or a sentence under a rule that compares sentences.

    Attributes:
        retrieved_start: int64 [q + 1], offsets of the retrieved components of each query; by
            rank, sentences in the order of their text.
        gold_start: int64 [q + 1], offsets of the distinct golds of each query, in the order of
            first occurrence.
        pair_start: int64 [q + 1], offsets into ``match``.
        match: uint8, 1 if a pair matches; per query [retrieved, golds], row by row.
        gold: int64, row of each distinct gold among those given (the first of equal ones); None
            if components are sentences.
        gold_repeats: int64 [q], number of repeated golds, which are dropped.
    """

    retrieved_start: Array
    gold_start: Array
    pair_start: Array
    match: Array
    gold: Array | None
    gold_repeats: Array


def match_texts(
    retrieved: pl.Series,
    retrieved_start: Array,
    gold: pl.Series,
    gold_start: Array,
    *,
    rule: str,
    threshold: float | None,
    rules: RetrievalRules,
    workers: Workers,
) -> Matched:
    """Match the retrieved texts of every query with its golds.

    Args:
        retrieved: String [n], by rank within a query, without nulls.
        retrieved_start: int64 [q + 1], offsets of each query.
        gold: String [g], without nulls; one given twice in a query counts once, unless the rules
            keep repeats.
        gold_start: int64 [q + 1], offsets of each query.
        rule: one of ``RULES``.
        threshold: threshold of similarity, in [0, 1]; None for the rule's default.
        rules: uses ``match_at_threshold``, ``reference_rouge`` and ``reference_chunks``.
    """
    components = find_components(
        retrieved,
        retrieved_start,
        gold,
        gold_start,
        sentences=rule in SENTENCES,
        keep_repeats=rules.keep_repeats,
    )
    own = MATCHES[rule]
    limit = own if threshold is None else threshold
    wanted = Wanted(float("nan") if limit is None else limit, rules)
    match = np.zeros(int(components.pair_start[-1]), np.uint8)
    RULES[rule](components, wanted, workers, match)
    return Matched(
        retrieved_start=components.retrieved_start,
        gold_start=components.gold_start,
        pair_start=components.pair_start,
        match=match,
        gold=components.gold_row,
        gold_repeats=components.gold_repeats,
    )
