"""Findings as text, Markdown, HTML and records."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..ingest.geometry import CORNER_NAMES
from ..ingest.problems import count_of
from ..schemas.option_values import in_name
from .show import show_frame, write_text
from .summary import (
    UNDEFINED,
    aligned,
    html_frame,
    html_table,
    markdown_frame,
    markdown_table,
    number,
    plain,
)
from .verdicts import probability

if TYPE_CHECKING:
    from ..findings.bounds import FoundLimits
    from ..findings.calibration import FoundCalibration
    from ..findings.diagnose import Diagnosis
    from ..findings.errors import FoundErrors
    from ..findings.label_errors import FoundLabelErrors
    from ..findings.slices import FoundSlices
    from ..findings.thresholds import FoundThresholds

# Display of analyses, rows under a heading: text, Markdown, HTML, or for programs.

Rows = Sequence[Sequence[str]]


def hit_at(threshold: float | None, *, by_distance: bool) -> str:
    """Return a phrase for the threshold at which boxes hit; "" without boxes."""
    if threshold is None:
        return ""
    return f" at {threshold:g} metres" if by_distance else f" at IoU {threshold:g}"


def interval(low: float | None, high: float | None) -> str:
    """Both ends of an interval."""
    return UNDEFINED if low is None else f"[{number(low)}, {number(high)}]"


def label_of(row: dict[str, Any]) -> str:
    """The label of a row, or that it is of all of a key."""
    value, name = str(row["label_value"]), row.get("label_name")
    named = value if name in (None, value) else f"{value} {name}"
    return plain("(all)" if row["average"] is not None else named)


class Body(msgspec.Struct, frozen=True):
    """Rows in each display format; "" without rows."""

    text: Callable[[Any], str]
    markdown: Callable[[Any], str]
    html: Callable[[Any], str]


def _aligned_cells(header: Sequence[str], rows: Rows) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    )


def of_cells(made: Callable[[Any], tuple[list[str], list[list[str]]]]) -> Body:
    """Make a body whose cells are text."""

    def markdown(header: list[str], rows: list[list[str]]) -> str:
        return markdown_table(header, rows, right=[i > 0 for i in range(len(header))])

    def each(form: Callable[[list[str], list[list[str]]], str]) -> Callable[[Any], str]:
        def shown(found: Any) -> str:
            header, rows = made(found)
            return form(header, rows) if rows else ""

        return shown

    return Body(each(_aligned_cells), each(markdown), each(html_table))


def of_frame(made: Callable[[Any], pl.DataFrame]) -> Body:
    """Make a body from a frame."""

    def each(form: Callable[[pl.DataFrame], str]) -> Callable[[Any], str]:
        return lambda found: form(made(found)).rstrip("\n") if len(found) else ""

    return Body(each(aligned), each(markdown_frame), each(html_frame))


class Layout(msgspec.Struct, frozen=True):
    """Display of the result of an analysis."""

    name: str
    heading: Callable[[Any], str]
    body: Body
    frame: Callable[[Any], pl.DataFrame]

    def text(self, found: Any, notes: Sequence[str] | None = None) -> str:
        """Format for the prompt and the shell.

        Args:
            notes: as worded for the surface; by default as in Python.
        """
        lines = [self.heading(found)]
        if body := self.body.text(found):
            lines += ["", *("  " + line for line in body.splitlines())]
        more = [f"note: {plain(note)}" for note in (found.notes if notes is None else notes)]
        return "\n".join([*lines, *([""] if more else []), *more])

    def html(self, found: Any) -> str:
        """For notebooks."""
        notes = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in found.notes)
        return f"<div><p>{html.escape(self.heading(found))}</p>{self.body.html(found)}{notes}</div>"

    def show(self, found: Any, form: str, out: IO[str], notes: Sequence[str]) -> None:
        """Write a finding to a text stream.

        Args:
            form: one of :data:`.show.FORMATS`; display formats include the notes.
        """
        if form == "table":
            write_text(self.text(found, notes) + "\n", out)
        elif form == "markdown":
            said = "\n".join(f"- {plain(note)}" for note in notes)
            parts = [self.heading(found), self.body.markdown(found), said]
            write_text("\n\n".join(filter(None, parts)) + "\n", out)
        else:
            show_frame(self.frame(found), form, name=self.name)


# Calibration as text, Markdown, HTML, or rows for programs.


def calibration_heading(found: FoundCalibration) -> str:
    at = hit_at(found.iou_threshold, by_distance=found.by_distance)
    return f"calibration of {count_of(found.n, 'datum')}{at}, in {count_of(found.n_bins, 'bin')}"


def _calibration_table(found: FoundCalibration) -> tuple[list[str], list[list[str]]]:
    header = [
        "label",
        "rows",
        "score",
        "right",
        "ECE",
        f"{100 * found.level:g} % interval",
        "temperature",
        "ECE then",
        "held out",
        "isotonic: ECE then",
        "held out",
    ]

    def told(row: dict[str, Any], *names: str) -> list[str]:
        return [UNDEFINED if row[name] is None else number(row[name]) for name in names]

    rows = [
        [
            label_of(row),
            f"{row['n']:,g}",
            *told(row, "score", "right", "ece"),
            interval(row["lower"], row["upper"]),
            *told(row, "temperature", "ece_temperature", "held_out_ece_temperature"),
            *told(row, "ece_isotonic", "held_out_ece_isotonic"),
        ]
        for row in found.frame.iter_rows(named=True)
    ]
    return header, rows


CALIBRATION = Layout(
    "calibration", calibration_heading, of_cells(_calibration_table), lambda found: found.frame
)


# Display of ``diagnose``: text, Markdown, HTML, or rows for programs.


def diagnosis_heading(found: Diagnosis) -> str:
    """Return a one-sentence summary."""
    if not len(found):
        return "no findings"
    left = len(found) - found.shown.height
    shown = f", the first {found.shown.height:,}" if left else ""
    return f"{count_of(len(found), 'finding')}{shown}, by the share of errors each explains"


DIAGNOSIS = Layout(
    "findings", diagnosis_heading, of_frame(lambda found: found.shown), lambda found: found.shown
)


# Display of ``find_errors``: text, Markdown, HTML, or rows for programs.


def errors_heading(found: FoundErrors) -> str:
    if not len(found):
        return f"no errors in {count_of(found.n, 'datum')}"
    first = found.datums.row(0, named=True)
    made_with = msgspec.json.decode(first["parameters"]) if first["parameters"] else {}
    at = ", ".join(
        f"{name.replace('_', ' ')} {number(value) if isinstance(value, float) else value}"
        for name, value in made_with.items()
    )
    by = first["metric"] + (f" ({at})" if at else "")
    few = f"{len(found):,} " if len(found) > 1 else ""
    return f"the {few}worst of {count_of(found.n, 'datum')}, by {by}"


def listed_errors(found: FoundErrors, *, rows: bool) -> pl.DataFrame:
    """Return the display frame: rows with their boxes in one column, or datums with their
    number.
    """
    if rows and found.rows is not None:
        boxed = found.rows.with_columns(box_column("")).drop(CORNER_NAMES)
        theirs = [_THEIRS + name for name in CORNER_NAMES]
        boxed = boxed.with_columns(box_column(_THEIRS)).drop(theirs)
        same = [name for name in ("label_key", "iou_threshold") if boxed[name].n_unique() <= 1]
        return named(boxed.drop(same), _LABELS, found.names)
    if not len(found):
        return found.datums.select("datum_id", "value", "why")
    name = found.datums["metric"][0]
    return found.datums.select("datum_id", pl.col("value").alias(name), "why")


_THEIRS = "annotation_"
_LABELS = ("label_value", f"{_THEIRS}label")


def named(frame: pl.DataFrame, columns: Sequence[str], names: Mapping[str, str]) -> pl.DataFrame:
    """Append class names to labels, if they have others."""
    shown = {value: f"{value} {name}" for value, name in names.items()}
    return frame.with_columns(
        pl.col(name).cast(pl.String).replace(shown)
        for name in columns
        if names and name in frame.columns
    )


def box_column(before: str) -> pl.Expr:
    """Return the corners of a box as one string; null if there is none."""
    corners = [pl.col(before + name).round(1) for name in CORNER_NAMES]
    return pl.format("{} {} {} {}", *corners).alias(f"{before}box")


def _frame(found: FoundErrors, *, rows: bool) -> pl.DataFrame:
    return found.rows if rows and found.rows is not None else found.datums


def _errors_layout(*, rows: bool) -> Layout:
    body = of_frame(partial(listed_errors, rows=rows))
    return Layout("errors" if rows else "datums", errors_heading, body, partial(_frame, rows=rows))


ERRORS = _errors_layout(rows=False)
LAYOUT_OF_ROWS = _errors_layout(rows=True)


# Label errors as text, Markdown, HTML, or rows for programs.

_QUIET = ("normalized_margin", "confidence_weighted_entropy", "found_by")


def label_errors_heading(found: FoundLabelErrors) -> str:
    """Return a one-sentence summary."""
    if not found.n:
        return "no label is suspicious"
    shown = f", the {len(found):,} most suspicious" if len(found) < found.n else ""
    return f"{count_of(found.n, 'label')} may be wrong{shown}"


def listed_label_errors(found: FoundLabelErrors) -> pl.DataFrame:
    """Return the display frame: boxes in one column, without columns for programs."""
    theirs = [f"annotation_{name}" for name in CORNER_NAMES]
    boxed = found.rows.with_columns(box_column(""), box_column("annotation_"))
    boxed = boxed.drop(*CORNER_NAMES, *theirs, *_QUIET)
    boxed = named(boxed, ("label_value", "suggested"), found.names)
    return boxed.drop("label_key") if boxed["label_key"].n_unique() <= 1 else boxed


LABEL_ERRORS = Layout(
    "label_errors", label_errors_heading, of_frame(listed_label_errors), lambda found: found.rows
)


# Display of ``find_limits``: text, Markdown, HTML, or rows for programs.


def bounds_heading(found: FoundLimits) -> str:
    """Return a one-sentence summary."""
    moved, others = found.moved, found.unmoved
    said = f"{count_of(moved, 'number')} could move, the widest first"
    if not moved:
        said = "no number could move" if not others else "no number moved"
    elif others:
        said += f"; {others:,} more did not move"
    return said


def as_columns(found: FoundLimits) -> pl.DataFrame:
    """Return rows for display: ``parameters`` only if they distinguish rows."""
    rows = found.shown
    others = [name for name in rows.columns if name not in ("parameters", "lowest", "highest")]
    return rows if rows.select(others).is_duplicated().any() else rows.drop("parameters")


BOUNDS = Layout(
    "limits",
    bounds_heading,
    of_frame(as_columns),
    lambda found: found.frame if found.every else found.moving,
)


# The worst slices as text, Markdown, HTML, or rows for programs.


def slices_heading(found: FoundSlices) -> str:
    if not len(found):
        return (
            f"no slice of {count_of(found.n, 'datum')} is worse than the rest by each of its"
            " conditions"
        )
    return (
        f"{count_of(len(found), 'slice')} of {count_of(found.n, 'datum')}, by {found.loss} of"
        f" single datums; {found.measured:,} were measured, and no other scores higher"
    )


def _slices_table(found: FoundSlices) -> tuple[list[str], list[list[str]]]:
    header = [
        "slice",
        "datums",
        found.metric,
        f"{100 * found.level:g} % interval",
        "elsewhere",
        "p adjusted",
    ]
    rows = [
        [
            plain(row["slice"]),
            f"{row['size']:,}",
            number(row["value"]),
            interval(row["lower"], row["upper"]),
            number(row["elsewhere"]),
            probability(row["p_adjusted"]),
        ]
        for row in found.frame.iter_rows(named=True)
    ]
    return header, rows


SLICES = Layout("slices", slices_heading, of_cells(_slices_table), lambda found: found.frame)


# Score thresholds as text, Markdown, HTML, or rows for programs.

_KEPT = {True: "yes", False: "no", None: UNDEFINED}


def thresholds_heading(found: FoundThresholds) -> str:
    at = hit_at(found.iou_threshold, by_distance=found.by_distance)
    by = f" by {found.metrics[0]}" if len(found.metrics) == 1 else ""
    return f"{count_of(len(found), 'threshold')}{by} of {count_of(found.n, 'datum')}{at}"


def _thresholds_table(found: FoundThresholds) -> tuple[list[str], list[list[str]]]:
    f = f"F{in_name(found.beta)}"
    header = [
        "label",
        "threshold",
        f"{100 * found.level:g} % interval",
        "tp",
        "fp",
        "fn",
        "precision",
        "recall",
        f,
        "held out: precision",
        "recall",
        f,
    ]
    several = len(found.metrics) > 1
    held = found.frame["kept"].count() > 0
    header = [*(["rule"] if several else []), *header, *(["kept"] if held else [])]
    names = ("tp", "fp", "fn")
    rates = ("precision", "recall", "f", "held_out_precision", "held_out_recall", "held_out_f")
    rows = [
        [
            *([row["metric"]] if several else []),
            label_of(row),
            UNDEFINED if row["threshold"] is None else number(row["threshold"]),
            interval(row["lower"], row["upper"]),
            *(UNDEFINED if row[name] is None else f"{row[name]:,g}" for name in names),
            *(UNDEFINED if row[name] is None else number(row[name]) for name in rates),
            *([_KEPT[row["kept"]]] if held else []),
        ]
        for row in found.frame.iter_rows(named=True)
    ]
    return header, rows


THRESHOLDS = Layout(
    "thresholds", thresholds_heading, of_cells(_thresholds_table), lambda found: found.frame
)
