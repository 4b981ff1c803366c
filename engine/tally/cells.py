"""Cells: numbers on named axes, which is what a metric returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

Array = np.ndarray[Any, Any]


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """An array of numbers, each of which becomes one row.

    Attributes:
        axes: names of the axes, in order: ``group``, ``label`` and ``key`` stand for codes, the
            others are output columns, or ``level``, which makes no column.
        values: output column -> its value at each index of the axis of that name.
        columns: output column -> array broadcastable to the axes' shape (NaN for undefined) or
            a constant.
        keep: bool of that shape; other cells make no row. None keeps all.
        reason: why ``value`` is undefined where it is NaN.
        codes: further codes by name (``group``, ``label``, ``key``), arrays of the axes' shape,
            where points of several curves stand in one row of cells.
    """

    axes: tuple[str, ...]
    values: dict[str, Sequence[Any]] = {}
    columns: dict[str, Array | str | float | None]
    shape: tuple[int, ...]
    keep: Array | None = None
    reason: str | None = None
    codes: dict[str, Array] = {}

    def rows(self) -> tuple[dict[str, Array], dict[str, Array | str | float | None]]:
        """Index along each axis, and the columns, one entry per kept cell."""
        keep = (
            np.ones(self.shape, bool)
            if self.keep is None
            else np.broadcast_to(self.keep, self.shape)
        )
        where = np.nonzero(keep)
        columns = {
            name: np.broadcast_to(column, self.shape)[where]
            if isinstance(column, np.ndarray)
            else column
            for name, column in self.columns.items()
        }
        codes = {name: array[where] for name, array in self.codes.items()}
        return dict(zip(self.axes, where, strict=True)) | codes, columns
