"""Columns of nested lists and strings as flat arrays, zero-copy if Arrow allows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..schemas.arrays import Array


def as_lists(column: pl.Series) -> pl.Series:
    """The column with lists in place of arrays of fixed length."""
    dtype = _listed(column.dtype)
    return column if dtype == column.dtype else column.cast(dtype)


def _listed(dtype: pl.DataType) -> pl.DataType:
    if isinstance(dtype, pl.Array):
        # an array of several dimensions names its scalar type, not its rows
        for _ in range(len(dtype.shape) - 1):
            dtype = dtype.inner  # type: ignore[assignment]
            return pl.List(_listed(dtype))
        return pl.List(_listed(dtype.inner))  # type: ignore[arg-type]
    if isinstance(dtype, pl.List):
        return pl.List(_listed(dtype.inner))  # type: ignore[arg-type]
    return dtype


def depth_of(dtype: pl.DataType) -> tuple[int, pl.DataType]:
    """Return the number of list levels of a dtype, and its innermost dtype."""
    levels = 0
    listed = _listed(dtype)
    while isinstance(listed, pl.List):
        levels += 1
        listed = listed.inner  # type: ignore[assignment]
    return levels, listed


def flat(column: pl.Series) -> tuple[pl.Series, list[Array]]:
    """Return the innermost values of nested lists, and the offsets of every level from outside in.

    Args:
        column: lists, of lists and so on; nulls count as empty.

    Returns:
        the innermost values, with their nulls; int64 [n + 1], [sum of lengths + 1], ...
    """
    import pyarrow as pa

    array: Any = as_lists(column).rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    offsets = []
    while pa.types.is_large_list(array.type):
        at = np.frombuffer(array.buffers()[1], np.int64)[array.offset :][: len(array) + 1]
        at = np.zeros(1, np.int64) if not len(array) else at
        first, last = int(at[0]), int(at[-1])
        offsets.append(at - first if first else at)
        array = array.values.slice(first, last - first)
    return pl.Series(pl.from_arrow(array)), offsets


def characters(column: pl.Series) -> tuple[Array, Array]:
    """Bytes of strings or binaries without nulls: uint8, and their offsets int64 [n + 1]."""
    if not column.len():
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    array: Any = column.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = array.buffers()
    at = np.frombuffer(offsets, np.int64)[array.offset :][: len(array) + 1]
    return np.frombuffer(data or b"", np.uint8), at


def strings(data: Array, offset: Array) -> pl.Series:
    """A column of strings from ASCII characters and their offsets."""
    import pyarrow as pa

    array = pa.LargeStringArray.from_buffers(
        offset.size - 1, pa.py_buffer(np.ascontiguousarray(offset)), pa.py_buffer(data)
    )
    return pl.Series(pl.from_arrow(array))
