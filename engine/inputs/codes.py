"""Ids to dense codes: after this step nothing sees a string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

Array = np.ndarray[Any, Any]

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
    return _by_runs(columns)


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
    shifted = [array if lowest == 0 else array - lowest for array in arrays]
    present = np.zeros(length, bool)
    for array in shifted:
        present[array] = True
    code = np.cumsum(present, dtype=np.int32)
    code -= 1
    values = np.flatnonzero(present).astype(arrays[0].dtype) + arrays[0].dtype.type(lowest)
    return values, [code.take(array) for array in shifted]


def _by_runs(columns: Sequence[pl.Series]) -> tuple[pl.Series, list[Array]]:
    """Codes by way of runs of equal neighbours, which are few where rows stand datum by datum."""
    runs: list[tuple[pl.Series, Array | None]] = []
    for column in columns:
        changed = (column != column.shift(1)).fill_null(True)
        n_runs = int(changed.sum() or 0)
        if n_runs * 2 < len(column):
            starts = np.flatnonzero(changed.to_numpy())
            runs.append((column.gather(starts), np.diff(np.r_[starts, len(column)])))
        else:
            runs.append((column, None))
    values = pl.concat([run.unique() for run, _ in runs]).unique().sort()
    table = pl.DataFrame({"value": values, "code": np.arange(len(values), dtype=np.int32)})
    codes = []
    for run, lengths in runs:
        joined = run.to_frame("value").join(table, on="value", how="left", maintain_order="left")
        code = joined["code"].to_numpy()
        codes.append(code if lengths is None else np.repeat(code, lengths))
    return values, codes
