"""chrF from counts of n-grams, as sacrebleu 2.6 has it.

Popović, "chrF: character n-gram F-score for automatic MT evaluation", 2015.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BETA = 2
"""Weight of recall."""


def chrf(counts: Array, *, percent: bool = False) -> Array:
    """F of the mean precision and mean recall over the orders that both sides have.

    Args:
        counts: [r, orders, 3]: n-grams of the candidate, of the reference, matches.
        percent: whether the values run from 0 to 100.

    Returns:
        float64 [r], from 0 to 1, or to 100.
    """
    ours, theirs, match = (np.asarray(counts[:, :, i], np.float64) for i in range(3))
    both = (ours > 0) & (theirs > 0)
    precision, recall = np.zeros(len(counts)), np.zeros(len(counts))
    for order in range(counts.shape[1]):  # summed one by one, so that ties are sacrebleu's
        some = both[:, order]
        precision[some] += match[some, order] / ours[some, order]
        recall[some] += match[some, order] / theirs[some, order]
    orders = np.maximum(both.sum(axis=1), 1)
    precision, recall = precision / orders, recall / orders
    factor = BETA**2
    value = np.zeros(len(counts))
    some = precision + recall > 0
    value[some] = (1 + factor) * precision[some] * recall[some]
    value[some] /= factor * precision[some] + recall[some]
    return value * 100 if percent else value
