"""Preparation of the compared geometry: boxes, polygons, masks, solids or keypoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import Origin, flat
from ...geometry.polygons import corners_of, hulls_of
from ...geometry.rasters import RasterFiles
from ...ingest.frames import Frames
from ...ingest.geometry import SHAPED_NAMES
from ...ingest.problems import Note, count_of, note_of
from ...schemas.arrays import Array
from ...schemas.contract import BOX3D, ROW
from ...schemas.errors import N_EXAMPLES, InputError
from ...schemas.wording import option
from ...tallies.datums import Datums, Labels
from ..encoding import Workers, declared_sizes
from .geometry import (
    BOX,
    CORNERS,
    MASK,
    OBB,
    POINTS,
    POLYGON,
    SOLID,
    WORDS,
    Drawn,
    Objects,
    as_masks,
    as_polygons,
    as_quads,
    boxes_of,
    choose,
    own_masks,
    read_as,
)
from .keypoints import as_keypoints
from .layers import (
    FARTHEST,
    NEAREST,
    BoxLayer,
    Candidates,
    QuadLayer,
    Shapes,
    by_boxes,
    metres,
    similarity,
)
from .settings import PROBIOU, Settings

# Upright 3-D boxes: shared ground area times shared height; bounding boxes are in the ground plane.


class GroundLayer(QuadLayer, frozen=True):
    """Ground planes of 3-D boxes."""

    in_space: ClassVar[bool] = True
    digits: ClassVar[int] = 2


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
        shared_height = (tall + other_tall) / 2 - np.abs(
            self.middle[rows] - other.middle[other_rows]
        )
        shared_height = np.maximum(np.minimum(shared_height, np.minimum(tall, other_tall)), 0.0)
        shared = self.shared(other, rows, other_rows, threads.over) * shared_height
        volume = self.area[rows] * tall
        union = np.where(crowd, volume, volume + other.area[other_rows] * other_tall - shared)
        return np.divide(shared, union, out=np.zeros(rows.size), where=union > 0)


class CentreLayer(GroundLayer, frozen=True):
    """3-D boxes compared by distance of centres on the ground.

    Attributes:
        numbers: float64 [n, 7], from :func:`numbers_of`.
    """

    numbers: Array

    def candidates(self, other: Any, compared: Candidates, threads: Workers) -> tuple[Array, Array]:
        """See :meth:`.layers.Layer.candidates`: squares around centres that intersect."""
        reach = float(metres(compared.lowest)) if compared.lowest > 0 else FARTHEST
        half = 0.5 * (reach + NEAREST) * (1 + 1e-9)
        squares = []
        for side, row in zip((self, other), compared.row, strict=True):
            centre = side.numbers[row, :2]
            slack = half + 1e-12 * np.abs(centre)
            squares.append(np.concatenate([centre - slack, centre + slack], axis=1))
        return _pairs(compared, squares, threads)

    def similarity(
        self, other: Any, rows: Array, other_rows: Array, crowd: Array, threads: Workers
    ) -> Array:
        """See :meth:`.layers.Layer.similarity`: of the distance; see :mod:`.layers`."""
        return similarity(ground_distance(self.numbers[rows], other.numbers[other_rows]))


def _pairs(compared: Candidates, around: Sequence[Array], threads: Workers) -> tuple[Array, Array]:
    """Candidates whose boxes around them intersect."""
    ours, theirs = around
    wide = msgspec.structs.replace(compared, boxes=(ours, theirs), lowest=0.0)
    return by_boxes(wide, (np.ones(len(ours)), np.ones(len(theirs))), threads)


EVENTS = "event"
"""Compared geometry: events in time, whose ends may differ by a collar."""


class EventLayer(BoxLayer, frozen=True):
    """Events, as boxes over time, that are alike if both ends are within a collar: 1, else 0.

    Attributes:
        collar: seconds, and the share of a true event's length that offsets may differ.
    """

    collar: tuple[float, float] = (0.0, 0.0)

    @staticmethod
    def of(frame: pl.DataFrame, collar: tuple[float, float]) -> Shapes:
        """Return one side's events."""
        boxes = _corners(frame)
        return Shapes((EventLayer(boxes[:, 2] - boxes[:, 0], boxes, collar=collar),), boxes)

    def candidates(self, other: Any, compared: Candidates, threads: Workers) -> tuple[Array, Array]:
        """See :meth:`.layers.Layer.candidates`: onsets within the collar."""
        around = []
        for boxes in compared.boxes:
            reach = (0.5 * self.collar[0] + 1e-9 * np.abs(boxes[:, 0])) * (1 + 1e-9) + 1e-12
            onsets = [boxes[:, 0] - reach, np.zeros(reach.size), boxes[:, 0] + reach]
            around.append(np.stack([*onsets, np.ones(reach.size)], axis=1))
        return _pairs(compared, around, threads)

    def similarity(
        self, other: Any, rows: Array, other_rows: Array, crowd: Array, threads: Workers
    ) -> Array:
        """See :meth:`.layers.Layer.similarity`."""
        mine, theirs = self.boxes[rows], other.boxes[other_rows]
        allowed = np.maximum(self.collar[0], self.collar[1] * (theirs[:, 2] - theirs[:, 0]))
        equal = np.abs(theirs[:, 0] - mine[:, 0]) <= self.collar[0]
        equal &= np.abs(theirs[:, 2] - mine[:, 2]) <= allowed
        return equal.astype(np.float64)


