"""Many tests at once: p-values adjusted so that few of them are small by luck."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..schemas.arrays import Array
from .intervals import WIDTHLESS


def holm(p: Array) -> Array:
    """Adjust p-values to control the family-wise error rate.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure" (1979).

    Args:
        p: float64 [m], without NaN.
    """
    m = p.size
    order = np.argsort(p, kind="stable")
    raised = np.maximum.accumulate(p[order] * (m - np.arange(m)))
    out = np.empty(m)
    out[order] = np.minimum(raised, 1.0)
    return out


def benjamini_hochberg(p: Array) -> Array:
    """Adjust p-values to control the false discovery rate.

    Source: Y. Benjamini, Y. Hochberg, "Controlling the false discovery rate" (1995).

    Args:
        p: float64 [m], without NaN.
    """
    m = p.size
    order = np.argsort(p, kind="stable")[::-1]
    lowered = np.minimum.accumulate(p[order] * m / np.arange(m, 0, -1))
    out = np.empty(m)
    out[order] = np.minimum(lowered, 1.0)
    return out


ADJUSTMENTS: dict[str, Callable[[Array], Array]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": lambda p: p,
}
"""Adjustments by the name that the option ``adjust`` knows them by."""


def adjusted(p: Array, adjust: str) -> Array:
    """Return adjusted p-values, float64 [m]; NaN stays NaN and does not count as a test.

    Args:
        p: float64 [m].
        adjust: one of :data:`ADJUSTMENTS`.
    """
    out = np.full(p.size, np.nan)
    known = ~np.isnan(p)
    out[known] = ADJUSTMENTS[adjust](p[known])
    return out


def randomisation_p(observed: Array, drawn: Array, size: Array | float = 1.0) -> Array:
    """Return two-sided p-values: share of resamples at least as extreme, add-one corrected.

    Args:
        observed: float64 [m], differences.
        drawn: float64 [draws, m], differences under randomisation, NaN if undefined.
        size: float64 [m], scale of rounding errors.

    Returns:
        float64 [m], NaN if the difference or all resamples are undefined.
    """
    known = ~np.isnan(drawn)
    # Values equal up to rounding count as extreme, since resamples are summed in another order.
    slack = WIDTHLESS * np.fmax(np.abs(observed), size)
    extreme = (np.abs(np.where(known, drawn, 0.0)) >= np.abs(observed) - slack) & known
    n = known.sum(axis=0)
    p = (1 + extreme.sum(axis=0)) / (1 + n)
    return np.where(np.isnan(observed) | (n == 0), np.nan, p)


def nothing_found(clusters: int, level: float) -> bool:
    """Return True if so few clusters have too few permutations for a small p."""
    return bool(0.5 ** (clusters - 1) > 1 - level)
