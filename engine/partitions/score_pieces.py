"""Counted scores of one bucket in pieces, by label and falling score.

A bucket tells the key at which each piece begins. Slabs of all buckets are cut between such keys
(:mod:`.slabs`): a label may have any number of rows, all of one score even, since equal ones of a
bucket are one row with a count.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from .. import planner
from ..executors import Threads
from ..tally import stored
from ..tally.score_counts import ScoreCounts, rows_between
from . import slabs

UNITS = "units"
"""Name of the thing that holds what is counted of a bucket's units."""


def apart(
    tallies: Any, plan: planner.Plan, threads: Threads, most: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A tally as things of its own: counts of units, and scores in pieces.

    Args:
        tallies: of one bucket.
        plan: of the run.
        threads: where scores are sorted.
        most: rows of a piece.

    Returns:
        things by name, and what is told of them: pieces, and how many rows they have.
    """
    whole, units, rows = plan.module.count(tallies, plan.settings, threads)
    things: dict[str, Any] = {stored.WHOLE: whole, UNITS: units}
    pieces = []
    for begin in range(0, 0 if rows is None else rows.score.size, most):
        end = min(begin + most, rows.score.size)
        piece = slabs.Piece(f"scores-{begin}", end - begin, key_at(rows, begin))
        things[piece.name] = rows_between(rows, begin, end)
        pieces.append(piece)
    told = {"pieces": msgspec.to_builtins(pieces), "scored": sum(one.rows for one in pieces)}
    return things, told


def key_at(rows: ScoreCounts, row: int) -> slabs.Key:
    """The key of a row."""
    label = int(np.searchsorted(rows.start, row, "right")) - 1
    return slabs.Key(label, -float(rows.score[row]), 0.0, 0)


def place(rows: ScoreCounts, key: slabs.Key | None) -> int:
    """How many rows stand before a key; all where it is None."""
    if key is None:
        return int(rows.score.size)
    if not key.of_row:
        return 0
    begin, end = int(rows.start[key.label]), int(rows.start[key.label + 1])
    return begin + int(np.searchsorted(-rows.score[begin:end], key.falling, "left"))
