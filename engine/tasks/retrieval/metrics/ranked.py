"""Metrics of ranked lists."""

from __future__ import annotations

import math
from typing import Any

from ....metrics.averages import geometric_of, mean_of, sum_of
from ....metrics.registry import Metric

# Shared parts of retrieval metrics.

TREC = "trec_eval 10"
MEAN = r"\frac{1}{n} \sum_q "
"""Over queries, in TeX."""


def metric(
    name: str,
    *needs: str,
    definition: str,
    formula: str,
    source: str = TREC,
    params: tuple[str, ...] = (),
    **rest: Any,
) -> Metric:
    """Define a metric, by default the mean over queries of its single need."""
    if "compute" not in rest:
        formula, rest["compute"] = MEAN + formula, mean_of(needs[0])
    return Metric(
        name=name,
        task="retrieval",
        frame="metrics",
        needs=needs,
        params=params,
        definition=definition,
        formula=formula,
        source=source,
        **rest,
    )


CUT = ("k", "relevance_levels")
"""Parameters of a metric of relevant documents at a cut-off."""
LEVELS = ("relevance_levels",)
"""Parameters of a metric of relevant documents."""
GAINS = ("gains", "discount", "ideal")
"""Parameters of a metric of graded relevance."""


# Retrieval by graded relevance and by discounted ranks.

_GAINS_METRICS = (
    metric(
        "nDCG",
        "ndcg",
        definition="sum of gain / log2(rank + 1) over that of the ideal order, up to k",
        formula=r"\frac{\sum_{i \le k} g_i / \log_2(i + 1)}{\sum_{i \le k} g^*_i / \log_2(i +"
        r" 1)}",
        source="Järvelin & Kekäläinen 2002; trec_eval 10 (ndcg, ndcg_cut)",
        params=("k", *GAINS),
        bare="both",
        aliases=("ndcg", "NDCG", "ndcg_cut"),
    ),
    metric(
        "DCG",
        "dcg",
        definition="sum of gain / log2(rank + 1), up to k",
        formula=r"\sum_{i \le k} \frac{g_i}{\log_2(i + 1)}",
        source="Järvelin & Kekäläinen 2002",
        params=("k", "gains", "discount"),
        range=(0.0, math.inf),
        bare="both",
        aliases=("dcg",),
    ),
    metric(
        "nDCGRel",
        "ndcg_at_relevant",
        definition="nDCG at the rank of each relevant document, averaged over all that are"
        " relevant; those not retrieved count the end of the list",
        formula=r"\frac{1}{R} \left(\sum_{i \le m,\, g_i > 0} \text{nDCG}_i + (R - R_m)\,"
        r" \text{nDCG}_m\right)",
        params=GAINS,
        aliases=("ndcg_rel",),
    ),
    metric(
        "RnDCG",
        "ndcg_at_levels",
        definition="nDCG averaged over the ranks at which the gain of the ideal order falls, and"
        " the end of the list; 0 without a relevant document at the level given",
        formula=r"\frac{1}{|J|} \sum_{j \in J} \text{nDCG}_j",
        params=("relevance_levels", *GAINS),
        aliases=("Rndcg",),
    ),
    metric(
        "G",
        "gain_costs",
        definition="sum of gain / log2(2 + ideal cost so far - gain so far), over all ideal gain",
        formula=r"\frac{1}{\sum_i g^*_i} \sum_{i \le m} \frac{g_i}{\log_2(2 + c_i - G_i)}",
        params=("gains", "ideal"),
    ),
    metric(
        "binG",
        "binary_gain",
        definition="sum of 1 / log2(2 + documents before that are not relevant) over relevant"
        " documents retrieved, divided by all that are relevant",
        formula=r"\frac{1}{R} \sum_{i \le m} \frac{\text{rel}_i}{\log_2(2 + i - R_i)}",
        params=("relevance_levels",),
    ),
    metric(
        "RBP",
        "rank_biased_precision",
        definition="(1 - p) * sum of p^(rank - 1) over relevant documents, p the persistence",
        formula=r"(1 - p) \sum_{i \le k} \text{rel}_i\, p^{i - 1}",
        source="Moffat & Zobel 2008; trec_eval 10 in its dialect",
        params=(*CUT, "persistence"),
        bare="whole",
        aliases=("rbp",),
    ),
    metric(
        "RBPResidual",
        "rank_biased_residual",
        definition="gain of RBP if every document that is unjudged or beyond the end of the list"
        " were relevant",
        formula=r"\left(1 - (1 - p) \sum_{i \le m} [i \text{ judged}]\, p^{i - 1}\right)",
        source="Moffat & Zobel 2008; trec_eval 10 in its dialect",
        params=("persistence",),
        aliases=("rbp_resid",),
        better="lower",
    ),
    metric(
        "ERR",
        "expected_reciprocal_rank",
        definition="sum over ranks of 1 / rank times the chance to stop there; a document"
        " satisfies with chance (2^relevance - 1) / 2^highest relevance of all judgments",
        formula=r"\sum_{i \le k} \frac{s_i}{i} \prod_{j < i} (1 - s_j), \quad s_i ="
        r" \frac{2^{\text{rel}_i} - 1}{2^{\max \text{rel}}}",
        source="Chapelle et al. 2009",
        params=("k",),
        bare="both",
        aliases=("err",),
    ),
)


