"""Column recognition: which of a table's columns is which of the contract's."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import polars as pl

from evalengine.schemas import tables
from evalengine.schemas.errors import InputError, OptionError, did_you_mean, unknown
from evalengine.schemas.tables import Table

from . import dtypes
from .boxes import CORNER_NAMES, find_boxes
from .finding import Finder
from .problems import Note, Problem, as_python

_BOX_COLUMNS = (*CORNER_NAMES, "box_width", "box_height", "bbox")


class Naming(msgspec.Struct):
    """How one table's columns become the contract's.

    Attributes:
        exprs: canonical name to an expression over the table's own columns, of canonical dtype.
        recognised: own name to canonical name, for those that differ.
        problems: what is missing, ambiguous or of the wrong type.
        notes: what was left unused.
    """

    exprs: dict[str, pl.Expr]
    recognised: dict[str, str]
    problems: list[Problem]
    notes: list[Note]


def check_columns(
    columns: Mapping[str, str] | None, schemas: Mapping[str, tuple[Mapping[str, object], Table]]
) -> None:
    """Hold ``columns=`` against all tables at once.

    Args:
        columns: own name to canonical name.
        schemas: side to its own columns and its contract.

    Raises:
        InputError: a name that no table has.
        OptionError: a target that is no column of the contract.
    """
    if not columns:
        return
    here = {name for schema, _ in schemas.values() for name in schema}
    known = {column.name for _, table in schemas.values() for column in table.columns}
    for original, target in columns.items():
        if target not in known:
            flipped = ""
            if original in known and target in here:
                way = as_python({target: original})
                flipped = f" The own name stands first: columns={way}."
            raise OptionError(
                f"columns=: {unknown('column of the contract', target, known)}{flipped}"
            )
        if original not in here:
            there = "; ".join(
                f"{side.replace('_', ' ')}: {', '.join(schema) or 'none'}"
                for side, (schema, _) in schemas.items()
            )
            raise InputError(
                f"columns=: no table has a column {original!r}."
                f"{did_you_mean(original, here)} Columns there: {there}."
            )


def recognise(
    schema: Mapping[str, pl.DataType],
    table: Table,
    columns: Mapping[str, str] | None = None,
    box_format: str | None = None,
) -> Naming:
    """Recognise a table's columns: exact names, then ``columns=``, then aliases.

    Args:
        schema: the table's own columns.
        table: the contract.
        columns: what the user said, own name to canonical name; wins over everything.
        box_format: what a list column of boxes holds.
    """
    contract = {column.name: column for column in table.columns}
    said = {
        mine: target
        for mine, target in (columns or {}).items()
        if mine in schema and target in contract
    }
    find = Finder(schema, table.side, said)
    has_boxes = all(name in contract for name in CORNER_NAMES)
    plain = [column for column in table.columns if not (has_boxes and column.name in _BOX_COLUMNS)]
    found: dict[str, str] = {}
    for column in plain:
        name = find.exact(column.name)
        if name is not None:
            found[column.name] = name
    # Boxes first, so that an alias of something else never takes one of their columns.
    boxes = find_boxes(find, box_format) if has_boxes else None
    for column in plain:
        if column.name not in found:
            name = find.by_alias(column)
            if name is not None:
                found[column.name] = name
            elif column in table.required:
                find.missing(column)
    exprs: dict[str, pl.Expr] = {}
    for column in plain:
        if column.name not in found:
            continue
        mine = found[column.name]
        dtype = dtypes.canonical_dtype(column, schema[mine])
        if dtype is None:
            message = dtypes.wrong_type(column, mine, schema[mine])
            find.problems.append(Problem(table.side, column.name, message))
        else:
            exprs[column.name] = dtypes.cast(pl.col(mine), schema[mine], dtype)
    recognised = {mine: name for name, mine in found.items() if mine != name}
    if boxes is not None:
        exprs |= boxes.exprs
        recognised |= boxes.recognised
    order = [*contract, *(name for name in exprs if name not in contract)]
    exprs = {name: exprs[name].alias(name) for name in order if name in exprs}
    return Naming(exprs, recognised, find.problems, boxes.notes if boxes else [])


def point_out_swap(
    namings: Mapping[str, Naming], schemas: Mapping[str, Mapping[str, object]]
) -> None:
    """If the predictions lack a score that the ground truths have, ask whether they are swapped."""
    ours = namings[tables.PREDICTIONS]
    known = {name.casefold() for name in (tables.SCORE.name, *tables.SCORE.aliases)}
    theirs = [name for name in schemas[tables.GROUND_TRUTHS] if name.casefold() in known]
    for i, problem in enumerate(ours.problems):
        if problem.column == tables.SCORE.name and theirs and " is missing" in problem.message:
            hint = f" The ground truths have {theirs[0]!r}: are the two tables swapped?"
            ours.problems[i] = msgspec.structs.replace(problem, message=problem.message + hint)
