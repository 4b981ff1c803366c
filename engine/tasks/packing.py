"""Texts as kernels take them: the UTF-8 bytes of a column and their offsets."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..kernels.datum_hash import hash_integers, hash_texts
from ..schemas.arrays import Array


def packed(texts: pl.Series) -> tuple[Array, Array]:
    """UTF-8 bytes of all texts, uint8, and their offsets, int64 [n + 1]."""
    import pyarrow as pa  # here, since tasks without texts do without

    column = pa.array([], pa.large_string())
    if len(texts):
        column = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = column.buffers()
    if offsets is None or not len(column):
        return np.zeros(0, np.uint8), np.zeros(len(column) + 1, np.int64)
    start = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return (np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)), start


def unpacked(data: Array, start: Array) -> pl.Series:
    """The texts of bytes and offsets, without a copy."""
    import pyarrow as pa

    column = pa.LargeStringArray.from_buffers(
        start.size - 1, pa.py_buffer(start), pa.py_buffer(data)
    )
    return pl.Series(pl.from_arrow(column), dtype=pl.String)


def offsets_of(length: Array) -> Array:
    """Offsets of groups of these lengths, int64 [n + 1]."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(length, dtype=np.int64)))


def ragged(start: Array, length: Array) -> Array:
    """The integers of ranges, one after the other."""
    before = np.cumsum(length) - length
    places: Array = np.arange(int(length.sum())) + np.repeat(start - before, length)
    return places


def hashes_of(ids: pl.Series) -> Array:
    """Return hashes of ids, equal on both sides; nulls, reported later, have one too."""
    if ids.dtype.is_integer():
        wide = pl.UInt64() if ids.dtype == pl.UInt64 else pl.Int64()
        return hash_integers(ids.cast(wide).fill_null(0).to_numpy())
    data, offsets = packed(ids.cast(pl.String).fill_null(""))
    return hash_texts(offsets, data)
