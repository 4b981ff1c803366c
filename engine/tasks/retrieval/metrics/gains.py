"""Retrieval by graded relevance and by discounted ranks."""

from __future__ import annotations

import math

from .parts import CUT, GAINS, metric

METRICS = (
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
        definition="nDCG averaged over the ranks where the gain of the ideal order falls, and the"
        " end of the list; 0 without a relevant document at the level given",
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
        definition="what RBP would gain if every document were relevant that is unjudged or"
        " behind the end of the list",
        formula=r"\left(1 - (1 - p) \sum_{i \le m} [i \text{ judged}]\, p^{i - 1}\right)",
        source="Moffat & Zobel 2008; trec_eval 10 in its dialect",
        params=("persistence",),
        aliases=("rbp_resid",),
        better="lower",
    ),
    metric(
        "ERR",
        "expected_reciprocal_rank",
        definition="sum over ranks of 1 / rank times the chance to stop there, where a document"
        " satisfies with chance (2^relevance - 1) / 2^highest relevance of all judgments",
        formula=r"\sum_{i \le k} \frac{s_i}{i} \prod_{j < i} (1 - s_j), \quad s_i ="
        r" \frac{2^{\text{rel}_i} - 1}{2^{\max \text{rel}}}",
        source="Chapelle et al. 2009",
        params=("k",),
        bare="both",
        aliases=("err",),
    ),
)
