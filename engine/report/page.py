"""Report of a run: one self-contained HTML file, without network or server.

The content is plain data; ``templates/`` has template, style and script, which only render it.
Jinja2 escapes everything, except charts, which are escaped when they are built.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from .._version import __version__
from ..atomic import whole_file
from ..ingest.problems import count_of
from ..schemas.display import NAME, NOTE, READING, Cell, Column, Table, texts
from ..schemas.errors import N_NAMES, WriteError
from ..schemas.results import FAILED, PASSED
from ..schemas.wording import without_secrets
from ..scorecard.card import Scorecard
from ..scorecard.lookup import whole
from ..statistics.comparing import Margins
from ..statistics.comparison import Comparison
from .contents import Picture, Pictures, Sample, Samples, example_of, outlines
from .provenance import command, facts
from .summary import (
    Line,
    Section,
    cells,
    footnotes,
    headed,
    heading,
    ordered_notes,
    sections,
    supported,
)
from .tables import USUAL_K, Grid, first_end, layout_of, pair_name, reaches
from .text import UNDEFINED, interval, number, p_value, plain, signed
from .verdicts import BETTER, SAME, UNSURE, WORSE, Difference, Differences, better
from .verdicts import lead as compared_lead

# Tables of the page.
#
# Sections match the terminal tables (:mod:`evalengine.report.summary`). Next to each number are
# its interval, the baseline's number and whether the difference is significant.

ARROWS = {BETTER: "▲", WORSE: "▼", UNSURE: "≈", SAME: "="}
"""Symbol before each reading, so that colour is not the only cue."""


class Gate(msgspec.Struct, frozen=True):
    """A gate: its text, its result (passed, failed or skipped) and the numbers behind it.

    Attributes:
        written: the gate as written, if a command has to repeat it; otherwise empty.
    """

    status: str
    gate: str
    evidence: str
    written: str = ""


class Step(msgspec.Struct, frozen=True):
    """A finding to look at next.

    Attributes:
        section: anchor of the section that has it; may be empty.
        command: command that lists the rows behind it; may be empty.
    """

    text: str
    section: str
    command: str = ""


class Moved(NamedTuple):
    """Labels or slices of a table that are significantly worse or better, the largest change first.

    Attributes:
        what: ``labels`` or ``slices``, the anchor of their section.
        by: title of the number.
        rows: (name, change) pairs.
    """

    what: str
    by: str
    state: str
    rows: list[tuple[str, float]]

    def __str__(self) -> str:
        names = [f"{name} ({signed(change)})" for name, change in self.rows[:N_NAMES]]
        names += [f"and {len(self.rows) - N_NAMES} more"] if self.rows[N_NAMES:] else []
        return f"Significantly {self.state} {self.what} by {self.by}: {', '.join(names)}."


class Part(msgspec.Struct, frozen=True):
    """Report section for one label key.

    Attributes:
        title: the label key; empty if it is the only one.
        numbers: the headline.
        tables: metrics that have a separate table.
        labels: table of labels, worst first; None without labels.
        slices: tables of slices, worst first.
    """

    title: str
    numbers: Table | None
    tables: list[Table]
    labels: Table | None
    slices: list[Table]


def parts(
    card: Scorecard, sections: list[Section], differences: Differences | None, most: int
) -> list[Part]:
    """Build the tables of a run.

    Args:
        sections: sections of the run, worst first.
        differences: differences to the baseline, if there is one.
        most: maximum number of rows per table.
    """
    return [
        Part(
            title=plain(section.label_key or "") if headed(section, sections) else "",
            numbers=_numbers(section, differences, i),
            tables=[
                _of_grid(card, grid, None, most, f"table-{i}-{j}", "")
                for j, grid in enumerate(section.tables)
                if grid.frame == "metrics"
            ],
            labels=None
            if section.labels is None
            else _of_grid(
                card, section.labels, differences, most, f"labels-{i}", "Labels", searched=True
            ),
            slices=[
                _of_grid(
                    card,
                    grid,
                    differences,
                    most,
                    f"slices-{i}-{j}",
                    f"By {plain(' and '.join(grid.names))}",
                    searched=len(grid.rows) > _MANY,
                )
                for j, grid in enumerate(section.slices)
            ],
        )
        for i, section in enumerate(sections)
    ]


_MANY = 15


def _numbers(section: Section, differences: Differences | None, i: int) -> Table | None:
    if not section.headline:
        return None
    reach = any(line.reach for line in section.headline)
    support = any(line.row.get("support") for line in section.headline)
    noted = any(line.note for line in section.headline)
    columns = [Column("metric", NAME), Column("value")]
    columns += [Column("interval")] if reach else []
    columns += _NEXT if differences is not None else []
    columns += [Column("support")] if support else []
    columns += [Column("taken at", NOTE)] if noted else []
    rows = []
    for line in section.headline:
        row = [Cell(plain(line.called)), Cell(number(line.value, counted=line.counted), line.value)]
        if reach:
            bounds = line.row.get("lower"), line.row.get("upper")
            row.append(Cell("" if None in bounds else interval(*bounds)))
        row += _baseline_cells(differences.of(line.row)) if differences is not None else []
        if support:
            support_value = line.row.get("support")
            row.append(
                Cell("" if support_value is None else f"{support_value:,.10g}", support_value)
            )
        rows.append([*row, *([Cell(line.note)] if noted else [])])
    notes = []
    for note in footnotes(msgspec.structs.replace(section, labels=None, slices=[])):
        # Readers of the page may have neither Python nor a shell.
        message, hint, _ = note.partition("; all: ")
        page = f"{message[0].upper()}{message[1:]}; they are in the run's metrics frame."
        notes.append(page if hint else note)
    return Table(columns, rows, "All numbers of the whole set", notes, f"numbers-{i}")


_NEXT = [Column("baseline"), Column("difference"), Column("verdict", READING)]


def _baseline_cells(difference: Difference | None) -> list[Cell]:
    """Return cells for the baseline's number, the difference with its interval, and the verdict."""
    if difference is None:
        return texts("not there", "", "new")
    before = Cell(number(difference.before), difference.before)
    if difference.value is None:
        return [before, *texts(UNDEFINED, "undefined")]
    value = signed(difference.value)
    if difference.lower is not None and difference.upper is not None:
        value += f" [{signed(difference.lower)}, {signed(difference.upper)}]"
    reading = difference.reading
    verdict = f"{ARROWS[reading]} {reading}" if reading else difference.unread
    if difference.adjusted is not None:
        p = p_value(difference.adjusted).replace(" ", "\u00a0")
        verdict += f" after correction ({p})"
    return [before, Cell(value, difference.value), Cell(verdict, state=reading)]


