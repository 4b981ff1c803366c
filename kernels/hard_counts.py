"""Counts of hard predictions by group and label: true positives and both marginals.

Precision, recall, F, accuracy, Matthews' correlation and Cohen's kappa all follow from these
three, without the whole confusion matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _count(
    truth: Array,
    hard: Array,
    datum: Array,
    group: Array,
    weight: Array,
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
        w = weight[u] if weight.size else 1.0
        t = truth[u]
        h = hard[u] if hard.size else -1
        if t >= 0:
            actual[g, t] += w
            if h >= 0:
                predicted[g, h] += w
                if h == t:
                    right[g, t] += w
        elif h >= 0:
            stray[g, h] += w


def count_hard(
    truth: Array,
    hard: Array,
    datum: Array | None,
    group: Array | None,
    weight: Array | None,
    shape: tuple[int, int],
    onto: tuple[Array, ...] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Count units by group and label.

    Args:
        truth: int32 [u], true label of each unit, -1 for none.
        hard: int32 [u], predicted label, -1 for none; or empty for none at all.
        datum: int32 [u], datum of each unit; None where unit u is datum u.
        group: int32 [n_datums], group of each datum, -1 for none; None for one group of all.
        weight: float64 [u], or None for 1 each.
        shape: (n_groups, n_labels).
        onto: counts of units before these, which go on and are written to; None for none.

    Returns:
        float64 [g, l] each (whole numbers below 2^53 without weights): right, truth and
        prediction agree; predicted, on units that have a truth; stray, predicted on units that
        have none; actual, truths.
    """
    out = tuple(np.zeros(shape) for _ in range(4)) if onto is None else onto
    none = np.zeros(0, np.int32)
    _count(
        frozen(truth, np.int32),
        frozen(hard, np.int32),
        frozen(none if datum is None else datum, np.int32),
        frozen(none if group is None else group, np.int32),
        frozen(np.zeros(0) if weight is None else weight, np.float64),
        *out,
    )
    right, predicted, stray, actual = out
    return right, predicted, stray, actual
