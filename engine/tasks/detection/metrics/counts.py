"""Counts of detection, and the ratios of them, at IoU and score thresholds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.ranked_view import RankedView
from .averages import NO_TRUTH, axis_values
from .members import present, present_keys, sum_by_key

if TYPE_CHECKING:
    from ..settings import Settings

Ratio = Callable[[Array, Array, Array], tuple[Array, Array]]

_AXES = ("group", "label", "area", "iou_threshold", "score_threshold")
_KEY_AXES = ("group", "key", "area", "iou_threshold", "score_threshold")


def _precision(tp: Array, fp: Array, fn: Array) -> tuple[Array, Array]:
    return tp, tp + fp


def _recall(tp: Array, fp: Array, fn: Array) -> tuple[Array, Array]:
    return tp, tp + fn


def _f1(tp: Array, fp: Array, fn: Array) -> tuple[Array, Array]:
    return 2 * tp, 2 * tp + fp + fn


def _accuracy(tp: Array, fp: Array, fn: Array) -> tuple[Array, Array]:
    return tp, tp + fp + fn


_WHY: dict[Any, str] = {
    _precision: "no prediction that counts at this threshold",
    _recall: NO_TRUTH,
    _f1: "neither ground truth nor prediction that counts at this threshold",
    _accuracy: "neither ground truth nor prediction that counts at this threshold",
}


def _divided(ratio: tuple[Array, Array]) -> Array:
    """Divide, giving NaN for a zero denominator."""
    top, bottom = ratio
    out = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=out, where=bottom != 0)
    return out


def _counts(
    view: RankedView, settings: Settings, ious: tuple[float, ...]
) -> tuple[Array, Array, Array]:
    """tp, fp and fn, [group, label, area, iou, score] each."""
    at = [view.tally.variants.threshold_index(iou) for iou in ious]
    tp, fp = view.counts(settings.score_thresholds)
    tp, fp = tp[:, :, :, at], fp[:, :, :, at]
    return tp, fp, view.positives[..., None, None] - tp


def _count_cells(view: RankedView, settings: Settings) -> list[Cells]:
    counts = _counts(view, settings, settings.iou_thresholds)
    keep = present(view)[:, :, None, None, None]
    return [
        Cells(
            axes=_AXES,
            values=axis_values(settings, settings.iou_thresholds),
            shape=values.shape,
            keep=keep,
            columns={
                "value": values.astype(np.float64),
                "statistic": statistic,
                "support": view.positives[..., None, None],
                "max_detections": settings.cap,
            },
        )
        for statistic, values in zip(("tp", "fp", "fn"), counts, strict=True)
    ]


def _ratio_cells(ratio: Ratio, view: RankedView, settings: Settings) -> list[Cells]:
    counts = _counts(view, settings, settings.iou_thresholds)
    top, bottom = ratio(*counts)
    value = _divided((top, bottom))
    reason = _WHY[ratio]
    common = {"max_detections": settings.cap}
    cells = [
        Cells(
            axes=_AXES,
            values=axis_values(settings, settings.iou_thresholds),
            shape=value.shape,
            keep=present(view)[:, :, None, None, None],
            columns={"value": value, "support": view.positives[..., None, None], **common},
            reason=reason,
        )
    ]
    keep = present_keys(view)[:, :, None, None, None]
    support = sum_by_key(view, view.positives)[..., None, None]
    summed = ratio(*(sum_by_key(view, c) for c in counts))
    n_defined = sum_by_key(view, ~np.isnan(value))
    total = sum_by_key(view, value)
    for average, number in (("macro", _divided((total, n_defined))), ("micro", _divided(summed))):
        cells.append(
            Cells(
                axes=_KEY_AXES,
                values=axis_values(settings, settings.iou_thresholds),
                shape=number.shape,
                keep=keep,
                columns={"value": number, "average": average, "support": support, **common},
                reason=reason,
            )
        )
    return cells


def _curve(view: RankedView, settings: Settings) -> list[Cells]:
    tp, fp, fn = _counts(view, settings, (settings.pr_curve_iou_threshold,))
    return [
        Cells(
            axes=_AXES,
            values=axis_values(settings, (settings.pr_curve_iou_threshold,)),
            shape=tp.shape,
            keep=present(view)[:, :, None, None, None],
            columns={
                "tp": tp,
                "fp": fp,
                "fn": fn,
                "precision": _divided(_precision(tp, fp, fn)),
                "recall": _divided(_recall(tp, fp, fn)),
                "f1": _divided(_f1(tp, fp, fn)),
                "accuracy": _divided(_accuracy(tp, fp, fn)),
                "max_detections": settings.cap,
            },
        )
    ]


_GRID = ("iou_thresholds", "score_thresholds", "max_detections", "area_ranges")


def _ratio_metric(name: str, ratio: Ratio, plain: str, formula: str) -> Metric:
    return Metric(
        name=name,
        task="detection",
        frame="metrics",
        needs=("iou_thresholds",),
        params=_GRID,
        averages=("macro", "micro"),
        definition=f"{plain} over predictions with score >= threshold, per label, IoU and"
        " score threshold; macro is the mean over labels where it is defined, micro pools counts.",
        formula=formula,
        source="valor-lite 0.39; Valor metrics document",
        compute=partial(_ratio_cells, ratio),
    )


METRICS = (
    Metric(
        name="Counts",
        task="detection",
        frame="metrics",
        needs=("iou_thresholds",),
        params=_GRID,
        range=(0.0, float("inf")),
        better="neither",
        counts=True,
        definition="True positives, false positives and false negatives (statistic tp, fp, fn)"
        " per label, IoU and score threshold.",
        formula=r"\text{tp} = |\{\text{matched predictions}\}|, \quad \text{fp} ="
        r" |\{\text{others}\}|, \quad \text{fn} = G - \text{tp}",
        source="valor-lite 0.39",
        compute=_count_cells,
    ),
    _ratio_metric(
        "Precision", _precision, "tp / (tp + fp)", r"\frac{\text{tp}}{\text{tp} + \text{fp}}"
    ),
    _ratio_metric("Recall", _recall, "tp / (tp + fn)", r"\frac{\text{tp}}{\text{tp} + \text{fn}}"),
    _ratio_metric(
        "F1",
        _f1,
        "2 tp / (2 tp + fp + fn)",
        r"\frac{2\,\text{tp}}{2\,\text{tp} + \text{fp} + \text{fn}}",
    ),
    _ratio_metric(
        "Accuracy",
        _accuracy,
        "tp / (tp + fp + fn)",
        r"\frac{\text{tp}}{\text{tp} + \text{fp} + \text{fn}}",
    ),
    Metric(
        name="PrecisionRecallCurve",
        task="detection",
        frame="curves",
        needs=("pr_curve_iou_threshold",),
        params=("pr_curve_iou_threshold", "score_thresholds"),
        better="neither",
        definition="tp, fp, fn, precision, recall, F1 and accuracy at each score threshold, per"
        " label, at pr_curve_iou_threshold.",
        formula=r"P(\tau) = \frac{\text{tp}(\tau)}{\text{tp}(\tau) + \text{fp}(\tau)}, \quad"
        r" R(\tau) = \frac{\text{tp}(\tau)}{\text{tp}(\tau) + \text{fn}(\tau)}",
        source="Valor metrics document, Precision-Recall Curves",
        compute=_curve,
    ),
)
