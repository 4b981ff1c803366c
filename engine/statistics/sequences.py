"""Numbers over nights: confidence sequences, and the changes that they prove."""

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


class SequenceState(NamedTuple):
    """Confidence sequence as of a night.

    Attributes:
        bounds: None before the sequence begins.
        n: number of datums; None if each night counts as one value.
        reason: the data it is over, or why there is none yet.
    """

    bounds: Limits | None
    n: int | None
    reason: str


def look(nights: Sequence[Night], level: float) -> SequenceState:
    """Compute the confidence sequence over nights.

    It is a betting sequence over datums if the number is a mean over them in every night, and if
    nights do not differ by more than chance; otherwise an asymptotic one over the nights' numbers.
    Nights that differ keep the betting sequence until the latter begins.

    Args:
        level: in (0, 1).
    """
    if not nights:
        return SequenceState(None, None, "no night has a value")
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
            return SequenceState(bounds, n, reason)
    if len(nights) < FIRST:
        return SequenceState(None, None, f"{len(nights)} of the {FIRST} nights it begins with")
    bounds = asymptotic(np.array([one.value for one in nights]), level)
    if several:  # a mean of values, whose range is known
        bounds = max(bounds[0], nights[0].limits[0]), min(bounds[1], nights[0].limits[1])
    reason = f"over the numbers of {t}{several}"
    if bounds[0] == bounds[1]:
        return SequenceState(None, None, f"{reason}, which are all the same")
    return SequenceState(bounds, None, reason)


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


# Changes of a number between the nights of a job, by confidence sequences.

LEAST = 3
"""Nights on each side of a change of shares of datums."""
MOST_CELLS = 100_000
"""Numbers x nights up to which values of datums are used; beyond, each night is one value."""
_LARGEST_DF = 200
_STEP = 1.35


class Change(NamedTuple):
    """Change of a number.

    Attributes:
        at: first night with the new level.
        seen: first night at which the change was certain.
        before, after: means of the nights from the previous change to this one, and from this one
            to the next.
    """

    at: int
    seen: int
    before: float
    after: float


def are_few(values: Array, trials: Array | None = None) -> Array:
    """Return the numbers with too few nights for any change to be named, bool [numbers].

    Args:
        values, trials: as for :func:`changes`.
    """
    defined = ~np.isnan(values)
    shares: Array = np.zeros(len(values), bool)
    if trials is not None and values.size <= MOST_CELLS:
        unknown: Array = defined & np.isnan(trials)
        shares = unknown.sum(axis=1) == 0
    needed: Array = 2 * np.where(shares, LEAST, FIRST)
    counts: Array = defined.sum(axis=1)
    return counts < needed


def changes(values: Array, trials: Array | None = None, level: float = 0.95) -> list[list[Change]]:
    """Find the nights at which numbers changed.

    A change is named once the confidence sequence of the nights before it and that of the nights
    since exclude each other. Both are the sequences of gates with ``always``: betting over datums
    for shares of datums whose nights do not differ by more than chance, otherwise asymptotic over
    the nights' numbers, from the tenth night on each side. The sequence that begins at night k has
    1 / (k (k + 1)) of half of the errors, k rounded down to a power of two, divided by that power.
    So all looks at all nights together name a change of a number that never changed with a
    probability of at most 1 - level, and all numbers together too. After a change the search
    starts again. Its night is the one that separates the nights best (least squares).

    Args:
        values: float64 [numbers, nights]; NaN if missing.
        trials: datums of each value if it is a share of independent datums, NaN otherwise.
        level: in (0, 1).

    Returns:
        the changes of each number, in order.
    """
    alpha = (1 - level) / max(1, len(values))
    shares = trials is not None and values.size <= MOST_CELLS
    every: list[list[Change]] = []
    searched = _first_of_numbers(values, alpha) if len(values) > 1 else None
    for i, row in enumerate(values):
        n = trials[i] if trials is not None and shares else np.full(row.shape, np.nan)
        defined = np.flatnonzero(~np.isnan(row))
        row, n = row[defined], n[defined]
        of_datums = bool(n.size) and bool((n > 0).all())
        if not of_datums and searched is not None and searched[i] < 0:
            every.append([])
            continue
        every.append(_changes_of(row, n if of_datums else None, alpha, defined))
    return every


