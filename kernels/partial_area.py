"""Area under the left part of ROC curves, from their points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


class AreaCarried(NamedTuple):
    """What points before have left, by curve.

    Attributes:
        x: float64 [s], false-positive rate of the last of them.
        y: float64 [s], its true-positive rate.
        area: float64 [s], area so far; NaN where a class is missing.
        ended: bool [s], whether the limit was reached.
    """

    x: Array
    y: Array
    area: Array
    ended: Array


def no_area(positives: Array, negatives: Array) -> AreaCarried:
    """What there is before the first point of curves over so many of each class, float64 [s]."""
    x, y, area = np.zeros((3, positives.size))
    missing = ~((positives > 0.0) & (negatives > 0.0))
    area[missing] = np.nan
    return AreaCarried(x, y, area, missing)


@kernel
def _areas(
    start: Array,
    tp: Array,
    fp: Array,
    positives: Array,
    negatives: Array,
    limit: float,
    from_x: Array,
    from_y: Array,
    out: Array,
    ended: Array,
) -> None:
    """Trapezoids of every curve, the last of them cut at the limit."""
    for s in range(positives.size):
        if ended[s]:
            continue
        x0, y0, area = from_x[s], from_y[s], out[s]
        for i in range(start[s], start[s + 1]):
            x, y = fp[i] / negatives[s], tp[i] / positives[s]
            if x > limit:
                y = y0 + (y - y0) * (limit - x0) / (x - x0)
                x = limit
            area += (x - x0) * (y + y0) / 2
            x0, y0 = x, y
            if x0 >= limit and limit < 1.0:
                # Points straight above the limit add nothing.
                ended[s] = True
                break
        from_x[s], from_y[s], out[s] = x0, y0, area


def areas_onward(
    start: Array,
    tp: Array,
    fp: Array,
    positives: Array,
    negatives: Array,
    limit: float,
    carried: AreaCarried,
) -> None:
    """Take in the next points of every curve, trapezoid by trapezoid.

    The one that reaches the limit is cut by linear interpolation (McClish 1989).

    Args:
        start: int64 [s + 1], CSR offsets of the points of each curve.
        tp: float64 [m], true positives, ascending within a curve.
        fp: float64 [m], false positives, likewise.
        positives: float64 [s].
        negatives: float64 [s].
        limit: in (0, 1].
        carried: as :func:`no_area` gives it; written to.
    """
    _areas(
        frozen(start, np.int64),
        frozen(tp, np.float64),
        frozen(fp, np.float64),
        frozen(positives, np.float64),
        frozen(negatives, np.float64),
        float(limit),
        *carried,
    )


def area_in_all(positives: Array, negatives: Array, limit: float, carried: AreaCarried) -> Array:
    """Area under each ROC curve where the false-positive rate is at most ``limit``.

    Curves run from (0, 0) and end at (1, 1), whether or not their last point does.

    Args:
        positives: float64 [s].
        negatives: float64 [s].
        limit: in (0, 1].
        carried: what all points have left; used up here.

    Returns:
        float64 [s], in [0, limit]; NaN where a class is missing.
    """
    every = np.arange(positives.size + 1)
    areas_onward(every, positives, negatives, positives, negatives, limit, carried)
    return carried.area
