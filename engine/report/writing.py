"""Report of a run: one self-contained HTML file, without network or server.

Template, style and script are in ``templates/``; :mod:`evalengine.report.page` decides the content.
Jinja2 escapes everything, except charts, which are escaped when they are built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .._version import __version__
from ..atomic import whole_file
from ..schemas.errors import WriteError
from ..scorecard.card import Scorecard
from ..scorecard.lookup import whole
from ..statistics.comparing import Margins
from ..statistics.comparison import Comparison
from .page import Cell, Examples, Gate, Part, Table, lead, parts
from .provenance import command, facts
from .summary import UNDEFINED, heading, number, plain, sections, told
from .verdicts import BETTER, WORSE, Differences, signed

# Counts by score threshold: the table of the report that a slider moves.

_COUNTS = ("tp", "fp", "fn")
_HALF = 0.5
_LABELS = 20


class Counts(msgspec.Struct, frozen=True):
    """Counts by threshold, for all labels together and for some labels.

    Attributes:
        thresholds: ascending, formatted.
        at: index of the initial threshold, nearest to 0.5.
        table: counts at ``at``.
        data: ``thresholds`` and ``rows``: tp, fp and fn by threshold, per row of the table.
    """

    thresholds: list[str]
    at: int
    table: Table
    data: dict[str, Any]

    @property
    def shown(self) -> str:
        """The threshold that is shown first."""
        return self.thresholds[self.at]


def counts(
    frame: pl.DataFrame | None, names: Mapping[tuple[str | None, Any], str]
) -> Counts | None:
    """Return the counts of a run at 100 thresholds; None without data.

    Args:
        frame: report frame ``thresholds``: the ``curves`` frame at many thresholds.
        names: (label key, label value) -> name.
    """
    if frame is None or not frame.height:
        return None
    frame = whole(
        frame.filter(pl.col("slice").is_null(), pl.col("score_threshold").is_not_null()),
        ("area", "max_detections"),
    )
    every = frame["score_threshold"].unique().sort().to_numpy()
    hundredths = every[np.isclose(every * 100, np.round(every * 100), atol=1e-9)]
    inside = hundredths.size and every[0] >= 0 and every[-1] <= 1  # else scores are not shares
    chosen = hundredths if inside else every[:: max(1, every.size // 100)]
    frame = frame.filter(pl.col("score_threshold").is_in(chosen.tolist()))
    keys = ["label_key", "label_value"]
    labels = (
        frame.group_by(keys, maintain_order=True)
        .agg(support=(pl.col("tp") + pl.col("fn")).max())
        .sort("support", descending=True, maintain_order=True)
    )
    named = labels["label_key"].n_unique() > 1
    rows = []
    for key in labels["label_key"].unique(maintain_order=True):
        of_key = frame.filter(pl.col("label_key").eq_missing(pl.lit(key, pl.String)))
        if of_key["label_value"].n_unique() > 1:
            sums = of_key.group_by("score_threshold").agg(pl.col(*_COUNTS).sum())
            whole_of = f"all labels of {key}" if named else "all labels"
            rows.append((plain(whole_of), sums.sort("score_threshold")))
    for key, value in labels.head(_LABELS).select(keys).iter_rows():
        of = pl.col("label_key").eq_missing(pl.lit(key)) & (pl.col("label_value") == value)
        called = names.get((key, value), str(value))
        name = f"{key} {called}" if named else called
        rows.append((plain(name), frame.filter(of).sort("score_threshold")))
    at = int(np.abs(chosen - _HALF).argmin())
    data = [[[_plain(v) for v in one[name].to_list()] for name in _COUNTS] for _, one in rows]
    left = labels.height - min(labels.height, _LABELS)
    notes = [f"{left:,} labels of less support are not in this table."] if left else []
    table = Table(
        id="counts",
        caption="True positives, false positives and false negatives",
        header=["label", "TP", "FP", "FN", "precision", "recall", "F1"],
        rows=[
            [Cell(name, kind="name"), *_cells([c[at] for c in columns])]
            for (name, _), columns in zip(rows, data, strict=True)
        ],
        notes=notes,
    )
    said = [f"{threshold:.6g}" for threshold in chosen.tolist()]
    return Counts(said, at, table, {"thresholds": said, "rows": data})


def _plain(value: float) -> float:
    """Shorten a count for JSON: an int if whole, otherwise 3 decimals."""
    return int(value) if float(value).is_integer() else round(float(value), 3)


def _cells(counted: list[float]) -> list[Cell]:
    tp, fp, fn = counted
    shares = [(tp, tp + fp), (tp, tp + fn), (2 * tp, 2 * tp + fp + fn)]
    cells = [Cell(f"{one:,.10g}", one) for one in counted]
    for part, every in shares:
        share = part / every if every else None
        cells.append(Cell(UNDEFINED if share is None else number(share), share))
    return cells


MOST_BYTES = 2_000_000
"""Maximum size of a page."""
_MOST_ROWS = (2000, 1000, 500, 200, 50)
"""Maximum rows per table, tried in order until the page is small enough."""
FAILED = "failed"


@cache
def _template() -> Any:
    import jinja2

    loader = jinja2.PackageLoader("evalengine.report")
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True).get_template(
        "report.html"
    )


def as_page(
    card: Scorecard,
    *,
    title: str = "",
    baseline: Scorecard | None = None,
    baseline_name: str = "",
    comparison: Comparison | None = None,
    margins: Margins | None = None,
    gates: Sequence[Gate] = (),
    notes: Sequence[str] = (),
    examples: Sequence[Examples] = (),
    again: str = "",
) -> str:
    """Return the report as HTML of at most 2 MB.

    Args:
        title: page title; default the task.
        baseline: an earlier run.
        baseline_name: name of the baseline.
        comparison: comparison of both, baseline first.
        margins: intervals of differences if the runs cover different datums. Without ``comparison``
            and ``margins``, differences have no interval.
        gates: shown in this order.
        notes: further remarks.
        examples: lists of datums to inspect; the first is unfolded.
        again: command that writes this page.
    """
    differences = None if baseline is None else Differences(baseline, comparison, margins)
    page, found, drawn = "", sections(card), _drawn(card, baseline, examples)
    for most in _MOST_ROWS:
        shown = parts(card, found, differences, most)
        said = _said(card, lead(found), shown, comparison, gates, baseline=baseline is not None)
        said["reading"] = "" if baseline is None else _reading(comparison, margins)
        page = _template().render(
            **_about(card, title, baseline_name),
            again=again,
            **said,
            parts=shown,
            gates=gates,
            notes=[plain(note) for _, note in told(card)] + list(notes),
            contents=_contents(said["has"], drawn, said["verdict"]["title"]),
            **drawn,
        )
        if len(page.encode()) <= MOST_BYTES:
            break
    return page


def _about(card: Scorecard, title: str, baseline_name: str) -> dict[str, Any]:
    folder = files("evalengine.report") / "templates"
    rows = [[Cell(name, kind="name"), Cell(value, kind="note")] for name, value in facts(card)]
    return {
        "version": __version__,
        "title": plain(title or f"{card.task.capitalize()} report"),
        "about": plain(heading(card)),
        "baseline": plain(baseline_name),
        # Marked as safe: both are the project's own.
        "style": _safe((folder / "report.css").read_text(encoding="utf-8")),
        "script": _safe((folder / "report.js").read_text(encoding="utf-8")),
        "command": command(card.task, card.options, card.run.get("inputs", {})),
        "provenance": Table("facts", "Inputs and settings", ["what", "value"], rows, []),
    }


def _safe(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)


def _said(
    card: Scorecard,
    headline: str,
    shown: list[Part],
    comparison: Comparison | None,
    gates: Sequence[Gate],
    *,
    baseline: bool,
) -> dict[str, Any]:
    """The verdict, or a summary without gate and baseline; and which sections there are."""
    failed = sum(gate.status == FAILED for gate in gates)
    said = _against(shown) or headline if comparison is None else plain(comparison.verdict)
    more: list[str] = []
    if gates:
        state = FAILED if failed else "passed"
        short = (
            f"{failed} of {_gates(len(gates))} failed" if failed else f"{_gates(len(gates))} passed"
        )
        said, more = f"{short}.", [said]
    else:
        state = _state(shown)
        short = state or headline.rstrip(".")
    more += _moved(shown)
    has = {
        "numbers": any(part.numbers or part.tables for part in shown),
        "labels": any(part.labels for part in shown),
        "slices": any(part.slices for part in shown),
    }
    judged = bool(gates) or baseline
    return {
        "verdict": {
            "title": "Verdict" if judged else "Summary",
            "said": said,
            "more": more,
            "state": state,
            "short": short,
        },
        "warnings": [plain(note) for note in card.warnings],
        "has": has,
    }


def _reading(comparison: Comparison | None, margins: Margins | None) -> str:
    """Return a sentence on how to read the differences."""
    if comparison is None and margins is None:
        return "Differences are this run minus the baseline. They were not tested: see the notes."
    level = comparison.level if comparison is not None else margins.level  # type: ignore[union-attr]
    sure = f"{100 * (1 - level):g} %"
    said = f"Differences are this run minus the baseline, with their {100 * level:g} % intervals."
    if comparison is None:
        return (
            f"{said} The runs have different datums: ▲ better and ▼ worse mean that the interval"
            f" excludes 0, which happens by luck for {sure} of all numbers. ≈ not significant."
        )
    adjusted = (
        ", once adjusted for how many aggregates, labels or slices were tested"
        if comparison.adjust != "none"
        else ""
    )
    return (
        f"{said} ▲ better and ▼ worse: significant at {sure}{adjusted}. ≈ not significant,"
        " although the interval of a single number may exclude 0. = same: equal in every resample."
    )


def _leading(shown: list[Part]) -> list[Part]:
    """The part over all label keys, else the parts of each."""
    return [part for part in shown if part.numbers and not part.title] or shown


def _against(shown: list[Part]) -> str:
    """Return the leading number next to the baseline's; empty without a baseline."""
    for part in _leading(shown):
        for row in part.numbers.rows if part.numbers else []:
            cells = dict(zip(part.numbers.header, row, strict=True)) if part.numbers else {}
            if "baseline" in cells and cells["difference"].sort is not None:
                said = f"{part.title} {cells['metric'].text} {cells['value'].text} against".strip()
                said += f" {cells['baseline'].text} ({cells['difference'].text})"
                return f"{said}{', ' * bool(cells['verdict'].state)}{cells['verdict'].state}."
    return ""


