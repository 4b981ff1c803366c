"""One side's rows as oriented boxes, polygons or masks: read from whatever they are, and converted.

Down: a mask becomes its outline (under ``valor`` the convex hull of its pixels, as its service has
it), polygons and masks become bounding boxes. Up, only where it was asked for: boxes become
polygons of four corners, and polygons pixels by pycocotools' rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import flat
from ...geometry.masks import Masks, boundary, concat, read_masks
from ...geometry.places import Origin, Place
from ...geometry.polygons import (
    REPAIR,
    Polygons,
    from_boxes,
    from_corners,
    rasterise,
    read_polygons,
)
from ...geometry.polygons import concat as concat_polygons
from ...geometry.quads import (
    around,
    corners_of,
    corners_of_polygons,
    corners_of_upright,
    hulls_of,
    smallest_boxes,
)
from ...geometry.raster_files import RasterFiles
from ...ingest.problems import Note, count_of
from ...kernels.quads import measure
from ...overwriting import reads
from ...schemas.wording import option
from ..workers import Workers
from .geometry import BOX, MASK, OBB, POLYGON
from .layers import MaskLayer, PolygonLayer, QuadLayer, Shapes
from .oriented import LAYERS
from .settings import Settings

Array = np.ndarray[Any, Any]
_SHOWN = 3
CORNERS = ("xmin", "ymin", "xmax", "ymax")


class Objects(msgspec.Struct):
    """One side's columns of geometry on their way to shapes.

    Attributes:
        side: its name.
        frame: its rows.
        kind: int8 [n], of which kind each row is read.
        invalid: what to do with broken polygons.
        angle: by what angles are multiplied to be radians, clockwise as the image is seen.
        files: where the paths of rasters lead.
        over: where heavy work runs.
        origin: what errors call its rows.
        notes: where what is worth telling goes.
    """

    side: str
    frame: pl.DataFrame
    kind: Array
    invalid: str
    angle: float
    files: RasterFiles
    over: Any
    origin: Origin
    notes: list[Note]

    def rows(self, kind: int) -> Array:
        """Rows read as a kind, int64."""
        return np.flatnonzero(self.kind == kind)

    def column(self, name: str, rows: Array) -> pl.Series:
        """The values of some rows, without a copy where they are all."""
        column = self.frame[name]
        return column if rows.size == len(column) else column.gather(rows)

    def paths(self, rows: Array) -> pl.Series:
        """Paths of some rows' rasters as they are found; each file is looked for once."""
        paths = self.column("raster", rows)
        names = paths.unique()
        refused = {name: why for name in names if (why := self.files.refusal(name)) is not None}
        place = Place(self.side, "raster", rows, self.origin)
        place.refuse(
            paths.is_in([*refused]).to_numpy(),
            "with a path that may not be opened",
            next((f"The first {why}." for why in refused.values()), ""),
            paths.__getitem__,
        )
        found = [self.files.find(name) or name for name in names]
        reads(found)
        return paths.replace_strict(names, found, return_dtype=pl.String)

    def numbers(self, name: str, rows: Array, default: float) -> Array:
        """A column's numbers in some rows, the default where it says nothing, float64 [k]."""
        if name not in self.frame.columns:
            return np.full(rows.size, default)
        return self.column(name, rows).fill_null(default).to_numpy()

    def boxes(self, rows: Array) -> Array:
        """Corners of some rows' boxes, float64 [k, 4]."""
        if not rows.size:
            return np.empty((0, 4), np.float64)
        return np.stack([self.column(name, rows).to_numpy() for name in CORNERS], axis=1)

    def oriented(self, rows: Array) -> Array:
        """Centre, width, height and angle (radians, clockwise) of some oriented boxes [k, 5]."""
        values, _ = flat(self.column("obb", rows))
        numbers = values.cast(pl.Float64).to_numpy().reshape(-1, 5).copy()
        numbers[:, 4] *= self.angle
        return numbers

    def turned(self, rows: Array) -> Array:
        """Corners of some oriented boxes, float64 [k, 8]."""
        numbers = self.oriented(rows)
        return corners_of(numbers[:, :4], numbers[:, 4])

    def polygons(self, rows: Array) -> Polygons:
        """Polygons of some rows."""
        column = self.column("polygon", rows)
        return read_polygons(
            column, side=self.side, invalid=self.invalid, rows=rows, origin=self.origin
        )

    def masks(self, rows: Array) -> tuple[Array, Masks]:
        """Masks of some rows, from either column, and the rows in the masks' order."""
        if "raster" not in self.frame.columns:
            column = self.column("mask", rows)
            return rows, self._coded(column, rows)
        filed = self.column("raster", rows).is_not_null().to_numpy()
        if "mask" in self.frame.columns:
            filed &= self.column("mask", rows).is_null().to_numpy()
        order = np.concatenate([rows[~filed], rows[filed]])
        parts = []
        if not filed.all():
            column = self.column("mask", rows[~filed])
            parts.append(self._coded(column, rows[~filed]))
        if filed.any():
            from ...geometry.rasters import read_raster_masks  # rasterio only where it is used

            values = self.numbers("raster_value", rows[filed], np.nan)
            read = read_raster_masks(
                self.paths(rows[filed]),
                self.numbers("raster_band", rows[filed], np.nan),
                values,
                side=self.side,
                over=self.over,
                rows=rows[filed],
                origin=self.origin,
                remote=self.files.remote,
            )
            self._note_absent(rows[filed], values, read)
            parts.append(read)
        return order, concat(parts)

    def _note_absent(self, rows: Array, values: Array, masks: Masks) -> None:
        """Say which rows name a value that no pixel of their file has."""
        absent = np.flatnonzero((np.diff(masks.start) == 0) & ~np.isnan(values))
        if absent.size:
            shown = "; ".join(
                f"{self.origin.told(int(rows[i]))} asks for {values[i]:g} in"
                f" {self.frame['raster'][int(rows[i])]!r}"
                for i in absent[:_SHOWN]
            )
            said = f"{self.side.replace('_', ' ')}: column 'raster_value':"
            said += f" {count_of(absent.size, 'row')} with a value that no pixel of the file has,"
            said += f" so that the mask is empty, first (rows count from 0): {shown}."
            self.notes.append(Note("absent_raster_values", said, int(absent.size)))

    def _coded(self, column: pl.Series, rows: Array) -> Masks:
        return read_masks(column, side=self.side, over=self.over, rows=rows, origin=self.origin)


