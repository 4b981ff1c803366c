"""Thresholds that a table shows numbers at: all of a few, the ones nearest 0.5 of many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

SPOTS = 6
"""Up to so many pairs of thresholds are all shown."""
EVERY = 1 << 30
_COLUMNS = ("iou_threshold", "score_threshold")
_WORDS = {"iou_threshold": "IoU", "score_threshold": "score"}


def at_spots(rows: pl.DataFrame, most: int = SPOTS) -> list[tuple[pl.DataFrame, str]]:
    """Split a metric's rows by threshold, or keep only the one nearest 0.5 if there are many.

    Args:
        rows: frame with the columns ``iou_threshold`` and ``score_threshold``.
        most: maximum number of threshold combinations to keep.

    Returns:
        (rows, description of the thresholds) pairs.
    """
    found = every_spot(rows)
    if not 1 < found.height <= most:
        return [_at_one_spot(rows)]
    return [
        (rows.filter(*(pl.col(name) == value for name, value in row.items())), _where(row))
        for row in found.iter_rows(named=True)
    ]


def spots(card: Scorecard, most: int = SPOTS, *, wide: bool) -> int:
    """Up to how many pairs of thresholds are all shown: a few; all that were asked for, widely."""
    return EVERY if wide and card.options.score_thresholds is not None else most


def every_spot(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct threshold combinations, sorted; empty if rows have no thresholds."""
    columns = [column for column in _COLUMNS if rows[column].null_count() < rows.height]
    if not columns:
        return rows.select(columns)
    return rows.select(columns).unique().drop_nulls().sort(columns)


def _where(row: dict[str, float]) -> str:
    said = [f"{_WORDS[name]} {value:g}" for name, value in row.items()]
    return "at " + ", ".join(said) if said else ""


def _at_one_spot(rows: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Return the rows at the thresholds nearest 0.5, and a description of those thresholds."""
    chosen: dict[str, float] = {}
    for column in _COLUMNS:
        values = rows[column].drop_nulls().unique().sort()
        if len(values):
            chosen[column] = min(values, key=lambda value: abs(value - 0.5))
            rows = rows.filter(pl.col(column) == chosen[column])
    return rows, _where(chosen)
