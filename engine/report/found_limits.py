"""How far numbers could move, as people read it: what moves most first."""

from __future__ import annotations

import polars as pl

from ..ingest.problems import count_of, listing

_SAME = 1e-12
"""Ends closer than this are one number."""


def moving(found: pl.DataFrame) -> pl.DataFrame:
    """Rows but those of numbers that no choice moves."""
    fixed = (pl.col("highest") - pl.col("lowest") <= _SAME) & pl.col("bound").is_in(
        ["exact", "at most"]
    )
    return found.filter(~(fixed.fill_null(False) | pl.col("value").is_null()))


def listed(found: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Numbers over all labels and datums, the widest first, and what was left out.

    Args:
        found: of :func:`evalengine.find_limits`.
    """
    notes = []
    rows = moving(found)
    single = pl.col("label_value").is_not_null() | pl.col("slice").is_not_null()
    if rows.filter(~single).height and (left := rows.filter(single).height):
        rows = rows.filter(~single)
        notes.append(f"{count_of(left, 'number')} of single labels and slices left out.")
    blind = pl.col("bound").is_in(["range", "unknown"])
    for (limit,), group in rows.filter(blind).group_by("limit", maintain_order=True):
        names = list(dict.fromkeys(group["metric"]))
        notes.append(f"{limit}: no bounds are known of {listing(names)}, but their range.")
    rows = rows.filter(~blind)
    if notes:
        notes.append("all rows are shown by --all.")
    width = pl.col("highest") - pl.col("lowest")
    return rows.sort(width, descending=True, maintain_order=True), notes


def as_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows as they are printed: ``parameters`` only where they tell rows apart."""
    others = [name for name in rows.columns if name not in ("parameters", "lowest", "highest")]
    if not rows.select(others).is_duplicated().any():
        rows = rows.drop("parameters")
    return rows
