"""Errors over those of the naive forecast in training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....tally.paired_values import Paired
from .parts import NUMBERS, mean_of, metric, ratio

if TYPE_CHECKING:
    from ..settings import Settings

Array = np.ndarray[Any, Any]

NO_SCALE = "a scale is 0"


def _absolute(rows: Paired, settings: Settings) -> Array:
    return ratio(np.abs(rows.error), rows.beside["scale"])


def _squared(rows: Paired, settings: Settings) -> Array:
    return ratio(rows.error**2, rows.beside["squared_scale"])


METRICS = (
    metric(
        "MASE",
        "mean of |prediction - target| / scale, where the column scale has the mean absolute error"
        " of the naive forecast in the training part of the row's series",
        "Hyndman & Koehler 2006, Another look at measures of forecast accuracy",
        mean_of("scaled", _absolute, NO_SCALE),
        aliases=("mase", "mean_absolute_scaled_error"),
        needs=(*NUMBERS, "scale"),
        reads=("scale",),
        formula=r"\frac{1}{n} \sum_i \frac{|p_i - t_i|}{s_i}",
    ),
    metric(
        "RMSSE",
        "square root of the mean of (prediction - target)^2 / squared_scale, where that column has"
        " the mean squared error of the naive forecast in training",
        "Makridakis et al. 2022, M5 accuracy competition",
        mean_of("scaled_squares", _squared, NO_SCALE, root=True),
        aliases=("rmsse", "root_mean_squared_scaled_error"),
        needs=(*NUMBERS, "squared_scale"),
        reads=("squared_scale",),
        formula=r"\sqrt{\frac{1}{n} \sum_i \frac{(p_i - t_i)^2}{s_i^2}}",
    ),
)
