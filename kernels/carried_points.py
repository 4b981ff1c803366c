"""Points of the curves over all distinct scores, of rows that come by falling score.

What :mod:`.score_points` finds of all rows together, with what has to be carried from piece to
piece, as one may end in the middle of equal scores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, kernel
from .sums import ExactSums, add_bits, nearest

Array = np.ndarray[Any, Any]


class PointsCarried(NamedTuple):
    """What better rows have left, by segment (group, label).

    Attributes:
        level: float64 [s], score of the rows last seen; NaN where there is none of any weight.
        rows: int64 [s, 2], negatives and positives so far.
        weight: the weight of each, cells of [s, 2] in C order; of no cells without weights.
    """

    level: Array
    rows: Array
    weight: ExactSums


def no_points(n: int, *, weighted: bool) -> PointsCarried:
    """What there is before the first row of n segments."""
    return PointsCarried(
        np.full(n, np.nan), np.zeros((n, 2), np.int64), ExactSums(2 * n if weighted else 0)
    )


@kernel
def _onward(
    start: Array,
    group: Array,
    outcome: Array,
    score: Array,
    bits: Array,
    first: int,
    level: Array,
    rows: Array,
    sums: Array,
    segment: Array,
    threshold: Array,
    tp: Array,
    fp: Array,
) -> int:
    """Write the points that are complete; returns how many there are."""
    n_labels = start.size - 1
    at = 0
    for label in range(n_labels):
        for i in range(start[label + 1] - 1, start[label] - 1, -1):
            g = group[i] if group.size else 0
            if g < 0 or outcome[i] > 1:
                continue
            if bits.size and bits[i] & 0x7FFFFFFFFFFFFFFF == 0:
                continue  # rows without weight make no points
            s = g * n_labels + label
            if score[i] != level[s]:
                if not np.isnan(level[s]):
                    segment[at] = s
                    threshold[at] = level[s]
                    if bits.size:
                        tp[at] = nearest(sums, 2 * s + 1, first)
                        fp[at] = nearest(sums, 2 * s, first)
                    else:
                        tp[at] = rows[s, 1]
                        fp[at] = rows[s, 0]
                    at += 1
                level[s] = score[i]
            rows[s, outcome[i]] += 1
            if bits.size:
                add_bits(sums, 2 * s + outcome[i], first, bits[i])
    return at


def points_onward(
    start: Array,
    group: Array | None,
    outcome: Array,
    score: Array,
    weight: Array | None,
    carried: PointsCarried,
) -> tuple[Array, Array, Array, Array]:
    """Take in rows that stand below all rows before.

    Args:
        start: int64 [l + 1], CSR offsets of the labels.
        group: int32 [n], group of each row, -1 for none; None for one group of all.
        outcome: uint8 [n], 1 for positives, 0 for negatives; others do not count.
        score: float64 [n], ascending within a label, equal scores in row order.
        weight: float64 [n], finite; None for 1 each, as :func:`no_points` was told.
        carried: of segments ``group * l + label``; written to.

    Returns:
        of every point that no later row adds to, thresholds falling within a segment: int64
        segment; threshold, true and false positives at or above it, float64 each.
    """
    n = outcome.size
    segment, columns = np.empty(n, np.int64), np.empty((3, n))
    sums = carried.weight
    bits = sums.reserve(np.zeros(0) if weight is None else weight)
    found = _onward(
        frozen(start, np.int64),
        frozen(np.zeros(0) if group is None else group, np.int32),
        frozen(outcome, np.uint8),
        frozen(score, np.float64),
        bits,
        sums.first,
        carried.level,
        carried.rows,
        sums.chunks,
        segment,
        *columns,
    )
    sums.carry()
    threshold, tp, fp = columns[:, :found]
    return segment[:found], threshold, tp, fp


def last_points(carried: PointsCarried) -> tuple[Array, Array, Array, Array]:
    """The points that only the end of all rows completes, as :func:`points_onward` gives them."""
    segment = np.flatnonzero(~np.isnan(carried.level))
    weighed = carried.weight.cells > 0
    both = carried.weight.rounded().reshape(-1, 2) if weighed else carried.rows.astype(np.float64)
    return segment, carried.level[segment], both[segment, 1], both[segment, 0]
