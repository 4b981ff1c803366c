"""Measures of graded relevance and of user models."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from ....ingest.problems import count_of, listing
from ....kernels.retrieval import (
    BPM,
    INST,
    NERR8,
    NERR9,
    NERR10,
    NERR11,
    all_relevant,
    cascade,
    expected_gains,
    gain_costs,
    ndcg_means,
    rank_sums,
)
from ....schemas.arrays import Array
from ....schemas.errors import InputError
from ....schemas.wording import option
from ....tally.cells import parameters
from ....tally.stats import Column
from ...encoding import Workers
from ..by_id import Lists, count
from ..dialects import Settings, unusual
from .counts import (
    ABOVE_ZERO,
    Weights,
    by_level,
    counts_within,
    cuts_of,
    even_weights,
    golds_within,
    highest_of,
    log_weights,
    looked_at,
    persistent_weights,
    places_of,
    ratio,
    sums,
    variants,
)

# Measures of graded relevance: nDCG and its kin, rank-biased precision, ERR.


def gains_of(relevance: Array, gains: str | dict[float, float]) -> Array:
    """Return the gain of each relevance, float64; 0.0 for negative (unjudged) relevance.

    Args:
        relevance: float64 [n].
        gains: ``linear`` (the relevance), ``exponential`` (2^relevance - 1), or a mapping;
            a relevance that is missing in it keeps its value, as in trec_eval.
    """
    judged = np.maximum(relevance, 0.0)
    if gains == "linear":
        return judged
    if gains == "exponential":
        with np.errstate(over="ignore"):  # refuse_endless() has checked
            return np.exp2(judged) - 1.0
    assert not isinstance(gains, str)
    out = judged.copy()
    for level, gain in gains.items():
        out[relevance == level] = gain
    out[relevance < 0] = 0.0
    return out


def _told(settings: Settings, *names: str) -> tuple[str | None]:
    """``parameters`` of a measure's one variant: the options that are not as usual."""
    chosen = unusual(settings, *names)
    return (parameters(**chosen) if chosen else None,)


def refuse_endless(lists: Lists, settings: Settings, queries: pl.Series) -> None:
    """Raise InputError for judgments whose sum of gains overflows.

    Args:
        settings: uses ``gains``.
        queries: their ids, for messages.

    Raises:
        InputError: names the highest relevance and the first of the queries.
    """
    if not lists.gold.size:
        return
    gain = gains_of(lists.gold, settings.gains)
    n_golds = np.diff(lists.gold_start)
    query = np.repeat(np.arange(n_golds.size), n_golds)
    endless = ~np.isfinite(np.bincount(query, gain, minlength=n_golds.size))
    if not bool(endless.any()):
        return
    found = np.flatnonzero(endless)
    highest = float(lists.gold[endless[query]].max())
    way = (
        "Use relevance grades of a few units, or remove"
        f" {option('gains', 'exponential')} (2^relevance - 1)."
        if settings.gains == "exponential"
        else "Bring relevance, or the gains given for it, to smaller numbers."
    )
    raise InputError(
        f"ground truths: column 'relevance' goes up to {highest:g}, and the gains of"
        f" {count_of(found.size, 'query', 'queries')} exceed the range of float64:"
        f" {listing(queries.gather(found[:5]), found.size)}. {way}",
        code="too_high",
        column="relevance",
        count=found.size,
        highest=highest,
    )


def _descending(start: Array, gain: Array) -> Array:
    """Gains of each query from the highest down."""
    query = np.repeat(np.arange(start.size - 1), np.diff(start))
    order: Array = gain[np.lexsort((-gain, query))]
    return order


def ideal_of(lists: Lists, settings: Settings) -> tuple[Array, Array]:
    """Return the gains of the ideal order.

    Returns:
        int64 [q + 1], CSR offsets; float64 [g], descending within a query.
    """
    if settings.ideal == "retrieved":
        return lists.start, _descending(lists.start, gains_of(lists.gain, settings.gains))
    start, gold = lists.gold_start, lists.gold
    repeated = settings.rules.ideal_repeats and bool(lists.repeats.any())
    if repeated:  # a repeated gold is relevant once more
        more = np.r_[0, np.cumsum(lists.repeats)]
        every = np.ones(gold.size + int(more[-1]))
        every[np.arange(gold.size) + np.repeat(more[:-1], np.diff(start))] = gold
        start, gold = start + more, every
    gain = gains_of(gold, settings.gains)
    if repeated or not isinstance(settings.gains, str):
        gain = _descending(start, gain)
    return start, gain


