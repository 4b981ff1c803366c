"""Quantiles of the normal and Student's t distribution."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_NORMAL = NormalDist()


def normal_quantile(p: float) -> float:
    """Where the standard normal distribution reaches ``p``, in (0, 1)."""
    return _NORMAL.inv_cdf(p)


def normal_cdf(z: Array) -> Array:
    """The standard normal distribution function, float64 of the shape of ``z``."""
    return np.asarray(np.vectorize(_NORMAL.cdf, otypes=[float])(z))


def normal_inverse(p: Array) -> Array:
    """Its inverse, float64 of the shape of ``p``; infinite at 0 and 1."""

    def one(value: float) -> float:
        if value <= 0 or value >= 1:
            return -math.inf if value <= 0 else math.inf
        return _NORMAL.inv_cdf(value)

    return np.asarray(np.vectorize(one, otypes=[float])(p))


def t_cdf(t: float, df: int) -> float:
    """Student's t distribution function with a whole number of degrees of freedom.

    Source: M. Abramowitz, I. Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    theta = math.atan2(t, math.sqrt(df))
    sin, cos = math.sin(theta), math.cos(theta)
    if df % 2:
        term, total = cos, (cos if df > 1 else 0.0)
        for j in range(3, df - 1, 2):
            term *= (j - 1) / j * cos * cos
            total += term
        inside = 2 / math.pi * (theta + sin * total)
    else:
        term = total = 1.0
        for j in range(2, df - 1, 2):
            term *= (j - 1) / j * cos * cos
            total += term
        inside = sin * total
    return 0.5 + inside / 2


def t_quantile(p: float, df: int) -> float:
    """Where Student's t distribution reaches ``p``, in (0.5, 1).

    Args:
        p: probability.
        df: degrees of freedom, 1 or more.
    """
    low, high = 0.0, 1.0
    while t_cdf(high, df) < p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_cdf(middle, df) < p else (low, middle)
    return (low + high) / 2
