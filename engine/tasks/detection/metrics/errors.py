"""What each kind of error costs: AP once it is mended, less AP as it is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ....metrics.registry import Metric
from ....tally.cells import Cells, parameters
from ....tally.ranked_view import RankedView
from .averages import NO_LABEL, NO_TRUTH, key_members, present, present_keys, row_means, sum_by_key

if TYPE_CHECKING:
    from ..settings import Settings

Array = np.ndarray[Any, Any]

_SOURCE = "D. Bolya et al., TIDE (ECCV 2020); tidecv 1.0.1"
_KINDS = ("Cls", "Loc", "Both", "Dupe", "Bkg")
_MENDED = (*_KINDS, "Miss")
_SPECIAL = ("FalsePos", "FalseNeg")
_ALL = "as it is"


def _place(view: RankedView, name: str) -> int:
    return [area for area, _, _ in view.tally.variants.areas].index(name)


def _sides(view: RankedView) -> tuple[RankedView, RankedView]:
    """The tally of errors, and that without any mended."""
    mended = view.beside("errors")
    assert mended is not None
    return mended, view.beside("unmended") or mended


def _label_precision(view: RankedView, area: int, settings: Settings) -> Array:
    """AP by label, float64 [group, label, iou]; 0 without ground truth."""
    precision = view.precision[:, :, area]
    if settings.rules.first_best is None:
        return row_means(precision)
    total = np.zeros(precision.shape[:-1])
    for level in range(precision.shape[-1]):  # one after the other, as Python's sum adds
        total += precision[..., level]
    ap: Array = total / precision.shape[-1] * 100
    return ap


def _counts_rows(view: RankedView, area: int) -> Array:
    """Predictions that count, [group, label, iou]."""
    tp, fp = view.counts((-np.inf,))
    rows: Array = (tp + fp)[:, :, area, :, 0]
    return rows


def _mean(view: RankedView, values: Array, inside: Array, area: int, settings: Settings) -> Array:
    """Means over labels of each key, float64 [group, key, iou]."""
    keys = key_members(view)
    out = np.full((view.n_groups, len(keys), values.shape[-1]), np.nan)
    cells = settings.rules.mean_over_cells and settings.rules.first_best is None
    for k, members in enumerate(keys):
        for g in range(view.n_groups):
            for t in range(values.shape[-1]):
                some = members[inside[g, members, t]]
                if not some.size:
                    continue
                if cells:  # the same mean of the same cells as mAP, to the bit
                    laid = view.precision[g, some, area, t].T.reshape(1, -1)
                    out[g, k, t] = row_means(laid)[0]
                elif settings.rules.first_best is None:
                    out[g, k, t] = row_means(values[g, some, t][None])[0]
                else:
                    total = 0.0
                    for value in values[g, some, t].tolist():
                        total += value
                    out[g, k, t] = total / some.size
    return out


def _inside(view: RankedView, area: int, base: Array, settings: Settings) -> Array:
    """Labels that enter means, bool [group, label, iou].

    In tidecv those with a prediction or a ground truth that counts, as mended; else those with a
    ground truth to begin with.
    """
    if settings.rules.first_best is None:
        return base
    inside: Array = (_counts_rows(view, area) > 0) | (view.positives[:, :, area, None] > 0)
    return inside


def _costs(view: RankedView, settings: Settings) -> list[Cells]:
    mended, plain = _sides(view)
    n = len(mended.tally.variants.thresholds)
    at = _place(plain, _ALL)
    base_inside = np.repeat(plain.positives[:, :, at, None] > 0, n, axis=2)
    before = _label_precision(plain, at, settings)
    own = _inside(plain, at, base_inside, settings)
    before_mean = _mean(plain, before, own, at, settings)
    support = mended.positives[:, :, _place(mended, _ALL)]
    shown = own if settings.rules.first_best is not None else base_inside
    found = []
    for name in (None, *_MENDED, *_SPECIAL):
        if name is None:
            each = np.where(shown, before, np.nan)
            mean = before_mean
        else:
            area = _place(mended, name)
            values = _label_precision(mended, area, settings)
            # tidecv gives wrong predictions a score of 0 there, where they still make a label count
            inside = own if name == "FalsePos" else _inside(mended, area, base_inside, settings)
            each = np.where(shown, values, np.nan) - before
            mean = _mean(mended, values, inside, area, settings) - before_mean
            if name in _MENDED:
                each, mean = np.maximum(each, 0.0), np.maximum(mean, 0.0)
        found += _cells(view, settings, "label", each, support, name or "AP", "TIDE")
        keyed = sum_by_key(view, support)
        found += _cells(view, settings, "key", mean, keyed, name or "AP", "TIDE")
    return found


def _numbers(view: RankedView, settings: Settings) -> list[Cells]:
    mended, _ = _sides(view)
    false = mended.counts((-np.inf,))[1][..., 0]
    base = _place(mended, _ALL)
    counted = [area for area, _, _ in mended.tally.variants.areas]
    positives = mended.positives[..., None]
    found = []
    for name in (*_MENDED, *_SPECIAL):
        if name in _KINDS:
            own = f"counted {name}"
            many = false[:, :, base] - false[:, :, _place(mended, name)]
            if own in counted:
                many = false[:, :, _place(mended, own)]
        elif name == "FalsePos":
            many = false[:, :, base]
        else:
            gone = positives[:, :, base] - positives[:, :, _place(mended, name)]
            many = np.repeat(gone, false.shape[-1], axis=-1)
        support = mended.positives[:, :, base]
        many = many.astype(np.float64)
        found += _cells(view, settings, "label", many, support, name, "TIDECounts")
        keyed = sum_by_key(view, support)
        found += _cells(view, settings, "key", sum_by_key(view, many), keyed, name, "TIDECounts")
    return found


def _cells(
    view: RankedView, settings: Settings, axis: str, value: Array, support: Array, name: str,
    metric: str,
) -> list[Cells]:  # fmt: skip
    keep = present(view) if axis == "label" else present_keys(view)
    return [
        Cells(
            axes=("group", axis, "iou_threshold"),
            values={"iou_threshold": tuple(round(iou, 10) for iou in settings.spot_ious)},
            shape=value.shape,
            keep=keep[..., None],
            columns={
                "value": value,
                "statistic": name,
                "support": support[..., None],
                "max_detections": settings.cap,
                "parameters": parameters(background_iou=settings.background_iou),
            },
            reason=NO_TRUTH if axis == "label" else NO_LABEL,
        )
    ]


_metric = partial(
    Metric,
    task="detection",
    needs=("spot_ious", "errors"),
    params=("iou_thresholds", "pr_curve_iou_threshold", "background_iou", "max_detections"),
    source=_SOURCE,
    better="lower",
)

METRICS = (
    _metric(
        name="TIDE",
        frame="metrics",
        range=(0.0, float("inf")),
        definition="What AP would gain without one kind of error (statistic Cls, Loc, Both, Dupe,"
        " Bkg, Miss; FalsePos and FalseNeg without all wrong predictions, all that was missed), and"
        " AP as it is (statistic AP), per label and as a mean.",
        compute=_costs,
    ),
    _metric(
        name="TIDECounts",
        frame="metrics",
        range=(0.0, float("inf")),
        definition="How many errors of each kind there are.",
        compute=_numbers,
    ),
    _metric(
        name="Errors",
        frame="errors",
        needs=("spot_ious", "errors", "shown errors"),
        definition="One row per wrong prediction or missed ground truth: the kind of error, and"
        " the ground truth that tells it.",
    ),
)