def _gates(n: int) -> str:
    return f"{n} gate{'s' if n != 1 else ''}"


def _state(shown: list[Part]) -> str:
    """Return the reading of the leading number, the worst over label keys; empty if unknown."""
    states = []
    for part in _leading(shown):
        rows = part.numbers.rows if part.numbers else []
        read = [cell.state for row in rows for cell in row if cell.kind == "reading" and cell.state]
        states += read[:1]
    return next((state for state in (WORSE, BETTER) if state in states), "")


def _moved(shown: list[Part]) -> list[str]:
    """Labels and slices that are surely worse or better, those that changed most first."""
    said = []
    for what, tables in (
        ("labels", [part.labels for part in shown if part.labels]),
        ("slices", [table for part in shown for table in part.slices]),
    ):
        for table in tables:
            if "difference" not in table.header:
                continue
            change = table.header.index("difference")
            for state in (WORSE, BETTER):
                rows = [
                    (row[change].sort or 0.0, " ".join(cell.text for cell in row[: table.names]))
                    for row in table.rows
                    if any(cell.kind == "reading" and cell.state == state for cell in row)
                ]
                rows.sort(key=lambda one: -abs(one[0]))
                names = [f"{name} ({signed(value)})" for value, name in rows[:_NAMED]]
                names += [f"and {len(rows) - _NAMED} more"] if rows[_NAMED:] else []
                by = table.header[table.names]
                if names:
                    said.append(f"Significantly {state} {what} by {by}: {', '.join(names)}.")
    return said


