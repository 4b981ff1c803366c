"""Rings of polygons as flat arrays, and the forms that a column of polygons may have."""

from __future__ import annotations

import msgspec
import numpy as np

from ..schemas.arrays import Array
from .ranges import offsets_of

FORMS = (
    "A polygon is a list of rings of [x, y] points (the first outside, the rest holes), one ring of"
    " points, several polygons, flat rings [x, y, x, y, ...] as in COCO, WKB, WKT or GeoJSON."
)


class Rings(msgspec.Struct, frozen=True, eq=False):
    """Rings of n polygons of several parts each; the first ring of a part is its exterior.

    Attributes:
        xy: float64 [p, 2], points in pixels; a ring need not repeat its first point.
        ring_start: int64 [r + 1], offsets of the rings' points.
        part_start: int64 [q + 1], offsets of the parts' rings.
        start: int64 [n + 1], offsets of the polygons' parts.
    """

    xy: Array
    ring_start: Array
    part_start: Array
    start: Array

    def take(self, rows: Array) -> Rings:
        """The rings of some polygons (integer [k]), in their order."""
        parts, start = members(self.start, rows)
        rings, part_start = members(self.part_start, parts)
        points, ring_start = members(self.ring_start, rings)
        return Rings(self.xy[points], ring_start, part_start, start)

    def between(self, first: int, last: int) -> Rings:
        """The rings of the polygons from one up to another, whose points are not copied."""
        start = self.start[first : last + 1]
        part_start = self.part_start[start[0] : start[-1] + 1]
        ring_start = self.ring_start[part_start[0] : part_start[-1] + 1]
        return Rings(
            self.xy[ring_start[0] : ring_start[-1]],
            ring_start - ring_start[0],
            part_start - part_start[0],
            start - start[0],
        )

    @property
    def of_ring(self) -> Array:
        """The polygon of each ring, int64 [r]."""
        first_ring = self.part_start[self.start]
        return np.repeat(np.arange(self.start.size - 1), np.diff(first_ring))


def members(offset: Array, rows: Array) -> tuple[Array, Array]:
    """Indices of the members of some groups, one after the other, and their offsets."""
    counts = (offset[1:] - offset[:-1])[rows]
    to = offsets_of(counts)
    return np.repeat(offset[:-1][rows] - to[:-1], counts) + np.arange(int(to[-1])), to