def _longest(lists: Lists, start: Array) -> int:
    """The highest rank in the lists or in the ideal order."""
    return max(places_of(lists).longest, int(np.diff(start).max(initial=0)), 1)


def _ideal_sums(
    start: Array, ideal: Array, weights: Weights, cuts: Array, workers: Workers
) -> Array:
    """Discounted gain of the ideal order up to each cut-off, float64 [q, k]."""
    n_queries = start.size - 1
    first = np.arange(1, ideal.size + 1) - np.repeat(start[:-1], np.diff(start))
    size = np.ones(ideal.size, np.int32)
    positive = np.maximum(ideal, 0.0)
    out = np.empty((n_queries, cuts.size))

    def run(begin: int, end: int) -> None:
        rank_sums(
            start,
            first,
            size,
            positive,
            weights.weight,
            weights.upto,
            cuts[None],
            begin,
            end,
            out,
            divides=weights.divides,
        )

    workers.over(start, run)
    return out


def _discounted(
    lists: Lists, settings: Settings, longest: int, workers: Workers
) -> tuple[Array, Weights]:
    """Discounted gain up to each cut-off, float64 [q, k], and the weights of ranks."""
    weights = log_weights(longest, settings.discount)
    gain = gains_of(lists.gain, settings.gains)
    return sums(lists, places_of(lists), gain, weights, cuts_of(settings)[1], workers), weights


