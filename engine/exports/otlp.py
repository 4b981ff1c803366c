"""Judged rows as OpenTelemetry log records, in OTLP's JSON."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import polars as pl

from ..report.tables import at_k
from ..schemas.errors import OptionError

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

# https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events/

_EVENT = "gen_ai.evaluation.result"
_BEST = {"higher": 1.0, "lower": 0.0}
"""Better direction of a metric -> the best of its values that are verdicts."""


def to_otlp(card: Scorecard, verdicts: pl.DataFrame | None = None) -> str:
    """Convert the rows of single datums to ``gen_ai.evaluation.result`` events.

    See :meth:`evalengine.Scorecard.to_otlp`.
    """
    now = str(time.time_ns())
    rows = card.asked_frame("per_datum").with_columns(pl.col("datum_id").cast(pl.String))
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
