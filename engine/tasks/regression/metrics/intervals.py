"""Predicted intervals: whether they hold the target, and how wide they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....tally.paired_values import Paired
from .parts import mean_of, metric

if TYPE_CHECKING:
    from ..settings import Settings

Array = np.ndarray[Any, Any]

_ENDS = ("lower", "upper")


def _ends(rows: Paired) -> tuple[Array, Array]:
    return rows.beside["lower"], rows.beside["upper"]


def _held(rows: Paired, settings: Settings) -> Array:
    low, high = _ends(rows)
    inside: Array = ((low <= rows.target) & (rows.target <= high)).astype(np.float64)
    return inside


def _width(rows: Paired, settings: Settings) -> Array:
    low, high = _ends(rows)
    width: Array = high - low
    return width


def _winkler(rows: Paired, settings: Settings) -> Array:
    low, high = _ends(rows)
    outside = np.maximum(low - rows.target, 0) + np.maximum(rows.target - high, 0)
    score: Array = high - low + 2 / (1 - settings.interval_level) * outside
    return score


METRICS = (
    metric(
        "Coverage",
        "share of targets from lower to upper, both included",
        "Gneiting & Raftery 2007, Strictly proper scoring rules",
        mean_of("held", _held),
        aliases=("PICP", "interval_coverage"),
        needs=_ENDS,
        reads=_ENDS,
        better="neither",
        range=(0.0, 1.0),
    ),
    metric(
        "IntervalWidth",
        "mean of upper - lower",
        "Gneiting & Raftery 2007, Strictly proper scoring rules",
        mean_of("width", _width),
        aliases=("MPIW", "mean_interval_width"),
        needs=_ENDS,
        reads=_ENDS,
    ),
    metric(
        "Winkler",
        "mean of upper - lower + 2 / (1 - interval_level) times how far the target is outside",
        "Winkler 1972, A decision-theoretic approach to interval estimation",
        mean_of("winkler", _winkler),
        aliases=("winkler_score", "IntervalScore", "interval_score"),
        needs=_ENDS,
        reads=_ENDS,
        params=("interval_level",),
    ),
)