def _dcg(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    values, _ = _discounted(lists, settings, places_of(lists).longest, workers)
    chosen = _told(settings, "gains", "discount")
    return (
        Column(metric="DCG", parameters=chosen, k=cuts_of(settings)[0], values=values[:, None]),
    )


def _ndcg(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    start, ideal = ideal_of(lists, settings)
    dcg, weights = _discounted(lists, settings, _longest(lists, start), workers)
    best = _ideal_sums(start, ideal, weights, cuts, workers)
    chosen = _told(settings, "gains", "discount", "ideal")
    return (Column(metric="nDCG", parameters=chosen, k=ks, values=ratio(dcg, best)[:, None]),)


def _ndcg_any(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    places = places_of(lists)
    weights = log_weights(_longest(lists, lists.start), "log2(rank)")
    relevant = lists.relevance > 0
    dcg = sums(lists, places, relevant, weights, cuts, workers)
    many = count(lists.start, relevant)
    best = weights.upto[np.minimum(many[:, None], cuts)]
    values = np.where(lists.relevant[:, None] > 0, ratio(dcg, best), 0.0)
    return (Column(metric="RetrievalNDCGAny", k=ks, values=values[:, None]),)


def _recall(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    retrieved_golds = golds_within(lists, ABOVE_ZERO, cuts, workers)
    values = ratio(retrieved_golds, lists.relevant[:, None])
    return (Column(metric="RetrievalRecall", k=ks, values=values[:, None]),)


def _recall_all(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    golds = lists.relevant
    if lists.ties is None:
        retrieved_golds = golds_within(lists, ABOVE_ZERO, cuts, workers)
        values = ((retrieved_golds == golds[:, None]) & (golds > 0)[:, None]).astype(np.float64)
    else:
        places = places_of(lists)
        relevant = lists.gain > 0
        values = np.empty((len(lists), cuts.size))

        def run(begin: int, end: int) -> None:
            all_relevant(
                lists.start, places.first, places.size, relevant, golds, cuts, begin, end, values
            )

        workers.over(lists.start, run)
    if settings.rules.repeats_missed:
        values[lists.repeats > 0] = 0.0
    return (Column(metric="RetrievalRecallAll", k=ks, values=values[:, None]),)


def _gain_costs(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    start, ideal = ideal_of(lists, settings)
    gain = gains_of(lists.gain, settings.gains)
    out = np.empty(len(lists))

    def run(begin: int, end: int) -> None:
        gain_costs(lists.start, lists.rank, gain, start, ideal, begin, end, out)

    workers.over(lists.start, run)
    chosen = _told(settings, "gains", "ideal")
    return (Column(metric="G", parameters=chosen, values=out[:, None, None]),)


def _ndcg_means(lists: Lists, settings: Settings, workers: Workers) -> Array:
    """nDCG over the ranks of relevant documents, and of levels of the ideal order, [2, q]."""
    start, ideal = ideal_of(lists, settings)
    gain = gains_of(lists.gain, settings.gains)
    discount = log_weights(_longest(lists, start), settings.discount).weight
    out = np.empty((2, len(lists)))

    def run(begin: int, end: int) -> None:
        ndcg_means(
            lists.start,
            lists.rank,
            gain,
            lists.retrieved,
            start,
            ideal,
            discount,
            begin,
            end,
            out[0],
            out[1],
        )

    workers.over(lists.start, run)
    return out


def _ndcg_at_relevant(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    values = _ndcg_means(lists, settings, workers)[0]
    chosen = _told(settings, "gains", "discount", "ideal")
    return (Column(metric="nDCGRel", parameters=chosen, values=values[:, None, None]),)


def _ndcg_at_levels(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """The level decides only which queries have one: the others are 0 (trec_eval's m_Rndcg.c)."""
    whole: Array = _ndcg_means(lists, settings, workers)[1][:, None]

    def at(level: float) -> Array:
        if level == ABOVE_ZERO:
            return whole
        reached = count(lists.gold_start, lists.gold >= level) > 0
        values: Array = np.where(reached[:, None], whole, 0.0)
        return values

    made = variants(settings, **unusual(settings, "gains", "discount", "ideal"))
    return (Column(metric="RnDCG", parameters=made, values=by_level(settings, at)),)


def _rank_biased(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    places = places_of(lists)
    p = settings.persistence
    weights = persistent_weights(places.longest, p)
    if settings.rules.graded_persistence:
        highest = np.ones(len(lists))  # relevance is scaled only if it exceeds 1
        some = np.flatnonzero(np.diff(lists.gold_start))
        highest[some] = np.maximum(lists.gold[lists.gold_start[some]], 1.0)
        value = np.maximum(lists.relevance, 0.0) / np.repeat(highest, np.diff(lists.start))
        values = (1.0 - p) * sums(lists, places, value, weights, cuts, workers)
        chosen = _told(settings, "persistence")
        return (Column(metric="RBP", parameters=chosen, k=ks, values=values[:, None]),)
    values = by_level(
        settings,
        lambda level: (
            (1.0 - p) * sums(lists, places, lists.relevance >= level, weights, cuts, workers)
        ),
    )
    made = variants(settings, **unusual(settings, "persistence"))
    return (Column(metric="RBP", parameters=made, k=ks, values=values),)


def _rank_biased_residual(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Compute the maximum that unjudged documents, and those behind the list, could add to RBP."""
    _, cuts = cuts_of(settings)
    places = places_of(lists)
    p = settings.persistence
    weights = persistent_weights(places.longest, p)
    judged = lists.relevance >= 0
    judged_weight = sums(lists, places, judged, weights, cuts[-1:], workers)[:, 0]
    values = 1.0 - (1.0 - p) * judged_weight
    if settings.rules.graded_persistence:  # 0 for lists without a gap, as in m_rbp_resid.c
        values[count(lists.start, judged) == lists.retrieved] = 0.0
    chosen = _told(settings, "persistence")
    return (Column(metric="RBPResidual", parameters=chosen, values=values[:, None, None]),)


def _expected_reciprocal_rank(
    lists: Lists, settings: Settings, workers: Workers
) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    highest = highest_of(lists, settings)
    # (2^relevance - 1) / 2^highest without either power, which overflow beyond 2^1023
    satisfies = np.exp2(np.maximum(lists.relevance, 0.0) - highest) - np.exp2(-highest)
    out = np.empty((len(lists), cuts.size))

    def run(begin: int, end: int) -> None:
        cascade(lists.start, lists.rank, satisfies, cuts, begin, end, out)

    workers.over(lists.start, run)
    chosen = (parameters(max_relevance=highest),)
    return (Column(metric="ERR", parameters=chosen, k=ks, values=out[:, None]),)


_GAINS_MEASURES = {
    "dcg": _dcg,
    "ndcg": _ndcg,
    "retrieval_ndcg_any": _ndcg_any,
    "retrieval_recall": _recall,
    "retrieval_recall_all": _recall_all,
    "gain_costs": _gain_costs,
    "ndcg_at_relevant": _ndcg_at_relevant,
    "ndcg_at_levels": _ndcg_at_levels,
    "rank_biased_precision": _rank_biased,
    "rank_biased_residual": _rank_biased_residual,
    "expected_reciprocal_rank": _expected_reciprocal_rank,
}
_GAINS_UNAVERAGED = frozenset(
    {"gain_costs", "ndcg_at_relevant", "ndcg_at_levels", "expected_reciprocal_rank"}
)
"""Needs whose mean over orders of equal scores has no closed form here."""
_GAINS_SCALED = frozenset({"expected_reciprocal_rank"})
"""Needs that scale relevance by the highest of all judgments."""


# Measures of ir-measures beyond trec_eval's: models of users, compatibility, pairs in order.

DEPTH = 1000
"""Ranks that a user without a cut-off looks at, as in cwl_eval."""
_PIECE = 1 << 16  # ranks whose discounts are added up together
WISH = 1.0
"""Gain that users are after."""
LOOKING_ON = 0.9
"""The chance to look on, in NERR10."""
AGREEING = 0.95
"""Persistence of the overlap of two lists, in Compat."""


def _scaled(lists: Lists, settings: Settings) -> tuple[Array, tuple[str, ...]]:
    """Return relevance scaled to [0, 1] by the highest of all judgments, and parameters with it."""
    highest = highest_of(lists, settings)
    scaled = np.maximum(lists.relevance, 0.0) / (highest or 1.0)
    return scaled, (parameters(max_relevance=highest),)


def _user(
    name: str, user: int, wish: float, cut: bool, lists: Lists, settings: Settings, workers: Workers
) -> tuple[Column, ...]:
    """Expected gain of a kind of user, at cut-offs or at one depth for all."""
    ks, cuts = cuts_of(settings)
    ks, cuts = (ks[:-1], cuts[:-1]) if cut else ((None,), np.array([DEPTH]))
    gain, chosen = _scaled(lists, settings)
    out = np.empty((len(lists), cuts.size))

    def run(begin: int, end: int) -> None:
        expected_gains(lists.start, lists.rank, gain, user, wish, cuts, begin, end, out)

    workers.over(lists.start, run)
    return (Column(metric=name, parameters=chosen, k=ks, values=out[:, None]),)


def _discounts_upto(depth: Array) -> Array:
    """Sums of 1 / log2(rank + 1) up to depths, float64 of their shape, in bounded memory."""
    wanted, place = np.unique(depth, return_inverse=True)
    discounts = np.zeros(wanted.size)
    done, total = 0, 0.0
    for i, deep in enumerate(wanted.tolist()):
        while done < deep:
            end = min(done + _PIECE, deep)
            pieces = 1.0 / np.log2(np.arange(done + 2, end + 2, dtype=np.float64))
            pieces[0] += total  # added up rank by rank, as if in one go
            total = float(np.cumsum(pieces)[-1])
            done = end
        discounts[i] = total
    return discounts[place].reshape(depth.shape)


def _scaled_dcg(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    gain, chosen = _scaled(lists, settings)
    depth = looked_at(lists, cuts)
    places = places_of(lists)
    weights = log_weights(places.longest, "log2(rank+1)")
    values = ratio(sums(lists, places, gain, weights, cuts, workers), _discounts_upto(depth))
    return (Column(metric="SDCG", parameters=chosen, k=ks, values=values[:, None]),)


def _insq(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Compute INST for a user who ignores the results found so far: weights of ranks are fixed."""
    gain, chosen = _scaled(lists, settings)
    places = places_of(lists)
    ranks = np.arange(max(DEPTH, places.longest) + 1, dtype=np.float64)
    weight = (2 * WISH / (np.maximum(ranks, 1.0) + 2 * WISH - 1)) ** 2
    weights = Weights(weight, np.r_[0.0, np.cumsum(weight[1:])])
    total = sums(lists, places, gain, weights, np.array([DEPTH]), workers)
    values = total / weights.upto[DEPTH]
    return (Column(metric="INSQ", parameters=chosen, values=values[:, None]),)


def _accuracy(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    there = np.minimum(looked_at(lists, cuts), lists.retrieved[:, None])
    places = places_of(lists)
    weights = even_weights(places.longest)

    def of_level(level: float) -> Array:
        relevant = lists.relevance >= level
        hits = counts_within(lists, relevant, cuts, workers)
        ranks = sums(lists, places, relevant * lists.rank, weights, cuts, workers)
        ahead = ranks - hits * (hits + 1) / 2  # others before each, added up
        value = 1.0 - ratio(ahead, (there - hits) * hits)
        return np.where(hits > 0, value, np.nan)

    return (
        Column(
            metric="Accuracy",
            parameters=variants(settings),
            k=ks,
            values=by_level(settings, of_level),
            reason="no relevant document retrieved",
        ),
    )


def _compatibility(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Compute rank-biased overlap with the most similar ideal list, relative to the maximum.

    A relevant document is in both lists from the larger of its two ranks on, so that it adds
    the weights of all depths from there.
    """
    n_queries = len(lists)
    good = lists.gold > 0
    query = np.repeat(np.arange(n_queries), np.diff(lists.gold_start))[good]
    golds = np.bincount(query, minlength=n_queries)
    gold_rank = np.where(lists.found[good] > 0, lists.found[good].astype(np.int64), 2**62)
    order = np.lexsort((gold_rank, -lists.gold[good], query))  # of equal relevance, as retrieved
    start = np.cumsum(golds) - golds
    ideal = np.arange(query.size) - start[query] + 1
    both = np.maximum(gold_rank[order], ideal)
    depth = np.maximum(lists.retrieved, golds)
    deepest = np.arange(1, int(depth.max(initial=0)) + 1)
    powers = np.cumprod(np.r_[1.0, np.full(max(deepest.size - 1, 0), AGREEING)])
    upto = np.r_[0.0, np.cumsum(powers[: deepest.size] / deepest)]
    end = upto[depth][query]
    within = both <= depth[query]
    shared = np.where(within, end - upto[np.where(within, both, 1) - 1], 0.0)
    total = np.bincount(query, shared, minlength=n_queries)
    most = np.bincount(query, end - upto[ideal - 1], minlength=n_queries)
    return (Column(metric="Compat", values=ratio(total, most)[:, None, None]),)


_USERS_MEASURES = {
    "user_inst": partial(_user, "INST", INST, WISH, False),
    "user_insq": _insq,
    "user_bpm": partial(_user, "BPM", BPM, WISH, True),
    "scaled_dcg": _scaled_dcg,
    "user_nerr8": partial(_user, "NERR8", NERR8, WISH, True),
    "user_nerr9": partial(_user, "NERR9", NERR9, WISH, True),
    "user_nerr10": partial(_user, "NERR10", NERR10, LOOKING_ON, False),
    "user_nerr11": partial(_user, "NERR11", NERR11, WISH, False),
    "accuracy": _accuracy,
    "compatibility": _compatibility,
}
_USERS_UNAVERAGED = frozenset(_USERS_MEASURES) - {"scaled_dcg", "user_insq"}
"""Needs whose mean over orders of equal scores has no closed form here."""
_USERS_SCALED = frozenset(_USERS_MEASURES) - {"accuracy", "compatibility"}
"""Needs that scale relevance by the highest of all judgments."""


MEASURES = {**_GAINS_MEASURES, **_USERS_MEASURES}


UNAVERAGED = _GAINS_UNAVERAGED | _USERS_UNAVERAGED


SCALED = _GAINS_SCALED | _USERS_SCALED
