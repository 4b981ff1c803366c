"""What is counted of the scores of one label in one group, range by range of scores.

Whole numbers add up over ranges: a positive wins against all others of lower ranges, and within its
own range pairs are counted in an order of that range alone. No order of all rows is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..kernels.reached import first_reaching
from ..kernels.roc import wins
from ..kernels.score_ranges import count_ranges, gather_range
from ..kernels.scratch_arrays import scratch
from .sorted_scores import HIT, OTHER, Sorted, sort_segments
from .view import Over

Array = np.ndarray[Any, Any]

_RANGE = 1 << 18  # rows of a range, where there are few
_RANGES = 4  # about: each looks at all rows
_SAMPLE = 8192  # scores that edges of ranges are taken from


class RangeSums(NamedTuple):
    """Counts of the scores of one label.

    Attributes:
        rows: int64 [2], by outcome.
        twice: twice the pairs that positives win, ties counting one.
        reached: int64 [2, t], rows of each outcome at or above each threshold.
    """

    rows: Array
    twice: int
    reached: Array


def sums_by_ranges(
    parts: Sequence[Array], outcome: Array, thresholds: Array, over: Over
) -> RangeSums:
    """Count scores.

    Args:
        parts: float64 arrays of n finite scores together, in row order.
        outcome: uint8 [n], ``HIT`` or ``OTHER``.
        thresholds: float64 [t], ascending.
        over: calls a function on ranges of segments, perhaps side by side.
    """
    edges = cut_scores(parts, max(_RANGE, -(-outcome.size // _RANGES)))
    count = count_ranges(parts, outcome, edges)
    reached = np.zeros((2, thresholds.size), np.int64)
    room = scratch(int(count.sum(axis=1).max()) + 2, np.float64)
    below, twice = 0, 0
    bounds = [-np.inf, *edges.tolist(), np.inf]
    for at, (low, high) in enumerate(pairwise(bounds)):
        others, hits = int(count[at, OTHER]), int(count[at, HIT])
        start, score = gather_range(parts, outcome, (low, high), (others, hits), room)
        sort_segments(Sorted(start, score, None), over)
        sides = (start[2:3], start[3:4]), (start[0:1], start[1:2])
        twice += int(wins(*sides, score)[0]) + 2 * hits * below
        below += others
        for side, (begin, end) in zip((HIT, OTHER), sides, strict=True):
            reached[side] += (end[:, None] - first_reaching(begin, end, score, thresholds))[0]
    return RangeSums(count.sum(axis=0), twice, reached)


def cut_scores(parts: Sequence[Array], rows: int) -> Array:
    """Where to cut scores into ranges of about as many rows; equal scores stay together.

    Args:
        parts: float64 arrays of n scores together.
        rows: of a range, at least 1.

    Returns:
        float64 [ranges - 1], ascending: the first score of each range but the lowest.
    """
    n = sum(part.size for part in parts)
    ranges = -(-n // rows)
    if ranges < 2:
        return np.zeros(0)
    step = max(1, n // _SAMPLE)
    some = np.sort(np.concatenate([part[::step] for part in parts]))
    return np.unique(some[np.arange(1, ranges) * some.size // ranges])
