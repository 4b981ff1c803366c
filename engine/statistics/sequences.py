"""Confidence sequences: intervals that hold however often they are looked at."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..evaluation import planner
from ..evaluation.summary import Tallied
from ..ingest.problems import count_of
from ..schemas.arrays import Array
from .comparing import IDENTITY, Single, singles_of
from .intervals import normal_cdf, normal_quantile, t_quantile
from .paired import Slices, shared_codes

Limits = tuple[float, float]

# A betting sequence, over values of datums with a finite range.

POINTS = np.linspace(0.0, 1.0, 21)
"""Values that are counted, as shares of the range."""
STAKES = 0.5 ** np.arange(16)
"""Bets, as shares of the largest possible one."""
CAPITAL = 1 / (np.arange(16) + 2.0)
CAPITAL /= CAPITAL.sum()
"""Capital at the start of each bet. Large bets decide about few values, small ones about many."""


def counted(values: Array, limits: Limits) -> list[float]:
    """Count values at :data:`POINTS`, keeping their number and sum.

    A value between two points is split over both. The logarithm is concave, so this never raises
    the capital of a bet: the sequence stays valid.

    Args:
        values: float64 [n], without NaN.
        limits: their range.

    Returns:
        a number per point.
    """
    low, high = limits
    last = POINTS.size - 1
    place = np.clip((values - low) / (high - low), 0.0, 1.0) * last
    nearest = np.rint(place)
    place = np.where(np.abs(place - nearest) < 1e-9, nearest, place)
    below = np.minimum(place.astype(np.int64), last - 1)
    above = place - below
    counts = np.bincount(below, 1 - above, last + 1) + np.bincount(below + 1, above, last + 1)
    return [float(count) for count in counts]


def betting(counts: Array, level: float, limits: Limits = (0.0, 1.0)) -> Limits:
    """Compute the betting confidence sequence of a mean, after any number of values.

    A gambler bets that the mean is higher (or lower) than a given one. Each bet is a fixed share of
    the largest possible one, and the capital is the sum over the shares. Means whose capital
    reaches 2 / alpha are excluded. By Ville's inequality this ever happens to the true mean with a
    probability of at most alpha. The capital depends only on counts, not on the order of values.

    Source: I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting"
    (2024): diversified Kelly betting, hedged with 1/2.

    Args:
        counts: float64 [21], result of :func:`counted`.
        level: 1 - alpha, in (0, 1).
        limits: range of the values.
    """
    low, high = limits
    least = math.log(2 / (1 - level))
    lower, upper = _least_mean(counts, least), 1 - _least_mean(counts[::-1], least)
    return low + (high - low) * lower, low + (high - low) * upper


def log_capital(counts: Array, mean: float) -> float:
    """Logarithm of the capital of bets that the mean is above ``mean``, in (0, 1)."""
    observed = counts > 0
    with np.errstate(divide="ignore"):
        won = np.log1p(STAKES[:, None] * (POINTS[observed] - mean) / mean)
    logs = won @ counts[observed]
    most = logs.max()
    return float(most + np.log(np.exp(logs - most) @ CAPITAL))


def _least_mean(counts: Array, least: float) -> float:
    """Largest mean whose capital reaches a limit; the capital falls in the mean. 0 if none does."""
    inside, outside = 0.0, 1.0
    for _ in range(60):
        middle = (inside + outside) / 2
        if log_capital(counts, middle) >= least:
            inside = middle
        else:
            outside = middle
    return inside


def differ(nights: Array) -> bool:
    """Return whether the means of nights differ by more than chance, at p = 0.001.

    Chi-square test against the variance within nights, with the approximation of E. Wilson,
    M. Hilferty, "The distribution of chi-square" (1931).

    Args:
        nights: float64 [nights, 21], counts of values.
    """
    n = nights.sum(axis=1)
    nights, n = nights[n > 0], n[n > 0]
    df = n.size - 1
    if df < 1:
        return False
    means, overall = nights @ POINTS / n, nights.sum(axis=0) @ POINTS / n.sum()
    within = float((nights @ POINTS**2 - n * means**2).sum())
    between = float((n * (means - overall) ** 2).sum())
    if within <= 0:
        return between > 0
    ratio = between / df / (within / max(1.0, n.sum() - n.size))
    z = (ratio ** (1 / 3) - (1 - 2 / (9 * df))) / math.sqrt(2 / (9 * df))
    return z > normal_quantile(0.999)


# An asymptotic sequence, over numbers of nights.

FIRST = 10
"""Number of nights from which the asymptotic sequence is used; with fewer it errs too often."""
PLANNED = 30
"""Number of nights for which it is narrowest."""


def asymptotic(values: Array, level: float) -> Limits:
    """Compute the asymptotic confidence sequence of the mean of independent numbers.

    Source: I. Waudby-Smith et al., "Time-uniform central limit theory and asymptotic confidence
    sequences" (2024, arXiv 2103.06476), theorem 2.2, with the best parameter for
    :data:`PLANNED` numbers. The normal quantile that it amounts to is replaced by Student's, since
    the standard deviation is estimated from few numbers.

    Args:
        values: float64 [t], two or more.
        level: 1 - alpha, in (0, 1).
    """
    t = values.size
    reach = reach_of(t, 1 - level, t - 1)
    mean, se = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(t)
    return mean - reach * se, mean + reach * se


@lru_cache(maxsize=4096)
def reach_of(t: int, alpha: float, df: int) -> float:
    """Half of the width of the asymptotic sequence of t numbers, in standard errors."""
    rho = (-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / PLANNED
    room = t * rho + 1
    z = math.sqrt(2 * room / (t * rho) * math.log(math.sqrt(room) / alpha))
    return t_quantile(normal_cdf(np.array(z)).item(), df)


# The sequence of a number over the nights of a job.


class Night(msgspec.Struct, frozen=True):
    """Observation of a number, or of its difference to a baseline, in one night.

    Attributes:
        value: the number.
        counts: counts of the values of datums whose mean it is, see :func:`counted`; None if it is
            no mean of values with a finite range over independent datums.
        limits: range of the values.
        finished: time of the run, ISO 8601.
        digest: of the run's tables; may be empty.
    """

    value: float
    counts: list[float] | None = None
    limits: Limits = (0.0, 1.0)
    finished: str = ""
    digest: str = ""


def without_repeats(nights: Mapping[str, Night]) -> dict[str, Night]:
    """Keep the latest night of those over the same data."""
    latest = {
        night.digest or name: name
        for name, night in sorted(nights.items(), key=lambda item: item[1].finished)
    }
    return {name: nights[name] for name in nights if name in latest.values()}


class Looked(NamedTuple):
    """Confidence sequence as of a night.

    Attributes:
        ends: None before the sequence begins.
        n: number of datums; None if each night counts as one value.
        reason: the data it is over, or why there is none yet.
    """

    ends: Limits | None
    n: int | None
    reason: str


def look(nights: Sequence[Night], level: float) -> Looked:
    """Compute the confidence sequence over nights.

    It is a betting sequence over datums if the number is a mean over them in every night, and if
    nights do not differ by more than chance; otherwise an asymptotic one over the nights' numbers.
    Nights that differ keep the betting sequence until the latter begins.

    Args:
        level: in (0, 1).
    """
    if not nights:
        return Looked(None, None, "no night has a value")
    t, several = count_of(len(nights), "night"), ""
    if all(one.counts is not None and one.limits == nights[0].limits for one in nights):
        counts = np.array([one.counts for one in nights])
        several = ", which differ by more than chance" if differ(counts) else ""
        if not several or len(nights) < FIRST:
            n, bounds = (
                round(float(counts.sum())),
                betting(counts.sum(axis=0), level, nights[0].limits),
            )
            reason = f"over {count_of(n, 'datum')} of {t}{several}"
            if several:
                reason += f"; from {FIRST} nights on, each counts as one value"
            return Looked(bounds, n, reason)
    if len(nights) < FIRST:
        return Looked(None, None, f"{len(nights)} of the {FIRST} nights it begins with")
    bounds = asymptotic(np.array([one.value for one in nights]), level)
    if several:  # a mean of values, whose range is known
        bounds = max(bounds[0], nights[0].limits[0]), min(bounds[1], nights[0].limits[1])
    reason = f"over the numbers of {t}{several}"
    if bounds[0] == bounds[1]:
        return Looked(None, None, f"{reason}, which are all the same")
    return Looked(bounds, None, reason)


class DatumValues:
    """Values of single datums whose means are numbers of a run.

    Args:
        run: datums are independent.
        metrics: names of the metrics.
        earlier: run over the same datums, whose values are subtracted; None without one.
    """

    def __init__(
        self, run: Tallied, metrics: Collection[str], earlier: Tallied | None = None
    ) -> None:
        common = run.plan.does.common
        of_task = None if common is None else common.ranges
        ranges = {
            metric.name: metric.range if of_task is None else of_task(run.tallies, metric)
            for metric in run.plan.metrics
            if metric.name in metrics and not metric.counts
        }
        self._ranges = {
            name: bounds for name, bounds in ranges.items() if np.isfinite(bounds).all()
        }
        n = len(run.tallies.datums)
        runs = {"run": (run, np.arange(n, dtype=np.int32))}
        if earlier is not None:
            of_earlier, of_run, n = shared_codes(earlier, run)
            runs = {"run": (run, of_run), "earlier": (earlier, of_earlier)}
        code = runs["run"][1]
        self._slices = Slices(run, code, n, IDENTITY)
        self._singles: list[Single] = []
        if (code < 0).any() or any(one.tallies.weighted for one, _ in runs.values()):
            return
        self._ranges = {name: self._ranges[name] for name in _means(run, self._ranges)}
        if self._ranges:
            self._singles = [
                singles_of(_narrowed(one, self._ranges), of, n)[0] for one, of in runs.values()
            ]

    def night(self, row: Mapping[str, Any], earlier: float | None = None) -> Night:
        """Observe a number, or its difference to an earlier run's.

        Args:
            row: of the metrics frame, with a value.
            earlier: number of the earlier run.
        """
        number = row["value"]
        night = Night(number - (earlier or 0.0))
        singles = self._slices.of(tuple(row[name] for name in IDENTITY), *self._singles)
        if row["metric"] not in self._ranges or not singles or len(singles) < len(self._singles):
            return night
        defined = ~np.isnan(singles).any(axis=0)
        of_run, *of_earlier = (values[defined] for values in singles)
        for values, mean in zip((of_run, *of_earlier), (number, earlier), strict=False):
            if not abs(_mean(values) - mean) <= _ROUNDING:
                return night
        low, high = self._ranges[row["metric"]]
        if of_earlier:
            of_run, low, high = of_run - of_earlier[0], low - high, high - low
        return Night(night.value, counted(of_run, (low, high)), (low, high))


_ROUNDING = 1e-9
_SOME = 200  # datums by which metrics are ruled out before values of all datums are computed


def _means(run: Tallied, metrics: Collection[str]) -> set[str]:
    """Return the metrics that may be means of values of datums, judged by the first few datums."""
    if not metrics:
        return set()
    run = _narrowed(run, metrics)
    at = np.arange(len(run.tallies.datums), dtype=np.int32)
    n = min(_SOME, at.size)
    single, _ = singles_of(run, np.where(at < n, at, -1), n)
    overall, _ = singles_of(run, np.where(at < n, 0, -1), 1)
    return {
        identity[0]
        for identity, values in single.items()
        if not abs(_mean(values) - float(overall[identity][0])) > _ROUNDING
    }


def _mean(values: Array) -> float:
    """Mean of the defined values; NaN without any."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else math.nan


def _narrowed(run: Tallied, metrics: Collection[str]) -> Tallied:
    return msgspec.structs.replace(run, plan=planner.narrowed(run.plan, [*metrics]))
