"""What was found in a run, rows under a heading: as text, Markdown, HTML, or for programs."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import IO, Any

import msgspec
import polars as pl

from .frames import aligned, html_frame, html_table, markdown_frame
from .show import show_frame, write_text
from .summary import UNDEFINED, markdown_table, number, plain

Rows = Sequence[Sequence[str]]


def hit_at(threshold: float | None, *, by_distance: bool) -> str:
    """At what boxes hit, as a part of a sentence; nothing where there are none."""
    if threshold is None:
        return ""
    return f" at {threshold:g} metres" if by_distance else f" at IoU {threshold:g}"


def interval(low: float | None, high: float | None) -> str:
    """Both ends of an interval."""
    return UNDEFINED if low is None else f"[{number(low)}, {number(high)}]"


def label_of(row: dict[str, Any]) -> str:
    """The label of a row, or that it is of all of a key."""
    value, name = str(row["label_value"]), row.get("label_name")
    named = value if name in (None, value) else f"{value} {name}"
    return plain("(all)" if row["average"] is not None else named)


class Body(msgspec.Struct, frozen=True):
    """Rows in each form for people; nothing where there are none.

    Attributes:
        text: for the prompt and the shell.
        markdown: for pull requests and pages.
        html: for notebooks.
    """

    text: Callable[[Any], str]
    markdown: Callable[[Any], str]
    html: Callable[[Any], str]


def _aligned_cells(header: Sequence[str], rows: Rows) -> str:
    """The first column stands left, the others right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    )


def of_cells(made: Callable[[Any], tuple[list[str], list[list[str]]]]) -> Body:
    """Rows whose cells are words already.

    Args:
        made: makes the header and the rows of what was found.
    """

    def markdown(header: list[str], rows: list[list[str]]) -> str:
        return markdown_table(header, rows, right=[i > 0 for i in range(len(header))])

    def each(form: Callable[[list[str], list[list[str]]], str]) -> Callable[[Any], str]:
        def shown(found: Any) -> str:
            header, rows = made(found)
            return form(header, rows) if rows else ""

        return shown

    return Body(each(_aligned_cells), each(markdown), each(html_table))


def of_frame(made: Callable[[Any], pl.DataFrame]) -> Body:
    """Rows of a frame.

    Args:
        made: makes the frame of what was found.
    """

    def each(form: Callable[[pl.DataFrame], str]) -> Callable[[Any], str]:
        return lambda found: form(made(found)).rstrip("\n") if len(found) else ""

    return Body(each(aligned), each(markdown_frame), each(html_frame))


class Layout(msgspec.Struct, frozen=True):
    """How something that was found is shown.

    Attributes:
        name: of the frame that programs get.
        heading: what was looked at, in a sentence.
        body: the rows, for people.
        frame: the rows, for programs.
    """

    name: str
    heading: Callable[[Any], str]
    body: Body
    frame: Callable[[Any], pl.DataFrame]

    def text(self, found: Any, notes: Sequence[str] | None = None) -> str:
        """For the prompt and the shell.

        Args:
            found: what to show.
            notes: as the reader's surface writes them; as Python does unless given.
        """
        lines = [self.heading(found)]
        if body := self.body.text(found):
            lines += ["", *("  " + line for line in body.splitlines())]
        more = [f"note: {plain(note)}" for note in (found.notes if notes is None else notes)]
        return "\n".join([*lines, *([""] if more else []), *more])

    def html(self, found: Any) -> str:
        """For notebooks."""
        notes = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in found.notes)
        return f"<div><p>{html.escape(self.heading(found))}</p>{self.body.html(found)}{notes}</div>"

    def show(self, found: Any, form: str, out: IO[str], notes: Sequence[str]) -> None:
        """Write what was found to a text stream.

        Args:
            found: what to show.
            form: one of :data:`.show.FORMATS`; those for people show the notes.
            out: the stream.
            notes: as the shell writes them.
        """
        if form == "table":
            write_text(self.text(found, notes) + "\n", out)
        elif form == "markdown":
            said = "\n".join(f"- {plain(note)}" for note in notes)
            parts = [self.heading(found), self.body.markdown(found), said]
            write_text("\n\n".join(filter(None, parts)) + "\n", out)
        else:
            show_frame(self.frame(found), form, name=self.name)
