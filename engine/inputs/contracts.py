"""The contract that holds for one table of a run: the task's, as the options change it."""

from __future__ import annotations

import msgspec

from evalengine.schemas import tables
from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE, Column, Table
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options


def contract(task: str, role: str, options: Options) -> Table:
    """The contract of one table.

    Args:
        task: whose.
        role: of the table.
        options: ``multilabel`` widens a key; ``nulls`` may allow null texts; ``score_columns``
            stand in for labels and scores.

    Raises:
        OptionError: no such task.
        InputError: one table for a task that needs two.
    """
    if task in tables.task_names() and role == TABLE and TABLE not in tables.contracts(task):
        raise InputError(needs_two(task))
    known = tables.contracts(task)
    if role in (PREDICTIONS, GROUND_TRUTHS) and role not in known and TABLE in known:
        raise InputError(f"{task} takes one table: leave the second one out.")
    table = tables.table_for(task, role)
    if options.multilabel and table.multilabel_key:
        table = msgspec.structs.replace(table, key=table.multilabel_key)
    if options.nulls == "skip":
        table = msgspec.structs.replace(table, required=tuple(map(_may_lack, table.required)))
    if options.score_columns is not None and table.wide:
        table = msgspec.structs.replace(
            table,
            required=tuple(c for c in table.required if c.name not in table.wide),
            optional=tuple(c for c in table.optional if c.name not in table.wide),
            key=tuple(name for name in table.key if name not in table.wide),
            any_of=(),
        )
    return table


def _may_lack(column: Column) -> Column:
    """The column, null allowed where it holds texts."""
    if column.kind not in ("text", "texts"):
        return column
    return msgspec.structs.replace(column, nullable=True)


def needs_two(task: str) -> str:
    """The sentence about one table where two are needed."""
    return (
        f"{task} needs two tables: give the ground truths as the second one, after the predictions."
    )
