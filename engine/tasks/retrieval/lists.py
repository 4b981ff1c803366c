"""Ranked lists with judgments, the input of all retrieval measures."""

from __future__ import annotations

from functools import cached_property

import msgspec
import numpy as np

from ...schemas.arrays import Array


def count(start: Array, chosen: Array) -> Array:
    """Count chosen items per query.

    Args:
        start: int64 [q + 1], CSR offsets.
        chosen: bool [n].

    Returns:
        int64 [q].
    """
    upto = np.r_[0, np.cumsum(chosen, dtype=np.int64)]
    counted: Array = upto[start[1:]] - upto[start[:-1]]
    return counted


class Ties(msgspec.Struct, frozen=True):
    """Ranks shared by documents of equal score, if ties are averaged.

    Attributes:
        first: int32 [h], lowest rank among the documents of the hit's score.
        size: int32 [h], number of documents with that score.
    """

    first: Array
    size: Array


class Lists(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The queries of a run; unjudged documents are only counted.

    Two ragged arrays (CSR over queries) contain everything: ``hits``, retrieved documents that have
    a
    judgment, by rank; and ``golds``, the judgments, by relevance. For ids each hit is one gold. For
    texts a hit may match several golds and a gold several hits.

    Attributes:
        retrieved: int64 [q], documents retrieved.
        start: int64 [q + 1], offsets of the hits of each query.
        rank: int32 [h], ranks from 1, ascending within a query.
        relevance: float64 [h], the highest relevance among the golds that the hit matches;
            negative for an unjudged document of the pool (trec_eval's bpref and infAP).
        gain: float64 [h], relevance with every gold credited once, to the first hit that matches
            it,
            and one gold per hit; 0.0 for a hit without a gold. For ids the same array as
            ``relevance``.
        gold_start: int64 [q + 1], offsets of the judgments of each query.
        gold: float64 [g], their relevance, descending within a query.
        found: int32 [g], lowest rank at which each is retrieved, 0 if it is not.
        repeats: int64 [q], golds given more than once, excluded from ``gold``; 0 for ids.
        again: int64 [q], retrieved ids that already occur at a higher rank, or None if there are
            none.
        tokens: float64 [q], estimated tokens of the retrieved texts; None if not needed.
        ties: ranks shared by equal scores if these are averaged, else None. Then ``rank`` follows
            the
            order of the input, and a measure is its mean over all orders of equal scores.
    """

    retrieved: Array
    start: Array
    rank: Array
    relevance: Array
    gain: Array
    gold_start: Array
    gold: Array
    found: Array
    repeats: Array
    again: Array | None = None
    tokens: Array | None = None
    ties: Ties | None = None

    def __len__(self) -> int:
        return self.retrieved.size

    @cached_property
    def relevant(self) -> Array:
        """Judgments above 0, int64 [q]."""
        return count(self.gold_start, self.gold > 0)
