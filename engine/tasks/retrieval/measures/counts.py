"""Measures from counts and ranks of relevant documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from ....kernels.retrieval import (
    first_relevant,
    found_within,
    interpolated_precision,
    log_discounts,
    precision_sums,
    preferences,
    rank_sums,
)
from ....schemas.arrays import Array
from ....tally.cells import parameters
from ....tally.stats import Column
from ...encoding import Workers
from ..by_id import Lists, count
from ..dialects import Settings

# Shared parts of measures: levels, cut-offs, ranks of equal scores, weights of ranks.

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


# Measures based on counts: precision, recall and related ones, at cut-offs and for whole sets.

MULTIPLES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
"""Multiples of the number of relevant documents, as in trec_eval's Rprec_mult."""


def looked_at(lists: Lists, cuts: Array) -> Array:
    """Return the documents up to each cut-off, also beyond the end of short lists; int64 [q, k]."""
    return np.where(cuts == WHOLE, lists.retrieved[:, None], cuts)


def golds_within(lists: Lists, level: float, cuts: Array, workers: Workers) -> Array:
    """Count relevant judgments found up to each cut-off, float64 [q, k].

    If ties are averaged, every document is one judgment, as for ids.
    """
    if lists.ties is not None:
        return counts_within(lists, lists.gain >= level, cuts, workers)
    out = np.empty((len(lists), cuts.size))

    def run(begin: int, end: int) -> None:
        found_within(lists.gold_start, lists.gold, lists.found, level, cuts, begin, end, out)

    workers.over(lists.gold_start, run)
    return out


def _at_cuts(
    name: str,
    lists: Lists,
    settings: Settings,
    workers: Workers,
    formula: Callable[[Lists, float, Array, Workers], Array],
) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    values = by_level(settings, lambda level: formula(lists, level, cuts, workers))
    return (Column(metric=name, parameters=variants(settings), k=ks, values=values),)


def _precision(lists: Lists, level: float, cuts: Array, workers: Workers) -> Array:
    hits = counts_within(lists, lists.relevance >= level, cuts, workers)
    return ratio(hits, looked_at(lists, cuts))


def _recall(lists: Lists, level: float, cuts: Array, workers: Workers) -> Array:
    retrieved_golds = golds_within(lists, level, cuts, workers)
    return ratio(retrieved_golds, relevant_golds(lists, level)[:, None])


def _f1(lists: Lists, level: float, cuts: Array, workers: Workers) -> Array:
    precision = _precision(lists, level, cuts, workers)
    recall = _recall(lists, level, cuts, workers)
    return ratio(2 * precision * recall, precision + recall)


def _relative_precision(lists: Lists, level: float, cuts: Array, workers: Workers) -> Array:
    hits = counts_within(lists, lists.gain >= level, cuts, workers)
    possible = np.minimum(looked_at(lists, cuts), relevant_golds(lists, level)[:, None])
    return ratio(hits, possible)


