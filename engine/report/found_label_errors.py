"""Label errors as text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

import polars as pl

from ..ingest.boxes import CORNER_NAMES
from ..ingest.problems import count_of
from .found_errors import box_column, named
from .frames import aligned, html_frame, markdown_frame
from .show import show_frame, write_text
from .summary import plain

if TYPE_CHECKING:
    from ..analysis.label_error_table import FoundLabelErrors

FORMATS = ("table", "json", "csv", "parquet", "markdown")
_QUIET = ("normalized_margin", "confidence_weighted_entropy", "found_by")


def heading(found: FoundLabelErrors) -> str:
    """What was found, in a sentence."""
    if not found.n:
        return "no label is suspicious"
    shown = f", the {len(found):,} most suspicious" if len(found) < found.n else ""
    return f"{count_of(found.n, 'label')} may be wrong{shown}"


def listed(found: FoundLabelErrors) -> pl.DataFrame:
    """What people look at: boxes in one column, and what programs alone need left out."""
    theirs = [f"annotation_{name}" for name in CORNER_NAMES]
    boxed = found.rows.with_columns(box_column(""), box_column("annotation_"))
    boxed = boxed.drop(*CORNER_NAMES, *theirs, *_QUIET)
    boxed = named(boxed, ("label_value", "suggested"), found.names)
    return boxed.drop("label_key") if boxed["label_key"].n_unique() <= 1 else boxed


def as_text(found: FoundLabelErrors, notes: Sequence[str] | None = None) -> str:
    """For the prompt and the shell; notes as Python writes them unless given."""
    lines = [heading(found)]
    if len(found):
        lines += ["", *("  " + line for line in aligned(listed(found)).splitlines())]
    more = [f"note: {plain(note)}" for note in (found.notes if notes is None else notes)]
    return "\n".join([*lines, *([""] if more else []), *more])


def as_html(found: FoundLabelErrors) -> str:
    """For notebooks."""
    notes = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in found.notes)
    table = html_frame(listed(found)) if len(found) else ""
    return f"<div><p>{html.escape(heading(found))}</p>{table}{notes}</div>"


def show(found: FoundLabelErrors, form: str, out: IO[str], notes: Sequence[str]) -> None:
    """Write the rows to a text stream.

    Args:
        found: what to show.
        form: one of :data:`FORMATS`.
        out: the stream.
        notes: as the shell writes them.
    """
    if form == "table":
        write_text(as_text(found, notes) + "\n", out)
    elif form == "markdown":
        body = markdown_frame(listed(found)) if len(found) else ""
        write_text(f"{heading(found)}\n\n{body}", out)
    else:
        show_frame(found.rows, form, name="label_errors")
