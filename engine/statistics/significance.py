"""Tests of a difference from the values of single datums, in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .quantiles import t_cdf

Array = np.ndarray[Any, Any]

Single = tuple[float, float, Array, Array]
"""The two numbers, and their values of every datum, float64 [n] each, NaN where undefined."""


def paired_t(single: Single) -> float:
    """Two-sided p of Student's paired t, of numbers that are means over datums; NaN of others.

    Source: Student, "The probable error of a mean" (1908).
    """
    a, b, of_a, of_b = single
    known = ~(np.isnan(of_a) | np.isnan(of_b))
    gone = of_b[known] - of_a[known]
    means = abs(of_a[known].mean() - a) < 1e-9 and abs(of_b[known].mean() - b) < 1e-9
    if gone.size < 2 or not means:
        return math.nan
    spread = float(gone.std(ddof=1))
    if spread == 0:
        return 1.0 if gone[0] == 0 else 0.0
    t = abs(float(gone.mean())) / (spread / math.sqrt(gone.size))
    return max(0.0, 2 * (1 - t_cdf(t, gone.size - 1)))  # the function may round to above 1


def mcnemar(single: Single) -> float:
    """Exact two-sided p of McNemar's test, of shares of datums that are right; NaN of others.

    Source: Q. McNemar, "Note on the sampling error of the difference between correlated
    proportions or percentages" (1947).
    Exact: the binomial distribution of the datums on which the two differ.
    """
    a, b, of_a, of_b = single
    binary = all(np.isin(of, (0.0, 1.0)).all() for of in (of_a, of_b))
    if not of_a.size or not binary or abs(of_a.mean() - a) + abs(of_b.mean() - b) > 1e-9:
        return math.nan
    gained, lost = int((of_b > of_a).sum()), int((of_b < of_a).sum())
    n, few = gained + lost, min(gained, lost)
    tail = term = 1  # each binomial coefficient from the one before it
    for k in range(few):
        term = term * (n - k) // (k + 1)
        tail += term
    return min(1.0, float(2 * tail / (1 << n)))


TESTS: dict[str, Callable[[Single], float] | None] = {
    "randomisation": None,
    "t": paired_t,
    "mcnemar": mcnemar,
}
"""Tests by the name that the option ``test`` knows them by; None where draws are looked at."""
