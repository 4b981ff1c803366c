"""Search for score thresholds of a run, with intervals and held-out numbers.

A threshold looks better on the rows it was chosen on. Each rule therefore also chooses on one half
of the datums (split by a hash of ids) and is tested on the other, then the reverse; both halves
together give the held-out numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..executors import Threads
from ..metrics.aims import Aims
from ..metrics.thresholds import Chosen, Curve, Reached, Rule, reached, walk
from ..plan.planner import Plan
from ..schemas.arrays import Array
from ..schemas.intervals import Wanted
from .curve_draws import curves_of, in_every_draw, interval

RATES = ("precision", "recall", "fpr", "f")
"""Numbers of a threshold that have an interval, in addition to the threshold."""


class Found(msgspec.Struct, frozen=True):
    """Result of a rule, per label or per key with labels pooled; arrays [s].

    Attributes:
        threshold: NaN for none.
        unscored: bool, there was no candidate.
        here: rates of the threshold on the datums it was chosen on.
        held_out: rates of thresholds chosen on one half and tested on the other.
        intervals: bounds [2, s] for ``threshold`` (chosen again per resample) and for :data:`RATES`
            (at the chosen threshold); None without resamples.
    """

    threshold: Array
    unscored: Array
    here: Reached
    held_out: Reached
    intervals: dict[str, Array] | None


class Searched(msgspec.Struct, frozen=True):
    """Results at one level.

    Attributes:
        shown: bool [s], segments that become rows.
        positives: float64 [s].
        exclusive: see :class:`..metrics.thresholds.Curve`.
        cut: same.
        found: results of every rule.
    """

    shown: Array
    positives: Array
    exclusive: bool
    cut: bool
    found: list[Found]


def search(
    plan: Plan, tallies: Any, threads: Threads, rules: Sequence[Rule], aims: Aims, asked: Wanted
) -> tuple[Searched, Searched]:
    """Choose thresholds by every rule.

    Args:
        plan: its settings contain the IoU threshold.
        tallies: the task's, datums with keys.
        threads: used for resamples.
        aims: targets of the rules.
        asked: interval options.

    Returns:
        results per label, and per key with labels pooled.
    """
    does, settings = plan.does, plan.settings
    whole = does.view(tallies, settings, threads=threads)
    group = tallies.datums.halves(asked.seed)
    halves = does.view(tallies, settings, group=group, n_groups=2, threads=threads)
    curves = curves_of(plan, whole)
    chosen = [walk(curve, rules, aims)[0] for curve in curves]
    held = [
        _held_out(half, rules, aims, curve)
        for half, curve in zip(curves_of(plan, halves), curves, strict=True)
    ]
    drawn = _drawn(plan, tallies, whole, threads, rules, aims, asked, chosen)
    made = []
    for level, curve in enumerate(curves):
        found = []
        for r, one in enumerate(chosen[level]):
            here = reached(one.tp, one.fp, curve.positives, curve.negatives, aims)
            ends = None
            if drawn is not None:
                points = {"threshold": one.threshold} | {n: getattr(here, n) for n in RATES}
                ends = {
                    name: interval(drawn[level][:, r, i], point, asked)
                    for i, (name, point) in enumerate(points.items())
                }
            found.append(Found(one.threshold, one.unscored, here, held[level][r], ends))
        made.append(Searched(curve.shown(), curve.positives, curve.exclusive, curve.cut, found))
    return made[0], made[1]


def _held_out(curve: Curve, rules: Sequence[Rule], aims: Aims, whole: Curve) -> list[Reached]:
    """Return the rates of thresholds chosen on each half and tested on the other; NaN without one.

    Args:
        curve: curves of the halves, all of the first before all of the second.
        whole: curve of all datums.
    """
    chosen, _ = walk(curve, rules, aims)
    others = [np.roll(one.threshold, one.threshold.size // 2) for one in chosen]
    _, counted = walk(curve, [], aims, others)
    made = []
    for tp, fp in counted:
        true, false = (one.reshape(2, -1).sum(axis=0) for one in (tp, fp))
        made.append(reached(true, false, whole.positives, whole.negatives, aims))
    return made


def _drawn(
    plan: Plan,
    tallies: Any,
    whole: Any,
    threads: Threads,
    rules: Sequence[Rule],
    aims: Aims,
    asked: Wanted,
    chosen: list[list[Chosen]],
) -> list[Array] | None:
    """Return threshold and rates per resample, float64 [draws, rules, 1 + rates, s] for each level.

    None without resamples.
    """
    fixed = [[one.threshold for one in level] for level in chosen]
    shape = asked.draws, len(rules), 1 + len(RATES)
    out = [np.full((*shape, level[0].size), np.nan) for level in fixed]

    def see(d: int, curves: tuple[Curve, Curve]) -> None:
        for level, (at, curve) in enumerate(zip(fixed, curves, strict=True)):
            anew, counted = walk(curve, rules, aims, at)
            for r, (one, (tp, fp)) in enumerate(zip(anew, counted, strict=True)):
                rates = reached(tp, fp, curve.positives, curve.negatives, aims)
                out[level][d, r] = [one.threshold, *(getattr(rates, n) for n in RATES)]

    there = in_every_draw(plan, tallies, whole, threads, asked, see)
    return out if there else None
