"""The registry of metrics, and the metrics, by kind of tally."""

from .registry import (
    Metric,
    all_metrics,
    asked,
    at_threshold,
    get,
    group_of,
    has,
    is_open,
    measures,
    members,
    metric_of,
    names,
    of_any,
)

__all__ = [
    "Metric",
    "all_metrics",
    "asked",
    "at_threshold",
    "get",
    "group_of",
    "has",
    "is_open",
    "measures",
    "members",
    "metric_of",
    "names",
    "of_any",
]
