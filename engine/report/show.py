"""Scorecards, comparisons and listings as text, Markdown, HTML and records."""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import msgspec
import polars as pl
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table as Grid_
from rich.text import Text

from ..ingest.problems import count_of
from ..metrics import registry
from ..schemas.display import BEST, NAME, NOTE, NUMBER, Cell, Column, Table, texts
from ..schemas.errors import OptionError, did_you_mean, unknown
from ..schemas.results import FRAMES as results_FRAMES
from ..schemas.tables import TABLES
from ..statistics.paired import too_few
from .summary import BEST as BEST_ROWS
from .summary import (
    BINS,
    SLICES,
    WORST,
    Line,
    Section,
    also_made,
    cells,
    exact_headline,
    figure,
    footnotes,
    grid_table,
    headed,
    headline_table,
    limited,
    made,
    markdown,
    ordered_notes,
    remarks,
    row_counts,
    sections,
    supported,
    tables_of,
    unnumbered,
)
from .summary import heading as summary_heading
from .tables import USUAL, Grid, Look
from .text import (
    aligned,
    as_json,
    code,
    escaped,
    latex,
    number,
    plain,
    shorten_distinctly,
    shortened,
    table_of,
    write_frame,
    write_text,
)
from .text import as_html as as_html_table
from .text import markdown as as_markdown_table
from .verdicts import (
    beaten,
    better,
    differs,
    headline,
    lead,
    letters,
    of_pair,
    pairs,
    ranks,
    same_number,
    title_of,
    values_of,
)

if TYPE_CHECKING:
    from ..api import CheckReport
    from ..scorecard.card import Scorecard
    from ..statistics.comparison import Comparison


# Printing of scorecards: tables for people, frames for programs.
#
# Terminals get styled tables; pipes get the same text without colour, rules or characters that
# the encoding does not support.

PIPED_WIDTH = 80
WIDE = 100_000
_CUT = partial(shortened, measure=cell_len)
_LABEL_WIDTH = 26
_CODE_WIDTH = 12
_NUMBER_WIDTH = 6
_LEAST_NAME = 8
_NAMED = 3
_PADDING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.M)
"""Blanks at the end of a line, before codes that end a style."""


def show(
    card: Scorecard,
    form: str,
    out: IO[str] | None = None,
    *,
    frames: bool = True,
    written: bool = False,
    look: Look = USUAL,
) -> None:
    """Write a scorecard to a text stream.

    Args:
        form: one of :data:`FORMATS`; ``parquet`` writes bytes to the stream's buffer.
        out: default standard output.
        frames: name the frames other than metrics.
        written: all frames are already saved in a folder.
        look: order, rows and columns of tables and Markdown.

    Raises:
        OptionError: no such format, no such column to sort by, or bytes for a terminal.
    """
    out = sys.stdout if out is None else out
    if form == "table":
        write_rich(render(card, frames=frames, written=written, look=look), out, wide=look.wide)
        if out.isatty():
            write_rich(Text(card.cite, style="dim"), out, wide=True)
    elif form == "markdown":
        write_text(markdown(card, frames=frames, written=written, look=look), out)
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
        show(card, form, written=written, look=msgspec.structs.replace(look, sort=None))
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
    extra: dict[str, Any] = {"notes": [], "warnings": []}
    if card is not None:
        extra = {key: list(getattr(card, key)) for key in extra}
        extra["cite"] = card.cite
        if name == "metrics" and (others := dict(made(card))):
            extra["frames"] = others
    write_frame(frame, form, sys.stdout if out is None else out, name, extra)


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
    # Ignore environment variables that force colour or a width if the output is a pipe.
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
    card: Scorecard, *, frames: bool = True, written: bool = False, look: Look = USUAL
) -> RenderableType:
    """Return all lines of a scorecard: headline, labels and slices per label key, then notes."""
    parts: list[RenderableType] = [Text(summary_heading(card), style="bold")]
    exact = exact_headline(card)
    all_sections = sections(card, look)
    for section in all_sections:
        parts += _section(section, exact, look, named=headed(section, all_sections))
    if empty := unnumbered(card, bool(all_sections)):
        parts.append(Text(empty))
    if card.notes:
        parts.append(Text(""))
        # Hanging indent, so that a wrapped note is still recognisable as one note.
        notes = Grid_.grid(padding=(0, 1))
        for kind, note in ordered_notes(card):
            notes.add_row(f"{kind}:", Text(plain(note)))
        parts.append(notes)
    if frames and (line := also_made(card, written=written)):
        parts += [*([] if card.notes else [Text("")]), Text(line)]
    return Group(*parts)


