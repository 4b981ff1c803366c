"""Showing a scorecard: a table for people, or its metrics frame for programs.

On a terminal the table has emphasis; piped it is the same text without colour, ruled lines or
characters that the receiving end could not read.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, TextIO, cast

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..schemas.contract import DEFAULT_LABEL_KEY
from ..schemas.errors import OptionError, unknown
from .frames import aligned, markdown_frame
from .sections import Grid, Section, coco_numbers, exact_headline, sections
from .summary import (
    BEST,
    BINS,
    SLICES,
    UNDEFINED,
    WORST,
    footnotes,
    heading,
    limited,
    markdown,
    number,
    plain,
)

if TYPE_CHECKING:
    import polars as pl

    from ..scorecard import Scorecard

__all__ = ["FORMATS", "coco_numbers", "render", "show", "show_frame", "write_rich", "write_text"]

FORMATS = ("table", "json", "csv", "parquet", "markdown")
PIPED_WIDTH = 80
_LABEL_WIDTH = 26
_CODE_WIDTH = 12
_NUMBER_WIDTH = 6
_NAMED = 3
_ASCII = str.maketrans({UNDEFINED: "-", "…": "~", "—": "-", "≥": ">"})


def show(card: Scorecard, form: str, out: IO[str] | None = None) -> None:
    """Write a scorecard to a text stream.

    Args:
        card: what to show.
        form: one of :data:`FORMATS`; ``parquet`` writes bytes to the stream's buffer.
        out: standard output unless given.

    Raises:
        OptionError: no such format, or bytes for a terminal.
    """
    out = sys.stdout if out is None else out
    if form == "table":
        write_rich(render(card), out)
    elif form == "markdown":
        write_text(markdown(card), out)
    else:
        show_frame(card.metrics, form, out)


def show_frame(frame: pl.DataFrame, form: str, out: IO[str] | None = None) -> None:
    """Write a frame as JSON (a list of row objects), CSV, Parquet, Markdown or an aligned table.

    The last two are for people: every row, but without columns that hold nothing.

    Raises:
        OptionError: no such format, or bytes for a terminal.
    """
    out = sys.stdout if out is None else out
    if form == "json":
        # One row a line: still one JSON document, and a pager or grep can read it.
        rows = frame.write_ndjson().splitlines()
        write_text("[" + ",\n ".join(rows) + "]\n", out)
    elif form == "csv":
        write_text(frame.write_csv(), out)
    elif form == "markdown":
        write_text(markdown_frame(frame), out)
    elif form == "table":
        write_text(aligned(frame), out)
    elif form == "parquet":
        if out.isatty():
            raise OptionError(
                "format parquet is bytes, which a terminal cannot show: pipe it into a file, or"
                " write a folder with --out."
            )
        out.flush()
        frame.write_parquet(cast(TextIO, out).buffer)
    else:
        raise OptionError(unknown("format", form, FORMATS))


def write_text(text: str, out: IO[str]) -> None:
    """Write text, in ASCII stand-ins where the stream's encoding lacks a character."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    out.write(text)


