"""Confidence intervals from resamples and in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import msgspec
import numpy as np

from ..metrics.registry import AsShare
from ..schemas.arrays import Array
from ..schemas.option_values import FEW_CLUSTERS

# Quantiles of the normal, Student's t and beta distributions.

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
    high = 1.0
    while t_cdf(high, df) < p:
        high *= 2
    return _bisected(lambda x: t_cdf(x, df), p, high)


def _bisected(cdf: Callable[[float], float], p: float, high: float) -> float:
    """Return the number between 0 and ``high`` at which a distribution function reaches p."""
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if cdf(middle) < p else (low, middle)
    return (low + high) / 2


def beta_cdf(x: float, a: float, b: float) -> float:
    """Compute the beta distribution function, the regularised incomplete beta function.

    Source: W. J. Lentz's evaluation of the continued fraction 26.5.8 of M. Abramowitz, I. Stegun,
    Handbook of Mathematical Functions.
    """
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction of the other tail converges faster
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
    return _bisected(lambda x: beta_cdf(x, a, b), p, 1.0)


# Intervals of numbers, computed from their resampled values.

_MANY = 200  # positives (or negatives) from which areas take normal quantiles
WIDTHLESS = 1e-12
"""Share of a number, or of 1 if its range is finite and it is less, up to which all is rounding."""


class Sample(msgspec.Struct, frozen=True):
    """Numbers for which intervals are computed.

    Attributes:
        point: float64 [m], the numbers.
        level: confidence, in (0, 1).
        range: smallest and largest possible value of the metric.
        drawn: float64 [resamples, m], values, NaN if undefined; [0, m] if the method needs none.
        left_out: float64 [j, m], values without one cluster (or group of clusters); [0, m] if the
            method needs none.
        trials: float64 [m], number of independent trials of a proportion, NaN for other numbers.
        variance: float64 [3, m], theoretical variances of areas under ROC curves, and numbers of
            positives and negatives; NaN if unavailable.
        units: float64 [m], effective number of datums (or clusters); None if there are many.
        as_share: the share that the numbers are a function of, if ``trials`` are of it.
        mean: lower and upper ends and standard errors of means of shares, float64 [3, m]; NaN for
            other numbers.
    """

    point: Array
    level: float
    range: tuple[float, float]
    drawn: Array
    left_out: Array
    trials: Array = np.full(1, np.nan)
    variance: Array = np.full((3, 1), np.nan)
    units: Array | None = None
    as_share: AsShare | None = None
    mean: Array = np.full((3, 1), np.nan)

    @property
    def z(self) -> Array:
        """Half-width of a central interval in standard errors of resamples, float64 [m].

        The normal quantile; for few units Student's t, widened since resamples vary by
        (n - 1) / n too little. Source: T. Hesterberg, "What teachers should know about the
        bootstrap" (2015), expanded percentiles.
        """
        return resample_quantile(self.level, self.units, self.point.size)


def resample_quantile(level: float, units: Array | None, size: int) -> Array:
    """Quantile of normal intervals, by the effective number of resampled units; see Sample.z."""
    out = few_units_t(level, units, size)
    if units is not None:
        df = np.maximum(1, np.round(units) - 1)
        few = (units > 1) & (units < FEW_CLUSTERS)
        out[few] *= np.sqrt((df[few] + 1) / df[few])
    return out


def degrees_of_freedom(units: float | None) -> int | None:
    """Degrees of freedom of Student's t by the effective number of units; None for the normal."""
    if units is None or not 1 < units < FEW_CLUSTERS:
        return None
    return max(1, round(units) - 1)


def few_units_t(level: float, units: Array | None, size: int, below: int = FEW_CLUSTERS) -> Array:
    """Quantile of intervals from unbiased standard errors, by their effective number of units.

    Args:
        below: Student's t is used for fewer units, otherwise the normal distribution.
    """
    out = np.full(size, normal_quantile((1 + level) / 2))
    if units is not None:
        few = (units > 1) & (units < below)
        df = np.maximum(1, np.rint(np.where(few, units, 2.0)) - 1)
        for one in np.unique(df[few]):
            out[few & (df == one)] = t_quantile((1 + level) / 2, int(one))
    return out


class Interval(NamedTuple):
    """Interval bounds and standard errors, float64 [m] each, NaN if unavailable."""

    lower: Array
    upper: Array
    se: Array


def floor_of(limits: tuple[float, float]) -> float:
    """Return the minimum scale of rounding errors: 1 for a finite range, 0 for numbers with a unit.

    Args:
        limits: smallest and largest possible value of the metric.
    """
    return float(np.isfinite(limits).all())


