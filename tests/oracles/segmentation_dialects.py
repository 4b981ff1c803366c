"""Reference of segmentation metrics under each dialect, from counts of label pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from .segmentation import Pixel, accuracy, labels_in, mean, of_key, of_label, over

Counts = Counter[Pixel]
Numbers = dict[tuple[str, Any], float | None]
"""(metric, label) -> number; ("macro",), ("micro",) or () replace the label for means."""

ZERO_FILLED = ("valor", "valor-lite")
RATIOS = {"IOU": "IOU", "Precision": "found", "Recall": "truth", "F1": "IOU", "Dice": "IOU"}
"""Metric -> denominator; "IOU" represents the union."""


def filled(value: float | None, dialect: str) -> float | None:
    return 0.0 if value is None and dialect in ZERO_FILLED else value


def members(counts: Counts, dialect: str, declared: list[Any] | None) -> list[Any]:
    """Return the labels that are averaged."""
    here = labels_in(counts)
    if dialect == "valor":
        return [label for label in here if of_label(counts, label)["truth"]]
    if dialect == "valor-lite":
        return sorted({*here, *(declared or [])})
    return here


def rows(counts: Counts, dialect: str, declared: list[Any] | None) -> list[Any]:
    """Return the labels that have rows."""
    if dialect == "valor":
        return members(counts, dialect, declared)
    return sorted({*labels_in(counts), *(declared or [])})


def of_metric(metric: str, label: Any, ignored: Any, dialect: str) -> bool:
    """Return True if a metric averages a label; IoU of torchmetrics skips the ignored one."""
    return not (metric == "IOU" and dialect == "torchmetrics" and label == ignored)


def of_counts(counts: Counts, dialect: str, declared: list[Any] | None, ignored: Any) -> Numbers:
    """Compute the metrics of one key from summed counts of images."""
    made: Numbers = {}
    inside = members(counts, dialect, declared)
    for label in rows(counts, dialect, declared):
        one = of_label(counts, label)
        for metric in RATIOS:
            value = filled(one[metric], dialect)
            if metric == "IOU" and dialect == "torchmetrics" and not one["truth"] + one["found"]:
                value = 0.0
            made[metric, label] = value
    for metric in RATIOS:
        chosen = [label for label in inside if of_metric(metric, label, ignored, dialect)]
        each = [of_label(counts, label) for label in chosen]
        macro = mean(filled(one[metric], dialect) for one in each)
        made["mIOU" if metric == "IOU" else metric, () if metric == "IOU" else ("macro",)] = macro
        right, predicted, truth = (sum(o[n] for o in each) for n in ("right", "found", "truth"))
        micro = {
            "IOU": over(right, truth + predicted - right),
            "Precision": over(right, predicted),
            "Recall": over(right, truth),
        }.get(metric, over(2 * right, truth + predicted))
        if micro is None and (
            dialect in ZERO_FILLED or (dialect, metric) == ("torchmetrics", "IOU")
        ):
            micro = 0.0
        made[metric, ("micro",)] = micro
    made["PixelAccuracy", ()] = filled(accuracy(counts), dialect)
    return made | {(metric, ()): value for metric, value in of_key(counts).items()}


def of_image(
    counts: Counts, dialect: str, declared: list[Any] | None, ignored: Any
) -> dict[str, float | None]:
    """Compute the metrics of one image."""
    made = {
        metric: mean(
            filled(of_label(counts, label)[ratio], dialect)
            for label in members(counts, dialect, declared)
            if of_metric(ratio, label, ignored, dialect)
        )
        for metric, ratio in (("mIOU", "IOU"), ("Dice", "Dice"))
    }
    return {**made, "PixelAccuracy": accuracy(counts)}


def over_images(
    images: Mapping[Any, Counts], dialect: str, declared: list[Any] | None, ignored: Any
) -> Numbers:
    """Compute all metrics of one key over some images."""
    made = of_counts(sum(images.values(), Counter()), dialect, declared, ignored)
    single = [of_image(counts, dialect, declared, ignored) for counts in images.values()]
    for metric in ("mIOU", "Dice", "PixelAccuracy"):
        made[f"{metric}PerImage", ()] = mean(one[metric] for one in single)
    if dialect == "torchmetrics":
        made["mIOUPerImage", ()] = mean(_ious(images.values(), ignored))
    return made


def _ious(images: Iterable[Counts], ignored: Any) -> list[float | None]:
    """Compute IoU of every label of every image, except the ignored one."""
    return [
        of_label(counts, label)["IOU"]
        for counts in images
        for label in labels_in(counts)
        if label != ignored
    ]
