"""Numbers as text, and tables as text, Markdown, HTML, LaTeX and files."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import takewhile, zip_longest
from textwrap import TextWrapper
from typing import IO, Any, TextIO, cast

import polars as pl

from ..schemas.display import BEST, NAME, NUMBER, Cell, Column, Table
from ..schemas.errors import OptionError, unknown

FORMATS = ("table", "json", "csv", "parquet", "markdown")
Cut = Callable[[str, float], str]
Measure = Callable[[str], float]
UNDEFINED = "–"
NONE = 1e-12
"""Largest difference that rounding may cause."""
_LONG = 1e15
_ASCII = str.maketrans(
    {UNDEFINED: "-", "±": "+-", "…": "~", "—": "-", "≥": ">"}
    | dict(zip("▁▂▃▄▅▆▇█", "_.,-=+*#", strict=True))
)


# Values as text


def plain(text: str) -> str:
    """Escape unprintable characters, such as line breaks and control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shortened(text: str, room: float, measure: Measure = len) -> str:
    """Return the beginning of a text, with an ellipsis if it is shortened."""
    if measure(text) <= room:
        return text
    text = text[: max(0, int(room))]  # no character is narrower than one unit
    while text and measure(text + "…") > room:
        text = text[:-1]
    return text + "…"


def shorten_distinctly(
    texts: Iterable[str], room: float, cut: Cut = shortened, measure: Measure = len
) -> list[str]:
    """Shorten texts; those that would look alike show the first part in which they differ.

    Args:
        room: largest measure of a shortened text.
        cut: shortens one text, without regard to the others.
        measure: width of a text.
    """
    texts = list(texts)
    short = {text: cut(text, room) for text in texts}
    pending = _equal(short, short)
    while pending:
        group, before = pending.pop()
        first, last = min(group), max(group)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
        start = sum(1 for _ in same)
        word = len(re.sub(r"\w{1,8}$", "", first[:start]))
        while word < start and measure(first[word : start + 1] + "…") > room * 2 / 3:
            word += 1
        if start <= before or measure("……") > room:  # the room is too small
            continue
        for text in group:
            rest = shortened(text[word:], room * 2 / 3, measure)
            short[text] = shortened(text[:word], room - measure(rest), measure) + rest
        pending += _equal(group, short, start)
    return [short[text] for text in texts]


def _equal(
    texts: Iterable[str], short: Mapping[str, str], start: int = 0
) -> list[tuple[list[str], int]]:
    """Group different texts that are shown alike, with the place up to which they were compared."""
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(short[text], []).append(text)
    return [(group, start) for group in groups.values() if len(group) > 1]


def fixed(value: float, digits: int, sign: str = "") -> str:
    """Format with fixed decimals, or with an exponent for more than 15 integer digits."""
    return f"{value:{sign}.{digits}f}" if abs(value) < _LONG else f"{value:{sign}.6g}"


def number(value: float | None, *, counted: bool = False) -> str:
    """Format a number: 4 decimals, integers for counts, a dash if undefined."""
    if value is None:
        return UNDEFINED
    if value.is_integer() and (counted or abs(value) >= 2):
        return fixed(value, 0, ",")
    return fixed(value, 4)


def signed(value: float | None) -> str:
    """Format a difference with sign: 4 decimals, or 2 digits if it would round to zero."""
    if value is None:
        return UNDEFINED
    if abs(value) <= NONE:
        return "0.0000"
    if value.is_integer() and abs(value) >= 2:
        return fixed(value, 0, "+")
    return fixed(value, 4, "+") if abs(value) >= 0.00005 else f"{value:+.1e}"


def probability(p: float | None) -> str:
    """Format a p-value with two digits; with one digit below 0.001."""
    if p is None:
        return UNDEFINED
    if p < _LEAST_P:
        return f"< {_LEAST_P:g}"
    return f"{p:.2g}" if p >= 0.001 else f"{p:.1g}"


_LEAST_P = 1e-16
"""Smallest p-value that is shown; p-values of exact tests may underflow to 0."""