_USUAL = 256  # exponent of numbers whose sums and squares neither overflow nor underflow


def _scaled(drawn: Array) -> tuple[Array, Array]:
    """Divide by powers of two, so that no sum or square overflows; and their exponents, int [m].

    Numbers of usual size are not divided, which changes no bit of the results.
    """
    values = np.where(np.isnan(drawn), 0.0, drawn)
    unit = np.frexp(np.abs(values).max(axis=0, initial=0.0))[1]
    if (np.abs(unit) < _USUAL).all():
        return values, np.zeros_like(unit)
    return np.ldexp(values, -unit), unit


def standard_errors(drawn: Array) -> Array:
    """Return standard deviations over the defined resamples, float64 [m]; NaN for fewer than 2."""
    valid = ~np.isnan(drawn)
    n = valid.sum(axis=0)
    scaled, unit = _scaled(drawn)
    mean = scaled.sum(axis=0) / np.maximum(n, 1)
    deviations, exponent = _scaled(np.where(valid, scaled - mean, 0.0))
    out: Array = np.full(drawn.shape[1], np.nan)
    np.divide((deviations * deviations).sum(axis=0), n - 1, out=out, where=n > 1)
    return np.ldexp(np.sqrt(out), unit + exponent)


def means(drawn: Array) -> Array:
    """Return means over the defined resamples, float64 [m]; NaN without any."""
    n = (~np.isnan(drawn)).sum(axis=0)
    scaled, unit = _scaled(drawn)
    out: Array = np.full(drawn.shape[1], np.nan)
    np.divide(scaled.sum(axis=0), n, out=out, where=n > 0)
    return np.ldexp(out, unit)


def quantiles(drawn: Array, p: Array) -> Array:
    """Return quantiles over the defined resamples, linearly interpolated.

    Args:
        drawn: float64 [resamples, m].
        p: float64 [q], or per number [q, m].

    Returns:
        float64 [q, m], NaN without defined resamples.
    """
    ordered = np.sort(drawn, axis=0)  # NaN last
    n = (~np.isnan(drawn)).sum(axis=0)
    p = np.broadcast_to(p if p.ndim == 2 else p[:, None], (p.shape[0], drawn.shape[1]))
    place = p * np.maximum(n - 1, 0)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(n - 1, 0))
    if not ordered.shape[0]:
        return np.full(p.shape, np.nan)
    a = np.take_along_axis(ordered, low, axis=0)
    b = np.take_along_axis(ordered, high, axis=0)
    return np.asarray(a + (b - a) * (place - low))


def tails(z: Array) -> Array:
    """Probabilities of the two ends of a central interval, float64 [2, m]."""
    distinct, at = np.unique(z, return_inverse=True)
    upper = normal_cdf(distinct)[at]
    return np.stack([1 - upper, upper])


def percentile(sample: Sample) -> Interval:
    """Compute percentile intervals."""
    low, high = quantiles(sample.drawn, tails(sample.z))
    return Interval(low, high, standard_errors(sample.drawn))


def recentred(sample: Sample) -> Interval:
    """Compute percentile intervals, shifted so that the mean of the resamples is the number.

    Bounds are clipped to the range. Repeated datums raise interpolated precision, so that resampled
    AP is biased upwards.
    """
    low, high = quantiles(sample.drawn, tails(sample.z)) - means(sample.drawn) + sample.point
    return Interval(
        np.clip(low, *sample.range), np.clip(high, *sample.range), standard_errors(sample.drawn)
    )


def normal(sample: Sample) -> Interval:
    """Compute normal intervals: number plus or minus z standard errors, clipped to its range."""
    se = standard_errors(sample.drawn)
    reach = sample.z * se
    return Interval(
        np.clip(sample.point - reach, *sample.range),
        np.clip(sample.point + reach, *sample.range),
        se,
    )


