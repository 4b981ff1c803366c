"""Printing of scorecards: tables for people, frames for programs.

Terminals get styled tables; pipes get the same text without colour, rules or characters that the
encoding does not support.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, TextIO, cast

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..schemas.errors import OptionError, unknown
from .frames import aligned, markdown_frame
from .look import USUAL, Look
from .sections import Grid, Line, Section, coco_numbers, exact_headline, sections
from .summary import (
    BEST,
    BINS,
    SLICES,
    UNDEFINED,
    WORST,
    also_made,
    cells,
    figure,
    footnotes,
    headed,
    heading,
    limited,
    made,
    markdown,
    plain,
    supported,
    told,
    unnumbered,
)

if TYPE_CHECKING:
    import polars as pl

    from ..scorecard.card import Scorecard

__all__ = ["FORMATS", "coco_numbers", "render", "show", "show_frame", "write_rich", "write_text"]

FORMATS = ("table", "json", "csv", "parquet", "markdown")
PIPED_WIDTH = 80
WIDE = 100_000
_LABEL_WIDTH = 26
_CODE_WIDTH = 12
_NUMBER_WIDTH = 6
_LEAST_NAME = 8
_NAMED = 3
_PADDING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.M)
"""Blanks at the end of a line, before codes that end a style."""
_ASCII = str.maketrans({UNDEFINED: "-", "±": "+-", "…": "~", "—": "-", "≥": ">"})


def show(
    card: Scorecard,
    form: str,
    out: IO[str] | None = None,
    *,
    beside: bool = True,
    written: bool = False,
    look: Look = USUAL,
) -> None:
    """Write a scorecard to a text stream.

    Args:
        form: one of :data:`FORMATS`; ``parquet`` writes bytes to the stream's buffer.
        out: default standard output.
        beside: name the frames other than metrics.
        written: all frames are already saved in a folder.
        look: order, rows and columns of tables and Markdown.

    Raises:
        OptionError: no such format, no such column to sort by, or bytes for a terminal.
    """
    out = sys.stdout if out is None else out
    if form == "table":
        write_rich(render(card, beside=beside, written=written, look=look), out, wide=look.wide)
    elif form == "markdown":
        write_text(markdown(card, beside=beside, written=written, look=look), out)
    else:
        show_frame(card.metrics, form, out, card=card)


def show_anyhow(card: Scorecard, form: str, look: Look, *, written: bool) -> OptionError | None:
    """Write a scorecard to standard output; return the error if the sort column does not exist.

    The default order is used in that case, so that the scoring was not wasted.
    """
    try:
        show(card, form, written=written, look=look)
    except OptionError as error:
        if look.sort is None:
            raise
        show(card, form, written=written, look=look.usually())
        return error
    return None


def show_frame(
    frame: pl.DataFrame,
    form: str,
    out: IO[str] | None = None,
    *,
    name: str = "metrics",
    card: Scorecard | None = None,
) -> None:
    """Write a frame as JSON, CSV, Parquet, Markdown or an aligned table.

    JSON is an object with the rows under the frame's name, plus notes and warnings; for the metrics
    frame also the rows of all other requested frames. Markdown and tables omit empty columns.

    Args:
        form: one of :data:`FORMATS`.
        out: default standard output.
        name: name of the frame.
        card: source of the notes in JSON.

    Raises:
        OptionError: no such format, or bytes for a terminal.
    """
    out = sys.stdout if out is None else out
    if form == "json":
        # One row a line: still one JSON document, and a pager or grep can read it.
        rows = ",\n  ".join(frame.write_ndjson().splitlines())
        parts = [f'"{name}": [{rows}]']
        for key in ("notes", "warnings"):
            listed = [] if card is None else list(getattr(card, key))
            parts.append(f'"{key}": {json.dumps(listed, ensure_ascii=False)}')
        if card is not None and name == "metrics" and (others := dict(made(card))):
            parts.append(f'"frames": {json.dumps(others)}')
        write_text("{" + ",\n ".join(parts) + "}\n", out)
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
        packed = io.BytesIO()  # Polars would hide what the stream says
        frame.write_parquet(packed)
        cast(TextIO, out).buffer.write(packed.getbuffer())
    else:
        raise unknown("format", form, FORMATS)


def write_text(text: str, out: IO[str]) -> None:
    """Write text, with ASCII substitutes for characters that the encoding does not support."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    out.write(text)


