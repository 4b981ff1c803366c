"""3-D boxes from their eight corners, in whatever order: where they lie tells which box it is.

Tools order corners in different ways, and none says which: the upright box that has them as its
corners is one alone, but for which of its ends is the front.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from evalengine.geometry.columns import flat

Array = np.ndarray[Any, Any]

_SLACK = 1e-4  # of the longest diagonal, that corners may be off


def of_corners(column: pl.Series, *, camera: bool) -> pl.Series:
    """Centre, extent and yaw with z up, List(Float64) [n]; what is no upright box stays as it is.

    Args:
        column: lists of points (x, y, z), or arrays of them.
        camera: whether y points down, and z ahead; otherwise z points up.
    """
    values, (rows, points) = flat(column)
    numbers = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    many, within = np.diff(rows), np.diff(points)
    odd = np.r_[0, np.cumsum(within != 3)]
    whole = np.flatnonzero((many == 8) & (np.diff(odd[rows]) == 0))
    at = points[rows[whole]][:, None] + np.arange(24)
    corners = numbers[at].reshape(-1, 8, 3)
    if camera:
        corners = corners[..., [0, 2, 1]] * [1.0, 1.0, -1.0]
    boxes, good = _boxes(corners)
    if len(boxes) == len(column) and good.all():
        return pl.Series(column.name, boxes).arr.to_list()
    made = column.cast(pl.List(pl.List(pl.Float64))).list.eval(pl.element().explode()).to_list()
    for row, box in zip(whole[good].tolist(), boxes[good].tolist(), strict=True):
        made[row] = box
    return pl.Series(column.name, made, dtype=pl.List(pl.Float64))


def _boxes(corners: Array) -> tuple[Array, Array]:
    """Boxes float64 [n, 7] of corners [n, 8, 3] with z up, and which are upright ones, bool [n]."""
    n = len(corners)
    order = np.argsort(corners[..., 2], axis=1, kind="stable")
    ordered = np.take_along_axis(corners, order[..., None], axis=1)
    faces = ordered.reshape(n, 2, 4, 3)  # the lower one, then the upper one
    centre = corners.mean(axis=1)
    away = faces[..., :2] - centre[:, None, None, :2]
    around = np.argsort(np.arctan2(away[..., 1], away[..., 0]), axis=2, kind="stable")
    turned = np.take_along_axis(away, around[..., None], axis=2)
    low, high = turned[:, 0], turned[:, 1]
    size = np.linalg.norm(corners.max(axis=1) - corners.min(axis=1), axis=1)
    slack = _SLACK * size + 1e-12 * np.abs(corners).max(axis=(1, 2))
    one, two = low[:, 1] - low[:, 0], low[:, 2] - low[:, 1]
    apart = np.linalg.norm(low[:, :, None] - high[:, None], axis=3).min(axis=2).max(axis=1)
    level = np.ptp(faces[..., 2], axis=2).max(axis=1)
    closed = np.linalg.norm(low[:, 0] - low[:, 1] + low[:, 2] - low[:, 3], axis=1)
    long, short = np.linalg.norm(one, axis=1), np.linalg.norm(two, axis=1)
    square = np.abs((one * two).sum(axis=1)) <= slack * np.maximum(long, short)
    good = square & (np.maximum(np.maximum(apart, level), closed) <= slack)
    longer = np.where((long >= short)[:, None], one, two)
    tall = faces[:, 1, :, 2].mean(axis=1) - faces[:, 0, :, 2].mean(axis=1)
    extent = np.maximum(long, short), np.minimum(long, short), tall
    yaw = np.arctan2(longer[:, 1], longer[:, 0])
    return np.column_stack([centre, *extent, yaw]), good