def _r_precision(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    def of_level(level: float) -> Array:
        golds = relevant_golds(lists, level)
        hits = counts_within(lists, lists.gain >= level, golds[:, None], workers)
        return ratio(hits, golds[:, None])[:, 0]

    return plain("RPrecision", by_level(settings, of_level), settings)


def _r_multiples(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    def of_level(level: float) -> Array:
        golds = relevant_golds(lists, level)[:, None]
        cuts = (np.array(MULTIPLES) * golds + 0.9).astype(np.int64)  # m_Rprec_mult.c
        return ratio(counts_within(lists, lists.gain >= level, cuts, workers), cuts)

    values = by_level(settings, of_level)
    return tuple(
        Column(
            metric="RPrecisionMult",
            parameters=variants(settings, multiple=multiple),
            values=values[:, :, [m]],
        )
        for m, multiple in enumerate(MULTIPLES)
    )


def _set_formula(
    name: str,
    formula: Callable[[Array, Array, Array, Array], Array],
    lists: Lists,
    settings: Settings,
    workers: Workers,
) -> tuple[Column, ...]:
    """A measure of (relevant retrieved, judgments found, retrieved, relevant), float64 [q] each."""

    def of_level(level: float) -> Array:
        hits = count(lists.start, lists.relevance >= level)
        retrieved_golds = count(lists.gold_start, (lists.gold >= level) & (lists.found > 0))
        golds = relevant_golds(lists, level)
        return formula(
            *(a.astype(np.float64) for a in (hits, retrieved_golds, lists.retrieved, golds))
        )

    return plain(name, by_level(settings, of_level), settings)


def _set_f(hits: Array, retrieved_golds: Array, retrieved: Array, golds: Array) -> Array:
    precision, recall = ratio(hits, retrieved), ratio(retrieved_golds, golds)
    return ratio(2 * precision * recall, precision + recall)


_SETS: dict[str, tuple[str, Callable[[Array, Array, Array, Array], Array]]] = {
    "set_precision": ("SetPrecision", lambda hits, found, retrieved, golds: ratio(hits, retrieved)),
    "set_recall": ("SetRecall", lambda hits, found, retrieved, golds: ratio(found, golds)),
    "set_f": ("SetF", _set_f),
    "set_map": (
        "SetMAP",
        lambda hits, found, retrieved, golds: ratio(hits * found, retrieved * golds),
    ),
    "set_relative_precision": (
        "SetRelativePrecision",
        lambda hits, found, retrieved, golds: ratio(found, np.minimum(retrieved, golds)),
    ),
    "utility": ("Utility", lambda hits, found, retrieved, golds: hits - (retrieved - hits)),
    "num_relevant": ("NumRelevant", lambda hits, found, retrieved, golds: golds),
    "num_relevant_retrieved": ("NumRelevantRetrieved", lambda hits, found, retrieved, golds: hits),
}
"""Need -> metric and formula."""


def _nonrelevant_judged(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    def of_level(level: float) -> Array:
        chosen = (lists.relevance >= 0) & (lists.relevance < level)
        return count(lists.start, chosen).astype(np.float64)

    values = by_level(settings, of_level)
    return plain("NumNonrelevantJudgedRetrieved", values, settings)


def _num_retrieved(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    values = lists.retrieved.astype(np.float64)
    return (Column(metric="NumRetrieved", values=values[:, None, None]),)


def _judged(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    there = np.minimum(looked_at(lists, cuts), lists.retrieved[:, None])
    judged = counts_within(lists, np.ones(lists.rank.size, bool), cuts, workers)
    return (Column(metric="Judged", k=ks, values=ratio(judged, there)[:, None]),)


def _unjudged(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    wanted = looked_at(lists, cuts)
    there = np.minimum(wanted, lists.retrieved[:, None])
    judged = counts_within(lists, lists.relevance >= 0, cuts, workers)
    return (Column(metric="Unjudged", k=ks, values=ratio(there - judged, wanted)[:, None]),)


def _precision_recall_f1(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Three metrics of whole sets; relevant is whatever is above 0."""
    hits = count(lists.start, lists.relevance > 0)
    retrieved_golds = count(lists.gold_start, (lists.gold > 0) & (lists.found > 0))
    precision = ratio(hits, lists.retrieved)
    recall = ratio(retrieved_golds, lists.relevant)
    f1 = ratio(2 * precision * recall, precision + recall)
    return tuple(
        Column(metric=name, values=values[:, None, None])
        for name, values in (("Precision", precision), ("Recall", recall), ("F1", f1))
    )


_COUNTS_MEASURES = {
    "precision": partial(_at_cuts, "P", formula=_precision),
    "recall": partial(_at_cuts, "Recall", formula=_recall),
    "f1": partial(_at_cuts, "F1", formula=_f1),
    "relative_precision": partial(_at_cuts, "RelativePrecision", formula=_relative_precision),
    "r_precision": _r_precision,
    "r_precision_multiples": _r_multiples,
    "num_nonrelevant_judged_retrieved": _nonrelevant_judged,
    "num_retrieved": _num_retrieved,
    "judged": _judged,
    "unjudged": _unjudged,
    "precision_recall_f1": _precision_recall_f1,
    **{need: partial(_set_formula, name, formula) for need, (name, formula) in _SETS.items()},
}


# Measures of the ranks of relevant documents: average precision, reciprocal rank, preferences.

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
                lists.start, places.first, places.size, relevant, cuts, begin, end, out[0], out[1]
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
        values: Array = out[which]
        return values

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


_PRECISION_MEASURES = {
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
_PRECISION_UNAVERAGED = frozenset(
    {
        "bpref",
        "inferred_average_precision",
        "interpolated_precision",
        "eleven_point_precision",
        "binary_gain",
    }
)
"""Needs whose mean over orders of equal scores has no closed form here."""


# Precision and recall of contexts as ragas counts them.

_NOTHING_RETRIEVED = "no document was retrieved"
_NO_RELEVANT = "no relevant document"


def _defined(part: Array, whole: Array) -> Array:
    """Divide, giving NaN for a zero denominator."""
    return np.where(whole > 0, ratio(part, whole), np.nan)


def _column(name: str, values: Array, reason: str) -> tuple[Column, ...]:
    return (Column(metric=name, values=values[:, None, None], reason=reason),)


def _found(lists: Lists) -> Array:
    return count(lists.gold_start, (lists.found > 0) & (lists.gold > 0))


def _id_precision(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Distinct relevant documents retrieved over distinct documents retrieved."""
    distinct = lists.retrieved if lists.again is None else lists.retrieved - lists.again
    value = _defined(_found(lists), distinct)
    return _column("IDBasedContextPrecision", value, _NOTHING_RETRIEVED)


def _id_recall(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Distinct relevant documents retrieved over all that are relevant."""
    value = _defined(_found(lists), lists.relevant)
    return _column("IDBasedContextRecall", value, _NO_RELEVANT)


def _text_recall(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Relevant texts that some retrieved one matches over all that are relevant."""
    value = _defined(_found(lists), lists.relevant)
    return _column("NonLLMContextRecall", value, _NO_RELEVANT)


def _text_precision(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Mean of the precision at the rank of every retrieved text that matches."""
    relevant = lists.relevance > 0
    upto = np.r_[0, np.cumsum(relevant)]
    query = np.repeat(np.arange(len(lists)), np.diff(lists.start))
    before = upto[1:] - upto[lists.start[query]]
    terms = np.where(relevant, before / lists.rank, 0.0)
    total = np.bincount(query, terms, minlength=len(lists))
    many = count(lists.start, relevant)
    value = ratio(total, many + settings.rules.precision_epsilon)
    value = np.where(lists.relevant > 0, value, np.nan)
    return _column("NonLLMContextPrecision", value, _NO_RELEVANT)


def _tokens(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Estimated tokens of the retrieved texts."""
    assert lists.tokens is not None
    return (Column(metric="TokenCount", values=lists.tokens[:, None, None]),)


_CONTEXTS_MEASURES = {
    "token_count": _tokens,
    "id_context_precision": _id_precision,
    "id_context_recall": _id_recall,
    "text_context_precision": _text_precision,
    "text_context_recall": _text_recall,
}
_CONTEXTS_UNAVERAGED = frozenset({"text_context_precision", "token_count"})


MEASURES = {**_COUNTS_MEASURES, **_PRECISION_MEASURES, **_CONTEXTS_MEASURES}


UNAVERAGED = _PRECISION_UNAVERAGED | _CONTEXTS_UNAVERAGED
