"""Distinct ids and labels, fast for small integers."""

from __future__ import annotations

import polars as pl

from evalengine.schemas.tuning import tuning

from .codes import by_hash
from .marks import Marks, marks_of
from .text_order import text_order

_SPAN = 1 << 22


def distinct(values: pl.Series) -> pl.Series:
    """Return the distinct values without nulls, ascending (strings by bytes).

    A narrow range of integers uses a bitmap, which reads the column once. Strings, which often
    repeat, are hashed, and only distinct ones are sorted.
    """
    marks = _marks(values)
    if marks is not None:
        return marks.series(values)
    known = values.drop_nulls()
    if ascending(known):
        return known
    if known.dtype != pl.String or len(known) < tuning().few_rows:
        return known.unique().sort()
    found = known.gather(by_hash(known)[1])
    return found.gather(text_order(found))


def has_repeats(values: pl.Series) -> bool:
    """Return whether any value except null repeats."""
    marks = _marks(values)
    if marks is not None:
        return marks.count < len(values)
    known = values.drop_nulls()
    return not ascending(known) and known.n_unique() < len(known)


def ascending(values: pl.Series) -> bool:
    """Return whether values without nulls strictly ascend; the first rows decide most cases."""
    for size in (min(1000, len(values)), len(values)):
        if not (values.slice(1, max(0, size - 1)) > values.head(max(0, size - 1))).all():
            return False
    return True


def _marks(values: pl.Series) -> Marks | None:
    """Return a bitmap of integers in a narrow range; otherwise None."""
    return marks_of(values, max(_SPAN, 2 * len(values)))
