"""Runs on known answers."""

from __future__ import annotations

from typing import Any

import polars as pl
from detection.strategies import Tables
from detection.valor_vectors import Key, Vector
from output_frames import of_slice

import evalengine as ee

ELSEWHERE = "elsewhere"
"""Label key of boxes that only make datum ids match."""


def _with_common_datum(tables: Tables) -> Tables:
    """Add a box under another key to tables without a common datum id, which are refused."""
    predictions, truths = tables.predictions, tables.truths
    ids = set(predictions["datum_id"]), set(truths["datum_id"])
    if not all(ids) or ids[0] & ids[1]:
        return tables
    extra = predictions[:1].with_columns(label_key=pl.lit(ELSEWHERE))
    return Tables(
        pl.concat([predictions, extra]), pl.concat([truths, extra.select(truths.columns)])
    )


def score(vector: Vector, dialect: str, metrics: list[str], **options: Any) -> ee.Scorecard:
    """Score a vector's tables, with datums without boxes declared."""
    tables = _with_common_datum(vector.tables)
    return tables.score(
        dialect=dialect,
        metrics=metrics,
        datums=pl.DataFrame({"datum_id": vector.datums}),
        iou_thresholds=list(vector.iou_thresholds),
        **{**vector.options, **options},
    )


def metric_rows(card: ee.Scorecard, *, score_of_recall: float | None = None) -> dict[Key, Any]:
    """Map metric, statistic, label key, label value, IoU and score threshold to the value."""
    names = ("metric", "statistic", "label_key", "label_value", "iou_threshold", "score_threshold")
    out = {}
    for row in of_slice(card.metrics).iter_rows(named=True):
        if row["average"] is None and row["label_key"] != ELSEWHERE:
            key = tuple(row[name] for name in names)
            at = score_of_recall if "AR" in row["metric"] else key[-1]
            out[(*key[:-1], at)] = row["value"]
    return out
