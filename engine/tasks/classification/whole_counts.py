"""Counts of the whole of one binary table, of which no row is needed any more."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.roc import wins
from ...tally.counted_view import Counted, UnitSums
from ...tally.datums import Labels
from ...tally.score_counts import count_scores, no_scores
from ...tally.score_ranges import sums_by_ranges
from ...tally.sorted_scores import HIT, N_OUTCOMES, OTHER, Sorted, sorted_by_counts
from ...tally.units import Scored
from ..workers import Workers

Array = np.ndarray[Any, Any]


def count_whole(scored: Scored, labels: Labels, thresholds: Array, threads: Workers) -> Counted:
    """What is counted of a table of two labels, every row of which has a truth and a score.

    Args:
        scored: its scores, all of one label; those that were counted need no rows.
        labels: the two labels.
        thresholds: float64 [t], ascending, at which scores are counted.
        threads: where scores are sorted.
    """
    sums = no_scores(len(labels), thresholds)
    only = scored.only
    found = None if scored.few is None else sorted_by_counts(scored)
    if found is not None:
        sums, _ = count_scores(found, np.array([only]), len(labels), thresholds)
        sums.twice[only] = _twice(found)
    else:
        here = sums_by_ranges(scored.parts, scored.outcome, thresholds, threads.over)
        sums.rows[: N_OUTCOMES - 1, only] = here.rows
        sums.reached[: N_OUTCOMES - 1, only] = here.reached
        sums.twice[only] = here.twice
    positives = np.full((1, len(labels)), float(sums.rows[OTHER, only]))
    positives[0, only] = sums.rows[HIT, only]
    every = positives.sum(axis=1, keepdims=True)
    none = np.zeros_like(positives)
    units = UnitSums(
        np.concatenate([none, none, none, positives]),
        positives,
        every,
        every[:, 0],
        int(every.sum()),
    )
    return Counted(units, sums, thresholds)


def _twice(found: Sorted) -> int:
    """Twice the pairs that positives win, of scores that weigh their rows."""
    assert found.weight is not None
    (weight,) = wins(found.bounds(HIT), found.bounds(OTHER), found.score, found.weight)
    return int(2 * weight)
