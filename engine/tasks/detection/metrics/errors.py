"""Cost of each kind of TIDE error: AP after fixing it minus AP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tally.cells import Cells, parameters
from ....tally.ranked_view import RankedView
from .averages import INTERPOLATED, NO_LABEL, NO_TRUTH
from .members import key_members, present, present_keys, row_means, sum_by_key

if TYPE_CHECKING:
    from ..settings import Settings


_SOURCE = "D. Bolya et al., TIDE (ECCV 2020); tidecv 1.0.1"
_KINDS = ("Cls", "Loc", "Both", "Dupe", "Bkg")
_MENDED = (*_KINDS, "Miss")
_SPECIAL = ("FalsePos", "FalseNeg")
_ALL = "as it is"


def _place(view: RankedView, name: str) -> int:
    return [area for area, _, _ in view.tally.variants.areas].index(name)


def _sides(view: RankedView, settings: Settings) -> Iterator[tuple[RankedView, RankedView]]:
    """Yield, for each threshold, the view with fixes and the view without."""
    for t in range(len(settings.spot_ious)):
        mended = view.beside(f"errors {t}")
        assert mended is not None
        yield mended, view.beside(f"unmended {t}") or mended


def _label_precision(view: RankedView, area: int, settings: Settings) -> Array:
    """AP by label, float64 [group, label]; 0 without ground truth."""
    precision = view.precision[:, :, area, 0]
    if settings.rules.first_best is None:
        return row_means(precision)
    total = np.zeros(precision.shape[:-1])
    for level in range(precision.shape[-1]):  # one after the other, as Python's sum adds
        total += precision[..., level]
    ap: Array = total / precision.shape[-1] * 100
    return ap


def _false(view: RankedView, area: int) -> Array:
    """False positives, [group, label]."""
    false: Array = view.counts((-np.inf,))[1][:, :, area, 0, 0]
    return false


def _mean(view: RankedView, values: Array, inside: Array, area: int, settings: Settings) -> Array:
    """Means over labels of each key, float64 [group, key]."""
    keys = key_members(view)
    out = np.full((view.n_groups, len(keys)), np.nan)
    for g, k in np.ndindex(*out.shape):
        some = keys[k][inside[g, keys[k]]]
        if not some.size:
            continue
        if settings.rules.first_best is not None:
            out[g, k] = np.add.accumulate(values[g, some])[-1] / some.size  # one after the other
        elif settings.rules.mean_over_cells:  # the same mean of the same cells as mAP, to the bit
            out[g, k] = row_means(view.precision[g, some, area, 0].T.reshape(1, -1))[0]
        else:
            out[g, k] = row_means(values[g, some][None])[0]
    return out


def _inside(view: RankedView, area: int, base: Array, settings: Settings) -> Array:
    """Return the labels that enter means, bool [group, label].

    In tidecv these have a prediction or ground truth that counts after the fix; otherwise they have
    a
    ground truth before it.
    """
    if settings.rules.first_best is None:
        return base
    true = view.counts((-np.inf,))[0][:, :, area, 0, 0]
    inside: Array = (true + _false(view, area) > 0) | (view.positives[:, :, area] > 0)
    return inside


def _precisions(view: RankedView, settings: Settings, *, costs: bool) -> list[Cells]:
    """Return AP, or its gain without each kind of error."""
    found: dict[str | None, list[tuple[Array, Array]]] = {}
    support = None
    for mended, plain in _sides(view, settings):
        at = _place(plain, _ALL)
        support = plain.positives[:, :, at]
        own = _inside(plain, at, support > 0, settings)
        before = np.where(own, _label_precision(plain, at, settings), np.nan)
        before_mean = _mean(plain, before, own, at, settings)
        if not costs:
            found.setdefault(None, []).append((before, before_mean))
            continue
        for name in (*_MENDED, *_SPECIAL):
            area = _place(mended, name)
            values = _label_precision(mended, area, settings)
            # tidecv sets wrong predictions to score 0 here, and they still make a label count
            some = own if name == "FalsePos" else _inside(mended, area, support > 0, settings)
            each = values - before
            mean = _mean(mended, values, some, area, settings) - before_mean
            if name in _MENDED:
                each, mean = np.maximum(each, 0.0), np.maximum(mean, 0.0)
            found.setdefault(name, []).append((each, mean))
    return _rows(view, settings, found, support)


def _numbers(view: RankedView, settings: Settings) -> list[Cells]:
    """Return the number of errors."""
    found: dict[str | None, list[tuple[Array, Array]]] = {}
    support = None
    for mended, _ in _sides(view, settings):
        base, positives = _place(mended, _ALL), mended.positives
        support = positives[:, :, base]
        areas = [area for area, _, _ in mended.tally.variants.areas]
        for name in (*_MENDED, *_SPECIAL):
            if f"counted {name}" in areas:
                many = _false(mended, _place(mended, f"counted {name}"))
            elif name in _KINDS:
                many = _false(mended, base) - _false(mended, _place(mended, name))
            elif name == "FalsePos":
                many = _false(mended, base)
            else:
                many = support - positives[:, :, _place(mended, name)]
            found.setdefault(name, []).append((many, sum_by_key(view, many)))
    return _rows(view, settings, found, support)


def _rows(
    view: RankedView,
    settings: Settings,
    found: Mapping[str | None, Sequence[tuple[Array, Array]]],
    support: Array | None,
) -> list[Cells]:
    """Return cells of each statistic, by label and by key.

    Args:
        found: statistic -> for each threshold, the numbers by label and by key.
        support: [group, label], ground truths that count.
    """
    assert support is not None
    cells = []
    for name, each in found.items():
        by_label, by_key = (
            np.stack(some, axis=-1).astype(np.float64) for some in zip(*each, strict=True)
        )
        cells.append(_cells(view, settings, "label", by_label, support, name))
        cells.append(_cells(view, settings, "key", by_key, sum_by_key(view, support), name))
    return cells


def _cells(
    view: RankedView, settings: Settings, axis: str, value: Array, support: Array, name: str | None
) -> Cells:
    """Return cells per label or per key; ``support`` does not have the last axis."""
    keep = present(view) if axis == "label" else present_keys(view)
    return Cells(
        axes=("group", axis, "iou_threshold"),
        values={"iou_threshold": tuple(settings.told(iou) for iou in settings.spot_ious)},
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


_metric = partial(
    Metric,
    task="detection",
    needs=("spot_ious", "errors"),
    params=("iou_thresholds", "pr_curve_iou_threshold", "background_iou", "max_detections"),
    source=_SOURCE,
    range=(0.0, float("inf")),
    better="lower",
)

METRICS = (
    _metric(
        name="TIDE",
        frame="metrics",
        definition="What AP would gain without one kind of error (statistic Cls, Loc, Both, Dupe,"
        " Bkg, Miss; FalsePos and FalseNeg without all wrong predictions, all that was missed), per"
        " label and as a mean.",
        formula=r"\Delta_k = \max(0, \text{AP}_{\text{without } k} - \text{AP})",
        compute=partial(_precisions, costs=True),
    ),
    _metric(
        name="TIDEAP",
        frame="metrics",
        better="higher",
        interval="recentred",
        definition="AP as it is, from which TIDE's costs are counted: AP and mAP at the same"
        " IoU, but in dialect tidecv, whose match is its own.",
        formula=INTERPOLATED,
        compute=partial(_precisions, costs=False),
    ),
    _metric(
        name="TIDECounts",
        frame="metrics",
        counts=True,
        definition="How many errors of each kind there are.",
        formula=r"n_k = \sum_e [\text{kind of } e = k]",
        compute=_numbers,
    ),
    _metric(
        name="Errors",
        frame="errors",
        needs=("spot_ious", "errors", "shown errors"),
        better="neither",
        definition="One row per wrong prediction or missed ground truth: the kind of error, and"
        " the ground truth that explains it.",
        formula="",
    ),
)
