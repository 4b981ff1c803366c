"""Ids to dense codes: after this step nothing sees a string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

Array = np.ndarray[Any, Any]

FEW = 50_000  # rows up to which a table is hashed by Polars
_OTHER_SEED = 0x9E3779B97F4A7C15
_SPREAD = 8  # a table of codes is used while the range of integers is at most this many per row


def encode(columns: Sequence[pl.Series]) -> tuple[pl.Series, list[Array]]:
    """One code for each distinct value over several columns, in ascending order of value.

    Args:
        columns: Series of one dtype, integer or String, without nulls. Strings are ordered by
            their UTF-8 bytes.

    Returns:
        the distinct values, ascending; int32 codes of each column.
    """
    if columns[0].dtype.is_integer():
        arrays = [column.to_numpy() for column in columns]
        found = _table(arrays)
        if found is not None:
            values, codes = found
            return pl.Series(columns[0].name, values, dtype=columns[0].dtype), codes
    return _by_hash(columns)


def _table(arrays: list[Array]) -> tuple[Array, list[Array]] | None:
    """Codes by looking values up in a table as long as their range; None if that is too long."""
    filled = [array for array in arrays if array.size]
    if not filled:
        return None
    lowest = min(int(array.min()) for array in filled)
    highest = max(int(array.max()) for array in filled)
    length = highest - lowest + 1
    if length > _SPREAD * sum(array.size for array in arrays) + 1024:
        return None
    shifted = [array if lowest == 0 else array.astype(np.int64) - lowest for array in arrays]
    present = np.zeros(length, bool)
    for array in shifted:
        present[array] = True
    if present.all():  # the codes are the values themselves, counted from the lowest
        values = np.arange(lowest, highest + 1, dtype=arrays[0].dtype)
        return values, [array.astype(np.int32) for array in shifted]
    code = np.cumsum(present, dtype=np.int32)
    code -= 1
    values = np.flatnonzero(present).astype(arrays[0].dtype) + arrays[0].dtype.type(lowest)
    return values, [code.take(array) for array in shifted]


def _by_hash(columns: Sequence[pl.Series]) -> tuple[pl.Series, list[Array]]:
    """Codes by way of hashes, which are compared instead of the values."""
    every = columns[0] if len(columns) == 1 else pl.concat([c.alias("value") for c in columns])
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    if len(every) < FEW:  # a join of few rows costs less than loading the kernel
        every = every.alias("value")
        found = every.unique().sort()
        table = pl.DataFrame({"value": found, "code": np.arange(len(found), dtype=np.int32)})
        joined = every.to_frame().join(table, on="value", how="left", maintain_order="left")
        return found.alias(columns[0].name), np.split(joined["code"].to_numpy(), cuts)
    codes, rows = by_hash(every)
    values = every.gather(rows)
    order = values.arg_sort().to_numpy()
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    codes = place.take(codes)
    return values.gather(order).alias(columns[0].name), np.split(codes, cuts)


def by_hash(values: pl.Series) -> tuple[Array, Array]:
    """Codes in order of first appearance, int32 [n], and the first row of each, int64 [k].

    Args:
        values: integers or strings without nulls.
    """
    from ..kernels.hash_codes import hash_codes  # Numba, which few rows do without

    return hash_codes(*_hashes(values))


def _hashes(values: pl.Series) -> tuple[Array, Array]:
    """Two hashes of every value, uint64 [n]; the second one of an integer is the integer itself.

    Args:
        values: integers or strings without nulls.
    """
    first = values.hash(seed=0).to_numpy()
    if values.dtype.is_integer():
        return first, values.cast(pl.Int64, wrap_numerical=True).to_numpy().view(np.uint64)
    return first, values.hash(seed=_OTHER_SEED).to_numpy()
