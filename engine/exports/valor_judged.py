"""Valor's entries of judged metrics: one for every datum, an Error where there is no value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from .. import metrics

if TYPE_CHECKING:
    from evalengine.scorecard.card import Scorecard

_RATINGS = (1.0, 5.0)
"""Range of metrics whose value Valor holds as a whole number."""


def judged_entries(card: Scorecard) -> list[dict[str, Any]]:
    """``{"type", "value", "parameters"}`` of every datum and metric that was judged.

    A datum without a value has type ``Error`` and the metric and its standing as value, as
    valor-lite writes replies that it could not use.

    Args:
        card: a scorecard of judged metrics, fresh or loaded.
    """
    rows = card.frame("per_datum").filter(pl.col("status") != "not_judged")
    rated = {
        metric
        for metric in rows["metric"].unique()
        if metrics.get("judged", metric).range == _RATINGS
    }
    entries: list[dict[str, Any]] = []
    for datum, metric, value, status in rows.select(
        "datum_id", "metric", "value", "status"
    ).iter_rows():
        at = {"datum_uid": datum}
        if value is None:
            told = {"type": metric, "message": status}
            entries.append({"type": "Error", "value": told, "parameters": at})
        else:
            shown = int(value) if metric in rated else value
            entries.append({"type": metric, "value": shown, "parameters": at})
    return entries
