"""Functions of ``sklearn.metrics`` for regression."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ...schemas.errors import InputError, invalid
from ...tallies.datums import Labels
from ...tallies.paired_values import Paired, PairedView
from ..arrays import numbers, undefined, weights
from .hard import plan_of

_MULTIOUTPUT = ("raw_values", "uniform_average", "variance_weighted")
_OF_VARIANCE = ("R2", "ExplainedVariance", "D2Tweedie", "D2Pinball", "D2AbsoluteError")
"""Metrics that are undefined for a single row."""


def _sides(y_true: Any, y_pred: Any) -> tuple[Array, Array]:
    """Return both sides, float64 [rows, outputs]."""
    true = numbers("y_true", y_true, dims=(1, 2)).astype(np.float64, copy=False)
    predicted = numbers("y_pred", y_pred, rows=len(true), dims=(1, 2)).astype(
        np.float64, copy=False
    )
    if not len(true):
        raise InputError("y_true has no rows.", code="no_rows")
    true, predicted = (one.reshape(len(one), -1) for one in (true, predicted))
    if true.shape != predicted.shape:
        raise InputError(
            f"y_true has {true.shape[1]} outputs, y_pred {predicted.shape[1]}.",
            code="shapes_differ",
        )
    return true, predicted


def _values(
    metric: str, y_true: Any, y_pred: Any, sample_weight: Any, **options: Any
) -> tuple[Array, Array, Array | None]:
    """Return a metric of every output, the targets, and the weights.

    Raises:
        InputError: the values have no such number, such as a logarithm of -1.
    """
    true, predicted = _sides(y_true, y_pred)
    rows, width = true.shape
    row_weights = weights(sample_weight, rows).get("weight")
    plan = plan_of("regression", (metric,), **options)
    names = pl.Series("label_key", np.arange(width).astype(str))
    row = np.arange(rows, dtype=np.int32).repeat(width)
    paired = Paired(
        datum=row,
        key=np.tile(np.arange(width, dtype=np.int32), rows),
        target=true.ravel(),
        prediction=predicted.ravel(),
        weight=None if row_weights is None else row_weights[row],
        beside={},
    )
    labels = Labels.of(pl.DataFrame([names, names.alias("label_value")]))
    (chosen,) = plan.metrics
    assert chosen.compute is not None
    result = chosen.compute(PairedView(paired, labels, None), plan.settings_of(chosen))[0]
    value, reason = result.columns["value"], result.reason
    assert isinstance(value, np.ndarray)
    assert isinstance(reason, np.ndarray)
    wrong = np.isnan(value[0])
    if wrong.any() and (rows > 1 or metric not in _OF_VARIANCE):
        raise InputError(f"{metric}: {reason[0][wrong][0]}.", code="undefined")
    return value[0], true, row_weights


def _average(value: Array, multioutput: Any, rest: tuple[Array, Array | None] | None = None) -> Any:
    """Average over outputs, as scikit-learn does.

    Args:
        rest: targets and weights of ``variance_weighted``; None if that is not allowed.
    """
    if isinstance(multioutput, str):
        allowed = _MULTIOUTPUT if rest is not None else _MULTIOUTPUT[:2]
        if multioutput not in allowed:
            raise invalid("multioutput", multioutput, f"write one of {', '.join(allowed)}.")
        if multioutput == "raw_values":
            return value
        of_outputs = None
        if multioutput == "variance_weighted" and rest is not None:
            true, weight = rest
            mean = np.average(true, axis=0, weights=weight)
            of_outputs = np.average((true - mean) ** 2, axis=0, weights=weight)
            of_outputs = of_outputs if of_outputs.any() else None
        return float(np.average(value, weights=of_outputs))
    of_outputs = numbers("multioutput", multioutput, rows=value.size)
    return float(np.average(value, weights=of_outputs))


def _few(value: Array, name: str) -> bool:
    """Warn if a score is undefined for one row."""
    if not np.isnan(value).any():
        return False
    undefined(f"{name} is not defined for fewer than two rows.")
    return True


def _mean(name: str, metric: str, description: str) -> Callable[..., Any]:
    """Return the function of a mean; all have the same arguments."""

    def mean(
        y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: Any = "uniform_average"
    ) -> Any:
        return _average(_values(metric, y_true, y_pred, sample_weight)[0], multioutput)

    mean.__name__ = mean.__qualname__ = name
    mean.__doc__ = description
    return mean


mean_absolute_error = _mean("mean_absolute_error", "MAE", "Mean of |prediction - target|.")
mean_squared_error = _mean("mean_squared_error", "MSE", "Mean of (prediction - target)^2.")
root_mean_squared_error = _mean(
    "root_mean_squared_error", "RMSE", "Root of the mean squared error, of each output."
)
mean_squared_log_error = _mean(
    "mean_squared_log_error", "MSLE", "Mean squared difference of log(1 + x)."
)
root_mean_squared_log_error = _mean(
    "root_mean_squared_log_error",
    "RMSLE",
    "Root of the mean squared logarithmic error, of each output.",
)
mean_absolute_percentage_error = _mean(
    "mean_absolute_percentage_error",
    "MAPE",
    "Mean of |prediction - target| / |target|, which is at least 2.2e-16.",
)


def median_absolute_error(
    y_true: Any, y_pred: Any, *, multioutput: Any = "uniform_average", sample_weight: Any = None
) -> Any:
    """Median of |prediction - target|."""
    return _average(_values("MedianAE", y_true, y_pred, sample_weight)[0], multioutput)


def mean_pinball_loss(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    alpha: float = 0.5,
    multioutput: Any = "uniform_average",
) -> Any:
    """Pinball loss of the quantile ``alpha``."""
    value = _values("Pinball", y_true, y_pred, sample_weight, quantile=alpha)[0]
    return _average(value, multioutput)


def _one_output(metric: str, *sides: Any, **options: Any) -> Array:
    value = _values(metric, *sides, **options)[0]
    if value.size > 1:
        raise InputError(f"{metric}: several outputs are not supported.", code="shapes_differ")
    return value


def max_error(y_true: Any, y_pred: Any) -> float:
    """Compute the largest |prediction - target| of one output."""
    return float(_one_output("MaxError", y_true, y_pred, None)[0])


def _explained(name: str, metric: str, description: str) -> Callable[..., Any]:
    """Return the function of a share of the variance."""

    def explained(
        y_true: Any,
        y_pred: Any,
        *,
        sample_weight: Any = None,
        multioutput: Any = "uniform_average",
        force_finite: bool = True,
    ) -> Any:
        value, true, weight = _values(metric, y_true, y_pred, sample_weight)
        if _few(value, metric):
            return math.nan
        if not force_finite:  # 0 / 0 and a number / 0 of constant targets
            counted = true if weight is None else true[weight > 0]
            constant = (counted == counted[0]).all(axis=0)
            value = np.where(constant, np.where(value == 1, math.nan, -math.inf), value)
        return _average(value, multioutput, (true, weight))

    explained.__name__ = explained.__qualname__ = name
    explained.__doc__ = description
    return explained


r2_score = _explained("r2_score", "R2", "Share of the variance that predictions explain.")
explained_variance_score = _explained(
    "explained_variance_score",
    "ExplainedVariance",
    "Share of the variance that predictions explain, apart from a constant offset.",
)


def _deviance(metric: str, y_true: Any, y_pred: Any, sample_weight: Any, **options: Any) -> float:
    return float(_one_output(metric, y_true, y_pred, sample_weight, **options)[0])


def mean_tweedie_deviance(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, power: float = 0
) -> float:
    """Mean deviance of the Tweedie distribution of a power."""
    return _deviance("TweedieDeviance", y_true, y_pred, sample_weight, tweedie_power=power)


def mean_poisson_deviance(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Mean Poisson deviance."""
    return _deviance("PoissonDeviance", y_true, y_pred, sample_weight)


def mean_gamma_deviance(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Mean gamma deviance."""
    return _deviance("GammaDeviance", y_true, y_pred, sample_weight)


def d2_tweedie_score(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, power: float = 0
) -> float:
    """Share of the Tweedie deviance that predictions explain."""
    value = _one_output("D2Tweedie", y_true, y_pred, sample_weight, tweedie_power=power)
    return math.nan if _few(value, "D2Tweedie") else float(value[0])


def d2_pinball_score(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    alpha: float = 0.5,
    multioutput: Any = "uniform_average",
) -> Any:
    """Share of the pinball loss of a constant that predictions save."""
    value = _values("D2Pinball", y_true, y_pred, sample_weight, quantile=alpha)[0]
    return math.nan if _few(value, "D2Pinball") else _average(value, multioutput)


def d2_absolute_error_score(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: Any = "uniform_average"
) -> Any:
    """Share of the absolute error of a constant that predictions save."""
    value = _values("D2AbsoluteError", y_true, y_pred, sample_weight)[0]
    return math.nan if _few(value, "D2AbsoluteError") else _average(value, multioutput)
