"""The datum ids of one table, held against another's: as much as a question needs, no more."""

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
    """Flags of a bucket's ids, by the name of their column; none where they lie far apart.

    Args:
        frame: all rows of the bucket of one table.
        name: of the column of ids, which may be missing.
        bucket: which.
    """
    marks = _marks(frame[name], bucket) if name in frame.columns else None
    return {} if marks is None else {name: marks}


def _marks(values: pl.Series, bucket: Bucket = ALL) -> Marks | None:
    return marks_of(values, max(_SPAN, _FLAGS * len(values)), bucket)


class Known:
    """The distinct ids of a table.

    Integers are compared as they are. Strings are compared by 64-bit hashes, whose sorting costs
    a fraction of their own; what is asked here are notes and refusals, never numbers.

    Args:
        values: the ids, row by row, without nulls.
        made: their flags, where these were made before.
    """

    def __init__(self, values: pl.Series, made: Marks | None = None) -> None:
        self.values = values
        self._made = made
        self._lacking: dict[int, tuple[Known, Lone]] = {}

    @cached_property
    def marks(self) -> Marks | None:
        """Flags of integers that lie close together; None of other ids."""
        return self._made or _marks(self.values)

    @cached_property
    def coded(self) -> Coded | None:
        """Strings by their distinct values where many repeat; None of other ids."""
        return coded(self.values)

    @property
    def made(self) -> Marks | Coded | None:
        """What coding the ids can start from."""
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
        """What stands for each id in comparisons, each once, ascending."""
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
        """The flags of both, where there are some that compare."""
        ours, theirs = self.marks, other.marks
        if ours is None or theirs is None or ours.bucket != theirs.bucket:
            return None
        return ours, theirs

    def lacking(self, other: Known) -> Lone:
        """The ids that the other table lacks, which checks and notes ask for, found once."""
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
        """The ids, repeated ones once where that is known."""
        return self.values if self.coded is None else self.coded.values

    def first(self, keys: NDArray[Any], most: int) -> list[Any]:
        """The lowest of the ids that some keys stand for."""
        if self.values.dtype.is_integer():
            return pl.Series(keys[:most]).to_list()
        if keys.size == len(self):
            return self._few.unique().bottom_k(most).sort().to_list()
        wanted = self._few.hash(seed=_SEED).is_in(pl.Series(keys).implode())
        return self._few.filter(wanted).unique().bottom_k(most).sort().to_list()


class Lone:
    """Ids of one table that another lacks."""

    def __init__(self, home: Known, keys: NDArray[Any]) -> None:
        self._home = home
        self._keys = keys

    def __len__(self) -> int:
        return int(self._keys.size)

    def first(self, most: int = 5) -> list[Any]:
        """The lowest of them."""
        return self._home.first(self._keys, most) if len(self) else []
