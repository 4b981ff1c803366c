"""Retrieval by relevant documents and their ranks."""

from __future__ import annotations

from ....metrics.averages import geometric_of, mean_of
from .parts import CUT, LEVELS, metric

METRICS = (
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
        definition="1 / rank of the first relevant document, 0 where there is none up to k",
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
        definition="1 where a relevant document is among the first k, else 0",
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
