"""How far numbers could move, as text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ..ingest.problems import count_of
from .found_rows import Layout, of_frame

if TYPE_CHECKING:
    from ..analysis.limit_table import FoundLimits


def heading(found: FoundLimits) -> str:
    """What was found, in a sentence."""
    if not len(found):
        return "no number could move"
    moved = found.moving.unique(found.frame.columns[: found.frame.columns.index("value")]).height
    if not moved:
        return "no number could move"
    return f"{count_of(moved, 'number')} could move, the widest first"


def as_columns(found: FoundLimits) -> pl.DataFrame:
    """Rows as they are printed: ``parameters`` only where they tell rows apart."""
    rows = found.shown
    others = [name for name in rows.columns if name not in ("parameters", "lowest", "highest")]
    return rows if rows.select(others).is_duplicated().any() else rows.drop("parameters")


LAYOUT = Layout(
    "limits", heading, of_frame(as_columns),
    lambda found: found.frame if found.every else found.moving,
)  # fmt: skip
