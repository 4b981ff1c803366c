"""Calibration as text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from ..ingest.problems import count_of
from .found_rows import html_of, interval, label_of, markdown_of, show_found, text_of
from .summary import UNDEFINED, number

if TYPE_CHECKING:
    from ..analysis.calibration_table import FoundCalibration


def heading(found: FoundCalibration) -> str:
    """What was looked at, in a sentence."""
    at = "" if found.iou_threshold is None else f" at IoU {found.iou_threshold:g}"
    return f"calibration of {count_of(found.n, 'datum')}{at}, in {count_of(found.n_bins, 'bin')}"


def _table(found: FoundCalibration) -> tuple[list[str], list[list[str]]]:
    header = ["label", "rows", "score", "right", "ECE", f"{100 * found.level:g} % interval",
              "temperature", "ECE then", "held out", "isotonic: ECE then", "held out"]  # fmt: skip

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


def as_text(found: FoundCalibration, notes: Sequence[str] | None = None) -> str:
    """For the prompt and the shell.

    Args:
        found: what to show.
        notes: as the reader's surface writes them; as Python does unless given.
    """
    return text_of(heading(found), *_table(found), found.notes if notes is None else notes)


def as_markdown(found: FoundCalibration) -> str:
    """For pull requests and pages."""
    return markdown_of(heading(found), *_table(found), found.notes)


def as_html(found: FoundCalibration) -> str:
    """For notebooks."""
    return html_of(heading(found), *_table(found), found.notes)


def show(found: FoundCalibration, form: str, out: IO[str], notes: Sequence[str]) -> None:
    """Write calibration to a text stream, in one of :data:`~.found_rows.FORMATS`."""
    show_found(found, form, out, partial(as_text, notes=notes), as_markdown, name="calibration")
