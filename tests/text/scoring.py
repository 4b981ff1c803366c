"""Texts and references as one table, and values per datum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

import evalengine as ee

TEXTS = pl.List(pl.String)


def table(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> pl.DataFrame:
    """Return a table with one row per datum."""
    return pl.DataFrame(
        {"text": candidates, "reference": references},
        schema={"text": pl.String, "reference": TEXTS},
    )


def score(candidates: Sequence[str], references: Sequence[Sequence[str]], **named: Any) -> Any:
    """Score the table."""
    return ee.score(table(candidates, references), **named)


def values(card: Any, metric: str, statistic: str | None = None) -> list[float | None]:
    """Return the values of single datums."""
    rows = card.per_datum.filter(
        pl.col("metric") == metric, pl.col("statistic").eq_missing(pl.lit(statistic))
    )
    found: list[float | None] = rows["value"].to_list()
    return found
