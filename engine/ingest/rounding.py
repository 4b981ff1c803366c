"""Warnings about integers that floats cannot represent exactly."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evalengine.ingest.sources.explain import explain
from evalengine.ingest.sources.mappings import EXACT, rounded_words
from evalengine.ingest.sources.tables import READ_FAILURES

from .collecting import Side
from .problems import Note
from .where import Condition, filtered
from .where import Table as Named

_WIDE = (pl.Int64, pl.UInt64, pl.Int128)


def rounded(
    sides: Mapping[str, Side],
    where: Mapping[str, Condition],
    frames: Mapping[str, pl.DataFrame] | None,
) -> list[Note]:
    """Return a note for each integer column that changed when cast to float.

    Reads the integers from the source again, only if floats are that large.

    Args:
        where: role to the condition on its rows.
        frames: role to rows with numbers as floats; None if not yet read.

    Raises:
        ReadError: a file that cannot be read.
    """
    notes = []
    for role, side in sides.items():
        numbers = [column.name for column in side.table.columns if column.kind == "number"]
        for name in numbers:
            own = side.naming.exprs[name].meta.root_names() if name in side.naming.exprs else []
            dtype = side.schema[own[0]] if len(own) == 1 else None
            if dtype not in _WIDE or not _large(None if frames is None else frames[role][name]):
                continue
            found = _rounded(side, own[0], where.get(role))
            if found is not None:
                said = f"{role.replace('_', ' ')}: column {own[0]!r}"
                notes.append(Note("values_rounded", rounded_words(said, *found), found[0]))
    return notes


def _large(values: pl.Series | None) -> bool:
    return values is None or bool((values.abs() >= EXACT).any())


def _rounded(side: Side, name: str, condition: Condition | None) -> tuple[int, int] | None:
    """Return the number of integers of a column that floats change, and the first of them."""
    rows = side.source.frame
    if condition is not None:
        rows = filtered(rows, Named(side.schema, side.naming), condition)
    values = pl.col(name)
    limit = int(EXACT)
    large = rows.select(values).filter((values > limit) | (values < -limit))
    other = values.cast(pl.Float64).cast(side.schema[name], strict=False).ne_missing(values)
    asked = large.filter(other).select(pl.len(), values.first().alias("first"))
    try:
        count, first = asked.collect(engine="streaming").row(0)
    except READ_FAILURES as error:
        raise explain(side.source, error) from error
    return (count, first) if count else None
