"""LabelMe: one JSON file per image, with shapes of points in pixels.

Shapes with the same label and ``group_id`` are one object, as in LabelMe's converters, whose code
defines the fields: https://github.com/wkentaro/labelme
"""

from __future__ import annotations

import base64
import binascii
import io
import math
from collections import Counter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..files import Source
from ..problems import Note, count_of
from .format import (
    IMAGES,
    PIXELS,
    Format,
    Look,
    broken,
    corners_of,
    frame_of,
    image_ids,
    json_of,
    mask_row,
    plain,
    polygon_row,
    skipped_note,
)

_SHAPES = b'"shapes"'
_BLOCK = 1 << 20
_PARTS = pl.List(pl.List(pl.Float64()))
_SIDES = 64  # of the polygon that a circle becomes


class _Shape(msgspec.Struct):
    label: str
    points: list[tuple[float, float]]
    shape_type: str = "polygon"
    group_id: int | str | None = None
    score: float | None = None
    mask: str | None = None


class _File(msgspec.Struct):
    shapes: list[_Shape]
    imagePath: str | None = None
    imageHeight: int | None = None
    imageWidth: int | None = None


def _is_file(name: str, head: bytes) -> bool:
    """Check for shapes and an image; the image's own bytes may be before the shapes."""
    data = b'"imageData"' in head
    if not head.lstrip().startswith(b"{") or not (data or b'"imagePath"' in head):
        return False
    if _SHAPES in head:
        return True
    if not data:
        return False
    with plain(name) as opened:
        rest = b""
        while block := opened.read(_BLOCK):
            if _SHAPES in rest + block:
                return True
            rest = block[-len(_SHAPES) :]
    return False


def _read(look: Look) -> Source:
    files = look.of(".json")
    ids = image_ids(look, files)
    rows: list[dict[str, Any]] = []
    datums = []
    skipped: Counter[str] = Counter()
    several: list[list[dict[str, Any]]] = []
    for file, datum in zip(files, ids, strict=True):
        content: _File = json_of(
            file,
            _File,
            "no file of LabelMe",
            "Write it again, or move it away if it is of something else.",
        )
        name = (content.imagePath or "").replace("\\", "/").rsplit("/", 1)[-1]
        datums.append((datum, name or None, content.imageWidth, content.imageHeight))
        groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for shape in content.shapes:
            geometry = _read_shape(shape, content, file)
            if geometry is None:
                skipped[shape.shape_type] += 1
                continue
            group = None if shape.group_id is None else str(shape.group_id)
            row = {
                "datum_id": datum,
                "label_value": shape.label,
                "score": shape.score,
                **geometry,
                "group_id": group,
            }
            rows.append(row)
            if group is not None:
                groups.setdefault((shape.label, group), []).append(row)
        several += [members for members in groups.values() if len(members) > 1]
    rows, joined = _joined(rows, several)
    frame = frame_of(rows, {"group_id": pl.String})
    if joined and "polygon" in frame.columns:  # flat rings are parts, not holes
        flat = [
            None if rings is None else [[n for point in ring for n in point] for ring in rings]
            for rings in frame["polygon"].to_list()
        ]
        frame = frame.with_columns(polygon=pl.Series(flat, dtype=_PARTS))
    return Source(
        frame.lazy(),
        datums=pl.DataFrame(datums, schema=IMAGES, orient="row"),
        notes=(*skipped_note(skipped), *joined),
    )


def _joined(
    rows: list[dict[str, Any]], several: list[list[dict[str, Any]]]
) -> tuple[list[dict[str, Any]], tuple[Note, ...]]:
    """Merge grouped shapes to one row per object; return a note on their number.

    Groups that mix masks with other shapes stay separate, with a note.
    """
    dropped: set[int] = set()
    mixed = shapes = 0
    shaped = any("polygon" in row for row in rows)
    for members in several:
        masks = [row["mask"] for row in members if "mask" in row]
        if masks and len(masks) < len(members):
            mixed += 1
            continue
        shapes += len(members)
        first, *others = members
        if masks:
            size = masks[0]["size"]
            pixels = np.zeros(size[0] * size[1], bool)
            for one in masks:
                pixels |= np.repeat(np.arange(len(one["counts"])) % 2 == 1, one["counts"])
            first |= mask_row(pixels.reshape(size[::-1]).T, 0, 0, size[1], size[0])
        elif shaped:
            first["polygon"] = [
                ring for row in members for ring in row.get("polygon", [corners_of(row)])
            ]
        reductions = {"xmin": min, "ymin": min, "xmax": max, "ymax": max}
        first |= {name: end(row[name] for row in members) for name, end in reductions.items()}
        scores = [row["score"] for row in members if row["score"] is not None]
        first["score"] = max(scores, default=None)
        dropped |= {id(row) for row in others}
    notes: tuple[Note, ...] = ()
    if shapes:
        many = count_of(len(several) - mixed, "object")
        message = (
            f"{shapes:,} shapes are {many}: those of one label and group_id are one, as in LabelMe."
        )
        notes = (Note("shapes_joined", message, shapes),)
    if mixed:
        message = (
            f"{count_of(mixed, 'group')} of masks and other shapes stay several objects. Make "
            "all shapes of a group polygons, or all masks."
        )
        notes += (Note("groups_not_joined", message, mixed),)
    return [row for row in rows if id(row) not in dropped], notes


def _read_shape(shape: _Shape, content: _File, file: str) -> dict[str, Any] | None:
    """Return a shape's columns; None for a shape without an area."""
    points = [list(point) for point in shape.points]
    kind = shape.shape_type
    n_points = {"polygon": 3, "rectangle": 2, "circle": 2, "mask": 2}.get(kind)
    if n_points is None:
        return None
    if len(points) < n_points:
        raise broken(
            file,
            None,
            f"a {kind} {shape.label!r} of {len(points)} points",
            "Correct it, or take it out.",
        )
    if kind == "mask":
        return _mask(shape, content, file)
    if kind == "circle":
        (x, y), (other_x, other_y) = points[:2]
        radius = math.hypot(other_x - x, other_y - y)
        angles = np.arange(_SIDES) * (2 * math.pi / _SIDES)
        ring = np.stack([x + radius * np.cos(angles), y + radius * np.sin(angles)], axis=1)
        return polygon_row(ring.tolist())
    if kind == "rectangle":
        return {name: one for name, one in polygon_row(points).items() if name != "polygon"}
    return polygon_row(points)


def _mask(shape: _Shape, content: _File, file: str) -> dict[str, Any]:
    from rasterio.io import MemoryFile

    from evalengine.geometry.rasters import png_damage, silenced

    if shape.mask is None or content.imageWidth is None or content.imageHeight is None:
        raise broken(
            file,
            None,
            f"a mask {shape.label!r} without its pixels or the image's size",
            "Write it again.",
        )
    try:
        data = base64.b64decode(shape.mask, validate=True)
        with silenced(), MemoryFile(data) as memory, memory.open(driver="PNG") as image:
            if png_damage(io.BytesIO(data)) or image.width * image.height > PIXELS:
                raise ValueError
            pixels = image.read(1) > 0
    except (binascii.Error, OSError, ValueError):
        raise broken(
            file, None, f"a mask {shape.label!r} that is not a PNG", "Write it again."
        ) from None
    left, top = (round(min(values)) for values in zip(*shape.points, strict=True))
    return mask_row(pixels, left, top, content.imageWidth, content.imageHeight)


LABELME = Format("labelme", (".json",), _read, detects=lambda look: look.mostly(_is_file, ".json"))
