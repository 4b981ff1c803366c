"""Pascal VOC: one XML file per image, as LabelImg and many exporters write it.

Corners are returned as written. Those of VOC are 1-based pixels, the last one included. Exporters
that write edges are recognised by corners below 1 or decimals. Layout:
http://host.robots.ox.ac.uk/pascal/VOC
"""

from __future__ import annotations

import os
from typing import Any
from xml.etree.ElementTree import Element

import polars as pl

from ..files import Source
from ..geometry import CORNER_NAMES
from ..problems import Note, count_of
from .format import (
    IMAGES,
    OBJECTS,
    RINGS,
    Format,
    Look,
    broken,
    image_ids,
    number_of,
    read_tree,
    text_in,
    whole,
    without_empty,
)

_UNKNOWN = "Unspecified"
_MISTAKES = 0.001  # share of corners that are no pixels though the others are
_FLAGS = ("difficult", "truncated", "occluded")
_WORDS = {"true": 1, "false": 0}
"""Flags as Python writes them."""
_SCORES = ("score", "confidence")


def _read(look: Look) -> Source:
    files = look.of(".xml")
    ids = image_ids(look, files, below="Annotations")
    rows: list[dict[str, Any]] = []
    datums: list[dict[str, Any]] = []
    decimal = 0
    for file, datum in zip(files, ids, strict=True):
        tree = read_tree(file, "annotation")
        datums.append({"datum_id": datum, "file_name": text_in(tree, "filename")})
        for name in ("width", "height"):
            if text := text_in(tree, f"size/{name}"):  # 0 means unknown
                datums[-1][name] = whole(text, f"<{name}>", file) or None
        for one in tree.iter("object"):
            rows.append({"datum_id": datum, **_object(one, file)})
            box = one.find("bndbox")
            decimal += box is not None and any("." in (text_in(box, n) or "") for n in CORNER_NAMES)
    extra_dtypes = dict.fromkeys(_FLAGS, pl.Int64) | {"pose": pl.String}
    frame = pl.DataFrame(rows, schema=OBJECTS | {"polygon": RINGS} | extra_dtypes)
    frame = without_empty(frame, ("score", "polygon", *extra_dtypes))
    edges = _edges(frame, decimal)
    return Source(
        frame.lazy(),
        datums=pl.DataFrame(datums, schema=IMAGES),
        notes=(*edges, *_note_of_masks(look)),
        pixels="" if edges or not frame.height else "yes",
    )


def _edges(frame: pl.DataFrame, decimal: int) -> tuple[Note, ...]:
    """Return a note that corners are edges, with the evidence; empty if they may be 1-based pixels.

    Args:
        decimal: number of boxes with a decimal corner, which pixels have only by mistake.
    """
    low = int((frame.select(pl.min_horizontal("xmin", "ymin") < 1)).to_series().sum())
    if low <= _MISTAKES * frame.height and 2 * decimal <= frame.height:
        return ()
    why = f"{low:,} begin below 1" if low else f"{decimal:,} have decimals"
    message = (
        f"corners are read as edges, not as pixels that count from 1: {why}, of"
        f" {count_of(frame.height, 'box', 'boxes')}."
    )
    return (Note("corners_are_edges", message, low or decimal),)


def _note_of_masks(look: Look) -> tuple[Note, ...]:
    """Return a note on label maps in the same folder, as in the original data set."""
    maps = [name for name in look.of(".png") if _MAPS in look.relative(name).split("/")[:-1]]
    if not maps:
        return ()
    message = (
        f"of {look.given} the boxes are read; the {len(maps):,} label maps of {_MAPS} are read "
        f"if that folder is given: {os.path.dirname(maps[0])}, next to a folder of predicted "
        "ones."
    )
    return (Note("label_maps_beside", message, len(maps)),)


_MAPS = "SegmentationClass"


def _object(one: Element, file: str) -> dict[str, Any]:
    name = text_in(one, "name")
    if not name:
        raise broken(file, None, "an object without a name", "Give it one, or take it out.")
    row: dict[str, Any] = {"label_value": name}
    for tag in _SCORES:
        value = number_of(one, tag, file)
        if value is not None:
            row["score"] = value
    for tag in _FLAGS:
        text = text_in(one, tag)
        if text is not None and text != _UNKNOWN:
            row[tag] = _WORDS.get(text.casefold())
            if row[tag] is None:
                row[tag] = whole(text, f"<{tag}>", file)
    pose = text_in(one, "pose")
    if pose and pose != _UNKNOWN:
        row["pose"] = pose
    ring = _ring(one, file)
    if ring:
        row["polygon"] = [ring]
    row |= _box(one, name, file, ring)
    return row


def _box(one: Element, name: str, file: str, ring: list[list[float]]) -> dict[str, float]:
    box = one.find("bndbox")
    corners = {} if box is None else {tag: number_of(box, tag, file) for tag in CORNER_NAMES}
    missing = [tag for tag in CORNER_NAMES if corners.get(tag) is None]
    if missing and ring:
        xs, ys = zip(*ring, strict=True)
        return dict(zip(CORNER_NAMES, (min(xs), min(ys), max(xs), max(ys)), strict=True))
    if missing:
        raise broken(
            file,
            None,
            f"object {name!r} has no {missing[0]} in a bndbox",
            "Write xmin, ymin, xmax and ymax.",
        )
    return {tag: value for tag, value in corners.items() if value is not None}


def _ring(one: Element, file: str) -> list[list[float]]:
    """The points x1, y1, x2, ... or pt of a polygon that some tools add; empty without."""
    polygon = one.find("polygon")
    if polygon is None:
        return []
    points = [[number_of(pt, "x", file), number_of(pt, "y", file)] for pt in polygon.iter("pt")]
    n = 1
    while polygon.find(f"x{n}") is not None:
        points.append([number_of(polygon, f"{axis}{n}", file) for axis in "xy"])
        n += 1
    ring = [[x, y] for x, y in points if x is not None and y is not None]
    if len(ring) < 3 or len(ring) < len(points):
        raise broken(
            file, None, "a polygon of fewer than three points", "Correct it, or take it out."
        )
    return ring


VOC = Format(
    "voc", (".xml",), _read, lambda head: b"<annotation>" in head or b"<annotation " in head
)
