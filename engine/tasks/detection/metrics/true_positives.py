"""Errors of true positives of 3-D boxes, and nuScenes' detection score that is made of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.ranked_points import by_group
from ....tally.ranked_view import RankedView
from ..dialects import ERRORS, FOUND, OF_FOUND
from .averages import mean_precision
from .members import key_members, present, present_keys, sum_by_key

if TYPE_CHECKING:
    from ..settings import Settings


_LOWEST = 0.1
"""Recall up to which errors do not count."""
_NO_LABEL = "no label of which the error means something"
_DEVKIT = "nuscenes-devkit detection.algo.calc_tp and DetectionMetrics; arXiv 1903.11027"


def _errors(view: RankedView, settings: Settings) -> Array:
    """Return every error of every label, [group, label, error]; NaN if meaningless."""
    found = view.beside(FOUND)
    assert found is not None
    start, order = found.rows
    tally = found.tally
    rows = order[: start[-1]]
    if view.weights is not None:
        start, again = by_group(start, tally.datum[rows], None, 1, view.weights)
        rows = rows[again]
    _, scores, _ = view.sampled_with_scores(int(np.iinfo(np.int32).max))
    at = view.tally.variants.threshold_index(settings.pr_curve_iou_threshold)
    reached = np.nan_to_num(scores[:, :, 0, at])
    levels = view.levels
    n_groups, n_labels = reached.shape[:2]
    out = np.ones((n_groups, n_labels, len(ERRORS)))
    first = int(np.searchsorted(levels, _LOWEST + 1e-9))
    for s in range(start.size - 1):
        g, label = divmod(s, n_labels)
        own = rows[start[s] : start[s + 1]]
        there = np.flatnonzero(reached[g, label])
        last = int(there[-1]) if there.size else 0
        if not own.size or last < first:
            continue
        wanted, score = reached[g, label], tally.score[own]
        for e, values in enumerate(tally.values[:, own]):
            means = np.interp(wanted[::-1], score[::-1], _running_mean(values)[::-1])[::-1]
            out[g, label, e] = np.mean(means[first : last + 1])
    frame = view.labels.frame["label_value"].to_list()
    for name, without in settings.rules.unjudged.items():
        for label in (code for code, value in enumerate(frame) if value == name):
            out[:, label, [ERRORS.index(error) for error in without]] = np.nan
    return out


def _running_mean(values: Array) -> Array:
    """Return running means that ignore NaN; 1 if all are NaN."""
    there = ~np.isnan(values)
    if not there.any():
        return np.ones(values.size)
    many = np.cumsum(there)
    total = np.cumsum(np.where(there, values, 0.0))
    mean: Array = np.divide(total, many, out=np.zeros(values.size), where=many > 0)
    return mean


def _key_means(view: RankedView, errors: Array) -> Array:
    """Return means over the labels of each key, [group, key, error]; NaN if undefined."""
    out = np.full((errors.shape[0], len(key_members(view)), errors.shape[2]), np.nan)
    for k, members in enumerate(key_members(view)):
        there = ~np.isnan(errors[:, members])
        many = there.sum(axis=1)
        total = np.where(there, errors[:, members], 0.0).sum(axis=1)
        np.divide(total, many, out=out[:, k], where=many > 0)
    return out


def _error(at: int, view: RankedView, settings: Settings) -> list[Cells]:
    errors = _errors(view, settings)
    support = view.positives[..., 0]
    constant = {"iou_threshold": settings.told(settings.pr_curve_iou_threshold)}
    return [
        Cells(
            axes=("group", axis),
            shape=value.shape,
            keep=keep,
            columns={"value": value, "support": many, **constant},
            reason=_NO_LABEL,
        )
        for axis, value, many, keep in (
            ("label", errors[..., at], support, present(view)),
            (
                "key",
                _key_means(view, errors)[..., at],
                sum_by_key(view, support),
                present_keys(view),
            ),
        )
    ]


def _score(view: RankedView, settings: Settings) -> list[Cells]:
    mean = mean_precision(view, settings, [settings.iou_thresholds])[:, :, 0, 0]
    good = np.maximum(1.0 - _key_means(view, _errors(view, settings)), 0.0)
    weight = float(len(ERRORS))
    value = (weight * mean + good.sum(axis=-1)) / (weight + len(ERRORS))
    return [
        Cells(
            axes=("group", "key"),
            shape=value.shape,
            keep=present_keys(view),
            columns={"value": value, "support": sum_by_key(view, view.positives[..., 0])},
            reason=_NO_LABEL,
        )
    ]


_NEEDS = ("iou_thresholds", "pr_curve_iou_threshold", OF_FOUND)
_MADE_OF = (
    "distance of centres on the ground, metres",
    "1 - IoU of the sizes alone",
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

METRICS = (
    *(
        Metric(
            name=name,
            task="detection",
            frame="metrics",
            needs=(*_NEEDS, *reads),
            params=("iou_thresholds", "pr_curve_iou_threshold"),
            aliases=(f"m{name}",),
            range=(0.0, highest),
            better="lower",
            definition="Mean over recalls above 0.1 of the running mean, by descending score, of"
            f" true positives' {what}, at pr_curve_iou_threshold; 1 where recall stays below. Per"
            " label, and the mean over labels.",
            formula=_RUNNING + tex,
            source=_DEVKIT,
            compute=partial(_error, at),
        )
        for at, (name, what, tex, reads, highest) in enumerate(
            zip(ERRORS, _MADE_OF, _IN_TEX, _READS, _HIGHEST, strict=True)
        )
    ),
    Metric(
        name="NDS",
        task="detection",
        frame="metrics",
        needs=(*_NEEDS, "velocities", "attributes"),
        params=("iou_thresholds", "pr_curve_iou_threshold"),
        definition="(5 mAP + the sum of max(1 - error, 0) over the five mean errors) / 10.",
        formula=r"\frac{1}{10} \left(5\,\text{mAP} + \sum_{j = 1}^5 \max(1 - E_j, 0)\right)",
        source=_DEVKIT,
        compute=_score,
    ),
)
