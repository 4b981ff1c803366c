"""Metrics of relevant documents: their number up to cut-offs and in sets, their ranks, contexts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ....kernels.retrieval import (
    all_relevant,
    first_relevant,
    interpolated_precision,
    precision_sums,
    preferences,
)
from ....metrics.averages import MEANS, geometric_of, mean_of, sum_of
from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ..ranked import (
    ABOVE_ZERO,
    CUT,
    LEVELS,
    TREC,
    Measure,
    Ranked,
    count,
    log_weights,
    metric,
    ratio,
)

# Precision, recall and related ones, at cut-offs.

MULTIPLES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
"""Multiples of the number of relevant documents, as in trec_eval's Rprec_mult."""
RECALLS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Recall levels of interpolated precision."""


def _precision(ranked: Ranked, level: float) -> Array:
    return ratio(ranked.counts(ranked.lists.relevance >= level), ranked.depth)


def _recall(ranked: Ranked, level: float = ABOVE_ZERO) -> Array:
    return ratio(ranked.golds_within(level), ranked.golds(level)[:, None])


def _harmonic(precision: Array, recall: Array) -> Array:
    return ratio(2 * precision * recall, precision + recall)


def _relative_precision(ranked: Ranked, level: float) -> Array:
    possible = np.minimum(ranked.depth, ranked.golds(level)[:, None])
    return ratio(ranked.counts(ranked.lists.gain >= level), possible)


def _r_precision(ranked: Ranked, level: float) -> Array:
    golds = ranked.golds(level)[:, None]
    return ratio(ranked.counts(ranked.lists.gain >= level, golds), golds)[:, 0]


def _r_multiples(ranked: Ranked, level: float) -> Array:
    golds = ranked.golds(level)[:, None]
    cuts = (np.array(MULTIPLES) * golds + 0.9).astype(np.int64)  # m_Rprec_mult.c
    return ratio(ranked.counts(ranked.lists.gain >= level, cuts), cuts)


# Ranks of relevant documents: average precision, reciprocal rank, preferences.


def _average_precision(ranked: Ranked, level: float) -> Array:
    lists, places, cuts = ranked.lists, ranked.places, ranked.cuts
    over_retrieved = ranked.settings.rules.averaged_over_retrieved
    relevant = (lists.relevance if over_retrieved else lists.gain) >= level
    read = lists.start, places.first, places.size, relevant, cuts
    sums = ranked.each(precision_sums, cuts.shape, *read, over_retrieved=over_retrieved)
    return sums if over_retrieved else ratio(sums, ranked.golds(level)[:, None])


def _first(which: int, ranked: Ranked, level: float) -> Array:
    """Reciprocal rank (0) or success (1), up to each cut-off."""
    lists, places, cuts = ranked.lists, ranked.places, ranked.cuts
    read = lists.start, places.first, places.size, lists.relevance >= level, cuts
    return ranked.each(first_relevant, cuts.shape, *read, outs=2)[which]


def _preferences(which: int, ranked: Ranked, level: float) -> Array:
    """The measure bpref (0) or infAP (1)."""
    lists = ranked.lists
    others = count(lists.gold_start, (lists.gold >= 0) & (lists.gold < level))
    read = lists.start, lists.rank, lists.relevance, lists.gain, level, ranked.golds(level), others
    return ranked.each(preferences, (), *read, outs=2)[which]


def _at_recalls(ranked: Ranked, level: float) -> Array:
    """Interpolated precision, float64 [q, recall]."""
    lists = ranked.lists
    exact = np.array(RECALLS) * ranked.golds(level)[:, None]
    down = np.floor(exact)
    needed = (down + (exact - down >= 0.5)).astype(np.int64)  # C's lround
    read = lists.start, lists.rank, lists.gain >= level, needed
    return ranked.each(interpolated_precision, (len(RECALLS),), *read)


def _eleven_points(ranked: Ranked, level: float) -> Array:
    values = _at_recalls(ranked, level)
    total = np.zeros(len(values))
    for r in range(len(RECALLS) - 1, -1, -1):  # trec_eval's order of summation
        total += values[:, r]
    return total / len(RECALLS)


# Incomplete judgments, and how many there are.


# Whole sets, whatever the order, and plain counts.

_OfSet = Callable[[Array, Array, Array, Array], Array]
"""Formula of relevant retrieved, judgments found, retrieved, and relevant, float64 [q] each."""


def _set(formula: _OfSet, ranked: Ranked, level: float = ABOVE_ZERO) -> Array:
    lists = ranked.lists
    hits = count(lists.start, lists.relevance >= level)
    matched = count(lists.gold_start, (lists.gold >= level) & (lists.gold_rank > 0))
    counts = hits, matched, lists.retrieved, ranked.golds(level)
    return formula(*(one.astype(np.float64) for one in counts))


def _of_set(
    name: str, formula_of: _OfSet, definition: str, formula: str, alias: str, **rest: Any
) -> Metric:
    """A metric of whole sets; ``alias`` is its name in trec_eval."""
    fields = {"source": f"{TREC} ({alias})", "params": LEVELS, "aliases": (alias,), **rest}
    return metric(name, partial(_set, formula_of), definition, formula, **fields)


def _nonrelevant_judged(ranked: Ranked, level: float) -> Array:
    lists = ranked.lists
    return count(lists.start, (lists.relevance >= 0) & (lists.relevance < level)).astype(np.float64)


def _precision_recall_f1(
    hits: Array, matched_golds: Array, retrieved: Array, golds: Array
) -> Array:
    precision, recall = ratio(hits, retrieved), ratio(matched_golds, golds)
    return np.stack([precision, recall, _harmonic(precision, recall)], axis=1)


# Long-memory and RAG evaluations: relevant is whatever is above 0.


def _recall_all(ranked: Ranked) -> Array:
    lists, places, cuts = ranked.lists, ranked.places, ranked.cuts
    golds = lists.relevant
    if lists.ties is None:
        retrieved = ranked.golds_within(ABOVE_ZERO)
        values = ((retrieved == golds[:, None]) & (golds > 0)[:, None]).astype(np.float64)
    else:
        read = lists.start, places.first, places.size, lists.gain > 0, golds, cuts
        values = ranked.each(all_relevant, cuts.shape, *read)
    if ranked.settings.rules.repeats_missed:
        values[lists.repeats > 0] = 0.0
    return values


def _ndcg_any(ranked: Ranked) -> Array:
    lists = ranked.lists
    longest = max(ranked.longest, int(np.diff(lists.start).max(initial=0)), 1)
    weights = log_weights(longest, "log2(rank)")
    relevant = lists.relevance > 0
    best = weights.upto[np.minimum(count(lists.start, relevant)[:, None], ranked.cuts)]
    values = ratio(ranked.sums(relevant, weights), best)
    return np.where(lists.relevant[:, None] > 0, values, 0.0)


# Precision and recall of contexts as ragas counts them; undefined if the denominator is 0.


def _share_of(ranked: Ranked, total: Array) -> Array:
    """Return distinct relevant documents or texts retrieved, over a total."""
    lists = ranked.lists
    retrieved = count(lists.gold_start, (lists.gold_rank > 0) & (lists.gold > 0))
    return np.where(total > 0, ratio(retrieved, total), np.nan)


def _id_precision(ranked: Ranked) -> Array:
    lists = ranked.lists
    return _share_of(ranked, lists.retrieved - (0 if lists.again is None else lists.again))


def _context_recall(ranked: Ranked) -> Array:
    return _share_of(ranked, ranked.lists.relevant)


def _text_precision(ranked: Ranked) -> Array:
    """Mean of the precision at the rank of every retrieved text that matches."""
    lists, query = ranked.lists, ranked.query
    relevant = lists.relevance > 0
    upto = np.r_[0, np.cumsum(relevant)]
    terms = np.where(relevant, (upto[1:] - upto[lists.start[query]]) / lists.rank, 0.0)
    total = np.bincount(query, terms, minlength=len(lists))
    value = ratio(total, count(lists.start, relevant) + ranked.settings.rules.precision_epsilon)
    return np.where(lists.relevant > 0, value, np.nan)


_REMEM = "REMem; LongMemEval"
_RAGAS = "ragas 0.4.3"
_NO_RELEVANT = "no relevant document"
_COUNT: dict[str, Any] = {"range": (0.0, math.inf), "better": "neither"}

METRICS = (
    metric(
        "MAP",
        _average_precision,
        "precision at the rank of each relevant document up to k, summed, divided by all that are"
        " relevant",
        r"\frac{1}{R} \sum_{i \le k} \text{rel}_i \frac{R_i}{i}",
        need="average_precision",
        source="trec_eval 10 (map, map_cut)",
        params=CUT,
        bare="whole",
        aliases=("map", "AP", "map_cut"),
    ),
    metric(
        "GMAP",
        None,
        "geometric mean over queries of average precision, at least 0.00001 each",
        r"\exp\left(\frac{1}{n} \sum_q \ln \max(\text{AP}_q, 10^{-5})\right)",
        need="average_precision",
        source="trec_eval 10 (gm_map); Robertson 2006",
        params=CUT,
        bare="whole",
        aliases=("gm_map",),
        compute=geometric_of("average_precision", "GMAP"),
    ),
    metric(
        "MRR",
        lambda ranked, level: _first(0, ranked, level)[:, 0],
        "1 / rank of the first relevant document, 0 if there is none up to k",
        MEANS["q"] + r"\frac{1}{r}",
        need="reciprocal_rank",
        source="trec_eval 10 (recip_rank); Voorhees 1999",
        params=CUT,
        cut=False,
        bare="whole",
        aliases=("recip_rank", "RR", "mrr"),
        needs=("reciprocal_rank", "reciprocal_rank_cut"),
        compute=mean_of("reciprocal_rank_cut", "reciprocal_rank"),
        measures={
            "reciprocal_rank_cut": Measure(
                name="MRR", of=partial(_first, 0), params=CUT, cut=True, whole=False
            )
        },
    ),
    metric(
        "P",
        _precision,
        "relevant documents up to k / k",
        r"\frac{R_k}{k}",
        need="precision",
        params=CUT,
        aliases=("Precision", "precision"),
    ),
    metric(
        "Recall",
        _recall,
        "relevant documents up to k / all that are relevant",
        r"\frac{R_k}{R}",
        params=CUT,
        aliases=("R", "recall"),
    ),
    metric(
        "F1",
        lambda ranked, level: _harmonic(_precision(ranked, level), _recall(ranked, level)),
        "harmonic mean of P and Recall at k",
        r"\frac{2 R_k}{k + R}",
        source="van Rijsbergen 1979",
        params=CUT,
        aliases=("f1",),
    ),
    metric(
        "Success",
        partial(_first, 1),
        "1 if a relevant document is among the first k, else 0",
        r"[R_k > 0]",
        params=CUT,
        aliases=("success", "hit_rate", "HitRate"),
        trials="scored",
    ),
    metric(
        "RelativePrecision",
        _relative_precision,
        "relevant documents up to k / min(k, all that are relevant)",
        r"\frac{R_k}{\min(k, R)}",
        source="trec_eval 10 (relative_P)",
        params=CUT,
        aliases=("relative_P",),
    ),
    metric(
        "RPrecision",
        _r_precision,
        "relevant documents among the first R / R, with R documents relevant",
        r"\frac{R_i}{i}, \quad i = R",
        source="trec_eval 10 (Rprec)",
        params=LEVELS,
        aliases=("Rprec", "r_precision", "r-precision"),
    ),
    metric(
        "RPrecisionMult",
        _r_multiples,
        "precision at 0.2, 0.4, ... 2.0 times the number of relevant documents",
        r"\frac{R_i}{i}, \quad i = \lceil \rho R \rceil, \quad \rho = 0.2, 0.4, \ldots, 2",
        need="r_precision_multiples",
        source="trec_eval 10 (Rprec_mult)",
        params=LEVELS,
        parts=[("RPrecisionMult", {"multiple": one}) for one in MULTIPLES],
        aliases=("Rprec_mult",),
    ),
    metric(
        "InterpolatedPrecision",
        _at_recalls,
        "highest precision at or behind the rank that reaches a recall of 0.0, 0.1, ... 1.0",
        r"\max_{j :\, R_j \ge \rho R} \frac{R_j}{j}, \quad \rho = 0, 0.1, \ldots, 1",
        source="trec_eval 10 (iprec_at_recall)",
        params=LEVELS,
        parts=[("InterpolatedPrecision", {"recall": one}) for one in RECALLS],
        averaged=False,
        aliases=("iprec_at_recall", "IPrec"),
    ),
    metric(
        "ElevenPointPrecision",
        _eleven_points,
        "mean of InterpolatedPrecision over its eleven recalls",
        r"\frac{1}{11} \sum_{\rho \in \{0, 0.1, \ldots, 1\}} \max_{j :\, R_j \ge \rho R}"
        r" \frac{R_j}{j}",
        source="trec_eval 10 (11pt_avg)",
        params=LEVELS,
        averaged=False,
        aliases=("11pt_avg",),
    ),
    metric(
        "bpref",
        partial(_preferences, 0),
        "mean over relevant documents of 1 - judged non-relevant ones ahead / min(R, N), with R"
        " relevant and N judged non-relevant",
        r"\frac{1}{R} \sum_{i \le m} \text{rel}_i \left(1 - \frac{\min(a_i, w)}{w}\right), \quad"
        r" w = \min(R, N)",
        source="trec_eval 10; Buckley & Voorhees 2004",
        params=LEVELS,
        averaged=False,
        aliases=("Bpref",),
    ),
    metric(
        "GMBpref",
        None,
        "geometric mean over queries of bpref, at least 0.00001 each",
        r"\exp\left(\frac{1}{n} \sum_q \ln \max(\text{bpref}_q, 10^{-5})\right)",
        need="bpref",
        source="trec_eval 10 (gm_bpref)",
        params=LEVELS,
        aliases=("gm_bpref",),
        compute=geometric_of("bpref", "GMBpref"),
    ),
    metric(
        "infAP",
        partial(_preferences, 1),
        "average precision estimated from a pool of which a part was judged; negative relevance"
        " marks the rest of the pool",
        r"\frac{1}{R} \sum_{i \le m} \text{rel}_i\, \frac{1}{i} \left(1 + z_i\, \frac{h_i +"
        r" \varepsilon}{h_i + a_i + 2 \varepsilon}\right)",
        need="inferred_average_precision",
        source="trec_eval 10; Yilmaz & Aslam 2006",
        params=LEVELS,
        averaged=False,
    ),
    metric(
        "Judged",
        lambda ranked: ratio(
            ranked.counts(np.ones(ranked.lists.rank.size, bool)), ranked.retrieved_counts
        ),
        "documents up to k that are in the judgments, whatever their relevance / those retrieved"
        " up to k",
        r"\frac{1}{\min(k, m)} \sum_{i \le k} [i \text{ judged}]",
        source="ir-measures 0.4.3",
        params=("k",),
        better="neither",
        aliases=("judged",),
    ),
    metric(
        "Unjudged",
        lambda ranked: ratio(
            ranked.retrieved_counts - ranked.counts(ranked.lists.relevance >= 0), ranked.depth
        ),
        "documents retrieved up to k without a judgment, or with a negative one / k",
        r"\frac{1}{k} \sum_{i \le k} [i \text{ unjudged}]",
        source="trec_eval 10 (unj)",
        params=("k",),
        better="neither",
        aliases=("unj",),
    ),
    _of_set(
        "SetPrecision",
        lambda hits, matched, retrieved, golds: ratio(hits, retrieved),
        "relevant documents retrieved / retrieved",
        r"\frac{R_m}{m}",
        "set_P",
        aliases=("set_P", "SetP"),
    ),
    _of_set(
        "SetRecall",
        lambda hits, matched, retrieved, golds: ratio(matched, golds),
        "relevant documents retrieved / all that are relevant",
        r"\frac{R_m}{R}",
        "set_recall",
        aliases=("set_recall", "SetR"),
    ),
    _of_set(
        "SetF",
        lambda hits, matched, retrieved, golds: _harmonic(
            ratio(hits, retrieved), ratio(matched, golds)
        ),
        "harmonic mean of SetPrecision and SetRecall",
        r"\frac{2 R_m}{m + R}",
        "set_F",
    ),
    _of_set(
        "SetMAP",
        lambda hits, matched, retrieved, golds: ratio(hits * matched, retrieved * golds),
        "SetPrecision * SetRecall",
        r"\frac{R_m}{m} \cdot \frac{R_m}{R}",
        "set_map",
        aliases=("set_map", "SetAP"),
    ),
    _of_set(
        "SetRelativePrecision",
        lambda hits, matched, retrieved, golds: ratio(matched, np.minimum(retrieved, golds)),
        "relevant documents retrieved / min(retrieved, all that are relevant)",
        r"\frac{R_m}{\min(m, R)}",
        "set_relative_P",
    ),
    _of_set(
        "Utility",
        lambda hits, matched, retrieved, golds: hits - (retrieved - hits),
        "relevant documents retrieved - others retrieved",
        r"\left(R_m - (m - R_m)\right)",
        "utility",
        range=(-math.inf, math.inf),
    ),
    metric(
        "NumRetrieved",
        lambda ranked: ranked.lists.retrieved.astype(np.float64),
        "documents retrieved, summed over queries",
        r"\sum_q m",
        source="trec_eval 10 (num_ret)",
        aliases=("num_ret", "NumRet"),
        compute=sum_of("num_retrieved"),
        **_COUNT,
    ),
    _of_set(
        "NumRelevant",
        lambda hits, matched, retrieved, golds: golds,
        "documents judged relevant, summed over queries",
        r"\sum_q R",
        "num_rel",
        aliases=("num_rel", "NumRel"),
        compute=sum_of("num_relevant"),
        **_COUNT,
    ),
    _of_set(
        "NumRelevantRetrieved",
        lambda hits, matched, retrieved, golds: hits,
        "relevant documents retrieved, summed over queries",
        r"\sum_q R_m",
        "num_rel_ret",
        aliases=("num_rel_ret", "NumRelRet"),
        compute=sum_of("num_relevant_retrieved"),
        **_COUNT,
    ),
    metric(
        "NumNonrelevantJudgedRetrieved",
        _nonrelevant_judged,
        "documents retrieved that were judged not relevant, summed over queries",
        r"\sum_q \sum_{i \le m} [i \text{ judged, not relevant}]",
        source="trec_eval 10 (num_nonrel_judged_ret)",
        params=LEVELS,
        aliases=("num_nonrel_judged_ret",),
        compute=sum_of("num_nonrelevant_judged_retrieved"),
        **_COUNT,
    ),
    metric(
        "RetrievalRecall",
        _recall,
        "relevant documents among the first k / all that are relevant",
        r"\frac{R_k}{R}",
        source=_REMEM,
        params=("k",),
        lowest_k=0,
    ),
    metric(
        "RetrievalRecallAll",
        _recall_all,
        "1 if all relevant documents are among the first k, else 0",
        r"[R_k = R]",
        source=_REMEM,
        params=("k",),
        lowest_k=0,
        aliases=("Recall_all",),
    ),
    metric(
        "RetrievalNDCGAny",
        _ndcg_any,
        "relevance of rank 1 plus sum of relevance / log2(rank) behind it, over that of the best"
        " order of the retrieved documents; relevance is 0 or 1",
        r"\frac{\text{rel}_1 + \sum_{i = 2}^{k} \text{rel}_i / \log_2 i}{1 + \sum_{i ="
        r" 2}^{\min(k, R_m)} 1 / \log_2 i}",
        source=_REMEM,
        params=("k",),
        lowest_k=0,
        aliases=("NDCG_any",),
    ),
    metric(
        "PrecisionRecallF1",
        partial(_set, _precision_recall_f1),
        "Precision: retrieved that are relevant / retrieved; Recall: relevant that are found /"
        " relevant; F1: their harmonic mean; a row each",
        r"\frac{h}{m}, \quad \frac{1}{n} \sum_q \frac{f}{R}, \quad \frac{1}{n} \sum_q"
        r" \frac{2 h f}{h R + f m}",
        source="continuous-eval",
        parts=[("Precision", {}), ("Recall", {}), ("F1", {})],
    ),
    metric(
        "TokenCount",
        lambda ranked: np.asarray(ranked.lists.tokens),
        "characters of all retrieved texts, joined by line breaks, / 4, rounded down",
        r"\left\lfloor \frac{\text{characters}}{4} \right\rfloor",
        source="continuous-eval (approx)",
        averaged=False,
        **_COUNT,
    ),
    metric(
        "IDBasedContextPrecision",
        _id_precision,
        "distinct relevant documents retrieved / distinct documents retrieved",
        r"\frac{|D \cap G|}{|D|}",
        need="id_context_precision",
        source=_RAGAS,
        reason="no document was retrieved",
        aliases=("id_based_context_precision",),
    ),
    metric(
        "IDBasedContextRecall",
        _context_recall,
        "distinct relevant documents retrieved / all that are relevant",
        r"\frac{|D \cap G|}{|G|}",
        need="id_context_recall",
        source=_RAGAS,
        reason=_NO_RELEVANT,
        aliases=("id_based_context_recall",),
    ),
    metric(
        "NonLLMContextPrecision",
        _text_precision,
        "mean of the precision at the rank of every retrieved text that matches",
        r"\frac{1}{R_m} \sum_{i \le m} \text{rel}_i \frac{R_i}{i}",
        need="text_context_precision",
        source=_RAGAS,
        reason=_NO_RELEVANT,
        averaged=False,
        aliases=("NonLLMContextPrecisionWithReference", "non_llm_context_precision_with_reference"),
    ),
    metric(
        "NonLLMContextRecall",
        _context_recall,
        "relevant texts that some retrieved text matches / all that are relevant",
        r"\frac{f}{R}",
        need="text_context_recall",
        source=_RAGAS,
        reason=_NO_RELEVANT,
        aliases=("non_llm_context_recall",),
    ),
)
