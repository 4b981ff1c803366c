"""The registry of metrics, and the metrics, by kind of tally."""

from .registry import (
    Metric,
    all_metrics,
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
    parse_metric_name,
)

__all__ = [
    "Metric",
    "all_metrics",
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
    "parse_metric_name",
]
