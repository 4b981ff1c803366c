"""Metrics averaged over images, metrics of boundaries and surfaces, and frames."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from ....metrics.averages import by_key, macro, ratio, with_parameters
from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tallies.counts import Pixels, PixelView
from ....tallies.datums import Cells, Labels
from ..dialects import DECLARED, TRUE, Settings
from .labels import (
    NO_LABEL,
    NO_PIXEL,
    Ratio,
    dice,
    filled,
    iou,
    key_cells,
    label_cells,
    metric,
    rows,
    used,
)

# Segmentation metrics of single images, averaged over images.


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
    value = ratio(*of(areas.right, areas.found, areas.truth), filled(fill))
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
    """The mean of images' means; or of all labels of all images, as torchmetrics' MeanIoU."""
    total, images = view.image_total(need)
    value, scored = ratio(total, images), images.astype(np.int64)
    if need == "mIOU" and not settings.rules.images_alike:
        sums = view.exact_sums("areas", lambda few: _label_ratios(iou, few, settings, None), "key")
        value = ratio(*sums)
    reason = "no image on which it is defined"
    return [key_cells(view, value, reason, support=scored, scored=scored)]


_IMAGES_METRICS = (
    metric(
        "mIOUPerImage",
        "mIOU of every image by itself, averaged over the images on which it is defined; in dialect"
        " torchmetrics IOU of every label of every image, averaged over those that have pixels.",
        "Wang et al. 2023, Revisiting Evaluation Metrics for Semantic Segmentation (mIoU^I);"
        " torchmetrics.segmentation MeanIoU",
        partial(_mean, "mIOU"),
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


# Segmentation metrics of outlines: boundaries, and distances between outlines.

ONE_SIDE = "no image that has the label on both sides"


def _boundary_iou(view: PixelView, settings: Settings) -> list[Cells]:
    """The boundaries of all images are summed first, as pixels are in IOU."""
    truth, predicted, shared = (
        view.sums("surfaces", name) for name in ("edge_truth", "edge_found", "edge_right")
    )
    value = ratio(shared, truth + predicted - shared)
    mean = macro(view, value, used(view))
    cells = [
        label_cells(view, settings, value, NO_PIXEL),
        key_cells(view, mean, NO_LABEL, average="macro"),
    ]
    return with_parameters(cells, boundary_ratio=settings.boundary_ratio)


def _mean_surface(
    name: str, options: tuple[str, ...], view: PixelView, settings: Settings
) -> list[Cells]:
    """The mean over images, then over labels."""

    def column(pixels: Pixels) -> Array:
        return getattr(pixels.surfaces, name)

    def has_edges(pixels: Pixels) -> Array:
        return pixels.surfaces.edge_truth + pixels.surfaces.edge_found > 0

    total, many = view.exact_sums("surfaces", column)
    images = view.integer_sums("surfaces", has_edges)
    value = ratio(total, many)
    mean = macro(view, value, images > 0)
    cells = [
        Cells(
            axes=("group", "label"),
            shape=value.shape,
            keep=rows(view, settings),
            columns={"value": value, "support": images, "scored": many.astype(np.int64)},
            reason=np.where(images > 0, ONE_SIDE, NO_PIXEL),
        ),
        key_cells(
            view,
            mean,
            NO_LABEL,
            average="macro",
            support=by_key(view, images, images > 0),
            scored=by_key(view, many.astype(np.int64), images > 0),
        ),
    ]
    return with_parameters(cells, **{name: getattr(settings, name) for name in options})


def _metric(
    name: str, definition: str, source: str, column: str, *options: str, **more: Any
) -> Metric:
    params = ("pixel_spacing", *options)
    return metric(
        name,
        definition,
        source,
        partial(_mean_surface, column, params),
        averages=("macro",),
        needs=("areas", "surfaces"),
        params=params,
        **more,
    )


_FAR: dict[str, Any] = {"range": (0.0, float("inf")), "better": "lower"}
_TWO = "outlines of a label, mean over the images that have it on both sides"
_EITHER = "mean over the images that have the label on either side, 0 if it is missing on one side"

_SURFACES_METRICS = (
    metric(
        "BoundaryIOU",
        "IOU of the boundaries of a label: its pixels within boundary_ratio of the image's diagonal"
        " from their outline; over the boundaries of all datums, and its mean over labels.",
        "Cheng et al. 2021, Boundary IoU",
        _boundary_iou,
        averages=("macro",),
        needs=("areas", "surfaces"),
        params=("boundary_ratio",),
        aliases=("BoundaryIoU", "mBIoU"),
        formula=r"\frac{|B \cap \hat{B}|}{|B \cup \hat{B}|}",
    ),
    _metric(
        "BoundaryF1",
        "F1 of outlines: shares of the predicted and of the true outline within surface_tolerance"
        f" of the other; {_EITHER}.",
        "Csurka et al. 2013, What is a good evaluation measure for semantic segmentation?",
        "f1",
        "surface_tolerance",
        aliases=("BFScore", "BoundaryF"),
        formula=r"\frac{1}{n} \sum_d \frac{2\, p_d\, r_d}{p_d + r_d}, \quad p ="
        r" \frac{1}{|\hat{S}|} \sum_{x \in \hat{S}} [\delta(x, S) \le \tau],"
        r" \quad r = \frac{1}{|S|} \sum_{x \in S} [\delta(x, \hat{S}) \le"
        r" \tau]",
    ),
    _metric(
        "HD95",
        f"The larger of the 95th percentiles of distances between the two {_TWO}; of all distances"
        " together in dialect medpy.",
        "MONAI 1.6 HausdorffDistanceMetric (percentile=95); medpy 0.5 hd95",
        "hd95",
        aliases=("HausdorffDistance95",),
        formula=r"\frac{1}{n} \sum_d \max\left(q_{95}\{\delta(x, \hat{S}) : x \in S"
        r"\}, q_{95}\{\delta(x, S) : x \in \hat{S}\}\right)",
        **_FAR,
    ),
    _metric(
        "HausdorffDistance",
        f"The largest distance from either to the other of the {_TWO}.",
        "Huttenlocher et al. 1993; MONAI 1.6 HausdorffDistanceMetric",
        "hausdorff",
        aliases=("HD", "Hausdorff"),
        formula=r"\frac{1}{n} \sum_d \max\left(\max_{x \in S} \delta(x, \hat{S}),"
        r" \max_{x \in \hat{S}} \delta(x, S)\right)",
        **_FAR,
    ),
    _metric(
        "ASSD",
        f"Mean distance of all pixels of both {_TWO}.",
        "MONAI 1.6 SurfaceDistanceMetric (symmetric=True); medpy 0.5 assd",
        "assd",
        aliases=("AverageSymmetricSurfaceDistance",),
        formula=r"\frac{1}{n} \sum_d \frac{\sum_{x \in S} \delta(x, \hat{S}) +"
        r" \sum_{x \in \hat{S}} \delta(x, S)}{|S| + |\hat{S}|}",
        **_FAR,
    ),
    _metric(
        "NSD",
        f"Share of the pixels of both outlines within surface_tolerance of the other; {_EITHER}.",
        "Nikolov et al. 2018; MONAI 1.6 SurfaceDiceMetric",
        "nsd",
        "surface_tolerance",
        aliases=("SurfaceDice", "NormalizedSurfaceDice"),
        formula=r"\frac{1}{n} \sum_d \frac{\sum_{x \in S} [\delta(x, \hat{S}) \le"
        r" \tau] + \sum_{x \in \hat{S}} [\delta(x, S) \le \tau]}{|S| +"
        r" |\hat{S}|}",
    ),
)


# Segmentation outputs with separate frames.

_FRAMES_METRICS = (
    metric(
        "ConfusionMatrix",
        "Pixels by true and predicted label, null for none, with the IoU of each pair of labels"
        " and the share of a label's pixels without a label on the other side.",
        "valor-lite 0.39",
        None,
        frame="confusion",
        needs=("areas", "crossings"),
        range=(0.0, float("inf")),
        better="neither",
        formula=r"C_{ij} = |T_i \cap P_j|, \quad \text{IOU}_{ij} = \frac{|T_i \cap P_j|}{|T_i"
        r" \cup P_j|}",
    ),
)


METRICS = (*_IMAGES_METRICS, *_SURFACES_METRICS, *_FRAMES_METRICS)
