"""Measures of the ranks of relevant documents: average precision, reciprocal rank, preferences."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....kernels.retrieval import (
    first_relevant,
    interpolated_precision,
    precision_sums,
    preferences,
)
from ....schemas.arrays import Array
from ....tally.stats import Column
from ...encoding import Workers
from ..by_id import Lists, count
from ..settings import Settings
from .common import (
    WHOLE,
    by_level,
    cuts_of,
    log_weights,
    places_of,
    plain,
    ratio,
    relevant_golds,
    variants,
)

RECALLS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Recall levels of interpolated precision."""


def _average_precision(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    places = places_of(lists)
    over_retrieved = settings.rules.averaged_over_retrieved
    credited = lists.relevance if over_retrieved else lists.gain

    def of_level(level: float) -> Array:
        relevant = credited >= level
        out = np.empty((len(lists), cuts.size))

        def run(begin: int, end: int) -> None:
            precision_sums(
                lists.start,
                places.first,
                places.size,
                relevant,
                cuts,
                begin,
                end,
                out,
                over_retrieved=over_retrieved,
            )

        workers.over(lists.start, run)
        return out if over_retrieved else ratio(out, relevant_golds(lists, level)[:, None])

    values = by_level(settings, of_level)
    return (Column(metric="MAP", parameters=variants(settings), k=ks, values=values),)


def _first(lists: Lists, settings: Settings, cuts: Array, workers: Workers) -> tuple[Array, Array]:
    """Reciprocal ranks and successes, float64 [q, level, k] each."""
    places = places_of(lists)

    def of_level(level: float) -> Array:
        relevant = lists.relevance >= level
        out = np.empty((2, len(lists), cuts.size))

        def run(begin: int, end: int) -> None:
            first_relevant(
                lists.start,
                places.first,
                places.size,
                relevant,
                cuts,
                begin,
                end,
                out[0],
                out[1],
            )

        workers.over(lists.start, run)
        return np.moveaxis(out, 0, 1)

    both = by_level(settings, of_level)
    return both[:, :, 0], both[:, :, 1]


def _reciprocal_rank(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    values, _ = _first(lists, settings, np.array([WHOLE]), workers)
    return (Column(metric="MRR", parameters=variants(settings), values=values),)


def _reciprocal_rank_cut(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    values, _ = _first(lists, settings, cuts[:-1], workers)
    return (Column(metric="MRR", parameters=variants(settings), k=ks[:-1], values=values),)


def _success(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    _, values = _first(lists, settings, cuts, workers)
    return (Column(metric="Success", parameters=variants(settings), k=ks, values=values),)


def _preferences(
    name: str, which: int, lists: Lists, settings: Settings, workers: Workers
) -> tuple[Column, ...]:
    def of_level(level: float) -> Array:
        golds = relevant_golds(lists, level)
        others = count(lists.gold_start, (lists.gold >= 0) & (lists.gold < level))
        out = np.empty((2, len(lists)))

        def run(begin: int, end: int) -> None:
            preferences(
                lists.start,
                lists.rank,
                lists.relevance,
                lists.gain,
                level,
                golds,
                others,
                begin,
                end,
                out[0],
                out[1],
            )

        workers.over(lists.start, run)
        found: Array = out[which]
        return found

    return plain(name, by_level(settings, of_level), settings)


def _at_recalls(lists: Lists, settings: Settings, workers: Workers) -> Array:
    """Interpolated precision, float64 [q, level, recall]."""

    def of_level(level: float) -> Array:
        relevant = lists.gain >= level
        exact = np.array(RECALLS) * relevant_golds(lists, level)[:, None]
        down = np.floor(exact)
        needed = (down + (exact - down >= 0.5)).astype(np.int64)  # C's lround
        out = np.empty(needed.shape)

        def run(begin: int, end: int) -> None:
            interpolated_precision(lists.start, lists.rank, relevant, needed, begin, end, out)

        workers.over(lists.start, run)
        return out

    return by_level(settings, of_level)


def _interpolated(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    values = _at_recalls(lists, settings, workers)
    return tuple(
        Column(
            metric="InterpolatedPrecision",
            parameters=variants(settings, recall=recall),
            values=values[:, :, [r]],
        )
        for r, recall in enumerate(RECALLS)
    )


def _eleven_points(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    values = _at_recalls(lists, settings, workers)
    total = np.zeros(values.shape[:2])
    for r in range(len(RECALLS) - 1, -1, -1):  # trec_eval's order of summation
        total += values[:, :, r]
    return plain("ElevenPointPrecision", total / len(RECALLS), settings)


def _binary_gain(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    longest = places_of(lists).longest
    logs = log_weights(longest + 1, "log2(rank+1)").weight

    def of_level(level: float) -> Array:
        relevant = lists.gain >= level
        upto = np.r_[0, np.cumsum(relevant, dtype=np.int64)]
        good = upto[1:] - np.repeat(upto[lists.start[:-1]], np.diff(lists.start))
        # log2(2 + documents before it that are not relevant), which is the discount of that rank
        terms = np.where(relevant, 1.0 / logs[np.where(relevant, 1 + lists.rank - good, 1)], 0.0)
        query = np.repeat(np.arange(len(lists)), np.diff(lists.start))
        total = np.bincount(query, terms, minlength=len(lists))
        return ratio(total, relevant_golds(lists, level))

    return plain("binG", by_level(settings, of_level), settings)


MEASURES = {
    "average_precision": _average_precision,
    "reciprocal_rank": _reciprocal_rank,
    "reciprocal_rank_cut": _reciprocal_rank_cut,
    "success": _success,
    "bpref": partial(_preferences, "bpref", 0),
    "inferred_average_precision": partial(_preferences, "infAP", 1),
    "interpolated_precision": _interpolated,
    "eleven_point_precision": _eleven_points,
    "binary_gain": _binary_gain,
}
UNAVERAGED = frozenset(
    {
        "bpref",
        "inferred_average_precision",
        "interpolated_precision",
        "eleven_point_precision",
        "binary_gain",
    }
)
"""Needs whose mean over orders of equal scores has no closed form here."""
