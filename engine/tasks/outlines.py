"""Coarse outlines of regions for display: rings of few points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..schemas.arrays import Array

Ring = tuple[tuple[float, float], ...]
"""x and y of points in pixels of the image, the last of them the first."""

POINTS = 200
"""Points of all rings of a region."""
CELLS = 256
"""Pixels across that a mask is seen at."""
_TRIES = 8


def of_geometry(geometry: Any, most: int = POINTS) -> tuple[Ring, ...]:
    """Return the rings of a shapely polygon or multipolygon, for the even-odd fill rule.

    Args:
        most: maximum points of all rings; if simplified rings have more, the smallest parts are
            dropped.
    """
    import shapely

    if geometry.is_empty:
        return ()
    xmin, ymin, xmax, ymax = geometry.bounds
    coarse = max(xmax - xmin, ymax - ymin) / 400
    for _ in range(_TRIES):
        if shapely.get_num_coordinates(geometry) <= most:
            break
        geometry = shapely.simplify(geometry, coarse)
        coarse *= 2
    parts = sorted(shapely.get_parts(geometry), key=lambda part: -part.area)
    rings: list[Ring] = []
    left = most
    for part in parts:
        for ring in (part.exterior, *part.interiors):
            xy = np.round(shapely.get_coordinates(ring), 1).tolist()
            left -= len(xy)
            if left < 0:
                return tuple(rings)
            rings.append(tuple((x, y) for x, y in xy))
    return tuple(rings)


def of_pixels(
    pixels: Array, left: float = 0.0, top: float = 0.0, most: int = POINTS, cells: int = CELLS
) -> tuple[Ring, ...]:
    """Return the rings around the pixels that are set; large masks are subsampled.

    Args:
        pixels: bool or uint8 [height, width].
        left: image coordinate of its first column.
        top: image coordinate of its first row.
        most: maximum points of all rings.
        cells: resolution, in pixels across the mask.
    """
    import shapely
    from rasterio.features import shapes

    step = max(1, math.ceil(max(pixels.shape) / cells))
    seen = np.ascontiguousarray(pixels[::step, ::step] != 0)
    regions = [
        shapely.geometry.shape(region) for region, _ in shapes(seen.astype(np.uint8), mask=seen)
    ]
    if not regions:
        return ()
    placed = shapely.transform(
        shapely.MultiPolygon(regions), lambda xy: xy * step + np.array([left, top])
    )
    return of_geometry(placed, most)
