"""3-D boxes, compared by shared volume, by shared ground area, or by centre distance.

Boxes are upright and rotate only about the vertical. The shared volume is the shared area of the
ground planes (:class:`.layers.QuadLayer`) times the shared height. Everything else uses the view
from above: bounding boxes are those of ground planes, in the tables' unit, usually metres.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import flat
from ...geometry.quads import corners_of, hulls_of
from ...schemas.arrays import Array
from ...schemas.geometry_columns import BOX3D
from ..outlines import Ring
from ..workers import Workers
from .distances import FARTHEST, NEAREST, metres, similarity
from .layers import Meeting, QuadLayer, Shapes, by_boxes
from .settings import Settings


class GroundLayer(QuadLayer, frozen=True):
    """Ground planes of 3-D boxes."""

    def outline(self, row: int, most: int) -> tuple[Ring, ...]:
        """Its four sides, to a hundredth."""
        xy = np.round(self.corners[row], 2).reshape(4, 2).tolist()
        return (tuple((x, y) for x, y in (*xy, xy[0])),)


class SolidLayer(GroundLayer, frozen=True):
    """3-D boxes; their ``area`` is that of the ground plane, used to find candidates.

    This misses no candidate: a 3-D IoU is at most the IoU of the ground planes.

    Attributes:
        middle: float64 [n], vertical centres.
        tall: float64 [n], heights.
    """

    middle: Array
    tall: Array

    def similarity(
        self, other: Any, rows: Array, other_rows: Array, crowd: Array, threads: Workers
    ) -> Array:
        """See :meth:`.layers.Layer.similarity`: IoU of volumes."""
        tall, other_tall = self.tall[rows], other.tall[other_rows]
        # of heights and the distance of middles: far above the origin ends would lose digits
        both = (tall + other_tall) / 2 - np.abs(self.middle[rows] - other.middle[other_rows])
        both = np.maximum(np.minimum(both, np.minimum(tall, other_tall)), 0.0)
        shared = self.shared(other, rows, other_rows, threads.over) * both
        own = self.area[rows] * tall
        union = np.where(crowd, own, own + other.area[other_rows] * other_tall - shared)
        iou: Array = np.divide(shared, union, out=np.zeros(rows.size), where=union > 0)
        return iou


class CentreLayer(GroundLayer, frozen=True):
    """3-D boxes compared by distance of centres on the ground.

    Attributes:
        numbers: float64 [n, 7], from :func:`numbers_of`.
    """

    numbers: Array

    def candidates(self, other: Any, meeting: Meeting, threads: Workers) -> tuple[Array, Array]:
        """See :meth:`.layers.Layer.candidates`: squares around centres that intersect."""
        reach = float(metres(meeting.lowest)) if meeting.lowest > 0 else FARTHEST
        half = 0.5 * (reach + NEAREST) * (1 + 1e-9)
        made = []
        for side, row in zip((self, other), meeting.row, strict=True):
            centre = side.numbers[row, :2]
            slack = half + 1e-12 * np.abs(centre)
            made.append(np.concatenate([centre - slack, centre + slack], axis=1))
        wide = msgspec.structs.replace(meeting, boxes=(made[0], made[1]), lowest=0.0)
        return by_boxes(wide, (np.ones(len(made[0])), np.ones(len(made[1]))), threads)

    def similarity(
        self, other: Any, rows: Array, other_rows: Array, crowd: Array, threads: Workers
    ) -> Array:
        """See :meth:`.layers.Layer.similarity`: of the distance; see :mod:`.distances`."""
        return similarity(apart(self.numbers[rows], other.numbers[other_rows]))


def apart(boxes: Array, others: Array) -> Array:
    """Return the distance of centres on the ground, float64 [k], of boxes and others [k, 7]."""
    away = boxes[:, :2] - others[:, :2]
    far: Array = np.sqrt(away[:, 0] * away[:, 0] + away[:, 1] * away[:, 1])
    return far


def numbers_of(frame: pl.DataFrame) -> Array:
    """Centre, length, width, height and yaw (radians, from x towards y) of all rows [n, 7]."""
    values, _ = flat(frame[BOX3D.name])
    numbers: Array = values.cast(pl.Float64).to_numpy().reshape(-1, 7)
    return numbers


def as_solids(frame: pl.DataFrame, settings: Settings) -> Shapes:
    """Return one side's 3-D boxes; area ranges use their volumes, or areas if these are compared.

    Args:
        frame: its rows, checked.
    """
    boxes = numbers_of(frame)
    corners = corners_of(boxes[:, [0, 1, 3, 4]], boxes[:, 6])
    ground = GroundLayer.of(corners)
    area = boxes[:, 3] * boxes[:, 4]
    if settings.by_distance:
        layer = CentreLayer(ground.area, ground.corners, ground.pieces, boxes)
        return Shapes((layer,), hulls_of(corners), area)
    if settings.alike == "bev":
        return Shapes((ground,), hulls_of(corners), area)
    solid = SolidLayer(ground.area, ground.corners, ground.pieces, boxes[:, 2], boxes[:, 5])
    return Shapes((solid,), hulls_of(corners), area * boxes[:, 5])
