"""The worst slices as text, Markdown, HTML, or rows for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ingest.problems import count_of
from .found_rows import Layout, interval, of_cells
from .summary import number, plain
from .verdicts import probability

if TYPE_CHECKING:
    from ..analysis.slice_table import FoundSlices


def heading(found: FoundSlices) -> str:
    if not len(found):
        return (
            f"no slice of {count_of(found.n, 'datum')} is worse than the rest by each of its"
            " conditions"
        )
    return (
        f"{count_of(len(found), 'slice')} of {count_of(found.n, 'datum')}, by {found.loss} of"
        f" single datums; {found.measured:,} were measured, and no other scores higher"
    )


def _table(found: FoundSlices) -> tuple[list[str], list[list[str]]]:
    header = ["slice", "datums", found.metric, f"{100 * found.level:g} % interval", "elsewhere",
              "p adjusted"]  # fmt: skip
    rows = [[plain(row["slice"]), f"{row['size']:,}", number(row["value"]),
             interval(row["lower"], row["upper"]), number(row["elsewhere"]),
             probability(row["p_adjusted"])]
            for row in found.frame.iter_rows(named=True)]  # fmt: skip
    return header, rows


LAYOUT = Layout("slices", heading, of_cells(_table), lambda found: found.frame)
