"""Several files of one side that speak of the same datums: perhaps of two models, scored as one."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import polars as pl

from evalengine.ingest.sources.scanning import scan
from evalengine.ingest.sources.tables import READ_FAILURES

from .collecting import Side
from .problems import Note

_FILES = 12  # looked at
_ROWS = 500  # of each, its first
_LEAST = 5  # datums of each, below which a cut through one of them looks like many in common
_FORMATS = ("parquet", "ipc", "csv", "ndjson")


def overlapping(sides: dict[str, Side]) -> list[Note]:
    """A note of each table whose files have most of their first datums in common.

    Only of tables without a key: elsewhere such rows are refused. Files cut by rows share the datum
    at the cut alone.

    Args:
        sides: role to table.
    """
    notes = []
    for role, side in sides.items():
        files = side.source.files[:_FILES]
        name = side.table.datum
        if side.table.key or len(files) < 2 or side.source.format not in _FORMATS:
            continue
        if name not in side.naming.exprs:
            continue
        found = _first_pair(files, side.source.format, side.naming.exprs[name])
        if found is None:
            continue
        one, other, both, of = found
        notes.append(
            Note(
                "files_share_datums",
                f"{role.replace('_', ' ')}: {both:,} of {of:,} {side.table.unit[1]} looked at stand"
                f" in {Path(one).name!r} and in {Path(other).name!r} alike, and all their rows are"
                " scored together. If the files are of several models, score them one by one.",
            )
        )
    return notes


def _first_pair(
    files: tuple[str, ...], format_: str, datum: pl.Expr
) -> tuple[str, str, int, int] | None:
    """Two files that share at least half of the datums looked at; how many, and of how many."""
    seen: dict[str, set[object]] = {}
    try:
        for file in files:
            head = scan([file], format_).select(datum.alias("datum")).head(_ROWS).collect()
            seen[file] = set(head["datum"].drop_nulls().to_list())
    except READ_FAILURES:  # said, with the reason, when all rows are read
        return None
    for one, other in combinations(files, 2):
        fewest = min(len(seen[one]), len(seen[other]))
        both = len(seen[one] & seen[other])
        if fewest >= _LEAST and 2 * both >= fewest:
            return one, other, both, fewest
    return None
