"""Segmentation metrics of single images, averaged over images."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..tally.cells import Cells
from ..tally.pixels import PixelView
from .segmentation_parts import iou, key_cells, metric, ratio

if TYPE_CHECKING:
    from ..tasks.segmentation.settings import Settings


def _mean(need: str, view: PixelView, settings: Settings) -> list[Cells]:
    total, scored = view.image_total(need)
    return [
        key_cells(
            view,
            ratio(total, scored),
            "no image on which it is defined",
            support=scored.astype(np.int64),
            scored=scored.astype(np.int64),
        )
    ]


def _mean_iou(view: PixelView, settings: Settings) -> list[Cells]:
    """The mean of images' means; or of all labels of all images, as torchmetrics' MeanIoU."""
    if settings.rules.images_alike:
        return _mean("mIOU", view, settings)
    areas = view.pixels.areas
    value = ratio(*iou(areas.right, areas.found, areas.truth))
    chosen = ~np.isnan(value)
    if not settings.rules.ignored_in_iou:
        chosen &= ~view.pixels.ignored[areas.label]
    key = view.labels.key[areas.label]
    total, many = (
        view.sum_over(areas.datum[chosen], key[chosen], values[chosen], len(view.labels.key_names))
        for values in (value, chosen)
    )
    scored = view.image_total("mIOU")[1].astype(np.int64)
    return [
        key_cells(
            view,
            ratio(total, many),
            "no image on which it is defined",
            support=scored,
            scored=scored,
        )
    ]


METRICS = (
    metric(
        "mIOUPerImage",
        "mIOU of every image by itself, averaged over the images on which it is defined; in dialect"
        " torchmetrics IOU of every label of every image, averaged over those that have pixels.",
        "Wang et al. 2023, Revisiting Evaluation Metrics for Semantic Segmentation (mIoU^I);"
        " torchmetrics.segmentation MeanIoU",
        _mean_iou,
        needs=("areas", "images"),
        aliases=("mIoUPerImage", "mIoU^I"),
    ),
    metric(
        "DicePerImage",
        "Macro Dice of every image by itself, averaged over the images on which it is defined.",
        "torchmetrics.segmentation DiceScore, averaged over samples",
        partial(_mean, "Dice"),
        needs=("areas", "images"),
    ),
    metric(
        "PixelAccuracyPerImage",
        "PixelAccuracy of every image by itself, averaged over images.",
        "evalengine",
        partial(_mean, "PixelAccuracy"),
        needs=("areas", "images"),
    ),
)
