"""Layouts, tables and charts to show: pure data, which every rendering reads.

A chart is a list of marks over two scales; coordinates are those of the scales. A scale with names
has a row or column per name: at 0, 1, ..., from the top or from the left.
"""

from __future__ import annotations

from collections.abc import Sequence
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


# Charts as lists of marks.

COLOURS = ("#2a78c8", "#c8501e", "#1a8a5f", "#b0459c", "#8a6d00", "#6b62d0", "#c2384f", "#4f7d8c")
"""Each has a contrast of 3 to 1 or more to white and to black."""
PLAIN = -1
"""The colour of text, instead of one of :data:`COLOURS`."""
SOLID, DASHED, DOTTED = "", "5 4", "1 4"
"""Lengths of dashes and gaps."""
CIRCLE, SQUARE, TRIANGLE, DIAMOND, DOWN, PLUS, CROSS, DASH, END = range(9)
"""Symbols of points; END is a short line across an interval."""


class Scale(msgspec.Struct, frozen=True):
    """Axis of a chart.

    Attributes:
        title: with the unit.
        ticks: values to mark; None for round ones.
        texts: one per tick, instead of its number.
        names: one per row or column, instead of a range.
        after: a text at the far end of each row.
    """

    title: str
    low: float = 0.0
    high: float = 1.0
    ticks: list[float] | None = None
    texts: list[str] = []
    names: list[str] = []
    after: list[str] = []


class Line(msgspec.Struct, frozen=True):
    """Connected points; None in ``y`` is a gap."""

    x: list[float]
    y: list[float | None]
    legend: str = ""
    colour: int = PLAIN
    dash: str = SOLID
    width: float = 1.6
    opacity: float = 1.0


class Band(msgspec.Struct, frozen=True):
    """Space between two lines; None in ``low`` and ``high`` is a gap."""

    x: list[float]
    low: list[float | None]
    high: list[float | None]
    legend: str = ""
    colour: int = PLAIN
    opacity: float = 0.22


class Points(msgspec.Struct, frozen=True):
    """Single points.

    Attributes:
        radius: one per point, or one for all.
        titles: one per point, or none.
    """

    x: list[float]
    y: list[float]
    symbol: int
    legend: str = ""
    colour: int = PLAIN
    radius: Sequence[float] = (3.5,)
    titles: list[str] = []
    hollow: bool = False


class Area(NamedTuple):
    """Bar or cell; a page leads to its link."""

    left: float
    right: float
    low: float
    high: float
    title: str = ""
    colour: int = 0
    opacity: float = 0.7
    outlined: bool = False
    link: str = ""


class Areas(msgspec.Struct, frozen=True):
    """Bars or cells."""

    areas: list[Area]
    legend: str = ""


class Texts(msgspec.Struct, frozen=True):
    """Small texts, as (x, y, text), centred at their points."""

    texts: list[tuple[float, float, str]]
    legend: str = ""


Mark = Line | Band | Points | Areas | Texts


class Chart(msgspec.Struct, frozen=True):
    """Chart: marks over two scales, the last on top.

    Attributes:
        kind: see :data:`evalengine.report.charts.KINDS`, or ``differences``.
        alt: the chart in words and numbers.
        note: omitted content, and how to get it.
    """

    kind: str
    title: str
    x: Scale
    y: Scale
    marks: list[Mark]
    alt: str
    note: str = ""


# Layouts of results: headline numbers, and columns of the tables of labels and slices.

WHOLE = "whole"
PARTS = "parts"
LARGEST = "largest"
EACH = "each"


class Entry(msgspec.Struct, frozen=True):
    """One metric's entry in a layout; gives one number per IoU threshold, area and cap.

    Attributes:
        metric: metric name.
        title: a template over the row: ``iou`` (0.5), ``percent`` (50), ``area``, ``cap``, ``k``.
        area: ``whole`` for the row over all areas, ``parts`` for the named ranges.
        cap: ``largest`` for the largest cap on detections (no cap being the largest), ``each``.
        alias: name in other tools, a template as ``title`` that may also have ``low`` and ``high``,
            the first and last IoU threshold in percent.
    """

    metric: str
    title: str
    area: str = WHOLE
    cap: str = LARGEST
    alias: str = ""


class Spread(msgspec.Struct, frozen=True):
    """A metric shown as a table over one column instead of as one number.

    Attributes:
        metric: metric name.
        by: numeric column of the table: a column of the metrics frame, or an entry of its
            ``parameters``.
        title: header of that column.
    """

    metric: str
    by: str
    title: str


class Layout(msgspec.Struct, frozen=True):
    """Display of the numbers of one task.

    Attributes:
        headline: aggregates, in order.
        label_columns: columns of the per-label table; labels are sorted by the first.
        slice_columns: columns of the tables of slices.
        tables: metrics with a separate table, one column per statistic.
        exact: show every digit of the headline next to the rounded number.
        best_first: labels and slices are sorted as in a leaderboard; otherwise the worst is first.
    """

    headline: tuple[Entry, ...]
    label_columns: tuple[Entry, ...]
    slice_columns: tuple[Entry, ...]
    tables: tuple[Spread, ...] = ()
    exact: bool = False
    best_first: bool = False
