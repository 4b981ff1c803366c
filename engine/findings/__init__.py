"""Findings: analyses of a run."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from typing import IO, ClassVar

import msgspec
import polars as pl

from ..ingest.geometry import CORNER_NAMES
from ..report.text import aligned, as_html, markdown, plain, table_of, write_frame, write_text
from ..schemas.display import Column, Table
from ..schemas.wording import in_python


class FindingResult(msgspec.Struct, kw_only=True, eq=False, dict=True):
    """Base class of the results of analyses: rows under a heading, with notes.

    Attributes:
        messages: notes for the reader, options marked as in :mod:`..schemas.wording`.
        inputs: source files, protected against overwriting.
    """

    messages: tuple[str, ...] = ()
    inputs: tuple[str | os.PathLike[str], ...] = ()
    _name: ClassVar[str]
    """Key of the rows in JSON."""

    def _heading(self) -> str:
        """Return a one-sentence summary."""
        raise NotImplementedError

    def _rows(self) -> pl.DataFrame:
        """Rows for programs."""
        return self.frame  # type: ignore[attr-defined]

    def _table_rows(self) -> pl.DataFrame:
        """Rows for people."""
        return self._rows()

    def _columns(self) -> list[Column]:
        """Columns for people; by default those of the rows that have values."""
        return []

    def __len__(self) -> int:
        return self._rows().height

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader, one sentence each."""
        return tuple(map(in_python, self.messages))

    def __repr__(self) -> str:
        return as_text(self, self.notes)

    def _repr_html_(self) -> str:
        body = as_html(_table(self)) if len(self) else ""
        notes = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in self.notes)
        return f"<div><p>{html.escape(self._heading())}</p>{body}{notes}</div>"


def _table(result: FindingResult) -> Table:
    return table_of(result._table_rows(), result._columns())


_LONGEST = 100  # characters of a cell per line


def as_text(finding: FindingResult, notes: Sequence[str]) -> str:
    """Format a finding for the prompt and the shell."""
    lines = [finding._heading()]
    if len(finding):
        lines += ["", *(f"  {line}" for line in aligned(_table(finding), longest=_LONGEST))]
    note_lines = [f"note: {plain(note)}" for note in notes]
    return "\n".join([*lines, *([""] if note_lines else []), *note_lines])


def show(finding: FindingResult, form: str, out: IO[str], notes: Sequence[str]) -> None:
    """Write a finding to a text stream.

    Args:
        form: one of :data:`.text.FORMATS`; formats for people include the notes.
    """
    if form == "table":
        write_text(as_text(finding, notes) + "\n", out)
    elif form == "markdown":
        message = "\n".join(f"- {plain(note)}" for note in notes)
        parts = [finding._heading(), markdown(_table(finding)) if len(finding) else "", message]
        write_text("\n\n".join(filter(None, parts)) + "\n", out)
    else:
        write_frame(finding._rows(), form, out, finding._name, {"notes": [], "warnings": []})


def hit_at(threshold: float | None, *, by_distance: bool) -> str:
    """Return a phrase for the threshold at which boxes hit; "" without boxes."""
    if threshold is None:
        return ""
    return f" at {threshold:g} metres" if by_distance else f" at IoU {threshold:g}"


def with_boxes(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace the corners of both boxes by one string each."""
    for before in ("", "annotation_"):
        corners = [before + name for name in CORNER_NAMES]
        box = pl.format("{} {} {} {}", *(pl.col(name).round(1) for name in corners))
        rows = rows.with_columns(box.alias(f"{before}box")).drop(corners)
    return rows


def with_names(
    frame: pl.DataFrame, columns: Sequence[str], names: Mapping[str, str]
) -> pl.DataFrame:
    """Append class names to labels, if they have others."""
    titles = {value: f"{value} {name}" for value, name in names.items()}
    return frame.with_columns(
        pl.col(name).cast(pl.String).replace(titles)
        for name in columns
        if names and name in frame.columns
    )
