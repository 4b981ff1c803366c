"""Shared parts of measures: levels, cut-offs, ranks of equal scores, weights of ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from ....kernels.retrieval import log_discounts, rank_sums
from ....schemas.arrays import Array
from ....tally.cells import parameters
from ....tally.stats import Column
from ...encoding import Workers
from ..by_id import Lists, count
from ..settings import Settings

WHOLE = 2**62
"""The cut-off of a whole list, beyond any rank."""
ABOVE_ZERO = 5e-324
"""The smallest positive float64: the level that anything above 0 reaches."""


def cuts_of(settings: Settings) -> tuple[tuple[int | None, ...], Array]:
    """Cut-offs with the whole list behind: as columns name them, and as int64 [k]."""
    ks = [k for k in settings.k if k is not None]
    return (*ks, None), np.array([*ks, WHOLE], np.int64)


def highest_of(lists: Lists, settings: Settings) -> float:
    """The highest relevance of all judgments, those outside of these lists too."""
    if settings.highest is not None:
        return settings.highest
    return float(lists.gold.max(initial=0.0))


def levels_of(settings: Settings) -> list[float]:
    """Lowest relevance that is relevant, of each variant."""
    return [ABOVE_ZERO if level is None else level for level in settings.relevance_levels]


def variants(settings: Settings, **more: Any) -> tuple[str | None, ...]:
    """Return the ``parameters`` of each relevance level, with further parameters of the variant."""
    return tuple(
        parameters(**more, **({} if level is None else {"relevance_level": level}))
        if more or level is not None
        else None
        for level in settings.relevance_levels
    )


class Places(msgspec.Struct, frozen=True):
    """Possible ranks of documents.

    Attributes:
        first: int32 [h], lowest rank among equal scores; the document's rank unless ties are
            averaged.
        size: int32 [h], number of documents with that score; 1 unless ties are averaged.
    """

    first: Array
    size: Array

    @property
    def longest(self) -> int:
        """The highest of these ranks; 0 without documents."""
        return int((self.first + self.size).max(initial=1)) - 1


def places_of(lists: Lists) -> Places:
    """The ranks of the judged documents."""
    if lists.ties is None:
        return Places(lists.rank, np.ones(lists.rank.size, np.int32))
    return Places(lists.ties.first, lists.ties.size)


class Weights(msgspec.Struct, frozen=True):
    """Weights by rank, index 0 unused.

    Attributes:
        weight: float64 [longest + 1].
        upto: float64 [longest + 1], running sums of the weights.
        divides: values are divided by ``weight``; then ``upto`` sums the reciprocals.
    """

    weight: Array
    upto: Array
    divides: bool = False


def even_weights(longest: int) -> Weights:
    """Every rank counts 1."""
    return Weights(np.ones(longest + 1), np.arange(longest + 1, dtype=np.float64))


def log_weights(longest: int, discount: str) -> Weights:
    """Ranks are discounted by the logarithm that the option ``discount`` names."""
    logs = log_discounts(longest, 1 if discount == "log2(rank+1)" else 0)
    return Weights(logs, np.r_[0.0, np.cumsum(1.0 / logs[1:])], divides=True)


def persistent_weights(longest: int, persistence: float) -> Weights:
    """Every rank counts ``persistence`` times the one before; powers by repeated products."""
    powers = np.r_[1.0, np.full(longest, persistence)]
    powers[1:2] = 1.0
    weight = np.cumprod(powers)
    return Weights(weight, np.r_[0.0, np.cumsum(weight[1:])])


def sums(
    lists: Lists, places: Places, value: Array, weights: Weights, cuts: Array, workers: Workers
) -> Array:
    """Sum the values of judged documents, weighted by rank, up to each cut-off.

    Args:
        places: ranks of the documents.
        value: [h].
        weights: by rank.
        cuts: int64 [k], or [q, k] for cut-offs per query; ascending.

    Returns:
        float64 [q, k].
    """
    cuts = np.atleast_2d(cuts)
    out = np.empty((len(lists), cuts.shape[1]))

    def run(begin: int, end: int) -> None:
        rank_sums(
            lists.start,
            places.first,
            places.size,
            value,
            weights.weight,
            weights.upto,
            cuts,
            begin,
            end,
            out,
            divides=weights.divides,
        )

    workers.over(lists.start, run)
    return out


def counts_within(lists: Lists, chosen: Array, cuts: Array, workers: Workers) -> Array:
    """Count the chosen documents, bool [h], up to each cut-off; float64 [q, k]."""
    places = places_of(lists)
    return sums(lists, places, chosen, even_weights(places.longest), cuts, workers)


def relevant_golds(lists: Lists, level: float) -> Array:
    """Judgments that reach a level, int64 [q]."""
    return count(lists.gold_start, lists.gold >= level)


def ratio(part: Array, whole: Array) -> Array:
    """Divide, giving 0.0 for a zero denominator."""
    part, whole = np.broadcast_arrays(part, whole)
    out = np.zeros(part.shape)
    np.divide(part, whole, out=out, where=whole != 0)
    return out


def by_level(settings: Settings, of_level: Callable[[float], Array]) -> Array:
    """Stack the results of a function for each relevance level, float64 [q, level, ...]."""
    return np.stack([of_level(level) for level in levels_of(settings)], axis=1)


def plain(name: str, values: Array, settings: Settings) -> tuple[Column, ...]:
    """The column of a measure without cut-offs, from float64 [q, level]."""
    return (Column(metric=name, parameters=variants(settings), values=values[:, :, None]),)
