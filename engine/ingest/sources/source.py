"""What a reader hands over: a lazy table, what it came from, and how to explain its failure."""

from __future__ import annotations

import msgspec
import polars as pl

from evalengine.schemas.wording import without_secrets

from ..file_memory import Held

SEGMENTED = frozenset({"segmentation"})
"""Fields of geometry that COCO's rows are read with unless it is said what is compared."""


class Source(msgspec.Struct):
    """One side's table before anything is known about its columns.

    Attributes:
        frame: the rows.
        description: path or type, for people.
        format: parquet, ipc, csv, ndjson, json, coco, trec, mapping, raster, label maps,
            annotations or memory.
        files: local files behind it, in row order.
        storage_options: as given for remote paths.
        partitions: columns that the paths of files name, to their dtypes.
        datums: datums that came along (COCO images).
        labels: labels that came along (COCO categories).
        notes: what the reader had to decide, as (kind, message, count).
        warnings: what makes numbers of it meaningless, alike.
        found: the detections of a file that holds both sides, ``frame`` being the ground truths.
        shares: whether coordinates are shares of the image's width and height.
        places: how many datums there are, where their ids are places in a list; None where they are
            ids of their own.
        firsts: first rows of each of several files, where these are not read lazily.
        facts: what the file says of itself and ``run.json`` keeps, such as a run's tag.
        points: number of key points of an object, and of numbers of each, where files describe it.
        pixels: whether corners are pixels that count from 1, of which the last is in the box:
            ``yes``, ``as truths`` (if those of the ground truths are), or empty for edges.
        held: bytes of columns in memory, if files say so; the name of a text's columns is empty.
        images: ``image_id``, ``sequence`` and ``frame`` of the frames of videos, where a file
            describes them.
        classes: own names of columns to the names of the classes whose numbers they hold; None if
            the files were not asked.
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
        """Whether ids come from text without a type of their own (CSV)."""
        return self.format == "csv"
