"""Pairs that truths of one label win over those of another, of rows that come by rising score.

What :mod:`.roc` counts of two segments, here of the scores of every label, truths of it against
truths of each other label, with what has to be carried from piece to piece: a piece may end
anywhere, in the middle of equal scores even.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, kernel
from .sums import ExactSums, add_bits, nearest

Array = np.ndarray[Any, Any]


class PairsCarried(NamedTuple):
    """What rows below have left, by (group, label) and by (group, label, true label).

    Attributes:
        level: float64 [s], score of the rows last seen of a label; NaN before the first.
        here: int64 [s], truths of the label at that score.
        at: float64 [s, l], score of the rows last seen of a label and a true one; NaN before.
        below: [s, l], such rows below that score, int64; their weight, float64, where rows have
            weights.
        counts: int64 [2, s, l]: such rows below and at it; such rows at it.
        twice: int64 [s, l], twice what truths of the label won at lower scores, ties counting half.
        own: the weight of ``here``; of no cells without weights, like the next two.
        weights: the weights of ``counts``, cells of [s, l, 2] in C order.
        won: what ``twice`` is of weights, cells of [s, l].
    """

    level: Array
    here: Array
    at: Array
    below: Array
    counts: Array
    twice: Array
    own: ExactSums
    weights: ExactSums
    won: ExactSums


def no_pairs(n_groups: int, n_labels: int, *, weighted: bool) -> PairsCarried:
    """What there is before the first row.

    Args:
        n_groups: number of groups.
        n_labels: number of labels.
        weighted: whether rows have weights; else pairs are counted in whole numbers.
    """
    n = n_groups * n_labels
    cells = n * n_labels if weighted else 0
    return PairsCarried(
        np.full(n, np.nan),
        np.zeros(n, np.int64),
        np.full((n, n_labels), np.nan),
        np.zeros((n, n_labels), np.float64 if weighted else np.int64),
        np.zeros((2, n, n_labels), np.int64),
        np.zeros((n, n_labels), np.int64),
        ExactSums(n if weighted else 0),
        ExactSums(2 * cells),
        ExactSums(cells),
    )


@kernel
def _onward(
    start: Array,
    group: Array,
    truth: Array,
    score: Array,
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
            tied[s, other] += 1
            passed[s, other] += 1
            if other == label:
                here[s] += 1


@kernel
def _weights_onward(
    start: Array,
    group: Array,
    truth: Array,
    score: Array,
    bits: Array,
    level: Array,
    here: Array,
    at: Array,
    below: Array,
    first: int,
    own: Array,
    sums: Array,
    first_won: int,
    won: Array,
) -> None:
    product = np.empty(1)
    product_bits = product.view(np.int64)
    n_labels = start.size - 1
    for label in range(n_labels):
        for i in range(start[label], start[label + 1]):
            g = group[i] if group.size else 0
            other = truth[i]
            if g < 0 or other < 0:
                continue
            s = g * n_labels + label
            if score[i] != level[s]:
                if here[s] != 0:
                    mine = nearest(own, s, first)
                    for b in range(n_labels):
                        cell = s * n_labels + b
                        if at[s, b] == level[s]:
                            tied = nearest(sums, 2 * cell + 1, first)
                            product[0] = mine * (2.0 * below[s, b] + tied)
                        else:
                            product[0] = mine * (2.0 * nearest(sums, 2 * cell, first))
                        add_bits(won, cell, first_won, product_bits[0])
                    here[s] = 0
                    own[s] = 0
                level[s] = score[i]
            cell = s * n_labels + other
            if score[i] != at[s, other]:
                below[s, other] = nearest(sums, 2 * cell, first)
                sums[2 * cell + 1] = 0
                at[s, other] = score[i]
            add_bits(sums, 2 * cell, first, bits[i])
            add_bits(sums, 2 * cell + 1, first, bits[i])
            if other == label:
                here[s] += 1
                add_bits(own, s, first, bits[i])


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
        score: float64 [n], ascending within a label.
        weight: float64 [n], finite; None for 1 each, as :func:`no_pairs` was told.
        carried: of segments ``group * l + label``; written to.
    """
    rows = (
        frozen(start, np.int64),
        frozen(np.zeros(0) if group is None else group, np.int32),
        frozen(truth, np.int32),
        frozen(score, np.float64),
    )
    level, here, at, below, counts, twice, own, sums, won = carried
    if weight is None:
        _onward(*rows, level, here, at, below, *counts, twice)
        return
    own.reserve(weight)
    bits = sums.reserve(weight)
    won.reserve_products(sums)
    _weights_onward(
        *rows, bits, level, here, at, below, sums.first, own.chunks, sums.chunks,
        won.first, won.chunks,
    )  # fmt: skip
    for one in (own, sums, won):
        one.carry()


def pairs_in_all(carried: PairsCarried) -> Array:
    """Twice what truths of a label won over those of each, int64 [s, l]; of weights half of that,
    the weight of pairs won. A label wins half of the pairs with itself.
    """
    level, here, at, below, counts, twice, own, sums, won = carried
    of_level = at == level[:, None]
    if not won.cells:
        passed, tied = counts
        whole: Array = twice + here[:, None] * np.where(of_level, 2 * below + tied, 2 * passed)
        return whole
    passed, tied = np.moveaxis(sums.rounded().reshape(*at.shape, 2), 2, 0)
    mine = own.rounded()[:, None]
    last = mine * np.where(of_level, 2.0 * below + tied, 2.0 * passed)
    together = ExactSums(last.size).merge(won).add(last.ravel(), np.arange(last.size))
    return together.rounded().reshape(last.shape) / 2
