"""Quantiles of the normal, Student's t and beta distributions."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from ..schemas.arrays import Array

_NORMAL = NormalDist()


def normal_quantile(p: float) -> float:
    """Quantile of the standard normal distribution at ``p``, in (0, 1)."""
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
    """Compute Student's t distribution function for integer degrees of freedom.

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
    """Compute a quantile of Student's t distribution by bisection.

    Args:
        p: probability, in (0.5, 1).
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


def beta_cdf(x: float, a: float, b: float) -> float:
    """Compute the beta distribution function, the regularised incomplete beta function.

    Source: W. J. Lentz's evaluation of the continued fraction 26.5.8 of M. Abramowitz, I. Stegun,
    Handbook of Mathematical Functions.
    """
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction of the other tail converges faster
        return 1 - beta_cdf(1 - x, b, a)
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logs + a * math.log(x) + b * math.log1p(-x)) / a
    least = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or least)
    value = d
    for m in range(1, 100_000):
        step = 1.0
        for part in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + part * d) or least)
            c = (1 + part / c) or least
            step = c * d
            value *= step
        if abs(step - 1) < 1e-15:
            break
    return front * value


def beta_quantile(p: float, a: float, b: float) -> float:
    """Quantile of the beta distribution at ``p``, in (0, 1)."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if beta_cdf(middle, a, b) < p else (low, middle)
    return (low + high) / 2
