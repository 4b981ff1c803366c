"""What is wrong in a run, as text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

import msgspec
import polars as pl

from ..ingest.boxes import CORNER_NAMES
from ..ingest.problems import count_of
from .frames import aligned, html_frame, markdown_frame
from .show import show_frame, write_text
from .summary import number, plain

if TYPE_CHECKING:
    from ..analysis.error_table import FoundErrors

FORMATS = ("table", "json", "csv", "parquet", "markdown")


def heading(found: FoundErrors) -> str:
    """What was looked at, in a sentence."""
    if not len(found):
        return f"nothing is wrong in {count_of(found.n, 'datum')}"
    first = found.datums.row(0, named=True)
    made_with = msgspec.json.decode(first["parameters"]) if first["parameters"] else {}
    at = ", ".join(
        f"{name.replace('_', ' ')} {number(value) if isinstance(value, float) else value}"
        for name, value in made_with.items()
    )
    by = first["metric"] + (f" ({at})" if at else "")
    return f"the {len(found):,} worst of {count_of(found.n, 'datum')}, by {by}"


def listed(found: FoundErrors, *, rows: bool) -> pl.DataFrame:
    """What people look at: rows with their boxes in one column, or datums with their number."""
    if rows and found.rows is not None:
        boxed = found.rows.with_columns(box_column("")).drop(CORNER_NAMES)
        theirs = [_THEIRS + name for name in CORNER_NAMES]
        boxed = boxed.with_columns(box_column(_THEIRS)).drop(theirs)
        same = [name for name in ("label_key", "iou_threshold") if boxed[name].n_unique() <= 1]
        return named(boxed.drop(same), _LABELS, found.names)
    if not len(found):
        return found.datums.select("datum_id", "value", "why")
    name = found.datums["metric"][0]
    return found.datums.select("datum_id", pl.col("value").alias(name), "why")


_THEIRS = "annotation_"
_LABELS = ("label_value", f"{_THEIRS}label")


def named(frame: pl.DataFrame, columns: Sequence[str], names: Mapping[str, str]) -> pl.DataFrame:
    """Labels with the names of their classes behind them, where they have others."""
    shown = {value: f"{value} {name}" for value, name in names.items()}
    return frame.with_columns(
        pl.col(name).cast(pl.String).replace(shown)
        for name in columns
        if names and name in frame.columns
    )


def box_column(before: str) -> pl.Expr:
    """The corners of a box as one word; null where there is none."""
    corners = [pl.col(before + name).round(1) for name in CORNER_NAMES]
    return pl.format("{} {} {} {}", *corners).alias(f"{before}box")


def as_text(found: FoundErrors, notes: Sequence[str] | None = None, *, rows: bool = False) -> str:
    """For the prompt and the shell.

    Args:
        found: what to show.
        notes: as the reader's surface writes them; as Python does unless given.
        rows: whether single rows are wanted.
    """
    lines = [heading(found)]
    if len(found):
        lines += ["", *("  " + line for line in aligned(listed(found, rows=rows)).splitlines())]
    more = [f"note: {plain(note)}" for note in (found.notes if notes is None else notes)]
    return "\n".join([*lines, *([""] if more else []), *more])


def as_html(found: FoundErrors) -> str:
    """For notebooks."""
    notes = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in found.notes)
    table = html_frame(listed(found, rows=False)) if len(found) else ""
    return f"<div><p>{html.escape(heading(found))}</p>{table}{notes}</div>"


def show(found: FoundErrors, form: str, out: IO[str], notes: Sequence[str], *, rows: bool) -> None:
    """Write datums or rows to a text stream.

    Args:
        found: what to show.
        form: one of :data:`FORMATS`.
        out: the stream.
        notes: as the shell writes them.
        rows: whether single rows are wanted.
    """
    if form == "table":
        write_text(as_text(found, notes, rows=rows) + "\n", out)
    elif form == "markdown":
        body = markdown_frame(listed(found, rows=rows)) if len(found) else ""
        write_text(f"{heading(found)}\n\n{body}", out)
    else:
        frame = found.rows if rows and found.rows is not None else found.datums
        show_frame(frame, form, name="errors" if rows else "datums")
