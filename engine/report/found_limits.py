"""Display of ``find_limits``: text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ..ingest.problems import count_of
from .found_rows import Layout, of_frame

if TYPE_CHECKING:
    from ..analysis.limit_table import FoundLimits


def heading(found: FoundLimits) -> str:
    """Return a one-sentence summary."""
    moved, others = found.moved, found.unmoved
    said = f"{count_of(moved, 'number')} could move, the widest first"
    if not moved:
        said = "no number could move" if not others else "no number was moved by what was tried"
    elif others:
        said += f"; {others:,} more {'was' if others == 1 else 'were'} not moved by what was tried"
    return said


def as_columns(found: FoundLimits) -> pl.DataFrame:
    """Return rows for display: ``parameters`` only if they distinguish rows."""
    rows = found.shown
    others = [name for name in rows.columns if name not in ("parameters", "lowest", "highest")]
    return rows if rows.select(others).is_duplicated().any() else rows.drop("parameters")


LAYOUT = Layout(
    "limits", heading, of_frame(as_columns),
    lambda found: found.frame if found.every else found.moving,
)  # fmt: skip