def _changes_of(values: Array, trials: Array | None, alpha: float, present: Array) -> list[Change]:
    starts, seen = [0], []
    while True:
        start = starts[-1]
        n = None if trials is None else trials[start:]
        at = _first_change(values[start:], n, alpha)
        if at is None:
            break
        starts.append(start + at[0])
        seen.append(start + at[1])
    if len(starts) == 1:
        return []
    weights = np.ones(values.size) if trials is None else trials
    stops = [*starts[1:], values.size]
    means = [
        float(np.average(values[a:b], weights=weights[a:b]))
        for a, b in zip(starts, stops, strict=True)
    ]
    return [
        Change(int(present[at]), int(present[last]), means[i], means[i + 1])
        for i, (at, last) in enumerate(zip(starts[1:], seen, strict=True))
    ]


def _first_change(values: Array, trials: Array | None, alpha: float) -> tuple[int, int] | None:
    """Return the first change and the night at which it was certain; None without one."""
    alpha = alpha if trials is None else alpha / 2  # for both sequences
    last = [_certain_number(values, alpha, trials)]
    if trials is not None:
        last.append(_certain_share(values, trials, alpha))
    certain = [one for one in last if one >= 0]
    if not certain:
        return None
    seen = min(certain)
    x = values[: seen + 1] - values[0]  # sums of squares of large numbers lose digits
    n = np.ones(x.size) if trials is None else trials[: seen + 1]
    before = np.cumsum(n * x)[:-1], np.cumsum(n)[:-1]
    after = (n * x).sum() - before[0], n.sum() - before[1]
    between = before[0] ** 2 / before[1] + after[0] ** 2 / after[1]
    return int(between.argmax()) + 1, seen


def _windows(nights: int, least: int) -> list[int]:
    """Numbers of latest nights that are compared with those before."""
    windows: list[int] = []
    w = float(least)
    while w <= nights - 1:
        if not windows or int(w) > windows[-1]:
            windows.append(int(w))
        w = max(w * _STEP, int(w) + 1)
    return windows


def _power(k: Array) -> Array:
    return np.floor(np.log2(np.maximum(k, 1)) + 1e-12)


def _alpha_of(power: float, alpha: float) -> float:
    """Errors of a sequence that begins at a night between two powers of two."""
    return alpha / 2 / ((power + 1) * (power + 2)) / 2.0**power


# Numbers of nights.


def _reaches(nights: int, alpha: float) -> Array:
    """The reach after each number of nights, at most that of exact numbers around it."""
    exact = sorted({*range(FIRST, min(nights, 64) + 1), *_windows(nights + 1, FIRST), nights})
    exact = [t for t in exact if t >= FIRST]
    reaches = np.full(nights + 1, np.inf)
    at = [reach_of(t, alpha, min(t - 1, _LARGEST_DF)) for t in exact]
    for i, low in enumerate(exact):
        reaches[low] = at[i]
        reaches[low + 1 : exact[min(i + 1, len(exact) - 1)]] = max(at[i : i + 2])
    return reaches


