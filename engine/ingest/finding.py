"""Lookup of canonical columns among a table's columns: exact name, user's name, aliases."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

import polars as pl

from evalengine.schemas.contract import Column, Table
from evalengine.schemas.wording import option

from .numbered import numbered_columns
from .problems import Problem


class Finder:
    """Columns of one table, and those already claimed.

    Args:
        said: the user's mapping, name in the input to canonical name, restricted to this table.
    """

    def __init__(
        self, schema: Mapping[str, pl.DataType], side: str, said: Mapping[str, str]
    ) -> None:
        self.schema = schema
        self.side = side
        self.said: dict[str, str] = {}
        self.used: set[str] = set()
        self.problems: list[Problem] = []
        for original, target in said.items():
            if target in self.said:
                self.problems.append(
                    Problem(
                        side,
                        target,
                        f"{option('columns')} names both {self.said[target]!r} and {original!r} for"
                        f" {target!r}; keep one of them.",
                        kind="column_twice",
                        facts={"columns": [self.said[target], original]},
                    )
                )
            else:
                self.said[target] = original
                self.used.add(original)

    def exact(self, name: str) -> str | None:
        """Return the column that the user mapped to a canonical name, or the column of that
        name.
        """
        if name in self.said:
            return self.said[name]
        if name in self.schema and name not in self.used:
            self.used.add(name)
            return name
        return None

    def candidates(self, names: Iterable[str]) -> list[str]:
        """Unclaimed columns that bear one of these names, whatever their case."""
        folded = {name.casefold() for name in names}
        return [
            column
            for column in self.schema
            if column.casefold() in folded and column not in self.used
        ]

    def by_alias(self, column: Column) -> str | None:
        """The one unclaimed column that bears an alias; two are a problem, not a guess."""
        found = self.candidates((column.name, *column.aliases))
        if len(found) > 1:
            ways = " or ".join(option("columns", {name: column.name}) for name in found)
            names = ", ".join(repr(name) for name in found[:-1]) + f" and {found[-1]!r}"
            self.problems.append(
                Problem(
                    self.side,
                    column.name,
                    f"columns {names} could each be {column.name!r}. Say which one: write {ways}.",
                    kind="ambiguous_column",
                    facts={"columns": found},
                )
            )
        self.used.update(found)
        return found[0] if found else None

    def find(self, column: Column) -> str | None:
        """Return a column by the user's mapping, exact name, then alias."""
        return self.exact(column.name) or self.by_alias(column)

    def missing(self, column: Column) -> None:
        """Record that a required column is not there, with the nearest ones that are."""
        self.problems.append(
            Problem(self.side, column.name, f"column {column.name!r} is missing."
                    f" {self.offer(column)}{column.otherwise}", kind="column_missing")
        )  # fmt: skip

    def offer(self, column: Column) -> str:
        """Return a hint on candidates for a missing column, and on how to map one."""
        for target, mine in self.said.items():
            if mine == column.name:
                return f"{option('columns', {mine: target})} reads that column as {target!r}."
        free = [name for name in self.schema if name not in self.used]
        near = nearest((column.name, *column.aliases), free)
        near = near or [name for name in free if name.casefold() in column.kin]
        there = ", ".join(self.schema) or "none"
        if len(there) > 400:
            there = there[:400] + ", ..."
        said = option("columns", {near[0] if near else "mine": column.name})
        hint = f"If {near[0]!r} is it" if near else "If it has another name"
        return f"Columns there: {there}. {hint}, write {said}."


def nearest(words: Iterable[str], names: Iterable[str]) -> list[str]:
    """Names that resemble one of the words, best first, whatever their case."""
    folded = {name.casefold(): name for name in names}
    scored: dict[str, float] = {}
    for word in words:
        for near in difflib.get_close_matches(word.casefold(), folded, n=2, cutoff=0.7):
            ratio = difflib.SequenceMatcher(None, word.casefold(), near).ratio()
            scored[folded[near]] = max(ratio, scored.get(folded[near], 0.0))
    return sorted(scored, key=lambda name: -scored[name])


def kin_beside(
    schema: Mapping[str, pl.DataType], table: Table, said: Mapping[str, str]
) -> dict[str, str]:
    """Find columns identified by related names of other columns.

    A model's forecast column is identified by its levels: ``AutoETS`` if there is
    ``AutoETS-lo-80``.

    Args:
        said: the user's mapping, name in the input to canonical name.

    Returns:
        Name in the input to canonical name.
    """
    if not table.beside:
        return {}
    columns = {column.name: column for column in table.columns}
    levels = {name for one in table.columns for name in numbered_columns(one, schema)}
    known = {name for one in table.columns for name in (one.name, *one.aliases)}
    models = {
        mine
        for mine in {*schema} - levels
        if mine.casefold() not in known
        and any(one.startswith(tuple(mine + sign for sign in "-_. ")) for one in levels)
    }
    here = {mine: to for mine, to in said.items() if mine in schema}
    taken = {}
    for name, other in table.beside:
        find = Finder(schema, table.side, here)
        there, wanted = (
            find.exact(one)
            or find.candidates((one, *columns[one].aliases))
            or numbered_columns(columns[one], [*schema, *here.values()])
            for one in (other, name)
        )
        near = [
            mine
            for mine in schema
            if mine in models or (mine.casefold() in columns[name].kin and mine not in levels)
        ]
        if there and not wanted and len(near) == 1 and near[0] not in here:
            taken[near[0]] = name
    return taken


def turned(columns: Mapping[str, str] | None, here: Iterable[str], tables: Iterable[Table]) -> str:
    """Return a message if ``columns=`` is reversed, with the correction; otherwise "".

    Args:
        columns: as given: name in the input to canonical name.
    """
    known = {
        name: column.name
        for table in tables
        for column in table.columns
        for name in (*column.aliases, column.name)
    }
    canonical = {*known.values()}
    wrong = {
        mine: to
        for mine, to in (columns or {}).items()
        if to in {*here} and to not in canonical and mine in known
    }
    if not wrong:
        return ""
    right = {to: known[mine] for mine, to in wrong.items()}
    return (
        f"{option('columns', wrong)} has its names the wrong way round: the table's own name"
        f" comes first. Write {option('columns', right)}."
    )
