"""Functions of ``sklearn.metrics`` for regression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from ...api import score
from ...schemas.arrays import Array
from ...schemas.errors import InputError, invalid
from ..arrays import numbers, undefined, weights

_MULTIOUTPUT = ("raw_values", "uniform_average", "variance_weighted")


def _sides(y_true: Any, y_pred: Any) -> tuple[Array, Array]:
    """Return both sides, float64 [rows, outputs]."""
    true = numbers("y_true", y_true, dims=(1, 2)).astype(np.float64, copy=False)
    made = numbers("y_pred", y_pred, rows=len(true), dims=(1, 2)).astype(np.float64, copy=False)
    if not len(true):
        raise InputError("y_true has no rows.", code="no_rows")
    true, made = (one.reshape(len(one), -1) for one in (true, made))
    if true.shape != made.shape:
        raise InputError(
            f"y_true has {true.shape[1]} outputs, y_pred {made.shape[1]}.", code="shapes_differ"
        )
    return true, made


def _values(
    metric: str, y_true: Any, y_pred: Any, sample_weight: Any, **options: Any
) -> tuple[Array, Array, Array | None]:
    """Return a metric of every output, the targets, and the weights.

    Raises:
        InputError: the values have no such number, such as a logarithm of -1.
    """
    true, made = _sides(y_true, y_pred)
    rows, width = true.shape
    own = weights(sample_weight, rows)
    table = pl.DataFrame(
        {
            "datum_id": np.tile(np.arange(rows), width),
            "label_key": np.char.zfill(np.arange(width).astype(str), 9).repeat(rows),
            "target": true.ravel("F"),
            "prediction": made.ravel("F"),
            **{name: np.tile(weight, width) for name, weight in own.items()},
        }
    )
    if width == 1:
        table = table.drop("label_key")
    card = score(table, task="regression", dialect="sklearn", metrics=[metric], **options)
    found = card.metrics.filter(pl.col("average").is_null()).sort("label_key")
    return _filled(metric, found, rows), true, own.get("weight")


def _filled(metric: str, found: pl.DataFrame, rows: int) -> Array:
    value = found["value"].to_numpy().astype(np.float64)
    if np.isnan(value).any() and rows > 1:
        raise InputError(f"{metric}: {found['reason'].drop_nulls()[0]}.", code="undefined")
    return value


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


def mean_absolute_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: Any = "uniform_average"
) -> Any:
    """Mean of |prediction - target|."""
    return _average(_values("MAE", y_true, y_pred, sample_weight)[0], multioutput)


def mean_squared_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: Any = "uniform_average"
) -> Any:
    """Mean of (prediction - target)^2."""
    return _average(_values("MSE", y_true, y_pred, sample_weight)[0], multioutput)


def root_mean_squared_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: Any = "uniform_average"
) -> Any:
    """Root of the mean squared error, of each output."""
    return _average(_values("RMSE", y_true, y_pred, sample_weight)[0], multioutput)


def mean_squared_log_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: Any = "uniform_average"
) -> Any:
    """Mean squared difference of log(1 + x)."""
    return _average(_values("MSLE", y_true, y_pred, sample_weight)[0], multioutput)


def root_mean_squared_log_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: Any = "uniform_average"
) -> Any:
    """Root of the mean squared logarithmic error, of each output."""
    return _average(_values("RMSLE", y_true, y_pred, sample_weight)[0], multioutput)


def median_absolute_error(
    y_true: Any, y_pred: Any, *, multioutput: Any = "uniform_average", sample_weight: Any = None
) -> Any:
    """Median of |prediction - target|."""
    return _average(_values("MedianAE", y_true, y_pred, sample_weight)[0], multioutput)


def mean_absolute_percentage_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = None, multioutput: Any = "uniform_average"
) -> Any:
    """Mean of |prediction - target| / |target|, which is at least 2.2e-16."""
    return _average(_values("MAPE", y_true, y_pred, sample_weight)[0], multioutput)


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


def max_error(y_true: Any, y_pred: Any) -> float:
    """Compute the largest |prediction - target| of one output."""
    value = _values("MaxError", y_true, y_pred, None)[0]
    if value.size > 1:
        raise InputError("max_error: several outputs are not supported.", code="shapes_differ")
    return float(value[0])


def _explained(
    metric: str, y_true: Any, y_pred: Any, sample_weight: Any, multioutput: Any, force_finite: bool
) -> Any:
    if not force_finite:
        raise invalid("force_finite", force_finite, "scores of constant targets are 1 or 0 here.")
    value, true, weight = _values(metric, y_true, y_pred, sample_weight)
    if _few(value, metric):
        return math.nan
    return _average(value, multioutput, (true, weight))


def r2_score(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    multioutput: Any = "uniform_average",
    force_finite: bool = True,
) -> Any:
    """Share of the variance that predictions explain."""
    return _explained("R2", y_true, y_pred, sample_weight, multioutput, force_finite)


def explained_variance_score(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    multioutput: Any = "uniform_average",
    force_finite: bool = True,
) -> Any:
    """Share of the variance that predictions explain, apart from a constant offset."""
    return _explained("ExplainedVariance", y_true, y_pred, sample_weight, multioutput, force_finite)


def _deviance(metric: str, y_true: Any, y_pred: Any, sample_weight: Any, **options: Any) -> float:
    value = _values(metric, y_true, y_pred, sample_weight, **options)[0]
    if value.size > 1:
        raise InputError(f"{metric}: several outputs are not supported.", code="shapes_differ")
    if np.isnan(value).any():
        raise InputError(f"{metric} is not defined for these values.", code="undefined")
    return float(value[0])


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
    value = _values("D2Tweedie", y_true, y_pred, sample_weight, tweedie_power=power)[0]
    if value.size > 1:
        raise InputError("D2Tweedie: several outputs are not supported.", code="shapes_differ")
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
