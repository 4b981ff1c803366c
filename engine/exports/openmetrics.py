"""OpenMetrics text 1.0: numbers as gauges, read by Prometheus and others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from ..schemas.results import METRICS

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

# https://prometheus.io/docs/specs/om/open_metrics_spec/

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Sample(NamedTuple):
    """One point of a gauge.

    Attributes:
        name: name of the gauge: letters, digits, ``_`` and ``:``.
        labels: what identifies the series; empty values are omitted, since they mean the same.
        value: NaN and infinities are allowed.
        timestamp: seconds since 1970; None for the time of the reading.
    """

    name: str
    labels: Mapping[str, str]
    value: float
    timestamp: float | None = None


_BESIDE = ("value", "lower", "upper", "support", "scored", "reason")
"""Columns of the metrics frame that do not identify a number."""
_PARTS = ("value", "lower", "upper", "support")
HELP = {
    "evalengine_value": "Value of a metric.",
    "evalengine_lower": "Lower end of its interval.",
    "evalengine_upper": "Upper end of its interval.",
    "evalengine_support": "Rows that the value rests on.",
}


def samples_of(
    metrics: pl.DataFrame, labels: Mapping[str, str], timestamp: float | None = None
) -> list[Sample]:
    """Return the numbers of a metrics frame as points; undefined ones are omitted.

    Args:
        labels: further labels of every series.
    """
    samples = []
    for row in metrics.iter_rows(named=True):
        if row["value"] is None:
            continue
        metric_labels = {
            name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in row.items()
            if name in METRICS and name not in _BESIDE and value is not None
        }
        parts = [part for part in _PARTS if row[part] is not None]
        samples += [
            Sample(f"evalengine_{part}", {**labels, **metric_labels}, row[part], timestamp)
            for part in parts
        ]
    return samples


def to_openmetrics(
    card: Scorecard, labels: Mapping[str, str] | None = None, timestamp: float | None = None
) -> str:
    """See :meth:`evalengine.Scorecard.to_openmetrics`."""
    shared = {"task": card.task, "dialect": card.dialect, **(labels or {})}
    return openmetrics(samples_of(card.metrics, shared, timestamp), HELP)


def openmetrics(samples: Iterable[Sample], help: Mapping[str, str] | None = None) -> str:
    """Return gauges as OpenMetrics text.

    Points of one gauge are written together, points of one series in the order of time. Gauges and
    series have the order of their first points.

    Args:
        help: name of a gauge -> its description.

    Raises:
        ValueError: an invalid name, or 2 points of a series at one time or without a time.
    """
    gauges: dict[str, dict[str, dict[float | None, float]]] = {}
    for name, labels, value, timestamp in samples:
        invalid = [one for one in labels if not _LABEL.fullmatch(one)]
        invalid += [] if _NAME.fullmatch(name) else [name]
        if invalid:
            raise ValueError(f"{invalid[0]!r} is not a name in OpenMetrics.")
        labelled = (f'{one}="{labels[one].translate(_ESCAPED)}"' for one in labels if labels[one])
        points = gauges.setdefault(name, {}).setdefault(",".join(labelled), {})
        if timestamp in points or (points and None in (timestamp, *points)):
            raise ValueError(f"{name}: 2 points of one series and time: {dict(labels)}.")
        points[timestamp] = value
    lines = []
    for name, series in gauges.items():
        lines.append(f"# TYPE {name} gauge")
        if help and name in help:
            lines.append(f"# HELP {name} {help[name].translate(_ESCAPED)}")
        for words, points in series.items():
            for timestamp in sorted(points, key=lambda time: time or 0.0):
                at = "" if timestamp is None else f" {_number(timestamp)}"
                series_name = f"{name}{{{words}}}" if words else name
                lines.append(f"{series_name} {_number(points[timestamp])}{at}")
    return "\n".join([*lines, "# EOF"]) + "\n"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
