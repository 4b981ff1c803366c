"""Scored labels by label and score alone: the scores of hits and of others, in runs.

What ROC areas and counts at thresholds need of scored labels are whole numbers, which add up. Rows
of each outcome, all of them and those at thresholds, are counted part by part. Pairs of a hit and
another row take the rows of all parts, slab by slab, a slab being what stands between two (label,
score) pairs in all parts. Which datum a row is of is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..kernels.reached import first_reaching, weights_reaching
from ..kernels.roc import wins
from .sorted_scores import HIT, N_OUTCOMES, OTHER, Sorted

Array = np.ndarray[Any, Any]

_OFTEN = 8
"""Rows of one score in one part from which they are one row with a count: ties of all parts then
take no more room in a slab than this for each part. Below it, copies are put in order faster."""


class Kind(NamedTuple):
    """Which runs go together.

    Attributes:
        outcome: ``HIT`` or ``OTHER``.
        often: whether they hold scores of many rows, each once with a count.
    """

    outcome: int
    often: bool


KINDS = tuple(Kind(outcome, often) for outcome in (HIT, OTHER) for often in (False, True))


class Run(msgspec.Struct, frozen=True):
    """Scores of one outcome in one part, ascending by (label, score).

    Attributes:
        start: int64 [l + 1], CSR offsets of the labels.
        score: float32 or float64 [m], whichever holds all of a part's scores.
        count: int32 [m], rows of each; None for 1 each.
    """

    start: Array
    score: Array
    count: Array | None


class ScoreSums(msgspec.Struct, frozen=True):
    """What is counted of scored labels.

    Attributes:
        rows: int64 [3, l], rows of each outcome.
        twice: int64 [l], twice the (hit, other) pairs that the hit wins, ties counting one.
        reached: int64 [3, l, t], rows of each outcome at or above each threshold.
    """

    rows: Array
    twice: Array
    reached: Array


class SlabSums(msgspec.Struct, frozen=True):
    """Pairs of the rows of one slab, and how many rows there are for pairs with other slabs.

    Attributes:
        hits: int64 [l], rows that hit.
        others: int64 [l], rows that do not.
        twice: int64 [l], twice the pairs within the slab that the hit wins, ties counting one.
    """

    hits: Array
    others: Array
    twice: Array


def count_scores(
    found: Sorted, slots: Array, n_labels: int, thresholds: Array
) -> tuple[ScoreSums, dict[Kind, Run]]:
    """What is counted of scores that stand in order, but for pairs; and their runs.

    Args:
        found: ascending by (slot, outcome), of one group; weights, if any, say how many rows have
            a score.
        slots: int64 [slots], label of each.
        n_labels: number of labels.
        thresholds: float64 [t], ascending.
    """
    sums = no_scores(n_labels, thresholds)
    for outcome in range(N_OUTCOMES):
        begin, end = found.bounds(outcome)
        if found.weight is None:
            first = first_reaching(begin, end, found.score, thresholds)
            reached, every = end[:, None] - first, end - begin
        else:  # exact: whole numbers below 2^53
            reached, every = weights_reaching(begin, end, found.score, found.weight, thresholds)
        sums.rows[outcome, slots] = every
        sums.reached[outcome, slots] = reached
    score = _packed(found.score)
    runs: dict[Kind, Run] = {}
    for outcome in (HIT, OTHER):
        begin, end = found.bounds(outcome)
        sizes = np.zeros(n_labels, np.int64)
        sizes[slots] = end - begin
        pieces = [slice(a, b) for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
        own = np.concatenate([score[piece] for piece in pieces] or [score[:0]])
        count = None
        if found.weight is not None:
            count = np.concatenate([found.weight[piece] for piece in pieces]).astype(np.int32)
        start = np.zeros(n_labels + 1, np.int64)
        np.cumsum(sizes, out=start[1:])
        runs[Kind(outcome, False)], runs[Kind(outcome, True)] = _apart(Run(start, own, count))
    return sums, runs


def no_scores(n_labels: int, thresholds: Array) -> ScoreSums:
    """The sums of no row at all."""
    return ScoreSums(
        np.zeros((N_OUTCOMES, n_labels), np.int64),
        np.zeros(n_labels, np.int64),
        np.zeros((N_OUTCOMES, n_labels, thresholds.size), np.int64),
    )


def _packed(score: Array) -> Array:
    """Scores in single precision where that is all they have."""
    with np.errstate(over="ignore"):
        single = score.astype(np.float32)
    return single if np.array_equal(single, score) else score


def _apart(run: Run) -> tuple[Run, Run]:
    """Scores of few rows, as often as they stand, and scores of many rows with their counts.

    Args:
        run: slots ascend with labels, so that its rows stand in order already.
    """
    score, start = run.score, run.start
    none = Run(np.zeros_like(start), score[:0], np.zeros(0, np.int32))
    if run.count is not None:
        return msgspec.structs.replace(none, count=None), run
    same = score[_OFTEN - 1 :] == score[: max(0, score.size - _OFTEN + 1)]
    if not same.any():
        return run, none
    new = np.ones(score.size, bool)
    new[1:] = score[1:] != score[:-1]
    new[start[:-1][np.diff(start) > 0]] = True
    first = np.flatnonzero(new)
    rows = np.diff(np.r_[first, score.size])
    many = rows >= _OFTEN
    few = np.repeat(~many, rows)
    before = np.r_[0, np.cumsum(few)]
    often = Run(
        np.searchsorted(first[many], start), score[first[many]], rows[many].astype(np.int32)
    )
    return Run(before[start], score[few], None), often


def rows_between(run: Run, first: int, last: int) -> Run:
    """Some consecutive rows, of whatever labels."""
    return Run(
        np.clip(run.start, first, last) - first,
        run.score[first:last],
        None if run.count is None else run.count[first:last],
    )


def sum_slab(runs: Mapping[Kind, Sequence[Run]], n_labels: int) -> SlabSums:
    """What is counted of the rows of one slab.

    Args:
        runs: those of all parts, rows between two (label, score) pairs: all that there are of each
            such pair.
        n_labels: number of labels.
    """
    each = [runs[Kind(outcome, False)] for outcome in (OTHER, HIT)]
    sizes = np.array([sum((np.diff(run.start) for run in own), np.zeros(n_labels, np.int64))
                      for own in each])  # fmt: skip
    # Of each label its others, then its hits.
    bounds = np.zeros(2 * n_labels + 1, np.int64)
    np.cumsum(sizes.T.reshape(-1), out=bounds[1:])
    score, at = np.empty(int(bounds[-1])), bounds[:-1].copy()
    for side, own in enumerate(each):
        for run in own:
            here = np.diff(run.start)
            for label in np.flatnonzero(here).tolist():
                to = int(at[2 * label + side])
                rows = run.score[run.start[label] : run.start[label + 1]]
                score[to : to + rows.size] = rows
                at[2 * label + side] = to + rows.size
    for first in np.flatnonzero(np.diff(bounds) > 1).tolist():
        score[bounds[first] : bounds[first + 1]].sort()
    other, hit = (bounds[:-1:2], bounds[1::2]), (bounds[1::2], bounds[2::2])
    twice = wins(hit, other, score)
    others, hits = sizes
    often = {o: _by_label(runs[Kind(o, True)], n_labels) for o in (HIT, OTHER)}
    for label in sorted({*often[HIT], *often[OTHER]}):
        h, c = often[HIT].get(label, _NOTHING)
        o, d = often[OTHER].get(label, _NOTHING)
        below, above = (score[a[label] : b[label]] for a, b in (other, hit))
        total = np.r_[0, np.cumsum(d)]
        for edge in ("left", "right"):
            twice[label] += (c * np.searchsorted(below, h, edge)).sum()
            twice[label] += (d * (above.size - np.searchsorted(above, o, edge))).sum()
            twice[label] += (c * total[np.searchsorted(o, h, edge)]).sum()
        hits[label] += c.sum()
        others[label] += d.sum()
    return SlabSums(hits, others, twice)


_NOTHING = (np.zeros(0), np.zeros(0, np.int64))


def _by_label(runs: Sequence[Run], n_labels: int) -> dict[int, tuple[Array, Array]]:
    """Scores of many rows, ascending, and their counts, of each label that has any."""
    rows = [run for run in runs if run.score.size]
    if not rows:
        return {}
    codes = np.arange(n_labels)
    label = np.concatenate([np.repeat(codes, np.diff(run.start)) for run in rows])
    score = np.concatenate([run.score for run in rows]).astype(np.float64)
    count = np.concatenate([run.count for run in rows if run.count is not None]).astype(np.int64)
    order = np.lexsort((score, label))
    label, score, count = label[order], score[order], count[order]
    start = np.searchsorted(label, np.arange(n_labels + 1))
    filled = np.flatnonzero(np.diff(start)).tolist()
    return {k: (score[start[k] : start[k + 1]], count[start[k] : start[k + 1]]) for k in filled}


def add_scores(parts: Sequence[ScoreSums], slabs: Sequence[SlabSums]) -> ScoreSums:
    """What is counted of all parts.

    Args:
        parts: the sums of each, without pairs; at least one.
        slabs: pairs of the rows of all parts, in the order of slabs: rising scores within a label.
    """
    rows = np.sum([part.rows for part in parts], axis=0)
    reached = np.sum([part.reached for part in parts], axis=0)
    twice = np.zeros_like(parts[0].twice)
    others = np.zeros_like(twice)  # of the slabs before
    for slab in slabs:
        twice += slab.twice + 2 * slab.hits * others
        others += slab.others
    return ScoreSums(rows, twice, reached)