def _of_grid(
    card: Scorecard,
    grid: Grid,
    differences: Differences | None,
    most: int,
    id: str,
    title: str,
    *,
    searched: bool = False,
) -> Table:
    """Build a table of labels or slices, with support, and the baseline of the first number."""
    grid_rows = grid.rows[:most]
    if any(row.reaches for row in grid_rows):
        every = [
            reaches(column, bounds=True)
            for column in zip(*(r.rows for r in grid_rows), strict=True)
        ]
        grid_rows = [
            row._replace(reaches=intervals)
            for row, intervals in zip(grid_rows, zip(*every, strict=True), strict=True)
        ]
    support = [supported(row) for row in grid_rows]
    support_values = [
        row.support if isinstance(row.support, (int, float)) else None for row in grid_rows
    ]
    largest = max((one for one in support_values if one is not None), default=0) or 1
    columns = [Column(plain(name), NAME) for name in grid.names]
    columns += [Column(plain(name)) for name in grid.columns[:1]]
    columns += _NEXT if differences is not None else []
    columns += [Column("support")] if any(support) else []
    columns += [Column(plain(name)) for name in grid.columns[1:]]
    unit = all(0 <= (row.numbers[0] or 0.0) <= 1 for row in grid_rows)
    rows = []
    for row, support_text, support_value in zip(grid_rows, support, support_values, strict=True):
        line = texts(*map(plain, row.names))
        first, *more = map(Cell, cells(grid, row), row.numbers)
        filled = unit and first.value is not None
        line.append(first._replace(bar=100 * (first.value or 0.0) if filled else None))
        if differences is not None:
            of = row.rows[0] if row.rows else None
            line += _baseline_cells(None if of is None else differences.of(of))
        if any(support):
            line.append(
                Cell(
                    support_text,
                    support_value,
                    bar=None if support_value is None else 100 * support_value / largest,
                )
            )
        rows.append([*line, *more])
    best_first = layout_of(card.task, card.dialect).best_first
    end = first_end(card.directions.get(grid.first), best_first=best_first)
    order = f"{title}, by {grid.columns[0]}, {end} first" if title else ""
    notes = _notes(grid, len(grid_rows))
    return Table(columns, rows, order or plain(grid.title), notes, id, searched)


