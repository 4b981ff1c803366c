"""Result of a reader: a lazy table, its origin and its errors."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import polars as pl

from ...schemas.wording import without_secrets
from ..annotations.format import Format, Look
from ..files import Held
from ..problems import count_of

# Result of a reader: a lazy table, its origin, and data for error messages.

SEGMENTED = frozenset({"segmentation"})
"""Default geometry fields of COCO rows to read."""


class Source(msgspec.Struct):
    """Table of one side before its columns are recognised.

    Attributes:
        format: parquet, ipc, csv, ndjson, json, coco, trec, mapping, raster, label maps,
            annotations or memory.
        files: local source files, in row order.
        partitions: partition columns of the paths, to their dtypes.
        warnings: reasons why numbers may be meaningless, as (kind, message, count).
        found: detections of a file that contains both sides; ``frame`` is then the ground truths.
        shares: whether coordinates are relative to the image's width and height.
        places: number of datums, if ids are list indices; otherwise None.
        firsts: first rows of each of several files, if these are not read lazily.
        facts: metadata of the file for ``run.json``, such as a run's tag.
        points: number of key points per object, and of numbers per point, if described.
        pixels: whether corners are 1-based pixels, the last included: ``yes``, ``as truths`` (if
            those of the ground truths are), or empty for edges.
        held: memory size of columns in bytes, if known; the name of a text's columns is empty.
        images: ``image_id``, ``sequence`` and ``frame`` of video frames, if described.
        classes: columns to the names of their class numbers; None if not looked up.
        missing: canonical names of columns to the texts in them that were read as missing values.
    """

    frame: pl.LazyFrame
    description: str
    format: str = "memory"
    files: tuple[str, ...] = ()
    storage_options: dict[str, str] | None = None
    partitions: dict[str, pl.DataType] = msgspec.field(default_factory=dict)
    datums: pl.DataFrame | None = None
    labels: pl.DataFrame | None = None
    notes: tuple[tuple[str, str, int | None], ...] = ()
    warnings: tuple[tuple[str, str, int | None], ...] = ()
    found: pl.LazyFrame | None = None
    shares: bool = False
    places: int | None = None
    firsts: dict[str, pl.DataFrame] = msgspec.field(default_factory=dict)
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    points: tuple[int, int] | None = None
    images: pl.DataFrame | None = None
    pixels: str = ""
    held: dict[str, Held] = {}
    missing: dict[str, list[str]] = msgspec.field(default_factory=dict)
    classes: dict[str, tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        if "@" in self.description or "?" in self.description:
            self.description = without_secrets(self.description)

    @property
    def text(self) -> bool:
        """True if ids come from untyped text (CSV)."""
        return self.format == "csv"


def of_frame(frame: pl.DataFrame | pl.LazyFrame) -> Source:
    """Return a Polars frame as a source."""
    if isinstance(frame, pl.LazyFrame):
        return Source(frame, "polars.LazyFrame")
    return Source(frame.lazy(), f"polars.DataFrame of {frame.height:,} rows")


# Annotations as a source of rows.


def open_annotations(format_: Format, look: Look) -> Source:
    """Read a format as a source, with a note on it."""
    read = format_.read(look)
    rows, images = read.rows.height, read.datums.height
    own = read.rows.select(pl.col(format_.datum).alias("datum_id"))
    bare = images - read.datums.join(own, on="datum_id", how="semi").height
    tracks = format_.datum == "sequence"
    objects = count_of(rows, "box", "boxes") if tracks else count_of(rows, "object")
    datums = count_of(images, "sequence" if tracks else "image")
    empty = f", {bare:,} without any" if bare else ""
    why = f", since {read.evidence}" if read.evidence else ""
    message = f"{look.given} is read as {format_.title}{why}: {objects} in {datums}{empty}."
    return Source(
        read.rows.lazy(),
        f"{format_.title} {look.given}",
        "tracks" if tracks else "annotations",
        look.of(*format_.suffixes),
        datums=read.datums,
        labels=read.labels,
        notes=(("format_recognised", message, rows), *read.notes),
        warnings=read.warnings,
        shares=read.shares,
        firsts=read.firsts,
        points=read.points,
        pixels=read.pixels,
        found=None if read.found is None else read.found.lazy(),
    )


# Empty files of predictions: the ground truths' files decide the format.


def nothing_tracked(predictions: Any, truths: Any) -> Any:
    """Return the predictions; empty text files as files of the other side's format without rows."""
    if not all(isinstance(path, (str, os.PathLike)) for path in (predictions, truths)):
        return predictions
    path, of_truths = os.fspath(predictions), os.fspath(truths)
    if not _holds_nothing(path):
        return predictions
    from ..annotations.registry import look_at, recognised

    found, look = recognised([of_truths]), look_at([path])
    if found is None or look is None:
        return predictions
    source = open_annotations(found[0], look)
    if found[0].datum != "sequence" and "score" not in source.frame.collect_schema():
        source.frame = source.frame.with_columns(score=pl.lit(0.0))
    return source


def _holds_nothing(path: str) -> bool:
    """Return whether a path is an empty text file, or a folder of only such files."""
    if not os.path.isdir(path):
        return path.endswith(".txt") and os.path.isfile(path) and not os.path.getsize(path)
    files = os.listdir(path)
    return bool(files) and all(
        name.endswith(".txt") and _holds_nothing(os.path.join(path, name)) for name in files
    )
