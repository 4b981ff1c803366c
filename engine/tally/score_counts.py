"""Scored labels by label and score alone: how many rows of each outcome have each score.

What ROC areas and counts at thresholds need of scored labels are whole numbers, which add up: rows
of many parts may be counted slab by slab, a slab being what stands between two (label, score) pairs
in all parts. Which datum a row is of is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..kernels.run_merging import merge_runs
from .sorted_scores import HIT, N_OUTCOMES, OTHER, Sorted

Array = np.ndarray[Any, Any]


class ScoreCounts(msgspec.Struct, frozen=True):
    """Distinct (label, score, outcome), by label and descending score.

    Attributes:
        start: int64 [l + 1], CSR offsets of the labels.
        score: float64 [m].
        outcome: uint8 [m], see :class:`~evalengine.tally.units.Scored`.
        count: int32 [m], rows of each.
    """

    start: Array
    score: Array
    outcome: Array
    count: Array


class SlabSums(msgspec.Struct, frozen=True):
    """What is counted of the rows of one slab.

    Attributes:
        rows: int64 [3, l], rows of each outcome.
        twice: int64 [l], twice the (hit, other) pairs within the slab that the hit wins, ties
            counting one.
        reached: int64 [3, l, t], rows of each outcome at or above each threshold.
    """

    rows: Array
    twice: Array
    reached: Array


def count_scores(found: Sorted, slots: Array, n_labels: int) -> ScoreCounts:
    """Scores that stand in order, counted.

    Args:
        found: ascending by (slot, outcome), of one group; weights, if any, say how many rows have
            a score.
        slots: int64 [slots], label of each.
        n_labels: number of labels.
    """
    score, bounds = found.score, found.start
    new = np.ones(score.size, bool)
    new[1:] = score[1:] != score[:-1]
    new[bounds[:-1][np.diff(bounds) > 0]] = True
    first = np.flatnonzero(new)
    if found.weight is None:
        count = np.diff(np.r_[first, score.size]).astype(np.int32)
    else:
        count = np.add.reduceat(found.weight, first).astype(np.int32) if first.size else first
    # Backwards, so that scores fall: the last row of a segment is its first one then.
    n = first.size
    ends = (n - np.searchsorted(first, bounds)).reshape(-1)
    begin, end = np.zeros((2, N_OUTCOMES, n_labels), np.int64)
    for outcome in range(N_OUTCOMES):
        begin[outcome, slots] = ends[outcome + 1 :: N_OUTCOMES]
        end[outcome, slots] = ends[outcome:-1:N_OUTCOMES]
    outcomes = np.tile(np.arange(N_OUTCOMES, dtype=np.uint8), slots.size)
    of_row = np.repeat(outcomes, -np.diff(ends))[::-1]
    falling = score[first][::-1]
    order = merge_runs(begin, end, falling, np.zeros(0), np.zeros(n, np.int32))
    start = np.zeros(n_labels + 1, np.int64)
    np.cumsum((end - begin).sum(axis=0), out=start[1:])
    return ScoreCounts(start, falling[order], of_row[order], count[::-1][order].astype(np.int32))


def no_scores(n_labels: int) -> ScoreCounts:
    """Rows of no label at all."""
    start = np.zeros(n_labels + 1, np.int64)
    return ScoreCounts(start, np.zeros(0), np.zeros(0, np.uint8), np.zeros(0, np.int32))


def rows_between(rows: ScoreCounts, first: int, last: int) -> ScoreCounts:
    """Some consecutive rows, of whatever labels."""
    return ScoreCounts(
        np.clip(rows.start, first, last) - first,
        rows.score[first:last],
        rows.outcome[first:last],
        rows.count[first:last],
    )


def merge_counts(parts: Sequence[ScoreCounts], n_labels: int) -> ScoreCounts:
    """The rows of all parts in one order; equal ones of several parts stay rows of their own."""
    begin, end = np.zeros((2, len(parts), n_labels), np.int64)
    before = 0
    for p, part in enumerate(parts):
        begin[p], end[p] = part.start[:-1] + before, part.start[1:] + before
        before += int(part.start[-1])
    none: list[Any] = [np.zeros(0)]
    score = np.concatenate([part.score for part in parts] or none)
    outcome = np.concatenate([part.outcome for part in parts] or none)
    count = np.concatenate([part.count for part in parts] or none)
    order = merge_runs(begin, end, score, np.zeros(0), np.zeros(before, np.int32))
    start = np.r_[0, np.cumsum((end - begin).sum(axis=0))]
    return ScoreCounts(start, score[order], outcome[order], count[order])


def sum_slab(rows: ScoreCounts, thresholds: Array) -> SlabSums:
    """What is counted of some rows.

    Args:
        rows: rows between two (label, score) pairs: all that there are of each such pair.
        thresholds: float64 [t], ascending.
    """
    n_labels = rows.start.size - 1
    here = np.diff(rows.start)
    label = np.repeat(np.arange(n_labels), here)
    counts = [np.where(rows.outcome == o, rows.count, 0).astype(np.int64)
              for o in range(N_OUTCOMES)]  # fmt: skip
    width = thresholds.size + 1
    reached = np.zeros((N_OUTCOMES, n_labels, thresholds.size), np.int64)
    totals = np.zeros((N_OUTCOMES, n_labels), np.int64)
    cell = label * width + np.searchsorted(thresholds, rows.score, "right")
    for outcome, count in enumerate(counts):
        # Exact: whole numbers below 2^53.
        by_cell = np.bincount(cell, count, minlength=n_labels * width).astype(np.int64)
        table = by_cell.reshape(n_labels, width)
        totals[outcome] = table.sum(axis=1)
        reached[outcome] = table[:, :0:-1].cumsum(axis=1)[:, ::-1]
    return SlabSums(totals, _twice(rows, label, counts[HIT], counts[OTHER]), reached)


def _twice(rows: ScoreCounts, label: Array, hit: Array, other: Array) -> Array:
    """Twice the pairs that hits win, int64 [l]."""
    n_labels = rows.start.size - 1
    if not rows.score.size:
        return np.zeros(n_labels, np.int64)
    new = np.ones(rows.score.size, bool)
    new[1:] = (rows.score[1:] != rows.score[:-1]) | (label[1:] != label[:-1])
    first = np.flatnonzero(new)
    hits, others = np.add.reduceat(hit, first), np.add.reduceat(other, first)
    start = np.searchsorted(first, rows.start)  # of each label among distinct scores
    total = np.r_[0, np.cumsum(hits)]
    above = total[:-1] - np.repeat(total[start[:-1]], np.diff(start))
    won = np.r_[0, np.cumsum(others * (2 * above + hits))]
    twice: Array = won[start[1:]] - won[start[:-1]]
    return twice


def sum_slabs(slabs: Sequence[SlabSums]) -> SlabSums:
    """What is counted of all slabs, which come in their order: falling scores within a label."""
    rows, twice, reached = slabs[0].rows.copy(), slabs[0].twice.copy(), slabs[0].reached.copy()
    for slab in slabs[1:]:
        twice += slab.twice + 2 * rows[HIT] * slab.rows[OTHER]
        rows += slab.rows
        reached += slab.reached
    return SlabSums(rows, twice, reached)
