"""Contract of one table of a run: the task's, modified by the options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from evalengine import metrics
from evalengine.schemas import tables
from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE, Column, Table
from evalengine.schemas.errors import InputError, TruthsMissingError
from evalengine.schemas.options import Options

from .finding import kin_beside
from .numbered import numbered_columns, with_numbered

TEXTS = ("text", "texts", "text_list")
"""Kinds of columns whose nulls the option ``nulls`` may read as empty texts."""
SKIPPED = (*TEXTS, "vector", "vectors")
"""Kinds of columns whose nulls the option ``nulls`` may skip."""


def contract(task: str, role: str, options: Options, schema: Mapping[str, Any]) -> Table:
    """Return the contract of one table.

    Args:
        options: ``multilabel`` widens a key; ``nulls`` may allow null texts; ``score_columns``
            replace labels and scores; ``metrics`` may make columns unnecessary.

    Raises:
        OptionError: no such task.
        InputError: one table for a task that needs two.
    """
    if task in tables.task_names() and role == TABLE and TABLE not in tables.contracts(task):
        raise needs_two(task)
    known = tables.contracts(task)
    if role in (PREDICTIONS, GROUND_TRUTHS) and role not in known and TABLE in known:
        raise InputError(
            f"{task} takes one table: leave the second one out.", code="one_table_only", task=task
        )
    table = tables.table_for(task, role)
    table = _spared(_with_kin(table, options, schema), options)
    answered = any(is_there(one, options, schema) for one in table.optional
                   if one.name in table.any_of)  # fmt: skip
    table = _with_stand_ins(_served(table, task, options, schema), options, schema)
    needed = options.metrics is not None or not answered
    table = with_numbered(table, options, schema, needed=needed)
    table = _sliced(table, options)
    if options.multilabel:
        table = msgspec.structs.replace(
            table,
            key=table.multilabel_key or table.key,
            shape=table.multilabel_shape or table.shape,
        )
    if options.nulls == "skip":
        table = msgspec.structs.replace(
            table,
            required=tuple(map(_may_lack, table.required)),
            optional=tuple(map(_may_lack, table.optional)),
        )
    if options.score_columns is not None and table.wide:
        table = msgspec.structs.replace(
            table,
            required=tuple(c for c in table.required if c.name not in table.wide),
            optional=tuple(c for c in table.optional if c.name not in table.wide),
            key=tuple(name for name in table.key if name not in table.wide),
            any_of=(),
        )
    return table


def _with_kin(table: Table, options: Options, schema: Mapping[str, Any]) -> Table:
    """The contract in which columns that are called by kin of their names are known by these."""
    kin = {name: mine for mine, name in kin_beside(schema, table, options.columns or {}).items()}
    if not kin:
        return table

    def known(column: Column) -> Column:
        more = (kin[column.name],) if column.name in kin else ()
        return msgspec.structs.replace(column, aliases=(*column.aliases, *more))

    return msgspec.structs.replace(
        table,
        required=tuple(map(known, table.required)),
        optional=tuple(map(known, table.optional)),
    )


def _spared(table: Table, options: Options) -> Table:
    """Remove required columns that no requested metric reads."""
    left_out = spared(table, options)
    if not left_out:
        return table
    required = tuple(one for one in table.required if one.name not in left_out)
    return msgspec.structs.replace(table, required=required)


def spared(table: Table, options: Options) -> frozenset[str]:
    """Return required columns of one table that no metric requested by name reads.

    Args:
        options: ``metrics`` and options that their groups depend on; unknown names read everything.
    """
    if table.side != TABLE or not options.metrics:
        return frozenset()
    if not all(metrics.has(table.task, name) for name in options.metrics):
        return frozenset()
    every = (
        metrics.meant(table.task, one).spares
        for name in options.metrics
        for one in metrics.members(table.task, name, options)
        if metrics.has(table.task, one)
    )
    return frozenset.intersection(*map(frozenset, every))


def _served(table: Table, task: str, options: Options, schema: Mapping[str, Any]) -> Table:
    """Remove columns that no requested metric of the task reads.

    Columns that count only on request are kept if they are the only ones that satisfy an "any of"
    requirement, or if ``columns`` names them.
    """
    if options.metrics is None:
        if not any(one.named for one in table.optional):
            return table
        enough = [one for one in table.optional if one.name in table.any_of and not one.named]
        if enough and not any(is_there(one, options, schema) for one in enough):
            return table
        usual = tuple(one for one in table.optional if not one.named or by_hand(one, options))
        return msgspec.structs.replace(table, optional=usual)
    readers = metrics.all_metrics(task).values()
    spoken_for = frozenset(name for one in readers for name in one.reads)
    if spoken_for.isdisjoint(column.name for column in table.optional):
        return table
    read = _read_by(task, options)
    unread = spoken_for - read - {one.name for one in table.optional if one.sliced}
    optional = tuple(
        one for one in table.optional if one.name not in unread or by_hand(one, options)
    )
    return msgspec.structs.replace(table, optional=optional)


def by_hand(column: Column, options: Options) -> bool:
    """Return whether ``columns`` names a column."""
    said = {*(options.columns or {}).values()}
    return column.name in said or bool(numbered_columns(column, said))


def _read_by(task: str, options: Options) -> frozenset[str]:
    """Optional columns that metrics asked for by name read."""
    return frozenset(
        name
        for given in options.metrics or ()
        if metrics.has(task, given)
        for member in metrics.members(task, given, options)
        if metrics.has(task, member)
        for name in metrics.meant(task, member).reads
    )


def _sliced(table: Table, options: Options) -> Table:
    """Remove columns that only slices and metrics read, if no requested one does."""
    if not any(one.sliced for one in table.optional):
        return table
    asked = {piece for entry in options.columns_of_datums for piece in entry.split("*")}
    asked |= _read_by(table.task, options)
    kept = tuple(
        one
        for one in table.optional
        if not one.sliced or one.name in asked or by_hand(one, options)
    )
    return msgspec.structs.replace(table, optional=kept)


def _with_stand_ins(table: Table, options: Options, schema: Mapping[str, Any]) -> Table:
    """Require substitute columns instead of the originals, if only the substitutes are present."""
    columns = {column.name: column for column in table.columns}
    for first, second in table.stand_ins:
        if not {first, second} <= columns.keys() or not stands_in(
            table, (first, second), options, schema
        ):
            continue
        required = [columns[second if one.name == first else one.name] for one in table.required]
        optional = [one for one in table.optional if one.name != second]
        table = msgspec.structs.replace(table, required=tuple(required), optional=tuple(optional))
    return table


def stands_in(
    table: Table, pair: tuple[str, str], options: Options, schema: Mapping[str, Any]
) -> bool:
    """Return whether a table has the second column of a pair and not the first."""
    columns = {column.name: column for column in table.columns}
    first, second = (is_there(columns[name], options, schema) for name in pair)
    return second and not first


def is_there(column: Column, options: Options, schema: Mapping[str, Any]) -> bool:
    """Return whether a table has a column under any of its names."""
    said = {name for mine, name in (options.columns or {}).items() if mine in schema}
    here = [name.casefold() for name in schema if name not in (options.columns or {})]
    return (
        column.name in said
        or any(one.casefold() in here for one in (column.name, *column.aliases))
        or bool(numbered_columns(column, [*here, *said]))
    )


def _may_lack(column: Column) -> Column:
    """Make a text column nullable."""
    if column.kind not in SKIPPED:
        return column
    return msgspec.structs.replace(column, nullable=True)


def needs_two(task: str) -> TruthsMissingError:
    """Return the error for one table if two are required."""
    return TruthsMissingError(
        f"{task} needs two tables: give the ground truths as the second one, after the"
        " predictions.",
        code="truths_missing",
        task=task,
    )
