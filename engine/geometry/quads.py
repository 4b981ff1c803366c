"""Quadrilaterals: corners of oriented boxes, of upright ones, and of polygons that have four."""

from __future__ import annotations

import numpy as np

from evalengine.schemas.wording import option

from ..schemas.arrays import Array
from .polygons import Polygons

_SIDES = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
_LEVEL = 1e-15  # cosine of a right angle, and sine of none, as far as doubles know pi


def corners_of(boxes: Array, radians: Array) -> Array:
    """Compute the corners of oriented boxes, float64 [n, 8]; exact for right angles.

    Args:
        boxes: float64 [n, 4], centre x and y, width, height.
        radians: float64 [n], angle of the width, clockwise in the image.
    """
    cos, sin = np.cos(radians), np.sin(radians)
    for part in (cos, sin):
        part[np.abs(part) < _LEVEL] = 0.0
    cos, sin = cos[:, None], sin[:, None]
    across, down = boxes[:, 2:3] * _SIDES[:, 0], boxes[:, 3:4] * _SIDES[:, 1]
    x = boxes[:, :1] + (across * cos - down * sin)
    y = boxes[:, 1:2] + (across * sin + down * cos)
    return np.stack([x, y], axis=2).reshape(-1, 8)


def corners_of_upright(boxes: Array) -> Array:
    """Corners of boxes (float64 [n, 4], xmin, ymin, xmax, ymax), float64 [n, 8]."""
    return boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]]


def corners_of_polygons(polygons: Polygons) -> Array:
    """Return the corners of polygons with four corners, float64 [n, 8].

    Raises:
        InputError: polygons of several parts, with holes, or with another number of corners.
    """
    rings = polygons.rings
    one = (np.diff(rings.start) == 1) & (np.diff(rings.part_start[rings.start]) == 1)
    ring = rings.part_start[rings.start[:-1][one]]
    first, last = rings.ring_start[ring], rings.ring_start[ring + 1] - 1
    closed = (rings.xy[first] == rings.xy[last]).all(axis=1)
    n = last + 1 - first
    four = (n == 4) | ((n == 5) & closed)
    wrong = ~one
    wrong[np.flatnonzero(one)[~four]] = True
    polygons.place.refuse(
        "geometry_misfit",
        wrong,
        "with polygons that are not four corners, to be compared as oriented boxes",
        f"Give four corners, or write {option('iou_type', 'segm')} or"
        f" {option('convert_to', 'polygon')}.",
    )
    corners: Array = rings.xy[first[:, None] + np.arange(4)].reshape(-1, 8)
    return corners


def smallest_boxes(corners: Array) -> Array:
    """Compute centre, width, height and angle of the smallest rectangles around four corners [n,
    5].

    One side is on a side of the hull (Freeman and Shapira, 1975), so a rectangle is returned
    unchanged. Angles are radians, clockwise in the image.

    Args:
        corners: float64 [n, 8].
    """
    xy = corners.reshape(-1, 4, 2)
    start = xy[:, :1]
    best = np.full(len(xy), np.inf)
    found = np.zeros((len(xy), 5))
    for a, b in ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)):
        along = xy[:, b] - xy[:, a]
        radians = np.arctan2(along[:, 1], along[:, 0])
        cos, sin = np.cos(radians), np.sin(radians)
        turn = np.stack([np.stack([cos, sin], axis=1), np.stack([-sin, cos], axis=1)], axis=1)
        turned = np.einsum("nij,nkj->nki", turn, xy - start)
        low, high = turned.min(axis=1), turned.max(axis=1)
        extent, middle = high - low, (high + low) / 2
        area = extent.prod(axis=1)
        better = area < best
        best[better] = area[better]
        centre = np.einsum("nji,nj->ni", turn, middle) + start[:, 0]
        boxes = np.concatenate([centre, extent, radians[:, None]], axis=1)
        found[better] = boxes[better]
    return found


def around(corners: Array) -> Array:
    """The corners of quadrilaterals in their order around the mean of them, float64 [n, 8]."""
    xy = corners.reshape(-1, 4, 2)
    away = xy - xy.mean(axis=1, keepdims=True)
    order = np.argsort(np.arctan2(away[..., 1], away[..., 0]), axis=1, kind="stable")
    return np.take_along_axis(xy, order[..., None], axis=1).reshape(-1, 8)


def hulls_of(corners: Array) -> Array:
    """Bounding boxes of quadrilaterals (float64 [n, 8]), float64 [n, 4]."""
    xy = corners.reshape(-1, 4, 2)
    return np.concatenate([xy.min(axis=1), xy.max(axis=1)], axis=1)
