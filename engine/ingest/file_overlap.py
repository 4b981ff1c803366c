"""Several files of one side that speak of the same datums: perhaps of two models, scored as one."""

from __future__ import annotations

import os
from itertools import combinations

import polars as pl

from evalengine.ingest.annotations.format import FIRST
from evalengine.ingest.sources.scanning import scan
from evalengine.ingest.sources.source import Source
from evalengine.ingest.sources.tables import READ_FAILURES

from .collecting import Side
from .problems import Note

_FILES = 12  # looked at
_LEAST = 5  # datums of each, below which a cut through one of them looks like many in common
_SCANNED = ("parquet", "ipc", "csv", "ndjson")


def overlapping(sides: dict[str, Side]) -> list[Note]:
    """Return a warning for each table whose files share most of their first datums.

    Only for tables without a key: otherwise such rows are refused. Files split by rows share only
    the datum at the split; files of one label each share datums, but not their values.
    """
    notes = []
    for role, side in sides.items():
        exprs = side.naming.exprs
        read = [exprs[name] for name in (side.table.datum, "label_value") if name in exprs]
        if side.table.key or side.table.datum not in exprs:
            continue
        found = _first_pair(_firsts(side.source, read))
        if found is None:
            continue
        one, other, both, of = found
        folder = os.path.commonpath([os.path.dirname(name) for name in (one, other)])
        named = [os.path.relpath(name, folder) for name in (one, other)]
        notes.append(
            Note(
                "files_share_datums",
                f"{role.replace('_', ' ')}: {both:,} of {of:,} {side.table.unit[1]} looked at are"
                f" both in {named[0]!r} and in {named[1]!r}, and all their rows are scored"
                " together. If the files are of several models, score them one by one.",
                warning=True,
            )
        )
    return notes


def _firsts(source: Source, read: list[pl.Expr]) -> dict[str, set[tuple[object, ...]]]:
    """Return the values of the first rows of files, by file; empty unless there are several
    files.
    """
    files = (*source.firsts,) or source.files
    if len(files) < 2 or not (source.firsts or source.format in _SCANNED):
        return {}
    columns = [expr.alias(str(i)) for i, expr in enumerate(read)]
    found = {}
    try:
        for file in files[:_FILES]:
            rows = (
                source.firsts[file].lazy()
                if source.firsts
                else scan([file], source.format, partitions=source.partitions).head(FIRST)
            )
            found[file] = {*rows.select(columns).drop_nulls().unique().collect().iter_rows()}
    except READ_FAILURES:  # said, with the reason, when all rows are read
        return {}
    return found


def _first_pair(
    told: dict[str, set[tuple[object, ...]]],
) -> tuple[str, str, int, int] | None:
    """Two files that share at least half of the datums looked at; how many, and of how many."""
    datums = {file: {row[0] for row in rows} for file, rows in told.items()}
    for one, other in combinations(told, 2):
        fewest = min(len(datums[one]), len(datums[other]))
        both = len({row[0] for row in told[one] & told[other]})
        if fewest >= _LEAST and 2 * both >= fewest:
            return os.path.abspath(one), os.path.abspath(other), both, fewest
    return None
