"""Edit rates from sums of edits and lengths."""

from __future__ import annotations

import numpy as np

from ..schemas.arrays import Array


def edit_rate(counts: Array) -> Array:
    """Divide edits by lengths.

    Args:
        counts: [r, 2]: edits, length of the references.

    Returns:
        float64 [r], 0 or more; NaN if the length is 0.
    """
    value = np.full(len(counts), np.nan)
    np.divide(counts[:, 0], counts[:, 1], out=value, where=counts[:, 1] > 0)
    return value


def translation_rate(counts: Array, *, percent: bool = False) -> Array:
    """Divide edits by lengths, as in sacrebleu 2.6: for empty references 1, or 0 without edits.

    Args:
        counts: [r, 2]: edits, mean length of the references.
        percent: scale to 100.

    Returns:
        float64 [r], 0 or more.
    """
    value = edit_rate(counts)
    value = np.where(counts[:, 1] > 0, value, (counts[:, 0] > 0).astype(np.float64))
    return value * 100 if percent else value
