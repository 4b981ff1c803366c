"""Detection of repeated keys by the cheapest sufficient proof of uniqueness.

Most keys are proved unique by their order or by a bitmap, others by distinct hashes. The exact
check, several times slower, runs only if these fail.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evalengine.schemas.tuning import tuning

from .distinct import ascending
from .marks import Marks, marks_of

_FLAGS = 8  # flags per row that a table of them may have at most


def rows_repeat(
    frame: pl.DataFrame, key: Sequence[str], made: dict[str, Marks] | None = None
) -> bool:
    """Return whether any key is in more than one row."""
    made = {} if made is None else made
    columns = [frame[name] for name in key]
    if frame.height < 2:
        return False
    if not any(column.null_count() for column in columns):
        columns = [column for column in columns if not _constant(column)]
        if not columns:
            return True
        if any(ascending(column) for column in columns) or _in_order(columns):
            return False
        if any(_all_marked(column, made) for column in columns[: len(columns) - 1]):
            return False
        marked = _marked(columns, made)
        if marked is not None:
            return marked < frame.height
        if _hashes_differ(columns):
            return False
    return bool(frame.select(key).is_duplicated().any())


def _constant(column: pl.Series) -> bool:
    return bool(column[-1] == column[0]) and bool((column == column[0]).all())


def _in_order(columns: Sequence[pl.Series]) -> bool:
    """Return whether the rows are in strict lexicographic order of several columns."""
    if len(columns) == 1:
        return False  # asked already
    at, size = 0, 1000  # a look at the first few spares most others
    while at < len(columns[0]) - 1:
        if not _rise([column.slice(at, size + 1) for column in columns]):
            return False
        at, size = at + size, tuning().pair_rows
    return True


def _rise(columns: Sequence[pl.Series]) -> bool:
    """Return whether a few rows are in strict lexicographic order of the columns."""
    equal: pl.Series | None = None  # in all columns before
    for column in columns[:-1]:
        above, below = column.head(len(column) - 1), column.slice(1)
        same = above == below
        # Testing texts for equality is much faster than ordering them.
        changed = ~same if equal is None else equal & ~same
        if not (below.filter(changed) > above.filter(changed)).all():
            return False
        equal = same if equal is None else equal & same
    last = columns[-1]
    later = last.slice(1) > last.head(len(last) - 1)
    return bool((later if equal is None else later | ~equal).all())


def _all_marked(column: pl.Series, made: dict[str, Marks]) -> bool:
    """Return whether integers are all distinct, if their range allows it."""
    if not column.dtype.is_integer():
        return False
    low, high = column.min(), column.max()
    assert isinstance(low, int)
    assert isinstance(high, int)
    return high - low >= len(column) - 1 and _marked([column], made) == len(column)


def _marked(columns: Sequence[pl.Series], made: dict[str, Marks]) -> int | None:
    """Count the distinct rows of integers by a bitmap; None if that would be too large."""
    if not all(column.dtype.is_integer() for column in columns):
        return None
    room = max(1 << 22, _FLAGS * len(columns[0]))
    if len(columns) == 1:
        marks = made.get(columns[0].name) or marks_of(columns[0], room)
        if marks is None:
            return None
        made[columns[0].name] = marks
        return marks.count
    ranges: list[tuple[int, int]] = []
    for column in columns:
        low, high = column.min(), column.max()
        assert isinstance(low, int)
        assert isinstance(high, int)
        ranges.append((low, high - low + 1))
        room //= high - low + 1
        if room == 0:
            return None
    place: NDArray[np.int64] | None = None
    for column, (low, span) in zip(columns, ranges, strict=True):
        shifted = column.to_numpy() - np.array(low, dtype=column.to_numpy().dtype)
        place = shifted.astype(np.int64, copy=False) if place is None else place * span + shifted
    assert place is not None
    flags = np.zeros(int(np.prod([span for _, span in ranges])), dtype=np.bool_)
    flags[place] = True
    return int(np.count_nonzero(flags))


def _hashes_differ(columns: Sequence[pl.Series]) -> bool:
    """Return whether 64-bit hashes of the rows are all distinct, which implies distinct rows."""
    return pl.DataFrame(columns).hash_rows().n_unique() == len(columns[0])
