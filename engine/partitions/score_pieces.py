"""Scores of one bucket in pieces, by label and rising score.

A bucket tells the key at which each piece begins. Slabs of all buckets are cut between such keys
(:mod:`.slabs`): a label may have any number of rows, all of one score even, since many equal ones
of a bucket are one row with a count.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from .. import planner
from ..executors import Threads
from ..tally import stored
from ..tally.score_counts import KINDS, Kind, Run, rows_between
from . import slabs

UNITS = "units"
"""Name of the thing that holds what is counted of a bucket's units."""

SCORES = "scores"
"""Name of the thing that holds what is counted of a bucket's scored labels."""


def apart(
    tallies: Any, plan: planner.Plan, threads: Threads, most: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A tally as things of its own: counts of units and scored labels, and scores in pieces.

    Args:
        tallies: of one bucket.
        plan: of the run.
        threads: where scores are sorted.
        most: rows of a piece.

    Returns:
        things by name, and what is told of them: the pieces of each kind of run.
    """
    assert plan.does.counting is not None
    whole, units, scores, runs = plan.does.counting.count(tallies, plan.settings, threads)
    things: dict[str, Any] = {stored.WHOLE: whole, UNITS: units}
    if scores is not None:
        things[SCORES] = scores
    pieces: list[list[slabs.Piece]] = [[] for _ in KINDS]
    for kind, run in runs.items():
        for begin in range(0, run.score.size, most):
            end = min(begin + most, run.score.size)
            name = f"{name_of(kind)}-{begin}"
            things[name] = rows_between(run, begin, end)
            piece = slabs.Piece(name, end - begin, key_at(run, begin))
            pieces[KINDS.index(kind)].append(piece)
    return things, {"pieces": msgspec.to_builtins(pieces), "scored": scores is not None}


def name_of(kind: Kind) -> str:
    """What the things of a kind are called."""
    return f"run-{kind.outcome}-{'often' if kind.often else 'few'}"


def key_at(run: Run, row: int) -> slabs.Key:
    """The key of a row."""
    label = int(np.searchsorted(run.start, row, "right")) - 1
    return slabs.Key(label, float(run.score[row]), 0.0, 0)


def place(run: Run, key: slabs.Key | None) -> int:
    """How many rows stand before a key; all where it is None."""
    if key is None:
        return int(run.score.size)
    if not key.of_row:
        return 0
    begin, end = int(run.start[key.label]), int(run.start[key.label + 1])
    # In the run's own precision, since a double is searched for in a copy of all rows as doubles.
    own = run.score[begin:end]
    with np.errstate(over="ignore"):
        value = own.dtype.type(key.ordered)
    side = "left" if float(value) >= key.ordered else "right"
    return begin + int(np.searchsorted(own, value, side))  # type: ignore[call-overload]
