"""Shapes of one kind from those of another: masks to outlines and hulls."""

from __future__ import annotations

from typing import Any

import numpy as np

from .mask_runs import Masks, to_pixels
from .places import Place
from .polygons import Polygons
from .ranges import Array, offsets_of
from .rings import Rings


def outlines(masks: Masks, place: Place | None = None) -> Polygons:
    """The outlines of the pixels of each mask, with holes: full extents, corners at whole numbers.

    Pixels that touch at a corner only are parts of their own. An empty mask has no part. Traced by
    ``rasterio.features``.

    Args:
        masks: n masks.
        place: where they stand.
    """
    from affine import Affine
    from rasterio.features import shapes

    rings: list[Array] = []
    in_part: list[int] = []
    in_mask: list[int] = []
    boxes = masks.boxes.astype(np.int64)
    for i in range(len(masks)):
        xmin, ymin, xmax, ymax = boxes[i].tolist()
        parts = 0
        if xmin < xmax:
            pixels: Any = np.ascontiguousarray(to_pixels(masks, i)[ymin:ymax, xmin:xmax])
            place_of_crop = Affine.translation(xmin, ymin)
            for shape, _ in shapes(pixels, mask=pixels.view(np.bool_), transform=place_of_crop):
                own = shape["coordinates"]
                rings += [np.array(ring[:-1], np.float64) for ring in own]
                in_part.append(len(own))
                parts += 1
        in_mask.append(parts)
    return _polygons(rings, in_part, in_mask, place or Place("masks", "mask"))


def _polygons(rings: list[Array], in_part: list[int], in_mask: list[int], place: Place) -> Polygons:
    return Polygons(
        Rings(
            np.concatenate([np.zeros((0, 2)), *rings]),
            offsets_of(np.array([len(ring) for ring in rings], np.int64)),
            offsets_of(np.array(in_part, np.int64)),
            offsets_of(np.array(in_mask, np.int64)),
        ),
        place,
    )


def hulls(masks: Masks, place: Place | None = None) -> Polygons:
    """The convex hull of the upper-left corners of each mask's pixels, as Valor's service has it.

    So a block of w x h pixels becomes w - 1 wide and h - 1 high, and holes and hollows vanish. A
    mask of one row, column or pixel has no area: a polygon without parts.

    Args:
        masks: n masks.
        place: where they stand.
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
