"""Slice columns of a table that is read in batches: integers, coded where they were read to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from ...inputs.slices import SlicePlan
from ...tally.datums import dense_groups, lie_close

Array = np.ndarray[Any, Any]

INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)


def slice_columns(plan: SlicePlan, role: str) -> tuple[str, ...] | None:
    """Columns of one table that are its slices, each by itself; None where slices are others."""
    own = tuple(column.meta.output_name() for column in plan.extra.get(role, ()))
    return own if own == plan.by else None


class CodedSlices:
    """Slice columns of all rows, 32 bits each.

    Args:
        names: the columns, of integers.
        rows: how many rows there are.
    """

    def __init__(self, names: Iterable[str], rows: int) -> None:
        self._values = {name: np.empty(rows, np.int32) for name in names}
        self._ends: dict[str, list[int]] = {name: [] for name in self._values}

    def add(self, batch: pl.DataFrame, first: int) -> bool:
        """Take a batch over; false where a value is null or takes more than 32 bits.

        Args:
            batch: some rows.
            first: the number of its first row.
        """
        limits = np.iinfo(np.int32)
        for name, values in self._values.items():
            column = batch[name]
            if column.null_count():
                return False
            if not len(column):
                continue
            found = column.to_numpy()
            low, high = int(found.min()), int(found.max())
            if low < limits.min or high > limits.max:
                return False
            values[first : first + found.size] = found
            self._ends[name] += [low, high]
        return True

    def groups(self) -> dict[str, tuple[Array, list[str]]] | None:
        """Codes of all rows, int32 [n], and names of groups by column; the values are gone then.

        None where values of a column lie far apart.
        """
        found = {}
        for name, values in self._values.items():
            low, high = min(self._ends[name]), max(self._ends[name])
            if not lie_close(low, high, values.size):
                return None
            found[name] = values, dense_groups([values], low, high, values)
        return found
