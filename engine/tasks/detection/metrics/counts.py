"""Counts at thresholds, TIDE errors, frames and single keypoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ....metrics.averages import ratio
from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tallies.datums import Cells, parameters
from ....tallies.ranked_view import RankedView
from ..dialects import KINDS, OF_KINDS, PCK, PCKH, SINGLE_KEYPOINTS, WRONG, labelled_points, places
from .averages import (
    INTERPOLATED,
    NO_TRUTH,
    axis_values,
    cells_of,
    key_members,
    present,
    row_means,
    sum_by_key,
)

if TYPE_CHECKING:
    from ..settings import Settings

# Counts of detection, and the ratios of them, at IoU and score thresholds.

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
    return [
        cells_of(
            view,
            settings,
            _AXES,
            values.astype(np.float64),
            view.positives[..., None, None],
            settings.iou_thresholds,
            statistic=statistic,
            max_detections=settings.cap,
        )
        for statistic, values in zip(("tp", "fp", "fn"), counts, strict=True)
    ]


def _ratio_cells(ratio: Ratio, view: RankedView, settings: Settings) -> list[Cells]:
    counts = _counts(view, settings, settings.iou_thresholds)
    top, bottom = ratio(*counts)
    value = _divided((top, bottom))
    reason = _WHY[ratio]
    summed = ratio(*(sum_by_key(view, c) for c in counts))
    n_defined = sum_by_key(view, ~np.isnan(value))
    macro, micro = _divided((sum_by_key(view, value), n_defined)), _divided(summed)
    return [
        cells_of(
            view,
            settings,
            axes,
            number,
            support[..., None, None],
            settings.iou_thresholds,
            reason=reason,
            average=average,
            max_detections=settings.cap,
        )
        for axes, average, number, support in (
            (_AXES, None, value, view.positives),
            (_KEY_AXES, "macro", macro, sum_by_key(view, view.positives)),
            (_KEY_AXES, "micro", micro, sum_by_key(view, view.positives)),
        )
    ]


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
        needs=("iou_thresholds",),
        params=_GRID,
        averages=("macro", "micro"),
        definition=f"{plain} over predictions with score >= threshold, per label, IoU and score"
        " threshold; macro is the mean over labels with a value, micro pools counts.",
        formula=formula,
        source="valor-lite 0.39; Valor metrics document",
        compute=partial(_ratio_cells, ratio),
    )


_COUNTS_METRICS = (
    Metric(
        name="Counts",
        task="detection",
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


# Cost of each kind of TIDE error: AP after fixing it minus AP.

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
        mended = view.companion(f"errors {t}")
        assert mended is not None
        yield mended, view.companion(f"unmended {t}") or mended


def _label_precision(view: RankedView, area: int, settings: Settings) -> Array:
    """AP by label, float64 [group, label]; 0 without ground truth."""
    precision = view.precision[:, :, area, 0]
    if settings.rules.first_best is None:
        return row_means(precision)
    total = np.zeros(precision.shape[:-1])
    for level in range(precision.shape[-1]):  # one after the other, as Python's sum adds
        total += precision[..., level]
    return total / precision.shape[-1] * 100


def _false(view: RankedView, area: int) -> Array:
    """False positives, [group, label]."""
    return view.counts((-np.inf,))[1][:, :, area, 0, 0]


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
    return (true + _false(view, area) > 0) | (view.positives[:, :, area] > 0)


def _precisions(view: RankedView, settings: Settings, *, costs: bool) -> list[Cells]:
    """Return AP, or its gain without each kind of error."""
    by_average: dict[str | None, list[tuple[Array, Array]]] = {}
    support = None
    for mended, plain in _sides(view, settings):
        at = _place(plain, _ALL)
        support = plain.positives[:, :, at]
        inside = _inside(plain, at, support > 0, settings)
        before = np.where(inside, _label_precision(plain, at, settings), np.nan)
        before_mean = _mean(plain, before, inside, at, settings)
        if not costs:
            by_average.setdefault(None, []).append((before, before_mean))
            continue
        for name in (*_MENDED, *_SPECIAL):
            area = _place(mended, name)
            values = _label_precision(mended, area, settings)
            # tidecv sets wrong predictions to score 0 here, and they still make a label count
            some = inside if name == "FalsePos" else _inside(mended, area, support > 0, settings)
            each = values - before
            mean = _mean(mended, values, some, area, settings) - before_mean
            if name in _MENDED:
                each, mean = np.maximum(each, 0.0), np.maximum(mean, 0.0)
            by_average.setdefault(name, []).append((each, mean))
    return _rows(view, settings, by_average, support)


def _numbers(view: RankedView, settings: Settings) -> list[Cells]:
    values: dict[str | None, list[tuple[Array, Array]]] = {}
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
            values.setdefault(name, []).append((many, sum_by_key(view, many)))
    return _rows(view, settings, values, support)


def _rows(
    view: RankedView,
    settings: Settings,
    by_average: Mapping[str | None, Sequence[tuple[Array, Array]]],
    support: Array | None,
) -> list[Cells]:
    """Return cells of each statistic, by label and by key.

    Args:
        by_average: statistic -> for each threshold, the numbers by label and by key.
        support: [group, label], ground truths that count.
    """
    assert support is not None
    by_key = sum_by_key(view, support)
    return [
        cells_of(
            view,
            settings,
            ("group", axis, "iou_threshold"),
            np.stack(numbers, axis=-1).astype(np.float64),
            some[..., None],
            settings.spot_ious,
            statistic=name,
            max_detections=settings.cap,
            parameters=parameters(background_iou=settings.background_iou),
        )
        for name, each in by_average.items()
        for axis, numbers, some in zip(
            ("label", "key"), zip(*each, strict=True), (support, by_key), strict=True
        )
    ]


_metric = partial(
    Metric,
    task="detection",
    needs=("spot_ious", "errors"),
    params=("iou_thresholds", "pr_curve_iou_threshold", "background_iou", "max_detections"),
    source=_SOURCE,
    range=(0.0, float("inf")),
    better="lower",
)

_ERRORS_METRICS = (
    _metric(
        name="TIDE",
        definition="Gain of AP without one kind of error (statistic Cls, Loc, Both, Dupe, Bkg,"
        " Miss; FalsePos and FalseNeg: without all wrong predictions, without all misses), per"
        " label and as a mean.",
        formula=r"\Delta_k = \max(0, \text{AP}_{\text{without } k} - \text{AP})",
        compute=partial(_precisions, costs=True),
    ),
    _metric(
        name="TIDEAP",
        better="higher",
        interval="recentred",
        definition="The AP from which TIDE's costs are counted: AP and mAP at the same IoU, except"
        " in dialect tidecv, which matches differently.",
        formula=INTERPOLATED,
        compute=partial(_precisions, costs=False),
    ),
    _metric(
        name="TIDECounts",
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
    ),
)


# Detection outputs with separate frames, built by the match.

_listing = partial(Metric, task="detection", better="neither", range=(0.0, float("inf")))

_FRAMES_METRICS = (
    _listing(
        name="DetailedPrecisionRecallCurve",
        frame="examples",
        needs=("pr_curve_iou_threshold", "detailed"),
        params=("pr_curve_iou_threshold", "score_thresholds", "pr_curve_max_examples"),
        definition="Counts of tp, of fp by misclassifications, duplicates and hallucinations, and"
        " of fn by misclassifications and no_predictions, with examples, per label and score"
        " threshold.",
        source="Valor metrics document, DetailedPrecisionRecallCurve",
    ),
    _listing(
        name="ConfusionMatrix",
        frame="confusion",
        needs=("spot_ious", "confusion"),
        params=("iou_thresholds", "pr_curve_iou_threshold", "score_thresholds"),
        definition="Ground truths by predicted label: matches within the label first, then"
        " leftovers greedily across the labels of the key; null for unmatched.",
        formula=r"C_{ij} = |\{(g, p) \text{ matched} : \ell_g = i, \ell_p = j\}|",
        source="evalengine; the diagonal is the true positives",
    ),
    _listing(
        name="Outcomes",
        frame="outcomes",
        needs=("spot_ious", "outcomes"),
        params=("iou_thresholds", "pr_curve_iou_threshold", "score_thresholds"),
        definition="One row per prediction or missed ground truth, with its outcome.",
        source="evalengine",
    ),
    _listing(
        name="LabelErrors",
        frame="label_errors",
        needs=("spot_ious", "label errors"),
        params=("iou_thresholds", "pr_curve_iou_threshold", "background_iou"),
        definition="Ground truths that are likely wrong (other label, location, duplicate, tiny,"
        " unfound) and objects that are likely missing, most suspicious first.",
        source="evalengine",
    ),
    _listing(
        name="PerDatum",
        frame="per_datum",
        needs=("pr_curve_iou_threshold", "single datums"),
        params=("pr_curve_iou_threshold",),
        aliases=("PerImage",),
        range=(0.0, 1.0),
        definition="F1 = 2 tp / (2 tp + fp + fn) of every datum over its labels, at the IoU"
        " threshold of the run nearest to 0.5 (distances: at pr_curve_iou_threshold) and the score"
        " threshold at which F1 of the whole run is highest.",
        source="evalengine; the order of its worst datums",
    ),
)


# Metrics of single keypoints: share found, and outcomes of those of found people.

_RONCHI = "M. R. Ronchi and P. Perona (ICCV 2017); coco-analyze"
_NO_POINT = "no labelled keypoint of a person of known size"


def _marked(view: RankedView, flags: Sequence[str]) -> list[Array]:
    """Return the number of points with each mark, [group, label, point]."""
    points = view.companion(SINGLE_KEYPOINTS)
    assert points is not None
    names = [name or "" for name, _, _ in points.tally.variants.areas]
    return [points.positives[..., places(names, mark)] for mark in flags]


def _means(accurate: Array, labelled: Array) -> tuple[Array, Array]:
    """Return, over the last axis, the mean of per-point shares, and the share of all points."""
    share = ratio(accurate, labelled)
    points = (labelled > 0).sum(axis=-1)
    total = np.zeros(accurate.shape[:-1])
    for q in range(accurate.shape[-1]):  # in order, whatever the other axes
        total += np.nan_to_num(share[..., q])
    return ratio(total, points), ratio(accurate.sum(axis=-1), labelled.sum(axis=-1))


def _pck(need: str, view: RankedView, settings: Settings) -> list[Cells]:
    labelled, accurate = _marked(view, labelled_points(need))
    share = parameters(threshold=settings.share_of(need))
    constant: dict[str, Any] = {"parameters": share, "reason": _NO_POINT}
    many = labelled.sum(axis=-1)
    cells = [
        cells_of(
            view,
            settings,
            ("group", "label", "statistic"),
            ratio(accurate, labelled),
            labelled,
            keep=labelled > 0,
            values={"statistic": _keypoint_numbers(labelled.shape[-1])},
            **constant,
        )
    ]
    # The points of all labels of a key, one label after the other.
    by_key = [np.zeros((2, view.n_groups, 0))]
    for members in key_members(view):
        each = (one[:, members].reshape(view.n_groups, -1) for one in (accurate, labelled))
        by_key.append(np.stack(_means(*each))[..., None])
    of_keys = np.concatenate(by_key, axis=-1)
    of_labels = _means(accurate, labelled)
    for at, average in enumerate(("macro", "micro")):
        for axis, value, support in (
            ("label", of_labels[at], many),
            ("key", of_keys[at], sum_by_key(view, many)),
        ):
            cells.append(
                cells_of(
                    view, settings, ("group", axis), value, support, average=average, **constant
                )
            )
    return cells


def _keypoint_numbers(n_points: int) -> tuple[str, ...]:
    return tuple(f"keypoint {q}" for q in range(1, n_points + 1))


def _kinds(view: RankedView, settings: Settings) -> list[Cells]:
    every = _marked(view, OF_KINDS)
    judged = np.sum(every, axis=0)
    of_labels = judged.sum(axis=-1)
    params = parameters(background_iou=settings.background_iou)
    cells = []
    for name, many in zip(OF_KINDS, every, strict=True):
        total = many.sum(axis=-1)
        each = [f"{name}, {one}" for one in _keypoint_numbers(many.shape[-1])]
        for axes, value, support, options in (
            (("group", "label"), total, of_labels, {"statistic": name}),
            (
                ("group", "key"),
                sum_by_key(view, total),
                sum_by_key(view, of_labels),
                {"statistic": name},
            ),
            (
                ("group", "label", "statistic"),
                many,
                judged,
                {"values": {"statistic": each}, "keep": judged > 0},
            ),
        ):
            value = value.astype(np.float64)
            cells.append(
                cells_of(view, settings, axes, value, support, parameters=params, **options)
            )
    return cells


_keypoint_metric = partial(Metric, task="detection")

_KEYPOINTS_METRICS = (
    _keypoint_metric(
        name="PCK",
        needs=(PCK,),
        params=("pck_threshold",),
        averages=("macro", "micro"),
        definition="Share of the labelled keypoints of all people that the prediction which took"
        " the person has within pck_threshold (0.2) of the longer side of its box; per keypoint,"
        " and macro (mean over keypoints) and micro (over all points).",
        formula=r"\frac{1}{m_q} \sum_i [d_{iq} \le \alpha\, h_i]",
        source="mmpose keypoint_pck_accuracy, but that a point on the edge is found",
        compute=partial(_pck, PCK),
    ),
    _keypoint_metric(
        name="PCKh",
        needs=(PCKH,),
        params=("pck_threshold", "head_segment"),
        averages=("macro", "micro"),
        definition="The same of the size of the person's head, within 0.5 of it: of column"
        " head_size, or the distance of the two keypoints of head_segment.",
        formula=r"\frac{1}{m_q} \sum_i [d_{iq} \le \alpha\, h_i]",
        source="MPII Human Pose evaluation (evaluatePCKh)",
        compute=partial(_pck, PCKH),
    ),
    _keypoint_metric(
        name="KeypointCounts",
        needs=(KINDS,),
        params=("background_iou", "mirrored_keypoints"),
        range=(0.0, float("inf")),
        better="neither",
        counts=True,
        definition="Outcomes of the labelled keypoints of people found at OKS background_iou"
        " (0.1): good, jitter (alike by 0.5 to 0.85), inversion (on the other side), swap (on"
        " another person), miss; in all and per keypoint.",
        formula=r"n_k = \sum_e [\text{kind of } e = k]",
        source=_RONCHI,
        compute=_kinds,
    ),
    _keypoint_metric(
        name="KeypointErrors",
        frame="errors",
        needs=(KINDS, WRONG),
        params=("background_iou", "mirrored_keypoints"),
        better="neither",
        definition="One row per keypoint that went wrong: jitter, inversion, swap or miss, with the"
        " prediction and the person.",
        source=_RONCHI,
    ),
)


METRICS = (*_COUNTS_METRICS, *_ERRORS_METRICS, *_FRAMES_METRICS, *_KEYPOINTS_METRICS)
