"""Counts of hard predictions by group and label: true positives and both marginals.

Precision, recall, F, accuracy, Matthews' correlation and Cohen's kappa all follow from these
three, without the whole confusion matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .chunks import add_bits
from .jit import frozen, kernel
from .sums import ExactSums

Array = np.ndarray[Any, Any]


@kernel
def _count(
    truth: Array,
    hard: Array,
    datum: Array,
    group: Array,
    right: Array,
    predicted: Array,
    stray: Array,
    actual: Array,
) -> None:
    """Add every unit to the counts of its group."""
    for u in range(truth.size):
        g = 0
        if group.size:
            g = group[datum[u] if datum.size else u]
            if g < 0:
                continue
        t = truth[u]
        h = hard[u] if hard.size else -1
        if t >= 0:
            actual[g, t] += 1.0
            if h >= 0:
                predicted[g, h] += 1.0
                if h == t:
                    right[g, t] += 1.0
        elif h >= 0:
            stray[g, h] += 1.0


@kernel
def _weigh(
    truth: Array,
    hard: Array,
    datum: Array,
    group: Array,
    bits: Array,
    n_labels: int,
    first: int,
    right: Array,
    predicted: Array,
    stray: Array,
    actual: Array,
) -> None:
    """Add the weight of every unit, exactly, to the sums of its group."""
    for u in range(truth.size):
        g = 0
        if group.size:
            g = group[datum[u] if datum.size else u]
            if g < 0:
                continue
        t = truth[u]
        h = hard[u] if hard.size else -1
        if t >= 0:
            add_bits(actual, g * n_labels + t, first, bits[u])
            if h >= 0:
                add_bits(predicted, g * n_labels + h, first, bits[u])
                if h == t:
                    add_bits(right, g * n_labels + t, first, bits[u])
        elif h >= 0:
            add_bits(stray, g * n_labels + h, first, bits[u])


def _codes(hard: Array, datum: Array | None, group: Array | None) -> tuple[Array, Array, Array]:
    none = np.zeros(0, np.int32)
    return (
        frozen(hard, np.int32),
        frozen(none if datum is None else datum, np.int32),
        frozen(none if group is None else group, np.int32),
    )


def count_hard(
    truth: Array,
    hard: Array,
    datum: Array | None,
    group: Array | None,
    onto: tuple[Array, Array, Array, Array],
) -> None:
    """Add units to their counts by group and label.

    Args:
        truth: int32 [u], true label of each unit, -1 for none.
        hard: int32 [u], predicted label, -1 for none; or empty for none at all.
        datum: int32 [u], datum of each unit; None where unit u is datum u.
        group: int32 [n_datums], group of each datum, -1 for none; None for one group of all.
        onto: float64 [g, l] each, whole numbers below 2^53, written to: right, truth and
            prediction agree; predicted, on units that have a truth; stray, predicted on units
            that have none; actual, truths.
    """
    _count(frozen(truth, np.int32), *_codes(hard, datum, group), *onto)


class HardWeights(NamedTuple):
    """Exact sums of the weights of units by group and label, cells of [g, l] in C order.

    Attributes:
        right: truth and prediction agree.
        predicted: predicted on units that have a truth.
        stray: predicted on units that have none.
        actual: truths.
    """

    right: ExactSums
    predicted: ExactSums
    stray: ExactSums
    actual: ExactSums


def weigh_hard(
    truth: Array,
    hard: Array,
    datum: Array | None,
    group: Array | None,
    weight: Array,
    onto: HardWeights,
    n_labels: int,
) -> None:
    """Add the weights of units to their sums by group and label.

    Args:
        truth: as in :func:`count_hard`, like ``hard``, ``datum`` and ``group``.
        weight: float64 [u], finite.
        onto: written to.
        n_labels: number of labels, of which ``onto`` has a cell in every group.
    """
    for one in onto:
        bits = one.reserve(weight)
    if not onto.actual.chunks.shape[1]:
        return  # weights of 0 alone
    codes = _codes(hard, datum, group)
    chunks = [one.chunks for one in onto]
    _weigh(frozen(truth, np.int32), *codes, bits, n_labels, onto.actual.first, *chunks)
    for one in onto:
        one.carry()
