"""One number of a run within some datums and in all others, and whether they differ by luck."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from ..metrics.registry import Metric
from ..plan.summary import Computed, Tallied
from ..schemas.arrays import Array
from ..schemas.errors import ResultError
from ..schemas.intervals import Wanted
from ..schemas.wording import option
from ..tally.cells import Cells
from .drawn import Drawing, column_of, places
from .intervals import METHODS, Sample
from .quantiles import normal_cdf


class Held(msgspec.Struct, frozen=True):
    """Comparison of a slice with all other datums.

    Attributes:
        value: number within the slice, NaN if undefined.
        lower: lower bound of its interval.
        upper: upper bound.
        elsewhere: number over all other datums.
        p: two-sided, normal test of the difference, with its standard deviation over resamples; NaN
            if undefined.
    """

    value: float
    lower: float
    upper: float
    elsewhere: float
    p: float


def leading(tallied: Tallied) -> Metric:
    """Return the metric used to compare slices: the first that gives one number per run.

    Counts are skipped, since they grow with the number of datums.

    Raises:
        ResultError: all metrics of the run are by label, counts, or without a better direction.
    """
    plan, group = tallied.plan, np.zeros(len(tallied.tallies.datums), np.int32)
    able = [
        metric
        for metric in plan.metrics
        if metric.frame == "metrics" and metric.compute is not None and not metric.counts
        and plan.dialect.better.get(metric.name, metric.better) != "neither"
    ]  # fmt: skip
    if able:
        view = plan.does.view(tallied.tallies, plan.settings, group, 1, threads=tallied.threads)
    for metric in able:
        assert metric.compute is not None
        if _of_all(metric.compute(view, plan.settings_of(metric))) is not None:
            return metric
    named = ", ".join(metric.name for metric in plan.metrics)
    raise ResultError(
        f"no metric of the run ({named}) is one number of a whole run that is better one way:"
        f" name one that is in {option('metrics')}.",
        code="metric_unfit",
    )


def _of_all(cells: Sequence[Cells]) -> int | None:
    """The place of the first cells that are of all labels together."""
    return next((i for i, one in enumerate(cells) if "label" not in one.axes), None)


def hold(tallied: Tallied, metric: Metric, inside: Array, among: Array, asked: Wanted) -> Held:
    """Return a slice's number with its interval, and its difference from the other datums.

    Args:
        tallied: run in memory or loaded, datums with keys.
        metric: its first number of a whole run is used; see :func:`leading`.
        inside: bool [n_datums], the slice.
        among: bool [n_datums], datums that count.
        asked: interval options.

    Raises:
        ResultError: the metric has no resamples.
    """
    plan, threads = tallied.plan, tallied.threads
    group = np.where(among, np.where(inside, 0, 1), -1).astype(np.int32)
    view = plan.does.view(tallied.tallies, plan.settings, group, 2, threads=threads)
    settings = plan.settings_of(metric)
    assert metric.compute is not None
    cells = metric.compute(view, settings)
    first = _of_all(cells)
    assert first is not None
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
    return Held(
        value, float(found.lower[0]), float(found.upper[0]), elsewhere, _p(pair, value - elsewhere)
    )


def _p(pair: Array, shown: float) -> float:
    """Return the two-sided p of a difference, from its resamples.

    Only their standard deviation is used. Their mean is biased: few datums raise interpolated
    precision, and slices are smaller than the rest.
    """
    difference = pair[:, 0] - pair[:, 1]
    difference = difference[~np.isnan(difference)]
    if difference.size < 2 or math.isnan(shown):
        return math.nan
    spread = float(difference.std(ddof=1))
    if spread == 0.0:
        return math.nan if shown == 0.0 else 0.0
    return float(2 * normal_cdf(np.array([-abs(shown) / spread]))[0])
