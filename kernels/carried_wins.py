"""Pairs that positives win, of rows that come in pieces by rising score.

What :mod:`.roc` counts of all rows together, with what has to be carried from piece to piece: a
piece may end anywhere, in the middle of equal scores even. Sums of weights are made of the same
additions in the same order, so that they come out alike to the bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


class WinsCarried(NamedTuple):
    """What rows below have left, by segment (group, label).

    Attributes:
        level: float64 [s], score of the rows last seen; NaN before the first.
        below: int64 or float64 [s], (weight of) negatives below that score; so are the others'
            dtypes.
        passed: [s], negatives below and at that score, added one by one.
        tied: [s], negatives at that score.
        here: [s], positives at that score.
        twice: [s], twice what positives of lower scores won, ties counting half.
    """

    level: Array
    below: Array
    passed: Array
    tied: Array
    here: Array
    twice: Array


def no_wins(n: int, *, weighted: bool) -> WinsCarried:
    """What there is before the first row.

    Args:
        n: segments.
        weighted: whether rows have weights; else pairs are counted in whole numbers.
    """
    return WinsCarried(np.full(n, np.nan), *np.zeros((5, n), np.float64 if weighted else np.int64))


@kernel
def _onward(
    start: Array,
    group: Array,
    outcome: Array,
    score: Array,
    weight: Array,
    one: Any,
    level: Array,
    below: Array,
    passed: Array,
    tied: Array,
    here: Array,
    twice: Array,
) -> None:
    n_labels = start.size - 1
    for label in range(n_labels):
        for i in range(start[label], start[label + 1]):
            g = group[i] if group.size else 0
            if g < 0 or outcome[i] > 1:
                continue
            s = g * n_labels + label
            if score[i] != level[s]:
                if here[s] != 0:
                    twice[s] += here[s] * (2 * below[s] + tied[s])
                below[s] = passed[s]
                tied[s] = 0
                here[s] = 0
                level[s] = score[i]
            w = weight[i] if weight.size else one
            if outcome[i] == 1:
                here[s] += w
            else:
                tied[s] += w
                passed[s] += w


def wins_onward(
    start: Array,
    group: Array | None,
    outcome: Array,
    score: Array,
    weight: Array | None,
    carried: WinsCarried,
) -> None:
    """Take in rows that stand above all rows before.

    Args:
        start: int64 [l + 1], CSR offsets of the labels.
        group: int32 [n], group of each row, -1 for none; None for one group of all.
        outcome: uint8 [n], 1 for positives, 0 for negatives; others do not count.
        score: float64 [n], ascending within a label, equal scores in row order.
        weight: float64 [n], or None for 1 each, as :func:`no_wins` was told.
        carried: of segments ``group * l + label``; written to.
    """
    dtype = carried.twice.dtype
    _onward(
        frozen(start, np.int64),
        frozen(np.zeros(0) if group is None else group, np.int32),
        frozen(outcome, np.uint8),
        frozen(score, np.float64),
        frozen(np.zeros(0) if weight is None else weight, dtype),
        dtype.type(1),
        *carried,
    )


def wins_in_all(carried: WinsCarried) -> Array:
    """Twice what positives won, int64 [s]; of weights half of that, the weight of pairs won."""
    last = np.where(carried.here != 0, carried.here * (2 * carried.below + carried.tied), 0).astype(
        carried.twice.dtype
    )
    twice: Array = carried.twice + last
    return twice / 2 if twice.dtype == np.float64 else twice
