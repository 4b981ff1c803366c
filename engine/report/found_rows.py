"""Display of analyses, rows under a heading: text, Markdown, HTML, or for programs."""

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
    """Return a phrase for the threshold at which boxes hit; "" without boxes."""
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
    """Rows in each display format; "" without rows."""

    text: Callable[[Any], str]
    markdown: Callable[[Any], str]
    html: Callable[[Any], str]


def _aligned_cells(header: Sequence[str], rows: Rows) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    )


def of_cells(made: Callable[[Any], tuple[list[str], list[list[str]]]]) -> Body:
    """Make a body whose cells are text."""

    def markdown(header: list[str], rows: list[list[str]]) -> str:
        return markdown_table(header, rows, right=[i > 0 for i in range(len(header))])

    def each(form: Callable[[list[str], list[list[str]]], str]) -> Callable[[Any], str]:
        def shown(found: Any) -> str:
            header, rows = made(found)
            return form(header, rows) if rows else ""

        return shown

    return Body(each(_aligned_cells), each(markdown), each(html_table))


def of_frame(made: Callable[[Any], pl.DataFrame]) -> Body:
    """Make a body from a frame."""

    def each(form: Callable[[pl.DataFrame], str]) -> Callable[[Any], str]:
        return lambda found: form(made(found)).rstrip("\n") if len(found) else ""

    return Body(each(aligned), each(markdown_frame), each(html_frame))


class Layout(msgspec.Struct, frozen=True):
    """Display of the result of an analysis."""

    name: str
    heading: Callable[[Any], str]
    body: Body
    frame: Callable[[Any], pl.DataFrame]

    def text(self, found: Any, notes: Sequence[str] | None = None) -> str:
        """Format for the prompt and the shell.

        Args:
            notes: as worded for the surface; by default as in Python.
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
        """Write a finding to a text stream.

        Args:
            form: one of :data:`.show.FORMATS`; display formats include the notes.
        """
        if form == "table":
            write_text(self.text(found, notes) + "\n", out)
        elif form == "markdown":
            said = "\n".join(f"- {plain(note)}" for note in notes)
            parts = [self.heading(found), self.body.markdown(found), said]
            write_text("\n\n".join(filter(None, parts)) + "\n", out)
        else:
            show_frame(self.frame(found), form, name=self.name)
