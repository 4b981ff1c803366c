"""Metrics of optimal score thresholds at one IoU threshold."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....metrics.averages import UNREACHED
from ....metrics.registry import Metric
from ....metrics.thresholds import NOTHING, RULES, Curve, Rule, best_of
from ....schemas.arrays import Array
from ....schemas.option_values import in_name
from ....tally.cells import Cells
from ....tally.ranked_view import RankedView
from .averages import NO_TRUTH
from .members import present, sum_by_key

if TYPE_CHECKING:
    from ..settings import Settings


_NO_SCORE = "no prediction that counts"


def curve_of(view: RankedView, settings: Settings, *, pooled: bool = False) -> Curve:
    """The points of every (group, label), or of all labels of a key as one."""
    at = settings.pr_curve_iou_threshold
    sought = view.sought(at, pooled=pooled)

    def shown() -> Array:
        here = present(view)
        return (sum_by_key(view, here) > 1 if pooled else here).ravel()

    return Curve(
        partial(view.point_blocks, at, pooled=pooled),
        sought,
        None,
        shown,
        cut=bool(settings.thresholds),
    )


def _best(view: RankedView, settings: Settings, rule: Rule) -> list[Cells]:
    """Compute the threshold that a rule chooses for every label, and its rates."""
    curve = curve_of(view, settings)
    best, at, told = best_of(curve, rule, settings.aims)
    keep = curve.shown().reshape(view.n_groups, -1)
    sought = curve.positives.reshape(keep.shape)
    why = np.full(keep.shape, UNREACHED, dtype=object)
    if rule.lacking:
        why[sought == 0] = NO_TRUTH
    why[best.unscored.reshape(keep.shape)] = _NO_SCORE
    why[~np.isnan(best.threshold).reshape(keep.shape)] = NO_TRUTH
    unsure = np.where((best.tp + best.fp == 0).reshape(keep.shape), NOTHING, why)
    named = {"threshold": best.threshold, "precision": at.precision, "recall": at.recall,
             f"f{in_name(settings.aims.beta)}": at.f}  # fmt: skip
    return [
        Cells(
            axes=("group", "label"),
            shape=keep.shape,
            keep=keep,
            columns={
                "value": value.reshape(keep.shape),
                "statistic": statistic,
                "support": sought,
                "iou_threshold": settings.told(settings.pr_curve_iou_threshold),
                "area": settings.areas[0][0],
                "max_detections": settings.cap,
                "parameters": told,
            },
            reason=unsure if statistic == "precision" else why,
        )
        for statistic, value in named.items()
    ]


def _threshold_metric(rule: Rule) -> Metric:
    return Metric(
        name=rule.metric,
        task="detection",
        frame="metrics",
        needs=("pr_curve_iou_threshold",),
        params=("pr_curve_iou_threshold", *rule.params, "beta"),
        range=(-np.inf, np.inf),
        better="neither",
        definition=f"{rule.definition[:-1]}; per label at pr_curve_iou_threshold.",
        formula=rule.formula,
        source=rule.source,
        compute=partial(_best, rule=rule),
    )


METRICS = tuple(_threshold_metric(rule) for rule in RULES if not rule.negatives)
