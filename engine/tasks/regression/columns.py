"""Columns beside predictions and targets, and the needs that they answer."""

from __future__ import annotations

import re
from collections.abc import Iterable

BESIDE = ("scale", "squared_scale", "lower", "upper")
"""Columns of numbers beside predictions and targets, each the need of a metric."""
QUANTILES, SAMPLES = "quantiles", "samples"
"""Needs that stand for columns of quantiles, and for a column of lists."""
GROUP = "group_id"
"""The column that rows are ranked within; parts know its values by their hash, uint64."""
_QUANTILE = re.compile(r"q0?\.\d+|q\d+(?:\.\d+)?e-\d+")


def quantiles_of(names: Iterable[str]) -> dict[str, float]:
    """Columns of quantiles among some, by the names that contracts give them, and their levels."""
    return {name: float(name[1:]) for name in names if _QUANTILE.fullmatch(name)}
