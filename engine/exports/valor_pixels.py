"""Valor's shape of semantic segmentation: valor-lite's entries, plus the service's label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from evalengine.scorecard.card import Scorecard

Entry = dict[str, Any]

_UNDEFINED = 0.0
"""valor-lite's value for undefined numbers."""
_OF_LABEL = ("IOU", "Precision", "Recall", "F1")
_OF_KEY = {"mIOU": "mIOU", "PixelAccuracy": "Accuracy"}
"""Metric -> Valor's name."""


def pixel_entries(card: Scorecard) -> list[Entry]:
    """Convert the numbers of a segmentation over the whole set.

    Args:
        card: a scorecard, new or loaded.

    Returns:
        metrics in the order of the frame, then one confusion matrix per label key.
    """
    return [*_numbers(card), *_matrices(card)]


def _numbers(card: Scorecard) -> Iterator[Entry]:
    whole = card.metrics.filter(pl.col("slice").is_null(), pl.col("average").is_null())
    for row in whole.iter_rows(named=True):
        metric, key, label = row["metric"], row["label_key"], row["label_value"]
        value = _UNDEFINED if row["value"] is None else row["value"]
        if metric in _OF_LABEL:
            yield {
                "type": metric,
                "value": value,
                "parameters": {"label_key": key, "label": str(label)},
                "label": {"key": key, "value": str(label)},
            }
        elif metric in _OF_KEY:
            yield {"type": _OF_KEY[metric], "value": value, "parameters": {"label_key": key}}


def _matrices(card: Scorecard) -> Iterator[Entry]:
    """Return IoU of all pairs of labels per key, and shares of pixels without a matching label."""
    cells = card.frame("confusion").filter(pl.col("slice").is_null())
    if not cells.height:
        return
    iou: dict[tuple[Any, ...], float] = {}
    alone: dict[str, dict[tuple[Any, Any], float]] = {"predicted": {}, "actual": {}}
    for row in cells.iter_rows(named=True):
        key, actual, predicted = row["label_key"], row["actual"], row["predicted"]
        if actual is None:
            alone["predicted"][key, predicted] = row["share"]
        elif predicted is None:
            alone["actual"][key, actual] = row["share"]
        else:
            iou[key, actual, predicted] = row["iou"]
    for (key,), labels in card.labels.group_by("label_key", maintain_order=True):
        values = labels["label_value"].to_list()
        yield {
            "type": "ConfusionMatrix",
            "value": {
                "confusion_matrix": {
                    str(a): {str(b): {"iou": iou.get((key, a, b), 0.0)} for b in values}
                    for a in values
                },
                "unmatched_predictions": _ratios(alone["predicted"], key, values),
                "unmatched_ground_truths": _ratios(alone["actual"], key, values),
            },
            "parameters": {"label_key": key},
        }


def _ratios(shares: dict[tuple[Any, Any], float], key: Any, values: list[Any]) -> Entry:
    return {str(value): {"ratio": shares.get((key, value), 0.0)} for value in values}
