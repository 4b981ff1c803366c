"""Shapes of one kind from those of another: masks to outlines and hulls."""

from __future__ import annotations

from typing import Any

import numpy as np

from evalengine.schemas.tuning import tuning

from ..schemas.arrays import Array
from .mask_runs import Masks, columns_of
from .places import Place
from .polygons import Polygons
from .ranges import offsets_of
from .ring_arrays import Rings


def outlines(masks: Masks, place: Place | None = None) -> Polygons:
    """Trace the outlines of the pixels of each mask, with holes: full extents, integer corners.

    Pixels that touch only at a corner are separate parts. An empty mask has no parts. Uses
    ``rasterio.features``.
    """
    of_mask: list[int] = []
    parts: list[list[Any]] = []
    boxes = masks.boxes.astype(np.int64)
    there = np.flatnonzero(boxes[:, 2] > boxes[:, 0])
    size = boxes[there, 2:] - boxes[there, :2]
    first = 0
    while first < there.size:
        # GDAL takes longer to start than to trace a mask: many are traced on one canvas, stacked
        # vertically with distinct values.
        few = size[first : first + tuning().canvas_masks]
        fits = np.maximum.accumulate(few[:, 0]) * np.cumsum(few[:, 1]) <= tuning().canvas_pixels
        last = first + max(int(np.argmin(np.r_[fits, False])), 1)
        owners, found = _traced(masks, there[first:last], boxes)
        of_mask += owners
        parts += found
        first = last
    order = np.argsort(np.array(of_mask, np.int64), kind="stable").tolist()
    rings = [np.asarray(ring[:-1], np.float64) for i in order for ring in parts[i]]
    in_part = [len(parts[i]) for i in order]
    in_mask = np.bincount(np.array(of_mask, np.int64), minlength=len(masks))
    return _polygons(rings, in_part, in_mask, place or Place("masks", "mask"))


def _traced(masks: Masks, rows: Array, boxes: Array) -> tuple[list[int], list[list[Any]]]:
    """The mask of each part of some masks, and its rings of points, the last being the first."""
    from rasterio.features import shapes

    low, high = boxes[rows, :2], boxes[rows, 2:]
    top = offsets_of(high[:, 1] - low[:, 1])
    dtype = np.uint8 if rows.size < 256 else np.int32
    canvas = np.zeros((int(top[-1]), int((high - low)[:, 0].max())), dtype)
    for k, row in enumerate(rows.tolist()):
        (xmin, ymin), (xmax, ymax) = low[k].tolist(), high[k].tolist()
        pixels = columns_of(masks, row, xmin, xmax)[ymin:ymax]
        # canvas.dtype, for uint8 pixels times 256 do not fit
        np.multiply(pixels, dtype(k + 1), out=canvas[top[k] : top[k + 1], : xmax - xmin])
    owners: list[int] = []
    parts: list[list[Any]] = []
    for shape, value in shapes(canvas, mask=canvas > 0):
        k = int(value) - 1
        away = low[k] - [0, top[k]]
        owners.append(int(rows[k]))
        parts.append([np.asarray(ring) + away for ring in shape["coordinates"]])
    return owners, parts


def _polygons(rings: list[Array], in_part: list[int], in_mask: Array, place: Place) -> Polygons:
    return Polygons(
        Rings(
            np.concatenate([np.zeros((0, 2)), *rings]),
            offsets_of(np.array([len(ring) for ring in rings], np.int64)),
            offsets_of(np.array(in_part, np.int64)),
            offsets_of(in_mask),
        ),
        place,
    )


def hulls(masks: Masks, place: Place | None = None) -> Polygons:
    """Compute the convex hull of the upper-left corners of each mask's pixels, as Valor's service
    does.

    A block of w x h pixels becomes w - 1 wide and h - 1 high; holes and concavities vanish. A mask
    of one row, column or pixel has no area: a polygon without parts.
    """
    import shapely

    from .well_known import rings_of

    of_run = np.repeat(np.arange(len(masks)), np.diff(masks.start))
    height = masks.height[of_run]
    x, y = np.divmod(masks.begin.astype(np.int64), height)
    far_x, far_y = np.divmod(masks.end.astype(np.int64) - 1, height)
    wraps = np.flatnonzero(far_x > x)  # over the lower end of a column
    bottom, top = height[wraps] - 1, np.zeros(wraps.size, np.int64)
    xs = [x, far_x, x[wraps], x[wraps] + 1, far_x[wraps] - 1, far_x[wraps]]
    ys = [y, far_y, bottom, top, bottom, top]
    owner = np.concatenate([of_run, of_run, *[of_run[wraps]] * 4])
    order = np.argsort(owner, kind="stable")
    points = np.stack([np.concatenate(xs), np.concatenate(ys)], axis=1)[order].astype(np.float64)
    made = np.full(len(masks), shapely.Polygon(), object)
    there, index = np.unique(owner[order], return_inverse=True)
    if there.size:
        hull = shapely.convex_hull(shapely.multipoints(shapely.points(points), indices=index))
        solid = shapely.get_type_id(hull) == shapely.GeometryType.POLYGON
        made[there[solid]] = hull[solid]
    return Polygons(rings_of(made), place or Place("masks", "mask"))
