"""CVAT's XML 1.1, of images and of videos.

Elements as in https://docs.cvat.ai/docs/manual/advanced/xml_format/. Frames of a track between two
listed ones are interpolated linearly, as CVAT does with boxes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import polars as pl

from ..files import Room, Source
from ..geometry import CORNER_NAMES
from .format import (
    IMAGES,
    PIXELS,
    Format,
    Look,
    box_row,
    broken,
    frame_of,
    image_ids,
    mask_row,
    number,
    polygon_row,
    read_tree,
    skipped_note,
    stems_or_paths,
    turned_row,
    whole,
)

_MARKS = (b"<image ", b"<track ", b"<meta>")
_SHAPES = ("box", "polygon", "mask")
_OTHERS = ("polyline", "points", "cuboid", "skeleton", "ellipse", "tag")
_SCORES = ("score", "confidence")
_TAKEN = (
    *("datum_id", "label_value", "xmin", "ymin", "xmax", "ymax", "polygon", "mask", "track_id"),
    *("label_key", "score", "occluded", "iscrowd", "ignore", "area", "annotation_id"),
)
"""Reserved columns: an attribute of such a name becomes e.g. ``attribute_area``."""


_OF = "\0"  # between a video's file and a frame; XML cannot have it


def _read(look: Look) -> Source:
    rows: list[dict[str, Any]] = []
    datums: dict[str, dict[str, Any]] = {}
    skipped: Counter[str] = Counter()
    videos = []
    for file in look.of(".xml"):
        tree = read_tree(file, "annotations")
        for image in tree.iter("image"):
            _images(image, file, rows, datums, skipped)
        if tree.find("track") is not None:
            videos.append(file)
            _video(tree, file, rows, datums, skipped, look.room)
    # Every video has a first frame: with several, the file name is added.
    several = [f"{stem}_" for stem in image_ids(look, (*videos,))] if len(videos) > 1 else [""]
    clips = {"": ""} | dict(zip(videos, several, strict=False))
    parts = [name.rpartition(_OF) for name in datums]
    names = [clips[file] + frame for file, _, frame in parts]
    ids = dict(zip(datums, stems_or_paths(names), strict=True))
    for row in rows:
        row["datum_id"] = ids[row["datum_id"]]
    attributes = sorted({name for row in rows for name in row.get("attributes", {})})
    columns = {name: f"attribute_{name}" if name in _TAKEN else name for name in attributes}
    for row in rows:
        values = row.pop("attributes", {})
        row |= {column: values.get(name) for name, column in columns.items()}
    extra = [*columns.values()]
    extra_dtypes = dict.fromkeys(("occluded", "track_id"), pl.Int64) | dict.fromkeys(
        extra, pl.String
    )
    return Source(
        frame_of(rows, extra_dtypes).lazy(),
        datums=pl.DataFrame(
            [{"datum_id": ids[name], **size} for name, size in datums.items()],
            schema=IMAGES | {"subset": pl.String},
        ),
        notes=skipped_note(skipped),
    )


def _images(
    image: Element,
    file: str,
    rows: list[dict[str, Any]],
    datums: dict[str, dict[str, Any]],
    skipped: Counter[str],
) -> None:
    name = image.get("name", "").replace("\\", "/")
    if not name or name in datums:
        raise broken(
            file,
            None,
            f"two images {name!r}" if name else "an image without a name",
            "Image names must be unique: correct it.",
        )
    size = {side: _whole(image, side, file) for side in ("width", "height")}
    datums[name] = {"file_name": name, **size, "subset": image.get("subset")}
    for shape in image:
        if shape.tag in _SHAPES:
            rows.append({"datum_id": name, **_row(shape, shape.get("label"), size, file)})
        elif shape.tag in _OTHERS:
            skipped[shape.tag] += 1


def _video(
    tree: Element,
    file: str,
    rows: list[dict[str, Any]],
    datums: dict[str, dict[str, Any]],
    skipped: Counter[str],
    room: Room | None,
) -> None:
    """The shapes of all tracks, frame by frame."""
    size: dict[str, int | None] = {"width": None, "height": None}
    for name in size:
        element = tree.find(f".//original_size/{name}")
        if element is not None and element.text:
            size[name] = whole(element.text, f"<{name}>", file)
    size_of_task = tree.findtext(".//task/size")
    frames = whole(size_of_task, "<size>", file) if size_of_task else 0
    _refuse_long(tree, frames, file, room)
    for frame in range(frames):
        datums.setdefault(_frame(file, frame), {"file_name": None, **size, "subset": None})
    for track in tree.iter("track"):
        label, text = track.get("label"), track.get("id")
        listed = sorted(
            ((_whole(shape, "frame", file) or 0, shape) for shape in track if shape.tag in _SHAPES),
            key=lambda one: one[0],
        )
        skipped.update(shape.tag for shape in track if shape.tag in _OTHERS)
        for frame, row in _frames(listed, label, size, file):
            datums.setdefault(_frame(file, frame), {"file_name": None, **size, "subset": None})
            track_id = None if text is None else whole(text, "track id", file)
            rows.append({"datum_id": _frame(file, frame), **row, "track_id": track_id})


_ROW = 1000  # bytes that a frame, or a shape in it, takes while it is read
_MOST = 5_000_000
"""Frames and shapes in them of one file at most: six hours of video with ten objects in view."""


def _refuse_long(tree: Element, frames: int, file: str, room: Room | None) -> None:
    """Refuse short files that expand to more frames than fit into memory."""
    for track in tree.iter("track"):
        listed = [_whole(shape, "frame", file) or 0 for shape in track if shape.tag in _SHAPES]
        frames += 1 + max(listed) - min(listed) if listed else 0
    what = "cut the video into parts"
    if frames > _MOST:
        raise broken(
            file,
            None,
            f"{frames:,} frames and objects in them, and {_MOST:,} are the most",
            f"{what[0].upper()}{what[1:]}.",
        )
    if room is not None:
        room.refuse(frames * _ROW, file, f"has {frames:,} frames and objects in them", what)


def _frame(file: str, number_: int) -> str:
    return f"{file}{_OF}frame_{number_:06d}"


def _frames(
    listed: list[tuple[int, Element]], label: str | None, size: dict[str, int | None], file: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the positions of a tracked object, on listed frames and interpolated between them."""
    for i, (frame, shape) in enumerate(listed):
        if shape.get("outside") == "1":
            continue
        row = _row(shape, label, size, file)
        yield frame, row
        if i + 1 == len(listed):
            continue
        last, following = listed[i + 1]
        between = range(frame + 1, last)
        if not between:
            continue
        moving = following.get("outside") != "1" and shape.tag == following.tag == "box"
        later = _row(following, label, size, file) if moving else row
        for at in between:
            share = (at - frame) / (last - frame)
            corners = {n: row[n] + share * (later[n] - row[n]) for n in CORNER_NAMES}
            yield at, {**row, **corners} if "polygon" not in row else dict(row)


