"""Distinct ids and labels, cheaply where they are small integers, as most are."""

from __future__ import annotations

import polars as pl

from evalengine.schemas.tuning import tuning

from .codes import by_hash
from .marks import Marks, marks_of
from .text_order import text_order

_SPAN = 1 << 22


def distinct(values: pl.Series) -> pl.Series:
    """The distinct values, nulls left out, ascending (strings by bytes).

    Integers that lie close together are marked in a table of flags, which reads the column once.
    Strings, which often repeat, go by their hashes, and only distinct ones are put in order.
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
    """Whether any value but null appears more than once."""
    marks = _marks(values)
    if marks is not None:
        return marks.count < len(values)
    known = values.drop_nulls()
    return not ascending(known) and known.n_unique() < len(known)


def ascending(values: pl.Series) -> bool:
    """Whether values without nulls rise from row to row; the first ones spare most others.

    Args:
        values: of any dtype that has an order.
    """
    for size in (min(1000, len(values)), len(values)):
        if not (values.slice(1, max(0, size - 1)) > values.head(max(0, size - 1))).all():
            return False
    return True


def _marks(values: pl.Series) -> Marks | None:
    """Flags of integers that lie close together; None where they do not."""
    return marks_of(values, max(_SPAN, 2 * len(values)))