def ground_distance(boxes: Array, others: Array) -> Array:
    """Return the distance of centres on the ground, float64 [k], of boxes and others [k, 7]."""
    away = boxes[:, :2] - others[:, :2]
    return np.sqrt(away[:, 0] * away[:, 0] + away[:, 1] * away[:, 1])


def numbers_of(frame: pl.DataFrame) -> Array:
    """Centre, length, width, height and yaw (radians, from x towards y) of all rows [n, 7]."""
    values, _ = flat(frame[BOX3D.name])
    return values.cast(pl.Float64).to_numpy().reshape(-1, 7)


def as_solids(frame: pl.DataFrame, settings: Settings) -> Shapes:
    """Return one side's 3-D boxes; area ranges use volumes, or areas if these are compared."""
    boxes = numbers_of(frame)
    corners = corners_of(boxes[:, [0, 1, 3, 4]], boxes[:, 6])
    ground = GroundLayer.of(corners)
    area = boxes[:, 3] * boxes[:, 4]
    if settings.by_distance:
        layer = CentreLayer(ground.area, ground.corners, ground.pieces, boxes)
        return Shapes((layer,), hulls_of(corners), area)
    if settings.iou_kind == "bev":
        return Shapes((ground,), hulls_of(corners), area)
    solid = SolidLayer(ground.area, ground.corners, ground.pieces, boxes[:, 2], boxes[:, 5])
    return Shapes((solid,), hulls_of(corners), area * boxes[:, 5])


# Heights and widths of images: as declared, else those of their masks, which must all agree.


