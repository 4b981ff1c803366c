"""Encoding of ids as dense codes; later steps handle only codes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.tuning import tuning

from ..schemas.arrays import Array
from .marks import ALL, Marks, codes_of, marks_of, span_of
from .text_order import text_order

_OTHER_SEED = 0x9E3779B97F4A7C15
_SAMPLE = 20_000  # strings looked at to see whether they repeat, spread out or in a row
_DISTINCT = 0.7  # share of them that may differ
_SPREAD = 8  # a table of codes is used while the range of integers is at most this many per row


class Coded(msgspec.Struct, frozen=True):
    """Dictionary-encoded column of strings, if there are few distinct values.

    Attributes:
        values: the distinct values, in order of first appearance.
        codes: int32 [n], index in ``values``.
    """

    values: pl.Series
    codes: Array


def coded(column: pl.Series) -> Coded | None:
    """Dictionary-encode strings; None if samples show too few repetitions."""
    if column.dtype != pl.String or len(column) < tuning().few_rows:
        return None
    # A spread sample finds repetitions in unsorted columns, a contiguous one in sorted columns.
    spread = column.gather_every(max(1, len(column) // _SAMPLE)).head(_SAMPLE)
    together = column.slice((len(column) - _SAMPLE) // 2 if len(column) > _SAMPLE else 0, _SAMPLE)
    if all(some.n_unique() > _DISTINCT * len(some) for some in (spread, together)):
        return None
    codes, rows = by_hash(column)
    return Coded(column.gather(rows), codes)


def encode(
    columns: list[pl.Series],
    made: Sequence[Marks | Coded | None] = (),
    *,
    used_up: bool = False,
) -> tuple[pl.Series, list[Array]]:
    """Encode the distinct values of several columns, in ascending order of value.

    Args:
        columns: Series of one dtype, integer or String, without nulls. Strings are ordered by their
            UTF-8 bytes.
        made: precomputed flags, or distinct values, of the first columns; None for others.
        used_up: allow emptying the list, to free long columns early.

    Returns:
        the distinct values, ascending; int32 codes of each column.
    """
    made = [*made, *[None] * (len(columns) - len(made))]
    if columns[0].dtype.is_integer():
        marks = [one if isinstance(one, Marks) else None for one in made]
        found = _table(columns if used_up else [*columns], marks)
        if found is not None:
            return found
    known = [one if isinstance(one, Coded) else None for one in made]
    if any(known):
        return _by_values(columns, known)
    return _by_hash(columns)


def _by_values(
    columns: Sequence[pl.Series], known: Sequence[Coded | None]
) -> tuple[pl.Series, list[Array]]:
    """Codes of columns of which some are known by their distinct values already."""
    short = [
        column if one is None else one.values for column, one in zip(columns, known, strict=True)
    ]
    values, codes = _by_hash(short)
    return values.alias(columns[0].name), [
        new if one is None else new.take(one.codes) for new, one in zip(codes, known, strict=True)
    ]


def _table(
    columns: list[pl.Series], made: Sequence[Marks | None]
) -> tuple[pl.Series, list[Array]] | None:
    """Encode by a lookup table as long as the range of values; None if that is too long.

    Empties the list on success.
    """
    filled = [(column, marks) for column, marks in zip(columns, made, strict=True) if len(column)]
    if not filled:
        return None
    buckets = {ALL if marks is None else marks.bucket for _, marks in filled}
    if len(buckets) > 1:  # flags that do not compare
        filled, buckets = [(column, None) for column, _ in filled], {ALL}
    (bucket,) = buckets
    ends = [span_of(c) if marks is None else (marks.low, marks.end) for c, marks in filled]
    low, end = min(first for first, _ in ends), max(last for _, last in ends)
    n_rows = sum(len(column) for column in columns)
    if end - low > _SPREAD * n_rows + 1024:
        return None
    present: Array | None = None
    for column, marks in filled:
        found = marks or marks_of(column, end - low)
        assert found is not None
        flags = found.within(low, end)
        present = flags if present is None else present | flags
    assert present is not None
    filled.clear()
    del column  # or the last one would stay
    like = columns[0].clear()  # a slice would keep the whole column
    code: Array | None = None
    if not present.all():  # else integers counted from the lowest are their own codes
        code = np.cumsum(present, dtype=np.int32)
        code -= 1
    codes = []
    while columns:
        codes.append(codes_of(columns.pop(0), low, code, bucket.of))
    return Marks(low, present, n_rows, bucket).series(like), codes


def _by_hash(columns: Sequence[pl.Series]) -> tuple[pl.Series, list[Array]]:
    """Codes by way of hashes, which are compared instead of the values."""
    every = columns[0] if len(columns) == 1 else pl.concat([c.alias("value") for c in columns])
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    if len(every) < tuning().few_rows:  # a join of few rows costs less than loading the kernel
        every = every.alias("value")
        found = every.unique().sort()
        table = pl.DataFrame({"value": found, "code": np.arange(len(found), dtype=np.int32)})
        joined = every.to_frame().join(table, on="value", how="left", maintain_order="left")
        return found.alias(columns[0].name), np.split(joined["code"].to_numpy(), cuts)
    codes, rows = by_hash(every)
    values = every.gather(rows)
    order = text_order(values) if values.dtype == pl.String else values.arg_sort().to_numpy()
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    codes = place.take(codes)
    return values.gather(order).alias(columns[0].name), np.split(codes, cuts)


def by_hash(values: pl.Series) -> tuple[Array, Array]:
    """Return codes in order of first appearance, int32 [n], and the first row of each, int64 [k].

    Args:
        values: integers or strings without nulls.
    """
    from ..kernels.hash_codes import hash_codes  # Numba, which few rows do without

    return hash_codes(*_hashes(values))


def _hashes(values: pl.Series) -> tuple[Array, Array]:
    """Return two hashes of every value, uint64 [n]; the second of an integer is the integer
    itself.
    """
    first = values.hash(seed=0).to_numpy()
    if values.dtype.is_integer():
        return first, values.cast(pl.Int64, wrap_numerical=True).to_numpy().view(np.uint64)
    return first, values.hash(seed=_OTHER_SEED).to_numpy()
