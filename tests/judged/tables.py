"""Makers of verdict tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

SCHEMA = {
    "datum_id": pl.Int64,
    "metric": pl.String,
    "step": pl.String,
    "reference_index": pl.Int64,
    "item_index": pl.Int64,
    "judgment_index": pl.Int64,
    "verdict": pl.String,
    "status": pl.String,
    "items": pl.Int64,
}


def table(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Make a table of verdicts; missing columns of a row are null."""
    full = [{name: row.get(name) for name in SCHEMA} for row in rows]
    return pl.DataFrame(full, schema=SCHEMA)


def listed(
    metric: str,
    verdicts: Sequence[Any],
    *,
    none: str | None = None,
    datum: int = 0,
    step: str | None = None,
    reference: int = 0,
    judgment: int = 0,
) -> list[dict[str, Any]]:
    """Make the rows of a list of verdicts, or one row with status ``empty`` for an empty list."""
    same = {
        "datum_id": datum,
        "metric": metric,
        "reference_index": reference,
        "judgment_index": judgment,
    }
    if not verdicts:
        return [{**same, "step": none, "status": "empty"}]
    return [
        {**same, "step": step, "item_index": i, "verdict": str(word), "items": len(verdicts)}
        for i, word in enumerate(verdicts)
    ]