def in_order(parts: list[tuple[Array, Any]], join: Callable[[list[Any]], Any]) -> Any:
    """Parts for some rows each as one thing with a row each, in the table's order."""
    if len(parts) == 1 and (np.diff(parts[0][0]) == 1).all():
        return parts[0][1]
    rows = np.concatenate([rows for rows, _ in parts])
    place = np.empty(rows.size, np.int64)
    place[rows] = np.arange(rows.size)
    return join([part for _, part in parts]).take(place)


def boxes_of(objects: Objects, *, areas: bool) -> tuple[Array, Array | None]:
    """Bounding boxes of all rows: own boxes, else those of polygons and masks.

    Args:
        objects: the side.
        areas: whether the areas of polygons and masks are wanted as well.

    Returns:
        boxes float64 [n, 4]; area float64 [n] of the polygon or mask, NaN of rows with a box of
        their own, or None where areas are not wanted.

    Raises:
        InputError: geometry that cannot be read; polygons that cross themselves, where areas are
            wanted and such polygons are not repaired.
    """
    n = objects.frame.height
    out, area = np.empty((n, 4), np.float64), np.full(n, np.nan) if areas else None
    if (rows := objects.rows(BOX)).size:
        out[rows] = objects.boxes(rows)
    if (rows := objects.rows(OBB)).size:
        corners = objects.turned(rows)
        out[rows] = hulls_of(corners)
        if area is not None:
            area[rows] = measure(corners)[1]
    shaped: list[tuple[Array, Polygons | Masks]] = []
    if (rows := objects.rows(POLYGON)).size:
        shaped.append((rows, objects.polygons(rows)))
    if (rows := objects.rows(MASK)).size:
        shaped.append(objects.masks(rows))
    for order, found in shaped:
        out[order] = found.boxes
        if area is not None:
            area[order] = found.area
    return out, area


def as_polygons(objects: Objects, settings: Settings) -> Shapes:
    """All rows as polygons."""
    parts: list[tuple[Array, Any]] = []
    for kind, made in (
        (POLYGON, lambda rows: (rows, objects.polygons(rows))),
        (MASK, lambda rows: _traced(settings, *objects.masks(rows))),
        (OBB, lambda rows: (rows, _turned(objects, rows))),
        (BOX, lambda rows: (rows, _cornered(objects, rows))),
    ):
        if (rows := objects.rows(kind)).size or (kind == BOX and not parts):
            parts.append(made(rows))

    def joined(some: list[Polygons]) -> Polygons:
        rows = np.concatenate([rows for rows, _ in parts])
        place = Place(objects.side, "polygon", rows, objects.origin)
        return msgspec.structs.replace(concat_polygons(some), place=place)

    polygons = in_order(parts, joined)
    area = np.ascontiguousarray(polygons.area, np.float64)
    return Shapes((PolygonLayer(area, polygons),), polygons.boxes)


def _cornered(objects: Objects, rows: Array) -> Polygons:
    """Boxes as polygons; those without area, which are legal, have no part."""
    place = Place(objects.side, "xmin", rows, objects.origin)
    return from_boxes(objects.boxes(rows), place, flat_ones_empty=True)


def _turned(objects: Objects, rows: Array, *, flat_ones: bool = False) -> Polygons:
    """Oriented boxes as polygons; unless asked for, those without area have no part."""
    place = Place(objects.side, "obb", rows, objects.origin)
    corners = objects.turned(rows)
    return from_corners(corners, place, (measure(corners)[1] > 0) | flat_ones)