def write_rich(renderable: RenderableType, out: IO[str], *, wide: bool = False) -> None:
    """Write a rich renderable: styled on a terminal, otherwise plain and 80 columns wide.

    ``wide`` removes the width limit.
    """
    if out.isatty():
        console = Console(file=out, highlight=False, width=WIDE if wide else None)
        if not wide or console.legacy_windows:
            console.print(renderable)
            return
        with console.capture() as capture:
            console.print(renderable, soft_wrap=True)
        out.write(_PADDING.sub(r"\1", capture.get()))
        return
    # The environment may force colour or a width upon pipes; a pipe gets neither from us.
    console = Console(
        file=out,
        width=WIDE if wide else PIPED_WIDTH,
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


def render(
    card: Scorecard, *, beside: bool = True, written: bool = False, look: Look = USUAL
) -> RenderableType:
    """The whole table: per label key the headline, labels (worst last), slices; then notes."""
    parts: list[RenderableType] = [Text(heading(card), style="bold")]
    exact = exact_headline(card)
    found = sections(card, look)
    for section in found:
        parts += _section(section, exact, look, named=headed(section, found))
    if empty := unnumbered(card, bool(found)):
        parts.append(Text(empty))
    if card.notes:
        parts.append(Text(""))
        # Hanging indent, so that a wrapped note still reads as one.
        notes = Table.grid(padding=(0, 1))
        for kind, note in told(card):
            notes.add_row(f"{kind}:", Text(plain(note)))
        parts.append(notes)
    if beside and (line := also_made(card, written=written)):
        parts += [*([] if card.notes else [Text("")]), Text(line)]
    return Group(*parts)


def _section(section: Section, exact: bool, look: Look, *, named: bool) -> list[RenderableType]:
    blocks: list[list[RenderableType]] = []
    if section.headline:
        blocks.append([Padding(_Headline(section.headline, exact), (0, 0, 0, 2))])
    blocks += [[_grid(grid, BINS, 0, look)] for grid in section.tables]
    if section.labels is not None:
        blocks.append([_grid(section.labels, BEST, WORST, look)])
    blocks += [[_grid(grid, SLICES, 0, look)] for grid in section.slices]
    notes = footnotes(section)
    if notes:
        blocks.append([Text(line, style="dim") for line in notes])
    if named and section.label_key is not None:
        title = Text(f"label key {plain(section.label_key)}", style="bold")
        blocks[:1] = [[title, *(blocks[0] if blocks else [])]]
    return [part for block in blocks for part in (Text(""), *block)]


class _Headline:
    """Headline numbers fitted to the width; a number is shown in full or omitted."""

    def __init__(self, lines: Sequence[Line], exact: bool) -> None:
        self._lines, self._exact = lines, exact

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = self._lines
        numbers = [figure(line) for line in lines]
        digits = ["" if line.value is None or line.note else repr(line.value) for line in lines]
        titles = [line.title for line in lines]
        notes = [line.note for line in lines]
        wide = max(map(len, numbers))
        least = min(_LEAST_NAME, max(map(len, titles)))
        room = options.max_width - wide - 4  # of titles and what stands behind the numbers
        exact = self._exact and max(map(len, digits)) <= room - least
        if exact:
            notes = [note or every for note, every in zip(notes, digits, strict=True)]
        word = max(len(word) for note in notes for word in (note.split(), [""])[not note])
        if least + word > room:
            titles = [f"{title} {note}".strip() for title, note in zip(titles, notes, strict=True)]
            notes, word, room = [""] * len(notes), 0, room + 2
        width = max(1, min(max(map(len, titles)), room - word))
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True, width=width)
        table.add_column(justify="right", no_wrap=True, width=wide)
        if any(notes):
            table.add_column(width=min(max(map(len, notes)), room - width))
        for title, said, note in zip(titles, numbers, notes, strict=True):
            behind = [Text(note, style="dim")] if any(notes) else []
            table.add_row(Text(folded(title, width)), Text(said, style="bold"), *behind)
        yield table
        if self._exact and not exact and any(digits):
            yield Text("every digit: --format csv", style="dim")


_WHOLE = re.compile(r"\s+|@?[\d.,]*\d|\D")


def folded(title: str, width: int) -> str:
    """Wrap a title to a width, between words if possible and never inside a number."""
    lines = [""]
    for word in title.split():
        if not lines[-1] or len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += (" " if lines[-1] else "") + word
        else:
            lines.append(word)
        while len(lines[-1]) > width:
            kept = ""
            for part in _WHOLE.findall(lines[-1]):
                if kept and len(kept) + len(part) > width:
                    break
                kept += part
            rest = lines[-1][len(kept) :]
            lines[-1:] = [kept, rest]
            if not rest:
                lines.pop()
                break
    return "\n".join(lines)


