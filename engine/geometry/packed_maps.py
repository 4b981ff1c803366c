"""Compressed label maps, for collecting many batches in memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array

_LEVEL = 1  # of zlib: neighbouring pixels are alike, and more effort saves little


class PackedMap(msgspec.Struct, frozen=True):
    """Compressed label map of whole numbers [h, w].

    Attributes:
        packed: pixels, row-major, zlib-compressed.
    """

    packed: bytes
    shape: tuple[int, int]
    code: str

    ndim = 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the pixels."""
        return np.dtype(self.code)

    @property
    def size(self) -> int:
        """Pixels."""
        return self.shape[0] * self.shape[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The pixels, read-only unless they are copied."""
        found = np.frombuffer(zlib.decompress(self.packed), self.dtype).reshape(self.shape)
        return found if dtype is None else found.astype(dtype)


_COLUMNS = {"packed": pl.Binary, "height": pl.Int64, "width": pl.Int64, "code": pl.String}


def packed(maps: Iterable[Any]) -> pl.Series:
    """Arrays [h, w] of whole numbers as a column of structs, compressed."""
    found = [np.asarray(one) for one in maps]
    rows = [(zlib.compress(one.tobytes(), _LEVEL), *one.shape, one.dtype.str) for one in found]
    frame = pl.DataFrame(rows, schema=_COLUMNS, orient="row")
    return frame.to_struct("raster")


def unpacked(column: pl.Series) -> pl.Series:
    """Convert the result of :func:`packed` to a column of :class:`PackedMap`."""
    rows = column.struct.unnest().iter_rows()
    maps = [PackedMap(pixels, (height, width), code) for pixels, height, width, code in rows]
    return pl.Series(column.name, maps, dtype=pl.Object)
