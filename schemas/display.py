"""Tables to show: pure data, which every rendering reads."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

NAME, NUMBER, NOTE, READING = "name", "number", "note", "reading"
"""Kinds of columns: names of rows, numbers, texts, and comparisons with a baseline."""
BEST = "best"
"""State of a cell with the best of several numbers."""


class Column(msgspec.Struct, frozen=True):
    """Column of a table.

    Attributes:
        title: with the unit.
        form: how values of a frame become text: a key of :data:`evalengine.report.text.FORMS`.
        of: columns of the frame that contain the values; by default the title.
    """

    title: str
    kind: str = NUMBER
    form: str = "number"
    of: tuple[str, ...] = ()


class Cell(NamedTuple):
    """Cell of a table.

    Attributes:
        value: number to sort by; None to sort by ``text``.
        state: ``best`` or the reading, for styling; may be empty.
        bar: length of the background bar, 0 to 100; None for no bar.
        link: address that the text of a page leads to; may be empty.
    """

    text: str
    value: float | None = None
    state: str = ""
    bar: float | None = None
    link: str = ""


class Table(msgspec.Struct, frozen=True):
    """Table to show, rows in order.

    Attributes:
        title: meaning and order of the rows.
        notes: omitted rows or columns, and reasons for undefined numbers.
        id: id of the HTML element of a page.
        searched: show a search field above the table of a page.
    """

    columns: list[Column]
    rows: list[list[Cell]]
    title: str = ""
    notes: list[str] = []
    id: str = ""
    searched: bool = False

    @property
    def names(self) -> int:
        """Number of leading columns that are names."""
        kinds = [column.kind for column in self.columns]
        return next((n for n, kind in enumerate(kinds) if kind != NAME), len(kinds))

    def place(self, title: str) -> int | None:
        """Return the index of the column with a title; None if there is none."""
        titles = [column.title for column in self.columns]
        return titles.index(title) if title in titles else None

    def filled(self) -> Table:
        """Return the table without empty columns."""
        indices = [i for i in range(len(self.columns)) if any(row[i].text for row in self.rows)]
        return msgspec.structs.replace(
            self,
            columns=[self.columns[i] for i in indices],
            rows=[[row[i] for i in indices] for row in self.rows],
        )


def texts(*cells: str) -> list[Cell]:
    """Cells that are texts only."""
    return [Cell(text) for text in cells]
