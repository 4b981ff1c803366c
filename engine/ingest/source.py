"""Result of a reader: a lazy table, its origin and its notes."""

from __future__ import annotations

import msgspec
import polars as pl

from ..schemas.wording import without_secrets
from .files import MemorySize
from .problems import Note

SEGMENTED = frozenset({"segmentation"})
"""Default geometry fields of COCO rows to read."""


class Source(msgspec.Struct):
    """Table of one side before its columns are recognised.

    Readers of annotations return one row per object in canonical columns: ``datum_id`` (the image),
    ``label_value`` (class name, or number if the format has no names), ``score`` for detections,
    ``xmin ymin xmax ymax`` (Float64; null if there is only a shape), ``polygon`` (List of rings,
    each a List of [x, y]) or ``mask`` (a COCO run-length struct) for shapes, and further properties
    of objects.

    Attributes:
        format: parquet, ipc, csv, ndjson, json, coco, trec, mapping, raster, label maps,
            annotations, tags (spans read from tags of sentences) or memory.
        files: local source files, in row order.
        partitions: partition columns of the paths, to their dtypes.
        datums: one row per image, including those without objects: ``datum_id``, ``file_name`` if
            known, ``width`` and ``height`` (Int64, pixels; null if unknown), and further properties
            of images, such as ``split``; None without a declaration.
        labels: ``label_value`` of all declared classes in their order, and ``label_name`` if the
            values are numbers with names; None without a declaration.
        found: detections of a file that contains both sides; ``frame`` is then the ground truths.
        shares: whether coordinates are relative to the image's width and height.
        places: number of datums, if ids are list indices; otherwise None.
        firsts: first rows of each of several files, if these are not read lazily.
        facts: metadata of the file for ``run.json``, such as a run's tag.
        points: number of key points per object, and of numbers per point, if described.
        evidence: reason for this format, if another one has similar lines.
        pixels: whether corners are 1-based pixels, the last included: ``yes``, ``as truths`` (if
            those of the ground truths are), or empty for edges.
        held: memory size of columns in bytes, if known; the name of a text's columns is empty.
        images: ``image_id``, ``sequence`` and ``frame`` of video frames, if described.
        classes: columns to the names of their class numbers; None if not looked up.
        missing: canonical names of columns to the texts in them that were read as missing values.
        task: the task that the format decides; empty if the columns decide.
    """

    frame: pl.LazyFrame
    description: str = ""
    format: str = "memory"
    files: tuple[str, ...] = ()
    storage_options: dict[str, str] | None = None
    partitions: dict[str, pl.DataType] = msgspec.field(default_factory=dict)
    datums: pl.DataFrame | None = None
    labels: pl.DataFrame | None = None
    notes: tuple[Note, ...] = ()
    found: pl.LazyFrame | None = None
    shares: bool = False
    places: int | None = None
    firsts: dict[str, pl.DataFrame] = msgspec.field(default_factory=dict)
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    points: tuple[int, int] | None = None
    images: pl.DataFrame | None = None
    evidence: str = ""
    pixels: str = ""
    held: dict[str, MemorySize] = {}
    missing: dict[str, list[str]] = msgspec.field(default_factory=dict)
    classes: dict[str, tuple[str, ...]] | None = None
    task: str = ""

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
