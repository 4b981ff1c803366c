"""Datum ids of one table, computed lazily for comparison with another."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .codes import Coded, coded
from .distinct import distinct
from .marks import ALL, Bucket, Marks, marks_of

_SEED = 20_000_003
_SPAN = 1 << 22  # flags that any table may have
_FLAGS = 8  # flags per id that it may have beyond that


def marks_in_bucket(frame: pl.DataFrame, name: str, bucket: Bucket) -> dict[str, Marks]:
    """Return a bitmap of a bucket's ids, by the name of their column; empty if their range is too
    wide.
    """
    marks = _marks(frame[name], bucket) if name in frame.columns else None
    return {} if marks is None else {name: marks}


def _marks(values: pl.Series, bucket: Bucket = ALL) -> Marks | None:
    return marks_of(values, max(_SPAN, _FLAGS * len(values)), bucket)


class Known:
    """Distinct ids of a table.

    Integers are compared directly. Strings are compared by 64-bit hashes, which sort much faster;
    the results are used only in notes and errors, never in numbers.

    Args:
        values: the ids, row by row, without nulls.
    """

    def __init__(self, values: pl.Series, made: Marks | None = None) -> None:
        self.values = values
        self._made = made
        self._lacking: dict[int, tuple[Known, Lone]] = {}

    @cached_property
    def marks(self) -> Marks | None:
        """Bitmap of integers in a narrow range; otherwise None."""
        return self._made or _marks(self.values)

    @cached_property
    def coded(self) -> Coded | None:
        """Distinct values of strings if many repeat; otherwise None."""
        return coded(self.values)

    @property
    def made(self) -> Marks | Coded | None:
        """Precomputed bitmap or distinct values for encoding."""
        return self.coded if self.marks is None else self.marks

    @cached_property
    def ordered(self) -> pl.Series:
        """The ids themselves, each once, ascending."""
        if self.coded is not None:
            return self.coded.values.sort()
        return distinct(self.values) if self.marks is None else self.marks.series(self.values)

    def lowest(self, most: int) -> pl.Series:
        """The lowest of the ids, ascending."""
        if self.marks is None:
            return self.ordered.head(most)
        return self.marks.series(self.values, most)

    @cached_property
    def keys(self) -> NDArray[Any]:
        """Comparison key of each id (integer or hash), distinct, ascending."""
        if self.values.dtype.is_integer():
            return self.ordered.to_numpy()
        told = self.values if self.coded is None else self.coded.values
        hashed = told.hash(seed=_SEED).to_numpy(writable=True)
        hashed.sort()
        first = np.ones(hashed.size, dtype=np.bool_)
        np.not_equal(hashed[1:], hashed[:-1], out=first[1:])
        return hashed if first.all() else hashed[first]

    def __len__(self) -> int:
        return int(self.keys.size) if self.marks is None else self.marks.count

    def _flags(self, other: Known) -> tuple[Marks, Marks] | None:
        """Return the bitmaps of both, if they are comparable."""
        ours, theirs = self.marks, other.marks
        if ours is None or theirs is None or ours.bucket != theirs.bucket:
            return None
        return ours, theirs

    def lacking(self, other: Known) -> Lone:
        """Return the ids that the other table does not have; cached."""
        if id(other) not in self._lacking:
            self._lacking[id(other)] = other, self._not_in(other)
        return self._lacking[id(other)][1]

    def _not_in(self, other: Known) -> Lone:
        if (flags := self._flags(other)) is not None:
            dtype = self.values.clear().to_numpy().dtype
            return Lone(self, flags[0].lacking(flags[1], dtype))
        ours, theirs = self.keys, other.keys
        if self is other or (ours.size == theirs.size and bool((ours == theirs).all())):
            return Lone(self, ours[:0])
        if theirs.size == 0:
            return Lone(self, ours)
        place = np.searchsorted(theirs, ours)
        np.minimum(place, theirs.size - 1, out=place)
        return Lone(self, ours[theirs[place] != ours])

    @property
    def _few(self) -> pl.Series:
        """Return the ids, deduplicated if they are dictionary-encoded."""
        return self.values if self.coded is None else self.coded.values

    def first(self, keys: NDArray[Any], most: int) -> list[Any]:
        """Return the lowest ids for some keys."""
        if self.values.dtype.is_integer():
            return pl.Series(keys[:most]).to_list()
        if keys.size == len(self):
            return self._few.unique().bottom_k(most).sort().to_list()
        wanted = self._few.hash(seed=_SEED).is_in(pl.Series(keys).implode())
        return self._few.filter(wanted).unique().bottom_k(most).sort().to_list()


class Lone:
    """Ids of one table that are missing in another."""

    def __init__(self, home: Known, keys: NDArray[Any]) -> None:
        self._home = home
        self._keys = keys

    def __len__(self) -> int:
        return int(self._keys.size)

    def first(self, most: int = 5) -> list[Any]:
        """The lowest of them."""
        return self._home.first(self._keys, most) if len(self) else []