def _traced(settings: Settings, rows: Array, masks: Masks) -> tuple[Array, Any]:
    from ...geometry.convert import hulls, outlines  # rasterio only where it is used

    return rows, hulls(masks) if settings.rules.hulls else outlines(masks)


def as_quads(objects: Objects, settings: Settings) -> Shapes:
    """All rows as quadrilaterals: oriented boxes, upright ones, and polygons of four corners.

    Raises:
        InputError: masks; polygons of other than four corners; corners whose sides cross, unless
            the dialect or the user lets them; crowds where the tool at hand knows none.
    """
    n = objects.frame.height
    masks = objects.rows(MASK)
    column = "mask" if "mask" in objects.frame.columns else "raster"
    Place(objects.side, column, masks, objects.origin).refuse(
        np.ones(masks.size, bool),
        "without anything but a mask, to be compared as oriented boxes",
        f"Give oriented boxes or four corners, or write {option('iou_type', 'segm')}.",
    )
    corners, numbers = np.empty((n, 8)), np.full((n, 5), np.nan)
    if (rows := objects.rows(BOX)).size:
        corners[rows] = corners_of_upright(objects.boxes(rows))
    if (rows := objects.rows(POLYGON)).size:
        corners[rows] = _four_corners(objects, rows, settings)
    if (rows := objects.rows(OBB)).size:
        numbers[rows] = objects.oriented(rows)
        corners[rows] = corners_of(numbers[rows, :4], numbers[rows, 4])
    layer = QuadLayer.of(corners)
    area = numbers[:, 2] * numbers[:, 3]
    told = np.where(np.isnan(area), layer.area, area)
    if settings.alike in LAYERS:
        _refuse_crowds(objects, settings)
        rest = np.flatnonzero(np.isnan(area))
        numbers[rest] = smallest_boxes(corners[rest])
        layer = LAYERS[settings.alike](numbers, layer)
    return Shapes((layer,), hulls_of(corners), told)


def _four_corners(objects: Objects, rows: Array, settings: Settings) -> Array:
    """Corners of some polygons, float64 [k, 8]; in another order where sides cross, if asked."""
    polygons = objects.polygons(rows)
    corners = corners_of_polygons(polygons)
    crossed = measure(corners)[3]
    if objects.invalid == REPAIR:
        corners[crossed] = around(corners[crossed])
    elif not settings.rules.crossing:
        polygons.place.refuse(
            crossed,
            "with corners whose sides cross",
            f"Write the corners in their order around, or {option('invalid_polygons', REPAIR)}"
            " to bring them into it.",
            lambda i: corners[i].tolist(),
        )
    return corners


def _refuse_crowds(objects: Objects, settings: Settings) -> None:
    if "iscrowd" in objects.frame.columns:
        crowd = objects.frame["iscrowd"].cast(pl.Boolean).to_numpy()
        Place(objects.side, "iscrowd", None, objects.origin).refuse(
            crowd & settings.rules.crowd,
            f"that are crowds, which {settings.alike} knows nothing of",
            "Leave these rows out, or compare by another dialect or iou_type.",
        )


class Drawn(msgspec.Struct):
    """One side on its way to masks: those it has, and what is still to be rasterised."""

    objects: Objects
    rows: Array
    masks: Masks

    def to_draw(self) -> Array:
        """Rows that are not masks yet, int64."""
        return np.flatnonzero(self.objects.kind != MASK)


def own_masks(objects: Objects) -> Drawn:
    """The rows that have masks, read."""
    rows = objects.rows(MASK)
    if not rows.size:
        return Drawn(objects, rows, concat([]))
    order, masks = objects.masks(rows)
    if "mask" in objects.frame.columns:
        objects.frame.drop_in_place("mask")  # the runs are worth as much memory again
    return Drawn(objects, order, masks)


def as_masks(
    drawn: Drawn, height: Array, width: Array, settings: Settings, threads: Workers
) -> Shapes:
    """All rows as masks.

    Args:
        drawn: the side, with the masks it has.
        height: int64 [n], of each row's image where it is to be rasterised.
        width: int64 [n].
        settings: whether boundaries are compared, and how wide they are.
        threads: where the work runs.
    """
    parts: list[tuple[Array, Any]] = [(drawn.rows, drawn.masks)] if drawn.rows.size else []
    objects = drawn.objects
    for kind, made in (
        (POLYGON, objects.polygons),
        (OBB, lambda rows: _turned(objects, rows, flat_ones=True)),
        (BOX, lambda rows: from_boxes(objects.boxes(rows))),
    ):
        if (rows := objects.rows(kind)).size:
            parts.append((rows, rasterise(made(rows), height[rows], width[rows], threads.over)))
    masks = in_order(parts, concat) if parts else drawn.masks
    masks.measure(threads.over)
    layers = [MaskLayer(masks.area.astype(np.float64), masks)]
    if settings.boundary_ratio is not None:
        edge = boundary(masks, settings.boundary_ratio, threads.over)
        layers.append(MaskLayer(edge.area.astype(np.float64), edge))
    return Shapes(tuple(layers), masks.boxes)
