"""Thresholds in the precision of the scores they are compared with."""

from __future__ import annotations

import numpy as np


def comparable(threshold: float, *, single: bool) -> float:
    """Cast a threshold to the dtype of the scores.

    A score of 0.3 in a single-precision column differs from the double 0.3; after the same rounding
    it
    reaches the threshold 0.3.

    Args:
        single: the scores have single precision.
    """
    with np.errstate(over="ignore"):  # what is beyond single precision, no score reaches
        return float(np.float32(threshold)) if single else threshold
