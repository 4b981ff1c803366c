"""Calibration as text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ingest.problems import count_of
from .found_rows import Layout, hit_at, interval, label_of, of_cells
from .summary import UNDEFINED, number

if TYPE_CHECKING:
    from ..analysis.calibration_table import FoundCalibration


def heading(found: FoundCalibration) -> str:
    at = hit_at(found.iou_threshold, by_distance=found.by_distance)
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


LAYOUT = Layout("calibration", heading, of_cells(_table), lambda found: found.frame)
