"""The worst datums on the page: a table of them, and what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from .page import Cell, Table
from .summary import number, plain

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


def examples(worst: pl.DataFrame, found: AllShown, pictures: Pictures | None) -> Examples | None:
    """The worst datums as they are drawn; None where none is wrong.

    Args:
        worst: as :func:`evalengine.analysis.worst.worst` gives it.
        found: what they hold, one a row.
        pictures: thumbnails, one a row; None without.
    """
    if not worst.height:
        return None
    metric = worst["metric"][0]
    rows = [
        [
            Cell(plain(str(one)), kind="name"),
            Cell(number(value), value),
            Cell(plain(why), kind="note"),
        ]
        for one, value, why in worst.select("datum_id", "value", "why").iter_rows()
    ]
    table = Table(
        "examples-table",
        f"The {worst.height} worst datums by {metric}, the worst first",
        ["datum", metric, "what is wrong"],
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
