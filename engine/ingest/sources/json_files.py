"""JSON files: COCO, nuScenes, ActivityNet, records and mappings.

ActivityNet has ``database`` of annotated videos and ``results`` of detections:
https://github.com/activitynet/ActivityNet/tree/master/Evaluation
"""

from __future__ import annotations

import gzip
import json
import math
import mmap
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from ...schemas.errors import ReadError
from ...schemas.tables import SPANS_TABLE
from ..annotations.format import FIRST
from ..files import SEGMENTED, Source
from ..geometry import Z_UP_NAME
from ..problems import count_of
from .coco import array_kind
from .coco_videos import (
    is_panoptic,
    is_video_row,
    is_videos,
    read_panoptic,
    read_video_results,
    read_videos,
)
from .formats import HEAD_OF_LINES, mixed_flags, refuse_repeated_keys
from .json_rows import UNREADABLE, is_nested, malformed, read_mapping, scan_lines
from .objects import frame_of_rows, misfit_of

# ActivityNet.

_SEGMENT = b'"segment"'
_SIDES = (b'"database"', b'"results"')


class _Segment(msgspec.Struct):
    label: str
    segment: tuple[float, float]
    score: float | None = None


class _Video(msgspec.Struct):
    annotations: list[_Segment]
    subset: str | None = None
    duration: float | None = None


class _Predictions(msgspec.Struct):
    database: dict[str, _Video] | None = None
    results: dict[str, list[_Segment]] | None = None


def read_activitynet(buffer: Any, name: str) -> Source:
    """Read a file as one side; annotated videos are datums, with ``split`` and ``duration``.

    Raises:
        ReadError: other JSON, or scores of only some results.
    """
    try:
        content = msgspec.json.decode(buffer, type=_Predictions)
    except msgspec.ValidationError as error:
        raise ReadError(
            f"{name}: not ActivityNet's segments: {error}. Each needs label and segment (start and"
            " end, seconds); detections also score.",
            code="file_malformed",
            file=str(name),
        ) from None
    except UNREADABLE as error:
        raise malformed(error, bytes(buffer), 0, name) from None
    datums = None
    rows = content.results or {}
    if content.database is not None:
        rows = {video: one.annotations for video, one in content.database.items()}
        datums = pl.DataFrame(
            [(video, one.subset, one.duration) for video, one in content.database.items()],
            schema={"datum_id": pl.String, "split": pl.String, "duration": pl.Float64},
            orient="row",
        )
    flat = [
        (video, one.label, *one.segment, one.score)
        for video, every in rows.items()
        for one in every
    ]
    schema: dict[str, Any] = {"datum_id": pl.String, "label_value": pl.String}
    schema |= dict.fromkeys(("start", "end", "score"), pl.Float64)
    frame = pl.DataFrame(flat, schema=schema, orient="row")
    without = frame["score"].null_count()
    if datums is None and 0 < without < frame.height:
        row = frame.row(int(frame["score"].is_null().arg_max() or 0), named=True)
        raise ReadError(
            f"{name}: {count_of(without, 'result')} of {frame.height:,} without 'score', first of"
            f" video {row['datum_id']!r} from {row['start']:g} s. Give every result a score, or"
            " none.",
            code="scores_missing",
            file=str(name),
            count=without,
        )
    if datums is not None or without:
        frame = frame.drop("score")
    task = SPANS_TABLE.task
    return Source(frame.lazy(), name, "activitynet", (name,), datums=datums, task=task)


# nuScenes' JSON of 3-D boxes: ``results`` maps every sample to its boxes, next to ``meta``.
#
# A box has its centre (``translation``), ``size`` (width, length, height) and ``rotation`` (a
# quaternion, real part first), in metres with z up. https://www.nuscenes.org/object-detection

_OF_JSON = re.compile(rb'("(?:[^"\\]|\\.)*")|\bNaN\b')
_FIELDS = (b'"results"', b'"translation"', b'"rotation"')


class _Box(msgspec.Struct):
    """One box of a sample; those of ground truths have no score, or -1."""

    translation: tuple[float, float, float]
    size: tuple[float, float, float]
    rotation: tuple[float, float, float, float]
    detection_name: str
    velocity: tuple[float | None, float | None] | None = None
    detection_score: float | None = None
    attribute_name: str | None = None
    num_pts: int | None = None
    ego_translation: tuple[float, float, float] | None = None

    def row(self, sample: str) -> tuple[Any, ...]:
        """The box in canonical columns, as :data:`_SCHEMA` has them."""
        w, x, y, z = self.rotation
        yaw = math.atan2(2 * (x * y + w * z), w * w + x * x - y * y - z * z)
        wide, long, tall = self.size
        vx, vy = self.velocity or (None, None)
        score = None if self.detection_score == -1 else self.detection_score
        away = self.ego_translation
        far = None if away is None else math.hypot(away[0], away[1])
        numbers = [*self.translation, long, wide, tall, yaw]
        return (
            sample,
            self.detection_name,
            score,
            numbers,
            vx,
            vy,
            self.attribute_name,
            far,
            self.num_pts,
        )


