"""Area under the left part of ROC curves, from their points."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _areas(
    start: Array,
    tp: Array,
    fp: Array,
    positives: Array,
    negatives: Array,
    limit: float,
    out: Array,
) -> None:
    """Trapezoids of every curve, the last of them cut at the limit."""
    for s in range(positives.size):
        if not (positives[s] > 0.0 and negatives[s] > 0.0):
            out[s] = np.nan
            continue
        x0, y0, area = 0.0, 0.0, 0.0
        for i in range(start[s], start[s + 1] + 1):
            x, y = 1.0, 1.0
            if i < start[s + 1]:
                x, y = fp[i] / negatives[s], tp[i] / positives[s]
            if x > limit:
                y = y0 + (y - y0) * (limit - x0) / (x - x0)
                x = limit
            area += (x - x0) * (y + y0) / 2
            x0, y0 = x, y
            if x0 >= limit and limit < 1.0:
                # Points straight above the limit add nothing.
                break
        out[s] = area


def partial_areas(
    start: Array, tp: Array, fp: Array, positives: Array, negatives: Array, limit: float
) -> Array:
    """Area under each ROC curve where the false-positive rate is at most ``limit``.

    The trapezoid rule; the last segment is cut by linear interpolation (McClish 1989). Curves run
    from (0, 0) and end at (1, 1), whether or not their last point does.

    Args:
        start: int64 [s + 1], CSR offsets of the points of each curve.
        tp: float64 [m], true positives, ascending within a curve.
        fp: float64 [m], false positives, likewise.
        positives: float64 [s].
        negatives: float64 [s].
        limit: in (0, 1].

    Returns:
        float64 [s], in [0, limit]; NaN where a class is missing.
    """
    out = np.empty(positives.size)
    _areas(
        frozen(start, np.int64),
        frozen(tp, np.float64),
        frozen(fp, np.float64),
        frozen(positives, np.float64),
        frozen(negatives, np.float64),
        float(limit),
        out,
    )
    return out
