"""Segmentation metrics of single images, averaged over images."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.datums import Labels
from ....tally.pixels import Pixels, PixelView
from ..dialects import DECLARED, TRUE
from .parts import NO_LABEL, Ratio, dice, iou, key_cells, metric, ratio

if TYPE_CHECKING:
    from ..settings import Settings


class OfImage(msgspec.Struct, frozen=True):
    """A per-image metric, computed during the tally.

    Attributes:
        name: in ``per_datum``; also the name of its mean over images, and of ``PerImage``.
        compute: maps the counts, the labels, the number of datums and the settings to values,
            float64 [datum, key]; NaN if undefined.
        reason: why a value is undefined.
    """

    name: str
    compute: Callable[[Pixels, Labels, int, Settings], Array]
    reason: str


def _label_ratios(of: Ratio, pixels: Pixels, settings: Settings, fill: float | None) -> Array:
    """Return a ratio of every label of every image; NaN if it enters no mean."""
    areas = pixels.areas
    value = ratio(*of(areas.right, areas.found, areas.truth), fill)
    if of is iou and not settings.rules.ignored_in_iou:
        value[pixels.ignored[areas.label]] = np.nan
    return value


def _mean_of_labels(
    of: Ratio, pixels: Pixels, labels: Labels, n_datums: int, settings: Settings
) -> Array:
    """Means over the labels of each image and key that enter means."""
    areas, images, width = pixels.areas, pixels.images, len(labels.key_names)
    value = _label_ratios(of, pixels, settings, settings.rules.undefined)
    key = labels.key[areas.label]
    chosen = areas.truth > 0 if settings.rules.means == TRUE else np.ones(value.size, bool)
    chosen &= ~np.isnan(value)
    total, many = np.zeros((2, n_datums, width))
    np.add.at(total, (areas.datum[chosen], key[chosen]), value[chosen])
    np.add.at(many, (areas.datum[chosen], key[chosen]), 1)
    declared = pixels.declared
    if settings.rules.means == DECLARED and declared is not None:
        # Every declared label counts in every datum; missing ones have the value of 0 / 0.
        beyond = chosen & ~declared[areas.label]
        many[:] = 0
        np.add.at(many, (areas.datum[beyond], key[beyond]), 1)
        of_key = np.bincount(labels.key[declared], minlength=width)
        many[images.datum, images.key] += of_key[images.key]
    return ratio(total, many)


def _agreement(pixels: Pixels, labels: Labels, n_datums: int, settings: Settings) -> Array:
    """Return the share of equal pixels, if both sides have at most one label per pixel."""
    images = pixels.images
    out = np.full((n_datums, len(labels.key_names)), np.nan)
    agreeing = ratio(images.right, images.pixels)
    out[images.datum, images.key] = np.where(images.overlapping, np.nan, agreeing)
    return out


OF_IMAGE = (
    OfImage("mIOU", partial(_mean_of_labels, iou), NO_LABEL),
    OfImage("Dice", partial(_mean_of_labels, dice), NO_LABEL),
    OfImage("PixelAccuracy", _agreement, "no pixel that counts"),
)
"""Metrics of every image in ``per_datum``."""


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
    total, many = view.area_total(lambda pixels: _label_ratios(iou, pixels, settings, None))
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
        formula=r"\frac{1}{n} \sum_d \frac{1}{L_d} \sum_\ell \text{IOU}_{\ell d}",
    ),
    metric(
        "DicePerImage",
        "Macro Dice of every image by itself, averaged over the images on which it is defined.",
        "torchmetrics.segmentation DiceScore, averaged over samples",
        partial(_mean, "Dice"),
        needs=("areas", "images"),
        formula=r"\frac{1}{n} \sum_d \frac{1}{L_d} \sum_\ell \text{Dice}_{\ell d}",
    ),
    metric(
        "PixelAccuracyPerImage",
        "PixelAccuracy of every image by itself, averaged over images.",
        "evalengine",
        partial(_mean, "PixelAccuracy"),
        needs=("areas", "images"),
        formula=r"\frac{1}{n} \sum_d \frac{1}{N_d} \sum_{x \in d} [\hat{y}_x = y_x]",
    ),
)