def p_value(p: float) -> str:
    """Format a p-value as ``p = 0.03`` or ``p < 1e-16``."""
    text = probability(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def amount(rows: float) -> str:
    """Format a number of rows, or their total weight."""
    return fixed(rows, 0 if float(rows).is_integer() else 2, ",")


def interval(
    low: float | None, high: float | None, form: Callable[[float | None], str] = number
) -> str:
    """Format an interval."""
    return UNDEFINED if low is None else f"[{form(low)}, {form(high)}]"


def _label(value: Any, name: str | None, average: str | None) -> str:
    """Format a label with its name; ``(all)`` for an average over labels."""
    message = f"{value}" if name in (None, str(value)) else f"{value} {name}"
    return plain("(all)" if average is not None else message)


def _any(value: Any) -> str:
    if value is None or isinstance(value, float):
        return number(value)
    return plain(str(value))


FORMS: dict[str, Callable[..., str]] = {
    "any": _any,
    "number": number,
    "signed": signed,
    "p": probability,
    "interval": interval,
    "signed interval": lambda low, high: interval(low, high, signed),
    "votes": lambda *counts: "" if counts[0] is None else "-".join(map(str, counts)),
    "count": lambda value: UNDEFINED if value is None else f"{value:,.6g}",
    "text": lambda value: plain(str(value)),
    "flag": {True: "yes", False: "no", None: UNDEFINED}.__getitem__,
    "label": _label,
}
"""Format of a column -> function from the values of a row to text."""


# Tables


def table_of(
    frame: pl.DataFrame | Sequence[Mapping[str, Any]], columns: Sequence[Column] = ()
) -> Table:
    """Make a table of the rows of a frame, or of mappings.

    Args:
        columns: by default one per column of the frame that has a value; all without rows.
    """
    if isinstance(frame, pl.DataFrame):
        if not columns:
            filled = [s for s in frame.iter_columns() if s.null_count() < len(s) or not len(s)]
            kinds = [NUMBER if s.dtype.is_numeric() else NAME for s in filled]
            columns = [Column(s.name, kind, "any") for s, kind in zip(filled, kinds, strict=True)]
        frame = frame.rows(named=True)
    forms = [(FORMS[column.form], column.of or (column.title,)) for column in columns]
    rows = [[Cell(form(*(row[name] for name in of))) for form, of in forms] for row in frame]
    return Table([*columns], rows)


def aligned(
    table: Table, width: int | None = None, least: Collection[str] = (), longest: int | None = None
) -> list[str]:
    """Lay out a table as lines, numbers to the right.

    Args:
        width: characters per line; None for unlimited.
        least: titles of columns to hide, one after another, if the table is too wide.
        longest: characters of a cell per line; None for unlimited.
    """
    columns = [
        [column.title, *(cell.text + "*" * (cell.state == BEST) for cell in cells)]
        for column, *cells in zip(table.columns, *table.rows, strict=True)
    ]
    rows = [*zip(*columns, strict=True)]
    if longest is not None:
        wrap = TextWrapper(longest, break_long_words=False, break_on_hyphens=False).wrap
        wrapped = ([wrap(cell) or [""] for cell in row] for row in rows)
        rows = [line for row in wrapped for line in zip_longest(*row, fillvalue="")]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    places, gone = [*range(len(columns))], []
    for place in [i for title in least if (i := table.place(title)) is not None]:
        if width is not None and sum(widths[i] + 2 for i in places) > width:
            places.remove(place)
            gone.append(table.columns[place].title)
    right = [column.kind == NUMBER for column in table.columns]
    lines = [
        "  ".join(row[i].rjust(widths[i]) if right[i] else row[i].ljust(widths[i]) for i in places)
        for row in rows
    ]
    lines += [f"not shown: {', '.join(gone)}"] if gone else []
    return [line.rstrip() for line in lines]


def markdown(table: Table) -> str:
    """Return a table as Markdown; the best numbers are bold."""

    def written(column: Column, cell: Cell) -> str:
        text = escaped(cell.text, links=column.kind != NUMBER)
        return f"**{text}**" if cell.state == BEST else text

    lines = [
        [escaped(column.title) for column in table.columns],
        ["---:" if column.kind == NUMBER else "---" for column in table.columns],
        *([written(*pair) for pair in zip(table.columns, row, strict=True)] for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: str, *, links: bool = True) -> str:
    """Escape text for Markdown: no table is broken, no image fetched, no link made by a label.

    Args:
        links: escape brackets, which intervals have.
    """
    text = plain(text)
    for mark in "\\|[]`*" if links else "\\|`*":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;")


def code(text: str) -> str:
    """Return text as a code span for Markdown, or escaped if it contains its mark."""
    return escaped(text) if "`" in text else f"`{plain(text)}`"


def as_html(table: Table) -> str:
    """Return a table as HTML for notebooks; the best numbers are bold."""

    def tagged(tag: str, column: Column, text: str, more: str = "") -> str:
        side = "right" if column.kind == NUMBER else "left"
        return f'<{tag}{more} style="text-align:{side}">{text}</{tag}>'

    head = "".join(
        tagged("th", column, html.escape(column.title), ' scope="col"') for column in table.columns
    )
    body = ""
    for row in table.rows:
        bold = [("<b>", "</b>") if cell.state == BEST else ("", "") for cell in row]
        texts = [f"{b[0]}{html.escape(cell.text)}{b[1]}" for cell, b in zip(row, bold, strict=True)]
        body += f"<tr>{''.join(map(tagged, ['td'] * len(row), table.columns, texts))}</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def latex(table: Table) -> list[str]:
    """Lay out a table for a paper, with the rules of the booktabs package; the best in bold."""

    def line(cells: list[str]) -> str:
        # a bracket or star would be an argument of the command before
        return f"{'{}' * cells[0].startswith(('[', '*'))}{' & '.join(cells)} \\\\"

    rows = [
        [
            f"\\textbf{{{latex_text(c.text)}}}" if c.state == BEST else latex_text(c.text)
            for c in row
        ]
        for row in table.rows
    ]
    sides = "".join("r" if column.kind == NUMBER else "l" for column in table.columns)
    return [
        f"\\begin{{tabular}}{{{sides}}}",
        "\\toprule",
        line([latex_text(column.title) for column in table.columns]),
        "\\midrule",
        *map(line, rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]


_LATEX = {
    "\\": r"\textbackslash{}",
    "–": "--",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    **{mark: f"${mark}$" for mark in "<>|"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_SIGN = re.compile(r"(?<![^\s\[])([+-])(?=\d)")
_UNSAFE = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters, line ends and marks that change the direction of text."""


def latex_text(text: str) -> str:
    """Escape text for LaTeX, with minus signs in math mode."""
    safe = _UNSAFE.sub(lambda match: plain(match[0]), text)
    return _SIGN.sub(r"$\1$", "".join(_LATEX.get(c, c) for c in safe))


# Streams


def write_text(text: str, out: IO[str]) -> None:
    """Write text, with ASCII substitutes for characters that the encoding does not support."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    out.write(text)


def as_json(parts: Mapping[str, Any]) -> str:
    """Format an object as JSON, with one line per part and per row of a frame."""
    members = []
    for name, part in parts.items():
        if isinstance(part, pl.DataFrame):
            text = "[" + ",\n  ".join(part.write_ndjson().splitlines()) + "]"
        else:
            text = json.dumps(part, ensure_ascii=False)
        members.append(f'"{name}": {text}')
    return "{" + ",\n ".join(members) + "}\n"


def write_frame(
    frame: pl.DataFrame, form: str, out: IO[str], name: str, extra: Mapping[str, Any]
) -> None:
    """Write all rows of a frame. Markdown and tables omit empty columns.

    Args:
        form: one of :data:`FORMATS`.
        name: key of the rows in JSON.
        extra: further parts of the JSON.

    Raises:
        OptionError: no such format, or bytes for a terminal.
    """
    if form == "json":
        write_text(as_json({name: frame, **extra}), out)
    elif form == "csv":
        write_text(frame.write_csv(), out)
    elif form == "markdown":
        write_text(markdown(table_of(frame)) + "\n", out)
    elif form == "table":
        write_text(as_text(frame), out)
    elif form == "parquet":
        if out.isatty():
            raise OptionError(
                "format parquet is bytes, which a terminal cannot show: pipe it into a file, or"
                " write a folder with --out."
            )
        out.flush()
        packed = io.BytesIO()  # Polars would hide errors of the stream
        frame.write_parquet(packed)
        cast(TextIO, out).buffer.write(packed.getbuffer())
    else:
        raise unknown("format", form, FORMATS)


def as_text(frame: pl.DataFrame) -> str:
    """Format all rows of a frame as aligned text, nulls as a dash, without empty columns."""
    return "\n".join([*aligned(table_of(frame)), *([] if frame.height else ["no rows"])]) + "\n"
