"""The worst datums on the page: a table of them, and what they hold."""

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
        name: its id.
        why: what is wrong with it.
        kind: name of the struct that holds what it holds; empty where that is not known.
        content: that struct.
        columns: its other columns.
        picture: a thumbnail; None without.
    """

    name: str
    why: str
    kind: str
    content: Any
    columns: dict[str, str]
    picture: Picture | None


class Examples(msgspec.Struct, frozen=True):
    """The worst datums.

    Attributes:
        table: all of them.
        shown: those of which there is something to see.
        notes: what there is to tell.
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
    """The worst datums, or those that got worse, as they are drawn.

    Args:
        worst: one or more rows, as :func:`evalengine.analysis.worst.worst` gives them; with a
            column ``before`` they are as :func:`evalengine.analysis.worst.worse_since` does.
        found: what they hold, one a row.
        pictures: thumbnails, one a row; None without.
        slices: the slices they lie in, one a row; None without.
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
