"""Rows of objects that are boxes, polygons or masks, as one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from ..boxes import CORNER_NAMES
from .format import RINGS, Note

Array = np.ndarray[Any, Any]
Point = list[float]

_MASK = pl.Struct({"size": pl.List(pl.Int64()), "counts": pl.List(pl.Int64())})


def box_row(xmin: float, ymin: float, xmax: float, ymax: float) -> dict[str, Any]:
    """A box whose corners may stand in any order."""
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
    """A mask of part of an image, and the box around its pixels.

    Args:
        pixels: bool [h, w], of the part.
        left: column of the image in which the part begins.
        top: row, alike.
        width: of the image.
        height: of the image.
    """
    whole = np.zeros((height, width), bool)
    part = pixels[: max(height - top, 0), : max(width - left, 0)]
    whole[top : top + part.shape[0], left : left + part.shape[1]] = part
    flat = whole.T.reshape(-1)  # runs go down the columns
    changes = np.flatnonzero(np.diff(np.concatenate([[False], flat])))
    counts = np.diff(np.concatenate([[0], changes, [flat.size]])).tolist()
    rows, columns = np.flatnonzero(whole.any(axis=1)), np.flatnonzero(whole.any(axis=0))
    box = (
        box_row(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))
        if rows.size
        else box_row(0.0, 0.0, 0.0, 0.0)
    )
    return {**box, "mask": {"size": [height, width], "counts": counts}}


def frame_of(rows: list[dict[str, Any]], more: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Rows as one table; columns that no row has are left out.

    Where some objects are polygons, boxes become polygons of four corners, so that all have a
    shape.

    Args:
        rows: with ``datum_id``, ``label_value``, corners, and ``polygon`` or ``mask``.
        more: dtypes of other columns.
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
    """A note of objects that are neither boxes nor areas; nothing without any."""
    if not skipped:
        return ()
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in skipped.most_common())
    said = f"objects that are neither boxes nor areas are left out: {kinds}."
    return (("objects_left_out", said, skipped.total()),)
