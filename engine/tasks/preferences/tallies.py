"""Preference tallies: points of every pair of models by prompt, and their view."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...ingest.problems import count_of, listing
from ...schemas.arrays import Array
from ...schemas.contract import ROW, TABLE
from ...schemas.errors import InputError
from ...tally.counts import Crossings, Preferences
from ...tally.registry import stored_as
from ...tally.stats import Stats
from ..counted import CountTallies, counts_in_parts, merge_by
from ..encoding import Workers, encode_labels, table_datums, taken
from .dialects import Settings

A, B, TIE = "a", "b", "tie"
WORDS = {
    **dict.fromkeys((A, "model_a"), A),
    **dict.fromkeys((B, "model_b"), B),
    **dict.fromkeys((TIE, "both_bad", "bothbad", "tie (bothbad)"), TIE),
}
"""Value of the column ``winner``, in lower case -> its meaning; otherwise it is a model."""
STATUS = ("scored", "not_compared")
_SHOWN = 3


@stored_as("preferences.run/1")
class Tallies(CountTallies, frozen=True, kw_only=True):
    """Tally of a run of preferences.

    Attributes:
        preferences: :class:`~evalengine.tally.counts.Preferences`, or on disk
            :class:`~evalengine.tally.tables.InFiles`.
    """

    preferences: Any


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode and count.

    Raises:
        InputError: a model compared with itself, an unknown winner, or a model named like a word.
    """
    begun = time.perf_counter()
    table = frames.sides[TABLE]
    if ROW in table.columns:
        taken(table, ROW)
    first, second = taken(table, "model_a"), taken(table, "model_b")
    won = _winners(first, second, taken(table, "winner"))
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


def _winners(first: pl.Series, second: pl.Series, winner: pl.Series) -> np.ndarray[Any, Any]:
    """Return ``a``, ``b`` or ``tie`` of each row."""
    models = pl.concat([first, second]).unique().sort()
    words = models.filter(models.str.to_lowercase().is_in(list(WORDS)))
    if len(words):
        raise InputError(
            f"columns 'model_a' and 'model_b': {listing(words.to_list())} would be mistaken for the"
            f" words {', '.join(WORDS)} of column 'winner'. Rename these models.",
            code="model_named_like_a_word",
            value=words[0],
        )
    rows = pl.DataFrame([first.alias("a"), second.alias("b"), winner.alias("winner")])
    same = rows.with_row_index("row").filter(pl.col("a") == pl.col("b"))
    if same.height:
        raise InputError(
            f"columns 'model_a' and 'model_b': {count_of(same.height, 'row')} compare a model with"
            f" itself, first rows (from 0) {listing(same['row'].head(_SHOWN).to_list())}. Remove"
            " them.",
            code="same_model",
            count=same.height,
        )
    word = pl.col("winner").str.strip_chars().str.to_lowercase()
    said = rows.select(
        pl.when(pl.col("winner") == pl.col("a"))
        .then(pl.lit(A))
        .when(pl.col("winner") == pl.col("b"))
        .then(pl.lit(B))
        .otherwise(word.replace_strict(WORDS, default=None, return_dtype=pl.String))
    ).to_series()
    if unknown := said.null_count():
        wrong = winner.filter(said.is_null()).unique(maintain_order=True)
        raise InputError(
            f"column 'winner': {count_of(unknown, 'row')} with"
            f" {listing(wrong.head(_SHOWN).to_list(), len(wrong))}, which is neither of the row's"
            f" models, nor a, b, tie or both_bad.",
            code="unknown_winner",
            column="winner",
            count=unknown,
        )
    return said.to_numpy()


merge = merge_by("preferences", lambda tallies, settings: _stats(tallies.present))
"""See :class:`..task.Merge`."""
IN_PARTS = counts_in_parts("preferences", merge)
