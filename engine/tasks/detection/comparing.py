"""From checked tables to what is compared: boxes as they stand, or polygons, or masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...inputs.frames import Frames
from ...tally.datums import Datums
from ..workers import Workers
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
        Objects(side, frame, read_as(frame, target), settings.invalid_polygons, threads.over)
        for side, frame in zip(_SIDES, tables, strict=True)
    ]
    if target == BOX:
        for side, objects in zip(_SIDES, sides, strict=True):
            if (objects.kind != BOX).any() or "xmin" not in objects.frame.columns:
                setattr(frames, side, _with_boxes(objects))
        return None
    if target == POLYGON:
        ours, theirs = (as_polygons(objects, settings) for objects in sides)
        return ours, theirs
    ours_drawn, theirs_drawn = (own_masks(objects) for objects in sides)
    height, width = image_sizes(frames, datums, (ours_drawn, theirs_drawn), codes)
    mine, other = (
        as_masks(drawn, height[datum], width[datum], settings, threads)
        for drawn, datum in zip((ours_drawn, theirs_drawn), codes, strict=True)
    )
    return mine, other


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
