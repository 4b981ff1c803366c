"""Cells, the results of metrics: numbers on named axes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..schemas.arrays import Array

TOO_LARGE = "beyond the largest number, 1.8e308"
"""Reason of numbers that overflow, or the end of it."""


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """Array of numbers on named axes; each cell becomes one row.

    Attributes:
        axes: names of the axes, in order: ``group``, ``label`` and ``key`` are codes, the others
            output columns, or ``level``, which has no column.
        values: output column -> its value at each index of the axis of that name.
        columns: output column -> array broadcastable to the axes' shape (NaN for undefined) or
            a constant.
        keep: bool of that shape, cells that become rows. None keeps all.
        reason: why ``value`` is undefined if it is NaN; an array of strings, broadcastable to the
            shape, if it differs between cells.
        always: show ``reason`` for defined values too, as a remark on skipped input; empty strings
            are ignored.
        unfit: why its numbers have no interval of any kind; empty if they can have one.
        codes: further codes by name (``group``, ``label``, ``key``), arrays of the axes' shape, if
            one row of cells contains points of several curves, all of them kept.
    """

    axes: tuple[str, ...]
    values: dict[str, Sequence[Any]] = {}
    columns: dict[str, Array | str | float | None]
    shape: tuple[int, ...]
    keep: Array | None = None
    reason: Array | str | None = None
    always: bool = False
    unfit: str = ""
    codes: dict[str, Array] = {}

    @property
    def _leading_mask(self) -> Array:
        """``keep`` over the leading axes that it depends on; the rest are kept whole."""
        if self.keep is None:
            return np.ones((), bool)
        keep = self.keep.reshape(*[1] * (len(self.shape) - self.keep.ndim), *self.keep.shape)
        depth = max((a + 1 for a, length in enumerate(keep.shape) if length != 1), default=0)
        lead = keep.reshape(keep.shape[:depth])
        return np.broadcast_to(lead, self.shape[:depth])

    @property
    def place(self) -> tuple[Any, ...]:
        """Key that is equal for cells with the same rows in the same order."""
        values = tuple((a, tuple(self.values[a])) for a in self.axes if a in self.values)
        mask = self._leading_mask
        codes = tuple((name, array.tobytes()) for name, array in self.codes.items())
        return self.axes, self.shape, mask.shape, mask.tobytes(), values, codes

    def index(self) -> dict[str, Array]:
        """Index along each axis, uint32, one entry per kept cell."""
        mask = self._leading_mask
        tail = self.shape[mask.ndim :]
        inside = math.prod(tail)
        where = np.nonzero(mask) if mask.ndim else ()
        outside = where[0].size if where else int(mask)
        columns = [np.repeat(codes.astype(np.uint32), inside) for codes in where]
        for a, length in enumerate(tail):
            codes = np.repeat(np.arange(length, dtype=np.uint32), math.prod(tail[a + 1 :]))
            columns.append(np.tile(codes, outside * math.prod(tail[:a])))
        code_columns = {name: array.ravel().astype(np.uint32) for name, array in self.codes.items()}
        return dict(zip(self.axes, columns, strict=True)) | code_columns

    def rows(self) -> dict[str, Array]:
        """The columns that are arrays, one entry per kept cell."""
        mask = self._leading_mask
        no_gaps = bool(mask.all())
        full = {
            name: column if column.shape == self.shape else np.broadcast_to(column, self.shape)
            for name, column in {**self.columns, "reason": self.reason}.items()
            if isinstance(column, np.ndarray)
        }
        return {
            name: (column if no_gaps else column[mask]).reshape(-1) for name, column in full.items()
        }


def parameters(**values: Any) -> str:
    """Return the ``parameters`` column: JSON of values without a separate column."""
    tidy = {
        name: [round(v, 10) for v in value] if isinstance(value, tuple) else value
        for name, value in values.items()
    }
    return json.dumps(tidy)
