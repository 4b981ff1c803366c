"""Oriented boxes as other tools compare them: by rounded hulls, or as normal distributions.

``exact`` is by the area that is shared, in double precision (:class:`.layers.QuadLayer`).
``detectron2`` and ``mmcv`` are those tools' own IoU (:mod:`evalengine.kernels.rotated_hulls`).
``probiou`` is not an IoU: two boxes are the normal distributions that have their centres and the
covariances of points spread evenly over them, and as alike as 1 - H, H the Hellinger distance of
these. Source: Llerena and others, "Gaussian Bounding Boxes and Probabilistic
Intersection-over-Union for Object Detection" (arXiv 2106.06072), with the constants of Ultralytics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from ...geometry.ranges import in_ranges
from ...kernels.rotated_hulls import rotated_ious
from ..workers import Workers
from .layers import Meeting, QuadLayer, by_boxes

Array = np.ndarray[Any, Any]

_SMALL = 1e-7  # what Ultralytics adds to denominators, and to what has a root or a logarithm
_FARTHEST = 100.0  # Bhattacharyya distance
_FAR = 16.2  # from here on the small number makes the similarity at most 0
_SURE = 1e-3  # determinant of a covariance from which on the small numbers hardly count


class Reaching(QuadLayer, frozen=True):
    """Oriented boxes that may be alike beyond what their areas and bounding boxes tell."""

    def reach(self, lowest: float) -> Array:
        """Boxes float64 [n, 4] that meet those of all that may be as alike as ``lowest``."""
        raise NotImplementedError

    def candidates(self, other: Any, meeting: Meeting, threads: Workers) -> tuple[Array, Array]:
        """See :meth:`.layers.Layer.candidates`: by how far boxes reach."""
        sides = zip((self, other), meeting.row, strict=True)
        ours, theirs = (side.reach(meeting.lowest)[row] for side, row in sides)
        wide = msgspec.structs.replace(meeting, boxes=(ours, theirs), lowest=0.0)
        return by_boxes(wide, (np.ones(len(ours)), np.ones(len(theirs))), threads)


class HullLayer(Reaching, frozen=True):
    """Boxes by an IoU in single precision.

    Attributes:
        numbers: float32 [n, 8], as :func:`evalengine.kernels.rotated_hulls.rotated_ious` has them.
        margin: how far beyond its end an edge still counts.
        insertion: whether points are sorted by insertion.
    """

    numbers: Array
    margin: float
    insertion: bool

    def reach(self, lowest: float) -> Array:
        """Bounding boxes, and beyond them what the margin and rounding let pass."""
        xy = self.corners.reshape(-1, 4, 2)
        low, high = xy.min(axis=1), xy.max(axis=1)
        sides = self.numbers[:, 2:4].astype(np.float64)
        thin = np.maximum(sides.min(axis=1, initial=np.inf), 1e-7)
        slack = 1e-5 / thin + 1e-4 * sides.sum(axis=1) + 1e-6 * np.abs(xy).max(axis=(1, 2))
        return np.concatenate([low - slack[:, None], high + slack[:, None]], axis=1)

    def similarity(
        self, other: Any, rows: Array, other_rows: Array, crowd: Array, threads: Workers
    ) -> Array:
        """See :meth:`.layers.Layer.similarity`.

        These tools hold it against thresholds in single precision, so that the nearest float is as
        good as the threshold: nearly half the way to the next one is added.
        """
        iou = np.concatenate(
            [
                np.zeros(0, np.float32),
                *in_ranges(
                    threads.over,
                    np.arange(rows.size + 1),
                    lambda i, j: rotated_ious(
                        self.numbers, other.numbers, rows[i:j], other_rows[i:j],
                        margin=self.margin, insertion=self.insertion,
                    ),
                ),
            ]
        )  # fmt: skip
        wide = np.nan_to_num(iou.astype(np.float64))
        return wide + np.where(wide > 0, 0.49 * np.spacing(iou), 0.0)


class GaussLayer(Reaching, frozen=True):
    """Boxes as normal distributions.

    Attributes:
        numbers: float64 [n, 5], mean x and y, variance of x and of y, covariance.
    """

    numbers: Array

    def reach(self, lowest: float) -> Array:
        """What lies within the Bhattacharyya distance, all of which is a quarter of d' S^-1 d."""
        least = min(max(lowest, 0.0), 1.0)
        farthest = _FAR if least * (2 - least) < np.exp(-_FAR) else -np.log(least * (2 - least))
        x, y, a, b, c = self.numbers.T
        away = np.sqrt(4 * (farthest + 1e-4) * 1.001 * np.stack([a, b], axis=1))
        away[a * b - c * c < _SURE] = np.inf
        centre = np.stack([x, y], axis=1)
        return np.concatenate([centre - away, centre + away], axis=1)

    def similarity(
        self, other: Any, rows: Array, other_rows: Array, crowd: Array, threads: Workers
    ) -> Array:
        """See :meth:`.layers.Layer.similarity`: 1 less the Hellinger distance."""
        parts = in_ranges(
            threads.over,
            np.arange(rows.size + 1),
            lambda i, j: _alike(self.numbers[rows[i:j]], other.numbers[other_rows[i:j]]),
        )
        return np.concatenate([np.zeros(0), *parts])


