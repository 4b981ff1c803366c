"""Choice of the geometry that is compared, and its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...atomic import reads
from ...geometry.columns import Origin, Place, concatenated, flat
from ...geometry.masks import Masks, boundary, concat, read_masks
from ...geometry.polygons import (
    REPAIR,
    Polygons,
    around,
    corners_of,
    corners_of_polygons,
    corners_of_upright,
    from_boxes,
    from_corners,
    hulls_of,
    rasterise,
    read_polygons,
    smallest_boxes,
)
from ...geometry.polygons import concat as concat_polygons
from ...geometry.rasters import RasterFiles
from ...ingest.frames import Frames
from ...ingest.problems import Note, count_of, note_of
from ...kernels.boxes import measure_quads, rotated_ious
from ...schemas.arrays import Array
from ...schemas.errors import N_EXAMPLES
from ...schemas.wording import option
from ..encoding import Workers
from .layers import Candidates, MaskLayer, PolygonLayer, QuadLayer, Shapes, by_boxes
from .settings import Settings

# Choice of the compared geometry: the requested one, otherwise the least detailed of any row.
# Source: Valor's evaluation of mixed annotation types; pycocotools ``COCOeval._prepare``.

BOX, OBB, POLYGON, MASK = 0, 1, 2, 3
"""Kinds of geometry, by detail."""
POINTS = "points"
"""Keypoints, which are not a region and cannot be converted to or from other geometry."""
SOLID = "solid"
"""3-D boxes, which cannot be converted to or from other geometry."""
KINDS = {"box": BOX, "obb": OBB, "polygon": POLYGON, "mask": MASK}
WORDS = {
    BOX: ("box", "boxes"),
    OBB: ("oriented box", "oriented boxes"),
    POLYGON: ("polygon", "polygons"),
    MASK: ("mask", "masks"),
}
_COLUMNS = {BOX: ("xmin",), OBB: ("obb",), POLYGON: ("polygon",), MASK: ("mask", "raster")}


def has(frame: pl.DataFrame, kind: int) -> Array:
    """Return a mask of rows that have geometry of a kind, bool [n]."""
    present = np.zeros(frame.height, bool)
    for name in _COLUMNS[kind]:
        if name in frame.columns:
            present |= frame[name].is_not_null().to_numpy()
    return present


def kinds_of(frame: pl.DataFrame, every: Sequence[int] = (OBB, POLYGON, MASK)) -> Array:
    """The last of some kinds of geometry that each row has, the most detailed one, int8 [n]."""
    kinds = np.full(frame.height, BOX, np.int8)
    for kind in every:
        kinds[has(frame, kind)] = kind
    return kinds


def choose(frames: Frames, settings: Settings) -> int:
    """Return the compared kind; adds a note if a table has more than boxes."""
    sides = {"predictions": frames.predictions, "ground truths": frames.ground_truths}
    kinds = {name: kinds_of(frame) for name, frame in sides.items()}
    every = np.concatenate(list(kinds.values()))
    if settings.geometry is not None:
        target = KINDS[settings.geometry]
        why = settings.geometry_by
    else:
        target = int(every.min()) if every.size else BOX
        why = "the most detailed that every row has"
        if target == OBB and (every != OBB).any():
            target = POLYGON  # which any of the others may be without a loss
        if settings.rules.masks_first and target == POLYGON and (every == MASK).any():
            target, why = MASK, "as pycocotools does if both polygons and masks occur"
    mixed = every.size and (every != BOX).any()
    if settings.geometry is not None:
        if mixed:
            frames.notes.append(Note("geometry", f"{WORDS[target][1]} are compared, {why}."))
        for name, frame in sides.items():
            frames.notes += _converted(name, read_as(frame, target), target)
    elif mixed:
        counts = "; ".join(f"{name}: {_counted(row_kinds)}" for name, row_kinds in kinds.items())
        choice = f"{WORDS[target][1]} are compared, {why} ({counts})."
        frames.notes.append(Note("geometry", f"{choice} To change that: {option('convert_to')}."))
    return target


def _converted(side: str, kinds: Array, target: int) -> list[Note]:
    """Return notes on the number of converted rows, which add up over parts of a run."""
    notes = []
    to, to_several = WORDS[target]
    for kind, (one, several) in WORDS.items():
        n = int((kinds == kind).sum()) if kind != target else 0
        if n:
            words = f"{one} becomes a {to}", f"{several} become {to_several}", "to be compared"
            notes.append(note_of("converted", n, words, before=f"{side}: "))
    return notes


def _counted(kinds: Array) -> str:
    """``830 polygons and 9 masks``."""
    parts = [
        count_of(n, *WORDS[kind])
        for kind in (POLYGON, MASK, OBB, BOX)
        if (n := int((kinds == kind).sum()))
    ]
    return " and ".join(parts) or "no rows"


_PREFERRED = {
    BOX: (MASK, POLYGON, OBB, BOX),
    OBB: (MASK, BOX, POLYGON, OBB),
    POLYGON: (BOX, MASK, OBB, POLYGON),
    MASK: (BOX, OBB, POLYGON, MASK),
}
"""Compared geometry -> kinds to read a row from, the best last."""


def read_as(frame: pl.DataFrame, target: int) -> Array:
    """Return the kind from which each row is converted to ``target``, int8 [n]."""
    return kinds_of(frame, _PREFERRED[target])


# One side's rows as oriented boxes, polygons or masks, converted from the given geometry.

# Similarity of oriented boxes: exact area, IoU of detectron2 and mmcv, or Ultralytics' probiou
# (1 minus the Hellinger distance of normal distributions; Llerena et al., arXiv 2106.06072).


_SMALL = 1e-7  # added by Ultralytics to denominators and to arguments of roots and logarithms
_FARTHEST = 100.0  # Bhattacharyya distance
_FAR = 16.2  # from here on the small number makes the similarity at most 0
_SURE = 1e-3  # determinant of a covariance from which on the small numbers hardly count


class Reaching(QuadLayer, frozen=True):
    """Oriented boxes that may be similar without overlap of their areas or bounding boxes."""

    def reach(self, lowest: float) -> Array:
        """Return search boxes, float64 [n, 4], that intersect for all sufficiently similar
        pairs.
        """
        raise NotImplementedError

    def candidates(self, other: Any, compared: Candidates, threads: Workers) -> tuple[Array, Array]:
        """See :meth:`.layers.Layer.candidates`: by how far boxes reach."""
        sides = zip((self, other), compared.row, strict=True)
        ours, theirs = (side.reach(compared.lowest)[row] for side, row in sides)
        wide = msgspec.structs.replace(compared, boxes=(ours, theirs), lowest=0.0)
        return by_boxes(wide, (np.ones(len(ours)), np.ones(len(theirs))), threads)


class HullLayer(Reaching, frozen=True):
    """Boxes with an IoU in single precision.

    Attributes:
        numbers: float32 [n, 8], as for :func:`evalengine.kernels.boxes.rotated_ious`.
        margin: tolerance beyond the end of an edge.
        insertion: points are sorted by insertion sort.
    """

    numbers: Array
    margin: float
    insertion: bool

    def reach(self, lowest: float) -> Array:
        """Return bounding boxes, enlarged by the margin and rounding errors."""
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

        These tools compare with thresholds in single precision, so that the nearest float reaches
        the
        threshold: nearly half the distance to the next float is added.
        """
        iou = concatenated(
            threads.over,
            np.arange(rows.size + 1),
            lambda i, j: rotated_ious(
                self.numbers,
                other.numbers,
                rows[i:j],
                other_rows[i:j],
                margin=self.margin,
                insertion=self.insertion,
            ),
            np.float32,
        )
        wide = np.nan_to_num(iou.astype(np.float64))
        return wide + np.where(wide > 0, 0.49 * np.spacing(iou), 0.0)


