"""Units and scored labels of one bucket as blocks and pieces, to be brought together in files."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from .. import planner
from ..tally import stored
from ..tally.filed_view import DATUMS
from ..tally.score_rows import ScoreRows, rows_between
from ..tally.unit_blocks import cut
from . import slabs
from .datum_blocks import size_of

SLICES = "slices"
"""Name of the thing that holds the distinct values of a bucket's slice columns."""

KINDS = ("scores", "pooled")
"""Scored labels by label, and by label key; names of their pieces begin so."""

_BLOCKS = 4  # blocks of a bucket in a range, so that few units beside it are read with one


def apart(
    tallies: Any, plan: planner.Plan, needs: frozenset[str], n: int, room: int, most: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A bucket's tally as blocks of units and pieces of scored labels.

    Args:
        tallies: of the bucket.
        plan: of the run.
        needs: what was tallied.
        n: number of buckets.
        room: bytes of a range of units of all buckets.
        most: rows of a piece of scored labels.

    Returns:
        things by name, and what is told of them.

    Raises:
        RuntimeError: rows of the bucket do not know their places in the input, or stand in another
            order.
    """
    part = plan.module.filed_part(tallies, plan.settings, needs, plan.metrics)
    things: dict[str, Any] = {stored.WHOLE: part.bare, SLICES: part.slices}
    shown = plan.module.shows_datums(plan.metrics, plan.settings)
    if shown:
        things[DATUMS] = plan.module.shown_part(tallies)
    key = part.block.key
    if not key.is_sorted():
        raise RuntimeError("units of a bucket do not stand in the order of the input")
    blocks: list[list[Any]] = []
    each = max(1, size_of(part.block) // max(1, len(key)))
    step = max(1, room // (_BLOCKS * n * each))
    for first in range(0, len(key), step):
        end = min(first + step, len(key))
        things[f"units-{len(blocks)}"] = cut(part.block, first, end)
        blocks.append([key[first], end - first, (end - first) * each])
    pieces: dict[str, list[slabs.Piece]] = {}
    for kind, rows in zip(KINDS, (part.scores, part.pooled), strict=True):
        if rows is None:
            continue
        pieces[kind] = []
        for begin in range(0, len(rows), most):
            end = min(begin + most, len(rows))
            name = f"{kind}-{begin}"
            things[name] = rows_between(rows, begin, end)
            pieces[kind].append(slabs.Piece(name, end - begin, key_at(rows, begin)))
    return things, {
        "blocks": blocks,
        "pieces": msgspec.to_builtins(pieces),
        "counts": part.counts,
        "alone": part.alone,
        "shown": shown,
    }


def key_at(rows: ScoreRows, row: int) -> slabs.Key:
    """The key of a row."""
    label = int(np.searchsorted(rows.start, row, "right")) - 1
    return slabs.Key(label, float(rows.score[row]), 0.0, int(rows.row[row]))


def place(rows: ScoreRows, key: slabs.Key | None) -> int:
    """How many rows stand before a key; all where it is None."""
    if key is None:
        return len(rows)
    if not key.of_row:
        return 0
    begin, end = int(rows.start[key.label]), int(rows.start[key.label + 1])
    own = rows.score[begin:end]
    value = own.dtype.type(key.ordered)  # of a row of the same precision
    first, last = (int(np.searchsorted(own, value, side)) for side in ("left", "right"))
    tied = rows.row[begin + first : begin + last]
    return begin + first + int(np.searchsorted(tied, key.datum, "left"))
