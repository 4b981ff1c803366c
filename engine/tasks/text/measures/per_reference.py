"""Columns of the best reference, from counts of each pair of reference and candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ....kernels.text import ngram_matches
from ....schemas.arrays import Array
from ....tally.cells import parameters
from ....tally.stats import Column
from ...encoding import Workers
from ..pairs import Pairs, Tokens, best_reference
from ..settings import Settings

Counter = Callable[..., None]
"""A kernel (first, last, candidate of each reference, candidates, references, n_codes, out)."""


def each_reference(
    count: Counter, pairs: Pairs, tokens: Tokens, workers: Workers, out: Array | None = None
) -> Array:
    """Run a counting kernel on each pair of reference and candidate.

    Args:
        count: the kernel.
        out: int64 [m] or [m, ...], filled and returned; None to allocate [m].
    """
    found = np.empty(len(pairs.references), np.int64) if out is None else out
    candidate = pairs.candidate

    def run(first: int, last: int) -> None:
        count(first, last, candidate, tokens.candidates, tokens.references, tokens.n_codes, found)

    workers.over(tokens.references[0], run)
    return found


def _ngrams(first: int, last: int, candidate: Array, *rest: Any) -> None:
    ngram_matches(first, last, (candidate, np.arange(candidate.size + 1)), *rest)


def ngrams_of_each(pairs: Pairs, tokens: Tokens, orders: int, workers: Workers) -> Array:
    """Clipped n-grams that each reference shares with its candidate, int64 [m, orders]."""
    out = np.empty((len(pairs.references), orders), np.int64)
    return each_reference(_ngrams, pairs, tokens, workers, out)


def best_columns(
    metric: str,
    values: Mapping[str | None, Array],
    pairs: Pairs,
    told: tuple[str | None, ...] = (None,),
) -> tuple[Column, ...]:
    """Return the values of each candidate's best reference by the first of them.

    Args:
        metric: its name.
        values: statistic, None for the metric value, -> float64 [m], without NaN.
        told: ``parameters`` of the columns.
    """
    best = best_reference(next(iter(values.values())), pairs.start)
    return tuple(
        Column(metric=metric, statistic=name, parameters=told, values=value[best][:, None, None])
        for name, value in values.items()
    )


def unusual(settings: Settings, usual: Mapping[str, Any]) -> tuple[str | None, ...]:
    """Return the ``parameters`` with options that differ from their defaults.

    Args:
        usual: option -> default value.
    """
    given = {name: getattr(settings, name) for name in usual}
    other = {name: value for name, value in given.items() if value != usual[name]}
    return (_told(tuple(other.items())) if other else None,)


@lru_cache
def _told(given: tuple[tuple[str, Any], ...]) -> str | None:
    return parameters(**dict(given))