class GaussLayer(Reaching, frozen=True):
    """Boxes as normal distributions.

    Attributes:
        numbers: float64 [n, 5], mean x and y, variance of x and of y, covariance.
    """

    numbers: Array

    def reach(self, lowest: float) -> Array:
        """Return search boxes from the Bhattacharyya distance, which is at least d' S^-1 d / 4."""
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
        return concatenated(
            threads.over,
            np.arange(rows.size + 1),
            lambda i, j: _gaussian(self.numbers[rows[i:j]], other.numbers[other_rows[i:j]]),
        )


def _gaussian(one: Array, two: Array) -> Array:
    x, y, a, b, c = (one - two).T[0], (one - two).T[1], *(one + two).T[2:]
    spread = a * b - c * c
    away = ((a * y * y + b * x * x) * 0.25 - c * x * y * 0.5) / (spread + _SMALL)
    each = [np.maximum(s[:, 2] * s[:, 3] - s[:, 4] * s[:, 4], 0.0) for s in (one, two)]
    ratio = np.maximum(spread, 0.0) / (4 * np.sqrt(each[0] * each[1]) + _SMALL) + _SMALL
    distance = np.clip(away + 0.5 * np.log(ratio), _SMALL, _FARTHEST)
    return 1.0 - np.sqrt(1.0 - np.exp(-distance) + _SMALL)


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
"""Similarity -> layer built from centre, width, height and angle [n, 5], and the corners."""


