"""Masks in place of boxes: those that rows have, and polygons as pixels."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...geometry.masks import Masks, concat, intersections, read_masks, refuse_sizes
from ...geometry.places import Place
from ...geometry.polygons import rasterise, read_polygons
from ...ingest.problems import count_of
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ..encoding import taken
from ..workers import Workers

SHAPES = ("mask", "polygon")
"""Columns that masks are made of."""


def read(frame: pl.DataFrame, role: str, sizes: Array, workers: Workers) -> Masks:
    """Read the masks of all rows, and remove their columns.

    Args:
        role: name of the side.
        sizes: int64 [n, 2], image height and width of each row's sequence, 0 if the table of datums
            does not contain them; used for rasterising polygons.

    Raises:
        InputError: rows with neither mask nor polygon, masks that cannot be read, and polygons on
            images of unknown size.
    """
    rest = np.arange(frame.height)
    parts: list[Masks] = []
    rows: list[Array] = []
    for name in SHAPES:
        if name not in frame.columns:
            continue
        column = taken(frame, name)
        own = rest[column.is_not_null().to_numpy()[rest]]
        rest = np.setdiff1d(rest, own, assume_unique=True)
        some = column.gather(own)
        if name == "mask":
            parts.append(read_masks(some, side=role, over=workers.over, rows=own))
        else:
            polygons = read_polygons(some, side=role, rows=own)
            parts.append(rasterise(polygons, sizes[own, 0], sizes[own, 1], workers.over))
        rows.append(own)
    if rest.size:
        raise InputError(
            f"{role.replace('_', ' ')}: {count_of(rest.size, 'row')} without a mask or a polygon,"
            f" first row {rest[0]:,} (counted from 0). Give each row one, or compare boxes.",
            code="geometry_missing",
            side=role,
            count=rest.size,
            rows=rest[:1].tolist(),
        )
    order = np.concatenate([np.zeros(0, np.int64), *rows])
    return concat(parts).take(np.argsort(order))


def shared(found: Masks, truth: Masks, row: Array, other: Array, workers: Workers) -> Array:
    """Return shared pixels of pairs of predictions and ground truths, int64 [k].

    Args:
        row: int [k], the prediction of each pair.
        other: int [k], its ground truth.

    Raises:
        InputError: masks of one frame that differ in size.
    """
    places = Place("predictions", "mask"), Place("ground_truths", "mask")
    refuse_sizes(found, truth, row, other, a_place=places[0], b_place=places[1])
    return intersections(found, truth, row, other, workers.over)
