"""LabelMe: a JSON file an image, with shapes of points in pixels.

Its own code has the fields: https://github.com/wkentaro/labelme
"""

from __future__ import annotations

import base64
import binascii
import math
from collections import Counter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .format import IMAGES, Annotations, Format, Look, broken, image_ids, text_of
from .shape_rows import box_row, frame_of, mask_row, polygon_row, skipped_note

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


def _detect(look: Look) -> bool:
    return look.mostly(_is_file, ".json")


def _is_file(head: bytes) -> bool:
    # The image's own bytes may stand before its path.
    named = b'"imagePath"' in head or b'"imageData"' in head
    return head.lstrip().startswith(b"{") and b'"shapes"' in head and named


def _read(look: Look) -> Annotations:
    files = look.of(".json")
    ids = image_ids(look, files)
    rows: list[dict[str, Any]] = []
    datums = []
    skipped: Counter[str] = Counter()
    for file, datum in zip(files, ids, strict=True):
        try:
            found = msgspec.json.decode(text_of(file), type=_File)
        except (msgspec.DecodeError, RecursionError) as error:
            raise broken(
                file, None, f"no file of LabelMe ({error})",
                "Write it again, or move it away if it is of something else.",
            ) from None  # fmt: skip
        name = (found.imagePath or "").replace("\\", "/").rsplit("/", 1)[-1]
        datums.append((datum, name or None, found.imageWidth, found.imageHeight))
        for shape in found.shapes:
            made = _made(shape, found, file)
            if made is None:
                skipped[shape.shape_type] += 1
                continue
            group = None if shape.group_id is None else str(shape.group_id)
            rows.append(
                {"datum_id": datum, "label_value": shape.label, "score": shape.score, **made,
                 "group_id": group}
            )  # fmt: skip
    return Annotations(
        rows=frame_of(rows, {"group_id": pl.String}),
        datums=pl.DataFrame(
            datums,
            schema=IMAGES,
            orient="row",
        ),
        notes=skipped_note(skipped),
    )  # fmt: skip


def _made(shape: _Shape, found: _File, file: str) -> dict[str, Any] | None:
    """A shape's columns; None of a shape without an area."""
    points = [list(point) for point in shape.points]
    kind = shape.shape_type
    wanted = {"polygon": 3, "rectangle": 2, "circle": 2, "mask": 2}.get(kind)
    if wanted is None:
        return None
    if len(points) < wanted:
        raise broken(
            file, None, f"a {kind} {shape.label!r} of {len(points)} points", "Correct it, or take"
            " it out.",
        )  # fmt: skip
    if kind == "mask":
        return _mask(shape, found, file)
    if kind == "circle":
        (x, y), (other_x, other_y) = points[:2]
        radius = math.hypot(other_x - x, other_y - y)
        angles = np.arange(_SIDES) * (2 * math.pi / _SIDES)
        ring = np.stack([x + radius * np.cos(angles), y + radius * np.sin(angles)], axis=1)
        return polygon_row(ring.tolist())
    if kind == "rectangle":
        xs, ys = zip(*points, strict=True)
        return box_row(min(xs), min(ys), max(xs), max(ys))
    return polygon_row(points)


def _mask(shape: _Shape, found: _File, file: str) -> dict[str, Any]:
    from rasterio.io import MemoryFile

    from evalengine.geometry.silence import silenced

    if shape.mask is None or found.imageWidth is None or found.imageHeight is None:
        raise broken(
            file, None, f"a mask {shape.label!r} without its pixels or the image's size",
            "Write it again.",
        )  # fmt: skip
    try:
        data = base64.b64decode(shape.mask, validate=True)
        with silenced(), MemoryFile(data) as memory, memory.open(driver="PNG") as image:
            pixels = image.read(1) > 0
    except (binascii.Error, OSError, ValueError):
        raise broken(
            file, None, f"a mask {shape.label!r} that is not a PNG", "Write it again."
        ) from None
    left, top = (round(min(values)) for values in zip(*shape.points, strict=True))
    return mask_row(pixels, max(left, 0), max(top, 0), found.imageWidth, found.imageHeight)


LABELME = Format("labelme", (".json",), _detect, _read)
