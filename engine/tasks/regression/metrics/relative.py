"""Errors as shares of the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.paired_values import Paired, PairedView
from .parts import SCIKIT, cells, mean_of, metric, ratio, unscaled

if TYPE_CHECKING:
    from ..settings import Settings


ZERO = "a target is 0"
_LARGE = 2.0**900


def _half(rows: Paired, size: Array) -> tuple[Paired, Array]:
    """Halve rows and sizes whose sum or difference could overflow."""
    if size.max(initial=0.0) <= _LARGE:
        return rows, size
    half = np.where(size > _LARGE, 0.5, 1.0)
    sides = {"target": rows.target * half, "prediction": rows.prediction * half}
    return msgspec.structs.replace(rows, **sides), size * half


def _share(rows: Paired, settings: Settings) -> Array:
    size = np.abs(rows.target)
    if settings.rules.least_target:
        size = np.maximum(size, settings.rules.least_target)
    rows, size = _half(rows, size)
    error = rows.error
    return ratio(np.abs(error, out=error), size)


def _symmetric(rows: Paired, settings: Settings) -> Array:
    """Compute the symmetric relative error; 0 if both are 0."""
    rows, _ = _half(rows, np.maximum(np.abs(rows.target), np.abs(rows.prediction)))
    size = np.abs(rows.target) + np.abs(rows.prediction)
    return np.where(size == 0, 0.0, ratio(np.abs(rows.error), size / 2))


def _logarithmic(rows: Paired, settings: Settings) -> Array:
    fits = (rows.target > -1) & (rows.prediction > -1)
    apart = np.log1p(np.where(fits, rows.prediction, 0)) - np.log1p(np.where(fits, rows.target, 0))
    return np.where(fits, apart**2, np.nan)


def _weighted(view: PairedView, settings: Settings) -> list[Cells]:
    (errors, powers), (sizes, theirs) = view.moment("absolute"), view.moment("size")
    return cells(view, unscaled(ratio(errors, sizes), powers - theirs), "all targets are 0")


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
