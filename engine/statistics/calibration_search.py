"""Calibration of a run, and what a temperature or an isotonic fit would make of it.

A fit that is judged on the rows it was made of flatters itself. So each is also made on one half of
the datums, told apart by a hash of their ids, and its scores looked at on the other, both ways.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import numpy as np

from ..executors import Threads
from ..metrics.calibration import (
    Bins,
    Isotonic,
    Told,
    bins_of,
    ece_of,
    fitted_isotonic,
    fitted_temperature,
    heated,
    told_by,
)
from ..plan.planner import Plan
from ..schemas.intervals import Wanted
from ..tally.draws import Draws
from .threshold_search import interval

Array = np.ndarray[Any, Any]

_BLOCK = 16  # draws whose weights are made together

FITS = ("temperature", "isotonic")


class Calibrated(msgspec.Struct, frozen=True):
    """What was found at one level; arrays [s].

    Attributes:
        shown: bool, what makes rows.
        bins: of the scores as they are.
        ends: low and high ends of the interval of ECE, [2, s]; NaN without draws.
        temperature: fitted to all datums.
        isotonic: of every segment, fitted to all datums; None where there is no row.
        fitted: ECE of each of :data:`FITS` on the datums it was fitted to.
        held_out: ECE of each, made on either half and looked at on the other.
    """

    shown: Array
    bins: Bins
    ends: Array
    temperature: Array
    isotonic: list[Isotonic | None]
    fitted: dict[str, Array]
    held_out: dict[str, Array]


def calibrate(
    plan: Plan, tallies: Any, threads: Threads, n_bins: int, asked: Wanted
) -> tuple[Calibrated, Calibrated]:
    """Calibration of every label, and of all labels of a key as one.

    Args:
        plan: what was tallied; its settings say at which IoU.
        tallies: the task's, datums with keys.
        threads: draws are computed side by side.
        n_bins: equal bins of scores from 0 to 1.
        asked: level, draws and seed.
    """
    does, settings = plan.does, plan.settings
    assert does.curve is not None
    whole = does.view(tallies, settings, threads=threads)
    group = tallies.datums.halves(asked.seed)
    halves = does.view(tallies, settings, group=group, n_groups=2, threads=threads)
    made = []
    for pooled in (False, True):
        curve = does.curve(whole, settings, pooled=pooled)
        told = told_by(curve)
        bins = bins_of(told, n_bins)
        ends = np.full((2, bins.n.shape[0]), np.nan)
        if tallies.datums.keys is not None:
            drawn = _drawn(plan, tallies, whole, threads, n_bins, asked, pooled, ends.shape[1])
            ends = interval(drawn, bins.expected, asked, "recentred", (0.0, 1.0))
        of_halves = told_by(does.curve(halves, settings, pooled=pooled))
        fits = [_fit(told, of_halves, s, n_bins) for s in range(ends.shape[1])]
        temperature, isotonic, fitted, held = zip(*fits, strict=True)
        made.append(
            Calibrated(
                curve.shown(),
                bins,
                ends,
                np.array(temperature),
                list(isotonic),
                dict(zip(FITS, np.array(fitted).T, strict=True)),
                dict(zip(FITS, np.array(held).T, strict=True)),
            )
        )
    return made[0], made[1]


def _by_temperature(of: Told, score: Array) -> Array:
    return heated(score, fitted_temperature(of))


def _by_isotonic(of: Told, score: Array) -> Array:
    return fitted_isotonic(of).of(score)


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
        ece_of(own.instead(heated(own.score, temperature)), n_bins),
        ece_of(own.instead(isotonic.of(own.score)), n_bins),
    ]
    both = [halves.of(segment + half * (told.start.size - 1)) for half in range(2)]
    if not all(half.score.size for half in both):
        return temperature, isotonic, here, none
    held = []
    for fit in (_by_temperature, _by_isotonic):
        parts = [fit(both[1 - h], both[h].score) for h in range(2)]
        together = Told(
            np.array([0, sum(part.size for part in parts)]),
            np.concatenate(parts),
            np.concatenate([half.right for half in both]),
            np.concatenate([half.n for half in both]),
        )
        held.append(ece_of(together, n_bins))
    return temperature, isotonic, here, held


def _drawn(
    plan: Plan,
    tallies: Any,
    whole: Any,
    threads: Threads,
    n_bins: int,
    asked: Wanted,
    pooled: bool,
    n: int,
) -> Array:
    """ECE in every draw, float64 [draws, s]."""
    out = np.full((asked.draws, n), np.nan)

    def block(first: int) -> None:
        last = min(first + _BLOCK, asked.draws)
        weights = Draws(asked.seed, first, last, tallies.datums.keys).weights
        for d in range(first, last):
            assert plan.does.one_draw is not None
            assert plan.does.curve is not None
            view = plan.does.one_draw(whole, weights[:, d - first].astype(np.int64))
            told = told_by(plan.does.curve(view, plan.settings, pooled=pooled))
            out[d] = bins_of(told, n_bins).expected

    threads.each([partial(block, first) for first in range(0, asked.draws, _BLOCK)])
    return out
