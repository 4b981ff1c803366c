"""The registry of metrics, and the metrics, by kind of tally."""

from .registry import (
    Metric,
    all_metrics,
    asked,
    at_threshold,
    get,
    has,
    meant,
    members,
    names,
    reads,
    table,
)

__all__ = [
    "Metric",
    "all_metrics",
    "asked",
    "at_threshold",
    "get",
    "has",
    "meant",
    "members",
    "names",
    "reads",
    "table",
]
