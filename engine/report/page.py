"""Content of the report page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from ..scorecard.card import Scorecard
from .contents import AllShown, Picture, Pictures, Shown
from .summary import (
    UNDEFINED,
    Line,
    Section,
    cells,
    figure,
    footnotes,
    headed,
    number,
    plain,
    supported,
)
from .tables import USUAL_K, Grid
from .verdicts import BETTER, SAME, UNSURE, WORSE, Difference, Differences, signed

# Content of the report page as plain data; the template only renders it.
#
# Sections match the terminal tables (:mod:`evalengine.report.summary`). Next to each number are
# its interval, the baseline's number and whether the difference is significant.

ARROWS = {BETTER: "▲", WORSE: "▼", UNSURE: "≈", SAME: "="}
"""Symbol before each reading, so that colour is not the only cue."""


class Gate(msgspec.Struct, frozen=True):
    """A gate: its text, its result (passed, failed or skipped) and the numbers behind it."""

    status: str
    gate: str
    said: str


class Cell(msgspec.Struct, frozen=True):
    """A table cell.

    Attributes:
        sort: number to sort by; None to sort by ``text``.
        kind: ``name``, ``number``, ``reading`` or ``note``.
        bar: length of the background bar, 0 to 100; None for no bar.
        state: the reading, for styling; may be empty.
    """

    text: str
    sort: float | None = None
    kind: str = "number"
    bar: float | None = None
    state: str = ""


class Table(msgspec.Struct, frozen=True):
    """A table of the page.

    Attributes:
        id: id of the HTML element.
        caption: meaning and order of the rows.
        header: column names.
        notes: omitted rows or columns, and reasons for undefined numbers.
        names: number of leading columns that are names.
        searched: show a search field above the table.
    """

    id: str
    caption: str
    header: list[str]
    rows: list[list[Cell]]
    notes: list[str]
    names: int = 1
    searched: bool = False

    @property
    def right(self) -> list[bool]:
        """Flags of the columns that contain numbers."""
        first = self.rows[0] if self.rows else []
        return [cell.kind == "number" for cell in first]


class Part(msgspec.Struct, frozen=True):
    """Report section for one label key.

    Attributes:
        title: the label key; empty if it is the only one.
        numbers: the headline.
        tables: metrics that have a separate table.
        labels: table of labels, worst first; None without labels.
        slices: tables of slices, worst first.
    """

    title: str
    numbers: Table | None
    tables: list[Table]
    labels: Table | None
    slices: list[Table]


def parts(
    card: Scorecard, found: list[Section], differences: Differences | None, most: int
) -> list[Part]:
    """Build the tables of a run.

    Args:
        found: sections of the run.
        differences: differences to the baseline, if there is one.
        most: maximum number of rows per table.
    """
    return [
        Part(
            title=plain(section.label_key or "") if headed(section, found) else "",
            numbers=_numbers(section, differences, i),
            tables=[
                _of_grid(card, grid, None, most, f"table-{i}-{j}", "")
                for j, grid in enumerate(section.tables)
                if grid.frame == "metrics"
            ],
            labels=None
            if section.labels is None
            else _of_grid(
                card,
                _worst_first(card, section.labels),
                differences,
                most,
                f"labels-{i}",
                "Labels",
                searched=True,
            ),
            slices=[
                _of_grid(
                    card,
                    grid,
                    differences,
                    most,
                    f"slices-{i}-{j}",
                    f"By {plain(' and '.join(grid.names))}",
                    searched=len(grid.rows) > _MANY,
                )
                for j, grid in enumerate(section.slices)
            ],
        )
        for i, section in enumerate(found)
    ]


_MANY = 15


def _worst_first(card: Scorecard, grid: Grid) -> Grid:
    """The same rows from the worst by the first column to the best, undefined ones last."""
    sign = -1.0 if card.directions.get(grid.first) == "lower" else 1.0
    rows = sorted(
        grid.rows, key=lambda row: (row.numbers[0] is None, sign * (row.numbers[0] or 0.0))
    )
    return msgspec.structs.replace(grid, rows=rows)


def _numbers(section: Section, differences: Differences | None, i: int) -> Table | None:
    if not section.headline:
        return None
    reach = any(line.reach for line in section.headline)
    header = ["metric", "value", *(["interval"] if reach else [])]
    header += _NEXT if differences is not None else []
    support = any(line.row.get("support") for line in section.headline)
    header += ["support"] if support else []
    noted = any(line.note for line in section.headline)
    header += ["taken at"] if noted else []
    rows = []
    for line in section.headline:
        row = [
            Cell(plain(line.title), kind="name"),
            Cell(number(line.value, counted=line.counted), line.value),
        ]
        if reach:
            row.append(Cell(_between(line.row)))
        if differences is not None:
            row += _beside(differences.of(line.row))
        if support:
            rests = line.row.get("support")
            row.append(Cell("" if rests is None else f"{rests:,.10g}", rests))
        if noted:
            row.append(Cell(line.note, kind="note"))
        rows.append(row)
    notes = [
        _on_a_page(note)
        for note in footnotes(msgspec.structs.replace(section, labels=None, slices=[]))
    ]
    return Table(f"numbers-{i}", "All numbers of the whole set", header, rows, notes)


def _on_a_page(note: str) -> str:
    """A note without the way to get rows in Python and in a shell, which a reader has not."""
    said, hint, _ = note.partition("; all: ")
    return f"{said[0].upper()}{said[1:]}; they are in the run's metrics frame." if hint else note


_NEXT = ["baseline", "difference", "verdict"]


def _between(row: dict[str, Any]) -> str:
    lower, upper = row.get("lower"), row.get("upper")
    return "" if lower is None or upper is None else f"{number(lower)} to {number(upper)}"


def _beside(found: Difference | None) -> list[Cell]:
    """The baseline's number, the difference with its interval, and how to read it."""
    if found is None:
        return [Cell("not there"), Cell(""), Cell("new", kind="reading")]
    if found.value is None:
        undefined = Cell("undefined", kind="reading")
        return [Cell(number(found.before), found.before), Cell(UNDEFINED), undefined]
    said = signed(found.value)
    if found.lower is not None and found.upper is not None:
        said += f" [{signed(found.lower)}, {signed(found.upper)}]"
    reading = found.reading
    return [
        Cell(number(found.before), found.before),
        Cell(said, found.value),
        Cell(
            f"{ARROWS[reading]} {reading}" if reading else found.unread,
            kind="reading",
            state=reading,
        ),
    ]


