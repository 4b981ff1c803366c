"""Metrics of graded relevance and of discounted ranks: nDCG and its kin, RBP, ERR."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from ....ingest.problems import count_of, listing
from ....kernels.retrieval import cascade, gain_costs, ndcg_means, rank_sums
from ....schemas.arrays import Array
from ....schemas.errors import InputError
from ....schemas.wording import option
from ..dialects import Settings
from ..ranked import (
    ABOVE_ZERO,
    CUT,
    LEVELS,
    Lists,
    Ranked,
    Weights,
    count,
    log_weights,
    metric,
    ratio,
)

GAINS = ("gains", "discount", "ideal")
"""Parameters of a metric of graded relevance."""


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


def refuse_endless(lists: Lists, settings: Settings, queries: pl.Series) -> None:
    """Raise InputError for judgments whose sum of gains overflows.

    Args:
        settings: uses ``gains``.
        queries: their ids, for messages.
    """
    if not lists.gold.size:
        return
    gain = gains_of(lists.gold, settings.gains)
    n_golds = np.diff(lists.gold_start)
    query = np.repeat(np.arange(n_golds.size), n_golds)
    endless = ~np.isfinite(np.bincount(query, gain, minlength=n_golds.size))
    if not bool(endless.any()):
        return
    overflowing = np.flatnonzero(endless)
    highest = float(lists.gold[endless[query]].max())
    tip = (
        "Use relevance grades of a few units, or remove"
        f" {option('gains', 'exponential')} (2^relevance - 1)."
        if settings.gains == "exponential"
        else "Bring relevance, or the gains given for it, to smaller numbers."
    )
    raise InputError(
        f"ground truths: column 'relevance' goes up to {highest:g}, and the gains of"
        f" {count_of(overflowing.size, 'query', 'queries')} exceed the range of float64:"
        f" {listing(queries.gather(overflowing[:5]), overflowing.size)}. {tip}",
        code="too_high",
        column="relevance",
        count=overflowing.size,
        highest=highest,
    )


def _descending(start: Array, gain: Array) -> Array:
    """Gains of each query from the highest down."""
    query = np.repeat(np.arange(start.size - 1), np.diff(start))
    return gain[np.lexsort((-gain, query))]


def _ideal(ranked: Ranked) -> tuple[Array, Array, int]:
    """Return the gains of the ideal order.

    Returns:
        int64 [q + 1], CSR offsets; float64 [g], descending within a query; the highest rank there
        or in the lists.
    """
    lists, settings = ranked.lists, ranked.settings
    start, gold = lists.gold_start, lists.gold
    repeated = settings.rules.ideal_repeats and bool(lists.repeats.any())
    if settings.ideal == "retrieved":
        start, gain = lists.start, _descending(lists.start, gains_of(lists.gain, settings.gains))
    else:
        if repeated:  # a repeated gold is relevant once more
            shift = np.r_[0, np.cumsum(lists.repeats)]
            every = np.ones(gold.size + int(shift[-1]))
            every[np.arange(gold.size) + np.repeat(shift[:-1], np.diff(start))] = gold
            start, gold = start + shift, every
        gain = gains_of(gold, settings.gains)
        if repeated or not isinstance(settings.gains, str):
            gain = _descending(start, gain)
    return start, gain, max(ranked.longest, int(np.diff(start).max(initial=0)), 1)


def _gain(ranked: Ranked) -> Array:
    return gains_of(ranked.lists.gain, ranked.settings.gains)


def _ndcg(ranked: Ranked) -> Array:
    start, ideal, longest = _ideal(ranked)
    weights, cuts = log_weights(longest, ranked.settings.discount), ranked.cuts
    dcg = ranked.sums(_gain(ranked), weights)
    first = np.arange(1, ideal.size + 1) - np.repeat(start[:-1], np.diff(start))
    rows = start, first, np.ones(ideal.size, np.int32), np.maximum(ideal, 0.0)
    of_ranks = weights.weight, weights.upto, cuts[None]
    best = ranked.each(
        rank_sums, cuts.shape, *rows, *of_ranks, start=start, divides=weights.divides
    )
    return ratio(dcg, best)


def _ndcg_means(ranked: Ranked) -> Array:
    """nDCG over the ranks of relevant documents, and of levels of the ideal order, [2, q]."""
    start, ideal, longest = _ideal(ranked)
    discount = log_weights(longest, ranked.settings.discount).weight
    lists = ranked.lists
    rows = lists.start, lists.rank, _gain(ranked), lists.retrieved
    return ranked.each(ndcg_means, (), *rows, start, ideal, discount, outs=2)


def _ndcg_at_levels(ranked: Ranked, level: float) -> Array:
    """The level decides only which queries have one: the others are 0 (trec_eval's m_Rndcg.c)."""
    values = _ndcg_means(ranked)[1]
    return values if level == ABOVE_ZERO else np.where(ranked.golds(level) > 0, values, 0.0)


def _gain_costs(ranked: Ranked) -> Array:
    start, ideal, _ = _ideal(ranked)
    lists = ranked.lists
    return ranked.each(gain_costs, (), lists.start, lists.rank, _gain(ranked), start, ideal)


def _binary_gain(ranked: Ranked, level: float) -> Array:
    lists, query = ranked.lists, ranked.query
    logs = log_weights(ranked.longest + 1, "log2(rank+1)").weight
    relevant = lists.gain >= level
    upto = np.r_[0, np.cumsum(relevant, dtype=np.int64)]
    good = upto[1:] - upto[lists.start[query]]
    # log2(2 + documents before it that are not relevant), which is the discount of that rank
    terms = np.where(relevant, 1.0 / logs[np.where(relevant, 1 + lists.rank - good, 1)], 0.0)
    return ratio(np.bincount(query, terms, minlength=len(lists)), ranked.golds(level))


def _persistent_weights(ranked: Ranked) -> Weights:
    """Every rank counts ``persistence`` times the one before; powers by repeated products."""
    powers = np.r_[1.0, np.full(ranked.longest, ranked.settings.persistence)]
    powers[1:2] = 1.0
    weight = np.cumprod(powers)
    return Weights(weight, np.r_[0.0, np.cumsum(weight[1:])])


def _rank_biased(ranked: Ranked, level: float | None = None) -> Array:
    """Without a level, documents count by relevance, scaled by the highest of the query."""
    lists = ranked.lists
    if level is None:
        highest = np.ones(len(lists))  # relevance is scaled only if it exceeds 1
        some = np.flatnonzero(np.diff(lists.gold_start))
        highest[some] = np.maximum(lists.gold[lists.gold_start[some]], 1.0)
        value: Array = np.maximum(lists.relevance, 0.0) / highest[ranked.query]
    else:
        value = lists.relevance >= level
    return (1.0 - ranked.settings.persistence) * ranked.sums(value, _persistent_weights(ranked))


def _rank_biased_residual(ranked: Ranked) -> Array:
    """Compute the maximum that unjudged documents, and those behind the list, could add to RBP."""
    lists = ranked.lists
    judged = lists.relevance >= 0
    judged_weight = ranked.sums(judged, _persistent_weights(ranked))[:, 0]
    values = 1.0 - (1.0 - ranked.settings.persistence) * judged_weight
    if ranked.settings.rules.graded_persistence:
        # 0 for lists without a gap, as in m_rbp_resid.c
        values[count(lists.start, judged) == lists.retrieved] = 0.0
    return values


def _expected_reciprocal_rank(ranked: Ranked) -> Array:
    lists, cuts, highest = ranked.lists, ranked.cuts, ranked.highest
    # (2^relevance - 1) / 2^highest without either power, which overflow beyond 2^1023
    satisfies = np.exp2(np.maximum(lists.relevance, 0.0) - highest) - np.exp2(-highest)
    return ranked.each(cascade, cuts.shape, lists.start, lists.rank, satisfies, cuts)


METRICS = (
    metric(
        "nDCG",
        _ndcg,
        "sum of gain / log2(rank + 1) over that of the ideal order, up to k",
        r"\frac{\sum_{i \le k} g_i / \log_2(i + 1)}{\sum_{i \le k} g^*_i / \log_2(i + 1)}",
        need="ndcg",
        source="Järvelin & Kekäläinen 2002; trec_eval 10 (ndcg, ndcg_cut)",
        params=("k", *GAINS),
        bare="both",
        aliases=("ndcg", "NDCG", "ndcg_cut"),
    ),
    metric(
        "DCG",
        lambda ranked: ranked.sums(
            _gain(ranked), log_weights(ranked.longest, ranked.settings.discount)
        ),
        "sum of gain / log2(rank + 1), up to k",
        r"\sum_{i \le k} \frac{g_i}{\log_2(i + 1)}",
        source="Järvelin & Kekäläinen 2002",
        params=("k", "gains", "discount"),
        range=(0.0, math.inf),
        bare="both",
        aliases=("dcg",),
    ),
    metric(
        "nDCGRel",
        lambda ranked: _ndcg_means(ranked)[0],
        "nDCG at the rank of each relevant document, averaged over all that are relevant; those"
        " not retrieved count the end of the list",
        r"\frac{1}{R} \left(\sum_{i \le m,\, g_i > 0} \text{nDCG}_i + (R - R_m)\,"
        r" \text{nDCG}_m\right)",
        need="ndcg_at_relevant",
        params=GAINS,
        averaged=False,
        aliases=("ndcg_rel",),
    ),
    metric(
        "RnDCG",
        _ndcg_at_levels,
        "nDCG averaged over the ranks at which the gain of the ideal order falls, and the end of"
        " the list; 0 without a relevant document at the level given",
        r"\frac{1}{|J|} \sum_{j \in J} \text{nDCG}_j",
        need="ndcg_at_levels",
        params=("relevance_levels", *GAINS),
        averaged=False,
        aliases=("Rndcg",),
    ),
    metric(
        "G",
        _gain_costs,
        "sum of gain / log2(2 + ideal cost so far - gain so far), over all ideal gain",
        r"\frac{1}{\sum_i g^*_i} \sum_{i \le m} \frac{g_i}{\log_2(2 + c_i - G_i)}",
        need="gain_costs",
        params=("gains", "ideal"),
        averaged=False,
    ),
    metric(
        "binG",
        _binary_gain,
        "sum of 1 / log2(2 + documents before that are not relevant) over relevant documents"
        " retrieved, divided by all that are relevant",
        r"\frac{1}{R} \sum_{i \le m} \frac{\text{rel}_i}{\log_2(2 + i - R_i)}",
        need="binary_gain",
        params=LEVELS,
        averaged=False,
    ),
    metric(
        "RBP",
        _rank_biased,
        "(1 - p) * sum of p^(rank - 1) over relevant documents, p the persistence",
        r"(1 - p) \sum_{i \le k} \text{rel}_i\, p^{i - 1}",
        need="rank_biased_precision",
        source="Moffat & Zobel 2008; trec_eval 10 in its dialect",
        params=(*CUT, "persistence"),
        unleveled=lambda rules: rules.graded_persistence,
        bare="whole",
        aliases=("rbp",),
    ),
    metric(
        "RBPResidual",
        _rank_biased_residual,
        "gain of RBP if every document that is unjudged or beyond the end of the list were"
        " relevant",
        r"\left(1 - (1 - p) \sum_{i \le m} [i \text{ judged}]\, p^{i - 1}\right)",
        need="rank_biased_residual",
        source="Moffat & Zobel 2008; trec_eval 10 in its dialect",
        params=("persistence",),
        aliases=("rbp_resid",),
        better="lower",
    ),
    metric(
        "ERR",
        _expected_reciprocal_rank,
        "sum over ranks of 1 / rank times the chance to stop there; a document satisfies with"
        " chance (2^relevance - 1) / 2^highest relevance of all judgments",
        r"\sum_{i \le k} \frac{s_i}{i} \prod_{j < i} (1 - s_j), \quad s_i = \frac{2^{\text{rel}_i}"
        r" - 1}{2^{\max \text{rel}}}",
        need="expected_reciprocal_rank",
        source="Chapelle et al. 2009",
        params=("k",),
        averaged=False,
        scaled=True,
        bare="both",
        aliases=("err",),
    ),
)
