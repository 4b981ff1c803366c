"""The rows of one side, with datum, label key and pixel source of each."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.packed_maps import PackedMap
from ...geometry.raster_files import RasterFiles
from ...ingest.frames import Frames
from ...ingest.label_map_sets import CODINGS, GREY, OWN_COLOURS, is_known
from ...ingest.label_maps import FORMS
from ...ingest.problems import count_of
from ...overwriting import reads
from ...schemas.arrays import Array
from ...schemas.contract import DEFAULT_LABEL_KEY
from ...schemas.errors import InputError, ReadError
from .rasters import MapRow

_SHOWN = 3


class Side(msgspec.Struct):
    """One side, coded.

    Attributes:
        role: ``predictions`` or ``ground_truths``.
        frame: its rows, without the column of datum ids.
        datum: int32 [n], datum code of each row.
        key: name of each row's label key.
        ids: ids of the datum codes.
        folder: folder of the table's file, empty for none.
    """

    role: str
    frame: pl.DataFrame
    datum: Array
    key: pl.Series
    ids: pl.Series
    files: RasterFiles

    @property
    def layered(self) -> bool:
        """True if each row is one label instead of a map of all."""
        return "label_value" in self.frame.columns

    @property
    def called(self) -> str:
        """Its role in words."""
        return self.role.replace("_", " ")

    def row(self, row: int) -> str:
        """Return the name of a row for messages."""
        return f"{self.called}, {self.numbered(row)}"

    def numbered(self, row: int) -> str:
        """Return the name of a row for messages that already name the side."""
        return f"row {row} (datum_id={self.ids[int(self.datum[row])]!r})"

    def form(self) -> Array:
        """Return the column of ``FORMS`` from which each row's pixels are read, int8 [n]."""
        out = np.full(self.frame.height, -1, np.int8)
        for code, name in reversed(list(enumerate(FORMS))):
            if name in self.frame.columns:
                out[self.frame[name].is_not_null().to_numpy()] = code
        return out

    def column(self, name: str) -> list[Any]:
        """Return the values of a column, all None if it is missing."""
        if name not in self.frame.columns:
            return [None] * self.frame.height
        return self.frame[name].to_list()

    def places(self, rows: Array | None = None) -> list[MapRow | None]:
        """Return the source of each row's label map or raster; None for rows without one.

        Args:
            rows: int [m], restricts the rows.

        Raises:
            ReadError: missing files; the message names the first few with their rows.
        """
        if "raster" not in self.frame.columns:
            return [None] * self.frame.height
        values = self.frame["raster"]
        if rows is not None and values.dtype == pl.String:
            wanted = np.zeros(len(values), bool)
            wanted[rows] = True
            values = values.set(pl.Series(~wanted), None)
        bands = self.column("raster_band")
        if values.dtype == pl.String:
            paths, codings = self._paths(values), self.codings()
            return [
                None
                if path is None
                else MapRow(
                    i, self.row, path=path, band=None if band is None else int(band), coding=coding
                )
                for i, (path, band, coding) in enumerate(zip(paths, bands, codings, strict=True))
            ]
        return [
            None if one is None else MapRow(i, self.row, pixels=self._checked(i, one))
            for i, one in enumerate(_arrays(values))
        ]

    def codings(self) -> list[str]:
        """Return the coding of each row's file; empty for indices of labels.

        Raises:
            InputError: an unknown coding.
        """
        found = [one or "" for one in self.column("raster_coding")]
        wrong = [i for i, one in enumerate(found) if one and not is_known(one)]
        if wrong:
            raise InputError(
                f"column 'raster_coding': {count_of(len(wrong), 'row')} with what is not a coding,"
                f" first {self.row(wrong[0])}: {found[wrong[0]]!r}. Known are"
                f" {', '.join((*CODINGS, OWN_COLOURS, GREY))}.",
                code="unknown_name",
                column="raster_coding",
                count=len(wrong),
                value=found[wrong[0]],
            )
        return found

    def _checked(self, row: int, pixels: Array | PackedMap) -> Array | PackedMap:
        if pixels.ndim != 2 or pixels.dtype.kind not in "iub" or not pixels.size:
            raise InputError(
                f"{self.row(row)}: 'raster' holds an array of shape {pixels.shape} of"
                f" {pixels.dtype}; it must be rows of pixels, whole numbers in two dimensions.",
                code="wrong_shape",
                side=self.role,
                column="raster",
                rows=[row],
                shape=pixels.shape,
            )
        return pixels

    def _paths(self, values: pl.Series) -> list[str | None]:
        """Paths as they are found: in the current folder, else in the table's."""
        found: list[str | None] = []
        missing: list[int] = []
        for row, path in enumerate(values.to_list()):
            there = None if path is None else self.files.find(path)
            if path is not None and there is None:
                missing.append(row)
            found.append(there)
        reads({path for path in found if path is not None})
        refused = {
            row: why
            for row, path in enumerate(values.to_list())
            if path is not None and (why := self.files.refusal(path)) is not None
        }
        if refused:
            some = [*refused.items()][:_SHOWN]
            shown = "; ".join(f"{self.row(row)}: {values[row]!r} {why}" for row, why in some)
            n = count_of(len(refused), "path")
            raise InputError(
                f"column 'raster': {n} that may not be opened: {shown}.",
                code="path_refused",
                column="raster",
                count=len(refused),
            )
        if missing:
            shown = "; ".join(f"{self.row(row)}: {values[row]!r}" for row in missing[:_SHOWN])
            tried = "looked for in the current folder"
            if self.files.folder:
                tried = f"neither in the current folder nor in {self.files.folder}"
            raise ReadError(
                f"column 'raster': {count_of(len(missing), 'file')} not there,"
                f" {tried}: {shown}. Paths are taken from the current folder, then"
                " from the table's own; correct them, or leave these rows out.",
                code="file_missing",
                side=self.role,
                column="raster",
                count=len(missing),
                rows=missing[:_SHOWN],
            )
        return found