# Retrieval by relevant documents and their ranks.

_PRECISION_METRICS = (
    metric(
        "MAP",
        "average_precision",
        definition="precision at the rank of each relevant document up to k, summed, divided by"
        " all that are relevant",
        formula=r"\frac{1}{R} \sum_{i \le k} \text{rel}_i \frac{R_i}{i}",
        source="trec_eval 10 (map, map_cut)",
        params=CUT,
        bare="whole",
        aliases=("map", "AP", "map_cut"),
    ),
    metric(
        "GMAP",
        "average_precision",
        definition="geometric mean over queries of average precision, at least 0.00001 each",
        formula=r"\exp\left(\frac{1}{n} \sum_q \ln \max(\text{AP}_q, 10^{-5})\right)",
        source="trec_eval 10 (gm_map); Robertson 2006",
        params=CUT,
        bare="whole",
        aliases=("gm_map",),
        compute=geometric_of("average_precision", "GMAP"),
    ),
    metric(
        "MRR",
        "reciprocal_rank",
        "reciprocal_rank_cut",
        definition="1 / rank of the first relevant document, 0 if there is none up to k",
        formula=r"\frac{1}{n} \sum_q \frac{1}{r}",
        source="trec_eval 10 (recip_rank); Voorhees 1999",
        params=CUT,
        bare="whole",
        aliases=("recip_rank", "RR", "mrr"),
        compute=mean_of("reciprocal_rank_cut", "reciprocal_rank"),
    ),
    metric(
        "P",
        "precision",
        definition="relevant documents up to k / k",
        formula=r"\frac{R_k}{k}",
        params=CUT,
        aliases=("Precision", "precision"),
    ),
    metric(
        "Recall",
        "recall",
        definition="relevant documents up to k / all that are relevant",
        formula=r"\frac{R_k}{R}",
        params=CUT,
        aliases=("R", "recall"),
    ),
    metric(
        "F1",
        "f1",
        definition="harmonic mean of P and Recall at k",
        formula=r"\frac{2 R_k}{k + R}",
        source="van Rijsbergen 1979",
        params=CUT,
        aliases=("f1",),
    ),
    metric(
        "Success",
        "success",
        definition="1 if a relevant document is among the first k, else 0",
        formula=r"[R_k > 0]",
        params=CUT,
        aliases=("success", "hit_rate", "HitRate"),
        trials="scored",
    ),
    metric(
        "RelativePrecision",
        "relative_precision",
        definition="relevant documents up to k / min(k, all that are relevant)",
        formula=r"\frac{R_k}{\min(k, R)}",
        source="trec_eval 10 (relative_P)",
        params=CUT,
        aliases=("relative_P",),
    ),
    metric(
        "RPrecision",
        "r_precision",
        definition="relevant documents among the first R / R, with R documents relevant",
        formula=r"\frac{R_i}{i}, \quad i = R",
        source="trec_eval 10 (Rprec)",
        params=LEVELS,
        aliases=("Rprec", "r_precision", "r-precision"),
    ),
    metric(
        "RPrecisionMult",
        "r_precision_multiples",
        definition="precision at 0.2, 0.4, ... 2.0 times the number of relevant documents",
        formula=r"\frac{R_i}{i}, \quad i = \lceil \rho R \rceil, \quad \rho = 0.2, 0.4, \ldots, 2",
        source="trec_eval 10 (Rprec_mult)",
        params=LEVELS,
        aliases=("Rprec_mult",),
    ),
    metric(
        "InterpolatedPrecision",
        "interpolated_precision",
        definition="highest precision at or behind the rank that reaches a recall of 0.0, 0.1, ..."
        " 1.0",
        formula=r"\max_{j :\, R_j \ge \rho R} \frac{R_j}{j}, \quad \rho = 0, 0.1, \ldots, 1",
        source="trec_eval 10 (iprec_at_recall)",
        params=LEVELS,
        aliases=("iprec_at_recall", "IPrec"),
    ),
    metric(
        "ElevenPointPrecision",
        "eleven_point_precision",
        definition="mean of InterpolatedPrecision over its eleven recalls",
        formula=r"\frac{1}{11} \sum_{\rho \in \{0, 0.1, \ldots, 1\}} \max_{j :\, R_j \ge \rho R}"
        r" \frac{R_j}{j}",
        source="trec_eval 10 (11pt_avg)",
        params=LEVELS,
        aliases=("11pt_avg",),
    ),
)


