"""Layers: kinds of geometry and their similarity."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Protocol, Self

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import concatenated
from ...geometry.masks import Masks, columns_of, intersections
from ...geometry.polygons import Polygons, intersection_areas
from ...kernels.boxes import (
    candidates,
    measure_quads,
    rows_by_datum,
    shared_quad_areas,
    truths_by_datum,
)
from ...schemas.arrays import Array
from ..contents import Ring, of_geometry, of_pixels
from ..encoding import Workers

# Centre distances as similarities, by the bits of the double: metres convert without loss between
# 2^-20 m (similarity 1) and 2^12 m (0).

NEAREST, FARTHEST = 2.0**-20, 2.0**12
"""Metres."""
_TURN = int(np.float64(1.0).view(np.int64)) + int(np.float64(NEAREST).view(np.int64))


def similarity(metres: Any) -> Array:
    """Return the similarity of boxes at these distances, float64."""
    away = np.maximum(np.asarray(metres, np.float64), NEAREST)
    return np.where(away < FARTHEST, (_TURN - away.view(np.int64)).view(np.float64), 0.0)


def metres(similarities: Any) -> Array:
    """The distance of a similarity above 0, as :func:`similarity` makes it; NaN of none."""
    values = np.asarray(similarities, np.float64)
    away = (_TURN - values.view(np.int64)).view(np.float64)
    return np.where(np.isnan(values), np.nan, np.where(away <= NEAREST, 0.0, away))


# Layers: candidate pairs of a kind of geometry, and their similarity, bit-identical to pycocotools'
# ``rleIou``: IoU, and i / a of the detection against a crowd region.


class Candidates(msgspec.Struct, frozen=True):
    """Candidate pairs of two sides; predictions first, in layout order.

    Attributes:
        datum: int32 [n] and [m], datum codes.
        key: int32 [n] and [m]: only rows of the same key are paired.
        row: int64 [n] and [m], rows of the tables.
        boxes: float64 [n, 4] and [m, 4], bounding boxes.
        crowd: bool [m], ground truths that count as crowd regions.
        n_datums: number of datums.
        lowest: pairs of lower similarity may be missing; 0 for all above 0.
    """

    datum: tuple[Array, Array]
    key: tuple[Array, Array]
    row: tuple[Array, Array]
    boxes: tuple[Array, Array]
    crowd: Array
    n_datums: int
    lowest: float


class Layer(Protocol):
    """Geometry of one kind for every row, comparable with that of the other side."""

    @property
    def area(self) -> Array:
        """float64 [n]: default area for area ranges."""
        ...

    def candidates(self, other: Any, compared: Candidates, threads: Workers) -> tuple[Array, Array]:
        """Pairs that may be alike: places int32 [k] in both layouts, by datum, ours and theirs."""
        ...

    def similarity(
        self, other: Any, rows: Array, other_rows: Array, crowd: Array, threads: Workers
    ) -> Array:
        """Return the similarity of pairs of rows, float64 [k], from 0 to 1.

        Args:
            other: the ground truths' layer.
            rows: int64 [k], rows of this side.
            other_rows: int64 [k], rows of the other.
            crowd: bool [k], the other row is a crowd region.
        """
        ...


class Region(msgspec.Struct, frozen=True):
    """Layers that cover an area, and are compared by how much of it they share."""

    area: Array

    def shared(self, other: Any, rows: Array, other_rows: Array, over: Any) -> Array:
        """Return the intersection of pairs of rows, float64 [k]."""
        raise NotImplementedError

    def candidates(
        self, other: Region, compared: Candidates, threads: Workers
    ) -> tuple[Array, Array]:
        """See :meth:`Layer.candidates`: by bounding boxes and areas."""
        return by_boxes(
            compared, (self.area[compared.row[0]], other.area[compared.row[1]]), threads
        )

    def similarity(
        self, other: Region, rows: Array, other_rows: Array, crowd: Array, threads: Workers
    ) -> Array:
        """See :meth:`Layer.similarity`: IoU."""
        shared = self.shared(other, rows, other_rows, threads.over)
        areas = self.area[rows]
        union = np.where(crowd, areas, areas + other.area[other_rows] - shared)
        return np.divide(shared, union, out=np.zeros(rows.size), where=union > 0)

    def outline(self, row: int, most: int) -> tuple[Ring, ...]:
        """Return the rings of a row, at most ``most`` points; empty to use the bounding box."""
        return ()

    def geojson(self, rows: Array) -> pl.Series | None:
        """Return rows as GeoJSON, String [k]; None to use their bounding boxes."""
        return None


def by_boxes(
    compared: Candidates, areas: tuple[Array, Array], threads: Workers
) -> tuple[Array, Array]:
    """Pairs whose bounding boxes and areas (float64 [n] and [m], by place) let them be alike."""
    start, place = rows_by_datum(compared.datum[0], compared.n_datums)
    ours = start, place, compared.boxes[0], areas[0], compared.key[0]
    theirs = truths_by_datum(
        compared.datum[1],
        compared.n_datums,
        compared.boxes[1],
        areas[1],
        compared.key[1],
        compared.crowd,
    )
    lowest = compared.lowest
    return joined(threads.over(start, lambda a, b: candidates(a, b, ours, theirs, lowest)))


def joined(pieces: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Pairs of all ranges of datums one after the other, int32 [k] each."""
    none = np.empty(0, np.int32)
    p, g = (np.concatenate(parts) for parts in zip((none, none), *pieces, strict=True))
    return p, g


