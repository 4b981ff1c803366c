"""Bitmap of the integers in a column, built once.

Repetitions, equality of both sides, and codes of ids all follow from the bitmap, so a column in
random order causes scattered memory access only once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.tuning import tuning

from ..schemas.arrays import Array


class Bucket(NamedTuple):
    """Subset of the integers: one of several buckets, or all.

    Consecutive integers ("a turn") are dealt one to each bucket, starting at a bucket chosen by a
    hash of the turn, so that integers in any steps fill buckets evenly. Each bucket has one integer
    per turn, so the turn identifies and orders its integers, and is as dense as the original range.
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
    """Return the buckets of integers, modulo the number of buckets; arbitrary for nulls; None for
    other columns.

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
    """Return whether all integers of a column fit into signed 64 bits."""
    return column.dtype.is_integer() and column.dtype not in (pl.UInt64, pl.Int128, pl.UInt128)


def _first(turns: Array, of: int) -> Array:
    """The bucket with which each turn begins, int64 [n], by a hash of 32 bits."""
    from ..kernels.datum_hash import hash_integers  # Numba, which runs without buckets do without

    shift = np.uint64(32)
    return ((hash_integers(turns) >> shift) * np.uint64(of) >> shift).view(np.int64)


class Marks(msgspec.Struct, frozen=True, dict=True):
    """Bitmap of an integer column without nulls.

    Attributes:
        flags: bool [span], whether ``low + i`` occurs; the last one does.
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
        """Return the integers that are missing in the other column, ascending, as an array of a
        dtype.
        """
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
    """Build the bitmap of a column; None if it is not an integer column, or would exceed ``room``
    flags.

    Args:
        room: maximum number of flags.
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
    """Return codes of integers, int32 [n].

    Args:
        column: integers without nulls.
        code: int32 [span], the code of each integer from ``low`` on; None for the identity.
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
