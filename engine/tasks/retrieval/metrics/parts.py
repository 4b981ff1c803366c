"""Shared parts of retrieval metrics."""

from __future__ import annotations

from typing import Any

from ....metrics.averages import mean_of
from ....metrics.registry import Metric

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
