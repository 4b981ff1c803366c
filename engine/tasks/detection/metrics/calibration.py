"""Chosen score thresholds, calibration, errors of true positives and orientation."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ....metrics.averages import UNREACHED, ratio
from ....metrics.registry import Metric
from ....metrics.thresholds import NOTHING, RULES, Bins, Curve, Rule, best_of, bins_by
from ....schemas.arrays import Array
from ....schemas.option_values import in_name
from ....tallies.datums import Cells, parameters
from ....tallies.ranked import by_group
from ....tallies.ranked_points import Binned, BoxBins
from ....tallies.ranked_view import RankedView
from ..dialects import ANGLES, ERRORS, HITS, OF_HITS
from .averages import (
    NO_TRUTH,
    at_own,
    cells_of,
    key_members,
    mean_of_labels,
    mean_precision,
    own_precision,
    own_thresholds,
    present,
    row_means,
    shape_of,
    sum_by_key,
)

if TYPE_CHECKING:
    from ..settings import Settings

# Metrics of optimal score thresholds at one IoU threshold.

_NO_SCORE = "no prediction that counts"


def curve_of(view: RankedView, settings: Settings, *, pooled: bool = False) -> Curve:
    """The points of every (group, label), or of all labels of a key as one."""
    at = settings.pr_curve_iou_threshold
    positives = view.positives[:, :, 0]
    sought = sum_by_key(view, positives) if pooled else positives

    def reported() -> Array:
        here = present(view)
        return (sum_by_key(view, here) > 1 if pooled else here).ravel()

    return Curve(
        partial(view.point_blocks, at, pooled=pooled),
        sought.ravel().astype(np.float64),
        None,
        reported,
        cut=bool(settings.thresholds),
    )


def _best(view: RankedView, settings: Settings, rule: Rule) -> list[Cells]:
    """Compute the threshold that a rule chooses for every label, and its rates."""
    curve = curve_of(view, settings)
    best, at, parameters_json = best_of(curve, rule, settings)
    keep = curve.reported().reshape(shape_of(view, "label"))
    sought = curve.positives.reshape(keep.shape)
    why = np.full(keep.shape, UNREACHED, dtype=object)
    if rule.required:
        why[sought == 0] = NO_TRUTH
    why[best.unscored.reshape(keep.shape)] = _NO_SCORE
    why[~np.isnan(best.threshold).reshape(keep.shape)] = NO_TRUTH
    unsure = np.where((best.tp + best.fp == 0).reshape(keep.shape), NOTHING, why)
    named = {
        "threshold": best.threshold,
        "precision": at.precision,
        "recall": at.recall,
        f"f{in_name(settings.beta)}": at.f,
    }
    return [
        cells_of(
            view,
            settings,
            ("group", "label"),
            value.reshape(keep.shape),
            sought,
            reason=unsure if statistic == "precision" else why,
            statistic=statistic,
            parameters=parameters_json,
            **columns_of(settings, "label"),
        )
        for statistic, value in named.items()
    ]


def _threshold_metric(rule: Rule) -> Metric:
    return Metric(
        name=rule.metric,
        task="detection",
        needs=("pr_curve_iou_threshold",),
        params=("pr_curve_iou_threshold", *rule.params, "beta"),
        range=(-np.inf, np.inf),
        better="neither",
        chooses=True,
        definition=f"{rule.definition[:-1]}; per label at pr_curve_iou_threshold.",
        formula=rule.formula,
        source=rule.source,
        compute=partial(_best, rule=rule),
    )


_THRESHOLDS_METRICS = tuple(_threshold_metric(rule) for rule in RULES if not rule.negatives)


# Calibration of detections: whether a score of 0.8 is right four times in five.

NO_ROW = "no prediction that counts"
BEYOND = "scores are outside [0, 1]"
KUEPPERS = "Küppers et al. 2020, Multivariate Confidence Calibration for Object Detection (D-ECE)"


def _levels(view: RankedView, settings: Settings) -> list[tuple[str, Bins]]:
    """Return axis and bins: per label, and per key with labels pooled."""
    return [
        (axis, bins_by(curve_of(view, settings, pooled=axis == "key"), settings.n_bins))
        for axis in ("label", "key")
    ]


def columns_of(settings: Settings, axis: str) -> dict[str, Any]:
    """Return the identifying columns of rows per label, or per key with labels pooled."""
    return {
        "average": None if axis == "label" else "micro",
        "iou_threshold": settings.in_user_unit(settings.pr_curve_iou_threshold),
        "area": settings.areas[0][0],
        "max_detections": settings.cap,
    }


def _error(view: RankedView, settings: Settings, of: str) -> list[Cells]:
    cells = []
    for axis, bins in _levels(view, settings):
        shape = shape_of(view, axis)
        value, n = (one.reshape(shape) for one in (getattr(bins, of), bins.n.sum(axis=1)))
        cells.append(
            cells_of(
                view,
                settings,
                ("group", axis),
                value,
                n,
                reason=np.where(n > 0, BEYOND, NO_ROW),
                parameters=parameters(n_bins=settings.n_bins),
                **columns_of(settings, axis),
            )
        )
    return cells


def _reliability(view: RankedView, settings: Settings) -> list[Cells]:
    cells, n_bins = [], settings.n_bins
    for axis, bins in _levels(view, settings):
        n = bins.n.reshape(*shape_of(view, axis), n_bins)
        total = n.sum(axis=-1, keepdims=True)
        share = np.divide(n, total, out=np.full(n.shape, np.nan), where=total > 0)
        named = {"confidence": bins.score, "precision": bins.right, "share": share}
        cells += [
            cells_of(
                view,
                settings,
                ("group", axis, "score_threshold"),
                value.reshape(n.shape),
                n,
                reason=BEYOND,
                keep=n > 0,
                values={"score_threshold": [i / n_bins for i in range(n_bins)]},
                statistic=statistic,
                **columns_of(settings, axis),
            )
            for statistic, value in named.items()
        ]
    return cells


_metric = partial(
    Metric,
    task="detection",
    needs=("pr_curve_iou_threshold",),
    params=("pr_curve_iou_threshold", "n_bins"),
    averages=("micro",),
    chooses=True,
)


_CALIBRATION_METRICS = (
    _metric(
        name="ECE",
        aliases=("D-ECE", "DECE"),
        better="lower",
        interval="recentred",
        definition="Expected calibration error of detections by score: mean over n_bins equal bins"
        " of |precision - mean score|, weighed by the predictions in each; per label, and micro"
        " over all predictions of a key.",
        formula=r"\sum_b \frac{n_b}{n} \left|\text{precision}_b - \text{conf}_b\right|",
        source=KUEPPERS,
        compute=partial(_error, of="expected"),
    ),
    _metric(
        name="MCE",
        better="lower",
        interval="recentred",
        definition="Maximum calibration error: the largest |precision - mean score| of any bin.",
        formula=r"\max_b \left|\text{precision}_b - \text{conf}_b\right|",
        source="Naeini et al. 2015, of detections as D-ECE",
        compute=partial(_error, of="largest"),
    ),
    _metric(
        name="Reliability",
        better="neither",
        definition="The bins behind ECE: mean score (confidence), precision and share of the"
        " predictions of each, which starts at score_threshold.",
        formula=r"\text{conf}_b = \frac{1}{n_b} \sum_{p \in b} s_p, \quad \text{precision}_b ="
        r" \frac{\text{tp}_b}{n_b}, \quad \text{share}_b = \frac{n_b}{n}",
        source=KUEPPERS,
        compute=_reliability,
    ),
)


# Calibration of detections by their position and size in the image.

_BINNED = {"position": ("cx", "cy"), "size": ("width", "height"), "position and size": ()}
"""Bin variables in addition to the score, and the names of pairs of bins."""


def _box_levels(view: RankedView, settings: Settings) -> list[tuple[str, Binned]]:
    """Return axis and bins: per label, and per key with labels pooled."""
    at, n_scores = settings.pr_curve_iou_threshold, settings.box_bins.scores
    by_label = view.binned(at, n_scores)
    key, n_keys = view.labels.key, len(view.labels.key_names)
    group, label = np.divmod(by_label.segment, max(1, key.size))
    by_key = by_label.regrouped(group * n_keys + key[label], by_label.place, view.n_groups * n_keys)
    return [("label", by_label), ("key", by_key)]


def _by(binned: Binned, by: str, bins: BoxBins) -> Binned:
    base, place = bins.boxes**2, binned.place
    place = {"position": place // base, "size": place % base}.get(by, place)
    return binned.regrouped(binned.segment, place, binned.n)


def _summed(of: Array, values: Array, n: int) -> Array:
    return np.bincount(of, values, minlength=n)


def _gaps(binned: Binned, of: Array, n: int, least: int) -> tuple[Array, Array]:
    """Return mean gaps between score and precision over bins that count, and their rows.

    Args:
        of: int64 [k], number that each bin enters.
        n: how many numbers there are.
        least: minimum rows of a bin that counts.
    """
    rows = np.where(binned.sums[:, 0] >= least, binned.sums[:, 0], 0)
    counted = _summed(of, rows, n)
    total = _summed(of, rows * np.abs(binned.right - binned.score), n)
    return ratio(total, counted), counted


def _box_error(view: RankedView, settings: Settings) -> list[Cells]:
    bins, cells = settings.box_bins, []
    for axis, every in _box_levels(view, settings):
        shape = shape_of(view, axis)
        for by in _BINNED:
            binned = _by(every, by, bins)
            value, counted = _gaps(binned, binned.segment, binned.n, bins.least)
            value[binned.beyond] = np.nan
            why = np.full(binned.n, f"no bin with {bins.least} predictions that count", object)
            why[_summed(binned.segment, binned.sums[:, 0], binned.n) == 0] = NO_ROW
            why[binned.beyond] = BEYOND
            cells.append(
                cells_of(
                    view,
                    settings,
                    ("group", axis),
                    value.reshape(shape),
                    counted.reshape(shape),
                    reason=why.reshape(shape),
                    statistic=by,
                    parameters=parameters(
                        n_bins=bins.scores, box_bins=bins.boxes, least_in_bin=bins.least
                    ),
                    **columns_of(settings, axis),
                )
            )
    return cells


def _box_reliability(view: RankedView, settings: Settings) -> list[Cells]:
    bins, cells = settings.box_bins, []
    n_places = bins.boxes**2
    for axis, every in _box_levels(view, settings):
        shape = *shape_of(view, axis), n_places
        for by, names in _BINNED.items():
            if not names:
                continue
            binned = _by(every, by, bins)
            of, n = binned.segment * n_places + binned.place, binned.n * n_places
            rows = _summed(of, binned.sums[:, 0], n)
            total = np.repeat(_summed(binned.segment, binned.sums[:, 0], binned.n), n_places)
            statistics = {
                "ece": _gaps(binned, of, n, bins.least)[0],
                "confidence": ratio(_summed(of, binned.sums[:, 0] * binned.score, n), rows),
                "precision": ratio(_summed(of, binned.sums[:, 1], n), rows),
                "share": ratio(rows, total),
            }
            beyond = np.repeat(binned.beyond, n_places)
            why = np.where(beyond, BEYOND, f"no bin with {bins.least} predictions that count")
            where = [
                json.dumps({names[0]: x / bins.boxes, names[1]: y / bins.boxes})
                for x in range(bins.boxes)
                for y in range(bins.boxes)
            ]
            for statistic, value in statistics.items():
                if statistic in ("ece", "confidence"):
                    value = np.where(beyond, np.nan, value)
                cells.append(
                    cells_of(
                        view,
                        settings,
                        ("group", axis, "level"),
                        value.reshape(shape),
                        rows.reshape(shape),
                        reason=why.reshape(shape),
                        keep=(rows > 0).reshape(shape),
                        statistic=statistic,
                        parameters=np.array(where),
                        **columns_of(settings, axis),
                    )
                )
    return cells


_box_metric = partial(
    Metric,
    task="detection",
    needs=("pr_curve_iou_threshold", "places"),
    params=("pr_curve_iou_threshold", "n_bins", "box_bins", "least_in_bin"),
    averages=("micro",),
    chooses=True,
    source=KUEPPERS,
)


_BOX_CALIBRATION_METRICS = (
    _box_metric(
        name="BoxECE",
        better="lower",
        interval="recentred",
        definition="Expected calibration error of detections by score and box: mean of |precision -"
        " mean score| over bins of score and position (centre), of score and size, and of score,"
        " position and size, as shares of the image, weighted by the predictions in each; bins of"
        " fewer than least_in_bin are skipped.",
        formula=r"\frac{\sum_b n_b \left|\text{precision}_b - \text{conf}_b\right|}{\sum_b n_b}",
        compute=_box_error,
    ),
    _box_metric(
        name="BoxReliability",
        better="neither",
        definition="The bins of BoxECE: mean score (confidence), precision, share of the"
        " predictions and expected calibration error of each bin of position, and of size, which"
        " begins at the values in column parameters.",
        formula=r"\text{conf}_b = \frac{1}{n_b} \sum_{p \in b} s_p, \quad \text{precision}_b ="
        r" \frac{\text{tp}_b}{n_b}, \quad \text{share}_b = \frac{n_b}{n}",
        compute=_box_reliability,
    ),
)


# Errors of true positives of 3-D boxes, and nuScenes' detection score that is made of them.

_LOWEST = 0.1
"""Recall up to which errors do not count."""
_NO_LABEL = "no label of which the error means something"
_DEVKIT = "nuscenes-devkit detection.algo.calc_tp and DetectionMetrics; arXiv 1903.11027"


def _errors(view: RankedView, settings: Settings) -> Array:
    """Return every error of every label, [group, label, error]; NaN if meaningless."""
    positives = view.companion(HITS)
    assert positives is not None
    tally = positives.tally
    start, rows = by_group(tally.start, tally.datum, view.group, view.n_groups, view.weights)
    _, scores, _ = view.sampled_with_scores(int(np.iinfo(np.int32).max))
    at = view.tally.variants.threshold_index(settings.pr_curve_iou_threshold)
    reached = np.nan_to_num(scores[:, :, 0, at])
    levels = view.levels
    n_groups, n_labels = reached.shape[:2]
    out = np.ones((n_groups, n_labels, len(ERRORS)))
    first = int(np.searchsorted(levels, _LOWEST + 1e-9))
    for s in range(start.size - 1):
        g, label = divmod(s, n_labels)
        places = rows[start[s] : start[s + 1]]
        indices = np.flatnonzero(reached[g, label])
        last = int(indices[-1]) if indices.size else 0
        if not places.size or last < first:
            continue
        cutoffs, score = reached[g, label], tally.score[places]
        for e, values in enumerate(tally.values[:, places]):
            means = np.interp(cutoffs[::-1], score[::-1], _running_mean(values)[::-1])[::-1]
            out[g, label, e] = np.mean(means[first : last + 1])
    frame = view.labels.frame["label_value"].to_list()
    for name, without in settings.rules.unjudged.items():
        for label in (code for code, value in enumerate(frame) if value == name):
            out[:, label, [ERRORS.index(error) for error in without]] = np.nan
    return out


def _running_mean(values: Array) -> Array:
    """Return running means that ignore NaN; 1 if all are NaN."""
    defined = ~np.isnan(values)
    if not defined.any():
        return np.ones(values.size)
    many = np.cumsum(defined)
    total = np.cumsum(np.where(defined, values, 0.0))
    return np.divide(total, many, out=np.zeros(values.size), where=many > 0)


def _key_means(view: RankedView, errors: Array) -> Array:
    """Return means over the labels of each key, [group, key, error]; NaN if undefined."""
    out = np.full((errors.shape[0], len(key_members(view)), errors.shape[2]), np.nan)
    for k, members in enumerate(key_members(view)):
        defined = ~np.isnan(errors[:, members])
        many = defined.sum(axis=1)
        total = np.where(defined, errors[:, members], 0.0).sum(axis=1)
        np.divide(total, many, out=out[:, k], where=many > 0)
    return out


def _true_positive_error(at: int, view: RankedView, settings: Settings) -> list[Cells]:
    errors = _errors(view, settings)
    support = view.positives[..., 0]
    iou = settings.in_user_unit(settings.pr_curve_iou_threshold)
    by_key = _key_means(view, errors)
    return [
        cells_of(view, settings, ("group", axis), value, many, reason=_NO_LABEL, iou_threshold=iou)
        for axis, value, many in (
            ("label", errors[..., at], support),
            ("key", by_key[..., at], sum_by_key(view, support)),
        )
    ]


def _score(view: RankedView, settings: Settings) -> list[Cells]:
    mean = mean_precision(view, settings, [settings.iou_thresholds])[:, :, 0, 0]
    good = np.maximum(1.0 - _key_means(view, _errors(view, settings)), 0.0)
    weight = float(len(ERRORS))
    value = (weight * mean + good.sum(axis=-1)) / (weight + len(ERRORS))
    support = sum_by_key(view, view.positives[..., 0])
    return [cells_of(view, settings, ("group", "key"), value, support, reason=_NO_LABEL)]


_NEEDS = ("iou_thresholds", "pr_curve_iou_threshold", OF_HITS)
_MADE_OF = (
    "distance of centres on the ground, metres",
    "1 - IoU of the sizes only",
    "angle between headings, radians",
    "distance of velocities, metres a second",
    "share of wrong attributes",
)
_IN_TEX = (
    r"\lVert c - \hat{c} \rVert",
    r"1 - \text{IoU of sizes}",
    r"|\theta - \hat{\theta}|",
    r"\lVert v - \hat{v} \rVert",
    r"[a \ne \hat{a}]",
)
_RUNNING = r"\frac{1}{|Q|} \sum_{r \in Q} \frac{1}{m_r} \sum_{i \le m_r} e_i, \quad e = "
_READS = ((), (), (), ("velocities",), ("attributes",))
_HIGHEST = (float("inf"), 1.0, np.pi, float("inf"), 1.0)

_TRUE_POSITIVES_METRICS = (
    *(
        Metric(
            name=name,
            task="detection",
            needs=(*_NEEDS, *reads),
            params=("iou_thresholds", "pr_curve_iou_threshold"),
            aliases=(f"m{name}",),
            range=(0.0, highest),
            better="lower",
            chooses=True,
            definition="Mean over recalls above 0.1 of the running mean, by descending score, of"
            f" true positives' {what}, at pr_curve_iou_threshold; 1 if recall stays below. Per"
            " label, and the mean over labels.",
            formula=_RUNNING + tex,
            source=_DEVKIT,
            compute=partial(_true_positive_error, at),
        )
        for at, (name, what, tex, reads, highest) in enumerate(
            zip(ERRORS, _MADE_OF, _IN_TEX, _READS, _HIGHEST, strict=True)
        )
    ),
    Metric(
        name="NDS",
        task="detection",
        needs=(*_NEEDS, "velocities", "attributes"),
        params=("iou_thresholds", "pr_curve_iou_threshold"),
        chooses=True,
        definition="(5 mAP + the sum of max(1 - error, 0) over the five mean errors) / 10.",
        formula=r"\frac{1}{10} \left(5\,\text{mAP} + \sum_{j = 1}^5 \max(1 - E_j, 0)\right)",
        source=_DEVKIT,
        compute=_score,
    ),
)


# Average orientation similarity: KITTI's AP of boxes that must see objects at the right angle.


def _aos(view: RankedView, settings: Settings) -> list[Cells]:
    """Compute AOS per label and IoU threshold, and its mean at the label thresholds."""
    thresholds, ious = own_thresholds(view, settings), settings.iou_thresholds
    at = [view.tally.variants.threshold_index(iou) for iou in ious]
    similarity = view.similarity
    each = row_means(similarity[:, :, :, at])
    each[view.positives == 0] = np.nan
    support = view.positives[..., None]
    axes = ("group", "label", "area", "iou_threshold")
    cells = cells_of(view, settings, axes, each, support, ious)
    if thresholds is None:
        of_labels = row_means(each)
    else:
        cells = at_own(cells, thresholds, len(ious))
        of_labels = own_precision(view, settings, thresholds, similarity)
    mean = mean_of_labels(view, settings, of_labels)
    support = sum_by_key(view, view.positives)
    return [cells, cells_of(view, settings, ("group", "key", "area"), mean, support)]


_ORIENTATION_METRICS = (
    Metric(
        name="AOS",
        task="detection",
        needs=("iou_thresholds", ANGLES),
        reads=("alpha",),
        params=("iou_thresholds",),
        aliases=("mAOS",),
        definition="AP with the sum of (1 + cos(alpha - alpha')) / 2 over true positives in the"
        " place of their number. Per label, and the mean over labels.",
        formula=r"\frac{1}{40} \sum_{k = 1}^{40} \max_{j \ge k}"
        r" \frac{\sum_{i = 1}^{\text{tp}_j} (1 + \cos(\phi_i - \hat{\phi}_i)) / 2}"
        r"{\text{tp}_j + \text{fp}_j}",
        source="KITTI evaluate_object.cpp; Geiger, Lenz, Urtasun, CVPR 2012",
        compute=_aos,
    ),
)


METRICS = (
    *_THRESHOLDS_METRICS,
    *_CALIBRATION_METRICS,
    *_BOX_CALIBRATION_METRICS,
    *_TRUE_POSITIVES_METRICS,
    *_ORIENTATION_METRICS,
)
