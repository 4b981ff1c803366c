"""Average precision from the points of curves: precision times the gain in recall, summed up.

The sum is one of many small terms. It is carried from point to point beside what its additions have
lost (Neumaier 1974), so that it is as good for any number of points, and the same for points that
come in pieces.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


class PrecisionCarried(NamedTuple):
    """What points before have left, float64 [s] each.

    Attributes:
        tp: true positives at the last of them.
        total: sum of gained true positives times precision.
        lost: what the additions of that sum lost.
    """

    tp: Array
    total: Array
    lost: Array


def no_precision(n: int) -> PrecisionCarried:
    """What there is before the first point of n curves."""
    return PrecisionCarried(*np.zeros((3, n)))


@kernel
def _onward(start: Array, tp: Array, fp: Array, before: Array, totals: Array, lost: Array) -> None:
    for s in range(start.size - 1):
        reached, total, rest = before[s], totals[s], lost[s]
        for i in range(start[s], start[s + 1]):
            gained = tp[i] - reached
            if gained > 0.0:
                term = gained * (tp[i] / (tp[i] + fp[i]))
                larger = total + term
                if total >= term:
                    rest += (total - larger) + term
                else:
                    rest += (term - larger) + total
                total = larger
            reached = tp[i]
        before[s], totals[s], lost[s] = reached, total, rest


def precision_onward(start: Array, tp: Array, fp: Array, carried: PrecisionCarried) -> None:
    """Take in the next points of every curve.

    Args:
        start: int64 [s + 1], CSR offsets of the points of each curve.
        tp: float64 [m], true positives at or above a score, ascending within a curve.
        fp: float64 [m], false positives, likewise.
        carried: written to.
    """
    _onward(frozen(start, np.int64), frozen(tp, np.float64), frozen(fp, np.float64), *carried)
