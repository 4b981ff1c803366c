"""Calibration of a run, before and after temperature scaling or isotonic regression.

Fits are optimistic on the rows they were fitted to. Each is therefore also fitted on one half of
the datums (split by a hash of ids) and tested on the other, then the reverse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from ..executors import Threads
from ..metrics.calibration import (
    Bins,
    Isotonic,
    Told,
    bins_by,
    bins_of,
    ece_of,
    fitted_isotonic,
    fitted_temperature,
    heated,
    told_by,
)
from ..metrics.thresholds import Curve
from ..plan.planner import Plan
from ..schemas.arrays import Array
from ..schemas.intervals import Wanted
from .curve_draws import curves_of, in_every_draw, interval

Change = Callable[[Array], Array]
FITS = ("temperature", "isotonic")


class Calibrated(msgspec.Struct, frozen=True):
    """Calibration at one level; arrays [s].

    Attributes:
        shown: bool, segments that become rows.
        cut: see :class:`..metrics.thresholds.Curve`.
        bins: bins of the raw scores.
        ends: lower and upper bound of ECE, [2, s]; NaN without resamples.
        temperature: fitted to all datums.
        isotonic: per segment, fitted to all datums; None without rows.
        fitted: ECE per fit of :data:`FITS`, on the datums of the fit.
        held_out: ECE per fit, fitted on one half and tested on the other.
    """

    shown: Array
    cut: bool
    bins: Bins
    ends: Array
    temperature: Array
    isotonic: list[Isotonic | None]
    fitted: dict[str, Array]
    held_out: dict[str, Array]


def calibrate(
    plan: Plan, tallies: Any, threads: Threads, n_bins: int, asked: Wanted
) -> tuple[Calibrated, Calibrated]:
    """Compute the calibration of every label, and of all labels of a key together.

    Args:
        plan: its settings contain the IoU threshold.
        tallies: the task's, datums with keys.
        threads: used for resamples.
        n_bins: equal-width bins of scores in [0, 1].
        asked: interval options.
    """
    does, settings = plan.does, plan.settings
    whole = does.view(tallies, settings, threads=threads)
    group = tallies.datums.halves(asked.seed)
    halves = does.view(tallies, settings, group=group, n_groups=2, threads=threads)
    curves = curves_of(plan, whole)
    sizes = [curve.positives.size for curve in curves]
    drawn = _drawn(plan, tallies, whole, threads, n_bins, asked, sizes)
    made = []
    for level, (curve, half) in enumerate(zip(curves, curves_of(plan, halves), strict=True)):
        scratch = plan.options.scratch
        told, of_halves, n = told_by(curve, scratch), told_by(half, scratch), sizes[level]
        bins = bins_of(told, n_bins)
        ends = np.full((2, n), np.nan)
        if drawn is not None:
            ends = interval(drawn[level], bins.expected, asked, "recentred", (0.0, 1.0))
        fits = [_fit(told, of_halves, s, n_bins) for s in range(n)]
        fitted, held = (
            np.array([one[part] for one in fits]).reshape(n, len(FITS)).T for part in (2, 3)
        )
        made.append(
            Calibrated(
                curve.shown(),
                curve.cut,
                bins,
                ends,
                np.array([one[0] for one in fits], np.float64),
                [one[1] for one in fits],
                dict(zip(FITS, fitted, strict=True)),
                dict(zip(FITS, held, strict=True)),
            )
        )
    return made[0], made[1]


def _by_temperature(of: Told) -> Change:
    temperature = fitted_temperature(of)
    return lambda score: heated(score, temperature)


def _by_isotonic(of: Told) -> Change:
    return fitted_isotonic(of).of


def _fit(
    told: Told, halves: Told, segment: int, n_bins: int
) -> tuple[float, Isotonic | None, list[float], list[float]]:
    """Both fits of one segment: themselves, their ECE on all datums, and held out."""
    none = [float("nan")] * len(FITS)
    own = told.of(segment)
    if not own.score.size or own.score[0] > 1 or own.score[-1] < 0:
        return float("nan"), None, none, none
    temperature, isotonic = fitted_temperature(own), fitted_isotonic(own)
    here = [
        ece_of([own], n_bins, [lambda score: heated(score, temperature)]),
        ece_of([own], n_bins, [isotonic.of]),
    ]
    both = [halves.of(segment + half * (told.start.size - 1)) for half in range(2)]
    if not all(half.score.size for half in both):
        return temperature, isotonic, here, none
    held = [
        ece_of(both, n_bins, [fit(both[1 - h]) for h in range(2)])
        for fit in (_by_temperature, _by_isotonic)
    ]
    return temperature, isotonic, here, held


def _drawn(
    plan: Plan, tallies: Any, whole: Any, threads: Threads, n_bins: int, asked: Wanted, n: list[int]
) -> list[Array] | None:
    """Return ECE per resample, float64 [draws, s] for each level of ``n`` segments, or None."""
    out = [np.full((asked.draws, one), np.nan) for one in n]

    def see(d: int, curves: tuple[Curve, Curve]) -> None:
        for own, curve in zip(out, curves, strict=True):
            own[d] = bins_by(curve, n_bins).expected

    there = in_every_draw(plan, tallies, whole, threads, asked, see)
    return out if there else None
