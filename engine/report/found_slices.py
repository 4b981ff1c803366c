"""The worst slices as text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from ..ingest.problems import count_of
from .frames import html_table
from .show import show_frame, write_text
from .summary import UNDEFINED, markdown_table, number, plain
from .verdicts import probability

if TYPE_CHECKING:
    from ..analysis.slice_table import FoundSlices

FORMATS = ("table", "json", "csv", "parquet", "markdown")


def heading(found: FoundSlices) -> str:
    """What was looked at, in a sentence."""
    if not len(found):
        return (
            f"no slice of {count_of(found.n, 'datum')} is worse than the rest by each of its"
            " conditions"
        )
    return (
        f"{count_of(len(found), 'slice')} of {count_of(found.n, 'datum')}, by {found.loss} of"
        f" single datums; {found.measured:,} were measured, and no other scores higher"
    )


def _table(found: FoundSlices) -> tuple[list[str], list[list[str]]]:
    header = ["slice", "datums", found.metric, f"{100 * found.level:g} % interval", "elsewhere",
              "p adjusted"]  # fmt: skip
    rows = [[plain(row["slice"]), f"{row['size']:,}", number(row["value"]), _interval(row),
             number(row["elsewhere"]), probability(row["p_adjusted"])]
            for row in found.frame.iter_rows(named=True)]  # fmt: skip
    return header, rows


def _interval(row: dict[str, Any]) -> str:
    if row["lower"] is None:
        return UNDEFINED
    return f"[{number(row['lower'])}, {number(row['upper'])}]"


def as_text(found: FoundSlices, notes: Sequence[str] | None = None) -> str:
    """For the prompt and the shell.

    Args:
        found: what to show.
        notes: as the reader's surface writes them; as Python does unless given.
    """
    lines = [heading(found)]
    if len(found):
        header, rows = _table(found)
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines.append("")
        lines += [
            "  " + "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in [header, *rows]
        ]  # fmt: skip
    more = [f"note: {plain(note)}" for note in (found.notes if notes is None else notes)]
    return "\n".join([*lines, *([""] if more else []), *more])


def as_markdown(found: FoundSlices) -> str:
    """For pull requests and pages."""
    parts = [heading(found)]
    if len(found):
        header, rows = _table(found)
        parts.append(markdown_table(header, rows, right=[i > 0 for i in range(len(header))]))
    parts += ["\n".join(f"- {plain(note)}" for note in found.notes)] if found.notes else []
    return "\n\n".join(parts) + "\n"


def as_html(found: FoundSlices) -> str:
    """For notebooks."""
    header, rows = _table(found)
    notes = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in found.notes)
    return f"<div><p>{html.escape(heading(found))}</p>{html_table(header, rows)}{notes}</div>"


def show(found: FoundSlices, form: str, out: IO[str], notes: Sequence[str]) -> None:
    """Write slices to a text stream.

    Args:
        found: what to show.
        form: one of :data:`FORMATS`.
        out: the stream.
        notes: as the shell writes them.
    """
    if form == "table":
        write_text(as_text(found, notes) + "\n", out)
    elif form == "markdown":
        write_text(as_markdown(found), out)
    else:
        show_frame(found.frame, form, name="slices")
