"""True-positive errors of 3-D boxes: centre, size, orientation, velocity and attribute.

Source: nuscenes-devkit ``common.utils`` and ``detection.algo.accumulate``.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ...schemas.contract import ATTRIBUTE, VX, VY
from ...tally.ranked import Ranked, Variants
from .dialects import ERRORS
from .encode import Batch, Side
from .matching import Matched
from .preparing import CentreLayer, ground_distance
from .settings import Settings


def true_positive_rows(batch: Batch, matched: Matched, settings: Settings) -> Ranked:
    """Return the ranked true positives; values are their errors, NaN if meaningless.

    Args:
        matched: the match, with takers.
    """
    ranked = matched.ranked
    threshold = ranked.variants.threshold_index(settings.pr_curve_iou_threshold)
    taker = matched.taker[threshold]
    truth = np.flatnonzero(taker >= 0)
    truth = truth[np.argsort(taker[truth], kind="stable")]
    at = taker[truth]
    rows, truths = ranked.row[at], ranked.gt_row[truth]
    boxes, others = _boxes(batch.predictions)[rows], _boxes(batch.ground_truths)[truths]
    label = np.repeat(np.arange(ranked.n_labels), np.diff(ranked.start))[at]
    names = batch.labels.frame["label_value"].cast(pl.String).to_list()
    halves = np.isin(names, settings.rules.half_turns)[label] if names else np.zeros(0, bool)
    values = np.stack(
        [
            ground_distance(boxes, others),
            1 - _scale_iou(boxes[:, 3:6], others[:, 3:6]),
            _turn(boxes[:, 6], others[:, 6], np.where(halves, np.pi, 2 * np.pi)),
            _faster(batch.predictions, batch.ground_truths, rows, truths),
            _other(batch.predictions, batch.ground_truths, rows, truths),
        ]
    )
    for name, without in settings.rules.unjudged.items():
        for error in without:
            values[ERRORS.index(error), np.array([names[one] == name for one in label], bool)] = (
                np.nan
            )
    start = np.searchsorted(at, ranked.start)
    one = np.ones((1, at.size), np.uint64)
    none = np.zeros(0, np.int64)
    return Ranked(
        variants=Variants((settings.pr_curve_iou_threshold,), ((None, -np.inf, np.inf),)),
        start=start.astype(np.int64),
        score=ranked.score[at],
        datum=ranked.datum[at],
        row=ranked.row[at],
        rank=ranked.rank[at],
        hit=one,
        ignored=np.zeros_like(one),
        tie=ranked.tie[at],
        gt_start=np.zeros(ranked.n_labels + 1, np.int64),
        gt_datum=none.astype(np.int32),
        gt_row=none,
        gt_counted=np.zeros((1, 0), np.uint64),
        single=ranked.single,
        values=values,
    )


def _boxes(side: Side) -> Array:
    """Centre, length, width, height and yaw of all rows of a table, float64 [n, 7]."""
    assert side.shapes is not None
    layer = side.shapes.layers[0]
    assert isinstance(layer, CentreLayer)
    return layer.numbers


def _scale_iou(sizes: Array, others: Array) -> Array:
    """IoU of boxes that are laid on each other, turned alike, float64 [k]."""
    shared = np.minimum(sizes, others).prod(axis=1)
    union = others.prod(axis=1) + sizes.prod(axis=1) - shared
    iou: Array = np.divide(shared, union, out=np.zeros(shared.size), where=union > 0)
    return iou


def _turn(yaw: Array, other: Array, period: Array) -> Array:
    """The angle between two headings, float64 [k], radians in [0, pi]."""
    turn = (other - yaw + period / 2) % period - period / 2
    return np.abs(np.where(turn > np.pi, turn - 2 * np.pi, turn))


def _faster(side: Side, other: Side, rows: Array, truths: Array) -> Array:
    """Return the difference of velocities, float64 [k], in m/s; NaN if one is unknown."""
    squares = np.zeros(rows.size)
    for column in (VX, VY):
        if not (column.name in side.frame.columns and column.name in other.frame.columns):
            return np.full(rows.size, np.nan)
        mine, theirs = (
            one.frame[column.name].cast(pl.Float64).fill_null(np.nan).to_numpy()[at]
            for one, at in ((side, rows), (other, truths))
        )
        squares += (mine - theirs) * (mine - theirs)
    return np.sqrt(squares)


def _other(side: Side, other: Side, rows: Array, truths: Array) -> Array:
    """Return 1 if attributes differ, 0 if equal, NaN if the ground truth has none."""
    name = ATTRIBUTE.name
    if not (name in side.frame.columns and name in other.frame.columns):
        return np.full(rows.size, np.nan)
    mine, theirs = (
        one.frame[name].fill_null("").gather(at) for one, at in ((side, rows), (other, truths))
    )
    return np.where((theirs == "").to_numpy(), np.nan, (mine != theirs).to_numpy().astype(float))
