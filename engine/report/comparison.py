"""A comparison as text, Markdown, HTML, LaTeX, or rows for programs."""

from __future__ import annotations

import html
import io
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TextIO, cast

import polars as pl

from ..ingest.problems import count_of
from ..schemas.errors import OptionError, unknown
from ..statistics.missing import too_few
from .show import write_text
from .summary import UNDEFINED, markdown_table, number, plain
from .verdicts import (
    beaten,
    better,
    differs,
    headline,
    lead,
    letters,
    of_pair,
    pairs,
    probability,
    ranks,
    same_number,
    signed,
    title,
    values_of,
)

if TYPE_CHECKING:
    from ..statistics.comparison import Comparison

FORMATS = ("table", "markdown", "latex", "json", "csv", "parquet")
FRAMES = ("differences", "flips")
_MOST = 15
_WIDTH = 100
_TOGETHER = re.compile(r" (?=[%=] )|(?<==) ")
_LEAST = ("wins-ties-losses", "p")
"""Columns to hide first on a narrow terminal."""
_SAYS = {1: "better", -1: "worse", 0: ""}


class Table(NamedTuple):
    """Table of text.

    Attributes:
        best: row -> the best columns, if known.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""
    best: Mapping[int, Collection[int]] = MappingProxyType({})


def tables(comparison: Comparison) -> list[Table]:
    """Return the tables of a comparison.

    For two runs the aggregates, then labels and slices by evidence; for more one column per run,
    then each pair by the leading number.
    """
    if len(comparison.runs) > 2:
        return [_many(comparison), *_pairs(comparison)]
    (a, b) = pairs(comparison)[0]
    lines = headline(comparison, of_pair(comparison, a, b))
    names = [plain(a), plain(b)]
    whole = [_differences(comparison, "metric", lines, names)] if lines else []
    return [*whole, *_details(comparison, names)]


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
    header = [name, *runs, "difference", f"{100 * comparison.level:g} % interval", "p"]
    header += ["adjusted"] if adjusted else []
    header += ["wins-ties-losses"] if votes else []
    header += [f"{runs[1] if runs else 'the first'} is"]
    rows = []
    for called, row in lines:
        cells = [plain(called), *([number(row["a"]), number(row["b"])] if runs else [])]
        there = row["difference"] is not None
        cells.append(signed(row["difference"]) if there else UNDEFINED)
        cells.append(
            f"[{signed(row['lower'])}, {signed(row['upper'])}]"
            if row["lower"] is not None
            else UNDEFINED
        )
        cells.append(probability(row["p"]))
        cells += [probability(row["p_adjusted"])] if adjusted else []
        if votes:
            none = row["wins"] is None
            cells.append("" if none else f"{row['wins']}-{row['ties']}-{row['losses']}")
        cells.append(_says(comparison, row))
        rows.append(cells)
    return Table(name, header, rows, note)


def _says(comparison: Comparison, row: dict[str, Any]) -> str:
    if too_few(row.get("coverage")):
        return "no verdict"
    return "different" if differs(comparison, row) else _SAYS[better(comparison, row)]


def _pairs(comparison: Comparison) -> list[Table]:
    """Each pair of several runs by the number that leads, the strongest evidence first."""
    found = lead(comparison)
    if found is None:
        return []
    some = same_number(comparison.differences, found[1])
    order = some.sort("p_adjusted", "p", nulls_last=True, maintain_order=True).head(_MOST)
    lines = [(f"{row['run_b']} against {row['run_a']}", row) for row in order.iter_rows(named=True)]
    left = comparison.differences.height - len(lines)
    note = f"and {left:,} rows of other numbers and pairs: --frame differences" if left else ""
    return [_differences(comparison, found[0], lines, note=note)]


def _details(comparison: Comparison, runs: Sequence[str]) -> list[Table]:
    """Labels and slices of two runs, the strongest evidence first."""
    rows = comparison.differences
    keyed = rows["label_key"].drop_nulls().n_unique() > 1
    found = []
    for name, every in (
        ("label", rows.filter(pl.col("label_value").is_not_null(), pl.col("slice").is_null())),
        ("slice", rows.filter(pl.col("slice").is_not_null())),
    ):
        if not every.height:
            continue
        whole = every.filter(pl.col("label_value").is_null())
        some = whole if whole.height else every  # of slices, labels only where nothing else is
        order = some.sort("p_adjusted", "p", nulls_last=True, maintain_order=True).head(_MOST)
        lines = [
            (f"{_where(row, comparison.names, keyed=keyed)} {title(row)}", row)
            for row in order.iter_rows(named=True)
        ]
        left = every.height - len(lines)
        note = f"and {left:,} more: --frame differences" if left > 0 else ""
        found.append(_differences(comparison, name, lines, runs, note))
    return found


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
    """Make a table with one column per run; letters mark the runs it is significantly better
    than.
    """
    runs = list(comparison.runs)
    letter = letters(comparison)
    first = headline(comparison, of_pair(comparison, *pairs(comparison)[0]))
    rows: list[list[str]] = []
    best: dict[int, set[int]] = {}
    for called, row in first:
        values = values_of(comparison, row)
        beats = beaten(comparison, row)
        rank = ranks(beats)
        cells = [plain(called)]
        for run in runs:
            value = values.get(run)
            over = "".join(sorted(letter[other] for other in beats[run]))
            cells.append(f"{number(value)}{' ' + over if over else ''} ({rank[run]})")
        known = {run: value for run, value in values.items() if value is not None}
        direction = comparison.directions.get(row["metric"], "higher")
        if known and direction != "neither":
            pick = max if direction == "higher" else min
            top = pick(known.values())
            best[len(rows)] = {1 + i for i, run in enumerate(runs) if known.get(run) == top}
        rows.append(cells)
    titles = [letter[run] if letter[run] == run else f"{letter[run]}: {run}" for run in runs]
    note = (
        "after a number: letters of the runs that are significantly worse, in brackets the rank,"
        " one more than the runs that are significantly better"
    )
    return Table("metric", ["metric", *map(plain, titles)], rows, note, best)


def beside(comparison: Comparison) -> list[str]:
    """Lines below the tables: flips, notes."""
    lines = []
    found = lead(comparison)
    if comparison.flips.height and found is not None:
        name, row = found
        said = ""
        if len(comparison.runs) == 2 and row["wins"] is not None:
            better_of, worse_of = count_of(row["wins"], "datum"), f"{row['losses']:,} worse"
            said = f"by {name} {row['run_b']} does {better_of} better and {worse_of}; "
        rows = count_of(comparison.flips.height, "row")
        lines.append(f"flips: {said}{rows} of all numbers: --frame flips")
    kinds = [*(("warning", one) for one in comparison.warnings)]
    kinds += [("note", one) for one in comparison.notes if one not in comparison.warnings]
    return [*lines, *(f"{kind}: {plain(one)}" for kind, one in kinds)]


def heading(comparison: Comparison) -> str:
    """Task, dialect, runs and datums."""
    runs = (
        " against ".join(comparison.runs)
        if len(comparison.runs) == 2
        else ", ".join(comparison.runs)
    )
    said = f"{comparison.task}, dialect {comparison.dialect}: {runs}"
    return f"{said}, {count_of(comparison.n, 'datum')}"


def as_text(comparison: Comparison, width: int | None = None) -> str:
    """Format for the prompt and the shell.

    Args:
        width: characters per line; None for unlimited.
    """
    lines = [*_folded(heading(comparison), width), "", *_folded(comparison.verdict, width)]
    for table in tables(comparison):
        lines += ["", *_laid_out(table, width)]
        lines += _folded(table.note, width, "  ") if table.note else []
    more = [line for said in beside(comparison) for line in _folded(said, width, hanging="      ")]
    return "\n".join([*lines, *([""] if more else []), *more])


def _folded(text: str, width: int | None, begin: str = "", hanging: str = "") -> list[str]:
    """Lines of a text, broken between words."""
    kept = _TOGETHER.sub("\xa0", plain(text))
    lines = textwrap.wrap(
        kept,
        width or _WIDTH,
        initial_indent=begin,
        subsequent_indent=begin + hanging,
        break_on_hyphens=False,
    )
    return [line.replace("\xa0", " ") for line in lines]


def _laid_out(table: Table, width: int | None) -> list[str]:
    """Format a table; if it is too wide, the least important columns are hidden, and named."""
    columns = [
        [
            head,
            *(
                f"{row[i]}*" if i in table.best.get(at, ()) else row[i]
                for at, row in enumerate(table.rows)
            ),
        ]
        for i, head in enumerate(table.header)
    ]
    gone: list[str] = []

    def room() -> int:
        return sum(2 + max(map(len, column)) for column in columns)

    for name in _LEAST:
        if width is not None and room() > width:
            gone += [column[0] for column in columns if column[0] == name]
            columns = [column for column in columns if column[0] != name]
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  "
        + "  ".join(
            cell.ljust(wide) if i == 0 else cell.rjust(wide)
            for i, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]
    return [*lines, *([f"  not shown: {', '.join(gone)}"] if gone else [])]


def as_markdown(comparison: Comparison) -> str:
    """For pull requests and pages; the best of several runs in bold."""
    parts = [f"**{_marked(heading(comparison))}**", _marked(comparison.verdict)]
    for table in tables(comparison):
        rows = [
            [
                f"**{_marked(cell)}**" if i in table.best.get(at, ()) else _marked(cell)
                for i, cell in enumerate(row)
            ]
            for at, row in enumerate(table.rows)
        ]
        right = [i > 0 for i in range(len(table.header))]
        parts.append(markdown_table(table.header, rows, right=right, escape=False))
        parts += [table.note] if table.note else []
    if more := beside(comparison):
        parts.append("\n".join(f"- {_marked(line)}" for line in more))
    return "\n\n".join(parts) + "\n"


def _marked(text: str) -> str:
    for mark in "\\|`*":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;")


def as_html(comparison: Comparison) -> str:
    """For notebooks."""
    parts = [
        f"<p><b>{html.escape(heading(comparison))}</b></p><p>{html.escape(comparison.verdict)}</p>"
    ]
    for table in tables(comparison):
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.header)
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:{"right" if i else "left"}">'
                + (f"<b>{html.escape(c)}</b>" if i in table.best.get(at, ()) else html.escape(c))
                + "</td>"
                for i, c in enumerate(row)
            )
            + "</tr>"
            for at, row in enumerate(table.rows)
        )
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        parts += [f"<small>{html.escape(table.note)}</small>"] if table.note else []
    parts += [f"<div><small>{html.escape(line)}</small></div>" for line in beside(comparison)]
    return "<div>" + "".join(parts) + "</div>"


def as_latex(comparison: Comparison) -> str:
    """Tables for a paper, with the rules of the booktabs package; the best in bold."""
    parts = [f"% {plain(line)}" for line in (heading(comparison), comparison.verdict)]
    for table in tables(comparison):
        parts += [
            f"\\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            "\\toprule",
            " & ".join(map(_latex, table.header)) + r" \\",
            "\\midrule",
            *(
                " & ".join(
                    f"\\textbf{{{_latex(cell)}}}" if i in table.best.get(at, ()) else _latex(cell)
                    for i, cell in enumerate(row)
                )
                + r" \\"
                for at, row in enumerate(table.rows)
            ),
            "\\bottomrule",
            "\\end{tabular}",
        ]
        parts += [f"% {table.note}"] if table.note else []
    return "\n".join(parts) + "\n"


_LATEX = {
    "\\": r"\textbackslash{}",
    "–": "--",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    **{mark: f"${mark}$" for mark in "<>|"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_SIGN = re.compile(r"(?<![^\s\[])([+-])(?=\d)")


def _latex(text: str) -> str:
    """Text for LaTeX, in which a hyphen is no minus."""
    return _SIGN.sub(r"$\1$", "".join(_LATEX.get(c, c) for c in text))


def _as_json(comparison: Comparison) -> str:
    rows = {
        name: ",\n  ".join(getattr(comparison, name).write_ndjson().splitlines())
        for name in FRAMES[:1]
    }
    said = {
        "verdict": comparison.verdict,
        "runs": comparison.runs,
        "task": comparison.task,
        "dialect": comparison.dialect,
        "datums": comparison.n,
        "level": comparison.level,
        "adjust": comparison.adjust,
        "notes": list(comparison.notes),
        "warnings": list(comparison.warnings),
    }
    parts = [f'"{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in said.items()]
    parts += [f'"{name}": [{text}]' for name, text in rows.items()]
    return "{" + ",\n ".join(parts) + "}\n"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "table": lambda comparison: as_text(comparison) + "\n",
    "markdown": as_markdown,
    "latex": as_latex,
    "json": _as_json,
    "csv": lambda comparison: cast(str, comparison.differences.write_csv()),
}


def show(comparison: Comparison, form: str, out: IO[str] | None = None) -> None:
    """Write a comparison to a text stream.

    Args:
        form: one of :data:`FORMATS`; ``csv`` and ``parquet`` are the differences.
        out: by default standard output.

    Raises:
        OptionError: no such format, or binary output to a terminal.
    """
    out = sys.stdout if out is None else out
    if form == "table" and out.isatty():
        write_text(as_text(comparison, shutil.get_terminal_size().columns) + "\n", out)
        return
    if form in _TEXTS:
        write_text(_TEXTS[form](comparison), out)
        return
    if form not in FORMATS:
        raise unknown("format", form, FORMATS)
    if out.isatty():
        raise OptionError("format parquet is bytes, which a terminal cannot show: pipe it.")
    packed = io.BytesIO()
    comparison.differences.write_parquet(packed)
    out.flush()
    cast(TextIO, out).buffer.write(packed.getbuffer())
