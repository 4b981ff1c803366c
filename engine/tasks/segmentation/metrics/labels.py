"""Metrics of pixels per label and per label key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ....metrics.averages import by_key, macro, ratio
from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tallies.counts import PixelView
from ....tallies.datums import Cells
from ..dialects import DECLARED, TRUE, Settings

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
    return (view.truth + view.found) > 0


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
    return ratio(*of(view.right, view.found, view.truth), filled(settings.rules.undefined))


def _per_label(
    of: Ratio, averages: tuple[str, ...], view: PixelView, settings: Settings
) -> list[Cells]:
    value = label_values(view, settings, of)
    shown, fill = value, settings.rules.undefined
    if of is iou and settings.rules.absent_iou is not None:
        fill = settings.rules.absent_iou
        shown = np.where(used(view), value, fill)
    cells = [label_cells(view, settings, shown, WHY[of])]
    inside = members_of(of, view, settings)
    counts = (view.right, view.found, view.truth)
    pooled = of(*(by_key(view, count, inside) for count in counts))
    methods = {
        "macro": lambda: macro(view, value, inside),
        "micro": lambda: ratio(*pooled, filled(fill)),
    }
    why = {"macro": f"{NO_LABEL}: each has {WHY[of]}", "micro": "no labelled pixel that it is of"}
    cells += [key_cells(view, methods[name](), why[name], average=name) for name in averages]
    return cells


def _counts(view: PixelView, settings: Settings) -> list[Cells]:
    counts = {"tp": view.right, "fp": view.found - view.right, "fn": view.truth - view.right}
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


METRICS = (*_LABELS_METRICS, *_KEYS_METRICS)
