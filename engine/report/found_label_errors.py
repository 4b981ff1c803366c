"""Label errors as text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ..ingest.boxes import CORNER_NAMES
from ..ingest.problems import count_of
from .found_errors import box_column, named
from .found_rows import Layout, of_frame

if TYPE_CHECKING:
    from ..analysis.label_error_table import FoundLabelErrors

_QUIET = ("normalized_margin", "confidence_weighted_entropy", "found_by")


def heading(found: FoundLabelErrors) -> str:
    """Return a one-sentence summary."""
    if not found.n:
        return "no label is suspicious"
    shown = f", the {len(found):,} most suspicious" if len(found) < found.n else ""
    return f"{count_of(found.n, 'label')} may be wrong{shown}"


def listed(found: FoundLabelErrors) -> pl.DataFrame:
    """Return the display frame: boxes in one column, without columns for programs."""
    theirs = [f"annotation_{name}" for name in CORNER_NAMES]
    boxed = found.rows.with_columns(box_column(""), box_column("annotation_"))
    boxed = boxed.drop(*CORNER_NAMES, *theirs, *_QUIET)
    boxed = named(boxed, ("label_value", "suggested"), found.names)
    return boxed.drop("label_key") if boxed["label_key"].n_unique() <= 1 else boxed


LAYOUT = Layout("label_errors", heading, of_frame(listed), lambda found: found.rows)
