"""Numbers for monitoring: OpenMetrics text, and judged rows as OpenTelemetry log records.

OpenMetrics 1.0 has gauges, read by Prometheus and others; OTLP's JSON has a log record per row.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from ..report.tables import at_k
from ..schemas.errors import OptionError
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


_OTHER_COLUMNS = ("value", "lower", "upper", "support", "scored", "reason")
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
            if name in METRICS and name not in _OTHER_COLUMNS and value is not None
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


# https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events/

_EVENT = "gen_ai.evaluation.result"
_BEST = {"higher": 1.0, "lower": 0.0}
"""Better direction of a metric -> the best of its values that are verdicts."""


def to_otlp(card: Scorecard, verdicts: pl.DataFrame | None = None) -> str:
    """Convert the rows of single datums to ``gen_ai.evaluation.result`` events.

    See :meth:`evalengine.Scorecard.to_otlp`.
    """
    now = str(time.time_ns())
    rows = card.require_frame("per_datum").with_columns(pl.col("datum_id").cast(pl.String))
    binary = rows.group_by("metric").agg(pl.col("value").is_in(list(_BEST.values())).all())
    best = {
        metric: _BEST[card.directions[metric]]
        for metric, verdict in binary.iter_rows()
        if verdict and card.directions.get(metric) in _BEST
    }
    if verdicts is not None:
        missing = [
            name for name in ("datum_id", "metric", "reason") if name not in verdicts.columns
        ]
        if missing:
            raise OptionError(
                f"verdicts: no column {missing[0]!r}. Its columns are datum_id, metric and reason.",
                code="option_value",
                option="verdicts",
            )
        key = [pl.col("datum_id").cast(pl.String), "metric"]
        reasons = verdicts.drop_nulls("reason").group_by(key, maintain_order=True).agg("reason")
        reasons = reasons.with_columns(pl.col("reason").list.join("\n"))
        rows = rows.join(reasons, on=["datum_id", "metric"], how="left", maintain_order="left")
    records = [
        {
            "timeUnixNano": now,
            "observedTimeUnixNano": now,
            "eventName": _EVENT,
            "attributes": _attributes(row, best),
        }
        for row in rows.iter_rows(named=True)
    ]
    resource = {"service.name": "evalengine"}
    scope = {"scope": {"name": "evalengine", "version": card.version}, "logRecords": records}
    logs = {"resource": {"attributes": _pairs(resource)}, "scopeLogs": [scope]}
    return json.dumps({"resourceLogs": [logs]}, ensure_ascii=False, separators=(",", ":")) + "\n"


def _attributes(row: dict[str, Any], best: dict[str, float]) -> list[dict[str, Any]]:
    name = " ".join(filter(None, (at_k(row["metric"], row["k"]), row["statistic"])))
    attributes: dict[str, Any] = {
        "gen_ai.evaluation.name": name,
        "gen_ai.response.id": row["datum_id"],
    }
    value = row["value"]
    if value is None:
        attributes["error.type"] = row["status"]
    else:
        attributes["gen_ai.evaluation.score.value"] = float(value)
        if row["metric"] in best:
            passed = value == best[row["metric"]]
            attributes["gen_ai.evaluation.score.label"] = "pass" if passed else "fail"
    if row.get("reason") is not None:
        attributes["gen_ai.evaluation.explanation"] = row["reason"]
    return _pairs(attributes)


def _pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP writes them."""
    return [
        {"key": key, "value": {"stringValue" if isinstance(one, str) else "doubleValue": one}}
        for key, one in attributes.items()
    ]
