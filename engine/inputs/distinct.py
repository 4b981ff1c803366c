"""Distinct ids and labels, cheaply where they are small integers, as most are."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .codes import FEW, by_hash

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
        return known.gather(by_hash(known)[1]).sort()
    low, flags = marks
    found = np.flatnonzero(flags)
    if low:
        found = found.astype(np.uint64 if low > 0 else np.int64) + low  # type: ignore[assignment]
    return pl.Series(values.name, found, dtype=values.dtype)


def has_repeats(values: pl.Series) -> bool:
    """Whether any value but null stands more than once."""
    marks = _marks(values)
    if marks is not None:
        return int(np.count_nonzero(marks[1])) < len(values)
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


def _marks(values: pl.Series) -> tuple[int, NDArray[np.bool_]] | None:
    """The lowest value and a flag per integer from there on; None where that would not pay."""
    if not values.dtype.is_integer() or values.null_count() or len(values) == 0:
        return None
    chunks = [chunk.to_numpy() for chunk in values.get_chunks()]
    if chunks[0].itemsize <= 2:  # one flag for every value there can be
        low, top = (min(int(c.min()) for c in chunks), max(int(c.max()) for c in chunks))
        if top - low <= 1:  # both are there, and nothing else
            return low, np.ones(top - low + 1, dtype=np.bool_)
        low = int(np.iinfo(chunks[0].dtype).min)
        flags = np.zeros(1 << (8 * chunks[0].itemsize), dtype=np.bool_)
        for chunk in chunks:
            flags[chunk.view(f"u{chunk.itemsize}")] = True
        return low, np.roll(flags, -low)
    # Read as unsigned, a negative number is a huge one: one pass finds whether all are small.
    high = max(int(chunk.view(f"u{chunk.itemsize}").max()) for chunk in chunks if chunk.size)
    low = 0
    if high >= _SPAN:
        low = min(int(chunk.min()) for chunk in chunks if chunk.size)
        high = max(int(chunk.max()) for chunk in chunks if chunk.size)
    span = high - low + 1
    if span > max(_SPAN, 2 * len(values)):
        return None
    flags = np.zeros(span, dtype=np.bool_)
    for chunk in chunks:
        flags[chunk - low if low else chunk] = True
    return low, flags


def only_in(first: pl.Series, second: pl.Series) -> pl.Series:
    """Values of the first that the second lacks; both distinct, ascending, of one dtype."""
    if first.dtype.is_integer() and second.dtype.is_integer():
        if len(second) == 0:
            return first
        a, b = first.to_numpy(), second.to_numpy()
        place = np.minimum(np.searchsorted(b, a), len(b) - 1)
        return pl.Series(first.name, a[b[place] != a], dtype=first.dtype)
    return first.filter(~first.is_in(second.implode()))


def union(parts: list[pl.Series]) -> pl.Series:
    """All values of several distinct series, distinct and ascending."""
    return parts[0] if len(parts) == 1 else distinct(pl.concat(parts))
