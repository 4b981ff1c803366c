"""Errors as shares of the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....tally.cells import Cells
from ....tally.paired_values import Paired, PairedView
from .errors import absolute
from .parts import SCIKIT, cells, mean_of, metric, ratio

if TYPE_CHECKING:
    from ..settings import Settings

Array = np.ndarray[Any, Any]

ZERO = "a target is 0"


def _share(rows: Paired, settings: Settings) -> Array:
    size = np.maximum(np.abs(rows.target), settings.rules.least_target)
    return ratio(np.abs(rows.error), size)


def _symmetric(rows: Paired, settings: Settings) -> Array:
    """0 where both are 0: there is no error."""
    size = np.abs(rows.target) + np.abs(rows.prediction)
    return np.where(size == 0, 0.0, ratio(2 * np.abs(rows.error), size))


def _logarithmic(rows: Paired, settings: Settings) -> Array:
    fits = (rows.target > -1) & (rows.prediction > -1)
    apart = np.log1p(np.where(fits, rows.prediction, 0)) - np.log1p(np.where(fits, rows.target, 0))
    return np.where(fits, apart**2, np.nan)


def _weighted(view: PairedView, settings: Settings) -> list[Cells]:
    errors = view.total("absolute", lambda rows, cell: absolute(rows, settings))
    sizes = view.total("size", lambda rows, cell: np.abs(rows.target))
    return cells(view, ratio(errors, sizes), "all targets are 0")


_BELOW = "a target or prediction is -1 or less"

METRICS = (
    metric(
        "MAPE",
        "mean of |prediction - target| / |target|, as a share of 1; undefined where a target is 0,"
        " in dialect sklearn divided by 2.2e-16 there",
        f"{SCIKIT} mean_absolute_percentage_error",
        mean_of("share", _share, ZERO),
        aliases=("mape", "mean_absolute_percentage_error"),
        formula=r"\frac{1}{n} \sum_i \frac{|p_i - t_i|}{|t_i|}",
    ),
    metric(
        "SMAPE",
        "mean of 2 |prediction - target| / (|prediction| + |target|), from 0 to 2; 0 where both"
        " are 0",
        "Makridakis et al. 2020, The M4 Competition",
        mean_of("symmetric", _symmetric),
        aliases=("sMAPE", "symmetric_mean_absolute_percentage_error"),
        range=(0.0, 2.0),
        formula=r"\frac{1}{n} \sum_i \frac{2\, |p_i - t_i|}{|p_i| + |t_i|}",
    ),
    metric(
        "WAPE",
        "sum of |prediction - target| over the sum of |target|",
        "Kolassa & Schuetz 2007, Advantages of the MAD/mean ratio over the MAPE",
        _weighted,
        aliases=("wape", "weighted_absolute_percentage_error", "MADMean"),
        formula=r"\frac{\sum_i |p_i - t_i|}{\sum_i |t_i|}",
    ),
    metric(
        "MSLE",
        "mean of (log (1 + prediction) - log (1 + target))^2; undefined where one is -1 or less",
        f"{SCIKIT} mean_squared_log_error",
        mean_of("logarithmic", _logarithmic, _BELOW),
        aliases=("msle", "mean_squared_log_error"),
        formula=r"\frac{1}{n} \sum_i \left(\ln(1 + p_i) - \ln(1 + t_i)\right)^2",
    ),
    metric(
        "RMSLE",
        "square root of MSLE, of each target by itself",
        f"{SCIKIT} root_mean_squared_log_error",
        mean_of("logarithmic", _logarithmic, _BELOW, root=True),
        aliases=("rmsle", "root_mean_squared_log_error"),
        formula=r"\sqrt{\frac{1}{n} \sum_i \left(\ln(1 + p_i) - \ln(1 + t_i)\right)^2}",
    ),
)
