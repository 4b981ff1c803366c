"""Segmentation metrics of single images, averaged over images."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..tally.cells import Cells
from ..tally.pixels import PixelView
from .segmentation_parts import key_cells, metric, ratio

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


METRICS = (
    metric(
        "mIOUPerImage",
        "mIOU of every image by itself, averaged over the images on which it is defined.",
        "Wang et al. 2023, Revisiting Evaluation Metrics for Semantic Segmentation (mIoU^I);"
        " torchmetrics.segmentation MeanIoU",
        partial(_mean, "mIOU"),
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
