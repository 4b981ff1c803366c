"""Score thresholds as text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ingest.problems import count_of
from ..schemas.asked import in_name
from .found_rows import Layout, hit_at, interval, label_of, of_cells
from .summary import UNDEFINED, number

if TYPE_CHECKING:
    from ..analysis.threshold_table import FoundThresholds


_KEPT = {True: "yes", False: "no", None: UNDEFINED}


def heading(found: FoundThresholds) -> str:
    at = hit_at(found.iou_threshold, by_distance=found.by_distance)
    by = f" by {found.metrics[0]}" if len(found.metrics) == 1 else ""
    return f"{count_of(len(found), 'threshold')}{by} of {count_of(found.n, 'datum')}{at}"


def _table(found: FoundThresholds) -> tuple[list[str], list[list[str]]]:
    f = f"F{in_name(found.beta)}"
    header = ["label", "threshold", f"{100 * found.level:g} % interval", "tp", "fp", "fn",
              "precision", "recall", f, "held out: precision", "recall", f]  # fmt: skip
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


LAYOUT = Layout("thresholds", heading, of_cells(_table), lambda found: found.frame)
