"""Preferences as a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from ...dialects import Dialect
from ...metrics import Metric
from ...tally.counts import PreferenceView
from ..contents import Contents, contents_of_table
from ..counted import frames_of, view_of
from ..task import Cuts, Sample, Task
from .dialects import Settings
from .tallies import IN_PARTS, Tallies, merge, tally


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> str:
    """See :class:`..task.JudgeDatums`."""
    return "a single comparison has no error"


def samples() -> Iterator[Sample]:
    """Three models, with a tie."""
    table = {
        "datum_id": [1, 1, 2, 2],
        "model_a": ["x", "y", "z", "x"],
        "model_b": ["y", "z", "x", "y"],
        "winner": ["a", "b", "x", "tie"],
    }
    yield pl.DataFrame(table), None, {}


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    return [
        "tally     points by prompt and pair of models: 2 for a win, 1 each for a tie",
        "strength  maximum likelihood, if every model beat every other one, directly or not",
        "rank      1 plus the models that are significantly stronger",
    ]


TASK = Task(
    name="preferences",
    settings=Settings,
    tally=tally,
    merge=merge,
    view=view_of(PreferenceView, "preferences"),
    cells_per_group=lambda n_labels, settings, needs: n_labels**2,
    own_frames=frames_of(),
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tables=contents_of_table),
    no_limits="every comparison has one winner, so no choice is open",
    drawn=PreferenceView.drawn,
    warm=("parts",),
    in_parts=IN_PARTS,
)
