"""Judged metrics: a table of verdicts is encoded and measured here, without a judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from ...ingest.frames import Frames
from ...tally.stats import StatsView
from ..contents import Content, Contents, by_datum, rows_of
from ..encoding import Workers
from ..task import Common, Sample, Task, ToldByRows
from ..values import IN_PARTS, cells_per_group, common, losses, merge, own_frames, view
from .dialects import Settings
from .findings import Findings, together
from .fitting import AHEAD, fit, fit_written, may_fit, needs_all_rows
from .tallies import tally, tally_part, told

# The plan of a judged run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step.

    Args:
        needs: names of measures.
    """
    strict = "; values below the best count as the worst" if settings.strict_mode else ""
    return [
        f"words     made alike by {settings.rules.fold}; judgments of one item vote",
        f"tally     {len(needs)} measures a datum: {', '.join(sorted(needs))}{strict}",
        "mean      over datums with a value; the rest is counted by its kind",
    ]


# A tiny table of verdicts; judged metrics have no compiled kernels.


def samples() -> Iterator[Sample]:
    """Verdicts of one metric."""
    yield (
        pl.DataFrame({"datum_id": [1, 1], "metric": ["Bias"] * 2, "verdict": ["yes", "no"]}),
        None,
        {},
    )


# Contents of single judged datums: their verdicts.


def contents(
    frames: Frames, settings: Any, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`."""
    assert frames.table is not None
    verdicts = by_datum(frames.table)
    return [rows_of(verdicts[one].drop("datum_id")) if one in verdicts else None for one in ids]


TASK = Task(
    name="judged",
    settings=Settings,
    fit=fit,
    tally=tally,
    merge=merge,
    view=view,
    cells_per_group=cells_per_group,
    own_frames=own_frames,
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tables=contents),
    drawn=StatsView.drawn,
    needs_all_rows=needs_all_rows,
    told_by_rows=ToldByRows(AHEAD, may_fit, fit_written, tally_part, Findings, together, told),
    in_parts=IN_PARTS,
    common=Common(common),
)