# Retrieval by incomplete judgments, and how many there are.

_JUDGMENTS_METRICS = (
    metric(
        "bpref",
        "bpref",
        definition="mean over relevant documents of 1 - judged non-relevant ones ahead / min(R, N),"
        " with R relevant and N judged non-relevant",
        formula=r"\frac{1}{R} \sum_{i \le m} \text{rel}_i \left(1 - \frac{\min(a_i,"
        r" w)}{w}\right), \quad w = \min(R, N)",
        source="trec_eval 10; Buckley & Voorhees 2004",
        params=LEVELS,
        aliases=("Bpref",),
    ),
    metric(
        "GMBpref",
        "bpref",
        definition="geometric mean over queries of bpref, at least 0.00001 each",
        formula=r"\exp\left(\frac{1}{n} \sum_q \ln \max(\text{bpref}_q, 10^{-5})\right)",
        source="trec_eval 10 (gm_bpref)",
        params=LEVELS,
        aliases=("gm_bpref",),
        compute=geometric_of("bpref", "GMBpref"),
    ),
    metric(
        "infAP",
        "inferred_average_precision",
        definition="average precision estimated from a pool of which a part was judged; negative"
        " relevance marks the rest of the pool",
        formula=r"\frac{1}{R} \sum_{i \le m} \text{rel}_i\, \frac{1}{i} \left(1 + z_i\,"
        r" \frac{h_i + \varepsilon}{h_i + a_i + 2 \varepsilon}\right)",
        source="trec_eval 10; Yilmaz & Aslam 2006",
        params=LEVELS,
    ),
    metric(
        "Judged",
        "judged",
        definition="documents up to k that are in the judgments, whatever their relevance / those"
        " retrieved up to k",
        formula=r"\frac{1}{\min(k, m)} \sum_{i \le k} [i \text{ judged}]",
        source="ir-measures 0.4.3",
        params=("k",),
        better="neither",
        aliases=("judged",),
    ),
    metric(
        "Unjudged",
        "unjudged",
        definition="documents retrieved up to k without a judgment, or with a negative one / k",
        formula=r"\frac{1}{k} \sum_{i \le k} [i \text{ unjudged}]",
        source="trec_eval 10 (unj)",
        params=("k",),
        better="neither",
        aliases=("unj",),
    ),
)


# Retrieval by whole sets, whatever the order, and plain counts.


def _sum(name: str, need: str, definition: str, alias: str, **rest: Any) -> Metric:
    """A count that is added up over queries."""
    return metric(
        name,
        need,
        definition=f"{definition}, summed over queries",
        source=f"trec_eval 10 ({alias})",
        range=(0.0, math.inf),
        better="neither",
        compute=sum_of(need),
        **rest,
    )


