"""Raster files that the tables of a job point to: which they are, and whether they have changed.

They may be many and large, so size and time of change stand for their content.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

import msgspec
import polars as pl

from ..geometry.raster_files import RasterFiles
from ..ingest.extensions import by_extension
from ..ingest.sources.tables import open_source, schema_of
from ..schemas.errors import ReadError
from ..schemas.geometry_columns import RASTER

Stamp = tuple[int, int, int]
"""Size in bytes, time of change in nanoseconds, inode."""

_NAMES = {name.casefold() for name in (RASTER.name, *RASTER.aliases)}
"""What a column of rasters may be called, in segmentation and in detection."""
_PARSED, _WITHOUT = "json", ("trec", "raster")
"""A format whose columns are not known before all of it is read, and those that point to none."""


class Pointed(msgspec.Struct, frozen=True):
    """The rasters of one table.

    Attributes:
        files: path as the table writes it, path as it is found (None where there is none or it is
            remote), and its stamp.
    """

    files: tuple[tuple[str, str | None, Stamp | None], ...] = ()

    @property
    def digest(self) -> str:
        """Of paths, sizes and times of change; empty without any raster."""
        if not self.files:
            return ""
        # Not the inode: a copy that keeps its time is the same file.
        told = [[name, stamp[:2] if stamp else None] for name, _, stamp in self.files]
        return hashlib.sha256(msgspec.json.encode(told)).hexdigest()

    def changed(self) -> list[str]:
        """Paths of rasters that are not what they were."""
        return [
            name for name, path, stamp in self.files if path is not None and stamp_of(path) != stamp
        ]


def stamp_of(path: str) -> Stamp | None:
    """What tells that a file was changed; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def rasters_of(path: str, columns: Mapping[str, str] | None) -> Pointed:
    """The rasters that a local table names.

    Args:
        path: of the table.
        columns: own column names to canonical ones, as in the options.

    Raises:
        ReadError: the table cannot be read.
    """
    named = {own for own, name in (columns or {}).items() if name == RASTER.name}
    form = by_extension(path)
    if form in _WITHOUT or (form == _PARSED and not _mentions(path, named)):
        return Pointed()
    source = open_source(path)
    own = [
        name
        for name, dtype in schema_of(source).items()
        if (name.casefold() in _NAMES or name in named) and dtype in (pl.String, pl.Categorical)
    ]
    if not own:
        return Pointed()
    try:
        rows = source.frame.select(pl.col(own).cast(pl.String)).collect()
    except pl.exceptions.PolarsError as error:
        raise ReadError(f"{path}: {error}.") from error
    paths = {one for name in own for one in rows[name].drop_nulls().unique().to_list()}
    folder = os.path.dirname(path)
    return Pointed(tuple(_pointed(one, folder) for one in sorted(paths)))


def _pointed(path: str, folder: str) -> tuple[str, str | None, Stamp | None]:
    there = RasterFiles(folder).find(path)
    stamp = None if there is None else stamp_of(there)
    return path, there if stamp else None, stamp


def _mentions(path: str, named: set[str]) -> bool:
    """Whether a JSON file has a key that may hold rasters; COCO's, which has none, is not parsed.

    Keys are sought as bytes, whatever their case.
    """
    sought = [f'"{name.casefold()}"'.encode() for name in _NAMES | named]
    longest = max(map(len, sought))
    with open(path, "rb") as file:
        kept = b""
        while block := file.read(1 << 22):
            text = (kept + block).lower()
            if any(one in text for one in sought):
                return True
            kept = block[-longest:]
    return False
