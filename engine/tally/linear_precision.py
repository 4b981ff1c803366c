"""Precision at recall levels, on straight lines between the points of all predictions.

Unlike interpolated precision, it is not raised to that of higher recalls. Source: nuscenes-devkit
``detection.algo.accumulate`` and ``calc_ap``. Average precision uses only precision and recall
above
a share such as 0.1: :attr:`.ranked_view.Interpolation.linear`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..kernels.order import group_rows
from ..schemas.arrays import Array
from .points import segment_of
from .ranked_points import CountedRows


def joined(pieces: Iterable[CountedRows], n_labels: int) -> tuple[Array, Array, Array, Array]:
    """Offsets by label, scores, datums and hits of all rows, those of one piece after the other."""
    parts = [(segment_of(one.start), one.score, one.datum, one.right) for one in pieces]
    label, score, datum, right = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(label, kind="stable")
    start = np.r_[0, np.cumsum(np.bincount(label, minlength=n_labels))]
    return start, score[order], datum[order], right[order]


def by_group(
    start: Array, datum: Array, group: Array | None, n_groups: int, weights: Array | None
) -> tuple[Array, Array]:
    """Rows by (group, label), as often as they count: offsets, and their order."""
    order = np.arange(datum.size)
    if group is not None:
        start, order = group_rows(start, datum, group, n_groups)
        order = order[: start[-1]]
    if weights is None:
        return start, order
    many = weights[datum[order]]
    upto = np.r_[0, np.cumsum(many)]
    return upto[start], np.repeat(order, many)


def at_levels(right: Array, score: Array, positives: int, levels: Array) -> tuple[Array, Array]:
    """Return precision and score at recall levels, float64 [r] each.

    Args:
        right: bool [n], hits, by descending score.
        score: float64 [n].
        positives: number of ground truths.
        levels: float64 [r], ascending.

    Returns:
        precision, 0 at levels that are not reached, and scores, NaN there.
    """
    if not positives or not right.any():
        return np.zeros(levels.size), np.full(levels.size, np.nan)
    true = np.cumsum(right).astype(np.float64)
    false = np.cumsum(~right).astype(np.float64)
    recall = true / float(positives)
    precision = np.interp(levels, recall, true / (false + true), right=0.0)
    return precision, np.interp(levels, recall, score, right=np.nan)


def averaged(precision: Array, levels: Array, clip: float) -> Array:
    """Return AP, [..., 1]: mean precision above ``clip`` at levels above it, over 1 - ``clip``."""
    above = np.ascontiguousarray(np.maximum(precision[..., levels > clip + 1e-9] - clip, 0.0))
    mean: Array = np.mean(above, axis=-1, keepdims=True) / (1.0 - clip)
    return mean


def on_lines(view: Any, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return precision and scores at the levels of a view, [group, label, area, threshold, level].

    Args:
        view: a ranked view of one area range.
        shape: groups, labels, area ranges, thresholds.
    """
    out = np.zeros((2, *shape, view.levels.size))
    for t, iou in enumerate(view.tally.variants.thresholds):
        start, score, datum, right = joined(view.counted_rows(iou), shape[1])
        start, order = by_group(start, datum, view.group, view.n_groups, view.weights)
        for s in range(start.size - 1):
            g, label = divmod(s, shape[1])
            rows = order[start[s] : start[s + 1]]
            positives = int(view.positives[g, label, 0])
            out[:, g, label, 0, t] = at_levels(right[rows], score[rows], positives, view.levels)
    return out[0], out[1]
