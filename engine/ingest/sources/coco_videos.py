"""COCO JSON of videos and of panoptic segmentation."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import polars as pl

from ...schemas.errors import N_EXAMPLES, ReadError
from ..annotations.format import without_empty
from ..files import Source
from ..geometry import CORNER_NAMES
from ..problems import Note
from .coco import (
    id_column,
    is_present,
    mentions,
    read_categories,
    read_images,
    with_segmentation,
    wrong_row,
)
from .json_rows import decode_rows, decoded

# COCO's JSON of videos: one row per object and frame (box or mask), or one row per object.
#
# CocoVID, TAO and BDD100K have ``videos``, ``images`` with ``video_id`` and ``frame_id`` (or
# ``frame_index``), and ``annotations`` with ``instance_id`` or ``track_id``. YouTube-VIS has one
# row per object, with lists ``bboxes`` and ``segmentations`` that are null in frames without it:
# https://youtube-vos.org/dataset/vis. Results are lists of such rows.

Id = int | str

_HINTS = (b'"videos"', b'"video_id"', b'"instance_id"', b'"track_id"')
_OWN = (b'"instance_id"', b'"track_id"', b'"bboxes"', b'"segmentations"')
_LISTS = {"bboxes", "segmentations"}


class _Row(msgspec.Struct, gc=False):
    """An annotation or result of either form."""

    video_id: Id | None = None
    image_id: Id | None = None
    frame_id: int | None = None
    frame_index: int | None = None
    category_id: Id | None = None
    id: Id | None = None
    instance_id: Id | None = None
    track_id: Id | None = None
    score: float | None = None
    iscrowd: int | bool | None = None
    ignore: int | bool | None = None
    bbox: list[float] | None = None
    segmentation: msgspec.Raw = msgspec.Raw()
    bboxes: list[list[float] | None] | None = None
    segmentations: list[msgspec.Raw] | None = None


class _Image(msgspec.Struct, gc=False):
    id: Id
    video_id: Id | None = None
    frame_id: int | None = None
    frame_index: int | None = None
    width: int | None = None
    height: int | None = None


class _File(msgspec.Struct):
    videos: msgspec.Raw = msgspec.Raw()
    images: msgspec.Raw = msgspec.Raw()
    annotations: msgspec.Raw = msgspec.Raw()
    categories: msgspec.Raw = msgspec.Raw()


def is_videos(buffer: Any, head: bytes) -> bool:
    """Return whether an object has videos, and annotations with object ids.

    Args:
        head: its first bytes; the whole is searched only if these mention videos.
    """
    return (
        any(word in head for word in _HINTS)
        and buffer.find(b'"videos"') >= 0
        and any(buffer.find(word) >= 0 for word in _OWN)
    )


def is_video_row(first: Mapping[str, Any]) -> bool:
    """Return whether the first object of an array is a track, or a box of one."""
    of_frame = {"track_id", "instance_id"} & {*first} and {"bbox", "segmentation"} & {*first}
    placed = {"video_id", "image_id"} & {*first}
    of_video = "video_id" in first and _LISTS & {*first}
    return "category_id" in first and bool((of_frame and placed) or of_video)


def read_videos(buffer: Any, name: str) -> Source:
    """Read an object ``{videos, images, annotations, categories}``; videos become datums."""
    file = decoded(buffer, _File, name, "image")
    listed = is_present(file.images)
    images = decoded(file.images, list[_Image], name, "image") if listed else []
    if not is_present(file.annotations):
        raise ReadError(
            f"{name}: videos without 'annotations'. Give a file that has them.",
            code="format_unknown",
            file=name,
        )
    frames = _frames_of(images, name)
    frame = _read(memoryview(file.annotations), name, "annotation")
    datums = read_images(file.videos, name, "video")
    if datums is not None and "length" in datums.columns:
        datums = datums.rename({"length": "frames"})
    elif datums is not None and frames.height:
        count = frames.group_by("sequence").agg(frames=pl.len().cast(pl.Int64))
        datums = datums.join(
            count, left_on="datum_id", right_on="sequence", how="left", maintain_order="left"
        )
    if datums is not None and not {"width", "height"} <= {*datums.columns}:
        datums = datums.drop("width", "height", strict=False).join(
            _sizes(images, datums.schema["datum_id"]),
            on="datum_id",
            how="left",
            maintain_order="left",
        )
    source = _source(frame, name, "annotation", datums)
    source.labels = read_categories(file.categories, name)
    source.images = frames if frames.height else None
    return placed(source, source.images)


def read_video_results(buffer: Any, name: str) -> Source:
    """Read a list of results; those with only image ids need :func:`placed`."""
    return _source(_read(buffer, name, "result"), name, "result", None)


def placed(source: Source, images: pl.DataFrame | None) -> Source:
    """Assign rows of images to their videos and frames.

    Args:
        images: ``image_id``, ``sequence`` and ``frame``, of the ground truths.
    """
    if "image_id" not in source.frame.collect_schema():
        return source
    rows = source.frame.with_row_index("__row").collect()
    at = ["sequence", "frame"]
    placement = rows.select("image_id")
    if images is None or images.schema["image_id"] != placement.schema["image_id"]:
        placement = placement.with_columns(pl.lit(None).alias(one) for one in at)
    else:
        placement = placement.join(images, on="image_id", how="left", maintain_order="left")
    rows = rows.with_columns(pl.coalesce(placement[one], rows[one]).alias(one) for one in at)
    unplaced = rows.filter(pl.any_horizontal(pl.col(at).is_null()))
    if unplaced.height:
        examples = unplaced.select("__row", "image_id").head(N_EXAMPLES).rows()
        first = ", ".join(f"row {row:,}: image {image!r}" for row, image in examples)
        raise ReadError(
            f"{source.description}: {unplaced.height:,} rows without a frame, whose image is not"
            f" among those of the ground truths with a frame_id (rows count from 0): {first}. Give"
            " each row its video_id and frame_id, or ground truths with these images.",
            code="ids_unmatched",
            count=unplaced.height,
        )
    return msgspec.structs.replace(source, frame=rows.drop("__row", "image_id").lazy())


def _source(frame: pl.DataFrame, name: str, what: str, datums: pl.DataFrame | None) -> Source:
    message = f"{name} is read as COCO's JSON of videos: {frame.height:,} boxes or masks of tracks."
    return Source(
        with_segmentation(frame, name, what),
        f"COCO {what}s of videos {name}",
        "tracks",
        (name,),
        datums=datums,
        notes=(Note("format_recognised", message, frame.height),),
    )


def _frames_of(images: list[_Image], name: str) -> pl.DataFrame:
    """Return ``image_id``, ``sequence`` and ``frame`` of images that have them."""
    keys = [
        (one.id, one.video_id, one.frame_id if one.frame_id is not None else one.frame_index)
        for one in images
    ]
    ids, videos, frames = zip(*keys, strict=True) if keys else ((), (), ())
    return pl.DataFrame(
        {
            "image_id": id_column([*ids], name, "image", "id", ReadError),
            "sequence": id_column([*videos], name, "image", "video_id", ReadError),
            "frame": pl.Series([*frames], dtype=pl.Int64),
        }
    ).drop_nulls()


def _sizes(images: list[_Image], dtype: pl.DataType) -> pl.DataFrame:
    """Return width and height of videos, from their first image with a size."""
    sizes: dict[Any, tuple[int, int]] = {}
    for one in images:
        if one.video_id is not None and one.width and one.height:
            sizes.setdefault(one.video_id, (one.width, one.height))
    rows = [(video, *size) for video, size in sizes.items()]
    schema: dict[str, Any] = {"datum_id": dtype, "width": pl.Int64, "height": pl.Int64}
    return pl.DataFrame(rows, schema, orient="row")


def _read(buffer: Any, name: str, what: str) -> pl.DataFrame:
    """All rows; those of no frame of their own have ``image_id`` in it."""
    rows: list[tuple[Any, ...]] = []
    n = 0
    for piece in decode_rows(buffer, _Row, name, what):
        for row in piece:
            rows += _boxes(row, n, name, what)
            n += 1
    columns = [*zip(*rows, strict=True)] or [()] * 12
    sequence, frame, image, track, label, score, crowd, ignore, *corners, segmentation = columns
    series: dict[str, pl.Series] = {
        "sequence": id_column([*sequence], name, what, "video_id", ReadError),
        "frame": pl.Series(frame, dtype=pl.Int64),
        "image_id": id_column([*image], name, what, "image_id", ReadError),
        "object_id": id_column([*track], name, what, "track_id", ReadError),
        "label_value": id_column([*label], name, what, "category_id", ReadError),
        "score": pl.Series(score, dtype=pl.Float64),
        "region": pl.Series(crowd, dtype=pl.Int64),
        "ignored": pl.Series(ignore, dtype=pl.Int64),
    }
    for side, values in zip(CORNER_NAMES, corners, strict=True):
        series[side] = pl.Series(values, dtype=pl.Float64)
    series["segmentation"] = pl.Series(segmentation, dtype=pl.Binary)
    table = pl.DataFrame(series)
    flags = ("region", "ignored")
    table = table.with_columns(pl.col(flags).fill_null(0))
    if what == "result":
        table = table.drop(flags)
    if not table["frame"].null_count():
        table = table.drop("image_id")
    table = without_empty(table, ("score", "segmentation"))
    return without_empty(table, CORNER_NAMES) if "segmentation" in table.columns else table


def _boxes(row: _Row, index: int, name: str, what: str) -> Iterator[tuple[Any, ...]]:
    """Yield the data of each frame in which a row's object is visible."""
    place = f"{name}: {what} {index:,} (counted from 0)"
    track = row.track_id if row.track_id is not None else row.instance_id
    listed = row.bboxes is not None or row.segmentations is not None
    if listed and track is None:
        track = row.id if what == "annotation" else index
    label, score = row.category_id, row.score
    if (
        track is None
        or label is None
        or (row.video_id is None and (listed or row.image_id is None))
    ):
        raise wrong_row(
            name,
            what,
            index,
            "track_id",
            "a track_id (or instance_id), a category_id and a video_id (or image_id) are needed."
            " Write them, or remove the row.",
        )
    flags = (
        None if row.iscrowd is None else int(row.iscrowd),
        None if row.ignore is None else int(row.ignore),
    )
    if not listed:
        number = row.frame_id if row.frame_id is not None else row.frame_index
        if row.image_id is None and number is None:
            message = "neither a frame_id nor an image_id. Write one of them."
            raise wrong_row(name, what, index, "frame_id", message)
        shape = bytes(row.segmentation)
        if not row.bbox and shape in (b"", b"null", b"[]"):
            message = "neither bbox nor segmentation. Give it one, or remove it."
            raise wrong_row(name, what, index, "bbox", message)
        corners = _corners(row.bbox, place)
        at = (row.video_id, number, row.image_id)
        yield *at, track, label, score, *flags, *corners, shape or None
        return
    boxes, shapes = row.bboxes or [], row.segmentations or []
    for i in range(max(len(boxes), len(shapes))):
        box = boxes[i] if i < len(boxes) else None
        shape = bytes(shapes[i]) if i < len(shapes) else b""
        shape = b"" if shape in (b"null", b"[]") else shape
        if box or shape:
            at = (row.video_id, i, None)
            yield *at, track, label, score, *flags, *_corners(box, place), shape or None


