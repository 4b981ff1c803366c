"""Errors over those of the naive forecast in training."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ....kernels.sums import ExactSums
from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.paired_values import Paired, PairedView
from ..dialects import SERIES
from .parts import NUMBERS, Loss, cells, mean_of, metric, ratio, times_drawn, weighted_sum

if TYPE_CHECKING:
    from ..settings import Settings


NO_SCALE = "a scale is 0"
_LARGE = 2.0**500


def _absolute(rows: Paired, settings: Settings) -> Array:
    return ratio(np.abs(rows.error), rows.beside["scale"])


def _squared(rows: Paired, settings: Settings) -> Array:
    error, scale = np.abs(rows.error), rows.beside["squared_scale"]
    down = np.where(error > _LARGE, 1 / _LARGE, 1.0)
    return ratio((error * down) ** 2, scale * down * down)


def _by_series(loss: Loss, *, root: bool = False) -> Any:
    """The mean over series of each one's mean, or of its square root."""

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        def mean(rows: Paired, weight: Array | None) -> float:
            values = loss(rows, settings)
            if np.isnan(values).any():
                return math.nan
            names, code = np.unique(rows.beside[SERIES], return_inverse=True)
            times = times_drawn(rows, weight)
            own = np.ones(values.size) if weight is None else weight
            total, size, drawn, many = (
                ExactSums(names.size).add(one, code).rounded()
                for one in (values * own, own, times, np.ones(values.size))
            )
            each, often = total / size, drawn / many
            return weighted_sum(np.sqrt(each) if root else each, often) / weighted_sum(often, None)

        return cells(view, view.by_cell(mean), NO_SCALE)

    return compute


_FROM = ("training", "seasonality")
_WHERE = (
    "from the column of this name, or the option training: mean {} difference of values seasonality"
    " steps apart in the training part of the row's series"
)

METRICS = (
    metric(
        "MASE",
        "mean of |prediction - target| / scale, " + _WHERE.format("absolute"),
        "Hyndman & Koehler 2006, Another look at measures of forecast accuracy",
        mean_of("scaled", _absolute, NO_SCALE),
        aliases=("mase", "mean_absolute_scaled_error"),
        needs=(*NUMBERS, "scale"),
        reads=("scale",),
        params=_FROM,
        formula=r"\frac{1}{n} \sum_i \frac{|p_i - t_i|}{s_i}",
    ),
    metric(
        "RMSSE",
        "square root of the mean of (prediction - target)^2 / squared_scale, "
        + _WHERE.format("squared"),
        "Makridakis et al. 2022, M5 accuracy competition",
        mean_of("scaled_squares", _squared, NO_SCALE, root=True),
        aliases=("rmsse", "root_mean_squared_scaled_error"),
        needs=(*NUMBERS, "squared_scale"),
        reads=("squared_scale",),
        params=_FROM,
        formula=r"\sqrt{\frac{1}{n} \sum_i \frac{(p_i - t_i)^2}{s_i^2}}",
    ),
    metric(
        "SeriesMASE",
        "mean over series of MASE of each, as competitions have it; MASE itself weighs rows alike",
        "Makridakis et al. 2020, The M4 Competition",
        _by_series(_absolute),
        needs=(*NUMBERS, SERIES, "scale"),
        reads=(SERIES, "scale"),
        params=_FROM,
        formula=r"\frac{1}{|K|} \sum_{k \in K} \frac{1}{n_k} \sum_{i \in k}"
        r" \frac{|p_i - t_i|}{s_i}",
    ),
    metric(
        "SeriesRMSSE",
        "mean over series of RMSSE of each, all series alike",
        "Makridakis et al. 2022, M5 accuracy competition",
        _by_series(_squared, root=True),
        needs=(*NUMBERS, SERIES, "squared_scale"),
        reads=(SERIES, "squared_scale"),
        params=_FROM,
        formula=r"\frac{1}{|K|} \sum_{k \in K} \sqrt{\frac{1}{n_k} \sum_{i \in k}"
        r" \frac{(p_i - t_i)^2}{s_i^2}}",
    ),
)
