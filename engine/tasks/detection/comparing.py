"""From checked tables to what is compared: boxes as they stand, or polygons, or masks."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.places import Origin
from ...geometry.raster_files import RasterFiles
from ...inputs.frames import Frames
from ...inputs.problems import Note, count_of
from ...tally.datums import Datums
from ..workers import Workers
from .alignment import refuse_apart
from .geometry import BOX, POLYGON, choose, read_as
from .settings import Settings
from .shapes import CORNERS, Objects, Shapes, as_masks, as_polygons, boxes_of, own_masks
from .sizes import image_sizes

Array = np.ndarray[Any, Any]
_SIDES = ("predictions", "ground_truths")
_SHAPED = {"polygon", "mask", "raster"}


def compared(
    frames: Frames,
    datums: Datums,
    codes: tuple[Array, Array],
    settings: Settings,
    threads: Workers,
) -> tuple[Shapes, Shapes] | None:
    """Both sides' polygons or masks; None where boxes are compared.

    Where boxes are compared, rows without one get the bounding box of their polygon or mask.

    Args:
        frames: both sides, checked; their boxes may be filled in here.
        datums: the datums.
        codes: both sides' datum codes, int32 [n].
        settings: what was asked for.
        threads: where the work runs.

    Raises:
        InputError: geometry that cannot be read, or not be brought to what is compared.
    """
    tables = [getattr(frames, side) for side in _SIDES]
    if settings.geometry in (None, "box") and not any(_SHAPED & {*t.columns} for t in tables):
        return None
    target = choose(frames, settings)
    sides = [
        Objects(
            side,
            frame,
            read_as(frame, target),
            settings.invalid_polygons,
            frames.folders.get(side, RasterFiles()),
            threads.over,
            _origin(frames, side, datums, of_row),
            frames.notes,
        )
        for side, frame, of_row in zip(_SIDES, tables, codes, strict=True)
    ]
    refuse_apart((sides[0], sides[1]), codes)
    if target == BOX:
        for side, objects in zip(_SIDES, sides, strict=True):
            if (objects.kind != BOX).any() or "xmin" not in objects.frame.columns:
                setattr(frames, side, _with_boxes(objects))
        return None
    if target == POLYGON:
        ours, theirs = (as_polygons(objects, settings) for objects in sides)
        return _told(ours, frames, settings), theirs
    ours_drawn, theirs_drawn = (own_masks(objects) for objects in sides)
    height, width = image_sizes(frames, datums, (ours_drawn, theirs_drawn), codes)
    mine, other = (
        as_masks(drawn, height[datum], width[datum], settings, threads)
        for drawn, datum in zip((ours_drawn, theirs_drawn), codes, strict=True)
    )
    return _told(mine, frames, settings), other


def _origin(frames: Frames, side: str, datums: Datums, codes: Array) -> Origin:
    """What errors call a side's rows."""
    kept = frames.kept.get(side)

    def number(row: int) -> int:
        return row if kept is None else kept.number(row)

    return Origin(number, lambda row: datums.id[int(codes[row])])


def _told(shapes: Shapes, frames: Frames, settings: Settings) -> Shapes:
    """The predictions with the areas of their boxes, where the dialect's area ranges go by those.

    pycocotools' ``loadRes`` takes the area of results that have a bbox from that.
    """
    frame = frames.predictions
    if not settings.rules.box_areas or not {*CORNERS} <= {*frame.columns} or not frame.height:
        return shapes
    width, height = (
        pl.coalesce("box_width" if axis == "x" else "box_height", far - near)
        if {"box_width", "box_height"} <= {*frame.columns}
        else far - near
        for axis, near, far in (
            (axis, pl.col(f"{axis}min"), pl.col(f"{axis}max")) for axis in ("x", "y")
        )
    )
    area = frame.select((width * height).alias("area"))["area"]
    n = area.len() - area.null_count()
    if not n:
        return shapes
    frames.notes.append(
        Note(
            "areas_of_boxes",
            f"predictions: area ranges go by the boxes of {count_of(n, 'row')}, not by their masks,"
            " as in pycocotools; leave the boxes out to change that.",
            n,
        )
    )
    told = np.where(area.is_null().to_numpy(), shapes.area, area.fill_null(0.0).to_numpy())
    return msgspec.structs.replace(shapes, told_area=told)


def _with_boxes(objects: Objects) -> pl.DataFrame:
    """The table with a box in every row; an extent as annotated stays where there was one."""
    frame, boxes = objects.frame, boxes_of(objects)
    columns = [pl.Series(name, boxes[:, i]) for i, name in enumerate(CORNERS)]
    if {"box_width", "box_height"} <= {*frame.columns}:
        columns += [
            frame[name].fill_null(pl.Series(boxes[:, i + 2] - boxes[:, i]))
            for i, name in enumerate(("box_width", "box_height"))
        ]
    return frame.with_columns(columns)