def write_rich(renderable: RenderableType, out: IO[str]) -> None:
    """Write a rich renderable: styled on a terminal, plain and 80 columns wide elsewhere."""
    if out.isatty():
        Console(file=out, highlight=False).print(renderable)
        return
    # The environment may force colour or a width upon pipes; a pipe gets neither from us.
    console = Console(
        file=out,
        width=PIPED_WIDTH,
        color_system=None,
        force_terminal=False,
        force_jupyter=False,
        highlight=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        console.print(renderable)
    lines = (line.rstrip() for line in capture.get().split("\n"))
    write_text("\n".join(lines), out)


def render(card: Scorecard) -> RenderableType:
    """The whole table: per label key the headline, labels (worst last), slices; then notes."""
    parts: list[RenderableType] = [Text(heading(card), style="bold")]
    exact = exact_headline(card)
    found = sections(card)
    for section in found:
        parts += _section(
            section, exact, named=len(found) > 1 or section.label_key != DEFAULT_LABEL_KEY
        )
    if not found:
        parts.append(Text("no numbers"))
    if card.notes:
        parts.append(Text(""))
        # Hanging indent, so that a wrapped note still reads as one.
        notes = Table.grid(padding=(0, 1))
        for note in card.notes:
            notes.add_row("note:", Text(plain(note)))
        parts.append(notes)
    return Group(*parts)


def _section(section: Section, exact: bool, *, named: bool) -> list[RenderableType]:
    blocks: list[list[RenderableType]] = []
    if section.headline:
        table = Table.grid(padding=(0, 2))
        for line in section.headline:
            digits = "" if not exact or line.value is None else repr(line.value)
            table.add_row(
                Text(line.title),
                Text(number(line.value), style="bold", justify="right"),
                Text(line.note or digits, style="dim"),
            )
        blocks.append([Padding(table, (0, 0, 0, 2))])
    blocks += [[_grid(grid, BINS, 0)] for grid in section.tables]
    if section.labels is not None:
        blocks.append([_grid(section.labels, BEST, WORST)])
    blocks += [[_grid(grid, SLICES, 0)] for grid in section.slices]
    notes = footnotes(section)
    if notes:
        blocks.append([Text(line, style="dim") for line in notes])
    if named and section.label_key is not None:
        title = Text(f"label key {plain(section.label_key)}", style="bold")
        blocks[:1] = [[title, *(blocks[0] if blocks else [])]]
    return [part for block in blocks for part in (Text(""), *block)]


def _broken(title: str) -> str:
    """A long title over several lines, a word each."""
    return title.replace(" ", "\n") if len(title) > 2 * _NUMBER_WIDTH else title


def _left_out(columns: Sequence[str], n: int) -> str:
    """How many columns there is no room for, and the first of them."""
    named = columns[:_NAMED]
    some = [*named, "..."] if n > len(named) else named
    return f"and {n} more column{'s' if n > 1 else ''}" + (f": {', '.join(some)}" if named else "")


def _grid(grid: Grid, best: int, worst: int) -> RenderableType:
    table = Table(box=None, show_edge=False, pad_edge=False, header_style="bold")
    for place, name in enumerate(grid.names):
        # A label's value beside its name is a number, or a code as short as one.
        widest = _CODE_WIDTH if place < len(grid.names) - 1 else _LABEL_WIDTH
        table.add_column(plain(name), no_wrap=True, overflow="ellipsis", max_width=widest)
    titles = [_broken(column) for column in grid.columns]
    widths = [max(_NUMBER_WIDTH, *map(len, title.split("\n"))) for title in titles]
    room = PIPED_WIDTH - sum(_LABEL_WIDTH // 2 for _ in grid.names) - len("support") - 4
    fitting = max(1, sum(sum(widths[: i + 1]) + 2 * (i + 1) <= room for i in range(len(widths))))
    for title, width in zip((*titles[:fitting], "support"), (*widths[:fitting], 7), strict=True):
        # A least width, because names give way where the line is too narrow, never digits.
        table.add_column(title, justify="right", no_wrap=True, min_width=width)
    rows, after, left_out = limited(grid, best, worst)
    more = ("...", f"and {left_out} more") if len(grid.names) > 1 else (f"... and {left_out} more",)
    gap = [Text(word, style="dim") for word in more]
    for place, (names, numbers, support) in enumerate(rows):
        if left_out and place == after:
            table.add_row(*gap)
        table.add_row(
            *(Text(plain(name)) for name in names),
            *map(number, numbers[:fitting]),
            "" if support is None else f"{support}",
        )
    if left_out and after >= len(rows):
        table.add_row(*gap)
    said = [grid.note] if grid.note else []
    hidden = len(titles) - fitting + grid.hidden
    said += [_left_out(grid.columns[fitting:], hidden)] if hidden else []
    said += ["--format csv for all"] if left_out or hidden else []
    lines = (Text(line, style="dim") for line in said)
    return Padding(Group(table, *lines), (0, 0, 0, 2))
