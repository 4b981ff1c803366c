"""What all metrics of text share."""

from __future__ import annotations

from typing import Any

from ....metrics.datum_averages import mean_of
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
    """A metric that is the mean over datums of what its one need holds, unless said otherwise."""
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
