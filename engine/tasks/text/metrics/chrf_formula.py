"""chrF from counts of n-grams, as in sacrebleu 2.6.

Popović, "chrF: character n-gram F-score for automatic MT evaluation", 2015.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....schemas.arrays import Array

BETA = 2
"""Weight of recall."""
_EPSILON = 1e-16
"""Value of an empty ratio in smoothed F."""


def chrf(
    counts: Array, *, percent: bool = False, beta: float = BETA, smoothed: bool = False
) -> Array:
    """Compute F of the mean precision and mean recall over the orders that both sides have.

    Args:
        counts: [r, orders, 3]: n-grams of the candidate, of the reference, matches. Float32 is
            computed in single precision, as in sacrebleu for sums of resampled texts.
        percent: values are in [0, 100].
        beta: weight of recall.
        smoothed: mean of F over all orders instead, with a tiny number for the ratio of an order
            that a side does not have.

    Returns:
        float64 (for float32: float32) [r], from 0 to 1, or to 100.
    """
    kind: Any = np.float32 if counts.dtype == np.float32 else np.float64
    ours, theirs, match = (np.asarray(counts[:, :, i], kind) for i in range(3))
    factor, orders = beta**2, counts.shape[1]
    value = np.zeros(len(counts), kind)
    # Both are summed one order after the other, so that ties are sacrebleu's.
    if smoothed:
        precision = np.divide(match, ours, out=np.full_like(match, _EPSILON), where=ours > 0)
        recall = np.divide(match, theirs, out=np.full_like(match, _EPSILON), where=theirs > 0)
        below = factor * precision + recall
        f = np.full_like(match, _EPSILON)
        np.divide((1 + factor) * precision * recall, below, out=f, where=below > 0)
        for order in range(orders):
            value += f[:, order]
        found: Array = 100 * value / orders if percent else value / orders
        return found
    both = (ours > 0) & (theirs > 0)
    precision, recall = np.zeros_like(value), np.zeros_like(value)
    for order in range(orders):
        some = both[:, order]
        precision[some] += match[some, order] / ours[some, order]
        recall[some] += match[some, order] / theirs[some, order]
    many = np.maximum(both.sum(axis=1), 1).astype(kind)
    precision, recall = precision / many, recall / many
    some = precision + recall > 0
    value[some] = (1 + factor) * precision[some] * recall[some]
    value[some] /= factor * precision[some] + recall[some]
    return value * 100 if percent else value
