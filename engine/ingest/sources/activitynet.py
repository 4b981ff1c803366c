"""ActivityNet's JSON: ``database`` of annotated videos, and ``results`` of detections.

https://github.com/activitynet/ActivityNet/tree/master/Evaluation
"""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from ...schemas.errors import ReadError
from ...schemas.tables import SPANS_TABLE
from ..problems import count_of
from ..source import Source
from .json_rows import UNREADABLE, malformed

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


class _File(msgspec.Struct):
    database: dict[str, _Video] | None = None
    results: dict[str, list[_Segment]] | None = None


def is_activitynet(head: bytes) -> bool:
    """Return whether a file begins with segments of videos."""
    return _SEGMENT in head and any(field in head for field in _SIDES)


def read_activitynet(buffer: Any, name: str) -> Source:
    """Read a file as one side; annotated videos are datums, with ``split`` and ``duration``.

    Raises:
        ReadError: other JSON, or scores of only some results.
    """
    try:
        content = msgspec.json.decode(buffer, type=_File)
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