def image_sizes(
    frames: Frames, datums: Datums, drawn: tuple[Drawn, Drawn], codes: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return height and width of every datum, int64 [n_datums] each; 0 if unknown.

    Args:
        frames: the tables; ``datums`` may declare height and width.
        drawn: both sides' masks.
        codes: both sides' datum codes, int32 [n].

    Raises:
        InputError: masks of one datum differ in size, or from the declared size, or a datum whose
            shapes must be rasterised has no size.
    """
    height, width = declared_sizes(frames, datums).T.copy()
    sized = height > 0
    for side, of_rows in zip(drawn, codes, strict=True):
        masks, datum = side.masks, of_rows[side.rows]
        if not datum.size:
            continue
        fresh = ~sized[datum]
        height[datum[fresh]], width[datum[fresh]] = masks.height[fresh], masks.width[fresh]
        sized[datum] = True
        wrong = np.flatnonzero((masks.height != height[datum]) | (masks.width != width[datum]))
        if wrong.size:
            raise _different(side, wrong, datum, height, width)
    for side, of_rows in zip(drawn, codes, strict=True):
        rows = np.flatnonzero(side.objects.kind != MASK)  # to be drawn
        unknown = rows[~sized[of_rows[rows]]]
        if unknown.size:
            raise _unknown(side, unknown)
    return height, width


def _different(side: Drawn, wrong: Array, datum: Array, height: Array, width: Array) -> InputError:
    masks = side.masks
    first = [
        f"{side.objects.origin.describe(int(side.rows[i]))} is {masks.height[i]} x"
        f" {masks.width[i]}, its image {height[datum[i]]} x {width[datum[i]]}"
        for i in wrong[:N_EXAMPLES]
    ]
    return InputError(
        f"{side.objects.side.replace('_', ' ')}: {count_of(wrong.size, 'mask')} whose size (height"
        f" x width) is not that of the image, or of other masks on it, first (rows count from 0):"
        f" {'; '.join(first)}. Masks of a datum must have one size: bring them to it, or write"
        f" {option('convert_to', 'polygon')}.",
        code="sizes_differ",
        side=side.objects.side,
        count=wrong.size,
    )


def _unknown(side: Drawn, rows: Array) -> InputError:
    kinds = side.objects.kind[rows]
    what = [
        count_of(n, *WORDS[kind])
        for kind in (POLYGON, OBB, BOX)
        if (n := int((kinds == kind).sum()))
    ]
    first = [side.objects.origin.describe(row) for row in rows[:N_EXAMPLES].tolist()]
    return InputError(
        f"{side.objects.side.replace('_', ' ')}: {' and '.join(what)} to be rasterised on images"
        f" of unknown size, first (rows count from 0): {'; '.join(first)}. Give columns height and"
        f" width in {option('datums')}, or write {option('convert_to', 'polygon')} or"
        f" {option('iou_type', 'bbox')}.",
        code="image_size_missing",
        side=side.objects.side,
        count=rows.size,
    )


# Check that the rasters of one datum share a grid; otherwise their pixels are not comparable.


def check_same_grid(sides: tuple[Objects, Objects], codes: tuple[Array, Array]) -> None:
    """Check that the rasters of each datum are on the same pixel grid.

    Both sides are checked, against the first raster; ground truths come first. For images without
    georeference only the size counts, which is checked when masks are compared.

    Args:
        sides: predictions and ground truths.
        codes: datum codes of their rows, int32 [n] each.

    Raises:
        InputError: rasters of one datum differ in projection, place or resolution (the message has
            both grids and rows), or a file cannot be read.
    """
    first_grids: dict[int, tuple[Any, Objects, int]] = {}  # by datum: its first grid, whose and row
    differences: dict[tuple[Any, Any], str] = {}
    for objects, of_row in reversed(list(zip(sides, codes, strict=True))):
        rows = _filed(objects)
        if not rows.size:
            continue
        wrong: list[str] = []
        n = 0
        for row, grid in zip(rows.tolist(), _grids(objects, rows), strict=True):
            if not grid.placed:
                continue
            datum = int(of_row[row])
            first, other, first_row = first_grids.setdefault(datum, (grid, objects, row))
            if first is grid:
                continue
            if (first, grid) not in differences:
                differences[first, grid] = first.differs(grid)
            if differences[first, grid]:
                n += 1
                if n <= N_EXAMPLES:
                    wrong.append(
                        f"{objects.origin.describe(row)} is {grid.describe()}, row"
                        f" {other.origin.number(first_row)} of the"
                        f" {other.side.replace('_', ' ')} {first.describe()}"
                    )
        if n:
            raise InputError(
                f"{objects.side.replace('_', ' ')}: column 'raster': {count_of(n, 'raster')}"
                " whose pixels do not line up with those of another one of the same datum, first"
                f" (rows count from 0): {'; '.join(wrong)}. Write all rasters of a datum on one"
                " grid.",
                code="grids_differ",
                side=objects.side,
                column="raster",
                count=n,
            )


def _grids(objects: Objects, rows: Array) -> list[Any]:
    from ...geometry.rasters import grids

    paths = objects.paths(rows)
    return grids(
        paths, side=objects.side, rows=rows, origin=objects.origin, remote=objects.files.remote
    )


def _filed(objects: Objects) -> Array:
    """Rows that are read from raster files, int64 [k]."""
    if "raster" not in objects.frame.columns:
        return np.empty(0, np.int64)
    filed = objects.frame["raster"].is_not_null().to_numpy() & (objects.kind == MASK)
    if "mask" in objects.frame.columns:
        filed &= objects.frame["mask"].is_null().to_numpy()
    return np.flatnonzero(filed)


_SIDES = ("predictions", "ground_truths")
_EXTENT = ("box_width", "box_height")
_BY_BOX = "by box, not by mask, as in pycocotools; remove the boxes to change that"
_BY_BOX_OF_POINTS = _BY_BOX.replace("mask", "extent of the keypoints")
_PROBIOU = Note(
    "no_iou",
    "probiou is not an IoU, and for most pairs of boxes it is larger: numbers with it cannot be"
    " compared with those of IoU, such as DOTA's.",
    None,
)
_BY_REGION = (
    "by mask or polygon, not by the box around it, as in pycocotools; give boxes to change that"
)


def compared(
    frames: Frames,
    datums: Datums,
    labels: Labels,
    of_rows: tuple[tuple[Array, Array], tuple[Array, Array]],
    settings: Settings,
    threads: Workers,
) -> tuple[Shapes, Shapes] | None:
    """Return both sides as shapes; None if boxes are compared and area ranges use box areas.

    If boxes are compared, rows without one get the bounding box of their polygon or mask. Boxes
    become
    shapes if area ranges use the area of that polygon or mask, or if boxes include their last
    pixels.

    Args:
        frames: both sides, checked; boxes may be filled in.
        of_rows: both sides' datum codes, and their label codes, int32 [n].

    Raises:
        InputError: geometry that cannot be read or converted.
    """
    codes, label_codes = of_rows
    tables = frames.predictions, frames.ground_truths
    shaped = not {*SHAPED_NAMES}.isdisjoint([*tables[0].columns, *tables[1].columns])
    if settings.geometry in (None, "box") and not shaped:
        return _of_corners(frames, settings)
    ours_origin, theirs_origin = (
        _origin(frames, side, datums, of_row) for side, of_row in zip(_SIDES, codes, strict=True)
    )
    if settings.geometry == POINTS:
        points, people = as_keypoints(
            frames, labels, label_codes, (ours_origin, theirs_origin), settings
        )
        return _with_box_areas(points, frames, settings, _BY_BOX_OF_POINTS), people
    if settings.geometry == EVENTS:
        ours, theirs = (EventLayer.of(table, settings.collar) for table in tables)
        return ours, theirs
    if settings.geometry == SOLID:
        return as_solids(tables[0], settings), as_solids(tables[1], settings)
    target = choose(frames, settings)
    sides = [
        Objects(
            side,
            frame,
            read_as(frame, target),
            settings.invalid_polygons,
            settings.angle,
            frames.folders.get(side, RasterFiles()),
            threads.over,
            origin,
            frames.notes,
        )
        for side, frame, origin in zip(_SIDES, tables, (ours_origin, theirs_origin), strict=True)
    ]
    check_same_grid((sides[0], sides[1]), codes)
    if target == BOX:
        return _boxes(frames, (sides[0], sides[1]), settings)
    if target == OBB:
        if settings.iou_kind == PROBIOU:
            frames.notes.append(_PROBIOU)
        ours, theirs = (as_quads(objects, settings) for objects in sides)
        return ours, theirs
    if target == POLYGON:
        ours, theirs = (as_polygons(objects, settings) for objects in sides)
        return _with_box_areas(ours, frames, settings), theirs
    ours_drawn, theirs_drawn = (own_masks(objects) for objects in sides)
    height, width = image_sizes(frames, datums, (ours_drawn, theirs_drawn), codes)
    mine, other = (
        as_masks(drawn, height[datum], width[datum], settings, threads)
        for drawn, datum in zip((ours_drawn, theirs_drawn), codes, strict=True)
    )
    return _with_box_areas(mine, frames, settings), other


def _origin(frames: Frames, side: str, datums: Datums, codes: Array) -> Origin:
    """Return the row numbers of a side for error messages, relative to the whole input."""
    rows = frames.remaining.get(side)
    frame = getattr(frames, side)
    numbers = frame[ROW] if ROW in frame.columns else None

    def number(row: int) -> int:
        if numbers is not None:
            return int(numbers[row])
        return row if rows is None else rows.number(row)

    return Origin(number, lambda row: datums.id[int(codes[row])])


def _with_box_areas(
    shapes: Shapes, frames: Frames, settings: Settings, source: str = _BY_BOX
) -> Shapes:
    """Return the predictions with box areas if the dialect's area ranges use those.

    pycocotools' ``loadRes`` takes the area of results that have a bbox from it.
    """
    frame = frames.predictions
    if not settings.rules.box_areas or not {*CORNERS} <= {*frame.columns} or not frame.height:
        return shapes
    width, height = (
        pl.coalesce(extent, high - low) if {*_EXTENT} <= {*frame.columns} else high - low
        for extent, low, high in (
            (extent, pl.col(f"{axis}min"), pl.col(f"{axis}max"))
            for extent, axis in zip(_EXTENT, "xy", strict=True)
        )
    )
    area = frame.select((width * height).alias("area"))["area"]
    n = area.len() - area.null_count()
    if not n:
        return shapes
    frames.notes.append(
        note_of(
            "areas_of_boxes",
            n,
            ("row goes", "rows go", f"in area ranges {source}"),
            before="predictions: ",
        )
    )
    areas = np.where(area.is_null().to_numpy(), shapes.area, area.fill_null(0.0).to_numpy())
    return msgspec.structs.replace(shapes, given_area=areas)


def _boxes(
    frames: Frames, sides: tuple[Objects, Objects], settings: Settings
) -> tuple[Shapes, Shapes] | None:
    """Fill in the tables' boxes; return them as shapes if area ranges use the original geometry.

    pycocotools' ``loadRes`` takes the area of results without a bbox from their mask, and that of
    ground truths from their annotation; without annotated areas, both sides are treated alike.
    """
    regions: list[Array | None] = []
    for side, objects in zip(_SIDES, sides, strict=True):
        has_area = side == "ground_truths" and "area" in objects.frame.columns
        needed = settings.rules.region_areas and settings.ranged and not has_area
        areas = None
        if (objects.kind != BOX).any() or "xmin" not in objects.frame.columns:
            boxes, areas = boxes_of(objects, areas=needed)
            setattr(frames, side, _with_boxes(objects.frame, boxes))
        regions.append(areas)
    shapes = _of_corners(frames, settings)
    if shapes is not None or all(areas is None for areas in regions):
        return shapes
    for objects, areas in zip(sides, regions, strict=True):
        n = 0 if areas is None else int((~np.isnan(areas)).sum())
        if n:
            words = (
                "row without a box goes",
                "rows without a box go",
                f"in area ranges {_BY_REGION}",
            )
            before = f"{objects.side.replace('_', ' ')}: "
            frames.notes.append(note_of("areas_of_regions", n, words, before=before))
    ours, theirs = (
        _as_shapes(getattr(frames, side), areas, settings)
        for side, areas in zip(_SIDES, regions, strict=True)
    )
    return ours, theirs


def _of_corners(frames: Frames, settings: Settings) -> tuple[Shapes, Shapes] | None:
    """Return boxes as shapes if they include their last pixels or pairs across labels matter.

    None if matching computes their IoU.
    """
    pixel = float(settings.rules.whole_pixels)
    if not pixel and settings.rules.matching != "anew":
        return None
    if pixel:  # a box of one pixel is no empty one
        frames.notes = [note for note in frames.notes if note.kind != "zero_area_boxes"]
    shapes = []
    for side in _SIDES:
        corners = _corners(getattr(frames, side))
        extent = corners[:, 2:] - corners[:, :2] + pixel
        around = np.concatenate([corners[:, :2], corners[:, 2:] + pixel], axis=1)
        shapes.append(
            Shapes((BoxLayer(extent[:, 0] * extent[:, 1], corners, pixel=pixel),), around)
        )
    return shapes[0], shapes[1]


def _corners(frame: pl.DataFrame) -> Array:
    """xmin, ymin, xmax, ymax of all rows, float64 [n, 4]."""
    return np.stack([frame[name].to_numpy().astype(np.float64) for name in CORNERS], axis=1)


def _as_shapes(frame: pl.DataFrame, areas: Array | None, settings: Settings) -> Shapes:
    """Boxes as shapes, compared by the corners and areas that ``kernels.boxes`` makes of them."""
    corners = _corners(frame)
    extent = corners[:, 2:] - corners[:, :2]
    if {*_EXTENT} <= {*frame.columns}:
        extent = np.stack([frame[name].to_numpy().astype(np.float64) for name in _EXTENT], axis=1)
    boxes = corners
    if settings.rules.from_extent:
        boxes = np.concatenate([corners[:, :2], corners[:, :2] + extent], axis=1)
    box_area = extent[:, 0] * extent[:, 1]
    stated = None if areas is None else np.where(np.isnan(areas), box_area, areas)
    return Shapes((BoxLayer(box_area, boxes),), corners, stated)


def _with_boxes(frame: pl.DataFrame, boxes: Array) -> pl.DataFrame:
    """Return the table with a box in every row; annotated extents are kept."""
    columns = [pl.Series(name, boxes[:, i]) for i, name in enumerate(CORNERS)]
    if {*_EXTENT} <= {*frame.columns}:
        columns += [
            frame[name].fill_null(pl.Series(boxes[:, i + 2] - boxes[:, i]))
            for i, name in enumerate(_EXTENT)
        ]
    return frame.with_columns(columns)
