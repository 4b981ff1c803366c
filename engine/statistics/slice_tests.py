"""One number of a run within some datums and in all others, and whether they differ by luck."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from ..metrics.registry import Metric
from ..plan.planner import Plan
from ..plan.summary import Computed, Tallied
from ..schemas.errors import ResultError
from ..schemas.intervals import Wanted
from .drawn import Drawing, column_of, places
from .intervals import METHODS, Sample
from .quantiles import normal_cdf

Array = np.ndarray[Any, Any]


class Held(msgspec.Struct, frozen=True):
    """A slice held against all other datums.

    Attributes:
        value: of the number within the slice, NaN where undefined.
        lower: low end of its interval.
        upper: high end.
        elsewhere: of the number in all other datums.
        p: that draws of the same datums show no difference, two-sided, by the normal distribution
            of the difference; NaN where there is none.
    """

    value: float
    lower: float
    upper: float
    elsewhere: float
    p: float


def leading(plan: Plan) -> Metric:
    """The metric that slices are held by: the first that makes one number of a whole run.

    Raises:
        ResultError: all metrics of the run are by label, or no numbers.
    """
    for metric in plan.metrics:
        if metric.frame == "metrics" and metric.compute is not None and metric.better != "neither":
            return metric
    raise ResultError("no metric of the run says which of two numbers is better.")


def hold(tallied: Tallied, metric: Metric, inside: Array, among: Array, asked: Wanted) -> Held:
    """A slice's number with its interval, and its difference from the rest of the datums.

    Args:
        tallied: the run, held or loaded, datums with keys.
        metric: whose first number is meant.
        inside: bool [n_datums], the slice.
        among: bool [n_datums], the datums that count.
        asked: level, draws, seed and method.

    Raises:
        ResultError: the metric makes no number for whole groups of datums.
    """
    plan, threads = tallied.plan, tallied.threads
    group = np.where(among, np.where(inside, 0, 1), -1).astype(np.int32)
    view = plan.does.view(tallied.tallies, plan.settings, group, 2, threads=threads)
    settings = plan.settings_of(metric)
    assert metric.compute is not None
    cells = metric.compute(view, settings)
    first = next((i for i, one in enumerate(cells) if "label" not in one.axes), None)
    if first is None:
        raise ResultError(
            f"{metric.name} is a number of single labels; name a metric of whole runs."
        )
    computed: Computed = (metric, settings, cells)
    drawing = Drawing(plan, tallied.tallies, threads)
    (drawn,) = drawing.values(
        view, [computed], drawing.by_chance([computed], asked.draws, asked.seed)
    )
    if isinstance(drawn, str):
        raise ResultError(f"{metric.name} of slices: {drawn}.")
    before = sum(places(one).size for one in cells[:first])
    shown, values = places(cells[first]), column_of(cells[first], "value")
    each = values.size // 2
    pair = np.full((drawn.shape[0], 2), np.nan)
    for g in range(2):
        at = np.flatnonzero(shown == g * each)
        if at.size:
            pair[:, g] = drawn[:, before + at[0]]
    value, elsewhere = float(values[0]), float(values[each])
    method = METHODS[asked.method or metric.interval]
    none = np.full(1, np.nan)
    found = method.make(
        Sample(
            point=np.array([value]),
            level=asked.level,
            range=metric.range,
            drawn=pair[:, :1],
            left_out=np.zeros((0, 1)),
            trials=none,
            variance=none,
        )
    )
    return Held(value, float(found.lower[0]), float(found.upper[0]), elsewhere, _p(pair))


def _p(pair: Array) -> float:
    """Two-sided p of a difference, from its draws."""
    difference = pair[:, 0] - pair[:, 1]
    difference = difference[~np.isnan(difference)]
    if difference.size < 2:
        return math.nan
    spread = float(difference.std(ddof=1))
    middle = float(difference.mean())
    if spread == 0.0:
        return math.nan if middle == 0.0 else 0.0
    return float(2 * normal_cdf(np.array([-abs(middle) / spread]))[0])
