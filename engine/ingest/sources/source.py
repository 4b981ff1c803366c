"""Result of a reader: a lazy table, its origin, and data for error messages."""

from __future__ import annotations

import msgspec
import polars as pl

from evalengine.schemas.wording import without_secrets

from ..files import Held

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
        self.description = without_secrets(self.description)

    @property
    def text(self) -> bool:
        """True if ids come from untyped text (CSV)."""
        return self.format == "csv"
