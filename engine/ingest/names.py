"""Column recognition: which of a table's columns is which of the contract's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS, Column, Table
from evalengine.schemas.errors import InputError, OptionError, did_you_mean, unknown
from evalengine.schemas.wording import option

from . import dtypes
from .finding import Finder, turned
from .ids import formed
from .meeting import LABEL_COLUMNS
from .problems import Note, Problem
from .shapes import SHAPES
from .wide import find_wide


class Naming(msgspec.Struct):
    """Mapping of one table's columns to the contract's.

    Attributes:
        exprs: canonical name to an expression of canonical dtype.
        recognised: name in the input to canonical name, if they differ.
        wide: contracts of score columns, if each label has one.
        constant: series that never change in training: the key of a row, and their names by key.
    """

    exprs: dict[str, pl.Expr]
    recognised: dict[str, str]
    problems: list[Problem]
    notes: list[Note]
    wide: tuple[Column, ...] = ()
    labels: tuple[Any, ...] = ()
    constant: tuple[pl.Expr, dict[Any, str]] | None = None

    @property
    def used(self) -> set[str]:
        """Own names of the columns that are read."""
        return {name for expr in self.exprs.values() for name in expr.meta.root_names()}


def check_columns(
    columns: Mapping[str, str] | None, schemas: Mapping[str, tuple[Mapping[str, object], Table]]
) -> None:
    """Check ``columns=`` against all tables at once.

    Args:
        columns: name in the input to canonical name.
        schemas: side to its columns and its contract.

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
            if said := turned(columns, here, [table for _, table in schemas.values()]):
                raise OptionError(said, code="columns_turned")
            before = f"{option('columns')}: "
            raise unknown("column of the contract", target, known, before=before)
        if original not in here:
            there = "; ".join(
                f"{side.replace('_', ' ')}: {', '.join(schema) or 'none'}"
                for side, (schema, _) in schemas.items()
            )
            raise InputError(
                f"{option('columns')}: no table has a column {original!r}."
                f"{did_you_mean(original, here)} Columns there: {there}.",
                code="column_missing",
                column=original,
            )


def recognise(
    schema: Mapping[str, pl.DataType],
    table: Table,
    columns: Mapping[str, str] | None = None,
    box_format: str | None = None,
    angle_format: str | None = None,
    score_columns: Any = None,
    id_format: Sequence[str] | None = None,
    label_format: Sequence[str] | None = None,
) -> Naming:
    """Recognise a table's columns: exact names, then ``columns=``, then aliases.

    Args:
        columns: the user's mapping, name in the input to canonical name; takes precedence.
        score_columns: columns of one label's score each, if the contract allows it.
    """
    contract = {column.name: column for column in table.columns}
    said = {
        mine: target
        for mine, target in (columns or {}).items()
        if mine in schema and target in contract
    }
    find = Finder(schema, table.side, said)
    shape = SHAPES[table.shape]
    wide = find_wide(find, score_columns) if score_columns is not None and table.wide else {}
    plain = [column for column in table.columns if column.name not in shape.together]
    found: dict[str, str] = {}
    for column in plain:
        name = find.exact(column.name)
        if name is not None:
            found[column.name] = name
    # The shape first, so that an alias of something else never takes one of its columns.
    boxes = shape.find(find, box_format, angle_format) if shape.find is not None else None
    for column in plain:
        if column.name not in found:
            name = find.by_alias(column)
            if name is not None:
                found[column.name] = name
            elif column in table.required:
                find.missing(column)
    if table.any_of and not any(name in found for name in table.any_of):
        find.problems.append(_none_of(find, table))
    found |= {name: own for name, (_, own, _) in wide.items()}
    columns_of_wide = tuple(column for column, _, _ in wide.values())
    exprs: dict[str, pl.Expr] = {}
    for column in (*plain, *columns_of_wide):
        if column.name not in found:
            continue
        mine = found[column.name]
        dtype = dtypes.canonical_dtype(column, schema[mine])
        if dtype is None:
            message = dtypes.wrong_type(column, mine, schema[mine])
            find.problems.append(Problem(table.side, column.name, message, kind="wrong_dtype"))
        else:
            exprs[column.name] = dtypes.cast(pl.col(mine), schema[mine], dtype)
            forms = id_format if column.name == table.datum else None
            if column.name in LABEL_COLUMNS:
                forms = label_format
            if forms:
                exprs[column.name] = formed(exprs[column.name], dtype, table, column, forms)
    recognised = {mine: name for name, mine in found.items() if mine != name}
    if boxes is not None:
        exprs |= boxes.exprs
        recognised |= boxes.recognised
    order = [*contract, *(name for name in exprs if name not in contract)]
    exprs = {name: exprs[name].alias(name) for name in order if name in exprs}
    return Naming(
        exprs,
        recognised,
        find.problems,
        boxes.notes if boxes else [],
        columns_of_wide,
        tuple(label for _, _, label in wide.values()),
    )


