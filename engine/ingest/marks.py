"""Which integers stand in a column, as a table of flags that is made once and asked many things.

Whether ids repeat, whether both sides have the same, and the codes of ids all follow from the
flags, so a column whose rows are in random order is scattered over memory once, not per question.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.tuning import tuning

Array = np.ndarray[Any, Any]


class Bucket(NamedTuple):
    """Which of the integers are in one of several buckets; all of them in the only one.

    Consecutive integers are dealt out one to each bucket, beginning with another one in each turn,
    which a hash of the turn chooses: integers in whatever steps fill buckets evenly. Each bucket
    has one integer of a turn, so that turns tell its integers apart, in their order, and lie as
    close together as the integers of all buckets.

    Attributes:
        number: which.
        of: how many there are; a turn is an integer divided by it.
    """

    number: int = 0
    of: int = 1

    def integers(self, turns: Array) -> Array:
        """The integers that this bucket has of some turns, int64."""
        if self.of == 1:
            return turns
        place = self.number - _first(turns, self.of)
        place[place < 0] += self.of
        place += turns * self.of
        return place


ALL = Bucket()
"""The only bucket."""


def dealt(column: pl.Series, of: int) -> Array | None:
    """The buckets of integers, modulo how many there are, and some of nulls; None of other columns.

    Args:
        column: any dtype.
        of: number of buckets.

    Returns:
        uint64 [n].
    """
    if not _signed(column):
        return None
    values: Array = column.cast(pl.Int64).fill_null(0).to_numpy()
    turns = values // of
    found: Array = values - turns * of + _first(turns, of)
    return found.view(np.uint64)


def _signed(column: pl.Series) -> bool:
    """Whether 64 bits with a sign hold all integers of a column."""
    return column.dtype.is_integer() and column.dtype not in (pl.UInt64, pl.Int128, pl.UInt128)


def _first(turns: Array, of: int) -> Array:
    """The bucket with which each turn begins, int64 [n], by a hash of 32 bits."""
    from ..kernels.datum_hash import hash_integers  # Numba, which runs without buckets do without

    shift = np.uint64(32)
    return ((hash_integers(turns) >> shift) * np.uint64(of) >> shift).view(np.int64)


class Marks(msgspec.Struct, frozen=True, dict=True):
    """The integers of a column without nulls.

    Attributes:
        low: the lowest; of several buckets its turn.
        flags: bool [span], whether ``low + i`` stands there; the last one does.
        rows: rows of the column.
        bucket: of the column's integers.
    """

    low: int
    flags: Array
    rows: int
    bucket: Bucket = ALL

    @property
    def end(self) -> int:
        """One past the highest, or its turn."""
        return self.low + int(self.flags.size)

    @cached_property
    def count(self) -> int:
        """Distinct integers."""
        return int(np.count_nonzero(self.flags))

    def series(self, like: pl.Series, most: int | None = None) -> pl.Series:
        """The integers, or the lowest ones, ascending, with the name and dtype of a Series."""
        whole = self.count == self.flags.size and self.bucket.of == 1
        if whole and self.end < 1 << 63:  # without a copy in between
            end = self.end if most is None else min(self.low + most, self.end)
            found = pl.int_range(self.low, end, dtype=pl.Int64, eager=True)
            return found.cast(like.dtype).alias(like.name)
        dtype = like.clear().to_numpy().dtype
        few = self._shifted(np.flatnonzero(self.flags)[:most], dtype)
        return pl.Series(like.name, few, dtype=like.dtype)

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
        return self._shifted(np.flatnonzero(self.flags > theirs), dtype)

    def _shifted(self, found: Array, dtype: Any) -> Array:
        """Counts from ``low`` as the integers themselves, whatever sign these have."""
        if self.bucket.of > 1:
            return self.bucket.integers(found + self.low).astype(dtype)
        out = found.astype(dtype, copy=False)
        out += np.dtype(dtype).type(self.low)
        return out


def span_of(column: pl.Series) -> tuple[int, int]:
    """The lowest integer of a column that has rows and no nulls, and one past the highest."""
    low, high = column.min(), column.max()
    assert isinstance(low, int)
    assert isinstance(high, int)
    return low, high + 1


def marks_of(column: pl.Series, room: int, bucket: Bucket = ALL) -> Marks | None:
    """Flags of a column; None where it is no column of integers, or they need more than ``room``.

    Args:
        column: any dtype, any number of chunks.
        room: flags at most.
        bucket: that all of its integers are in.
    """
    if not column.dtype.is_integer() or column.null_count() or not len(column):
        return None
    if bucket.of > 1 and not _signed(column):
        return None
    low, end = span_of(column)
    low, end = low // bucket.of, (end - 1) // bucket.of + 1
    if end - low > room:
        return None
    if end - low <= 2:  # the lowest and the highest are there, and nothing else can be
        return Marks(low, np.ones(end - low, np.bool_), len(column), bucket)
    flags = np.zeros(end - low, np.bool_)
    for _, block in _blocks(column, bucket.of):
        flags[block - signed(low)] = True
    return Marks(low, flags, len(column), bucket)


def codes_of(column: pl.Series, low: int, code: Array | None, of: int = 1) -> Array:
    """Codes of integers, int32 [n].

    Args:
        column: integers without nulls.
        low: the integer that the first code is of.
        code: int32 [span], the code of each integer from ``low`` on; None where integers counted
            from ``low`` are their own codes.
        of: number of buckets, of whose turns ``low`` is one.
    """
    out = np.empty(len(column), np.int32)
    for first, block in _blocks(column, of):
        here = out[first : first + block.size]
        if code is None:
            np.subtract(block, signed(low), out=here, casting="unsafe")
        else:
            np.take(code, block - signed(low), out=here)
    return out


def signed(value: int) -> int:
    """An integer of 64 bits as the signed one of the same bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _blocks(column: pl.Series, of: int) -> Iterator[tuple[int, Array]]:
    """First row and int64 values, or turns, of short pieces; unsigned ones keep their bits."""
    first = 0
    for chunk in column.get_chunks():
        values = chunk.to_numpy()
        rows = tuning().block_rows
        for at in range(0, values.size, rows):
            block = values[at : at + rows]
            if block.dtype == np.uint64:
                yield first + at, block.view(np.int64)
            else:
                block = block.astype(np.int64, copy=False)
                yield first + at, block if of == 1 else block // of
        first += values.size