def _notes(grid: Grid, n_rows: int) -> list[str]:
    notes = [grid.note] if grid.note else []
    if n_rows < len(grid.rows):
        left = len(grid.rows) - n_rows
        notes.append(
            f"{left:,} more of {len(grid.rows):,} rows are not on this page: the metrics"
            " frame of the run has all of them."
        )
    if grid.hidden:
        notes.append(f"{grid.hidden:,} more columns are in the metrics frame of the run.")
    for reason, names in grid.undefined.items():
        some = ", ".join(plain(name) for name in names[:N_NAMES])
        more = f" and {len(names) - N_NAMES:,} more" if names[N_NAMES:] else ""
        notes.append(f"{UNDEFINED} {reason}: {some}{more}")
    return notes


def lead(sections: list[Section]) -> str:
    """Return a one-sentence headline for a page without gates and baseline.

    With several label keys, it uses the numbers over all keys, otherwise the first key, by name.
    """
    for section in sorted(sections, key=lambda one: one.label_key is not None):
        by_metric: dict[str, list[Line]] = {}
        for line in section.headline:
            if line.value is not None:
                by_metric.setdefault(line.row["metric"], []).append(line)
        # One number per metric; with several cut-offs, the usual one.
        lines = [
            next((one for one in every if one.row["k"] == USUAL_K), every[0])
            for every in by_metric.values()
        ][:_LEADING]
        if lines:
            figures = [f"{line.called} {_figure(line)}" for line in lines]
            named = f"{plain(section.label_key or '')}: " if headed(section, sections) else ""
            listed = " and ".join(filter(None, (", ".join(figures[:-1]), figures[-1])))
            return f"{named}{listed}."
    return "No aggregate of this run is defined."


def _figure(line: Line) -> str:
    """Format a headline number with its interval."""
    bounds = line.row.get("lower"), line.row.get("upper")
    value = number(line.value, counted=line.counted)
    return value if None in bounds else f"{value} {interval(*bounds)}"


def _with_alias(sentence: str, sections: list[Section]) -> str:
    """Add the name in other tools to the first number of a sentence, and capitalise "this run"."""
    sentence = f"T{sentence[1:]}" if sentence.startswith("this run ") else sentence
    every = [line for section in sections for line in section.headline if line.alias]
    first = min(
        every, key=lambda line: sentence.find(line.title) % (len(sentence) + 1), default=None
    )
    return sentence if first is None else sentence.replace(first.title, first.called, 1)


_LEADING = 3


# Worst datums on the page: table and contents.


class Datum(msgspec.Struct, frozen=True):
    """One of the worst datums.

    Attributes:
        kind: name of the content's struct; empty if unknown.
        picture: a thumbnail or outlines, or None.
        example_of: confusions that it is an example of.
    """

    name: str
    why: str
    kind: str
    content: Any
    columns: dict[str, str]
    picture: Picture | None
    example_of: list[tuple[str | None, str | None]] = []


class Examples(msgspec.Struct, frozen=True):
    """Worst datums.

    Attributes:
        datums: those with content to show.
    """

    table: Table
    datums: list[Datum]
    notes: list[str]