_NAMED = 5


def _drawn(
    card: Scorecard, baseline: Scorecard | None, shown: Sequence[Examples]
) -> dict[str, Any]:
    """Curves, counts by threshold, errors and examples."""
    from .charts import charts, frames_of, names_of
    from .svg import figure

    names = names_of(card)
    other = None if baseline is None else (baseline.metrics, frames_of(baseline))
    every = charts(card.metrics, frames_of(card), card.directions, other, names)
    return {
        "charts": [_safe(figure(one)) for one in every if one.kind not in (*_TABLES, *_ERRORS)],
        "counts": counts(card.page_frame("thresholds"), names),
        "missing_charts": [
            f"No {_CALLED.get(name, name)}: {why}" for name, why in card.lacking.items()
        ],
        "errors": observed(card),
        "error_charts": [_safe(figure(one)) for one in every if one.kind in _ERRORS],
        "examples": shown,
        "unfolded": _UNFOLDED,
    }


_CALLED = {
    "thresholds": "counts by score threshold",
    "confusion": "confusion matrix",
    "reliability": "calibration curve",
    "actual_by_prediction": "curve of the truth by the prediction",
    "worst": "examples",
}
"""Names of report frames, for messages about missing ones."""
_TABLES = ("labels", "slices")
"""Charts whose data the page also shows as tables."""
_ERRORS = ("confusion", "costs")
_UNFOLDED = 12
"""Datums whose contents are seen without unfolding the rest."""