def _broken(title: str) -> str:
    """A long title over several lines, a word each."""
    return title.replace(" ", "\n") if len(title) > 2 * _NUMBER_WIDTH else title


def _left_out(columns: Sequence[str], n: int) -> str:
    """Return a line that counts the omitted columns and names the first of them."""
    named = columns[:_NAMED]
    some = [*named, "..."] if n > len(named) else named
    return f"and {n} more column{'s' if n > 1 else ''}" + (f": {', '.join(some)}" if named else "")


class _Fitted:
    """A table fitted to the width: names are shortened first, then columns dropped, never digits.

    Args:
        best: rows shown from the top of a long table.
        worst: rows shown from its end.
        look: may override both.
    """

    def __init__(self, grid: Grid, best: int, worst: int, look: Look) -> None:
        self._grid = grid
        self._rows, self._after, self._left_out = limited(grid, best, worst, look)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        grid, rows = self._grid, self._rows
        names = [[plain(name) for name in row.names] for row in rows]
        support = [supported(row) for row in rows]
        columns = list(zip(*(cells(grid, row) for row in rows), strict=True))
        named = [
            # Inner name columns are label values: numbers or codes of similar length.
            min(_CODE_WIDTH if i < len(grid.names) - 1 else _LABEL_WIDTH, max(map(len, column)))
            for i, column in enumerate(zip(map(plain, grid.names), *names, strict=True))
        ]
        if self._left_out:
            for i, gap in enumerate(self._gap()):
                named[i] = max(named[i], len(gap))
        digits = [max(_NUMBER_WIDTH, *map(len, column)) for column in columns]
        titles = [_broken(column) for column in grid.columns]
        widths = [
            max(width, *map(len, title.split("\n")))
            for width, title in zip(digits, titles, strict=True)
        ]
        beside = max(len("support"), *map(len, support)) + 2 if any(support) else 0
        # Reserve a minimum width for names while columns are chosen; names get the rest afterwards.
        least = sum(min(_LEAST_NAME, width) for width in named) + 2 * (len(named) - 1)
        fitting = 1
        if least + widths[0] + 2 + beside > options.max_width:
            widths[0], titles[0] = digits[0], folded(grid.columns[0], digits[0])
        if least + widths[0] + 2 + beside > options.max_width:
            beside = 0
        used = least + widths[0] + 2 + beside
        for width in widths[1:]:
            used += width + 2
            fitting += used <= options.max_width
        left = options.max_width - sum(width + 2 for width in widths[:fitting]) - beside
        for i in sorted(range(len(named)), key=lambda i: -named[i]):
            others = sum(width + 2 for k, width in enumerate(named) if k != i)
            named[i] = max(1, min(named[i], left - others))
        table = Table(box=None, show_edge=False, pad_edge=False, header_style="bold")
        for name, width in zip(grid.names, named, strict=True):
            table.add_column(plain(name), no_wrap=True, overflow="ellipsis", width=width)
        shown = [*zip(titles[:fitting], widths[:fitting], strict=True)]
        for title, width in [*shown, *([("support", beside - 2)] if beside else [])]:
            table.add_column(title, justify="right", overflow="fold", width=width)
        for place, row in enumerate(names):
            if self._left_out and place == self._after:
                table.add_row(*self._gap())
            numbers = [column[place] for column in columns[:fitting]]
            table.add_row(*map(Text, row), *numbers, *([support[place]] if beside else []))
        if self._left_out and self._after >= len(rows):
            table.add_row(*self._gap())
        yield table
        said = [grid.note] if grid.note else []
        hidden = len(titles) - fitting + grid.hidden
        said += [_left_out(grid.columns[fitting:], hidden)] if hidden else []
        said += ["support has no room"] if any(support) and not beside else []
        more = "--format csv" if grid.frame == "metrics" else f"--frame {grid.frame}"
        more = f"--top all, {more}" if self._left_out and not hidden else more
        more = f"--wide, {more}" if hidden else more
        said += [f"{more} for all"] if self._left_out or hidden else []
        yield from (Text(line, style="dim") for line in said)

    def _gap(self) -> list[Text]:
        n = self._left_out
        more = ("...", f"and {n} more") if len(self._grid.names) > 1 else (f"... and {n} more",)
        return [Text(word, style="dim") for word in more]


def _grid(grid: Grid, best: int, worst: int, look: Look) -> RenderableType:
    return Padding(_Fitted(grid, best, worst, look), (0, 0, 0, 2))