def bca(sample: Sample) -> Interval:
    """Compute bias-corrected and accelerated percentile intervals.

    Source: B. Efron, "Better bootstrap confidence intervals" (1987), as in scipy.stats.bootstrap:
    resamples equal to the number count half as below it. Undefined if all resamples are on one side
    of the number.
    """
    drawn, point = sample.drawn, sample.point
    valid = ~np.isnan(drawn)
    n = valid.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        below = (((drawn < point) & valid).sum(axis=0) + ((drawn <= point) & valid).sum(axis=0)) / (
            2 * n
        )
        z0 = normal_inverse(np.where(np.isnan(below), 0.5, below))
        gap, _ = _scaled(means(sample.left_out) - sample.left_out)
        spread = (gap**2).sum(axis=0) ** 1.5
        a = np.where(spread > 0, (gap**3).sum(axis=0) / (6 * spread), 0.0)
        p = np.stack([normal_cdf(z0 + z / (1 - a * z)) for z in (z0 - sample.z, z0 + sample.z)])
    low, high = quantiles(drawn, np.where(np.isfinite(z0), p, np.nan_to_num(p, nan=0.5)))
    lost = ~np.isfinite(z0)  # all resamples on one side: no correction exists
    return Interval(
        np.where(lost, np.nan, low), np.where(lost, np.nan, high), standard_errors(drawn)
    )


