"""How many rows, or how much weight, reach thresholds, of rows that come by falling score.

What :mod:`.reached` finds of all rows together, with exact sums carried from piece to piece.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, kernel
from .sums import ExactSums, add_bits, nearest

Array = np.ndarray[Any, Any]


class SumsCarried(NamedTuple):
    """What better rows have left, by segment (group, label, outcome).

    Attributes:
        rows: int64 [s], rows so far.
        weight: the weight of rows so far; of no cells without weights.
        ahead: int64 [s], thresholds that no row so far was below.
        reached: float64 [s, t], (weight of) rows at or above thresholds that were passed.
    """

    rows: Array
    weight: ExactSums
    ahead: Array
    reached: Array

    @property
    def total(self) -> Array:
        """(Weight of) rows so far, float64 [s]."""
        return self.weight.rounded() if self.weight.cells else self.rows.astype(np.float64)


def no_sums(n: int, n_thresholds: int, *, weighted: bool) -> SumsCarried:
    """What there is before the first row.

    Args:
        n: segments.
        n_thresholds: how many thresholds there are.
        weighted: whether rows have weights.
    """
    rows = np.zeros(n, np.int64)
    ahead = np.full(n, n_thresholds, np.int64)
    sums = ExactSums(n if weighted else 0)
    return SumsCarried(rows, sums, ahead, np.zeros((n, n_thresholds)))


@kernel
def _onward(
    start: Array,
    group: Array,
    outcome: Array,
    score: Array,
    bits: Array,
    n_outcomes: int,
    thresholds: Array,
    first: int,
    rows: Array,
    sums: Array,
    ahead: Array,
    reached: Array,
) -> None:
    n_labels = start.size - 1
    for label in range(n_labels):
        for i in range(start[label + 1] - 1, start[label] - 1, -1):
            g = group[i] if group.size else 0
            if g < 0:
                continue
            s = (g * n_labels + label) * n_outcomes + outcome[i]
            while ahead[s] > 0 and score[i] < thresholds[ahead[s] - 1]:
                ahead[s] -= 1
                reached[s, ahead[s]] = nearest(sums, s, first) if bits.size else float(rows[s])
            rows[s] += 1
            if bits.size:
                add_bits(sums, s, first, bits[i])


def sums_onward(
    start: Array,
    group: Array | None,
    outcome: Array,
    score: Array,
    weight: Array | None,
    n_outcomes: int,
    thresholds: Array,
    carried: SumsCarried,
) -> None:
    """Take in rows that stand below all rows before.

    Args:
        start: int64 [l + 1], CSR offsets of the labels.
        group: int32 [n], group of each row, -1 for none; None for one group of all.
        outcome: uint8 [n].
        score: float64 [n], ascending within a label, equal scores in row order.
        weight: float64 [n], finite; None for 1 each, as :func:`no_sums` was told.
        n_outcomes: number of outcomes.
        thresholds: float64 [t], ascending.
        carried: of segments ``(group * l + label) * n_outcomes + outcome``; written to.
    """
    sums = carried.weight
    bits = sums.reserve(np.zeros(0) if weight is None else weight)
    _onward(
        frozen(start, np.int64),
        frozen(np.zeros(0) if group is None else group, np.int32),
        frozen(outcome, np.uint8),
        frozen(score, np.float64),
        bits,
        n_outcomes,
        frozen(thresholds, np.float64),
        sums.first,
        carried.rows,
        sums.chunks,
        carried.ahead,
        carried.reached,
    )
    sums.carry()


def reached_in_all(carried: SumsCarried) -> Array:
    """(Weight of) rows at or above each threshold, float64 [s, t]."""
    none_below = np.arange(carried.reached.shape[1]) < carried.ahead[:, None]
    return np.where(none_below, carried.total[:, None], carried.reached)
