"""Rows of objects that are boxes, polygons or masks, as one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ..boxes import CORNER_NAMES
from .format import RINGS, Note

PIXELS = 1 << 29
"""Pixels of one mask at most."""
Point = list[float]

_MASK = pl.Struct({"size": pl.List(pl.Int64()), "counts": pl.List(pl.Int64())})


def box_row(xmin: float, ymin: float, xmax: float, ymax: float) -> dict[str, Any]:
    """Make a box from two corners in any order."""
    return {
        "xmin": min(xmin, xmax),
        "ymin": min(ymin, ymax),
        "xmax": max(xmin, xmax),
        "ymax": max(ymin, ymax),
    }


def polygon_row(ring: list[Point]) -> dict[str, Any]:
    """A polygon of one ring of three points or more, and the box around it."""
    xs, ys = zip(*ring, strict=True)
    return {**box_row(min(xs), min(ys), max(xs), max(ys)), "polygon": [ring]}


def turned_row(centre: Point, width: float, height: float, degrees: float) -> dict[str, Any]:
    """A box turned clockwise about its centre, as a polygon."""
    angle = np.deg2rad(degrees)
    cos, sin = float(np.cos(angle)), float(np.sin(angle))
    x, y = centre
    return polygon_row(
        [
            [x + cos * dx - sin * dy, y + sin * dx + cos * dy]
            for dx, dy in (
                (-width / 2, -height / 2),
                (width / 2, -height / 2),
                (width / 2, height / 2),
                (-width / 2, height / 2),
            )
        ]
    )


def mask_row(pixels: Array, left: int, top: int, width: int, height: int) -> dict[str, Any]:
    """Make a mask from part of an image, and the box around its pixels.

    Args:
        pixels: bool [h, w], of the part.
    """
    columns, rows = np.nonzero(pixels.T)  # runs go down the columns
    columns, rows = columns + left, rows + top
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    columns, rows = columns[inside], rows[inside]
    if not rows.size:
        return {**box_row(0.0, 0.0, 0.0, 0.0), "mask": {"size": [height, width],
                "counts": [height * width]}}  # fmt: skip
    at = columns * height + rows
    last = np.flatnonzero(np.diff(at, append=-2) != 1)
    ends = at[last] + 1
    first = at[np.concatenate([[0], last[:-1] + 1])]
    counts = np.diff(np.stack([first, ends], axis=1).reshape(-1), prepend=0).tolist()
    if ends[-1] < height * width:
        counts.append(height * width - int(ends[-1]))
    box = box_row(float(columns.min()), float(rows.min()), float(columns.max() + 1),
                  float(rows.max() + 1))  # fmt: skip
    return {**box, "mask": {"size": [height, width], "counts": counts}}


def frame_of(rows: list[dict[str, Any]], more: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Build a table of rows without columns that no row has.

    If some objects are polygons, boxes become polygons of four corners, so that all have a shape.

    Args:
        rows: with ``datum_id``, ``label_value``, corners, and ``polygon`` or ``mask``.
    """
    if any("polygon" in row for row in rows):
        for row in rows:
            if "polygon" not in row and "mask" not in row:
                low, high = (row["xmin"], row["ymin"]), (row["xmax"], row["ymax"])
                ring = [[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]]
                row["polygon"] = [ring]
    schema: dict[str, Any] = {"datum_id": pl.String, "label_value": pl.String, "score": pl.Float64}
    schema |= dict.fromkeys(CORNER_NAMES, pl.Float64) | {"polygon": RINGS, "mask": _MASK}
    schema |= more or {}
    frame = pl.DataFrame(rows, schema=schema)
    kept = ("datum_id", "label_value", *CORNER_NAMES)
    return frame.drop(
        [
            name
            for name in frame.columns
            if name not in kept and frame[name].null_count() == frame.height
        ]
    )


def skipped_note(skipped: Counter[str]) -> tuple[Note, ...]:
    """Return a note on skipped objects that are neither boxes nor areas; empty if there are
    none.
    """
    if not skipped:
        return ()
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in skipped.most_common())
    said = f"objects that are neither boxes nor areas are left out: {kinds}."
    return (("objects_left_out", said, skipped.total()),)
