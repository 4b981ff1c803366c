"""Columns of the datums as conditions that slices are made of: column = value, or a range."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..ingest.problems import count_of, listing
from ..schemas.arrays import Array
from ..schemas.wording import sql_name

BINS = 10
_OTHER = (pl.Binary, pl.Object, pl.Null, pl.Duration)  # that conditions in SQL cannot be made of
_FEW = 20  # distinct whole numbers up to which each is a value of its own


class Condition(msgspec.Struct, frozen=True):
    """One condition on a column of the datums.

    Attributes:
        said: for display, such as ``weather = rain``.
        sql: in the syntax of ``where``.
    """

    column: str
    said: str
    sql: str


class Conditions(msgspec.Struct, frozen=True):
    """All conditions of a search.

    Attributes:
        every: the conditions, grouped by column.
        column: int32 [conditions], column number of each.
        code: int32 [columns, datums], the condition that each datum fulfils, -1 for none.
        notes: remarks on the columns.
    """

    every: list[Condition]
    column: Array
    code: Array
    notes: list[str]


def conditions_of(table: pl.DataFrame, least: int, bins: int = BINS) -> Conditions:
    """Make conditions from the columns of a table with one row per datum.

    Numbers and times with many values are cut at quantiles. A missing value is a value. Values of
    fewer than ``least`` datums make no condition.

    Args:
        table: columns of strings, categories, booleans, numbers, dates and times.
        least: minimum number of datums per slice.
        bins: number of ranges per numeric column.
    """
    every: list[Condition] = []
    of_column: list[int] = []
    codes: list[Array] = []
    cut, rare, other = [], [], []
    for name in table.columns:
        values = table[name]
        if values.dtype.is_nested() or values.dtype in _OTHER:
            other.append(name)
            continue
        if values.dtype.is_decimal():
            values = values.cast(pl.Float64)
        ranges = _is_many(values)
        made, code = _ranges(values, bins) if ranges else _values(values)
        size = np.bincount(code, minlength=len(made))
        kept = np.flatnonzero(size >= least)
        if not kept.size or (kept.size == 1 and len(made) == 1):
            rare.append(name)
            continue
        if ranges:
            cut.append(name)
        place = np.full(len(made), -1, np.int32)
        place[kept] = np.arange(kept.size) + len(every)
        every += [made[i] for i in kept]
        of_column += [len(codes)] * kept.size
        codes.append(place[code])
    notes = []
    if cut:
        notes.append(f"cut at quantiles into up to {bins} ranges: {listing(cut)}.")
    if rare:
        notes.append(
            f"left out, since no value parts at least {least:,} datums from others:"
            f" {listing(rare)}."
        )
    if other:
        notes.append(
            f"left out: {count_of(len(other), 'column')} without plain values: {listing(other)}."
        )
    return Conditions(
        every,
        np.array(of_column, np.int32),
        np.array(codes, np.int32).reshape(len(codes), table.height),
        notes,
    )


def _is_many(values: pl.Series) -> bool:
    if values.dtype.is_temporal() or values.dtype.is_float():
        return values.n_unique() > BINS
    return values.dtype.is_integer() and values.n_unique() > _FEW


def _literal(value: Any) -> str:
    if isinstance(value, (bool, int, float)):
        return str(value).lower() if isinstance(value, bool) else repr(value)
    return "'" + str(value).replace("'", "''") + "'"


def _values(values: pl.Series) -> tuple[list[Condition], Array]:
    """A condition for each value, ascending, missing ones last; and which each datum fulfils."""
    name = values.name
    if isinstance(values.dtype, (pl.Categorical, pl.Enum)):
        values = values.cast(pl.String)
    values, missing = _without_nan(values)
    found = values.drop_nulls().unique().sort()
    made = [
        Condition(name, f"{name} = {value}", f"{sql_name(name)} = {_literal(value)}")
        for value in found.to_list()
    ]
    table = pl.DataFrame({"value": found, "code": np.arange(len(found), dtype=np.int64)})
    joined = values.to_frame("value").join(table, on="value", how="left", maintain_order="left")
    code = joined["code"].fill_null(len(found)).to_numpy()
    return [*made, Condition(name, f"{name} is missing", missing)], code


def _without_nan(values: pl.Series) -> tuple[pl.Series, str]:
    """Replace NaN by null; also return the SQL for missing values (in SQL NaN sorts above all
    numbers).
    """
    column = sql_name(values.name)
    if not values.dtype.is_float() or not values.is_nan().any():
        return values, f"{column} IS NULL"
    known = values.fill_nan(None)
    high = known.max()
    if high is None:
        return known, f"({column} IS NULL OR {column} IS NOT NULL)"
    return known, f"({column} IS NULL OR {column} > {_literal(high)})"


def _ranges(values: pl.Series, bins: int) -> tuple[list[Condition], Array]:
    """Ranges between quantiles that occur, missing values last; and in which each datum is."""
    name = values.name
    unknown = values.dtype.is_float() and values.is_nan().any()
    values, missing = _without_nan(values)
    known = values.drop_nulls().sort()
    at = np.unique(np.arange(1, bins) * len(known) // bins)
    first = known[0]
    edges = [edge for edge in known.gather(at).unique().sort().to_list() if edge != first]
    code = np.zeros(len(values), np.int64)
    for edge in edges:
        code += (values >= edge).fill_null(value=False).to_numpy()
    code[values.is_null().to_numpy()] = len(edges) + 1
    column, made = sql_name(name), []
    for low, high in zip([None, *edges], [*edges, None], strict=True):
        parts = [f"{column} >= {_literal(low)}"] if low is not None else []
        parts += [f"{column} < {_literal(high)}"] if high is not None else []
        if high is None and unknown:
            parts.append(f"{column} <= {_literal(known[-1])}")
        if low is None:
            said = f"{name} < {_told(high)}" if high is not None else f"any {name}"
        else:
            said = f"{name} >= {_told(low)}"
            if high is not None:
                said = f"{_told(low)} <= {name} < {_told(high)}"
        made.append(Condition(name, said, " AND ".join(parts) or f"{column} IS NOT NULL"))
    return [*made, Condition(name, f"{name} is missing", missing)], code


def _told(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
