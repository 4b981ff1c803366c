"""Output of the commands ``metrics``, ``schemas`` and ``check``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from ..ingest.problems import count_of
from ..metrics import registry
from ..schemas.errors import OptionError, did_you_mean, unknown
from ..schemas.results import FRAMES
from ..schemas.tables import TABLES

if TYPE_CHECKING:
    from ..api import CheckReport

_WIDTH = 80


def metrics(table: pl.DataFrame, names: Sequence[str], task: str | None, form: str) -> str:
    """List the metrics of the registry.

    Args:
        table: result of ``metrics_table()``.
        names: metrics to list; all if empty.
        task: only metrics of this task.
        form: ``text``, ``json``, ``csv`` or ``markdown``.

    Raises:
        OptionError: no such metric or task.
    """
    table = _kept(table, "task", [task] if task else [], "task")
    known = set(table["name"])
    spelled = [_spelled(name, known) for name in names]
    table = _kept(table, "name", [one for some in spelled for one in some], "metric")
    if form != "text":
        return _as(table, form)
    blocks = []
    for row in table.iter_rows(named=True):
        lines = [f"{row['name']}  ({row['task']}; {row['range']}, {_direction(row['better'])})"]
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


def _spelled(name: str, known: set[str]) -> list[str]:
    """Resolve a metric name or alias to names in ``known``; OptionError if there is no match."""
    found = [metric.name for metric, _ in registry.everywhere(name) if metric.name in known]
    if not found:
        near = did_you_mean(name, known)
        raise OptionError(f"{name!r} is not a known metric.{near} All of them: evalengine metrics.")
    return list(dict.fromkeys(found))


def _direction(better: str) -> str:
    return f"{better} is better" if better in ("higher", "lower") else "no direction"


def schemas(names: Sequence[str], form: str) -> str:
    """List the columns of input tables and output frames.

    Args:
        names: tables and frames to list; all if empty.
        form: ``text``, ``json``, ``csv`` or ``markdown``.

    Raises:
        OptionError: no such table or frame.
    """
    table = _kept(_all_columns(), "table", names, "table or frame")
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
    for frame, schema in FRAMES.items():
        rows += [
            {
                "table": frame,
                "column": name,
                "type": "as input" if dtype is None else str(dtype),
            }
            for name, dtype in schema.items()
        ]
    keys = ("task", "table", "column", "type", "need", "about", "also")
    return pl.DataFrame(rows, schema=dict.fromkeys(keys, pl.String))


def refused(said: str) -> str:
    """Return the JSON that ``check`` prints for unusable tables.

    Args:
        said: the error message; each line that begins with a dash is one problem.
    """
    head, *problems = said.split("\n- ")
    found = {"ok": False, "problems": problems or [head], "error": said}
    return json.dumps(found, indent=2, ensure_ascii=False)


def checked(report: CheckReport, form: str) -> str:
    """Return the result of ``check`` as text or JSON."""
    if form == "json":
        found = {
            "ok": not report.warnings,
            "rows": report.rows,
            "recognised": report.recognised,
            "notes": list(report.notes),
            "warnings": list(report.warnings),
        }
        return json.dumps(found, indent=2, ensure_ascii=False)
    lines = [f"{name}: {count_of(rows, 'row')}" for name, rows in report.rows.items()]
    for name, columns in report.recognised.items():
        read = ", ".join(f"{mine} as {ours}" for mine, ours in columns.items() if mine != ours)
        if read:
            lines.append(f"{name}: read {read}")
    lines += [
        f"{'warning' if note in report.warnings else 'note'}: {note}" for note in report.notes
    ]
    lines.append("not ok: the numbers would mean nothing" if report.warnings else "ok")
    return "\n".join(lines)


def _kept(table: pl.DataFrame, column: str, names: Sequence[str], kind: str) -> pl.DataFrame:
    """Rows of the given names, however they are capitalised, in the order of the names."""
    if not names:
        return table
    known: dict[str, list[str]] = {}
    for name in table[column].unique(maintain_order=True):
        known.setdefault(name.casefold(), []).append(name)
    found: list[str] = []
    for name in names:
        alike = known.get(name.casefold(), [])
        if not alike:
            raise unknown(kind, name, table[column].unique(maintain_order=True))
        found += [name] if name in alike else alike
    return pl.concat([table.filter(pl.col(column) == name) for name in dict.fromkeys(found)])


def _as(table: pl.DataFrame, form: str) -> str:
    if form == "csv":
        return table.write_csv()
    if form == "json":
        return "[" + ",\n ".join(table.write_ndjson().splitlines()) + "]\n"
    header = [table.columns, ["---"] * table.width]
    rows = [["" if cell is None else str(cell) for cell in row] for row in table.iter_rows()]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n"
        for row in (*header, *rows)
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")
