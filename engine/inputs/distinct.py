"""Distinct ids and labels, cheaply where they are small integers, as most are."""

from __future__ import annotations

import polars as pl

from .codes import by_hash
from .marks import FEW, Marks, marks_of
from .text_order import text_order

_SPAN = 1 << 22


def distinct(values: pl.Series) -> pl.Series:
    """The distinct values, nulls left out, ascending (strings by bytes).

    Integers that lie close together are marked in a table of flags, which reads the column once;
    anything else goes through a hash table.
    """
    marks = _marks(values)
    if marks is None:
        known = values.drop_nulls()
        plain = known.dtype != pl.String and not known.dtype.is_integer()
        if plain or len(known) < FEW:
            return known.unique().sort()
        if ascending(known, strictly=True):
            return known
        found = known.gather(by_hash(known)[1])
        return found.gather(text_order(found)) if found.dtype == pl.String else found.sort()
    return marks.series(values)


def has_repeats(values: pl.Series) -> bool:
    """Whether any value but null stands more than once."""
    marks = _marks(values)
    if marks is not None:
        return marks.count < len(values)
    known = values.drop_nulls()
    return not ascending(known, strictly=True) and known.n_unique() < len(known)


def ascending(values: pl.Series, *, strictly: bool = False) -> bool:
    """Whether values without nulls stand in order; a look at the first ones spares most others.

    Args:
        values: of any dtype that has an order.
        strictly: whether equal neighbours are out of order.
    """
    for size in (min(1000, len(values)), len(values)):
        if size < 2:
            return True
        above, below = values.slice(0, size - 1), values.slice(1, size - 1)
        if not ((below > above) if strictly else (below >= above)).all():
            return False
    return True


def _marks(values: pl.Series) -> Marks | None:
    """Flags of integers that lie close together; None where they do not."""
    return marks_of(values, max(_SPAN, 2 * len(values)))


def union(parts: list[pl.Series]) -> pl.Series:
    """All values of several distinct series, distinct and ascending."""
    return parts[0] if len(parts) == 1 else distinct(pl.concat(parts))