def unread(
    schema: Mapping[str, pl.DataType], naming: Naming, table: Table, sliced: Sequence[str]
) -> list[Note]:
    """Return notes on unread columns that a user may expect to count."""
    used, notes = naming.used, []
    for column, reason in table.unread:
        known = {name.casefold() for name in (column.name, *column.aliases)}
        idle = [n for n in schema if n.casefold() in known and n not in used and n not in sliced]
        if idle:
            said = f"{table.side.replace('_', ' ')}: column {idle[0]!r} is not read: {reason}."
            notes.append(Note("unread_column", said, len(idle)))
    return notes


def _none_of(find: Finder, table: Table) -> Problem:
    """Make the problem for a table without any of several alternative columns."""
    known = {column.name: column for column in table.columns}
    ways = []
    for name in table.any_of:
        if name in known:
            also = ", ".join(known[name].aliases[:3])
            ways.append(f"{name!r} ({also}, ...)" if also else repr(name))
    if table.wide:
        ways.append(f"one column of scores per label, named in {option('score_columns')}")
    there = ", ".join(find.schema) or "none"
    return Problem(
        find.side,
        table.any_of[0],
        f"{table.lack}: needed is {', or '.join(ways)}. Columns there: {there}. If one of"
        f" them is it, write {option('columns', {'mine': table.any_of[0]})}.",
        kind="column_missing",
    )


def one_way(
    namings: Mapping[str, Naming], contracts: Mapping[str, Table], *, by_rule: bool = False
) -> None:
    """Drop columns that another column makes redundant.

    Rows of both sides are matched by the first suitable column that both have.

    Args:
        namings: side to its recognised columns.
        contracts: side to its contract.
        by_rule: whether a matching rule was given, so that the last one is read.
    """
    for role, naming in namings.items():
        for first, second in contracts[role].instead:
            if first in naming.exprs:
                naming.exprs.pop(second, None)
    if not {PREDICTIONS, GROUND_TRUTHS} <= namings.keys():
        return
    ours, theirs = namings[PREDICTIONS], namings[GROUND_TRUTHS]
    ways = contracts[PREDICTIONS].either
    if by_rule:
        ways = ways[::-1]
    both = [name for name in ways if name in ours.exprs and name in theirs.exprs]
    for naming in (ours, theirs):
        for name in ways:
            if both and name != both[0]:
                naming.exprs.pop(name, None)
    mine, other = ([name for name in ways if name in side.exprs] for side in (ours, theirs))
    if mine and other and not both:
        ours.problems.append(
            Problem(
                PREDICTIONS,
                mine[0],
                f"the predictions have {mine[0]!r}, the ground truths {other[0]!r}: there is no"
                f" id to match by. Give both sides {' or both sides '.join(map(repr, ways))}.",
                kind="no_common_id",
            )
        )


def _bears(schema: Mapping[str, object], table: Table, own: Table) -> bool:
    """Return whether a table has a required column of another contract that this one does not
    know.
    """
    needed = [one for one in table.columns if one in table.required or one.name in table.any_of]
    known = {name for one in needed for name in (one.name, *one.aliases)}
    known -= {name for one in own.columns for name in (one.name, *one.aliases)}
    return any(name.casefold() in known for name in schema)


def point_out_swap(
    namings: Mapping[str, Naming],
    schemas: Mapping[str, Mapping[str, object]],
    contracts: Mapping[str, Table],
) -> None:
    """Ask about swapped tables if the predictions are missing a column that only the ground truths
    have.
    """
    if not {PREDICTIONS, GROUND_TRUTHS} <= namings.keys():
        return
    ours = namings[PREDICTIONS]
    for side, other in ((PREDICTIONS, GROUND_TRUTHS), (GROUND_TRUTHS, PREDICTIONS)):
        if side == GROUND_TRUTHS and not _bears(schemas[side], contracts[other], contracts[side]):
            continue
        for column in contracts[side].columns:
            names = contracts[other].names
            if column not in contracts[side].required and column.name not in contracts[side].any_of:
                continue
            known = {name.casefold() for name in (column.name, *column.aliases)}
            theirs = [name for name in schemas[other] if name.casefold() in known]
            problems = namings[side].problems
            for i, problem in enumerate(problems):
                if problem.column == column.name and column.name not in names and theirs:
                    if " is missing" not in problem.message and not contracts[side].any_of:
                        continue
                    hint = f" The {other.replace('_', ' ')} have {theirs[0]!r}: are the two tables"
                    problems[i] = msgspec.structs.replace(
                        problem,
                        message=f"{problem.message}{hint} swapped?",
                        facts={**problem.facts, "swapped_with": theirs[0]},
                    )
    for column in contracts[PREDICTIONS].optional:
        if column.single and column.name not in ours.exprs and not ours.wide:
            known = {name.casefold() for name in (column.name, *column.aliases)}
            theirs = [name for name in schemas[GROUND_TRUTHS] if name.casefold() in known]
            if theirs:
                ours.notes.append(
                    Note("tables_swapped", f"predictions: no {column.name!r}, but the ground truths"
                         f" have {theirs[0]!r}: are the two tables swapped?")
                )  # fmt: skip
