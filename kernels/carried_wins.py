"""Pairs that positives win, of rows that come in pieces by rising score.

What :mod:`.roc` counts of all rows together, with what has to be carried from piece to piece: a
piece may end anywhere, in the middle of equal scores even.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, kernel
from .sums import ExactSums, add_bits, nearest

Array = np.ndarray[Any, Any]


class WinsCarried(NamedTuple):
    """What rows below have left, by segment (group, label).

    Attributes:
        level: float64 [s], score of the rows last seen; NaN before the first.
        below: int64 [s], negatives below that score; float64, the weight of them, where rows have
            weights.
        counts: int64 [3, s]: negatives below and at that score; negatives at it; positives at it.
        weights: the weights of these, cells of [s, 3] in C order; of no cells without weights.
        twice: int64 [s], twice what positives of lower scores won, ties counting half.
        won: the same of weights; of no cells without weights.
    """

    level: Array
    below: Array
    counts: Array
    weights: ExactSums
    twice: Array
    won: ExactSums


def no_wins(n: int, *, weighted: bool) -> WinsCarried:
    """What there is before the first row.

    Args:
        n: segments.
        weighted: whether rows have weights; else pairs are counted in whole numbers.
    """
    return WinsCarried(
        np.full(n, np.nan),
        np.zeros(n, np.float64 if weighted else np.int64),
        np.zeros((3, n), np.int64),
        ExactSums(3 * n if weighted else 0),
        np.zeros(n, np.int64),
        ExactSums(n if weighted else 0),
    )


@kernel
def _onward(
    start: Array,
    group: Array,
    outcome: Array,
    score: Array,
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
                twice[s] += here[s] * (2 * below[s] + tied[s])
                below[s] = passed[s]
                tied[s] = 0
                here[s] = 0
                level[s] = score[i]
            if outcome[i] == 1:
                here[s] += 1
            else:
                tied[s] += 1
                passed[s] += 1


@kernel
def _weights_onward(
    start: Array,
    group: Array,
    outcome: Array,
    score: Array,
    bits: Array,
    level: Array,
    below: Array,
    here: Array,
    first: int,
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
            if g < 0 or outcome[i] > 1:
                continue
            s = g * n_labels + label
            if score[i] != level[s]:
                if here[s] > 0:
                    tied = nearest(sums, 3 * s + 1, first)
                    product[0] = nearest(sums, 3 * s + 2, first) * (2.0 * below[s] + tied)
                    add_bits(won, s, first_won, product_bits[0])
                below[s] = nearest(sums, 3 * s, first)
                sums[3 * s + 1] = 0
                sums[3 * s + 2] = 0
                here[s] = 0
                level[s] = score[i]
            if outcome[i] == 1:
                here[s] += 1
                add_bits(sums, 3 * s + 2, first, bits[i])
            else:
                add_bits(sums, 3 * s, first, bits[i])
                add_bits(sums, 3 * s + 1, first, bits[i])


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
        score: float64 [n], ascending within a label.
        weight: float64 [n], finite; None for 1 each, as :func:`no_wins` was told.
        carried: of segments ``group * l + label``; written to.
    """
    rows = (
        frozen(start, np.int64),
        frozen(np.zeros(0) if group is None else group, np.int32),
        frozen(outcome, np.uint8),
        frozen(score, np.float64),
    )
    if weight is None:
        _onward(*rows, carried.level, carried.below, *carried.counts, carried.twice)
        return
    sums, won = carried.weights, carried.won
    bits = sums.reserve(weight)
    won.reserve_products(sums)
    _weights_onward(
        *rows, bits, carried.level, carried.below, carried.counts[2], sums.first, sums.chunks,
        won.first, won.chunks,
    )  # fmt: skip
    sums.carry()
    won.carry()


def wins_in_all(carried: WinsCarried) -> Array:
    """Twice what positives won, int64 [s]; of weights half of that, the weight of pairs won."""
    if not carried.won.cells:
        _, tied, here = carried.counts
        twice: Array = carried.twice + here * (2 * carried.below + tied)
        return twice
    _, tied, here = carried.weights.rounded().reshape(-1, 3).T
    last = ExactSums(here.size).merge(carried.won)
    last.add(here * (2.0 * carried.below + tied), np.arange(here.size))
    return last.rounded() / 2
