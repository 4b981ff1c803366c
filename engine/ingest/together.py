"""Ids of datums that several columns make together: a series and a time, an id and a horizon."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE, Column, Table
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options
from evalengine.schemas.tables import table_for

from .finding import Finder
from .names import Naming
from .problems import Note, Problem, listing, refuse
from .sources.source import Source

_BETWEEN = "/"


def ids_together(
    task: str,
    contracts: Mapping[str, Table],
    sources: Mapping[str, Source],
    schemas: Mapping[str, Mapping[str, pl.DataType]],
    namings: Mapping[str, Naming],
    options: Options,
) -> None:
    """Make composite datum ids if no single column names the datums.

    Two tables without ids use all columns that both have. If ids repeat in a table, its additional
    columns distinguish the rows.

    Args:
        contracts: role to contract.
        sources: role to the table.
        schemas: role to columns.
        namings: role to its recognised columns; ids and notes are added in place.
        options: ``columns``.

    Raises:
        InputError: two candidates for a column, or several rows of one id on one side.
    """
    sides = [role for role in (TABLE, PREDICTIONS, GROUND_TRUTHS) if role in namings]
    if not all(contracts[role].together and schemas[role] for role in sides):
        return
    datum = contracts[sides[0]].datum
    problems: list[Problem] = []
    found = {
        role: _found(table_for(task, role), schemas[role], options, problems) for role in sides
    }
    names = [
        name for name in contracts[sides[0]].together if all(name in found[role] for role in sides)
    ]
    known = [datum in namings[role].exprs for role in sides]
    if not names or any(known) != all(known):
        return
    if all(known):
        names = [name for name in names if not _is(found, namings, sides, name, datum)]
        if not names or not any(_repeat(sources[r], namings[r], contracts[r]) for r in sides):
            return
    elif sides == [TABLE]:
        return  # every row is a datum of its own
    refuse([problem for problem in problems if problem.column in names], {})
    for role in sides:
        naming = namings[role]
        own = [found[role][name] for name in names]
        pieces = [pl.col(name).cast(pl.String) for name in own]
        if datum in naming.exprs:
            pieces.insert(0, naming.exprs[datum].cast(pl.String))
            own = [*naming.exprs[datum].meta.root_names(), *own]
        naming.exprs[datum] = pl.concat_str(pieces, separator=_BETWEEN).alias(datum)
        naming.problems[:] = [one for one in naming.problems if one.column != datum]
        said = f"{role.replace('_', ' ')}: {datum} is made of {' and '.join(map(repr, own))}."
        naming.notes.append(Note("ids_together", said))
        rest = [mine for name, mine in found[role].items() if name not in names]
        if not all(known) and rest and _repeat(sources[role], naming, contracts[role]):
            raise InputError(_many_to_one(role, own, rest))


def _many_to_one(role: str, own: list[str], rest: list[str]) -> str:
    """Return the message that rows of one id differ in columns that the other table does not
    have.
    """
    first, second = (listing(names) for names in (own, rest))
    return (
        f"{role.replace('_', ' ')}: several rows have one {first}, and the other table lacks"
        f" {second}. Join the ground truths to the predictions by {first}, and give one table of"
        " both."
    )


def _found(
    table: Table,
    schema: Mapping[str, pl.DataType],
    options: Options,
    problems: list[Problem],
) -> dict[str, str]:
    """The columns of a table that make ids together: canonical name to own name."""
    said = {mine: to for mine, to in (options.columns or {}).items() if mine in schema}
    find = Finder(schema, table.side, said)
    columns: dict[str, Column] = {column.name: column for column in table.columns}
    own = {name: find.find(columns[name]) for name in table.together if name in columns}
    problems += find.problems
    return {name: mine for name, mine in own.items() if mine is not None}


def _is(
    found: Mapping[str, Mapping[str, str]],
    namings: Mapping[str, Naming],
    sides: list[str],
    name: str,
    datum: str,
) -> bool:
    """Return whether a column is that of the ids itself, on at least one side."""
    return any(found[role][name] in namings[role].exprs[datum].meta.root_names() for role in sides)


def _repeat(source: Source, naming: Naming, table: Table) -> bool:
    """Return whether the key of a table repeats."""
    key = [naming.exprs[name] for name in table.key if name in naming.exprs]
    rows = source.frame.select(pl.struct(key).is_duplicated().any())
    return bool(rows.collect().item())
