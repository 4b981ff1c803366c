"""Preference tallies: points of every pair of models by prompt, and their view."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...ingest.frames import Frames
from ...ingest.shapes import winner
from ...schemas.arrays import Array
from ...schemas.contract import ROW, TABLE
from ...schemas.tables import TIE, A, B
from ...tally.counts import Crossings, Preferences
from ...tally.registry import stored_as
from ...tally.stats import Stats
from ..counted import CountTallies, counts_in_parts, merge_by
from ..encoding import Workers, encode_labels, table_datums, taken
from .dialects import Settings

STATUS = ("scored", "not_compared")


@stored_as("preferences.run/1")
class Tallies(CountTallies, frozen=True, kw_only=True):
    """Tally of a run of preferences.

    Attributes:
        preferences: :class:`~evalengine.tally.counts.Preferences`, or on disk
            :class:`~evalengine.tally.tables.InFiles`.
    """

    preferences: Any


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode and count."""
    begun = time.perf_counter()
    table = frames.sides[TABLE]
    if ROW in table.columns:
        taken(table, ROW)
    won = table.select(winner()).to_series().to_numpy()
    first, second, _ = (taken(table, name) for name in ("model_a", "model_b", "winner"))
    datums, codes = table_datums(frames, table, len(won))
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
        stats=_stats(present),
        preferences=Preferences(bouts),
        seconds=seconds,
        beside=(),
    )


def _stats(present: Array) -> Stats:
    return Stats(present == 0, {}, (STATUS, present))


merge = merge_by("preferences", lambda tallies, settings: _stats(tallies.present))
"""See :class:`..task.Merge`."""
IN_PARTS = counts_in_parts("preferences", merge)
