"""Thresholds in the precision of the scores they are compared with."""

from __future__ import annotations

import numpy as np


def comparable(threshold: float, *, single: bool) -> float:
    """A score threshold as the scores' own precision can express it.

    A score written as 0.3 in a column of single precision is not the double 0.3; rounded alike,
    it reaches the threshold 0.3.

    Args:
        threshold: any number.
        single: whether the scores came in single precision.
    """
    with np.errstate(over="ignore"):  # what is beyond single precision, no score reaches
        return float(np.float32(threshold)) if single else threshold