def jackknife(sample: Sample) -> Interval:
    """Compute jackknife intervals with Student's t.

    Source: B. Efron, R. Tibshirani, An Introduction to the Bootstrap (1993), 11.5. With many
    clusters, groups of them are omitted in turn.
    """
    valid = ~np.isnan(sample.left_out)
    n = valid.sum(axis=0)
    gap = np.where(valid, sample.left_out - means(sample.left_out), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.where(n > 1, np.sqrt((n - 1) / n * (gap * gap).sum(axis=0)), np.nan)
    reach = np.array(
        [
            t_quantile((1 + sample.level) / 2, size - 1) if size > 1 else np.nan
            for size in n.tolist()
        ]
    )
    return Interval(
        np.clip(sample.point - reach * se, *sample.range),
        np.clip(sample.point + reach * se, *sample.range),
        se,
    )


def wilson(sample: Sample) -> Interval:
    """Compute Wilson's score interval of a proportion of independent trials, or a function of it.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference"
    (1927).
    """
    z = normal_quantile((1 + sample.level) / 2)
    of = sample.as_share
    p = np.clip(sample.point if of is None else of.share(sample.point), 0.0, 1.0)
    n = np.where(sample.trials > 0, sample.trials, np.nan)
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = np.clip(middle - reach, 0.0, 1.0), np.clip(middle + reach, 0.0, 1.0)
    # The interval contains the share; at 0 and 1 only rounding says otherwise.
    low, high, se = np.minimum(low, p), np.maximum(high, p), np.sqrt(p * (1 - p) / n)
    if of is None:
        return Interval(low, high, se)
    step = 1e-6  # the slope of the function
    slope = (of.number(p + step) - of.number(p - step)) / (2 * step)
    return Interval(of.number(low), of.number(high), se * slope)


def mean_of_shares(intervals: Interval, share: Array, inside: Array) -> tuple[Array, Interval]:
    """Means of independent shares and their intervals, from the intervals of the shares.

    Source: G. Y. Zou, A. Donner, "Construction of confidence limits about effect measures: a
    general approach" (2008). It covers better than resamples: see docs/intervals.md.

    Args:
        intervals: of shares, float64 [n, m] each.
        share: float64 [n, m].
        inside: bool [n, m], shares that are averaged.

    Returns:
        float64 [n] each, NaN without any.
    """
    many = inside.sum(axis=1)

    def norm(part: Array) -> Array:
        return np.asarray(np.sqrt((np.where(inside, part, 0.0) ** 2).sum(axis=1)) / many)

    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(inside, share, 0.0).sum(axis=1) / many
        low, high, se = (
            norm(share - intervals.lower),
            norm(intervals.upper - share),
            norm(intervals.se),
        )
    return mean, Interval(mean - low, mean + high, se)


def effective_trials(
    p: Array | float,
    n: Array | float,
    between: Array | float,
    z: float,
    t: Array | float,
    fixed: Array | float,
) -> Array:
    """Number of independent trials whose share varies as much as one of weighted clusters.

    Source: E. Korn, B. Graubard, "Confidence intervals for proportions with small expected number
    of positive counts estimated from survey data" (1998): p (1 - p) / variance, at most n, and
    adjusted by (z / t)^2 for few clusters.

    Args:
        p: shares.
        n: largest number of trials.
        between: variances of the shares between clusters.
        z: normal quantile.
        t: quantiles of Student's t by the number of clusters.
        fixed: number of trials if the variance is 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        varying = np.minimum(p * (1 - p) / np.asarray(between), n)
        trials = np.where(np.asarray(between) > 0, varying, fixed)
    return np.asarray(trials * (z / t) ** 2)


NOT_MOVED = "no resample changes the number"
"""Reason why a number has no interval."""
EXACT = "exact interval, of Clopper and Pearson; tables show Wilson's"
"""Reason shown with gates that use ``surely`` on a proportion."""


def clopper_pearson(share: float, trials: int, level: float) -> tuple[float, float]:
    """Compute the exact interval of a proportion of independent trials, for gates with ``surely``.

    Source: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in
    the case of the binomial" (1934). Effective numbers of trials may be fractions: E. Korn,
    B. Graubard, "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data" (1998).
    """
    right, tail = share * trials, (1 - level) / 2
    if abs(right - round(right)) < 1e-6 * max(1.0, right):
        right = float(round(right))
    low = beta_quantile(tail, right, trials - right + 1) if right else 0.0
    high = beta_quantile(1 - tail, right + 1, trials - right) if right < trials else 1.0
    return low, high


def one_sided_p(
    value: float,
    bound: float,
    end: float,
    level: float,
    trials: float | None = None,
    units: float | None = None,
    *,
    above: bool,
) -> float:
    """Return the one-sided p of a number that is above (or below) a bound.

    Exact for proportions. Otherwise studentised: the standard error is the one that the end of the
    interval on the side of the bound implies, so that p and the interval agree at its level.

    Args:
        end: lower end of the interval if ``above``, otherwise the upper one.
        level: of the interval.
        trials: (effective) number of trials of a proportion.
        units: effective number of datums or clusters; Student's t if they are few.
    """
    if trials:
        right = value * trials
        if above:
            return beta_cdf(bound, right, trials - right + 1) if right > 0 else 1.0
        return 1 - beta_cdf(bound, right + 1, trials - right) if right < trials else 1.0
    gap = value - bound if above else bound - value
    reach = value - end if above else end - value
    if reach <= 0:
        return 0.0 if gap > 0 else 1.0
    if (df := degrees_of_freedom(units)) is not None:
        return 1 - t_cdf(t_quantile((1 + level) / 2, df) * gap / reach, df)
    return _NORMAL.cdf(-normal_quantile((1 + level) / 2) * gap / reach)


def tango(n: Array, gained: Array, lost: Array, level: float) -> tuple[Array, Array]:
    """Compute score intervals of differences (gained - lost) / n of two shares of the same datums.

    Source: T. Tango, "Equivalence test and confidence interval for the difference in proportions
    for the paired-sample design" (1998).

    Args:
        n: float64 [m], datums.
        gained: float64 [m], datums that only the second share counts.
        lost: float64 [m], those that only the first counts.
    """
    z = normal_quantile((1 + level) / 2)
    n = np.where(n > 0, n, np.nan)

    def score(change: Array) -> Array:
        """Standardised gap between the difference and a hypothetical one, falling in it."""
        b = (2 * n - gained + lost) * change - gained - lost
        root = np.sqrt(np.maximum(b * b + 8 * n * lost * change * (1 - change), 0.0))
        variance = n * ((root - b) / (2 * n) + change * (1 - change))
        gap = gained - lost - n * change
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(gap == 0, 0.0, gap / np.sqrt(np.maximum(variance, 0.0)))

    point, bounds = (gained - lost) / n, []
    for end in (-1.0, 1.0):
        inside, outside = point, np.full(point.shape, end)
        for _ in range(60):
            middle = (inside + outside) / 2
            within = np.abs(score(middle)) <= z
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
        bounds.append(np.where(np.isnan(n), np.nan, inside))
    return bounds[0], bounds[1]


def delong(sample: Sample) -> Interval:
    """Compute DeLong's interval of an area under a ROC curve, on the logit scale.

    Areas of 0 and 1 and those of a single positive or negative have Newcombe's interval. Sources:
    E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson, "Comparing the areas under two or more
    correlated receiver operating characteristic curves" (1988); M. Pepe, The Statistical Evaluation
    of Medical Tests for Classification and Prediction (2003), 5.2; R. Newcombe, "Confidence
    intervals for an effect size measure based on the Mann-Whitney statistic. Part 2" (2006),
    method 5.
    """
    shape = 3, sample.point.size
    variance, positives, negatives = np.broadcast_to(sample.variance, shape)
    smaller = np.minimum(positives, negatives)
    z = np.fmax(
        few_units_t(sample.level, sample.units, sample.point.size),
        few_units_t(sample.level, smaller, sample.point.size, below=_MANY),
    )
    bounds = _on_logits(sample, np.sqrt(variance), z)
    small = np.flatnonzero(~(variance > 0) & ~np.isnan(positives * negatives))
    if small.size:
        some = newcombe(sample.point[small], sample.level, positives[small], negatives[small])
        for every_bound, small_bounds in zip(bounds, some, strict=True):
            every_bound[small] = small_bounds
    return bounds


def logit(sample: Sample) -> Interval:
    """Compute DeLong's interval if it is known, otherwise one from standard errors of resamples.

    Both are on the logit scale.
    """
    exact = delong(sample)
    if not sample.drawn.shape[0]:
        return exact
    drawn = _on_logits(sample, standard_errors(sample.drawn), sample.z)
    defined = ~np.isnan(exact.lower)
    return Interval(*(np.where(defined, *pair) for pair in zip(exact, drawn, strict=True)))


def _on_logits(sample: Sample, se: Array, z: Array) -> Interval:
    """Intervals of z standard errors on the logit scale, of numbers in (0, 1); NaN at 0 and 1."""
    p = sample.point
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = (p > 0) & (p < 1)
        odds = np.log(p / (1 - p))
        reach = z * se / (p * (1 - p))
        bounds = [
            np.where(inside, 1 / (1 + np.exp(-end)), np.nan) for end in (odds - reach, odds + reach)
        ]
    return Interval(bounds[0], bounds[1], se)


def log(sample: Sample) -> Interval:
    """Compute normal intervals of the logarithm, of numbers above 0 without an upper end."""
    se = standard_errors(sample.drawn)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(sample.point > 0, np.exp(sample.z * se / sample.point), np.nan)
        return Interval(sample.point / factor, sample.point * factor, se)


def newcombe(a: Array, level: float, positives: Array, negatives: Array) -> Interval:
    """Compute Newcombe's interval of areas: it inverts Hanley and McNeil's variance."""
    z = normal_quantile((1 + level) / 2)
    pairs, many = positives * negatives, (positives + negatives) / 2 - 1

    def variance(area: Array) -> Array:
        spread = 1 + many * ((1 - area) / (2 - area) + area / (1 + area))
        return np.asarray(area * (1 - area) * spread / pairs)

    bounds = []
    for end in (0.0, 1.0):
        inside, outside = a, np.full(a.shape, end)
        for _ in range(60):
            middle = (inside + outside) / 2
            within = (a - middle) ** 2 <= z * z * variance(middle)
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
        bounds.append(inside)
    return Interval(bounds[0], bounds[1], np.sqrt(variance(a)))


class Method(msgspec.Struct, frozen=True):
    """An interval method.

    Attributes:
        make: computes the intervals of a sample.
        draws: needs resamples.
        leaves_out: needs jackknife values.
        absent: why some numbers have no such interval; empty if all can have one.
    """

    make: Callable[[Sample], Interval]
    draws: bool = True
    leaves_out: bool = False
    absent: str = ""


def none(sample: Sample) -> Interval:
    """Return no intervals, for numbers that follow from tests."""
    nothing = np.full(sample.point.size, np.nan)
    return Interval(nothing, nothing, nothing)


METHODS: dict[str, Method] = {
    "percentile": Method(percentile),
    "recentred": Method(recentred),
    "normal": Method(normal),
    "bca": Method(
        bca,
        leaves_out=True,
        absent="all resamples are on one side of the number, for which bca has no correction",
    ),
    "jackknife": Method(jackknife, draws=False, leaves_out=True),
    "wilson": Method(
        wilson, draws=False, absent="Wilson's interval is one of proportions of datums"
    ),
    "logit": Method(logit, absent=NOT_MOVED),
    "log": Method(log, absent="numbers of 0 and below have no logarithm"),
    "delong": Method(
        delong, draws=False, absent="DeLong's interval is one of areas under unweighted ROC curves"
    ),
    "none": Method(none, draws=False, absent="ranks have no interval"),
}
"""Kinds of intervals by the name that the option ``method`` knows them by."""


class Closed(msgspec.Struct, frozen=True):
    """An interval in closed form, which also exists if no resample moves the number.

    Attributes:
        applies: numbers that have it, bool [m].
        make: computes it.
        methods: methods whose place it takes; others only if no resample moves the number.
        default: it takes the place of every metric's default.
    """

    applies: Callable[[Sample], Array]
    make: Callable[[Sample], Interval]
    methods: tuple[str, ...] = ()
    default: bool = False


CLOSED = (
    Closed(lambda sample: ~np.isnan(sample.variance[1]), delong, ("logit", "delong")),
    Closed(lambda sample: ~np.isnan(sample.mean[0]), lambda one: Interval(*one.mean), default=True),
    Closed(lambda sample: sample.trials > 0, wilson, ("wilson",), default=True),
)
"""Intervals in closed form; a later one takes precedence."""
