"""``.json`` files: COCO's, a plain array of records, or a mapping of queries to documents."""

from __future__ import annotations

import gzip
import json
import mmap
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas.errors import ReadError

from ..annotations.format import FIRST
from .coco_objects import array_kind
from .coco_videos import is_video_row, is_videos, read_video_results, read_videos
from .json_rows import UNREADABLE, malformed
from .mappings import is_nested, read_mapping
from .nuscenes import is_nuscenes, read_nuscenes
from .objects import frame_of_rows
from .panoptic import is_panoptic, read_panoptic
from .source import SEGMENTED, Source

_HEAD = 1 << 16
_ARRAYS = {"coco_results": "result", "coco_annotations": "annotation"}
_PACKED = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


def sniff(path: str | os.PathLike[str]) -> str:
    """Classify a JSON file by content.

    Kinds: coco, coco_results, coco_annotations, videos, video_results, panoptic, nuscenes, mapping,
    records or lines. An object is COCO ground truths, unless it maps queries to documents, its
    images have ``segments_info``, its ``results`` are nuScenes' boxes or it tracks objects through
    videos. An array is COCO results or annotations if its first object has an image, a category and
    a box or mask; it is results of videos if it also has a track.

    Raises:
        ReadError: neither object nor array.
    """
    name = os.fspath(path)
    with _shallow(name):
        return _sniff(_map(name), name)


def open_json(
    files: list[str],
    description: str,
    box_format: str | None = None,
    *,
    wanted: frozenset[str] = SEGMENTED,
) -> Source:
    """Open JSON files as one source.

    Args:
        files: local files in row order.
        box_format: if other than xywh, records are read instead of COCO results.
        wanted: geometry fields of COCO rows to read, in addition to boxes.

    Raises:
        ReadError: malformed, truncated, or several COCO ground-truth files.
        InputError: COCO rows with neither box nor segmentation.
    """
    sources = []
    for file in files:
        with _shallow(file):
            sources.append(_open_one(file, box_format, wanted=wanted))
    if len(sources) == 1:
        return sources[0]
    if any(source.labels is not None or source.datums is not None for source in sources):
        raise ReadError(
            f"{description}: several COCO ground-truth files; their ids may clash. Give one, or"
            " convert them to Parquet first."
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
    from .explain import difference

    first = sources[0].frame.collect_schema()
    for file, source in zip(files, sources, strict=True):
        found = difference(first, source.frame.collect_schema(), files[0], file)
        if found:
            return f"{description}: the files differ: {found}"
    return f"{description}: the files differ in their columns."


def _open_one(name: str, box_format: str | None, *, wanted: frozenset[str]) -> Source:
    from .coco_rows import read_ground_truths, read_results

    buffer = _map(name)
    kind = _sniff(buffer, name)
    if kind == "panoptic":
        return read_panoptic(buffer, name)
    if kind == "nuscenes":
        return read_nuscenes(buffer, name)
    if kind == "mapping":
        return read_mapping(buffer, name)
    if kind == "videos":
        return read_videos(buffer, name)
    if kind == "video_results" and box_format in (None, "xywh"):
        return read_video_results(buffer, name)
    if kind == "coco":
        return read_ground_truths(buffer, name, wanted=wanted)
    if kind in _ARRAYS and box_format in (None, "xywh"):
        return read_results(buffer, name, _ARRAYS[kind], wanted=wanted)
    if kind == "lines":
        return Source(pl.scan_ndjson(name, infer_schema_length=None), name, "ndjson", (name,))
    return Source(_records(buffer, name).lazy(), name, "json", (name,))


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
        if is_nuscenes(head):
            return "nuscenes"
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
        reason = str(error).strip().splitlines()[0]
        raise ReadError(f"{Path(name)}: the records do not fit one table: {reason}") from None
