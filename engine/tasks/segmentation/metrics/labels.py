"""Segmentation metrics per label, with their averages over the labels of a key."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.pixels import PixelView
from .parts import (
    NO_LABEL,
    WHY,
    Ratio,
    by_key,
    dice,
    iou,
    key_cells,
    label_cells,
    mean_over,
    members_of,
    metric,
    precision,
    ratio,
    recall,
    rows,
    used,
)

if TYPE_CHECKING:
    from ..settings import Settings

_SUMS = "over the pixels of all datums"


def label_values(view: PixelView, settings: Settings, of: Ratio) -> Array:
    """Return a ratio of each label, float64 [group, label]; NaN if undefined."""
    return ratio(*of(view.right, view.found, view.truth), settings.rules.undefined)


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
    made = {
        "macro": lambda: mean_over(view, value, inside),
        "micro": lambda: ratio(*pooled, fill),
    }
    why = {"macro": f"{NO_LABEL}: each has {WHY[of]}", "micro": "no labelled pixel that it is of"}
    cells += [key_cells(view, made[name](), why[name], average=name) for name in averages]
    return cells


def _counts(view: PixelView, settings: Settings) -> list[Cells]:
    counts = {
        "tp": view.right,
        "fp": view.found - view.right,
        "fn": view.truth - view.right,
    }
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


METRICS = (
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
