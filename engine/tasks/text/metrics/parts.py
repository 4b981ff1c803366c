"""Shared parts of text metrics."""

from __future__ import annotations

from typing import Any

from ....metrics.averages import mean_of
from ....metrics.registry import Metric

MEAN = r"\frac{1}{n} \sum_d "
"""Over datums, in TeX."""


def metric(
    name: str,
    *needs: str,
    definition: str,
    formula: str,
    source: str,
    **rest: Any,
) -> Metric:
    """Define a metric, by default the mean over datums of its single need."""
    if "compute" not in rest:
        formula, rest["compute"] = MEAN + formula, mean_of(needs[0])
    return Metric(
        name=name,
        task="text",
        frame="metrics",
        needs=needs,
        definition=definition,
        formula=formula,
        source=source,
        **rest,
    )