class _File(msgspec.Struct):
    results: dict[str, list[_Box]]


_SCHEMA: dict[str, Any] = {
    "datum_id": pl.String,
    "label_value": pl.String,
    "score": pl.Float64,
    Z_UP_NAME: pl.List(pl.Float64),
    "vx": pl.Float64,
    "vy": pl.Float64,
    "attribute": pl.String,
    "ego_distance": pl.Float64,
    "num_points": pl.Int64,
}
_OPTIONAL = ("score", "vx", "vy", "attribute", "ego_distance", "num_points")


def read_nuscenes(buffer: Any, name: str) -> Source:
    """Read a file as one side; samples become datums if it contains ground truths."""
    text = bytes(buffer)
    if b"NaN" in text:  # which the kit writes for velocities that are not known
        text = _OF_JSON.sub(lambda match: match[1] or b"null", text)
    try:
        results = msgspec.json.decode(text, type=_File).results
    except msgspec.ValidationError as error:
        raise ReadError(
            f"{name}: not nuScenes' boxes: {error}. Needed of each are translation, size, rotation,"
            " detection_name and, of detections, detection_score.",
            code="file_malformed",
            file=str(name),
        ) from None
    except UNREADABLE as error:
        raise malformed(error, text, 0, name) from None
    rows = [box.row(sample) for sample, boxes in results.items() for box in boxes]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    # The kit writes -1 and 0 for unknown; mixed with other values they are literal.
    unknown = {"num_points": -1, "ego_distance": 0}
    optional = {one: frame[one].drop_nulls() for one in _OPTIONAL}
    optional |= {
        one: optional[one].filter(optional[one] != default) for one, default in unknown.items()
    }
    frame = frame.drop([one for one, values in optional.items() if values.is_empty()])
    scored = "score" in frame.columns
    datums = None if scored else pl.DataFrame({"datum_id": [*results]}, {"datum_id": pl.String})
    return Source(frame.lazy(), name, "nuscenes", (name,), datums=datums)


# ``.json`` files: COCO's, a plain array of records, or a mapping of queries to documents.

_HEAD = 1 << 16
_ARRAYS = {"coco_results": "result", "coco_annotations": "annotation"}
_PACKED = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


def sniff(path: str | os.PathLike[str]) -> str:
    """Classify a JSON file by content.

    Kinds: coco, coco_results, coco_annotations, videos, video_results, panoptic, nuscenes,
    activitynet, mapping, records or lines. An object is COCO ground truths, unless it maps queries
    to documents, its images have ``segments_info``, its ``results`` are nuScenes' boxes, it has
    segments of videos or it tracks objects through them. An array is COCO results or annotations if
    its first object has an image, a category and a box or mask; it is results of videos if it also
    has a track.
    """
    name = os.fspath(path)
    with _shallow(name):
        return _sniff(_map(name), name)


def open_json(
    files: list[str],
    description: str,
    box_format: str | None = None,
    *,
    extras: frozenset[str] = SEGMENTED,
) -> Source:
    """Open JSON files as one source.

    Args:
        box_format: if other than xywh, records are read instead of COCO results.
    """
    sources = []
    for file in files:
        with _shallow(file):
            sources.append(_open_one(file, box_format, extras=extras))
    if len(sources) == 1:
        return sources[0]
    if any(source.labels is not None or source.datums is not None for source in sources):
        raise ReadError(
            f"{description}: several COCO ground-truth files; their ids may clash. Give one, or"
            " convert them to Parquet first.",
            code="several_files",
        )
    try:
        frames = [source.frame for source in sources]
        frame = pl.concat(frames, how="vertical_relaxed").collect()
    except pl.exceptions.PolarsError:
        raise ReadError(_mixed(files, sources, description)) from None
    firsts = {file: one.head(FIRST).collect() for file, one in zip(files, frames, strict=True)}
    return Source(frame.lazy(), description, sources[0].format, tuple(files), firsts=firsts)