class MaskLayer(Region, frozen=True):
    """Regions of pixels."""

    masks: Masks

    def shared(self, other: MaskLayer, rows: Array, other_rows: Array, over: Any) -> Array:
        """Pixels that pairs share, float64 [k]."""
        return intersections(self.masks, other.masks, rows, other_rows, over).astype(np.float64)

    def outline(self, row: int, most: int) -> tuple[Ring, ...]:
        """Rings around the pixels."""
        left, top, right, bottom = self.masks.boxes[row]
        last = min(int(self.masks.width[row]), math.ceil(right) + 1)
        first, low, high = max(0, math.floor(left)), max(0, math.floor(top)), math.ceil(bottom) + 1
        return of_pixels(columns_of(self.masks, row, first, last)[low:high], first, low, most)


class PolygonLayer(Region, frozen=True):
    """Polygons."""

    polygons: Polygons

    def shared(self, other: PolygonLayer, rows: Array, other_rows: Array, over: Any) -> Array:
        """Areas that pairs share, float64 [k]."""
        return intersection_areas(self.polygons, other.polygons, rows, other_rows, over)

    def outline(self, row: int, most: int) -> tuple[Ring, ...]:
        """Rings of all parts."""
        return of_geometry(self.polygons.geometries[row], most)

    def geojson(self, rows: Array) -> pl.Series:
        """Polygons and multipolygons."""
        import shapely

        texts = shapely.to_geojson(self.polygons.geometries[rows])
        return pl.Series("geometry", texts.tolist(), dtype=pl.String)


class QuadLayer(Region, frozen=True):
    """Quadrilaterals, including oriented boxes.

    Attributes:
        corners: float64 [n, 8], of the same orientation.
        pieces: int8 [n], number of convex pieces.
        digits: decimals of coordinates in outlines.
    """

    digits: ClassVar[int] = 1
    corners: Array
    pieces: Array

    @classmethod
    def of(cls, corners: Array) -> Self:
        """From corners around each, either way round, float64 [n, 8]."""
        turned, area, pieces, _ = measure_quads(corners)
        return cls(area, turned, pieces)

    def shared(self, other: QuadLayer, rows: Array, other_rows: Array, over: Any) -> Array:
        """Areas that pairs share, float64 [k]."""
        mine, theirs = ((s.corners, s.area, s.pieces) for s in (self, other))
        each = np.arange(rows.size + 1)
        return concatenated(
            over, each, lambda i, j: shared_quad_areas(mine, theirs, rows[i:j], other_rows[i:j])
        )

    def outline(self, row: int, most: int) -> tuple[Ring, ...]:
        """Its four sides."""
        xy = np.round(self.corners[row], self.digits).reshape(4, 2).tolist()
        return (tuple((x, y) for x, y in (*xy, xy[0])),)

    def geojson(self, rows: Array) -> pl.Series:
        """Polygons of four corners."""
        return quads_as_geojson(self.corners[rows])


class BoxLayer(Region, frozen=True):
    """Boxes compared as shapes, if area ranges use other areas.

    Attributes:
        boxes: float64 [n, 4].
        pixel: added to xmax - xmin: 1 if boxes include their last pixels, else 0.
    """

    boxes: Array
    pixel: float = 0.0

    def shared(self, other: BoxLayer, rows: Array, other_rows: Array, over: Any) -> Array:
        """Areas that pairs share, float64 [k], in the arithmetic of ``kernels.boxes.box_iou``."""
        mine, theirs = self.boxes[rows], other.boxes[other_rows]
        extent = np.minimum(mine[:, 2:], theirs[:, 2:]) - np.maximum(mine[:, :2], theirs[:, :2])
        extent += self.pixel
        meet = (extent[:, 0] > 0) & (extent[:, 1] > 0)
        return np.where(meet, extent[:, 0] * extent[:, 1], 0.0)


class Shapes(msgspec.Struct, frozen=True):
    """One side's rows as they are compared.

    Attributes:
        layers: the geometry; the similarity of rows is the minimum over layers.
        boxes: float64 [n, 4], bounding boxes.
        given_area: float64 [n], areas for area ranges, if not the first layer's.
        set_aside: bool [n], ground truths that do not count, nor do their matches, in any dialect;
            None for none.
    """

    layers: tuple[Layer, ...]
    boxes: Array
    given_area: Array | None = None
    set_aside: Array | None = None

    @property
    def area(self) -> Array:
        """float64 [n], areas of the geometry itself."""
        return self.layers[0].area

    def outline(self, row: int, most: int) -> tuple[Ring, ...]:
        """Return the rings of a row, at most ``most`` points; empty to use the bounding box."""
        first = self.layers[0]
        return first.outline(row, most) if isinstance(first, Region) else ()

    def geojson(self, rows: Array) -> pl.Series | None:
        """Return rows as GeoJSON, String [k]; None to use their bounding boxes."""
        first = self.layers[0]
        return first.geojson(rows) if isinstance(first, Region) else None


def quads_as_geojson(corners: Array) -> pl.Series:
    """Quadrilaterals (float64 [n, 8]) as GeoJSON polygons, String [n]."""
    frame = pl.DataFrame(
        corners, schema=[f"{xy}{k}" for k in range(4) for xy in "xy"], orient="row"
    )
    ring: list[Any] = []
    for k in (0, 1, 2, 3, 0):
        x, y = (pl.col(f"{xy}{k}").cast(pl.String) for xy in "xy")
        ring += [pl.lit(",[" if ring else "["), x, pl.lit(","), y, pl.lit("]")]
    text = pl.concat_str(pl.lit('{"type":"Polygon","coordinates":[['), *ring, pl.lit("]]}"))
    return frame.select(text.alias("geometry"))["geometry"]
