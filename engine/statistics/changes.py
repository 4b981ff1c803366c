"""Changes of a number between the nights of a job, by confidence sequences."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..schemas.arrays import Array
from .sequences import CAPITAL, FIRST, POINTS, STAKES, differ, reach_of

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
    ends = [*starts[1:], values.size]
    means = [
        float(np.average(values[a:b], weights=weights[a:b]))
        for a, b in zip(starts, ends, strict=True)
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


def _lower_ends(right: Array, wrong: Array, log_least: float) -> Array:
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
    upper = np.concatenate([[1.0], 1 - _lower_ends(wrong[1:], right[1:], log_least)])
    lower = np.concatenate([[0.0], _lower_ends(right[1:], wrong[1:], log_least)])
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
