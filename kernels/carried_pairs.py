"""Pairs that truths of one label win over those of another, of rows that come by rising score.

What :mod:`.roc` counts of two segments, here of the scores of every label, truths of it against
truths of each other label, with what has to be carried from piece to piece: a piece may end
anywhere, in the middle of equal scores even. Sums of weights are made of the same additions in the
same order, so that they come out alike to the bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


class PairsCarried(NamedTuple):
    """What rows below have left, by (group, label) and by (group, label, true label).

    Attributes:
        level: float64 [s], score of the rows last seen of a label; NaN before the first.
        here: int64 or float64 [s], (weight of) truths of the label at that score; so are the
            others' dtypes but that of ``at``.
        at: float64 [s, l], score of the rows last seen of a label and a true one; NaN before.
        below: [s, l], such rows below that score.
        passed: [s, l], such rows below and at it, added one by one.
        tied: [s, l], such rows at it.
        twice: [s, l], twice what truths of the label won at lower scores, ties counting half.
    """

    level: Array
    here: Array
    at: Array
    below: Array
    passed: Array
    tied: Array
    twice: Array


def no_pairs(n_groups: int, n_labels: int, *, weighted: bool) -> PairsCarried:
    """What there is before the first row.

    Args:
        n_groups: number of groups.
        n_labels: number of labels.
        weighted: whether rows have weights; else pairs are counted in whole numbers.
    """
    n = n_groups * n_labels
    dtype = np.float64 if weighted else np.int64
    return PairsCarried(
        np.full(n, np.nan),
        np.zeros(n, dtype),
        np.full((n, n_labels), np.nan),
        *np.zeros((4, n, n_labels), dtype),
    )


@kernel
def _onward(
    start: Array,
    group: Array,
    truth: Array,
    score: Array,
    weight: Array,
    one: Any,
    level: Array,
    here: Array,
    at: Array,
    below: Array,
    passed: Array,
    tied: Array,
    twice: Array,
) -> None:
    n_labels = start.size - 1
    for label in range(n_labels):
        for i in range(start[label], start[label + 1]):
            g = group[i] if group.size else 0
            other = truth[i]
            if g < 0 or other < 0:
                continue
            s = g * n_labels + label
            if score[i] != level[s]:
                if here[s] != 0:  # all rows of that score were seen: what its truths have won
                    for b in range(n_labels):
                        if at[s, b] == level[s]:
                            twice[s, b] += here[s] * (2 * below[s, b] + tied[s, b])
                        else:
                            twice[s, b] += here[s] * (2 * passed[s, b])
                    here[s] = 0
                level[s] = score[i]
            if score[i] != at[s, other]:
                below[s, other] = passed[s, other]
                tied[s, other] = 0
                at[s, other] = score[i]
            w = weight[i] if weight.size else one
            tied[s, other] += w
            passed[s, other] += w
            if other == label:
                here[s] += w


def pairs_onward(
    start: Array,
    group: Array | None,
    truth: Array,
    score: Array,
    weight: Array | None,
    carried: PairsCarried,
) -> None:
    """Take in rows that stand above all rows before.

    Args:
        start: int64 [l + 1], CSR offsets of the labels.
        group: int32 [n], group of each row, -1 for none; None for one group of all.
        truth: int32 [n], the true label of each row's unit, -1 for none, which does not count.
        score: float64 [n], ascending within a label, equal scores in row order.
        weight: float64 [n], or None for 1 each, as :func:`no_pairs` was told.
        carried: of segments ``group * l + label``; written to.
    """
    dtype = carried.twice.dtype
    _onward(
        frozen(start, np.int64),
        frozen(np.zeros(0) if group is None else group, np.int32),
        frozen(truth, np.int32),
        frozen(score, np.float64),
        frozen(np.zeros(0) if weight is None else weight, dtype),
        dtype.type(1),
        *carried,
    )


def pairs_in_all(carried: PairsCarried) -> Array:
    """Twice what truths of a label won over those of each, int64 [s, l]; of weights half of that,
    the weight of pairs won. A label wins half of the pairs with itself.
    """
    level, here, at, below, passed, tied, twice = carried
    of_level = at == level[:, None]
    last = here[:, None] * np.where(of_level, 2 * below + tied, 2 * passed)
    whole: Array = twice + last
    return whole / 2 if whole.dtype == np.float64 else whole