def _alike(one: Array, two: Array) -> Array:
    x, y, a, b, c = (one - two).T[0], (one - two).T[1], *(one + two).T[2:]
    spread = a * b - c * c
    away = ((a * y * y + b * x * x) * 0.25 - c * x * y * 0.5) / (spread + _SMALL)
    each = [np.maximum(s[:, 2] * s[:, 3] - s[:, 4] * s[:, 4], 0.0) for s in (one, two)]
    ratio = np.maximum(spread, 0.0) / (4 * np.sqrt(each[0] * each[1]) + _SMALL) + _SMALL
    distance = np.clip(away + 0.5 * np.log(ratio), _SMALL, _FARTHEST)
    alike: Array = 1.0 - np.sqrt(1.0 - np.exp(-distance) + _SMALL)
    return alike


def _hulls(
    boxes: Array, corners: QuadLayer, radians: Array, *, mirrored: bool, margin: float
) -> HullLayer:
    """Layer of one of the tools; mirrored, the first corner is at the other end of the width."""
    half = np.float32(0.5)
    cos, sin = (turn(radians).astype(np.float32) * half for turn in (np.cos, np.sin))
    across = (-sin, -cos) if mirrored else (sin, cos)
    numbers = np.column_stack([boxes[:, :4].astype(np.float32), *across, cos, sin])
    return HullLayer(
        corners.area, corners.corners, corners.pieces, numbers, margin, insertion=mirrored
    )


def _detectron2(boxes: Array, corners: QuadLayer) -> HullLayer:
    """Degrees, counterclockwise, in single precision; a degree is 0.01745329251 radians there."""
    degrees = np.rad2deg(-boxes[:, 4]).astype(np.float32).astype(np.float64)
    return _hulls(boxes, corners, degrees * 0.01745329251, mirrored=False, margin=1e-5)


def _mmcv(boxes: Array, corners: QuadLayer) -> HullLayer:
    """Radians, clockwise, in single precision."""
    radians = boxes[:, 4].astype(np.float32).astype(np.float64)
    return _hulls(boxes, corners, radians, mirrored=True, margin=0.0)


def _probiou(boxes: Array, corners: QuadLayer) -> GaussLayer:
    w, h, cos, sin = boxes[:, 2], boxes[:, 3], np.cos(boxes[:, 4]), np.sin(boxes[:, 4])
    a, b = w * w / 12, h * h / 12
    spread = (a * cos * cos + b * sin * sin, a * sin * sin + b * cos * cos, (a - b) * cos * sin)
    numbers = np.column_stack([boxes[:, :2], *spread])
    return GaussLayer(corners.area, corners.corners, corners.pieces, numbers)


LAYERS: Mapping[str, Callable[[Array, QuadLayer], QuadLayer]] = {
    "detectron2": _detectron2,
    "mmcv": _mmcv,
    "probiou": _probiou,
}
"""How alike boxes are -> layer of centre, width, height and angle [n, 5], and of their corners."""