def _corners(box: list[float] | None, place: str) -> tuple[float | None, ...]:
    if not box:
        return (None,) * 4
    if len(box) != 4:
        raise ReadError(
            f"{place}: a box needs 4 numbers (x, y, width, height), not {len(box)}.",
            code="wrong_length",
            field="bbox",
        )
    x, y, width, height = box
    return x, y, x + width, y + height


# COCO's panoptic JSON: one row per segment, next to the PNG of its image.

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


class _PanopticFile(msgspec.Struct):
    annotations: list[_Annotation]
    images: msgspec.Raw = msgspec.Raw()
    categories: msgspec.Raw = msgspec.Raw()


def is_panoptic(buffer: Any) -> bool:
    return mentions(buffer, _FIELD)


def read_panoptic(buffer: Any, name: str) -> Source:
    """Read segments of images, one row each; an image without segments has one row without a label.

    The PNGs are in the folder with the file's name without ``.json``, otherwise next to the file.
    """
    listed = bytes(buffer[:64]).lstrip()[:1] == b"["
    if listed:
        file = _PanopticFile(decoded(buffer, list[_Annotation], name, "annotation"))
    else:
        file = decoded(buffer, _PanopticFile, name, "annotation")
    rows = [(image, segment) for image in file.annotations for segment in image.segments_info]
    empty = [image for image in file.annotations if not image.segments_info]
    images = [image for image, _ in rows] + empty
    segments = [segment for _, segment in rows]
    folder = _folder(name, images)
    paths = {image.file_name: os.path.join(folder, image.file_name) for image in file.annotations}
    columns: dict[str, pl.Series] = {
        "datum_id": id_column([image.image_id for image in images], name, "annotation", "image_id"),
        "label_value": id_column(
            [one.category_id for one in segments], name, "annotation", "category_id"
        ),
        "segment_id": pl.Series([one.id for one in segments], dtype=pl.Int64),
        "raster": pl.Series([paths[image.file_name] for image in images], dtype=pl.String),
    }
    if any(one.iscrowd is not None for one in segments):
        columns["iscrowd"] = pl.Series([int(one.iscrowd or 0) for one in segments], dtype=pl.Int64)
    if any(one.area is not None for one in segments):
        columns["area"] = pl.Series([one.area for one in segments], dtype=pl.Float64)
    frame = pl.DataFrame(
        {
            column: values.extend_constant(None if column != "iscrowd" else 0, len(empty))
            if len(values) < len(images)
            else values
            for column, values in columns.items()
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


def _folder(name: str, images: list[_Annotation]) -> str:
    """Return the folder of a file's PNGs."""
    same_name, parent = os.path.splitext(name)[0], os.path.dirname(name)
    if not images:
        return parent
    first = images[0].file_name
    for folder in (same_name, parent):
        if os.path.isfile(os.path.join(folder, first)):
            return folder
    raise ReadError(
        f"{name}: its PNGs are missing: {first!r} is neither in {same_name!r} nor in "
        f"{parent or '.'!r}. Put them into a folder of the file's name without .json."
    )