def examples(
    worst: pl.DataFrame,
    samples: Samples,
    pictures: Pictures | None,
    slices: pl.DataFrame | None = None,
) -> Examples:
    """Prepare the worst datums, or those that got worse, for display.

    Args:
        worst: one or more rows from :func:`evalengine.evaluation.paging.worst`; with a column
            ``before``, from :func:`evalengine.evaluation.paging.worse_since`.
        pictures: thumbnails, one per row, or None.
        slices: their slices, one row each, or None.
    """
    metric = worst["metric"][0]
    since = "before" in worst.columns
    names = [] if slices is None else slices.columns
    columns = [Column("datum", NAME), *(Column(plain(name), NAME) for name in names)]
    columns += map(Column, [metric, *(("baseline", "change") if since else ())])
    columns.append(Column("errors", NOTE))
    rows = []
    for i, row in enumerate(worst.iter_rows(named=True)):
        of = () if slices is None else slices.row(i)
        line = texts(*(plain(str(one or "")) for one in (str(row["datum_id"]), *of)))
        line.append(Cell(number(row["value"]), row["value"]))
        if since:
            change = row["value"] - row["before"]
            line += [Cell(number(row["before"]), row["before"]), Cell(signed(change), change)]
        rows.append([*line, Cell(plain(row["why"]))])
    n = f"{worst.height} datum{'s' if worst.height > 1 else ''}"
    title = f"The {n} that are worst by {metric}, the worst first"
    if since:
        title = f"The {n} that got worse since the baseline by {metric}, the largest change first"
    table = Table(
        columns,
        rows,
        title,
        id="examples-since" if since else "examples-table",
        searched=len(rows) > 1,
    )
    notes = [plain(samples.missing)] if samples.missing else []
    notes += [plain(note) for note in pictures.notes] if pictures is not None else []
    thumbnails = (None,) * worst.height if pictures is None else pictures.pictures
    entries = [
        _datum(one, why, picture or lines)
        for one, why, picture, lines in zip(
            samples.datums, worst["why"], thumbnails, outlines(samples.datums), strict=True
        )
        if one.content is not None or picture is not None
    ]
    return Examples(table, entries, notes)


def _datum(one: Sample, why: str, picture: Picture | None) -> Datum:
    kind = "" if one.content is None else type(one.content).__name__
    columns = {plain(name): plain(value) for name, value in one.columns.items()}
    name = plain(str(one.datum_id))
    return Datum(name, plain(why), kind, one.content, columns, picture, example_of(one))


# Counts by score threshold: the table that the slider of the report changes.

_COUNTS = ("tp", "fp", "fn")
_HALF = 0.5
_LABELS = 20


class Counts(msgspec.Struct, frozen=True):
    """Counts by threshold, for all labels together and for some labels.

    Attributes:
        thresholds: ascending, formatted.
        at: index of the initial threshold.
        table: counts at ``at``.
        data: ``thresholds`` and ``rows``: tp, fp and fn by threshold, per row of the table.
    """

    thresholds: list[str]
    at: int
    table: Table
    data: dict[str, Any]

    @property
    def threshold(self) -> str:
        """The threshold that is shown first."""
        return self.thresholds[self.at]