CORNERS = ("xmin", "ymin", "xmax", "ymax")


class Objects(msgspec.Struct):
    """One side's geometry columns before conversion to shapes.

    Attributes:
        side: its name.
        frame: its rows.
        kind: int8 [n], kind from which each row is read.
        invalid: handling of invalid polygons.
        angle: factor from angles to radians, clockwise as the image is seen.
        files: resolves the paths of rasters.
        origin: names of rows in error messages.
        notes: receives notes.
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
        """Return the values of rows, without a copy if they are all."""
        column = self.frame[name]
        return column if rows.size == len(column) else column.gather(rows)

    def paths(self, rows: Array) -> pl.Series:
        """Paths of some rows' rasters as they are found; each file is looked for once."""
        paths = self.column("raster", rows)
        names = paths.unique()
        refused = {name: why for name in names if (why := self.files.refusal(name)) is not None}
        place = Place(self.side, "raster", rows, self.origin)
        place.refuse(
            "path_refused",
            paths.is_in([*refused]).to_numpy(),
            "with a path that may not be opened",
            next((f"The first {why}." for why in refused.values()), ""),
            paths.__getitem__,
        )
        files = [self.files.find(name) or name for name in names]
        reads(files)
        return paths.replace_strict(names, files, return_dtype=pl.String)

    def numbers(self, name: str, rows: Array, default: float) -> Array:
        """Return a column's numbers, float64 [k], with a default for nulls or a missing column."""
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
            from ...geometry.rasters import read_raster_masks

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
        """Add a note on rows whose value does not occur in their file."""
        absent = np.flatnonzero((np.diff(masks.start) == 0) & ~np.isnan(values))
        if absent.size:
            first = "; ".join(
                f"{self.origin.describe(int(rows[i]))} asks for {values[i]:g} in"
                f" {self.frame['raster'][int(rows[i])]!r}"
                for i in absent[:N_EXAMPLES]
            )
            message = f"{self.side.replace('_', ' ')}: column 'raster_value':"
            message += (
                f" {count_of(absent.size, 'row')} with a value that no pixel of the file has,"
            )
            message += f" so that the mask is empty, first (rows count from 0): {first}."
            self.notes.append(Note("absent_raster_values", message, int(absent.size)))

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
    """Return the bounding boxes of all rows: given boxes, else those of polygons and masks.

    Args:
        areas: also return the areas of polygons and masks.

    Returns:
        boxes float64 [n, 4]; area float64 [n] of the polygon or mask, NaN for rows with a given
        box,
        or None if areas are not requested.

    Raises:
        InputError: unreadable geometry; self-intersecting polygons, if areas are requested and such
            polygons are not repaired.
    """
    n = objects.frame.height
    out, area = np.empty((n, 4), np.float64), np.full(n, np.nan) if areas else None
    if (rows := objects.rows(BOX)).size:
        out[rows] = objects.boxes(rows)
    if (rows := objects.rows(OBB)).size:
        corners = objects.turned(rows)
        out[rows] = hulls_of(corners)
        if area is not None:
            area[rows] = measure_quads(corners)[1]
    shaped: list[tuple[Array, Polygons | Masks]] = []
    if (rows := objects.rows(POLYGON)).size:
        shaped.append((rows, objects.polygons(rows)))
    if (rows := objects.rows(MASK)).size:
        shaped.append(objects.masks(rows))
    for order, layer in shaped:
        out[order] = layer.boxes
        if area is not None:
            area[order] = layer.area
    return out, area


