"""What was found in a run, rows under a heading: as text, Markdown, HTML, or for programs."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import IO, Any

from .frames import html_table
from .show import show_frame, write_text
from .summary import UNDEFINED, markdown_table, number, plain

FORMATS = ("table", "json", "csv", "parquet", "markdown")

Rows = Sequence[Sequence[str]]


def interval(low: float | None, high: float | None) -> str:
    """Both ends of an interval."""
    return UNDEFINED if low is None else f"[{number(low)}, {number(high)}]"


def label_of(row: dict[str, Any]) -> str:
    """The label of a row, or that it is of all of a key."""
    value, name = str(row["label_value"]), row.get("label_name")
    named = value if name in (None, value) else f"{value} {name}"
    return plain("(all)" if row["average"] is not None else named)


def text_of(heading: str, header: Sequence[str], rows: Rows, notes: Sequence[str]) -> str:
    """For the prompt and the shell; the first column stands left, the others right."""
    lines = [heading]
    if rows:
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines.append("")
        lines += [
            "  " + "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in [header, *rows]
        ]  # fmt: skip
    more = [f"note: {plain(note)}" for note in notes]
    return "\n".join([*lines, *([""] if more else []), *more])


def markdown_of(heading: str, header: Sequence[str], rows: Rows, notes: Sequence[str]) -> str:
    """For pull requests and pages."""
    parts = [heading]
    if rows:
        right = [i > 0 for i in range(len(header))]
        parts.append(markdown_table([*header], [[*row] for row in rows], right=right))
    parts += ["\n".join(f"- {plain(note)}" for note in notes)] if notes else []
    return "\n\n".join(parts) + "\n"


def html_of(heading: str, header: Sequence[str], rows: Rows, notes: Sequence[str]) -> str:
    """For notebooks."""
    said = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in notes)
    table = html_table([*header], [[*row] for row in rows])
    return f"<div><p>{html.escape(heading)}</p>{table}{said}</div>"


def show_found(
    found: Any,
    form: str,
    out: IO[str],
    text: Callable[[Any], str],
    markdown: Callable[[Any], str],
    *,
    name: str,
) -> None:
    """Write what was found to a text stream.

    Args:
        found: what to show, with a ``frame``.
        form: one of :data:`FORMATS`.
        out: the stream.
        text: for people.
        markdown: for pages.
        name: of the frame.
    """
    if form == "table":
        write_text(text(found) + "\n", out)
    elif form == "markdown":
        write_text(markdown(found), out)
    else:
        show_frame(found.frame, form, name=name)
