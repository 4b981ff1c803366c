"""Preferences as a task."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from ...dialects import Dialect
from ...ingest.frames import Frames
from ...ingest.shapes import winner
from ...metrics import Metric
from ...schemas.contract import TABLE
from ...schemas.tables import TIE, A, B
from ...tallies.counts import Crossings, Preferences, PreferenceView
from ...tallies.registry import stored_as
from ...tallies.stats import Stats
from ..contents import Contents, contents_of_table
from ..counted import CountTallies, counts_in_parts, frames_of, merge_by, view_of
from ..encoding import Workers, encode_labels, pop_column, row_numbers, table_datums
from ..task import Cuts, Sample, Task
from .dialects import Settings

# Tally: points of every pair of models by prompt.

STATUS = ("scored", "not_compared")


@stored_as("preferences.run/1")
class Tallies(CountTallies, frozen=True, kw_only=True):
    """Tally of a run of preferences.

    Attributes:
        preferences: :class:`~evalengine.tallies.counts.Preferences`, or on disk
            :class:`~evalengine.tallies.tables.InFiles`.
    """

    preferences: Any


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode and count."""
    begun = time.perf_counter()
    table = frames.sides[TABLE]
    numbers = row_numbers(table)
    won = table.select(winner()).to_series().to_numpy()
    first, second, _ = (pop_column(table, name) for name in ("model_a", "model_b", "winner"))
    datums, codes = table_datums(frames, table, len(won), numbers)
    datum = np.arange(len(won), dtype=np.int64) if codes is None else codes.astype(np.int64)
    labels, (one, other) = encode_labels([first, second], [None, None], frames)
    n = max(len(labels), 1)
    points = [np.select([won == word, won == TIE], [2, 1], 0) for word in (A, B)]
    place = np.concatenate([(datum * n + one) * n + other, (datum * n + other) * n + one])
    pairs, at = np.unique(place, return_inverse=True)
    count = np.zeros(pairs.size, np.int64)
    np.add.at(count, at, np.concatenate(points).astype(np.int64))
    pairs, count = pairs[count > 0], count[count > 0]
    bouts = Crossings(
        (pairs // (n * n)).astype(np.int32),
        (pairs // n % n).astype(np.int32),
        (pairs % n).astype(np.int32),
        count,
    )
    present = np.ones(len(datums), np.int8)
    present[datum] = 0
    seconds = {"match": time.perf_counter() - begun}
    return Tallies(
        datums=datums,
        labels=labels,
        present=present,
        stats=Stats(present == 0, {}, (STATUS, present)),
        preferences=Preferences(bouts),
        seconds=seconds,
        beside=(),
    )


merge = merge_by(
    "preferences",
    lambda tallies, settings: Stats(tallies.present == 0, {}, (STATUS, tallies.present)),
)
"""See :class:`..task.Merge`."""
IN_PARTS = counts_in_parts("preferences", merge)


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
    truths=False,
    losses=losses,
    contents=Contents(of_tables=contents_of_table),
    no_limits="every comparison has one winner, so no choice is open",
    drawn=PreferenceView.drawn,
    warm=("parts",),
    in_parts=IN_PARTS,
)
