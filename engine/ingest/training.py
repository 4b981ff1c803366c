"""The option ``training``: how far series step in it, beside the rows held against that."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.contract import PREDICTIONS, TRAINING, Column, Table
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options
from evalengine.schemas.tables import contracts
from evalengine.schemas.wording import option

from . import dtypes
from .finding import Finder
from .names import Naming
from .problems import Problem, listing, refuse
from .sources.source import Source
from .training_steps import Steps, key_of, read_steps, scored_in_training

_LACKING = "series that the training table does not have"
_LACKING_TARGETS = "series and targets that the training table does not have"
_BEYOND = (
    "series whose steps in training, or the squares of these, are beyond what doubles hold ({}:"
    " measure all values in another unit)"
)


def step_columns(
    task: str,
    tables: dict[str, Table],
    sources: Mapping[str, Source],
    schemas: Mapping[str, Mapping[str, pl.DataType]],
    namings: Mapping[str, Naming],
    options: Options,
) -> None:
    """Give tables the columns that training decides, where metrics read them.

    Args:
        task: whose tables they are.
        tables: role to contract; those columns are changed here.
        sources: role to the table.
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
    steps = read_steps(contracts(task)[TRAINING], options, first)
    for role, column in made:
        own, problems = _own(contracts(task)[role], schemas[role], options, role)
        refuse([one for one in problems if one.column != "time"], {})
        key = _key(steps, own, sources[role], role)
        values, beyond = steps.mean(column.steps)
        expr = pl.lit(values[0], pl.Float64) if key is None else _joined(key, steps.keys, values)
        namings[role].exprs[column.name] = expr.alias(column.name)
        flat = np.flatnonzero((values == 0).fill_null(value=False).to_numpy() & (steps.many > 0))
        if flat.size:
            names = {steps.keys[int(i)]: steps.names[i] for i in flat}
            namings[role].constant = pl.lit("") if key is None else key, names
        lacking = _LACKING if "label_key" not in steps.by else _LACKING_TARGETS
        if beyond:
            lacking = f"{_BEYOND.format(listing(beyond))}, or {lacking}"
        tables[role] = _with(tables[role], msgspec.structs.replace(column, lacking=lacking))
    for role in (PREDICTIONS, made[0][0]):
        own = _own(contracts(task)[role], schemas[role], options, role)[0] if role in tables else {}
        if {*steps.by, "time"} <= own.keys() & {*steps.rows.columns}:
            exprs = {name: value for name, (value, _) in own.items()}
            said = f"{role.replace('_', ' ')}: {'before where, ' if options.where else ''}"
            namings[role].notes += scored_in_training(steps, exprs, sources[role].frame, said)
            break


def _key(
    steps: Steps, own: Mapping[str, tuple[pl.Expr, pl.DataType]], source: Source, role: str
) -> pl.Expr | None:
    """What tells which steps are those of a row; None where all rows have the same."""
    by = [name for name in ("series", "label_key") if name in own]
    where = role.replace("_", " ")
    if ("series" in by) != ("series" in steps.by):
        raise InputError(_one_side(role, has="series" in by))
    here = {name: own[name][0] for name in by}
    if "label_key" in steps.by and "label_key" not in by:
        targets = steps.rows["label_key"].unique()
        if len(targets) > 1:
            raise InputError(
                f"training has {len(targets):,} targets (label_key), and the {where} no column of"
                " them: give it label_key, or give the rows of one target as training."
            )
        here["label_key"] = pl.lit(targets[0])
    if "label_key" in by and "label_key" not in steps.by:
        every = source.frame.select(own["label_key"][0].n_unique())
        many = int(every.collect(engine="streaming").item())
        if many > 1:
            raise InputError(
                f"training has no column label_key, and the {where} has {many:,} targets: give each"
                " its own rows in training, with the column label_key."
            )
    if "series" in by:
        _check_kinds(own["series"][1], steps.rows.schema["series"], role)
    if not steps.by:
        return None
    return key_of([here[name] for name in steps.by])


def _own(
    contract: Table, schema: Mapping[str, pl.DataType], options: Options, role: str
) -> tuple[dict[str, tuple[pl.Expr, pl.DataType]], list[Problem]]:
    """The columns of a table that tell whose steps a row needs, and when it is.

    Returns:
        value and dtype of those that can be read; why others cannot.
    """
    said = {m: to for m, to in (options.columns or {}).items() if m in schema}
    find = Finder(schema, role, said)
    found = {}
    for column in contract.columns:
        if column.name not in ("series", "label_key", "time") or not (own := find.find(column)):
            continue
        dtype = dtypes.canonical_dtype(column, schema[own])
        if dtype is None:
            wrong = dtypes.wrong_type(column, own, schema[own])
            find.problems.append(Problem(role, column.name, wrong))
        else:
            found[column.name] = dtypes.cast(pl.col(own), schema[own], dtype), dtype
    unsure = {one.column for one in find.problems}
    return {name: one for name, one in found.items() if name not in unsure}, find.problems


def _check_kinds(ours: pl.DataType, theirs: pl.DataType, role: str) -> None:
    if (ours == pl.String) != (theirs == pl.String):
        raise InputError(
            f"training: its series are {dtypes.kind_of(theirs)}, those of the"
            f" {role.replace('_', ' ')} {dtypes.kind_of(ours)}. Cast one of them."
        )


def _joined(key: pl.Expr, keys: pl.Series, values: pl.Series) -> pl.Expr:
    """Values by the key of each row, null for those that training does not have."""
    return key.replace_strict(keys, values, default=None, return_dtype=pl.Float64)


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
