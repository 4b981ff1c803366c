"""Curves of a run in every resample, and intervals of numbers read from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..executors import Threads
from ..metrics.thresholds import Curve
from ..plan.planner import Plan
from ..schemas.arrays import Array
from ..schemas.intervals import FEW_CLUSTERS, LEAST_DRAWS, Wanted
from ..schemas.wording import option
from ..tally.draws import Draws
from .intervals import METHODS, Sample


def notes_on(tallies: Any, *, cut: bool) -> list[str]:
    """Return the notes on all numbers read from curves.

    Args:
        cut: see :class:`..metrics.thresholds.Curve`.
    """
    said = []
    if cut:
        said.append(
            f"the run was scored with {option('thresholds')}: predictions below are left out, and"
            " nothing lower was looked at."
        )
    if (keys := tallies.datums.keys) is None:
        if tallies.weighted:
            said.append(
                "no intervals: in bounded memory scores lie in files, beside them either weights of"
                " rows or keys of draws."
            )
    elif (clusters := np.unique(keys).size) < FEW_CLUSTERS:
        said.append(f"intervals rest on {clusters} datums or clusters: they are often too narrow.")
    return said


_BLOCK = 16  # draws whose weights are made together


def curves_of(plan: Plan, view: Any) -> tuple[Curve, Curve]:
    """The curves of a view: of every label, and of all labels of a key as one."""
    of = plan.does.curve
    assert of is not None
    return of(view, plan.settings, pooled=False), of(view, plan.settings, pooled=True)


def in_every_draw(
    plan: Plan,
    tallies: Any,
    whole: Any,
    threads: Threads,
    asked: Wanted,
    see: Callable[[int, tuple[Curve, Curve]], None],
) -> bool:
    """Call ``see`` with the curves of every resample; return False if there are no resamples.

    Args:
        tallies: the task's, datums with keys.
        whole: the view of all datums.
        threads: ``see`` is called concurrently.
        asked: draws and seed.
        see: receives the index of a resample, and its curves.
    """
    one_draw, of_files = plan.does.one_draw, plan.does.drawn_curves
    assert one_draw is not None
    if tallies.datums.keys is None:
        for first in range(0, asked.draws, _BLOCK):
            draws = Draws(asked.seed, first, min(first + _BLOCK, asked.draws), None)
            drawn = None if of_files is None else of_files(whole, plan.settings, draws)
            if drawn is None:
                return False
            for d, curves in enumerate(drawn, first):
                see(d, curves)
        return True

    def block(first: int) -> None:
        last = min(first + _BLOCK, asked.draws)
        weights = Draws(asked.seed, first, last, tallies.datums.keys).weights
        for d in range(first, last):
            see(d, curves_of(plan, one_draw(whole, weights[:, d - first].astype(np.int64))))

    threads.each([partial(block, first) for first in range(0, asked.draws, _BLOCK)])
    return True


def interval(
    drawn: Array,
    point: Array,
    asked: Wanted,
    method: str = "percentile",
    range: tuple[float, float] = (-np.inf, np.inf),
) -> Array:
    """Return the bounds of the interval, float64 [2, s].

    NaN if the number is undefined or too few resamples define it, as for every other number.
    """
    many = (~np.isnan(drawn)).sum(axis=0)
    none = np.full(point.size, np.nan)
    found = METHODS[method].make(
        Sample(
            point=point,
            level=asked.level,
            range=range,
            drawn=drawn,
            left_out=np.zeros((0, point.size)),
            trials=none,
            variance=none,
        )
    )
    ends = np.stack([found.lower, found.upper])
    ends[:, np.isnan(point) | (many < max(LEAST_DRAWS, asked.draws // 10))] = np.nan
    return ends
