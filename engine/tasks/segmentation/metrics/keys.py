"""Segmentation metrics per label key, of pixels summed over the data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....tally.cells import Cells
from ....tally.pixels import PixelView
from .labels import label_values
from .parts import NO_LABEL, by_key, iou, key_cells, mean_over, members_of, metric, ratio, recall

if TYPE_CHECKING:
    from ..settings import Settings


OVERLAP = "labels of one side overlap, so that a pixel has no single one"
NO_PIXEL = "no pixel that counts"
NO_TRUTH = "no labelled pixel in the ground truths"


def _mean_iou(view: PixelView, settings: Settings) -> list[Cells]:
    value = label_values(view, settings, iou)
    return [key_cells(view, mean_over(view, value, members_of(iou, view, settings)), NO_LABEL)]


def _pixel_accuracy(view: PixelView, settings: Settings) -> list[Cells]:
    value = ratio(view.agreeing, view.counted, settings.rules.undefined)
    value = np.where(view.overlapping > 0, np.nan, value)
    reason = np.where(view.overlapping > 0, OVERLAP, NO_PIXEL)
    return [key_cells(view, value, reason, support=view.counted)]


def _class_accuracy(view: PixelView, settings: Settings) -> list[Cells]:
    value = label_values(view, settings, recall)
    return [key_cells(view, mean_over(view, value, view.truth > 0), NO_TRUTH)]


def _frequency_weighted(view: PixelView, settings: Settings) -> list[Cells]:
    value, true = label_values(view, settings, iou), view.truth > 0
    weighted = by_key(view, view.truth * np.where(true, value, 0.0), true)
    return [key_cells(view, ratio(weighted, by_key(view, view.truth, true)), NO_TRUTH)]


METRICS = (
    metric(
        "mIOU",
        "Mean of IOU over the labels of a key that have pixels on either side (dialects differ),"
        " pixels summed over the data set first.",
        "Valor metrics document, Semantic Segmentation Metrics",
        _mean_iou,
        aliases=("mIoU", "MeanIoU"),
        formula=r"\frac{1}{L} \sum_\ell \frac{|T_\ell \cap P_\ell|}{|T_\ell \cup P_\ell|}",
    ),
    metric(
        "PixelAccuracy",
        "Pixels with the same label on both sides, or with none on either, / all that count.",
        "Long, Shelhamer and Darrell 2015; valor-lite 0.39 (Accuracy)",
        _pixel_accuracy,
        needs=("areas", "images"),
        aliases=("Accuracy", "aAcc"),
        formula=r"\frac{1}{N} \sum_x [\hat{y}_x = y_x]",
    ),
    metric(
        "MeanClassAccuracy",
        "Mean of Recall over labels with ground truth.",
        "Long, Shelhamer and Darrell 2015 (mean accuracy)",
        _class_accuracy,
        aliases=("mAcc", "MeanAccuracy"),
        formula=r"\frac{1}{L} \sum_\ell \frac{|T_\ell \cap P_\ell|}{|T_\ell|}",
    ),
    metric(
        "FrequencyWeightedIoU",
        "Sum over labels of (pixels in the ground truths x IOU) / all labelled pixels there.",
        "Long, Shelhamer and Darrell 2015 (frequency weighted IU)",
        _frequency_weighted,
        aliases=("fwIoU", "FWIoU", "FWIOU"),
        formula=r"\frac{\sum_\ell |T_\ell|\, \text{IOU}_\ell}{\sum_\ell |T_\ell|}",
    ),
)