def _section(section: Section, exact: bool, look: Look, *, named: bool) -> list[RenderableType]:
    blocks: list[list[RenderableType]] = []
    if section.headline:
        blocks.append([Padding(_Headline(section.headline, exact), (0, 0, 0, 2))])
    blocks += [[_grid(grid, BINS, 0, look)] for grid in section.tables]
    if section.labels is not None:
        blocks.append([_grid(section.labels, WORST, BEST_ROWS, look)])
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
        room = options.max_width - wide - 4  # of titles and the text behind the numbers
        exact = self._exact and max(map(len, digits)) <= room - least
        if exact:
            notes = [note or every for note, every in zip(notes, digits, strict=True)]
        word = max(len(word) for note in notes for word in (note.split(), [""])[not note])
        if least + word > room:
            titles = [f"{title} {note}".strip() for title, note in zip(titles, notes, strict=True)]
            notes, word, room = [""] * len(notes), 0, room + 2
        width = max(1, min(max(map(len, titles)), room - word))
        table = Grid_.grid(padding=(0, 2))
        table.add_column(no_wrap=True, width=width)
        table.add_column(justify="right", no_wrap=True, width=wide)
        if any(notes):
            table.add_column(width=min(max(map(len, notes)), room - width))
        for title, value, note in zip(titles, numbers, notes, strict=True):
            notes_column = [Text(note, style="dim")] if any(notes) else []
            table.add_row(Text(folded(title, width)), Text(value, style="bold"), *notes_column)
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
            head = ""
            for part in _WHOLE.findall(lines[-1]):
                if head and len(head) + len(part) > width:
                    break
                head += part
            rest = lines[-1][len(head) :]
            lines[-1:] = [head, rest]
            if not rest:
                lines.pop()
                break
    return "\n".join(lines)


class _Fitted:
    """A table fitted to the width: names are shortened first, then columns dropped, never digits.

    Args:
        first: rows shown from the top of a long table.
        last: rows shown from its end.
        look: may override both.
    """

    def __init__(self, grid: Grid, first: int, last: int, look: Look) -> None:
        self._grid = grid
        self._rows, self._after, self._left_out = limited(grid, first, last, look)

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
        # A long title has several lines, one word per line.
        titles = [
            title.replace(" ", "\n") if len(title) > 2 * _NUMBER_WIDTH else title
            for title in grid.columns
        ]
        widths = [
            max(width, *map(len, title.split("\n")))
            for width, title in zip(digits, titles, strict=True)
        ]
        support_width = max(len("support"), *map(len, support)) + 2 if any(support) else 0
        # Reserve a minimum width for names while columns are chosen; names get the rest afterwards.
        least = sum(min(_LEAST_NAME, width) for width in named) + 2 * (len(named) - 1)
        fitting = 1
        if least + widths[0] + 2 + support_width > options.max_width:
            widths[0], titles[0] = digits[0], folded(grid.columns[0], digits[0])
        if least + widths[0] + 2 + support_width > options.max_width:
            support_width = 0
        used = least + widths[0] + 2 + support_width
        for width in widths[1:]:
            used += width + 2
            fitting += used <= options.max_width
        left = options.max_width - sum(width + 2 for width in widths[:fitting]) - support_width
        for i in sorted(range(len(named)), key=lambda i: -named[i]):
            others = sum(width + 2 for k, width in enumerate(named) if k != i)
            named[i] = max(1, min(named[i], left - others))
        cut = [
            shorten_distinctly(column, width, _CUT, cell_len)
            for column, width in zip(zip(*names, strict=True), named, strict=True)
        ]
        table = Grid_(box=None, show_edge=False, pad_edge=False, header_style="bold")
        for name, width in zip(grid.names, named, strict=True):
            table.add_column(plain(name), no_wrap=True, overflow="ellipsis", width=width)
        displayed = [*zip(titles[:fitting], widths[:fitting], strict=True)]
        for title, width in [
            *displayed,
            *([("support", support_width - 2)] if support_width else []),
        ]:
            table.add_column(title, justify="right", overflow="fold", width=width)
        for place, row in enumerate(zip(*cut, strict=True)):
            if self._left_out and place == self._after:
                table.add_row(*self._gap())
            numbers = [column[place] for column in columns[:fitting]]
            table.add_row(*map(Text, row), *numbers, *([support[place]] if support_width else []))
        if self._left_out and self._after >= len(rows):
            table.add_row(*self._gap())
        yield table
        notes = [grid.note] if grid.note else []
        hidden = len(titles) - fitting + grid.hidden
        if hidden:
            gone = [*grid.columns[fitting:][:_NAMED]]
            gone += ["..."] if gone and hidden > len(gone) else []
            some = f": {', '.join(gone)}" if gone else ""
            notes.append(f"and {hidden} more column{'s' if hidden > 1 else ''}{some}")
        notes += ["support has no room"] if any(support) and not support_width else []
        more = "--format csv" if grid.frame == "metrics" else f"--frame {grid.frame}"
        more = f"--top all, {more}" if self._left_out and not hidden else more
        more = f"--wide, {more}" if hidden else more
        notes += [f"{more} for all"] if self._left_out or hidden else []
        yield from (Text(line, style="dim") for line in notes)

    def _gap(self) -> list[Text]:
        n = self._left_out
        more = ("...", f"and {n} more") if len(self._grid.names) > 1 else (f"... and {n} more",)
        return [Text(word, style="dim") for word in more]