def _arrays(values: pl.Series) -> list[Array | PackedMap | None]:
    """Pixels of each row as arrays, without copying more than lists demand."""
    if values.dtype == pl.Object:
        kept = (type(None), PackedMap)
        return [one if isinstance(one, kept) else np.asarray(one) for one in values.to_list()]
    if isinstance(values.dtype, pl.Array) and not values.null_count():
        block: Array = values.to_numpy()
        return list(block)
    arrays: list[Array | PackedMap | None] = []
    for row in values:  # lists: each row of pixels is a list of its own
        if row is None:
            arrays.append(None)
            continue
        lines = row if isinstance(row, pl.Series) else pl.Series(row)
        if isinstance(lines.dtype, pl.Array):
            arrays.append(lines.to_numpy())
            continue
        widths = lines.list.len().to_numpy()
        flat = lines.explode(empty_as_null=False, keep_nulls=False).to_numpy()
        width = int(widths[0]) if widths.size else 0
        if (widths != width).any():
            raise InputError(
                f"column 'raster': row {len(arrays)} has lines of {widths.min()} to"
                f" {widths.max()} pixels; all lines of a label map are of one length.",
                code="pixels_uneven",
                column="raster",
                rows=[len(arrays)],
            )
        arrays.append(flat.reshape(len(lines), width))
    return arrays


def side_of(frames: Frames, role: str, datum: Array, ids: pl.Series) -> Side:
    """Return one side of the frames with coded datum ids.

    Args:
        role: name of the side.
        datum: int32 [n], datum code of each row.
        ids: ids of the codes.
    """
    frame = frames.sides[role]
    default = pl.Series("label_key", [DEFAULT_LABEL_KEY], dtype=pl.String)
    key = (
        frame["label_key"]
        if "label_key" in frame.columns
        else default.new_from_index(0, frame.height)
    )
    return Side(role, frame, datum, key, ids, frames.folders.get(role, RasterFiles()))
