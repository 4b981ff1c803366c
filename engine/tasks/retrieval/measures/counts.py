"""Measures based on counts: precision, recall and related ones, at cut-offs and for whole sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ....kernels.retrieval import found_within
from ....schemas.arrays import Array
from ....tally.stats import Column
from ...encoding import Workers
from ..by_id import Lists, count
from ..settings import Settings
from .common import WHOLE, by_level, counts_within, cuts_of, plain, ratio, relevant_golds, variants

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
    found = golds_within(lists, level, cuts, workers)
    return ratio(found, relevant_golds(lists, level)[:, None])


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
        found = count(lists.gold_start, (lists.gold >= level) & (lists.found > 0))
        golds = relevant_golds(lists, level)
        return formula(*(a.astype(np.float64) for a in (hits, found, lists.retrieved, golds)))

    return plain(name, by_level(settings, of_level), settings)


def _set_f(hits: Array, found: Array, retrieved: Array, golds: Array) -> Array:
    precision, recall = ratio(hits, retrieved), ratio(found, golds)
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
    "num_relevant_retrieved": (
        "NumRelevantRetrieved",
        lambda hits, found, retrieved, golds: hits,
    ),
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
    known = counts_within(lists, np.ones(lists.rank.size, bool), cuts, workers)
    return (Column(metric="Judged", k=ks, values=ratio(known, there)[:, None]),)


def _unjudged(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    wanted = looked_at(lists, cuts)
    there = np.minimum(wanted, lists.retrieved[:, None])
    known = counts_within(lists, lists.relevance >= 0, cuts, workers)
    return (Column(metric="Unjudged", k=ks, values=ratio(there - known, wanted)[:, None]),)


def _precision_recall_f1(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Three metrics of whole sets; relevant is whatever is above 0."""
    hits = count(lists.start, lists.relevance > 0)
    found = count(lists.gold_start, (lists.gold > 0) & (lists.found > 0))
    precision = ratio(hits, lists.retrieved)
    recall = ratio(found, lists.relevant)
    f1 = ratio(2 * precision * recall, precision + recall)
    return tuple(
        Column(metric=name, values=values[:, None, None])
        for name, values in (("Precision", precision), ("Recall", recall), ("F1", f1))
    )


MEASURES = {
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