def counts(
    frame: pl.DataFrame | None,
    names: Mapping[tuple[str | None, Any], str],
    point: float | None = None,
    order: Sequence[str] = (),
) -> Counts | None:
    """Return the counts of a run at 100 thresholds; None without data.

    Args:
        order: names of labels, in the order of their table; others come last.
        point: the operating point, which is shown first; by default 0.5.
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
    inside = (
        hundredths.size and every[0] >= 0 and every[-1] <= 1
    )  # otherwise scores are not between 0 and 1
    chosen = hundredths if inside else every[:: max(1, every.size // 100)]
    point = _HALF if point is None else point
    chosen = np.union1d(chosen, every[np.isclose(every, point, atol=1e-12)])
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
    place = {name: i for i, name in enumerate(order)}
    most = labels.head(_LABELS).select(keys).rows()
    for key, value in sorted(
        most, key=lambda one: place.get(names.get(one, str(one[1])), len(place))
    ):
        of = pl.col("label_key").eq_missing(pl.lit(key)) & (pl.col("label_value") == value)
        called = names.get((key, value), str(value))
        name = f"{key} {called}" if named else called
        rows.append((plain(name), frame.filter(of).sort("score_threshold")))
    at = int(np.abs(chosen - point).argmin())
    # Counts are short in JSON: integers if whole, otherwise 3 decimals.
    data = [
        [[int(v) if v == int(v) else round(v, 3) for v in one[name]] for name in _COUNTS]
        for _, one in rows
    ]
    left = labels.height - min(labels.height, _LABELS)
    notes = [f"{left:,} labels of less support are not in this table."] if left else []
    table = Table(
        [Column("label", NAME), *map(Column, ["TP", "FP", "FN", "precision", "recall", "F1"])],
        [
            [Cell(name), *_cells([c[at] for c in columns])]
            for (name, _), columns in zip(rows, data, strict=True)
        ],
        "True positives, false positives and false negatives",
        notes,
        "counts",
    )
    threshold_texts = [f"{threshold:.6g}" for threshold in chosen.tolist()]
    return Counts(threshold_texts, at, table, {"thresholds": threshold_texts, "rows": data})


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


@cache
def environment() -> Any:
    """Return the templates of pages; they escape everything by themselves."""
    import jinja2

    loader = jinja2.PackageLoader("evalengine.report")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True)
    environment.filters["plain"] = lambda value: plain(str(value))
    return environment


def look() -> dict[str, Any]:
    """Return the version, style and script of pages; the last two are safe: the project's own."""
    folder = files("evalengine.report") / "templates"
    return {
        "version": __version__,
        "style": _safe((folder / "report.css").read_text(encoding="utf-8")),
        "script": _safe((folder / "report.js").read_text(encoding="utf-8")),
    }


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
    warnings: Sequence[str] = (),
    examples: Sequence[Examples] = (),
    commands: Sequence[str] = (),
    folder: str | Path | None = None,
    untested: str = "",
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
        warnings: warnings on the baseline and the comparison.
        examples: lists of datums to inspect; the first is unfolded.
        commands: commands that write this page.
        folder: folder of the run; None if it was not saved.
        untested: why the differences have no interval.
    """
    differences = None if baseline is None else Differences(baseline, comparison, margins)
    page, all_sections = "", sections(card)
    drawn = _drawn(card, baseline, examples, all_sections)
    for most in _MOST_ROWS:
        page_parts = parts(card, all_sections, differences, most)
        summary_facts = _summary_facts(
            card,
            all_sections,
            page_parts,
            comparison,
            gates,
            warnings,
            baseline=baseline is not None,
        )
        summary_facts["reading"] = (
            "" if baseline is None else _reading(comparison, margins, untested)
        )
        if baseline is not None and comparison is None and margins is None:
            summary_facts["verdict"]["more"].append(f"Not tested against the baseline: {untested}")
        page = (
            environment()
            .get_template("report.html")
            .render(
                **_about(card, title, baseline, baseline_name),
                commands=commands,
                **summary_facts,
                steps=steps(card, baseline, page_parts, gates, summary_facts["warnings"], folder),
                parts=page_parts,
                gates=gates,
                notes=[
                    *(plain(note) for kind, note in ordered_notes(card) if kind == "note"),
                    *map(plain, notes),
                ],
                contents=_contents(summary_facts["has"], drawn, summary_facts["verdict"]["title"]),
                **drawn,
            )
        )
        if len(page.encode()) <= MOST_BYTES:
            break
    return page


def _about(
    card: Scorecard, title: str, baseline: Scorecard | None, baseline_name: str
) -> dict[str, Any]:
    columns = [Column("what", NAME), Column("value", NOTE)]
    lines = [*facts(card), ("cite", plain(card.cite))]
    if baseline is not None:
        lines += [("baseline", plain(baseline_name)), ("cite the baseline", plain(baseline.cite))]
    rows = [texts(name, value) for name, value in lines]
    about_cite = (
        "The digests in the line to cite are of the rows, in any order and file format; SHA-256,"
        " as of sha256sum, is of the bytes of the file."
    )
    return {
        **look(),
        "title": plain(title or f"{card.task.capitalize()} report"),
        "about": plain(heading(card)),
        "baseline": plain(baseline_name),
        "provenance": Table(columns, rows, "Inputs and settings", [about_cite], id="facts"),
    }


def _safe(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)


def _summary_facts(
    card: Scorecard,
    sections: list[Section],
    page_parts: list[Part],
    comparison: Comparison | None,
    gates: Sequence[Gate],
    warnings: Sequence[str],
    *,
    baseline: bool,
) -> dict[str, Any]:
    """Return the verdict (without gates and baseline, a summary) and the existing sections.

    Significant changes come first, the worse before the better.
    """
    failed = sum(gate.status == FAILED for gate in gates)
    headline, leading = lead(sections), _state(page_parts)
    if comparison is None:
        lines = [(_rank(leading), _against(page_parts) or headline)]
    else:  # the comparison's sentence uses the names of the tables
        rows = [row for part in _leading(page_parts) if part.numbers for row in part.numbers.rows]
        states = {cell.state for row in rows for cell in row}
        changed = next((one for one in (WORSE, BETTER) if one in states), "")
        lines = [(_rank(changed), _with_alias(plain(comparison.verdict), sections))]
        if (first := compared_lead(comparison)) and better(comparison, first[1]) > 0:
            leading = BETTER
    lines += [(_rank(one.state), str(one)) for one in _moved(page_parts)]
    lines.sort(key=itemgetter(0))
    state = {_rank(WORSE): WORSE, _rank(BETTER): BETTER}.get(lines[0][0], "")
    mixed = state == WORSE and leading == BETTER
    short = "better and worse" if mixed else state or headline.rstrip(".")
    state, sentences = "" if mixed else state, [line for _, line in lines]
    if gates:
        state, every = FAILED if failed else PASSED, count_of(len(gates), "gate")
        short = f"{failed} of {every} failed" if failed else f"{every} passed"
        sentences.insert(0, f"{short}.")
    has = {
        "numbers": any(part.numbers or part.tables for part in page_parts),
        "labels": any(part.labels for part in page_parts),
        "slices": any(part.slices for part in page_parts),
    }
    judged = bool(gates) or baseline
    return {
        "verdict": {
            "title": "Verdict" if judged else "Summary",
            "said": sentences[0],
            "more": sentences[1:],
            "state": state,
            "short": short,
        },
        "warnings": [plain(note) for note in (*card.warnings, *warnings)],
        "has": has,
    }


def _rank(state: str) -> int:
    """Return the place of a change in the verdict."""
    return (WORSE, BETTER).index(state) if state in (WORSE, BETTER) else 2


def steps(
    card: Scorecard,
    baseline: Scorecard | None,
    page_parts: list[Part],
    gates: Sequence[Gate],
    warnings: Sequence[str],
    folder: str | Path | None,
) -> list[Step]:
    """Return up to four findings of the page that need a look, the most serious first."""

    def listing(verb: str) -> str:
        if folder is not None:
            return shlex.join(["evalengine", verb, str(folder)])
        return command(card.task, card.options, card.run.get("inputs", {}), verb)

    flips = listing("errors")
    if folder is not None and baseline is not None and baseline.folder is not None:
        both = [str(baseline.folder), str(folder)]
        flips = shlex.join(["evalengine", "compare", *both, "--frame", "flips"])
    items = []
    if warnings:
        count = count_of(len(warnings), "warning")
        message = f"{count}: the numbers may be meaningless until the cause is known"
        items.append(Step(message, "warnings", listing("diagnose")))
    failed = [plain(gate.gate) for gate in gates if gate.status == FAILED]
    if failed:
        more = f" and {len(failed) - 1:,} more" if failed[1:] else ""
        items.append(Step(f"Failed gate: {failed[0]}{more}", "gates", listing("errors")))
    worse = [one for one in _moved(page_parts) if one.state == WORSE]
    for what in ("labels", "slices"):
        largest = max(
            (one for one in worse if one.what == what),
            key=lambda one: abs(one.rows[0][1]),
            default=None,
        )
        if largest is not None:
            name, change = largest.rows[0]
            message = f"Largest drop of {what}: {name}, {largest.by} {signed(change)}"
            items.append(Step(message, what, flips))
    if not worse and _state(page_parts) == WORSE:
        items.append(
            Step(f"Worse than the baseline: {_against(page_parts)[:-1]}", "numbers", flips)
        )
    if "label_errors" in card.frames and (wrong := card.height("label_errors")):
        message = f"{count_of(wrong, 'ground truth')} likely wrong"
        items.append(Step(message, "", listing("label-errors")))
    earlier = {} if baseline is None else {one.code: one.count for one in baseline.findings}
    for one in card.findings:
        if one.code in _MISSING and one.severity == "note":
            message = plain(one.message.partition(":")[0])
            if baseline is not None:
                message += f"; {earlier.get(one.code) or 'none'} in the baseline"
            items.append(Step(message, "notes"))
    return [msgspec.structs.replace(one, command=without_secrets(one.command)) for one in items][:4]


_MISSING = ("datums_without_predictions", "frames_without_predictions")
"""Codes of findings on datums that have no predictions."""


_METHODS = {"holm": "Holm's method", "bh": "Benjamini and Hochberg's method"}


def _reading(comparison: Comparison | None, margins: Margins | None, untested: str) -> str:
    """Return a sentence on how to read the differences."""
    if comparison is None and margins is None:
        return f"Differences are this run minus the baseline. They were not tested: {untested}"
    level = comparison.level if comparison is not None else margins.level  # type: ignore[union-attr]
    sure = f"{100 * (1 - level):g} %"
    message = (
        f"Differences are this run minus the baseline, with their {100 * level:g} % intervals."
    )
    if comparison is None:
        return (
            f"{message} The runs have different datums: ▲ better and ▼ worse mean that the interval"
            f" excludes 0, which happens by luck for {sure} of all numbers. ≈ not significant."
        )
    method = _METHODS.get(comparison.adjust)
    adjusted = (
        f", once adjusted for how many aggregates, labels or slices were tested ({method})"
        if method
        else ""
    )
    return (
        f"{message} ▲ better and ▼ worse: significant at {sure}{adjusted}. ≈ not significant;"
        " if the interval excludes 0 all the same, the adjusted p is given. = same: equal in every"
        " resample."
    )


def _leading(page_parts: list[Part]) -> list[Part]:
    """Return the part over all label keys; without one, the parts of each key."""
    return [part for part in page_parts if part.numbers and not part.title] or page_parts


def _against(page_parts: list[Part]) -> str:
    """Return the leading number next to the baseline's; empty without a baseline."""
    for part in _leading(page_parts):
        table = part.numbers
        if table is None or table.place("baseline") is None:
            continue
        titles = [column.title for column in table.columns]
        for row in table.rows:
            cells = dict(zip(titles, row, strict=True))
            if cells["difference"].value is not None:
                message = (
                    f"{part.title} {cells['metric'].text} {cells['value'].text} against".strip()
                )
                message += f" {cells['baseline'].text} ({cells['difference'].text})"
                return f"{message}{', ' * bool(cells['verdict'].state)}{cells['verdict'].state}."
    return ""


