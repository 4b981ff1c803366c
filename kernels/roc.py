"""Area under the ROC curve, by merging sorted scores of positives and negatives.

The area equals the share of (positive, negative) pairs in which the positive scores higher, a tie
counting half (Mann and Whitney 1947; Hanley and McNeil 1982): the trapezoid rule with one segment
for each group of tied scores. Counts stay integers until the one division, so the area is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .chunks import add_bits, nearest
from .jit import frozen, inner, kernel
from .sums import ExactSums

Array = np.ndarray[Any, Any]


_LONG = 512  # rows of both classes from which a segment is merged in two halves at once
_STEPS = 4096  # of both halves between looks at their ends


@inner
def _below(score: Array, first: int, last: int, value: float) -> int:
    """First place in an ascending range that is not below a value, its end where all are."""
    while first < last:
        middle = (first + last) >> 1
        if score[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@inner
def _tied(
    score: Array, i: int, n_end: int, j: int, p_end: int, n_first: int
) -> tuple[int, int, int]:
    """The places behind the ties of a negative and a positive, and twice what these win."""
    value = score[i]
    below = 2 * (i - n_first)
    tied, won = 0, 0
    while i < n_end and score[i] == value:
        i += 1
        tied += 1
    while j < p_end and score[j] == value:
        j += 1
        won += below + tied
    return i, j, won


@inner
def _merged(score: Array, i: int, n_end: int, j: int, p_end: int, n_first: int) -> int:
    """Twice what the positives of a range win, from its negatives and those before it."""
    twice = 0
    while i < n_end and j < p_end:
        negative, positive = score[i], score[j]
        if negative == positive:
            i, j, won = _tied(score, i, n_end, j, p_end, n_first)
            twice += won
        else:
            # No branch on the outcome, which is a coin toss: the step is added instead.
            lower = int(negative < positive)
            i += lower
            j += 1 - lower
            twice += 2 * (1 - lower) * (i - n_first)
    return twice + 2 * (p_end - j) * (n_end - n_first)


@inner
def _middle(score: Array, p_first: int, p_end: int, n_first: int, n_end: int) -> tuple[int, int]:
    """Places of a positive and a negative below which about half of all rows are."""
    half = (p_end - p_first + n_end - n_first) >> 1
    low, high = p_first, p_end - 1
    while low < high:
        k = (low + high) >> 1
        if k - p_first + _below(score, n_first, n_end, score[k]) - n_first < half:
            low = k + 1
        else:
            high = k
    value = score[low]  # ties stay together
    return _below(score, p_first, p_end, value), _below(score, n_first, n_end, value)


@kernel
def _twice_wins(
    p_start: Array, p_stop: Array, n_start: Array, n_stop: Array, score: Array, out: Array
) -> None:
    """Twice the number of pairs won by the positive, ties counting one, per segment."""
    for s in range(p_start.size):
        j, p_end = p_start[s], p_stop[s]
        i, n_end = n_start[s], n_stop[s]
        n_first = i
        if min(p_end - j, n_end - i) < _LONG:
            out[s] = _merged(score, i, n_end, j, p_end, n_first)
            continue
        # Every step waits for the one before; of two halves in turn none waits for the other.
        p_half, n_half = _middle(score, j, p_end, i, n_end)
        v, u = p_half, n_half
        twice = 0
        while True:
            # So many steps reach no end, whatever they meet; ties are rare, and merged by name.
            steps = min(min(n_half - i, p_half - j), min(n_end - u, p_end - v), _STEPS)
            at, ties, won = (i, j, u, v), 0, 0
            for _ in range(steps):
                lower = int(score[i] < score[j])
                ties += int(score[i] == score[j])
                i += lower
                j += 1 - lower
                won += (i - n_first) & (lower - 1)  # all bits where the positive was passed
                lower = int(score[u] < score[v])
                ties += int(score[u] == score[v])
                u += lower
                v += 1 - lower
                won += (u - n_first) & (lower - 1)
            if ties > 0:
                i, j, u, v = at
            if steps == 0 or ties > 0:
                break
            twice += 2 * won
        twice += _merged(score, i, n_half, j, p_half, n_first)
        out[s] = twice + _merged(score, u, n_end, v, p_end, n_first)


@kernel
def _pair_wins(
    p_start: Array, p_stop: Array, n_start: Array, n_stop: Array, score: Array, out: Array
) -> None:
    """The same of scores in any order: every pair is looked at, several at a time."""
    for s in range(p_start.size):
        negatives = score[n_start[s] : n_stop[s]]
        twice = 0
        for j in range(p_start[s], p_stop[s]):
            positive = score[j]
            won = 0
            for i in range(negatives.size):
                won += int(negatives[i] < positive) + int(negatives[i] <= positive)
            twice += won
        out[s] = twice


@inner
def _sum(weight: Array, bits: Array, begin: int, end: int, first: int, sums: Array) -> float:
    """The sum of a few weights, exact but for one rounding; ``sums[1]`` is used up."""
    if end - begin == 1:
        value: float = weight[begin]
        return value
    sums[1] = 0
    for i in range(begin, end):
        add_bits(sums, 1, first, bits[i])
    total: float = nearest(sums, 1, first)
    return total


@kernel
def _weighted_wins(
    p_start: Array,
    p_stop: Array,
    n_start: Array,
    n_stop: Array,
    score: Array,
    weight: Array,
    bits: Array,
    first: int,
    sums: Array,
    first_won: int,
    won: Array,
) -> None:
    """Twice the weight of pairs won by the positive, ties counting half, cell by segment.

    Of one distinct score the product of two sums is rounded; everything else is exact.
    """
    product = np.empty(1)
    product_bits = product.view(np.int64)
    for s in range(p_start.size):
        j, p_end = p_start[s], p_stop[s]
        i, n_end = n_start[s], n_stop[s]
        sums[0] = 0
        below = 0.0
        while j < p_end:
            positive = score[j]
            k = i
            while i < n_end and score[i] < positive:
                add_bits(sums, 0, first, bits[i])
                i += 1
            if i > k:
                below = nearest(sums, 0, first)
            tied = 0.0
            k = i
            while k < n_end and score[k] == positive:
                k += 1
            if k > i:
                tied = _sum(weight, bits, i, k, first, sums)
            begin = j
            while j < p_end and score[j] == positive:
                j += 1
            here = _sum(weight, bits, begin, j, first, sums)
            product[0] = here * (2.0 * below + tied)
            add_bits(won, s, first_won, product_bits[0])


def wins(
    positives: tuple[Array, Array],
    negatives: tuple[Array, Array],
    score: Array,
    weight: Array | None = None,
) -> Array:
    """How many (positive, negative) pairs the positive wins, ties counting half.

    Args:
        positives: int64 [s] starts and stops of each segment's positives.
        negatives: the same of its negatives.
        score: float64 [n], ascending within each of these ranges.
        weight: float64 [n], weight of each row, or None.

    Returns:
        **twice** the number of pairs won, int64 [s]; with weights the weight of the pairs won,
        float64 [s].
    """
    bounds = [frozen(bound, np.int64) for bound in (*positives, *negatives)]
    score = frozen(score, np.float64)
    if weight is None:
        out = np.zeros(bounds[0].size, np.int64)
        _twice_wins(*bounds, score, out)
        return out
    sums, won = ExactSums(2), ExactSums(bounds[0].size)
    bits = sums.reserve(weight)
    won.reserve_products(sums)
    _weighted_wins(
        *bounds, score, frozen(weight, np.float64), bits, sums.first, sums.chunks,
        won.first, won.chunks,
    )  # fmt: skip
    won.carry()
    return won.rounded() / 2


def pair_wins(
    positives: tuple[Array, Array], negatives: tuple[Array, Array], score: Array
) -> Array:
    """What :func:`wins` counts without weights, of scores in any order, in time of their product.

    Args:
        positives: int64 [s] starts and stops of each segment's positives.
        negatives: the same of its negatives.
        score: float64 [n], in any order within these ranges, without NaN.

    Returns:
        **twice** the number of pairs won, int64 [s].
    """
    bounds = [frozen(bound, np.int64) for bound in (*positives, *negatives)]
    out = np.zeros(bounds[0].size, np.int64)
    _pair_wins(*bounds, frozen(score, np.float64), out)
    return out
