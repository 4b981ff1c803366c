"""Metrics of predicted intervals: coverage and width."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.paired_values import Paired, PairedView
from ..dialects import INTERVALS, intervals_of
from .parts import at_level, mean_of, metric

if TYPE_CHECKING:
    from ..settings import Settings


def _held(target: Array, low: Array, high: Array, level: float) -> Array:
    inside: Array = ((low <= target) & (target <= high)).astype(np.float64)
    return inside


def _width(target: Array, low: Array, high: Array, level: float) -> Array:
    width: Array = high - low
    return width


def _winkler(target: Array, low: Array, high: Array, level: float) -> Array:
    outside = np.maximum(low - target, 0) + np.maximum(target - high, 0)
    score: Array = high - low + 2 / (1 - level) * outside
    return score


def winkler(rows: Paired, settings: Settings) -> Array:
    """Winkler's score of each row, the mean of it over several intervals."""
    scores = [
        _winkler(
            rows.target,
            rows.beside[low],
            rows.beside[high],
            settings.interval_level if level is None else level,
        )
        for low, high, level in intervals_of(rows.beside)
    ]
    mean: Array = np.mean(scores, axis=0)
    return mean


def _each(
    name: str, number: Callable[[Array, Array, Array, float], Array], *, leveled: bool = False
) -> Any:
    """Define a metric: a mean over rows for every pair of bounds.

    Args:
        name: cache key of the sums.
        number: computes the value of each row from targets, both bounds, and the level.
        leveled: the number depends on the level, which is then reported in the rows.
    """

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        made: list[Cells] = []
        every = intervals_of(view.whole.beside)
        named = {level for *_, level in every}
        for low, high, level in every:

            def loss(
                rows: Paired,
                settings: Settings,
                ends: tuple[str, str] = (low, high),
                level: float | None = level,
            ) -> Array:
                first, second = (rows.beside[end] for end in ends)
                own = settings.interval_level if level is None else level
                return number(rows.target, first, second, own)

            found = mean_of(f"{name} {low}", loss)(view, settings)
            told = level
            if leveled and level is None and settings.interval_level not in named:
                told = settings.interval_level
            made += found if told is None else at_level(found, level=told)
        return made

    return compute


_READ: dict[str, Any] = {"needs": ("target", INTERVALS), "reads": ("lower", "upper", "lo", "hi")}

METRICS = (
    metric(
        "Coverage",
        "share of targets from lower to upper, both included",
        "Gneiting & Raftery 2007, Strictly proper scoring rules",
        _each("held", _held),
        aliases=("PICP", "interval_coverage"),
        **_READ,
        better="neither",
        range=(0.0, 1.0),
        formula=r"\frac{1}{n} \sum_i [l_i \le t_i \le u_i]",
    ),
    metric(
        "IntervalWidth",
        "mean of upper - lower",
        "Gneiting & Raftery 2007, Strictly proper scoring rules",
        _each("width", _width),
        aliases=("MPIW", "mean_interval_width"),
        **_READ,
        formula=r"\frac{1}{n} \sum_i (u_i - l_i)",
    ),
    metric(
        "Winkler",
        "mean of upper - lower + 2 / (1 - level) times how far the target is outside; the level"
        " is in the columns' names, or is interval_level",
        "Winkler 1972, A decision-theoretic approach to interval estimation",
        _each("winkler", _winkler, leveled=True),
        aliases=("winkler_score", "IntervalScore", "interval_score"),
        **_READ,
        params=("interval_level",),
        formula=r"\frac{1}{n} \sum_i \left(u_i - l_i + \frac{2}{1 - \lambda} \left(\max(l_i -"
        r" t_i, 0) + \max(t_i - u_i, 0)\right)\right)",
    ),
)