def as_polygons(objects: Objects, settings: Settings) -> Shapes:
    """All rows as polygons."""
    parts: list[tuple[Array, Any]] = []
    for kind, convert in (
        (POLYGON, lambda rows: (rows, objects.polygons(rows))),
        (MASK, lambda rows: _traced(settings, *objects.masks(rows))),
        (OBB, lambda rows: (rows, _turned(objects, rows))),
        (BOX, lambda rows: (rows, _cornered(objects, rows))),
    ):
        if (rows := objects.rows(kind)).size or (kind == BOX and not parts):
            parts.append(convert(rows))

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
    return from_corners(corners, place, (measure_quads(corners)[1] > 0) | flat_ones)


def _traced(settings: Settings, rows: Array, masks: Masks) -> tuple[Array, Any]:
    from ...geometry.polygons import hulls, outlines

    return rows, hulls(masks) if settings.rules.hulls else outlines(masks)


def as_quads(objects: Objects, settings: Settings) -> Shapes:
    """Return all rows as quadrilaterals: oriented boxes, upright ones, and four-corner polygons.

    Raises:
        InputError: masks; polygons with another number of corners; self-intersecting corners,
            unless
            the dialect or the user allows them; crowds if the tool does not support them.
    """
    n = objects.frame.height
    masks = objects.rows(MASK)
    column = "mask" if "mask" in objects.frame.columns else "raster"
    Place(objects.side, column, masks, objects.origin).refuse(
        "wrong_geometry",
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
    areas = np.where(np.isnan(area), layer.area, area)
    if settings.iou_kind in LAYERS:
        _refuse_crowds(objects, settings)
        rest = np.flatnonzero(np.isnan(area))
        numbers[rest] = smallest_boxes(corners[rest])
        layer = LAYERS[settings.iou_kind](numbers, layer)
    return Shapes((layer,), hulls_of(corners), areas)


def _four_corners(objects: Objects, rows: Array, settings: Settings) -> Array:
    """Return corners of polygons, float64 [k, 8], reordered if self-intersecting and requested."""
    polygons = objects.polygons(rows)
    corners = corners_of_polygons(polygons)
    crossed = measure_quads(corners)[3]
    if objects.invalid == REPAIR:
        corners[crossed] = around(corners[crossed])
    elif not settings.rules.crossing:
        polygons.place.refuse(
            "corners_crossed",
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
            "crowds_unread",
            crowd & settings.rules.crowd,
            f"that are crowds, which {settings.iou_kind} does not define",
            "Remove these rows, or compare by another dialect or iou_type.",
        )


class Drawn(msgspec.Struct):
    """One side before conversion to masks: existing masks, and shapes to rasterise."""

    objects: Objects
    rows: Array
    masks: Masks


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
    """Return all rows as masks.

    Args:
        drawn: the side, with its existing masks.
        height: int64 [n], image height of each row to rasterise.
        width: int64 [n].
        settings: whether boundaries are compared, and their width.
    """
    parts: list[tuple[Array, Any]] = [(drawn.rows, drawn.masks)] if drawn.rows.size else []
    objects = drawn.objects
    for kind, convert in (
        (POLYGON, objects.polygons),
        (OBB, lambda rows: _turned(objects, rows, flat_ones=True)),
        (BOX, lambda rows: from_boxes(objects.boxes(rows))),
    ):
        if (rows := objects.rows(kind)).size:
            parts.append((rows, rasterise(convert(rows), height[rows], width[rows], threads.over)))
    masks = in_order(parts, concat) if parts else drawn.masks
    masks.measure(threads.over)
    layers = [MaskLayer(masks.area.astype(np.float64), masks)]
    if settings.boundary_ratio is not None:
        edge = boundary(masks, settings.boundary_ratio, threads.over)
        layers.append(MaskLayer(edge.area.astype(np.float64), edge))
    return Shapes(tuple(layers), masks.boxes)