def _first_of_numbers(values: Array, alpha: float) -> Array:
    """First certain night of each number, in its defined nights; -1 without one."""
    first_certain = np.full(len(values), -1)
    missing = np.isnan(values)
    packed = np.take_along_axis(values, np.argsort(missing, axis=1, kind="stable"), axis=1)
    size = max(1, 2_000_000 // max(1, values.shape[1]))
    for first in range(0, len(values), size):
        chunk = slice(first, first + size)
        first_certain[chunk] = _certain(packed[chunk], alpha)
    return first_certain


def _certain(values: Array, alpha: float) -> Array:
    """First night at which some window differs from the nights before it, per row; -1 if none.

    Args:
        values: float64 [numbers, nights], NaN only at the end.
    """
    numbers, nights = values.shape
    first_certain = np.full(numbers, nights)
    if nights < 2 * FIRST:
        return np.full(numbers, -1)
    centred = np.nan_to_num(values - values[:, :1], nan=np.inf)
    sums = np.zeros((2, numbers, nights + 1))
    with np.errstate(invalid="ignore"):
        np.cumsum(centred, axis=1, out=sums[0, :, 1:])
        np.cumsum(centred**2, axis=1, out=sums[1, :, 1:])
    forward = _reaches(nights, alpha / 2)
    powers = range(int(_power(np.array(nights))) + 1)
    for w in _windows(nights - FIRST + 1, FIRST):
        k = np.arange(FIRST, nights - w + 1)
        df = min(w - 1, _LARGEST_DF)
        back = np.array([reach_of(w, _alpha_of(power, alpha), df) for power in powers])
        reach = back[_power(k).astype(int)]
        with np.errstate(invalid="ignore"):
            mean, error, still = _moments(sums[:, :, k], k)
            mean_after, error_after, still_after = _moments(sums[:, :, k + w] - sums[:, :, k], w)
            gap = np.abs(mean_after - mean) - forward[k] * error - reach * error_after
            certain = (gap > 0) & (still == still_after) & np.isfinite(gap)
            certain &= ~still | (np.abs(mean_after - mean) > 1e-12)
        seen = np.where(certain.any(axis=1), certain.argmax(axis=1) + FIRST + w - 1, nights)
        first_certain = np.minimum(first_certain, seen)
    return np.where(first_certain < nights, first_certain, -1)


def _moments(sums: Array, n: Array | int) -> tuple[Array, Array, Array]:
    """Mean and its standard error, and whether all values are equal."""
    mean = sums[0] / n
    square = sums[1] - sums[0] * mean
    still = square <= 1e-12 * np.maximum(sums[1], 1e-12)
    error = np.sqrt(np.where(still, 0.0, square) / (n * (n - 1.0)))
    return mean, error, still


def _certain_number(values: Array, alpha: float, trials: Array | None) -> int:
    """As :func:`_certain` of one number; shares of datums only if their nights differ."""
    last = int(_certain(values[None, :], alpha)[0]) if values.size >= 2 * FIRST else -1
    if last >= 0 and trials is not None and not differ(_counts(values[:last], trials[:last])):
        return -1
    return last


# Shares of datums.


def _counts(values: Array, trials: Array) -> Array:
    """Counts of datums at :data:`POINTS`, as nights have them."""
    counts = np.zeros((values.size, POINTS.size))
    counts[:, -1] = values * trials
    counts[:, 0] = trials - counts[:, -1]
    return counts


def _log_capital(right: Array, wrong: Array, mean: Array) -> Array:
    """Logarithm of the capital of bets that shares are above ``mean``; see ``log_capital``."""
    right, wrong, mean = (np.asarray(one, float)[..., None] for one in (right, wrong, mean))
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.where(wrong > 0, wrong * np.log1p(-STAKES), 0.0)
        logs = right * np.log1p(STAKES * (1 - mean) / mean) + lost
    most = logs.max(axis=-1)
    return most + np.log(np.exp(logs - most[..., None]) @ CAPITAL)


def _lower_bounds(right: Array, wrong: Array, log_least: float) -> Array:
    """Largest share whose capital reaches a limit."""
    inside, outside = np.zeros(right.shape), np.ones(right.shape)
    for _ in range(40):
        middle = (inside + outside) / 2
        enough = _log_capital(right, wrong, middle) >= log_least
        inside, outside = np.where(enough, middle, inside), np.where(enough, outside, middle)
    return inside


def _certain_share(values: Array, trials: Array, alpha: float) -> int:
    """First night at which the shares of some latest nights differ from those before; -1."""
    nights = values.size
    if nights < 2 * LEAST:
        return -1
    counts = _counts(values, trials)
    right = np.concatenate([[0.0], np.cumsum(counts[:, -1])])
    wrong = np.concatenate([[0.0], np.cumsum(counts[:, 0])])
    log_least = math.log(2 / (alpha / 2))
    upper = np.concatenate([[1.0], 1 - _lower_bounds(wrong[1:], right[1:], log_least)])
    lower = np.concatenate([[0.0], _lower_bounds(right[1:], wrong[1:], log_least)])
    certain: list[tuple[int, int]] = []
    for w in _windows(nights - LEAST + 1, LEAST):
        k = np.arange(LEAST, nights - w + 1)
        least = np.array([math.log(2 / _alpha_of(power, alpha)) for power in _power(k).tolist()])
        r, f = right[k + w] - right[k], wrong[k + w] - wrong[k]
        with np.errstate(divide="ignore", invalid="ignore"):
            rose = (upper[k] < 1) & (_log_capital(r, f, np.minimum(upper[k], 1 - 1e-12)) >= least)
            fell = (lower[k] > 0) & (
                _log_capital(f, r, np.minimum(1 - lower[k], 1 - 1e-12)) >= least
            )
        certain += [(int(one) + w - 1, int(one)) for one in k[rose | fell]]
    for seen, at in sorted(certain):
        if not differ(counts[:at]) and not differ(counts[at : seen + 1]):
            return seen
    return -1
