"""COCO's panoptic JSON: one row per segment, next to the PNG of its image."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas.errors import InputError, ReadError

from .coco_tables import read_categories, read_images, refuse_large
from .json_rows import UNREADABLE, malformed, misfit
from .source import Source

FORMAT = "panoptic"
_FIELD = b'"segments_info"'


class _Segment(msgspec.Struct, gc=False):
    id: int
    category_id: int | str
    iscrowd: int | bool | None = None
    area: float | None = None


class _Annotation(msgspec.Struct):
    image_id: int | str
    file_name: str
    segments_info: list[_Segment]


class _File(msgspec.Struct):
    annotations: list[_Annotation]
    images: msgspec.Raw = msgspec.Raw()
    categories: msgspec.Raw = msgspec.Raw()


def is_panoptic(buffer: Any) -> bool:
    text = buffer if hasattr(buffer, "find") else bytes(buffer)
    return bool(text.find(_FIELD) >= 0)


def read_panoptic(buffer: Any, name: str) -> Source:
    """Read segments of images, one row each; an image without segments has one row without a label.

    The PNGs are in the folder with the file's name without ``.json``, otherwise next to the file.

    Args:
        buffer: the file's bytes, or a memory map of them.

    Raises:
        ReadError: malformed JSON, an invalid row, or no folder with the PNGs.
    """
    listed = bytes(buffer[:64]).lstrip()[:1] == b"["
    try:
        if listed:
            file = _File(msgspec.json.decode(buffer, type=list[_Annotation]))
        else:
            file = msgspec.json.decode(buffer, type=_File)
    except msgspec.ValidationError as error:
        raise misfit(error, name, "annotation") from None
    except UNREADABLE as error:
        raise malformed(error, bytes(buffer), 0, name) from None
    rows = [(image, segment) for image in file.annotations for segment in image.segments_info]
    bare = [image for image in file.annotations if not image.segments_info]
    images = [image for image, _ in rows] + bare
    segments = [segment for _, segment in rows]
    folder = _folder(name, images)
    paths = {image.file_name: os.path.join(folder, image.file_name) for image in file.annotations}
    made: dict[str, pl.Series] = {
        "datum_id": _ids([image.image_id for image in images], name, "image_id"),
        "label_value": _ids([one.category_id for one in segments], name, "category_id"),
        "segment_id": pl.Series([one.id for one in segments], dtype=pl.Int64),
        "raster": pl.Series([paths[image.file_name] for image in images], dtype=pl.String),
    }
    if any(one.iscrowd is not None for one in segments):
        made["iscrowd"] = pl.Series([int(one.iscrowd or 0) for one in segments], dtype=pl.Int64)
    if any(one.area is not None for one in segments):
        made["area"] = pl.Series([one.area for one in segments], dtype=pl.Float64)
    frame = pl.DataFrame(
        {
            column: values.extend_constant(None if column != "iscrowd" else 0, len(bare))
            if len(values) < len(images)
            else values
            for column, values in made.items()
        }
    )
    return Source(
        frame.lazy(),
        f"COCO panoptic {name}",
        FORMAT,
        (name,),
        datums=None if listed else read_images(file.images, name),
        labels=None if listed else read_categories(file.categories, name),
    )


def _ids(values: list[Any], name: str, field: str) -> pl.Series:
    """Ids of one kind."""
    kinds = {type(value) for value in values}
    if len(kinds) > 1:
        raise InputError(
            f"{name}: field {field!r} holds integers and strings. Ids are all integers or all"
            " strings."
        )
    refuse_large(values, name, "annotation", field)
    return pl.Series(field, values, dtype=pl.String if kinds == {str} else pl.Int64)


def _folder(name: str, images: list[_Annotation]) -> str:
    """Return the folder of a file's PNGs.

    Raises:
        ReadError: they are neither in the folder of its name nor next to it.
    """
    own, beside = os.path.splitext(name)[0], os.path.dirname(name)
    if not images:
        return beside
    first = images[0].file_name
    for folder in (own, beside):
        if os.path.isfile(os.path.join(folder, first)):
            return folder
    raise ReadError(
        f"{name}: its PNGs are not there: {first!r} lies neither in {own!r} nor in"
        f" {beside or '.'!r}. Put them into a folder of the file's name without .json."
    )