@contextmanager
def _shallow(name: str) -> Iterator[None]:
    """Refuse a file with too deeply nested values, or with text that is not UTF-8."""
    try:
        yield
    except (RecursionError, UnicodeDecodeError) as error:
        raise malformed(error, b"", 0, name) from None


def _mixed(files: list[str], sources: list[Source], description: str) -> str:
    from .formats import difference

    first = sources[0].frame.collect_schema()
    for file, source in zip(files, sources, strict=True):
        message = difference(first, source.frame.collect_schema(), files[0], file)
        if message:
            return f"{description}: the files differ: {message}"
    return f"{description}: the files differ in their columns."


def _open_one(name: str, box_format: str | None, *, extras: frozenset[str]) -> Source:
    from .coco import read_ground_truths, read_results

    buffer = _map(name)
    kind = _sniff(buffer, name)
    if kind in _READERS:
        return _READERS[kind](buffer, name)
    if kind == "video_results" and box_format in (None, "xywh"):
        return read_video_results(buffer, name)
    if kind == "coco":
        return read_ground_truths(buffer, name, extras=extras)
    if kind in _ARRAYS and box_format in (None, "xywh"):
        return read_results(buffer, name, _ARRAYS[kind], extras=extras)
    refuse_repeated_keys(bytes(buffer[:HEAD_OF_LINES]), name)
    if kind == "lines":
        return Source(scan_lines([name]), name, "ndjson", (name,))
    return Source(_records(buffer, name).lazy(), name, "json", (name,))


_READERS = {
    "panoptic": read_panoptic,
    "nuscenes": read_nuscenes,
    "activitynet": read_activitynet,
    "mapping": read_mapping,
    "videos": read_videos,
}


def _map(name: str) -> Any:
    """Return a memory map of the file, or its decompressed content, without a byte-order mark."""
    mapped: Any
    try:
        with open(name, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if mapped[:2] == _PACKED:
            mapped = gzip.decompress(mapped)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise ReadError(f"{name}: cannot be read: {error}.") from None
    return mapped[3:] if mapped[:3] == _BOM else mapped


def _sniff(buffer: Any, name: str) -> str:
    head = bytes(buffer[:_HEAD]).lstrip()
    if head[:1] == b"{":
        if _is_lines(head, len(buffer)):
            return "lines"
        if all(field in head for field in _FIELDS):
            return "nuscenes"
        if _SEGMENT in head and any(field in head for field in _SIDES):
            return "activitynet"
        if is_nested(head):
            return "mapping"
        if is_videos(buffer, head):
            return "videos"
        return "panoptic" if is_panoptic(buffer) else "coco"
    if head[:1] != b"[":
        raise ReadError(
            f"{name}: not JSON: it begins with {head[:12]!r}. An object or array is needed."
        )
    body = head[1:].lstrip()
    if body[:1] == b"]":
        return "coco_results"
    first = _first_object(buffer, head)
    if first is None:
        return "records"
    if is_video_row(first):
        return "video_results"
    return "panoptic" if "segments_info" in first else array_kind(first)


def _is_lines(head: bytes, size: int) -> bool:
    """Return whether the first line is a complete object and another follows."""
    line, newline, rest = head.partition(b"\n")
    if not newline or not rest.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(msgspec.json.decode(line), dict) and size > len(line)
    except UNREADABLE:
        return False


def _first_object(buffer: Any, head: bytes) -> dict[str, Any] | None:
    """The first object of an array, looking further if it is longer than the head."""
    for size in (len(head), 1 << 20, 1 << 26):
        text = bytes(buffer[:size]).lstrip()[1:].lstrip().decode("utf-8", "ignore")
        try:
            first, _ = json.JSONDecoder().raw_decode(text)
        except ValueError:
            continue
        return first if isinstance(first, dict) else None
    return None


def _records(buffer: Any, name: str) -> pl.DataFrame:
    try:
        rows = msgspec.json.decode(buffer, type=list[dict[str, Any]])
    except msgspec.ValidationError:
        raise ReadError(f"{name}: an array of records (JSON objects) is needed.") from None
    except UNREADABLE as error:
        raise malformed(error, bytes(buffer), 0, name) from None
    try:
        return frame_of_rows(rows)
    except (pl.exceptions.PolarsError, TypeError, OverflowError) as error:
        reason = mixed_flags(rows, "record")
        names = dict.fromkeys(key for row in rows for key in row)
        columns = {key: [row.get(key) for row in rows] for key in names}
        if not reason and (misfit := misfit_of(columns)) is not None:
            reason = misfit[2]
        raise ReadError(
            f"{Path(name)}: the records do not fit one table: {reason or error}",
            code="file_malformed",
            file=str(name),
        ) from None