def _of_grid(
    card: Scorecard,
    grid: Grid,
    differences: Differences | None,
    most: int,
    id: str,
    title: str,
    *,
    searched: bool = False,
) -> Table:
    """Build a table of labels or slices, with support, and the baseline of the first number."""
    shown = grid.rows[:most]
    support = [supported(row) for row in shown]
    rests = [row.support if isinstance(row.support, (int, float)) else None for row in shown]
    largest = max((one for one in rests if one is not None), default=0) or 1
    header = [plain(name) for name in (*grid.names, *grid.columns[:1])]
    header += _NEXT if differences is not None else []
    header += ["support"] if any(support) else []
    header += [plain(name) for name in grid.columns[1:]]
    unit = all(0 <= (row.numbers[0] or 0.0) <= 1 for row in shown)
    rows = []
    for row, said, on in zip(shown, support, rests, strict=True):
        line = [Cell(plain(name), kind="name") for name in row.names]
        text, *more = cells(grid, row)
        value = row.numbers[0]
        line.append(Cell(text, value, bar=100 * value if unit and value is not None else None))
        if differences is not None:
            first = row.rows[0] if row.rows else None
            line += _beside(None if first is None else differences.of(first))
        if any(support):
            line.append(Cell(said, on, bar=None if on is None else 100 * on / largest))
        line += [Cell(one, number) for one, number in zip(more, row.numbers[1:], strict=True)]
        rows.append(line)
    notes = _notes(grid, len(shown))
    order = "" if not title else f"{title}, {_order(card, grid)}"
    return Table(id, order or plain(grid.title), header, rows, notes, len(grid.names), searched)


def _order(card: Scorecard, grid: Grid) -> str:
    better = card.directions.get(grid.first)
    return f"by {grid.columns[0]}, {'worst' if better in ('higher', 'lower') else 'lowest'} first"


