"""Many tests at once: p-values adjusted so that few of them are small by luck."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .intervals import WIDTHLESS

Array = np.ndarray[Any, Any]


def holm(p: Array) -> Array:
    """Adjusted so that the chance of any false alarm stays below the level.

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
    """Adjusted so that of what is found, the share of false alarms stays below the level.

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
    """Adjusted p-values, float64 [m]; NaN stays, and is no test.

    Args:
        p: float64 [m].
        adjust: one of :data:`ADJUSTMENTS`.
    """
    out = np.full(p.size, np.nan)
    known = ~np.isnan(p)
    out[known] = ADJUSTMENTS[adjust](p[known])
    return out


def randomisation_p(observed: Array, drawn: Array, size: Array | float = 1.0) -> Array:
    """Two-sided p-values: draws at least as extreme as what was seen, one added on both sides.

    Args:
        observed: float64 [m], differences.
        drawn: float64 [draws, m], differences under randomisation, NaN where undefined.
        size: float64 [m], of the numbers that differ: what they are rounded by.

    Returns:
        float64 [m], NaN where nothing was seen or no draw has a value.
    """
    known = ~np.isnan(drawn)
    # What is equal but for rounding is as extreme: sums of draws are added in another order.
    slack = WIDTHLESS * np.fmax(np.abs(observed), size)
    extreme = (np.abs(np.where(known, drawn, 0.0)) >= np.abs(observed) - slack) & known
    n = known.sum(axis=0)
    p = (1 + extreme.sum(axis=0)) / (1 + n)
    return np.where(np.isnan(observed) | (n == 0), np.nan, p)


def nothing_found(clusters: int, level: float) -> bool:
    """Tell if so few clusters can be swapped in too few ways for any p to be small."""
    return bool(0.5 ** (clusters - 1) > 1 - level)
