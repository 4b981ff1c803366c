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
    meant,
    measures,
    members,
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
    "meant",
    "measures",
    "members",
    "names",
    "of_any",
]
