"""Metrics of pixels per label and key, averaged over images, and of boundaries and surfaces."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from ...metrics.averages import by_key, macro, ratio, with_parameters
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...tallies.counts import Pixels, PixelView
from ...tallies.datums import Cells, Labels
from .dialects import DECLARED, TRUE, Settings

# Shared parts of segmentation metrics: labels that count, ratios, rows per label and per key.

PIXEL_OPTIONS = ("ignore_index", "background", "resample")
NO_LABEL = "no label to average over"
NO_TRUTH = "no pixel of this label in the ground truths"
NOT_PREDICTED = "no pixel predicted as this label"
NO_PIXEL = "no pixel of this label on either side"


def metric(
    name: str,
    definition: str,
    source: str,
    compute: Callable[[PixelView, Settings], list[Cells]] | None,
    **more: Any,
) -> Metric:
    """Define a segmentation metric."""
    fields: dict[str, Any] = {
        "frame": "metrics",
        "needs": ("areas",),
        **more,
        "params": PIXEL_OPTIONS + more.get("params", ()),
    }
    return Metric(
        name=name,
        task="segmentation",
        definition=definition,
        source=source,
        compute=compute,
        **fields,
    )


def filled(undefined: float | None) -> float:
    """The value of 0 / 0; NaN for None."""
    return np.nan if undefined is None else undefined


def iou(right: Array, predicted: Array, truth: Array) -> tuple[Array, Array]:
    """Numerator and denominator of the intersection over the union."""
    return right, truth + predicted - right


def precision(right: Array, predicted: Array, truth: Array) -> tuple[Array, Array]:
    """Numerator and denominator of precision."""
    return right, predicted


def recall(right: Array, predicted: Array, truth: Array) -> tuple[Array, Array]:
    """Numerator and denominator of recall."""
    return right, truth


def dice(right: Array, predicted: Array, truth: Array) -> tuple[Array, Array]:
    """Numerator and denominator of F1, which of pixels is Dice's coefficient."""
    return 2 * right, truth + predicted


Ratio = Callable[[Array, Array, Array], tuple[Array, Array]]
WHY: dict[Ratio, str] = {iou: NO_PIXEL, precision: NOT_PREDICTED, recall: NO_TRUTH, dice: NO_PIXEL}
"""Ratio -> why it is undefined."""


def used(view: PixelView) -> Array:
    """Labels with pixels on either side, bool [group, label]."""
    return (view.truth + view.predicted) > 0


def _chosen(view: PixelView, rule: str, *, declared: bool) -> Array:
    if rule == TRUE:
        return view.truth > 0
    here = used(view)
    if view.whole.declared is not None and (declared or rule == DECLARED):
        here = here | view.whole.declared
    return here


def rows(view: PixelView, settings: Settings) -> Array:
    """Labels that have rows, bool [group, label]."""
    return _chosen(view, settings.rules.rows, declared=True)


def members(view: PixelView, settings: Settings) -> Array:
    """Labels that enter means, bool [group, label]."""
    return _chosen(view, settings.rules.means, declared=False)


def members_of(of: Ratio, view: PixelView, settings: Settings) -> Array:
    """Labels that enter the averages of a ratio, bool [group, label]."""
    inside = members(view, settings)
    if of is iou and not settings.rules.ignored_in_iou:
        inside = inside & ~view.whole.ignored
    return inside


def label_cells(view: PixelView, settings: Settings, value: Array, reason: str | None) -> Cells:
    """One row per label; ``support`` is its pixels in the ground truths."""
    return Cells(
        axes=("group", "label"),
        shape=value.shape,
        keep=rows(view, settings),
        columns={"value": value, "support": view.truth},
        reason=reason,
    )


def key_cells(
    view: PixelView,
    value: Array,
    reason: Array | str,
    *,
    average: str | None = None,
    support: Array | None = None,
    scored: Array | None = None,
) -> Cells:
    """One row per label key; ``support`` is its labelled pixels in the ground truths."""
    every = np.ones(view.truth.shape, bool)
    columns: dict[str, Any] = {
        "value": value,
        "average": average,
        "support": by_key(view, view.truth, every) if support is None else support,
    }
    if scored is not None:
        columns["scored"] = scored
    return Cells(
        axes=("group", "key"),
        shape=value.shape,
        keep=view.images > 0,
        columns=columns,
        reason=reason,
    )


