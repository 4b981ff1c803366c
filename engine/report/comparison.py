"""A comparison as text, Markdown, HTML, LaTeX, or rows for programs."""

from __future__ import annotations

import html
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TextIO, cast

import polars as pl

from ..schemas.errors import OptionError, unknown
from .show import write_text
from .summary import UNDEFINED, markdown_table, number, plain
from .verdicts import (
    beaten,
    better,
    headline,
    letters,
    of_pair,
    pairs,
    probability,
    ranks,
    signed,
    title,
)

if TYPE_CHECKING:
    from ..statistics.comparison import Comparison

FORMATS = ("table", "markdown", "latex", "json", "csv", "parquet")
FRAMES = ("differences", "flips")
_MOST = 15
_SAYS = {1: "better", -1: "worse", 0: ""}


class Table(NamedTuple):
    """A table of text.

    Attributes:
        title: what it shows.
        header: names of its columns, the first of names.
        rows: cells.
        note: what it leaves out.
        best: row -> the column that is best, where that can be told.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""
    best: Mapping[int, int] = MappingProxyType({})


def tables(comparison: Comparison) -> list[Table]:
    """What is shown of a comparison: aggregates, then labels and slices by evidence."""
    if len(comparison.runs) > 2:
        return [_many(comparison), *_details(comparison, *pairs(comparison)[0])]
    (a, b) = pairs(comparison)[0]
    lines = headline(comparison, of_pair(comparison, a, b))
    return [_differences(comparison, "", lines, a, b), *_details(comparison, a, b)]


def _differences(
    comparison: Comparison,
    name: str,
    lines: Sequence[tuple[str, dict[str, Any]]],
    a: str,
    b: str,
    note: str = "",
) -> Table:
    votes = any(row["wins"] is not None for _, row in lines)
    header = [name or "metric", plain(a), plain(b), "difference"]
    header += [f"{100 * comparison.level:g} % interval", "p"]
    header += ["adjusted"] if comparison.adjust != "none" else []
    header += ["wins-ties-losses"] if votes else []
    header += [f"{plain(b)} is"]
    rows = []
    for called, row in lines:
        cells = [plain(called), number(row["a"]), number(row["b"])]
        there = row["difference"] is not None
        cells.append(signed(row["difference"]) if there else UNDEFINED)
        cells.append(
            f"[{signed(row['lower'])}, {signed(row['upper'])}]"
            if row["lower"] is not None
            else UNDEFINED
        )
        cells.append(probability(row["p"]))
        cells += [probability(row["p_adjusted"])] if comparison.adjust != "none" else []
        if votes:
            none = row["wins"] is None
            cells.append("" if none else f"{row['wins']}-{row['ties']}-{row['losses']}")
        cells.append(_SAYS[better(comparison, row)])
        rows.append(cells)
    return Table(name, header, rows, note)


def _details(comparison: Comparison, a: str, b: str) -> list[Table]:
    """Labels and slices of a pair, the strongest evidence first."""
    rows = of_pair(comparison, a, b)
    found = []
    for name, some in (
        ("label", rows.filter(pl.col("label_value").is_not_null(), pl.col("slice").is_null())),
        ("slice", rows.filter(pl.col("slice").is_not_null())),
    ):
        if not some.height:
            continue
        order = some.sort("p_adjusted", "p", nulls_last=True, maintain_order=True).head(_MOST)
        lines = [(f"{_where(row)} {title(row)}", row) for row in order.iter_rows(named=True)]
        left = some.height - len(lines)
        note = f"and {left:,} more, by evidence: --frame differences" if left > 0 else ""
        found.append(_differences(comparison, name, lines, a, b, note))
    return found


def _where(row: dict[str, Any]) -> str:
    parts = []
    if row["slice"] is not None:
        parts.append(f"{row['slice']}={row['slice_value']}")
    if row["label_value"] is not None:
        parts.append(str(row["label_value"]))
    return " ".join(parts)


def _many(comparison: Comparison) -> Table:
    """Every run in a column: letters say which others it is surely better than."""
    runs = list(comparison.runs)
    letter = letters(comparison)
    first = headline(comparison, of_pair(comparison, *pairs(comparison)[0]))
    names = comparison.differences.columns[2 : comparison.differences.columns.index("a")]
    rows: list[list[str]] = []
    best: dict[int, int] = {}
    for called, row in first:
        identity = {name: row[name] for name in names}
        values = _values(comparison, identity)
        beats = beaten(comparison, identity)
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
            best[len(rows)] = 1 + runs.index(pick(known, key=lambda run: known[run]))
        rows.append(cells)
    header = ["metric", *(f"{letter[run]}: {plain(run)}" for run in runs)]
    note = (
        "letters: runs that a run is surely better than; (rank): one more than the runs that are"
        " surely better"
    )
    return Table("", header, rows, note, best)


def _values(comparison: Comparison, identity: dict[str, Any]) -> dict[str, float | None]:
    frame = comparison.differences
    rows = frame.filter(
        *(
            pl.col(name).eq_missing(pl.lit(value, frame.schema[name]))
            for name, value in identity.items()
        )
    )
    values: dict[str, float | None] = {}
    for row in rows.iter_rows(named=True):
        values[row["run_a"]], values[row["run_b"]] = row["a"], row["b"]
    return values


def beside(comparison: Comparison) -> list[str]:
    """Lines below the tables: flips, notes."""
    lines = []
    for a, b in pairs(comparison):
        some = comparison.flips.filter(run_a=a, run_b=b)
        lead = headline(comparison, of_pair(comparison, a, b))
        if not some.height or not lead:
            continue
        name, row = lead[0]
        of = some.filter(
            *(
                pl.col(column).eq_missing(pl.lit(row[column], some.schema[column]))
                for column in some.columns
                if column in row and column not in ("run_a", "run_b", "a", "b")
            )
        )
        gained, lost = ((of["change"] == word).sum() for word in ("better", "worse"))
        lines.append(
            f"flips: {b} does {gained:,} datums better and {lost:,} worse than {a} by {name};"
            f" all {some.height:,}: --frame flips"
        )
    kinds = [*(("warning", one) for one in comparison.warnings)]
    kinds += [("note", one) for one in comparison.notes if one not in comparison.warnings]
    return [*lines, *(f"{kind}: {plain(one)}" for kind, one in kinds)]


def heading(comparison: Comparison) -> str:
    """Task, dialect, runs and datums."""
    said = f"{comparison.task}, dialect {comparison.dialect}: {' against '.join(comparison.runs)}"
    return f"{said}, {comparison.n:,} datums"


def as_text(comparison: Comparison) -> str:
    """For the prompt and the shell."""
    lines = [plain(heading(comparison)), "", plain(comparison.verdict)]
    for table in tables(comparison):
        columns = [[head, *(row[i] for row in table.rows)] for i, head in enumerate(table.header)]
        widths = [max(map(len, column)) for column in columns]
        lines.append("")
        for at, row in enumerate(zip(*columns, strict=True)):
            marked = [
                f"{cell}*" if at and table.best.get(at - 1) == i else cell
                for i, cell in enumerate(row)
            ]
            lines.append(
                "  "
                + "  ".join(
                    cell.ljust(width) if i == 0 else cell.rjust(width)
                    for i, (cell, width) in enumerate(zip(marked, widths, strict=True))
                ).rstrip()
            )
        lines += [f"  {table.note}"] if table.note else []
    more = beside(comparison)
    return "\n".join([*lines, *([""] if more else []), *more])


def as_markdown(comparison: Comparison) -> str:
    """For pull requests and pages; the best of several runs in bold."""
    parts = [f"**{_marked(heading(comparison))}**", _marked(comparison.verdict)]
    for table in tables(comparison):
        rows = [
            [
                f"**{cell}**" if table.best.get(at) == i else _marked(cell)
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
                + (f"<b>{html.escape(c)}</b>" if table.best.get(at) == i else html.escape(c))
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
    parts = [f"% {line}" for line in (heading(comparison), comparison.verdict)]
    for table in tables(comparison):
        parts += [
            f"\\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            "\\toprule",
            " & ".join(map(_latex, table.header)) + r" \\",
            "\\midrule",
            *(
                " & ".join(
                    f"\\textbf{{{_latex(cell)}}}" if table.best.get(at) == i else _latex(cell)
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
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in text)


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
        comparison: what to show.
        form: one of :data:`FORMATS`; ``csv`` and ``parquet`` are the differences.
        out: standard output unless given.

    Raises:
        OptionError: no such format, or bytes for a terminal.
    """
    out = sys.stdout if out is None else out
    if form in _TEXTS:
        write_text(_TEXTS[form](comparison), out)
        return
    if form not in FORMATS:
        raise OptionError(unknown("format", form, FORMATS))
    if out.isatty():
        raise OptionError("format parquet is bytes, which a terminal cannot show: pipe it.")
    packed = io.BytesIO()
    comparison.differences.write_parquet(packed)
    out.flush()
    cast(TextIO, out).buffer.write(packed.getbuffer())
