"""Retrieval by whole sets, whatever the order, and plain counts."""

from __future__ import annotations

import math
from typing import Any

from ....metrics.averages import sum_of
from ....metrics.registry import Metric
from .parts import LEVELS, metric


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


METRICS = (
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
