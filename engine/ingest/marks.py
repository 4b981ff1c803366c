"""Which integers stand in a column, as a table of flags that is made once and asked many things.

Whether ids repeat, whether both sides have the same, and the codes of ids all follow from the
flags, so a column whose rows are in random order is scattered over memory once, not per question.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.tuning import tuning

Array = np.ndarray[Any, Any]


class Marks(msgspec.Struct, frozen=True, dict=True):
    """The integers of a column without nulls.

    Attributes:
        low: the lowest.
        flags: bool [span], whether ``low + i`` stands there; the last one does.
        rows: rows of the column.
    """

    low: int
    flags: Array
    rows: int

    @property
    def end(self) -> int:
        """One past the highest."""
        return self.low + int(self.flags.size)

    @cached_property
    def count(self) -> int:
        """Distinct integers."""
        return int(np.count_nonzero(self.flags))

    def series(self, like: pl.Series) -> pl.Series:
        """The integers, ascending, with the name and dtype of a Series."""
        if self.count == self.flags.size and self.end < 1 << 63:  # without a copy in between
            return (
                pl.int_range(self.low, self.end, dtype=pl.Int64, eager=True)
                .cast(like.dtype)
                .alias(like.name)
            )
        dtype = like.clear().to_numpy().dtype
        found = _shifted(np.flatnonzero(self.flags), self.low, dtype)
        return pl.Series(like.name, found, dtype=like.dtype)

    def within(self, low: int, end: int) -> Array:
        """The flags of the integers from ``low`` to below ``end``, bool [end - low]."""
        if low == self.low and end == self.end:
            return self.flags
        out = np.zeros(end - low, np.bool_)
        first, last = max(low, self.low), min(end, self.end)
        if first < last:
            out[first - low : last - low] = self.flags[first - self.low : last - self.low]
        return out

    def lacking(self, other: Marks, dtype: Any) -> Array:
        """The integers that the other column lacks, ascending, as an array of a dtype."""
        theirs = other.within(self.low, self.end)
        if theirs is other.flags and np.array_equal(self.flags, theirs):
            return np.zeros(0, dtype)
        return _shifted(np.flatnonzero(self.flags > theirs), self.low, dtype)

    def meets(self, other: Marks) -> bool:
        """Whether any integer stands in both columns."""
        first, last = max(self.low, other.low), min(self.end, other.end)
        return first < last and bool((self.within(first, last) & other.within(first, last)).any())


def _shifted(found: Array, low: int, dtype: Any) -> Array:
    """Counts from ``low`` as the integers themselves, whatever sign these have."""
    out = found.astype(dtype, copy=False)
    out += np.dtype(dtype).type(low)
    return out


def span_of(column: pl.Series) -> tuple[int, int]:
    """The lowest integer of a column that has rows and no nulls, and one past the highest."""
    low, high = column.min(), column.max()
    assert isinstance(low, int)
    assert isinstance(high, int)
    return low, high + 1


def marks_of(column: pl.Series, room: int) -> Marks | None:
    """Flags of a column; None where it is no column of integers, or they need more than ``room``.

    Args:
        column: any dtype, any number of chunks.
        room: flags at most.
    """
    if not column.dtype.is_integer() or column.null_count() or not len(column):
        return None
    low, end = span_of(column)
    if end - low > room:
        return None
    if end - low <= 2:  # the lowest and the highest are there, and nothing else can be
        return Marks(low, np.ones(end - low, np.bool_), len(column))
    flags = np.zeros(end - low, np.bool_)
    for _, block in _blocks(column):
        flags[block - signed(low)] = True
    return Marks(low, flags, len(column))


def codes_of(column: pl.Series, low: int, code: Array | None) -> Array:
    """Codes of integers, int32 [n].

    Args:
        column: integers without nulls.
        low: the integer that the first code is of.
        code: int32 [span], the code of each integer from ``low`` on; None where integers counted
            from ``low`` are their own codes.
    """
    out = np.empty(len(column), np.int32)
    for first, block in _blocks(column):
        here = out[first : first + block.size]
        if code is None:
            np.subtract(block, signed(low), out=here, casting="unsafe")
        else:
            np.take(code, block - signed(low), out=here)
    return out


def signed(value: int) -> int:
    """An integer of 64 bits as the signed one of the same bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _blocks(column: pl.Series) -> Iterator[tuple[int, Array]]:
    """First row and int64 values of short pieces; unsigned ones keep their bits."""
    first = 0
    for chunk in column.get_chunks():
        values = chunk.to_numpy()
        rows = tuning().block_rows
        for at in range(0, values.size, rows):
            block = values[at : at + rows]
            if block.dtype == np.uint64:
                yield first + at, block.view(np.int64)
            else:
                yield first + at, block.astype(np.int64, copy=False)
        first += values.size