def _row(
    shape: Element, label: str | None, size: dict[str, int | None], file: str
) -> dict[str, Any]:
    if not label:
        raise broken(file, None, f"a <{shape.tag}> without a label", "Give it one.")
    occluded = shape.get("occluded")
    row: dict[str, Any] = {"label_value": label}
    if occluded is not None:
        row["occluded"] = whole(occluded, "attribute 'occluded'", file)
    attributes = {
        one.get("name", ""): (one.text or "").strip()
        for one in shape.iter("attribute")
        if one.get("name")
    }
    scored = next((name for name in _SCORES if name in attributes), None)
    if scored is not None:
        row["score"] = number(attributes[scored], f"attribute {scored!r}", file)
        attributes = {name: value for name, value in attributes.items() if name not in _SCORES}
    if attributes:
        row["attributes"] = attributes
    if shape.tag == "mask":
        return row | _mask(shape, size, file)
    return row | (_box if shape.tag == "box" else _polygon)(shape, file)


def _number(shape: Element, name: str, file: str) -> float:
    text = shape.get(name)
    if text is None:
        raise broken(file, None, f"a <{shape.tag}> without {name!r}", "Write it again.")
    return number(text, f"{name!r} of <{shape.tag}>", file)


def _whole(element: Element, name: str, file: str) -> int | None:
    text = element.get(name)
    return None if text is None else whole(text, f"{name!r} of <{element.tag}>", file)


def _box(shape: Element, file: str) -> dict[str, Any]:
    x0, y0, x1, y1 = (_number(shape, name, file) for name in ("xtl", "ytl", "xbr", "ybr"))
    degrees = _number(shape, "rotation", file) if shape.get("rotation") is not None else 0.0
    if degrees:
        return turned_row([(x0 + x1) / 2, (y0 + y1) / 2], x1 - x0, y1 - y0, degrees)
    return box_row(x0, y0, x1, y1)


def _polygon(shape: Element, file: str) -> dict[str, Any]:
    ring = []
    for pair in shape.get("points", "").split(";"):
        x, comma, y = pair.partition(",")
        if not comma:
            raise broken(file, None, f"points {pair!r} of a polygon", "Write 'x,y;x,y;...'.")
        ring.append([number(one, "points of a polygon", file) for one in (x, y)])
    if len(ring) < 3:
        raise broken(file, None, f"a polygon of {len(ring)} points", "Correct it, or take it out.")
    return polygon_row(ring)


def _mask(shape: Element, size: dict[str, int | None], file: str) -> dict[str, Any]:
    """Runs along the rows of the mask's box, the first of background."""
    if size["width"] is None or size["height"] is None:
        raise broken(file, None, "a mask of an image of unknown size", "Write width and height.")
    left, top, width, height = (
        whole(shape.get(name, ""), f"{name!r} of <mask>", file)
        for name in ("left", "top", "width", "height")
    )
    runs = [whole(run, "rle", file) for run in shape.get("rle", "").split(",") if run.strip()]
    if min(width, height) < 0 or width * height > PIXELS:
        raise broken(
            file, None, f"a mask of {width:,} x {height:,} pixels", "Cut the image into tiles."
        )
    if sum(runs) != width * height or min(runs, default=0) < 0:
        raise broken(
            file,
            None,
            f"a mask whose runs are of {sum(runs):,} pixels, not {width * height:,}",
            "Write it again.",
        )
    values = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(height, width)
    return mask_row(values, left, top, size["width"], size["height"])


CVAT = Format(
    "cvat",
    (".xml",),
    _read,
    lambda head: b"<annotations>" in head and any(mark in head for mark in _MARKS),
)