def _state(page_parts: list[Part]) -> str:
    """Return the reading of the leading number, the worst over label keys; empty if unknown."""
    states = []
    for part in _leading(page_parts):
        rows = part.numbers.rows if part.numbers else []
        read = [cell.state for row in rows for cell in row if cell.state]
        states += read[:1]
    return next((state for state in (WORSE, BETTER) if state in states), "")


def _moved(page_parts: list[Part]) -> list[Moved]:
    """Return the labels and slices that are significantly worse or better."""
    result = []
    for what, tables in (
        ("labels", [part.labels for part in page_parts if part.labels]),
        ("slices", [table for part in page_parts for table in part.slices]),
    ):
        for table in tables:
            change = table.place("difference")
            if change is None:
                continue
            for state in (WORSE, BETTER):
                rows = [
                    (" ".join(cell.text for cell in row[: table.names]), row[change].value or 0.0)
                    for row in table.rows
                    if any(cell.state == state for cell in row)
                ]
                rows.sort(key=lambda one: -abs(one[1]))
                if rows:
                    result.append(Moved(what, table.columns[table.names].title, state, rows))
    return result


def _drawn(
    card: Scorecard,
    baseline: Scorecard | None,
    example_tables: Sequence[Examples],
    all_sections: Sequence[Section],
) -> dict[str, Any]:
    """Return the curves, counts by threshold, errors and examples for the template."""
    from .charts import charts, frames_of, leads_of, names_of
    from .svg import figure as chart_figure

    names = names_of(card)
    other = None if baseline is None else (baseline.metrics, frames_of(baseline))
    point = operating_point(card)
    links: dict[tuple[str, str], str] = {}
    for i, examples in enumerate(example_tables, 1):
        for j, datum in enumerate(examples.datums, 1):
            for pair in datum.example_of:
                actual, predicted = (pair_name(plain, name, side) for side, name in enumerate(pair))
                links.setdefault((actual, predicted), f"#datum-{i}-{j}")
    tables = [one.labels for one in all_sections if one.labels is not None]
    order = [row.names[-1] for table in tables for row in table.rows]
    every = charts(
        card.metrics, frames_of(card), card.directions, other, names, _TABLES, leads_of(card), links
    )
    curves = (*_ERRORS, "intervals")
    return {
        "charts": [_safe(chart_figure(one)) for one in every if one.kind not in curves],
        "interval_charts": [_safe(chart_figure(one)) for one in every if one.kind == "intervals"],
        "counts": counts(card.page_frame("thresholds"), names, point, order),
        "missing_charts": [
            f"No {_CALLED.get(name, name)}: {why}" for name, why in card.missing.items()
        ],
        "point": "" if point is None else f"{point:g}",
        "errors": observed(card, point),
        "error_charts": [_safe(chart_figure(one)) for one in every if one.kind in _ERRORS],
        "examples": example_tables,
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
"""Number of datums whose contents are visible without unfolding the rest."""


def operating_point(card: Scorecard) -> float | None:
    """Return the score threshold of confusions and examples; None if they have none."""
    frame = card.frame("confusion") if "confusion" in card.frames else card.page_frame("confusion")
    every = [] if frame is None else frame["score_threshold"].drop_nulls().unique().to_list()
    if every:
        return float(min(every, key=lambda one: abs(one - _HALF)))
    worst = card.page_frame("worst")
    parameters = (
        json.loads(worst["parameters"][0] or "{}") if worst is not None and worst.height else {}
    )
    return parameters.get("score_threshold")


def observed(card: Scorecard, point: float | None = None) -> list[Table]:
    """Return the tables of the detailed curve at the threshold nearest a point; may be empty."""
    if "examples" not in card.frames:
        return []
    rows = card.frame("examples").filter(
        pl.col("slice").is_null(), pl.col("observation").is_not_null(), pl.col("count") > 0
    )
    thresholds = rows["score_threshold"].drop_nulls().unique().sort()
    if not len(thresholds):
        return []
    nearest = thresholds[
        int((thresholds - (_HALF if point is None else point)).abs().arg_min() or 0)
    ]
    cells = ["label_value", "outcome", "observation", "count"]
    rows = rows.filter(score_threshold=nearest).select(cells).unique(maintain_order=True)
    rows = rows.sort("count", descending=True, maintain_order=True)
    observations = [
        [*texts(plain(str(label)), outcome, seen.replace("_", " ")), Cell(f"{count:,}", count)]
        for label, outcome, seen, count in rows.head(_MOST_ROWS[-1]).iter_rows()
    ]
    left = rows.height - len(observations)
    notes = [f"{left:,} more rows are in the examples frame of the run."] if left else []
    caption = f"Errors by label at score {nearest:g}, the most frequent first"
    columns = [Column("label", NAME), Column("outcome", NOTE), Column("observation", NOTE)]
    table = Table([*columns, Column("count")], observations, caption, notes, "observations")
    return [table] if observations else []


def _contents(has: dict[str, bool], drawn: dict[str, Any], first: str) -> list[tuple[str, str]]:
    """Return the existing sections as (anchor, name); the first has a special title."""
    present = {
        "verdict": True,
        "numbers": has["numbers"],
        "labels": has["labels"],
        "curves": drawn["charts"] or drawn["counts"] or drawn["missing_charts"],
        "slices": has["slices"],
        "errors": drawn["errors"] or drawn["error_charts"],
        "examples": drawn["examples"],
        "notes": True,
        "provenance": True,
    }
    titles = {"verdict": first}
    return [(name, titles.get(name, name.capitalize())) for name in present if present[name]]


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