# Segmentation metrics per label, with their averages over the labels of a key.

_SUMS = "over the pixels of all datums"


def label_values(view: PixelView, settings: Settings, of: Ratio) -> Array:
    """Return a ratio of each label, float64 [group, label]; NaN if undefined."""
    return ratio(*of(view.right, view.predicted, view.truth), filled(settings.rules.undefined))


def _per_label(
    of: Ratio, averages: tuple[str, ...], view: PixelView, settings: Settings
) -> list[Cells]:
    value = label_values(view, settings, of)
    reported, fill = value, settings.rules.undefined
    if of is iou and settings.rules.absent_iou is not None:
        fill = settings.rules.absent_iou
        reported = np.where(used(view), value, fill)
    cells = [label_cells(view, settings, reported, WHY[of])]
    inside = members_of(of, view, settings)
    counts = (view.right, view.predicted, view.truth)
    pooled = of(*(by_key(view, count, inside) for count in counts))
    methods = {
        "macro": lambda: macro(view, value, inside),
        "micro": lambda: ratio(*pooled, filled(fill)),
    }
    why = {"macro": f"{NO_LABEL}: each has {WHY[of]}", "micro": "no labelled pixel that it is of"}
    cells += [key_cells(view, methods[name](), why[name], average=name) for name in averages]
    return cells


def _counts(view: PixelView, settings: Settings) -> list[Cells]:
    counts = {"tp": view.right, "fp": view.predicted - view.right, "fn": view.truth - view.right}
    return [
        Cells(
            axes=("group", "label"),
            shape=values.shape,
            keep=rows(view, settings),
            columns={
                "value": values.astype(np.float64),
                "statistic": statistic,
                "support": view.truth,
            },
        )
        for statistic, values in counts.items()
    ]


_LABELS_METRICS = (
    metric(
        "IOU",
        f"|truth and predicted| / |truth or predicted| of a label, {_SUMS}; micro pools labels"
        " (their mean is mIOU, by frequency FrequencyWeightedIoU).",
        "Valor metrics document, Semantic Segmentation Metrics; torchmetrics JaccardIndex",
        partial(_per_label, iou, ("micro",)),
        averages=("micro",),
        aliases=("IoU", "Jaccard", "JaccardIndex"),
        formula=r"\frac{|T \cap P|}{|T \cup P|}",
    ),
    metric(
        "Precision",
        f"pixels predicted as the label rightly / all predicted as it, {_SUMS}.",
        "valor-lite 0.39",
        partial(_per_label, precision, ("macro", "micro")),
        averages=("macro", "micro"),
        formula=r"\frac{|T \cap P|}{|P|}",
    ),
    metric(
        "Recall",
        f"pixels of the label predicted as it / all its pixels, {_SUMS}; also class accuracy.",
        "valor-lite 0.39",
        partial(_per_label, recall, ("macro", "micro")),
        averages=("macro", "micro"),
        formula=r"\frac{|T \cap P|}{|T|}",
    ),
    metric(
        "F1",
        f"2 tp / (2 tp + fp + fn) of a label's pixels, {_SUMS}.",
        "valor-lite 0.39",
        partial(_per_label, dice, ("macro", "micro")),
        averages=("macro", "micro"),
        formula=r"\frac{2\,\text{tp}}{2\,\text{tp} + \text{fp} + \text{fn}}",
    ),
    metric(
        "Dice",
        f"2 |truth and predicted| / (|truth| + |predicted|) of a label, {_SUMS}: F1 by its name"
        " in medicine.",
        "torchmetrics.segmentation DiceScore (macro, micro)",
        partial(_per_label, dice, ("macro", "micro")),
        averages=("macro", "micro"),
        aliases=("DiceScore",),
        formula=r"\frac{2\,|T \cap P|}{|T| + |P|}",
    ),
    metric(
        "Counts",
        f"Right, wrongly predicted and missed pixels of a label (tp, fp, fn), {_SUMS}.",
        "evalengine",
        _counts,
        range=(0.0, float("inf")),
        better="neither",
        counts=True,
        formula=r"\text{tp} = |T \cap P|, \quad \text{fp} = |P| - \text{tp}, \quad \text{fn} ="
        r" |T| - \text{tp}",
    ),
)