def observed(card: Scorecard) -> list[Table]:
    """Return the tables of the detailed curve at the score threshold nearest 0.5; may be empty."""
    if "examples" not in card.frames:
        return []
    rows = card.frame("examples").filter(
        pl.col("slice").is_null(), pl.col("observation").is_not_null(), pl.col("count") > 0
    )
    known = rows["score_threshold"].drop_nulls().unique().sort()
    if not len(known):
        return []
    nearest = known[int((known - _HALF).abs().arg_min() or 0)]
    cells = ["label_value", "outcome", "observation", "count"]
    rows = rows.filter(score_threshold=nearest).select(cells).unique(maintain_order=True)
    rows = rows.sort("count", descending=True, maintain_order=True)
    shown = [
        [
            Cell(plain(str(label)), kind="name"),
            Cell(outcome, kind="note"),
            Cell(seen.replace("_", " "), kind="note"),
            Cell(f"{count:,}", count),
        ]
        for label, outcome, seen, count in rows.head(_MOST_ROWS[-1]).iter_rows()
    ]
    left = rows.height - len(shown)
    notes = [f"{left:,} more rows are in the examples frame of the run."] if left else []
    caption = f"Errors by label at score {nearest:g}, the most frequent first"
    header = ["label", "outcome", "observation", "count"]
    return [Table("observations", caption, header, shown, notes)] if shown else []


def _contents(has: dict[str, bool], drawn: dict[str, Any], first: str) -> list[tuple[str, str]]:
    """Return the existing sections as (anchor, name); the first has a special title."""
    curves = drawn["charts"] or drawn["counts"] or drawn["missing_charts"]
    errors = drawn["errors"] or drawn["error_charts"]
    there = {
        "verdict": True,
        **has,
        "curves": curves,
        "errors": errors,
        "examples": drawn["examples"],
        "notes": True,
        "provenance": True,
    }
    order = (
        "verdict",
        "numbers",
        "labels",
        "curves",
        "slices",
        "errors",
        "examples",
        "notes",
        "provenance",
    )
    titles = {"verdict": first}
    return [(name, titles.get(name, name.capitalize())) for name in order if there[name]]


def write_page(page: str, path: str | Path) -> Path:
    """Write a report atomically.

    Raises:
        WriteError: the file cannot be written.
    """
    target = Path(path)
    try:
        with whole_file(target, sweeps=True) as file:
            file.write(page.encode())
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error}.") from error
    return target