def _grid(grid: Grid, first: int, last: int, look: Look) -> RenderableType:
    return Padding(_Fitted(grid, first, last, look), (0, 0, 0, 2))


# Output of the commands ``metrics``, ``schemas`` and ``check``.

_WIDTH = 80


def metrics_listing(table: pl.DataFrame, names: Sequence[str], task: str | None, form: str) -> str:
    """List the metrics of the registry.

    Args:
        table: result of ``metrics_table()``.
        names: metrics to list; all if empty.
        task: only metrics of this task.
        form: ``text``, ``json``, ``csv`` or ``markdown``.

    Raises:
        OptionError: no such metric or task.
    """
    table = _named_rows(table, "task", [task] if task else [], "task")
    available = set(table["name"])
    spelled = [_spelled(name, available) for name in names]
    table = _named_rows(table, "name", [one for some in spelled for one in some], "metric")
    if form != "text":
        return _as(table, form)
    blocks = []
    for row in table.iter_rows(named=True):
        directed = row["better"] in ("higher", "lower")
        better = f"{row['better']} is better" if directed else "no direction"
        lines = [f"{row['name']}  ({row['task']}; {row['range']}, {better})"]
        lines += _wrapped(row["definition"])
        if row["formula"]:
            lines.append(f"    formula: {row['formula']}")
            named = registry.symbols(registry.get(row["task"], row["name"]))
            lines += [f"      {symbol}  {meaning}" for symbol, meaning in named.items()]
        for name in ("averages", "options", "source"):
            if row.get(name):
                lines += _wrapped(f"{name}: {row[name]}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _spelled(name: str, names: set[str]) -> list[str]:
    """Resolve a metric name or alias to names in ``names``; OptionError if there is no match."""
    matches = [metric.name for metric, _ in registry.everywhere(name) if metric.name in names]
    if not matches:
        suggestion = did_you_mean(name, names)
        raise OptionError(
            f"{name!r} is not a known metric.{suggestion} All of them: evalengine metrics.",
            code="unknown_name",
            value=name,
        )
    return list(dict.fromkeys(matches))


def schemas_listing(names: Sequence[str], form: str) -> str:
    """List the columns of input tables and output frames.

    Args:
        names: tables and frames to list; all if empty.
        form: ``text``, ``json``, ``csv`` or ``markdown``.

    Raises:
        OptionError: no such table or frame.
    """
    table = _named_rows(_all_columns(), "table", names, "table or frame")
    if form != "text":
        return _as(table, form)
    blocks = []
    for (task, name), rows in table.group_by("task", "table", maintain_order=True):
        lines = [f"{name} ({'output' if task is None else f'input, task {task}'})"]
        widths = [max(len(row[key] or "") for row in rows.to_dicts()) for key in ("column", "type")]
        for row in rows.iter_rows(named=True):
            start = f"  {row['column']:<{widths[0]}}  {row['type']:<{widths[1]}}  "
            words = [word for word in (row["need"], row["about"]) if word]
            if row["also"]:
                words.append(f"Also: {row['also']}.")
            lines += textwrap.wrap(
                " ".join(words) or " ",
                _WIDTH,
                initial_indent=start,
                subsequent_indent=" " * len(start),
                drop_whitespace=True,
            ) or [start.rstrip()]
        blocks.append("\n".join(line.rstrip() for line in lines))
    return "\n\n".join(blocks) + "\n"


def _all_columns() -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for table in TABLES:
        for need, columns in (("Required.", table.required), ("", table.optional)):
            rows += [
                {
                    "task": table.task,
                    "table": table.side,
                    "column": column.name,
                    "type": column.kind,
                    "need": need,
                    "about": column.about,
                    "also": ", ".join(column.aliases) or None,
                }
                for column in columns
            ]
    for frame, schema in results_FRAMES.items():
        rows += [
            {"table": frame, "column": name, "type": "as input" if dtype is None else str(dtype)}
            for name, dtype in schema.items()
        ]
    keys = ("task", "table", "column", "type", "need", "about", "also")
    return pl.DataFrame(rows, schema=dict.fromkeys(keys, pl.String))


def refused(message: str) -> str:
    """Return the JSON that ``check`` prints for unusable tables.

    Args:
        message: the error message; each line that begins with a dash is one problem.
    """
    head, *problems = message.split("\n- ")
    result = {"ok": False, "problems": problems or [head], "error": message}
    return json.dumps(result, indent=2, ensure_ascii=False)


def checked(report: CheckReport, form: str) -> str:
    """Return the result of ``check`` as text or JSON."""
    if form == "json":
        result = {
            "ok": not report.warnings,
            "rows": report.rows,
            "recognised": report.recognised,
            "notes": list(report.notes),
            "warnings": list(report.warnings),
        }
        return json.dumps(result, indent=2, ensure_ascii=False)
    lines = [f"{name}: {count_of(rows, 'row')}" for name, rows in report.rows.items()]
    for name, columns in report.recognised.items():
        read = ", ".join(f"{mine} as {ours}" for mine, ours in columns.items() if mine != ours)
        if read:
            lines.append(f"{name}: read {read}")
    lines += [
        f"{'warning' if note in report.warnings else 'note'}: {note}" for note in report.notes
    ]
    lines.append("not ok: the numbers would be meaningless" if report.warnings else "ok")
    return "\n".join(lines)


def _named_rows(table: pl.DataFrame, column: str, names: Sequence[str], kind: str) -> pl.DataFrame:
    """Return the rows of the given names, ignoring case, in the order of the names."""
    if not names:
        return table
    by_name: dict[str, list[str]] = {}
    for name in table[column].unique(maintain_order=True):
        by_name.setdefault(name.casefold(), []).append(name)
    matches: list[str] = []
    for name in names:
        candidates = by_name.get(name.casefold(), [])
        if not candidates:
            raise unknown(kind, name, table[column].unique(maintain_order=True))
        matches += [name] if name in candidates else candidates
    return pl.concat([table.filter(pl.col(column) == name) for name in dict.fromkeys(matches)])


def _as(table: pl.DataFrame, form: str) -> str:
    if form == "csv":
        return table.write_csv()
    if form == "json":
        return "[" + ",\n ".join(table.write_ndjson().splitlines()) + "]\n"
    # Not escaped: Markdown renderers show formulas.
    header = [table.columns, ["---"] * table.width]
    rows = [["" if cell is None else str(cell) for cell in row] for row in table.iter_rows()]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n"
        for row in (*header, *rows)
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")


# A comparison as text, Markdown, HTML, LaTeX, or rows for programs.

COMPARISON_FORMATS = ("table", "markdown", "latex", "json", "csv", "parquet")
FRAMES = ("differences", "flips")
_MOST = 15
_COMPARISON_WIDTH = 100
_UNBREAKABLE = re.compile(r" (?=[%=] )|(?<==) ")
_LEAST = ("wins-ties-losses", "p")
"""Columns to hide first on a narrow terminal."""
_WORDS = {1: "better", -1: "worse", 0: ""}
_BOUNDS, _VOTES = ("lower", "upper"), ("wins", "ties", "losses")


def tables(comparison: Comparison) -> list[Table]:
    """Return the tables of a comparison.

    For two runs: the aggregates, then labels and slices by evidence. For more runs: one column per
    run, then each pair by the leading number.
    """
    if len(comparison.runs) > 2:
        return [_many(comparison), *_pairs(comparison)]
    (a, b) = pairs(comparison)[0]
    lines = headline(comparison, of_pair(comparison, a, b))
    names = [plain(a), plain(b)]
    overall = [_differences(comparison, "metric", lines, names)] if lines else []
    return [*overall, *_details(comparison, names)]


def _differences(
    comparison: Comparison,
    name: str,
    lines: Sequence[tuple[str, dict[str, Any]]],
    runs: Sequence[str] = (),
    note: str = "",
) -> Table:
    """Make a table of differences."""
    votes = any(row["wins"] is not None for _, row in lines)
    adjusted = comparison.adjust != "none"
    columns = [Column(name, NAME, "text", ("title",))]
    columns += [Column(run, of=(side,)) for run, side in zip(runs, "ab", strict=bool(runs))]
    columns += [
        Column("difference", form="signed"),
        Column(f"{100 * comparison.level:g} % interval", NUMBER, "signed interval", _BOUNDS),
        Column("p", form="p"),
    ]
    columns += [Column("adjusted", form="p", of=("p_adjusted",))] if adjusted else []
    columns += [Column("wins-ties-losses", form="votes", of=_VOTES)] if votes else []
    columns.append(Column(f"{runs[1] if runs else 'the first'} is", NOTE, "text", ("says",)))
    rows = []
    for called, row in lines:
        reading = _WORDS[better(comparison, row)]
        if differs(comparison, row):
            reading = "higher" if row["difference"] > 0 else "lower"
        reading = "no verdict" if too_few(row.get("coverage")) else reading
        rows.append({**row, "title": called, "says": reading})
    return msgspec.structs.replace(table_of(rows, columns), notes=[note] if note else [])


def _pairs(comparison: Comparison) -> list[Table]:
    """Make a table of all pairs of runs by the leading number, the strongest evidence first."""
    leading = lead(comparison)
    if leading is None:
        return []
    some = same_number(comparison.differences, leading[1])
    order = some.sort("p_adjusted", "p", nulls_last=True, maintain_order=True).head(_MOST)
    lines = [(f"{row['run_b']} against {row['run_a']}", row) for row in order.iter_rows(named=True)]
    left = comparison.differences.height - len(lines)
    note = f"and {left:,} rows of other numbers and pairs: --frame differences" if left else ""
    return [_differences(comparison, leading[0], lines, note=note)]


def _details(comparison: Comparison, runs: Sequence[str]) -> list[Table]:
    """Make tables of labels and slices of two runs, the strongest evidence first."""
    rows = comparison.differences
    keyed = rows["label_key"].drop_nulls().n_unique() > 1
    result = []
    for name, every in (
        ("label", rows.filter(pl.col("label_value").is_not_null(), pl.col("slice").is_null())),
        ("slice", rows.filter(pl.col("slice").is_not_null())),
    ):
        if not every.height:
            continue
        overall = every.filter(pl.col("label_value").is_null())
        # Slices by label are shown only if there are no other rows.
        some = overall if overall.height else every
        order = some.sort("p_adjusted", "p", nulls_last=True, maintain_order=True).head(_MOST)
        lines = [
            (f"{_where(row, comparison.names, keyed=keyed)} {title_of(row)}", row)
            for row in order.iter_rows(named=True)
        ]
        left = every.height - len(lines)
        note = f"and {left:,} more: --frame differences" if left > 0 else ""
        result.append(_differences(comparison, name, lines, runs, note))
    return result


def _where(row: dict[str, Any], names: Mapping[str, str], *, keyed: bool) -> str:
    parts = []
    if row["slice"] is not None:
        parts.append(f"{row['slice']}={row['slice_value']}")
    if keyed and row["label_key"] is not None:
        parts.append(row["label_key"])
    if row["label_value"] is not None:
        parts.append(str(row["label_value"]))
        parts += [names[parts[-1]]] if parts[-1] in names else []
    return " ".join(parts)


def _many(comparison: Comparison) -> Table:
    """Make a table of one column per run; letters mark runs it is significantly better than."""
    runs = list(comparison.runs)
    letter = letters(comparison)
    first = headline(comparison, of_pair(comparison, *pairs(comparison)[0]))
    rows: list[list[Cell]] = []
    for called, row in first:
        values = values_of(comparison, row)
        beats = beaten(comparison, row)
        rank = ranks(beats)
        defined = {run: value for run, value in values.items() if value is not None}
        direction = comparison.directions.get(row["metric"], "higher")
        pick = None if direction == "neither" else max if direction == "higher" else min
        top = pick(defined.values()) if pick and defined else None
        cells = texts(plain(called))
        for run in runs:
            over = "".join(sorted(letter[other] for other in beats[run]))
            message = f"{number(values.get(run))}{' ' + over if over else ''} ({rank[run]})"
            best = top is not None and defined.get(run) == top
            cells.append(Cell(message, state=BEST if best else ""))
        rows.append(cells)
    titles = [letter[run] if letter[run] == run else f"{letter[run]}: {run}" for run in runs]
    note = (
        "after a number: letters of the runs that are significantly worse, in brackets the rank,"
        " one more than the runs that are significantly better"
    )
    columns = [Column("metric", NAME), *(Column(plain(title)) for title in titles)]
    return Table(columns, rows, notes=[note])


def lines_below(comparison: Comparison) -> list[str]:
    """Return the lines below the tables: flips, notes."""
    lines = []
    leading = lead(comparison)
    if comparison.flips.height and leading is not None:
        name, row = leading
        every = comparison.flips.height
        pairs = "pair and " * (len(comparison.runs) > 2)
        many = f"flips: {every:,}, of every {pairs}number"
        if not pairs and row["wins"] is not None:
            better_of, worse_of = count_of(row["wins"], "datum"), row["losses"]
            run, more = row["run_b"], row["wins"] + worse_of < every
            rest = f"All {every:,}, of every number" if more else "List them"
            many = f"flips ({name}): {run} is better on {better_of}, worse on {worse_of:,}. {rest}"
        lines.append(f"{many}: --frame flips")
    kinds = [*(("warning", one) for one in comparison.warnings)]
    kinds += [("note", one) for one in comparison.notes if one not in comparison.warnings]
    return [*lines, *(f"{kind}: {plain(one)}" for kind, one in kinds)]


def heading(comparison: Comparison) -> str:
    """Return a line with task, dialect, runs and datums."""
    runs = (
        " against ".join(comparison.runs)
        if len(comparison.runs) == 2
        else ", ".join(comparison.runs)
    )
    message = f"{comparison.task}, dialect {comparison.dialect}: {runs}"
    return f"{message}, {count_of(comparison.n, 'datum')}"


def as_text(comparison: Comparison, width: int | None = None) -> str:
    """Format as text for the prompt and the shell.

    Args:
        width: characters per line; None for unlimited.
    """
    lines = [*_folded(heading(comparison), width), "", *_folded(comparison.verdict, width)]
    for table in tables(comparison):
        room = None if width is None else width - 2
        lines += ["", *(f"  {line}" for line in aligned(table, room, _LEAST))]
        lines += [line for note in table.notes for line in _folded(note, width, "  ")]
    more = [
        line
        for paragraph in lines_below(comparison)
        for line in _folded(paragraph, width, hanging="      ")
    ]
    return "\n".join([*lines, *([""] if more else []), *more])


def _folded(text: str, width: int | None, begin: str = "", hanging: str = "") -> list[str]:
    """Wrap a text between words."""
    lines = textwrap.wrap(
        _UNBREAKABLE.sub("\xa0", plain(text)),
        width or _COMPARISON_WIDTH,
        initial_indent=begin,
        subsequent_indent=begin + hanging,
        break_on_hyphens=False,
    )
    return [line.replace("\xa0", " ") for line in lines]


def as_markdown(comparison: Comparison) -> str:
    """Format as Markdown; the best of several runs is bold."""
    parts = [f"**{_marked(heading(comparison))}**", _marked(comparison.verdict)]
    for table in tables(comparison):
        parts += [as_markdown_table(table), *table.notes]
    more = [_marked(line) for line in lines_below(comparison)]
    more += [f"cite {_marked(name)}: {code(line)}" for name, line in comparison.cites.items()]
    if more:
        parts.append("\n".join(f"- {line}" for line in more))
    return "\n\n".join(parts) + "\n"


def _marked(text: str) -> str:
    return escaped(text, links=False)


def as_html(comparison: Comparison) -> str:
    """Format as HTML for notebooks."""
    parts = [
        f"<p><b>{html.escape(heading(comparison))}</b></p><p>{html.escape(comparison.verdict)}</p>"
    ]
    for table in tables(comparison):
        parts += [
            as_html_table(table),
            *(f"<small>{html.escape(one)}</small>" for one in table.notes),
        ]
    parts += [f"<div><small>{html.escape(line)}</small></div>" for line in lines_below(comparison)]
    return "<div>" + "".join(parts) + "</div>"


def as_latex(comparison: Comparison) -> str:
    """Format as LaTeX with the rules of the booktabs package; the best of several runs is bold."""
    parts = [f"% {plain(line)}" for line in (heading(comparison), comparison.verdict)]
    for table in tables(comparison):
        parts += [*latex(table), *(f"% {plain(note)}" for note in table.notes)]
    parts += [f"% cite {plain(name)}: {line}" for name, line in comparison.cites.items()]
    return "\n".join(parts) + "\n"


def show_comparison(comparison: Comparison, form: str) -> None:
    """Write a comparison to standard output.

    Args:
        form: one of :data:`COMPARISON_FORMATS`; ``csv`` and ``parquet`` are the differences.

    Raises:
        OptionError: no such format, or binary output to a terminal.
    """
    out = sys.stdout
    if form not in COMPARISON_FORMATS:
        raise unknown("format", form, COMPARISON_FORMATS)
    if form == "table":
        width = shutil.get_terminal_size().columns if out.isatty() else None
        write_text(as_text(comparison, width) + "\n", out)
    elif form in ("markdown", "latex"):
        write_text((as_markdown if form == "markdown" else as_latex)(comparison), out)
    elif form == "json":
        result = {
            "verdict": comparison.verdict,
            "runs": comparison.runs,
            "task": comparison.task,
            "dialect": comparison.dialect,
            "datums": comparison.n,
            "level": comparison.level,
            "adjust": comparison.adjust,
            "cite": comparison.cites,
            "notes": list(comparison.notes),
            "warnings": list(comparison.warnings),
            "differences": comparison.differences,
        }
        write_text(as_json(result), out)
    else:
        write_frame(comparison.differences, form, out, "differences", {})


# A scorecard in a notebook: headline, labels, confusion, slices, and one curve.

_NOTEBOOK = (10, 10)
_CURVES = ("precision_recall", "ks", "distribution", "calibration")
"""Charts in order of preference; the first available one is shown, plus the confusion matrix."""
_CONFUSION = "confusion"


def in_notebook(card: Scorecard) -> str:
    """Return the notebook view as HTML: headline numbers, per-label table, slices."""
    parts = [f"<p><b>Scorecard</b> {html.escape(summary_heading(card))}</p>"]
    all_sections = sections(card)
    for section in all_sections:
        if headed(section, all_sections):
            parts.append(f"<h4>label key {html.escape(section.label_key or '')}</h4>")
        if section.headline:
            parts.append(as_html_table(headline_table(section)))
        parts += map(_notebook_grid, tables_of(section))
        parts += [f"<div><small>{html.escape(line)}</small></div>" for line in footnotes(section)]
    if empty := unnumbered(card, bool(all_sections)):
        parts.append(f"<div>{empty}</div>")
    parts += _pictures(card)
    parts += [
        f"<div><small>{'<b>warning:</b> ' * (kind == 'warning')}{html.escape(note)}</small></div>"
        for kind, note in ordered_notes(card)
    ]
    heights = dict(made(card))
    parts.append(
        "<div><small>frames: "
        + (
            ", ".join(f"<code>.{name}</code>{row_counts(heights, name)}" for name in card.frames)
            or "none"
        )
        + "</small></div>"
    )
    return "<div>" + "".join(parts) + "</div>"


def _notebook_grid(grid: Grid) -> str:
    rows, after, left_out = limited(grid, *_NOTEBOOK)
    table = grid_table(grid, rows)
    if left_out:
        table.rows.insert(after, texts(f"… {left_out} more", *[""] * (len(table.columns) - 1)))
    message = "; ".join(remarks(grid))
    return as_html_table(table) + (
        f"<div><small>{html.escape(message)}</small></div>" if message else ""
    )


def _pictures(card: Scorecard) -> list[str]:
    """Return one curve and the confusion matrix, if the run has them."""
    from .charts import Numbers, Want, drawn, frames_of
    from .svg import svg

    run, want = Numbers(card.metrics, frames_of(card)), Want(card.directions)
    curves = (one for kind in _CURVES for one in drawn(kind, run, None, want))
    charts = [*islice(curves, 1), *drawn(_CONFUSION, run, None, want)[:1]]
    return [
        f'<div style="max-width:30em"><b>{html.escape(one.title)}</b>{svg(one)}</div>'
        for one in charts
    ]
