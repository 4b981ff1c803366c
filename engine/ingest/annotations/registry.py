"""All formats of annotations, and which of them something is."""

from __future__ import annotations

import msgspec
import polars as pl

from evalengine.ingest.files import Source
from evalengine.ingest.problems import Note, count_of
from evalengine.schemas.errors import unknown

from .cvat import CVAT
from .format import Format, Look, Other, look_at
from .label_studio import LABEL_STUDIO
from .labelme import LABELME
from .open_images import OPEN_IMAGES
from .plain_boxes import (
    CLASS_RESULTS,
    DOTA,
    IMAGE_BOXES,
    KITTI,
    KITTI_TRACKS,
    VISDRONE,
    VISDRONE_TRACKS,
)
from .titles import TITLES
from .tracks import MOT, MOTS
from .voc import VOC
from .yolo import YOLO

_ALL = (
    VOC,
    CVAT,
    LABELME,
    LABEL_STUDIO,
    OPEN_IMAGES,
    DOTA,
    KITTI,
    MOT,
    MOTS,
    KITTI_TRACKS,
    YOLO,
    IMAGE_BOXES,
    CLASS_RESULTS,
    VISDRONE,
    VISDRONE_TRACKS,
)
FORMATS = {name: next(one for one in _ALL if one.name == name) for name in TITLES}
"""By name, in the order in which they are tried."""


def get(name: str) -> Format:
    """Return a format by name."""
    if name not in FORMATS:
        raise unknown("format", name, FORMATS)
    return FORMATS[name]


def recognised(
    paths: list[str], other: Other | None = None, box_format: str | None = None
) -> tuple[Format, Look] | None:
    """Detect the format of local paths by content; None if no format matches."""
    look = look_at(paths)
    if look is None:
        return None
    look.other, look.box_format = other, box_format
    return next(((format_, look) for format_ in FORMATS.values() if format_.detect(look)), None)


def open_annotations(format_: Format, look: Look) -> Source:
    """Read a format as a source, with a note on it."""
    read = format_.read(look)
    assert read.datums is not None
    ids = read.frame.select(pl.col(format_.datum).alias("datum_id")).collect()
    rows, images = ids.height, read.datums.height
    n_empty = images - read.datums.join(ids, on="datum_id", how="semi").height
    tracks = format_.datum == "sequence"
    objects = count_of(rows, "box", "boxes") if tracks else count_of(rows, "object")
    datums = count_of(images, "sequence" if tracks else "image")
    empty = f", {n_empty:,} without any" if n_empty else ""
    why = f", since {read.evidence}" if read.evidence else ""
    message = f"{look.given} is read as {format_.title}{why}: {objects} in {datums}{empty}."
    return msgspec.structs.replace(
        read,
        description=f"{format_.title} {look.given}",
        format="tracks" if tracks else "annotations",
        files=look.of(*format_.suffixes),
        notes=(Note("format_recognised", message, rows), *read.notes),
    )
