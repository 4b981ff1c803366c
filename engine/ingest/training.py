"""The option ``training``: how far series step in it, beside the rows held against that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.contract import TRAINING, Column, Table
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options
from evalengine.schemas.tables import contracts
from evalengine.schemas.training import HeldTable
from evalengine.schemas.wording import option

from . import dtypes
from .finding import Finder
from .names import Naming, recognise
from .problems import Note, count_of, listing, note_of, refuse
from .sources.tables import open_source, schema_of

Array = np.ndarray[Any, Any]

_LACKING = "series that the training table does not have"
_ONE = "__one"


def step_columns(
    task: str,
    tables: dict[str, Table],
    schemas: Mapping[str, Mapping[str, pl.DataType]],
    namings: Mapping[str, Naming],
    options: Options,
) -> None:
    """Give tables the columns that training decides, where metrics read them.

    Args:
        task: whose tables they are.
        tables: role to contract; those columns are changed here.
        schemas: role to own columns.
        namings: role to what they were recognised as; expressions and notes are added here.
        options: ``training`` and ``seasonality``.

    Raises:
        InputError: a training table that cannot be used, or columns that say the same.
    """
    if options.training is None or TRAINING not in contracts(task):
        return
    made = [
        (role, column)
        for role, table in tables.items()
        for column in table.optional
        if column.steps
    ]
    for role, column in made:
        if column.name in namings[role].exprs:
            raise InputError(
                f"{option('training')} and the column {column.name!r} of the"
                f" {role.replace('_', ' ')} say the same thing: leave one of them out."
            )
    if not made:
        return
    first = next(iter(namings.values()))
    steps = _read(contracts(task)[TRAINING], options, first)
    for role, column in made:
        series, dtype = _series_of(contracts(task)[role], schemas[role], options, role)
        values = pl.Series(steps.mean(column.steps))
        if steps.series is None or series is None:
            if (steps.series is None) != (series is None):
                raise InputError(_one_side(role, has=series is not None))
            expr = pl.lit(values[0], pl.Float64)
        else:
            _check_kinds(dtype, steps.series.dtype, role)
            expr = _joined(series, steps.series, values)
        namings[role].exprs[column.name] = expr.alias(column.name)
        tables[role] = _with(tables[role], msgspec.structs.replace(column, lacking=_LACKING))


class _Steps(msgspec.Struct, frozen=True):
    """Steps of the series of a training table.

    Attributes:
        series: of what; None where the table has no such column.
        code: int64 [n], place of the series of each step.
        step: float64 [n].
        many: int64 [series], steps of each.
    """

    series: pl.Series | None
    code: Array
    step: Array
    many: Array

    def mean(self, power: int) -> Array:
        """Mean of a power of the steps of each series, exact, float64; 0 where it has none."""
        from evalengine.kernels.sums import ExactSums

        total = ExactSums(self.many.size).add(np.abs(self.step) ** power, self.code).rounded()
        return np.divide(total, self.many, out=np.zeros(total.size), where=self.many > 0)


def _read(contract: Table, options: Options, told: Naming) -> _Steps:
    """The steps of a training table, a season apart.

    Args:
        contract: of the table.
        options: ``training``, ``seasonality`` and ``columns``.
        told: whose notes become the table's.
    """
    given = options.training
    thing = given.table if isinstance(given, HeldTable) else given
    source = open_source(list(thing) if isinstance(thing, tuple) else thing)
    schema = schema_of(source)
    columns = {m: to for m, to in (options.columns or {}).items() if to in contract.names}
    naming = recognise(schema, contract, columns)
    refuse(naming.problems, {TRAINING: source.description})
    rows = source.frame.select(list(naming.exprs.values())).collect()
    by = [name for name in ("series", "time") if name in rows.columns]
    wrong = rows.select(
        pl.col("target").is_null() | ~pl.col("target").is_finite(),
        *(pl.col(name).is_null() for name in by),
    )
    _refuse_rows(wrong, source.description)
    if "time" not in by:
        said = "training: without a column of time, values of a series follow each other as rows do"
        told.notes.append(Note("training_in_row_order", f"{said}."))
    elif (n := int(rows.select(pl.struct(by).is_duplicated().sum()).item())) > 0:
        twice = rows.filter(pl.struct(by).is_duplicated()).select(by).row(0)
        raise InputError(
            f"training ({source.description}): {count_of(n, 'row')} of one series at one time,"
            f" first {listing(twice)}. Each time may appear once in a series; was a file read"
            f" twice?"
        )
    rows = rows.sort(by, maintain_order=True)
    season = options.seasonality or 1
    value = rows["target"].to_numpy()
    names = rows["series"] if "series" in by else pl.Series(_ONE, [""] * rows.height)
    series = names.unique().sort()
    code = names.rank("dense").to_numpy().astype(np.int64) - 1
    ahead, back = slice(season, None), slice(None, max(rows.height - season, 0))
    same = code[ahead] == code[back]
    step = (value[ahead] - value[back])[same]
    many = np.bincount(code[ahead][same], minlength=len(series))
    if short := series.gather(np.flatnonzero(many == 0)).to_list():
        what = f"of no more than {count_of(season, 'value')} in training, whose scale is 0"
        told.notes.append(note_of("short_training", len(short), ("series", "series", what), short))
    return _Steps(series if "series" in by else None, code[ahead][same], step, many)


def _refuse_rows(wrong: pl.DataFrame, description: str) -> None:
    n = int(wrong.select(pl.any_horizontal(pl.all()).sum()).item())
    if n or not wrong.height:
        first = wrong.with_row_index("row").filter(pl.any_horizontal(pl.exclude("row")))["row"]
        what = f"{count_of(n, 'row')} with a null or a value that is not finite, first (rows count"
        raise InputError(
            f"training ({description}): "
            + (f"{what} from 0): {listing(first.head(3).to_list())}." if n else "no rows.")
            + " Repair or remove them."
        )


def _series_of(
    contract: Table, schema: Mapping[str, pl.DataType], options: Options, role: str
) -> tuple[pl.Expr | None, pl.DataType]:
    """The column of series of a table, None where there is none, and its dtype."""
    column = next(one for one in contract.columns if one.name == "series")
    said = {m: to for m, to in (options.columns or {}).items() if m in schema}
    find = Finder(schema, role, said)
    own = find.find(column)
    refuse(find.problems, {})
    if own is None:
        return None, pl.Null()
    dtype = dtypes.canonical_dtype(column, schema[own])
    if dtype is None:
        raise InputError(dtypes.wrong_type(column, own, schema[own]))
    return dtypes.cast(pl.col(own), schema[own], dtype), dtype


def _check_kinds(ours: pl.DataType, theirs: pl.DataType, role: str) -> None:
    if (ours == pl.String) != (theirs == pl.String):
        raise InputError(
            f"training: its series are {dtypes.kind_of(theirs)}, those of the"
            f" {role.replace('_', ' ')} {dtypes.kind_of(ours)}. Cast one of them."
        )


def _joined(key: pl.Expr, series: pl.Series, values: pl.Series) -> pl.Expr:
    """Values by the series of each row, null for those that training does not have."""
    return key.replace_strict(series, values, default=None, return_dtype=pl.Float64)


def _one_side(role: str, *, has: bool) -> str:
    where, other = ("training table", role.replace("_", " "))
    lacks, with_it = (where, other) if has else (other, where)
    return (
        f"training: the {with_it} has a column of series and the {lacks} has none. Give both the"
        f" series, or say which column it is: {option('columns', {'mine': 'series'})}."
    )


def _with(table: Table, column: Column) -> Table:
    optional = tuple(column if one.name == column.name else one for one in table.optional)
    return msgspec.structs.replace(table, optional=optional)
