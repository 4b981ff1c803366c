"""Tests of a difference from the values of single datums, in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..schemas.arrays import Array
from .quantiles import t_cdf

Single = tuple[float, float, Array, Array]
"""The two numbers, and their per-datum values, float64 [n] each, NaN if undefined."""


def paired_t(single: Single) -> float:
    """Return the two-sided p of Student's paired t-test; NaN unless numbers are datum means.

    Source: Student, "The probable error of a mean" (1908).
    """
    of_a, of_b = _known(single)
    gone = of_b - of_a
    if gone.size < 2:
        return math.nan
    spread = float(gone.std(ddof=1))
    if spread == 0:
        return 1.0 if gone[0] == 0 else 0.0
    t = abs(float(gone.mean())) / (spread / math.sqrt(gone.size))
    return max(0.0, 2 * (1 - t_cdf(t, gone.size - 1)))  # the function may round to above 1


def mcnemar(single: Single) -> float:
    """Return the exact two-sided p of McNemar's test; NaN if the numbers are not shares of datums.

    Source: Q. McNemar, "Note on the sampling error of the difference between correlated
    proportions or percentages" (1947).
    Exact: the binomial distribution of the datums on which the two differ.
    """
    of_a, of_b = _known(single)
    if not of_a.size or not all(np.isin(of, (0.0, 1.0)).all() for of in (of_a, of_b)):
        return math.nan
    gained, lost = int((of_b > of_a).sum()), int((of_b < of_a).sum())
    n, k = gained + lost, np.arange(min(gained, lost))
    ways = np.concatenate([[0.0], np.cumsum(np.log(n - k) - np.log(k + 1))])  # logs of binomials
    return min(1.0, 2 * float(np.exp(ways - n * math.log(2)).sum()))


def shared_trials(of_a: Array | None, of_b: Array | None, value: float) -> int:
    """Count the datums that two equal shares rest on, if both agree on each; else 0."""
    if of_a is None or of_b is None:
        return 0
    known_a, known_b = _known((value, value, of_a, of_b))
    shares = np.isin(known_a, (0.0, 1.0)).all() and np.array_equal(known_a, known_b)
    return known_a.size if shares else 0


def _known(single: Single) -> tuple[Array, Array]:
    """Return values of datums defined in both runs; empty if numbers are not their means."""
    a, b, of_a, of_b = single
    known = ~(np.isnan(of_a) | np.isnan(of_b))
    of_a, of_b = of_a[known], of_b[known]
    if not of_a.size or abs(of_a.mean() - a) > 1e-9 or abs(of_b.mean() - b) > 1e-9:
        return of_a[:0], of_b[:0]
    return of_a, of_b


RANDOMISATION = "randomisation"
TESTS: dict[str, Callable[[Single], float] | None] = {
    RANDOMISATION: None,
    "t": paired_t,
    "mcnemar": mcnemar,
}
"""Tests by the names of the option ``test``; None if the test uses resamples."""