_SETS_METRICS = (
    metric(
        "SetPrecision",
        "set_precision",
        definition="relevant documents retrieved / retrieved",
        formula=r"\frac{R_m}{m}",
        source="trec_eval 10 (set_P)",
        params=LEVELS,
        aliases=("set_P", "SetP"),
    ),
    metric(
        "SetRecall",
        "set_recall",
        definition="relevant documents retrieved / all that are relevant",
        formula=r"\frac{R_m}{R}",
        source="trec_eval 10 (set_recall)",
        params=LEVELS,
        aliases=("set_recall", "SetR"),
    ),
    metric(
        "SetF",
        "set_f",
        definition="harmonic mean of SetPrecision and SetRecall",
        formula=r"\frac{2 R_m}{m + R}",
        source="trec_eval 10 (set_F)",
        params=LEVELS,
        aliases=("set_F",),
    ),
    metric(
        "SetMAP",
        "set_map",
        definition="SetPrecision * SetRecall",
        formula=r"\frac{R_m}{m} \cdot \frac{R_m}{R}",
        source="trec_eval 10 (set_map)",
        params=LEVELS,
        aliases=("set_map", "SetAP"),
    ),
    metric(
        "SetRelativePrecision",
        "set_relative_precision",
        definition="relevant documents retrieved / min(retrieved, all that are relevant)",
        formula=r"\frac{R_m}{\min(m, R)}",
        source="trec_eval 10 (set_relative_P)",
        params=LEVELS,
        aliases=("set_relative_P",),
    ),
    metric(
        "Utility",
        "utility",
        definition="relevant documents retrieved - others retrieved",
        formula=r"\left(R_m - (m - R_m)\right)",
        source="trec_eval 10 (utility)",
        params=LEVELS,
        range=(-math.inf, math.inf),
        aliases=("utility",),
    ),
    _sum(
        "NumRetrieved",
        "num_retrieved",
        "documents retrieved",
        "num_ret",
        aliases=("num_ret", "NumRet"),
        formula=r"\sum_q m",
    ),
    _sum(
        "NumRelevant",
        "num_relevant",
        "documents judged relevant",
        "num_rel",
        params=LEVELS,
        aliases=("num_rel", "NumRel"),
        formula=r"\sum_q R",
    ),
    _sum(
        "NumRelevantRetrieved",
        "num_relevant_retrieved",
        "relevant documents retrieved",
        "num_rel_ret",
        params=LEVELS,
        aliases=("num_rel_ret", "NumRelRet"),
        formula=r"\sum_q R_m",
    ),
    _sum(
        "NumNonrelevantJudgedRetrieved",
        "num_nonrelevant_judged_retrieved",
        "documents retrieved that were judged not relevant",
        "num_nonrel_judged_ret",
        params=LEVELS,
        aliases=("num_nonrel_judged_ret",),
        formula=r"\sum_q \sum_{i \le m} [i \text{ judged, not relevant}]",
    ),
)


# Retrieval as users of long-memory and RAG evaluations know it.

_REMEM = "REMem; LongMemEval"

_TEXTS_METRICS = (
    metric(
        "RetrievalRecall",
        "retrieval_recall",
        definition="relevant documents among the first k / all that are relevant",
        formula=r"\frac{R_k}{R}",
        source=_REMEM,
        params=("k",),
        lowest_k=0,
    ),
    metric(
        "RetrievalRecallAll",
        "retrieval_recall_all",
        aliases=("Recall_all",),
        definition="1 if all relevant documents are among the first k, else 0",
        formula=r"[R_k = R]",
        source=_REMEM,
        params=("k",),
        lowest_k=0,
    ),
    metric(
        "RetrievalNDCGAny",
        "retrieval_ndcg_any",
        aliases=("NDCG_any",),
        definition="relevance of rank 1 plus sum of relevance / log2(rank) behind it, over that of"
        " the best order of the retrieved documents; relevance is 0 or 1",
        formula=r"\frac{\text{rel}_1 + \sum_{i = 2}^{k} \text{rel}_i / \log_2 i}{1 + \sum_{i ="
        r" 2}^{\min(k, R_m)} 1 / \log_2 i}",
        source=_REMEM,
        params=("k",),
        lowest_k=0,
    ),
    metric(
        "PrecisionRecallF1",
        "precision_recall_f1",
        definition="Precision: retrieved that are relevant / retrieved; Recall: relevant that are"
        " found / relevant; F1: their harmonic mean; a row each",
        formula=r"\frac{h}{m}, \quad \frac{1}{n} \sum_q \frac{f}{R}, \quad \frac{1}{n} \sum_q"
        r" \frac{2 h f}{h R + f m}",
        source="continuous-eval",
    ),
    metric(
        "TokenCount",
        "token_count",
        definition="characters of all retrieved texts, joined by line breaks, / 4, rounded down",
        formula=r"\left\lfloor \frac{\text{characters}}{4} \right\rfloor",
        source="continuous-eval (approx)",
        range=(0.0, float("inf")),
        better="neither",
    ),
)


# Retrieval as users of ragas know it, without a language model.

_RAGAS = "ragas 0.4.3"

_CONTEXTS_METRICS = (
    metric(
        "IDBasedContextPrecision",
        "id_context_precision",
        definition="distinct relevant documents retrieved / distinct documents retrieved",
        formula=r"\frac{|D \cap G|}{|D|}",
        source=_RAGAS,
        aliases=("id_based_context_precision",),
    ),
    metric(
        "IDBasedContextRecall",
        "id_context_recall",
        definition="distinct relevant documents retrieved / all that are relevant",
        formula=r"\frac{|D \cap G|}{|G|}",
        source=_RAGAS,
        aliases=("id_based_context_recall",),
    ),
    metric(
        "NonLLMContextPrecision",
        "text_context_precision",
        definition="mean of the precision at the rank of every retrieved text that matches",
        formula=r"\frac{1}{R_m} \sum_{i \le m} \text{rel}_i \frac{R_i}{i}",
        source=_RAGAS,
        aliases=("NonLLMContextPrecisionWithReference", "non_llm_context_precision_with_reference"),
    ),
    metric(
        "NonLLMContextRecall",
        "text_context_recall",
        definition="relevant texts that some retrieved text matches / all that are relevant",
        formula=r"\frac{f}{R}",
        source=_RAGAS,
        aliases=("non_llm_context_recall",),
    ),
)


