"""Errors in the unit of the target."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ....kernels.sums import errors_between
from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.paired_values import Paired, PairedView
from .parts import SCIKIT, cells, mean_of, metric, moment_mean, own_quantile

if TYPE_CHECKING:
    from ..settings import Settings


_SAMPLE = 2048  # errors that say between which bounds the median surely is, nearly always
_SPREAD = 80  # places of the sample on either side of its own median: 3.5 standard deviations


def _median_error(rows: Paired, weight: Array | None, settings: Settings) -> float:
    """Median of |prediction - target|."""
    n = rows.target.size
    if weight is None and n > 16 * _SAMPLE:
        some = rows.chosen(slice(None, None, n // _SAMPLE))
        sample = np.sort(np.abs(some.error))
        middle = sample.size // 2
        bounds = float(sample[middle - _SPREAD]), float(sample[middle + _SPREAD])
        below, found = errors_between(rows.target, rows.prediction, *bounds, n // 4)
        first, last = (n - 1) // 2 - below, n // 2 - below
        if found is not None and first >= 0 and last < found.size:
            found.partition((first, last))
            return float((found[first] + found[last]) / 2 if first < last else found[first])
    error = rows.error
    return own_quantile(np.abs(error, out=error), weight, 0.5, settings, spent=True)


def _huber(rows: Paired, settings: Settings) -> Array:
    size, delta = np.abs(rows.error), settings.huber_delta
    return np.where(size <= delta, size**2 / 2, delta * (size - delta / 2))


def _log_cosh(rows: Paired, settings: Settings) -> Array:
    size = np.abs(rows.error)
    near = np.log1p(2 * np.sinh(np.minimum(size, 1) / 2) ** 2)  # keeps the digits of small errors
    grown: Array = np.where(size < 1, near, size + np.log1p(np.exp(-2 * size)) - math.log(2))
    return grown


def _median(view: PairedView, settings: Settings) -> list[Cells]:
    value = view.by_cell(lambda rows, weight: _median_error(rows, weight, settings))
    return cells(view, value, "")


def _largest(view: PairedView, settings: Settings) -> list[Cells]:
    return cells(view, view.largest_error, "")


METRICS = (
    metric(
        "MAE",
        "mean of |prediction - target|",
        f"{SCIKIT} mean_absolute_error",
        moment_mean("absolute"),
        aliases=("mae", "mean_absolute_error", "MeanAbsoluteError"),
        formula=r"\frac{1}{n} \sum_i |p_i - t_i|",
    ),
    metric(
        "MSE",
        "mean of (prediction - target)^2",
        f"{SCIKIT} mean_squared_error",
        moment_mean("squared"),
        aliases=("mse", "mean_squared_error", "MeanSquaredError"),
        formula=r"\frac{1}{n} \sum_i (p_i - t_i)^2",
    ),
    metric(
        "RMSE",
        "square root of MSE, of each target by itself",
        f"{SCIKIT} root_mean_squared_error",
        moment_mean("squared", root=True),
        aliases=("rmse", "root_mean_squared_error"),
        formula=r"\sqrt{\frac{1}{n} \sum_i (p_i - t_i)^2}",
    ),
    metric(
        "MeanError",
        "mean of prediction - target, the bias: above 0 where predictions are too high",
        "Walther & Moore 2005, The concepts of bias, precision and accuracy",
        moment_mean("error"),
        aliases=("ME", "MBE", "mean_bias_error"),
        better="neither",
        range=(-math.inf, math.inf),
        formula=r"\frac{1}{n} \sum_i (p_i - t_i)",
    ),
    metric(
        "MedianAE",
        "median of |prediction - target|; with weights the value at half of their sum, the mean of"
        " two where it falls between them",
        f"{SCIKIT} median_absolute_error",
        _median,
        aliases=("MedAE", "median_absolute_error"),
        formula=r"\text{median}_i\, |p_i - t_i|",
    ),
    metric(
        "MaxError",
        "largest |prediction - target| of the rows that have weight",
        f"{SCIKIT} max_error",
        _largest,
        aliases=("max_error",),
        formula=r"\max_i |p_i - t_i|",
    ),
    metric(
        "Huber",
        "mean of e^2 / 2 where |e| <= huber_delta, else huber_delta * (|e| - huber_delta / 2)",
        "Huber 1964, Robust estimation of a location parameter",
        mean_of("huber", _huber),
        aliases=("huber_loss",),
        params=("huber_delta",),
        formula=r"\frac{1}{n} \sum_i \begin{cases} e_i^2 / 2 & |e_i| \le \delta \\ \delta\,"
        r" (|e_i| - \delta / 2) & \text{else} \end{cases}, \quad e_i = p_i - t_i",
    ),
    metric(
        "LogCosh",
        "mean of log cosh (prediction - target)",
        "Saleh & Saleh 2022, Statistical properties of the log-cosh loss function",
        mean_of("log_cosh", _log_cosh),
        aliases=("log_cosh", "log_cosh_error"),
        formula=r"\frac{1}{n} \sum_i \ln \cosh(p_i - t_i)",
    ),
)
