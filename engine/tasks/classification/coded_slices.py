"""Slice columns of a table that is read in batches: coded where they were read to.

Integers become codes by a table as long as their range, texts by Polars' own table of categories,
and crossed columns by the codes of each: no text is held but those of groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from ...inputs.slices import SlicePlan, crossed_texts
from ...tally.datums import dense_groups, lie_close

Array = np.ndarray[Any, Any]
Coded = tuple[Array, list[str]]
"""Group code of every row, int32 [n], and the names of the groups, in order."""

SLICED = (
    pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.String,
)  # fmt: skip
"""Dtypes of slice columns that are coded."""

_MOST_TEXTS = 1 << 18  # of a column: they are brought together with those of each batch
_BLOCK = 1 << 16  # rows coded at a time, which stay in a cache


def slice_columns(plan: SlicePlan, role: str) -> tuple[str, ...] | None:
    """Columns of one table that its slices are of; None where some are of another table."""
    own = tuple(column.meta.output_name() for column in plan.extra.get(role, ()))
    return own if own == plan.pieces else None


class CodedSlices:
    """Slice columns of all rows, 32 bits each.

    Args:
        schema: the columns, of dtypes in ``SLICED``.
        rows: how many rows there are.
    """

    def __init__(self, schema: Mapping[str, pl.DataType], rows: int) -> None:
        self._columns: dict[str, _Integers | _Texts] = {
            name: _Texts(rows) if dtype == pl.String else _Integers(rows)
            for name, dtype in schema.items()
        }

    def add(self, batch: pl.DataFrame, first: int) -> bool:
        """Take a batch over; false where a value is null, an integer takes more than 32 bits, or
        more texts differ than are held.

        Args:
            batch: some rows.
            first: the number of its first row.
        """
        for name, column in self._columns.items():
            values = batch[name]
            if values.null_count():
                return False
            if len(values) and not column.add(values, first):
                return False
        return True

    def groups(self, parts: Mapping[str, list[str]]) -> dict[str, Coded] | None:
        """Codes and names of groups by slice; columns can be coded no more then.

        None where integers lie far apart, or crossed columns would have many more groups than rows.

        Args:
            parts: slice to its columns, several where it crosses them.
        """
        coded: dict[str, Coded] = {}
        for name, column in self._columns.items():
            found = column.coded()
            if found is None:
                return None
            coded[name] = found
        out = {}
        for entry, names in parts.items():
            pieces = [coded[piece] for piece in names]
            together = pieces[0] if len(pieces) == 1 else crossed(pieces)
            if together is None:
                return None
            out[entry] = together
        return out


class _Integers:
    """A column of integers.

    Args:
        rows: how many there are.
    """

    def __init__(self, rows: int) -> None:
        self._values = np.empty(rows, np.int32)
        self._low, self._high = 0, -1

    def add(self, column: pl.Series, first: int) -> bool:
        """Take over values, at least one, of rows from ``first`` on; whether 32 bits hold them."""
        limits = np.iinfo(np.int32)
        found = column.to_numpy()
        low, high = int(found.min()), int(found.max())
        if low < limits.min or high > limits.max:
            return False
        self._values[first : first + found.size] = found
        empty = self._high < self._low
        self._low, self._high = (
            (low, high) if empty else (min(self._low, low), max(self._high, high))
        )
        return True

    def coded(self) -> Coded | None:
        """Codes in place of the values, ascending with them; None where these lie far apart."""
        if not lie_close(self._low, self._high, self._values.size):
            return None
        values = self._values
        return values, dense_groups([values], self._low, self._high, values)


class _Texts:
    """A column of texts.

    Args:
        rows: how many there are.
    """

    def __init__(self, rows: int) -> None:
        self._values = np.empty(rows, np.int32)
        self._dtype = pl.Categorical(pl.Categories.random())
        self._seen = pl.Series([], dtype=self._dtype)
        self._size = 0  # physical codes below which all are of texts that were seen

    def add(self, column: pl.Series, first: int) -> bool:
        """Take over values, at least one, of rows from ``first`` on; false if too many differ."""
        found = column.cast(self._dtype)
        physical = found.to_physical().to_numpy()
        highest = int(physical.max())
        if highest >= self._size:
            self._seen = pl.concat([self._seen, found.unique()]).unique()
            if len(self._seen) > _MOST_TEXTS or highest > np.iinfo(np.int32).max:
                return False
            codes = np.sort(self._seen.to_physical().to_numpy())
            gap = np.flatnonzero(codes != np.arange(codes.size))
            self._size = int(gap[0]) if gap.size else codes.size
        self._values[first : first + physical.size] = physical
        return True

    def coded(self) -> Coded:
        """Codes in the order of the texts' bytes, in place of those given as they came."""
        names = self._seen.cast(pl.String)
        order = names.arg_sort().to_numpy()
        physical = self._seen.to_physical().to_numpy()[order]
        code = np.zeros(int(physical.max(initial=np.uint32(0))) + 1, np.int32)
        code[physical] = np.arange(order.size)
        recode(self._values, code)
        return self._values, names.gather(order).to_list()


def recode(values: Array, code: Array) -> None:
    """Codes in place of others.

    Args:
        values: int32 [n], below m, changed.
        code: int32 [m].
    """
    for first in range(0, values.size, _BLOCK):
        here = values[first : first + _BLOCK]
        here[:] = code[here]


def crossed(pieces: list[Coded]) -> Coded | None:
    """Groups of columns together, of those that occur, in the order of their names' bytes.

    Args:
        pieces: the columns, at least one.

    Returns:
        codes and names; None where a table of all that could occur would be longer than a few
        columns.
    """
    sizes = [len(names) for _, names in pieces]
    n = pieces[0][0].size
    total = 1
    for size in sizes:
        total *= size
    if not lie_close(0, total - 1, n) or total > np.iinfo(np.int32).max:
        return None
    joint = pieces[0][0].copy()
    for (codes, _), size in zip(pieces[1:], sizes[1:], strict=True):
        joint *= np.int32(size)
        joint += codes
    present = np.zeros(total, np.bool_)
    for first in range(0, n, _BLOCK):
        present[joint[first : first + _BLOCK]] = True
    found = np.flatnonzero(present)
    places = np.unravel_index(found, sizes)
    names = crossed_texts(
        [
            pl.Series(texts, dtype=pl.String).gather(place)
            for (_, texts), place in zip(pieces, places, strict=True)
        ]
    )
    order = names.arg_sort().to_numpy()
    code = np.zeros(total, np.int32)
    code[found[order]] = np.arange(order.size)
    recode(joint, code)
    return joint, names.gather(order).to_list()