# Retrieval as models of users see it, and other measures of ir-measures.

_CWL = "ir-measures 0.4.3 (cwl_eval); "
_GAIN = "; gain is relevance / highest relevance of all judgments"
_NERR = _CWL + "Azzopardi, Mackenzie & Moffat 2021"

_USERS_METRICS = (
    metric(
        "INST",
        "user_inst",
        definition="expected gain at a rank that a user sees who looks on behind rank i with chance"
        " ((i + 1 - G) / (i + 2 - G))^2, G the gain so far, to rank 1000" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" \left(\frac{j + 1 - U_j}{j + 2 - U_j}\right)^2",
        source=_CWL + "Moffat et al. 2015",
    ),
    metric(
        "INSQ",
        "user_insq",
        definition="mean gain if rank i weighs 1 / (i + 1)^2, to rank 1000" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \frac{1}{(i + 1)^2}",
        source=_CWL + "Moffat, Scholer & Thomas 2012",
    ),
    metric(
        "BPM",
        "user_bpm",
        definition="mean gain up to the rank at which gains add up to 1, or to k" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" [U_j < 1]",
        source=_CWL + "Zhang et al. 2017",
        params=("k",),
    ),
    metric(
        "SDCG",
        "scaled_dcg",
        definition="sum of gain / log2(rank + 1) over that of k documents of gain 1" + _GAIN,
        formula=r"\frac{\sum_{i \le k} u_i / \log_2(i + 1)}{\sum_{i \le k} 1 / \log_2(i + 1)}",
        source=_CWL + "Järvelin & Kekäläinen 2002",
        params=("k",),
    ),
    metric(
        "NERR8",
        "user_nerr8",
        definition="expected gain at a rank that a user sees who looks on with chance 1 - gain, up"
        " to k" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" 1 - u_j",
        source=_NERR,
        params=("k",),
    ),
    metric(
        "NERR9",
        "user_nerr9",
        definition="expected gain at a rank that a user sees who looks on behind rank i with chance"
        " (1 - gain) i / (i + 1), up to k" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" (1 - u_j)\, \frac{j}{j + 1}",
        source=_NERR,
        params=("k",),
    ),
    metric(
        "NERR10",
        "user_nerr10",
        definition="expected gain at a rank that a user sees who looks on with chance"
        " 0.9 (1 - gain), to rank 1000" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" 0.9\, (1 - u_j)",
        source=_NERR,
    ),
    metric(
        "NERR11",
        "user_nerr11",
        definition="expected gain at a rank that a user sees who looks on behind rank i with chance"
        " (1 - gain) ((i + 1) / (i + 2))^2, to rank 1000" + _GAIN,
        formula=r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="
        r" (1 - u_j) \left(\frac{j + 1}{j + 2}\right)^2",
        source=_NERR,
    ),
    metric(
        "Accuracy",
        "accuracy",
        definition="share of pairs of a relevant and another document retrieved, up to k, in which"
        " the relevant one comes first; undefined without a relevant one",
        formula=r"\frac{\sum_{i < j \le k} \text{rel}_i\, (1 - \text{rel}_j)}{R_k\, (k - R_k)}",
        source="ir-measures 0.4.3",
        params=CUT,
        bare="whole",
    ),
    metric(
        "Compat",
        "compatibility",
        definition="rank-biased overlap (persistence 0.95) with the ideal order, over the most that"
        " is possible",
        formula=r"\frac{\sum_i 0.95^{i - 1}\, |D_i \cap I_i| / i}{\sum_i 0.95^{i - 1} \min(i, R)"
        r" / i}",
        source="ir-measures 0.4.3; Clarke, Vtyurina & Smucker 2021",
        aliases=("Compatibility",),
    ),
)


METRICS = (
    *_GAINS_METRICS,
    *_PRECISION_METRICS,
    *_JUDGMENTS_METRICS,
    *_SETS_METRICS,
    *_TEXTS_METRICS,
    *_CONTEXTS_METRICS,
    *_USERS_METRICS,
)
