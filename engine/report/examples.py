"""Worst datums on the page: table and contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from .page import Cell, Table
from .summary import number, plain
from .verdicts import signed

if TYPE_CHECKING:
    from .contents import AllShown, Shown
    from .thumbnails import Picture, Pictures


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
        worst: one or more rows from :func:`evalengine.analysis.worst.worst`; with a column
            ``before``, from :func:`evalengine.analysis.worst.worse_since`.
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
            "what is wrong",
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
