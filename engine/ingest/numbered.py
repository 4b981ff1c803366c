"""Columns with a level in their name, such as ``q0.1``, ``p90`` and ``lo-80``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from evalengine.schemas.contract import Column, Table
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options
from evalengine.schemas.wording import option

from .problems import listing


def with_numbered(
    table: Table, options: Options, schema: Mapping[str, Any], *, needed: bool
) -> Table:
    """Replace the contract's numbered column by one column per level, ascending.

    Args:
        options: ``columns`` may assign levels.
        needed: whether ambiguous names are refused if there are no other candidates.

    Raises:
        InputError: two columns of one level, invalid levels, or ambiguous names.
    """
    if not any(column.numbered for column in table.optional):
        return table
    optional: list[Column] = []
    named: dict[str, tuple[str, ...]] = {name: (name,) for name in table.any_of}
    for column in table.optional:
        levels = _levels(column, options, schema, needed=needed) if column.numbered else [column]
        named[column.name] = tuple(one.name for one in levels) or (column.name,)
        optional += levels
    return msgspec.structs.replace(
        table,
        optional=tuple(optional),
        any_of=tuple(level for name in table.any_of for level in named[name]),
    )


def numbered_columns(column: Column, names: Iterable[str]) -> list[str]:
    """Return the names that are such a column."""
    if not column.numbered:
        return []
    return [name for name in names if re.fullmatch(column.numbered, name.casefold())]


def levels_in(column: Column, names: Iterable[str]) -> list[str]:
    """Return the names that are such a column; if there are none, the ambiguous ones."""
    here = list(names)
    return numbered_columns(column, here) or [
        name for name in here if column.unclear and re.fullmatch(column.unclear, name.casefold())
    ]


def _levels(
    column: Column, options: Options, schema: Mapping[str, Any], *, needed: bool
) -> list[Column]:
    said = options.columns or {}
    found: dict[float, list[str]] = {}
    for own in schema:
        match = re.fullmatch(column.numbered, said.get(own, own).casefold())
        if match is not None:
            found.setdefault(_level(next(filter(None, match.groups())), own), []).append(own)
    taken = {*said, *(own for names in found.values() for own in names)}
    unclear = [
        own
        for own in schema
        if column.unclear and own not in taken and re.fullmatch(column.unclear, own.casefold())
    ]
    if unclear and (found or needed):
        first = unclear[0]
        digit = int(first[-1])
        ways = " or ".join(
            option("columns", {first: f"{column.name}{level!r}"})
            for level in (digit / 100, digit / 10)
        )
        clear = [own for names in found.values() for own in names]
        beside = f" beside {listing(clear)}" if clear else ""
        raise InputError(
            f"{listing(unclear)} may be columns of {column.name}{beside}, in percent or in"
            f" tenths. Say which level each is: write {ways}; or leave them out of the table.",
            code="ambiguous_column",
            columns=unclear,
        )
    return [
        msgspec.structs.replace(
            column,
            name=f"{column.name}{level!r}",
            aliases=(_chosen(column, level, found[level], said),),
            numbered="",
            below=f"{column.below}{level!r}" if column.below else "",
        )
        for level in sorted(found)
    ]


def _level(text: str, own: str) -> float:
    """Parse a level in (0, 1); values of 1 or more are percent."""
    number = Decimal(text)
    level = float(number if number < 1 else number / 100)
    if not 0 < level < 1:
        raise InputError(
            f"column {own!r}: levels are between 0 and 1, both excluded.",
            code="wrong_name",
            column=own,
        )
    return level


def _chosen(column: Column, level: float, names: list[str], said: Mapping[str, str]) -> str:
    """The one column of a level: that of ``columns``, or of the model whose column it names."""
    for fits in (lambda own: own in said, lambda own: own.startswith(tuple(said))):
        chosen = [own for own in names if fits(own)]
        if len(chosen) == 1:
            return chosen[0]
    if len(names) == 1:
        return names[0]
    ways = " or ".join(option("columns", {own: f"{column.name}{level!r}"}) for own in names[:2])
    raise InputError(
        f"columns {listing(names)} are all of {column.name}{level!r}. Leave out all but one, or say"
        f" which: write {ways}.",
        code="column_twice",
        column=column.name,
        columns=names,
    )