# Segmentation metrics per label key, of pixels summed over the data set.

OVERLAP = "labels of one side overlap, so that a pixel has no single one"
NO_PIXEL_OF_KEY = "no pixel that counts"
NO_TRUTH_OF_KEY = "no labelled pixel in the ground truths"


def _mean_iou(view: PixelView, settings: Settings) -> list[Cells]:
    value = label_values(view, settings, iou)
    return [key_cells(view, macro(view, value, members_of(iou, view, settings)), NO_LABEL)]


def _pixel_accuracy(view: PixelView, settings: Settings) -> list[Cells]:
    value = ratio(view.agreeing, view.counted, filled(settings.rules.undefined))
    value = np.where(view.overlapping > 0, np.nan, value)
    reason = np.where(view.overlapping > 0, OVERLAP, NO_PIXEL_OF_KEY)
    return [key_cells(view, value, reason, support=view.counted)]


def _class_accuracy(view: PixelView, settings: Settings) -> list[Cells]:
    value = label_values(view, settings, recall)
    return [key_cells(view, macro(view, value, view.truth > 0), NO_TRUTH_OF_KEY)]


def _frequency_weighted(view: PixelView, settings: Settings) -> list[Cells]:
    value, true = label_values(view, settings, iou), view.truth > 0
    weighted = by_key(view, view.truth * np.where(true, value, 0.0), true)
    return [key_cells(view, ratio(weighted, by_key(view, view.truth, true)), NO_TRUTH_OF_KEY)]


_KEYS_METRICS = (
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
    if need == "mIOU" and not settings.rules.equal_images:
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


METRICS = (*_LABELS_METRICS, *_KEYS_METRICS, *_IMAGES_METRICS, *_SURFACES_METRICS, *_FRAMES_METRICS)

SYMBOLS = {
    r"T": "pixels of the label in the ground truths of all datums",
    r"P": "pixels predicted as the label",
    r"T_i": "pixels of label i",
    r"P_j": "pixels predicted as label j",
    r"T_\ell": "pixels of a label",
    r"P_\ell": "pixels predicted as it",
    r"\text{tp}": "pixels of the label predicted as it",
    r"\text{fp}": "other pixels predicted as it",
    r"\text{fn}": "pixels of the label not predicted as it",
    r"L": "labels that count",
    r"L_d": "labels that count in image d",
    r"N": "pixels that count",
    r"N_d": "pixels of image d that count",
    r"y_x": "true label of a pixel",
    r"\hat{y}_x": "predicted label of a pixel",
    r"n": "images on which it is defined",
    r"B": (
        "pixels of the label within boundary_ratio of the image's diagonal from its outline,"
        " of all datums"
    ),
    r"\hat{B}": "the same of predictions",
    r"S": "the label's true outline in an image",
    r"\hat{S}": "its predicted outline",
    r"\delta(x, S)": "distance of a pixel from an outline, in pixel_spacing",
    r"\tau": "surface_tolerance",
    r"q_{95}": "95th percentile",
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = (
    "Dice=dicecoefficient,dsc,sorensendice F1=f1score IOU=intersectionoverunion"
    " PixelAccuracy=overallaccuracy MeanClassAccuracy=meanpixelaccuracy HD95=hausdorff95"
    " Recall=sensitivity"
)
"""Metrics, each with its names in other tools, squeezed."""

_MACRO = "It is the macro row of {}."

CLOSE: dict[str, str] = {
    "meandice dicemetric": "It is the macro row of 'Dice', or, image by image, 'DicePerImage'.",
    "mdice": _MACRO.format("'Dice'"),
    "mfscore": _MACRO.format("'F1'"),
    "mprecision": _MACRO.format("'Precision'"),
    "mrecall": _MACRO.format("'Recall'"),
    "voe": "It is 1 - 'IOU'.",
}
"""Names in other tools, squeezed -> how our number differs, or which option it takes."""