def _notes(grid: Grid, shown: int) -> list[str]:
    notes = [grid.note] if grid.note else []
    if shown < len(grid.rows):
        left = len(grid.rows) - shown
        notes.append(
            f"{left:,} more of {len(grid.rows):,} rows are not on this page: the metrics"
            " frame of the run has all of them."
        )
    if grid.hidden:
        notes.append(f"{grid.hidden:,} more columns are in the metrics frame of the run.")
    for reason, names in grid.undefined.items():
        some = ", ".join(plain(name) for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED:,} more" if names[_NAMED:] else ""
        notes.append(f"{UNDEFINED} {reason}: {some}{more}")
    return notes


_NAMED = 5


def lead(found: list[Section]) -> str:
    """Return a one-sentence headline for a page without gates and baseline.

    With several label keys, it uses the numbers over all keys, otherwise the first key, by name.
    """
    for section in sorted(found, key=lambda one: one.label_key is not None):
        by_metric: dict[str, list[Line]] = {}
        for line in section.headline:
            if line.value is not None:
                by_metric.setdefault(line.row["metric"], []).append(line)
        # One number a metric; of cut-offs the usual one.
        lines = [
            next((one for one in every if one.row["k"] == USUAL_K), every[0])
            for every in by_metric.values()
        ][:_LEADING]
        if lines:
            said = [f"{line.title} {figure(line)}" for line in lines]
            named = f"{plain(section.label_key or '')}: " if headed(section, found) else ""
            return f"{named}{_listed(said)}."
    return "No aggregate of this run is defined."


_LEADING = 3


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


# Worst datums on the page: table and contents.


class Datum(msgspec.Struct, frozen=True):
    """One of the worst datums.

    Attributes:
        kind: name of the content's struct; empty if unknown.
        picture: a thumbnail, or None.
    """

    name: str
    why: str
    kind: str
    content: Any
    columns: dict[str, str]
    picture: Picture | None


class Examples(msgspec.Struct, frozen=True):
    """Worst datums.

    Attributes:
        shown: those with content to show.
    """

    table: Table
    shown: list[Datum]
    notes: list[str]


def examples(
    worst: pl.DataFrame,
    found: AllShown,
    pictures: Pictures | None,
    slices: pl.DataFrame | None = None,
) -> Examples:
    """Prepare the worst datums, or those that got worse, for display.

    Args:
        worst: one or more rows from :func:`evalengine.plan.paging.worst`; with a column
            ``before``, from :func:`evalengine.plan.paging.worse_since`.
        pictures: thumbnails, one per row, or None.
        slices: their slices, one row each, or None.
    """
    metric = worst["metric"][0]
    since = "before" in worst.columns
    rows = []
    for i, row in enumerate(worst.iter_rows(named=True)):
        line = [Cell(plain(str(row["datum_id"])), kind="name")]
        if slices is not None:
            line += [Cell(plain(str(one or "")), kind="name") for one in slices.row(i)]
        line.append(Cell(number(row["value"]), row["value"]))
        if since:
            change = row["value"] - row["before"]
            line += [Cell(number(row["before"]), row["before"]), Cell(signed(change), change)]
        rows.append([*line, Cell(plain(row["why"]), kind="note")])
    n = f"{worst.height} datum{'s' if worst.height > 1 else ''}"
    table = Table(
        "examples-since" if since else "examples-table",
        f"The {n} that got worse since the baseline by {metric}, the largest change first"
        if since
        else f"The {n} that are worst by {metric}, the worst first",
        [
            "datum",
            *(plain(name) for name in (slices.columns if slices is not None else ())),
            metric,
            *(("baseline", "change") if since else ()),
            "errors",
        ],
        rows,
        [],
        searched=len(rows) > 1,
    )
    notes = [plain(found.lacking)] if found.lacking else []
    notes += [plain(note) for note in pictures.notes] if pictures is not None else []
    thumbnails = (None,) * worst.height if pictures is None else pictures.pictures
    shown = [
        _datum(one, why, picture)
        for one, why, picture in zip(found.datums, worst["why"], thumbnails, strict=True)
        if one.content is not None or picture is not None
    ]
    return Examples(table, shown, notes)


def _datum(one: Shown, why: str, picture: Picture | None) -> Datum:
    kind = "" if one.content is None else type(one.content).__name__
    columns = {plain(name): plain(value) for name, value in one.columns.items()}
    return Datum(plain(str(one.datum_id)), plain(why), kind, one.content, columns, picture)
