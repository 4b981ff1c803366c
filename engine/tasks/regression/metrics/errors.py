"""Errors in the unit of the target, relative errors and scaled errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from ....kernels.sums import ExactSums, errors_between
from ....metrics.registry import define
from ....schemas.arrays import Array
from ....tallies.datums import TOO_LARGE, Cells
from ....tallies.paired_values import Paired, PairedView, Scaled
from ..dialects import SERIES, Settings

# Shared parts of regression metrics: rows per target, their mean, reasons for undefined values.

Loss = Callable[[Paired, Any], Array]
"""From rows and settings to a number of each, float64 [n]."""

NO_WEIGHT = "weights are all zero"
ONE_ROW = "a single row"
CONSTANT = "the target is constant"
FLAT = "target or predictions are constant"
SCIKIT = "scikit-learn"
_TOO_LARGE = f"a step of it is {TOO_LARGE}"
NUMBERS = ("prediction", "target")
INFINITE = (0.0, float("inf"))


metric = partial(
    define, "regression", averages=("macro",), better="lower", range=INFINITE, needs=NUMBERS
)
"""Define a regression metric, with one row per target and, for several, their mean."""


def cells(
    view: PairedView, value: Array, reason: Array | str, weights: Array | None = None
) -> list[Cells]:
    """Return one row per target; for several targets also their mean.

    Args:
        value: float64 [group, key]; NaN if undefined, infinite on overflow.
        reason: why it is undefined, a string or an array of that shape.
        weights: float64 [group, key], weights of the targets in an additional mean, ``weighted``.
    """
    rows = view.rows
    here = rows > 0
    value, why = bounded(view, value, reason)
    out = [
        Cells(
            axes=("group", "key"),
            shape=value.shape,
            keep=here,
            columns={"value": value, "support": rows},
            reason=why,
        )
    ]
    if value.shape[1] > 1:
        many = here.sum(axis=1)
        out.append(_mean(view, value, np.where(here, 1.0, 0.0), "macro", many))
        if weights is not None:
            out.append(_mean(view, value, np.where(here, weights, 0.0), "weighted", many))
    return out


def bounded(view: PairedView, value: Array, reason: Array | str) -> tuple[Array, Array]:
    """Return numbers, NaN if undefined or too large, and the reasons."""
    large = np.isinf(value)
    why = np.where(large, _TOO_LARGE, np.where(view.weight > 0, reason, NO_WEIGHT))
    return np.where(large, np.nan, value), why


def _mean(view: PairedView, value: Array, weights: Array, average: str, many: Array) -> Cells:
    # If all weights are 0, as with only constant targets, all count equally.
    weights = np.where(weights.any(axis=1, keepdims=True), weights, view.rows > 0)
    total = weights.sum(axis=1)
    mean = np.full(total.shape, np.nan)
    added = np.where(weights > 0, value * weights, 0.0).sum(axis=1)
    np.divide(added, total, out=mean, where=total > 0)
    return Cells(
        axes=("group",),
        shape=mean.shape,
        keep=many > 0,
        columns={"value": mean, "average": average, "support": view.rows.sum(axis=1)},
        reason="a target is undefined",
    )


def mean_of(name: str, loss: Loss, reason: str = "", *, root: bool = False) -> Any:
    """Return a function that computes the weighted mean over rows, or its square root.

    Args:
        name: cache key of the sum.
        loss: computes the number of each row.
        reason: why it may be undefined.
    """

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        value = view.mean(name, lambda rows: loss(rows, settings))
        return cells(view, np.sqrt(value) if root else value, reason)

    return compute


def moment_mean(name: str, *, root: bool = False) -> Any:
    """Return a function that computes the weighted mean of a moment, or its square root.

    Args:
        name: see :meth:`.PairedView.moment`.
    """

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        total, powers = view.moment(name)
        value = view.per_weight(total)
        value = unscaled(np.sqrt(value), powers // 2) if root else unscaled(value, powers)
        return cells(view, value, "")

    return compute


def unscaled(value: Array, powers: Array) -> Array:
    """Multiply numbers by powers of two; infinite on overflow."""
    if not powers.any():
        return value
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(value, powers))


def geometric(one: Array | float, other: Array | float) -> Array:
    """Geometric means of numbers of 0 or more; of equal ones these, to the last bit."""
    return np.where(np.equal(one, other), one, np.sqrt(one) * np.sqrt(other))


def ratio(top: Array, bottom: Array) -> Array:
    """Divide, giving NaN for a zero denominator."""
    if np.all(bottom):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(top / bottom)
    out = np.full(np.broadcast_shapes(np.shape(top), np.shape(bottom)), np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        np.divide(top, bottom, out=out, where=np.asarray(bottom) != 0)
    return out


def share_explained(
    view: PairedView, left: Scaled, total: Scaled, settings: Settings, least: int = 2
) -> tuple[Array, Array]:
    """Return 1 - left / total, and why it is undefined.

    Args:
        left: residual of the predictions.
        total: residual of a constant; 0 for a constant target.
        settings: the dialect decides on constant targets.
        least: rows below which it is undefined.
    """
    large = np.isinf(left[0]) | np.isinf(total[0])
    value = 1 - unscaled(ratio(left[0], total[0]), left[1] - total[1])
    if settings.rules.constant is not None:
        best, worst = settings.rules.constant
        constant = (total[0] == 0) & (view.weight > 0) & ~np.isnan(left[0])
        value = np.where(constant, np.where(left[0] == 0, best, worst), value)
    value = np.where(view.rows < least, np.nan, np.where(large, np.inf, value))
    return value, np.where(view.rows < 2, ONE_ROW, CONSTANT)


def as_they_are(value: Array) -> Scaled:
    """Return numbers with scaling powers of 0."""
    return value, np.zeros(value.shape, np.int64)


def weighted_sum(values: Array, weight: Array | None) -> float:
    """Return the exact weighted sum of values; NaN if one of them is NaN."""
    return float(ExactSums(1).add(values if weight is None else values * weight).rounded()[0])


def times_drawn(rows: Paired, weight: Array | None) -> Array:
    """Return the multiplicity of each row in a resample, float64 [n], without sample weight.

    Rows aggregated first, by series or group, count as often as their rows do.

    Args:
        rows: of a cell.
        weight: float64 [n], above 0, from the view; None if equal.
    """
    if weight is None:
        return np.ones(rows.target.size)
    return weight if rows.weight is None else np.asarray(weight / rows.weight)


def weighted_quantile(
    values: Array, weight: Array | None, level: float, *, spent: bool = False
) -> float:
    """Return the value below which a share of the weight is; the mean of two if it is between them.

    With equal weights this is the quantile of Hyndman and Fan's second kind, at 0.5 the usual
    median.

    Args:
        values: float64 [n], n > 0.
        weight: float64 [n], above 0; None if equal.
        level: the share, in [0, 1].
        spent: reorder ``values`` in place.
    """
    if weight is None:
        aim = level * values.size
        at = min(max(int(np.ceil(aim)) - 1, 0), values.size - 1)
        after = min(at + 1, values.size - 1)
        partitioned = values if spent else values.copy()
        partitioned.partition((at, after) if aim == at + 1 else at)
        return (
            float((partitioned[at] + partitioned[after]) / 2)
            if aim == at + 1
            else float(partitioned[at])
        )
    order = np.lexsort((weight, values))
    weight = weight[order]
    reached = np.cumsum(weight)
    before = np.append(0.0, reached[:-1])
    added = reached - before  # rounding error of each sum, by Knuth's two-sum
    lost = np.cumsum((before - (reached - added)) + (weight - added))
    beyond = (reached - level * reached[-1]) + (lost - level * lost[-1])
    same = _SAME * reached[-1]
    at = int(np.argmax(beyond >= -same))
    after = at + 1 if beyond[at] <= same and at + 1 < values.size else at
    return float((values[order[at]] + values[order[after]]) / 2)


def running_quantile(values: Array, weight: Array, level: float) -> float:
    """Return the weighted quantile by floating-point running sums, equal within 2.2e-16.

    This is scikit-learn's rule: rounding of sums may select one value instead of the mean of two.

    Args:
        values: float64 [n], n > 0.
        weight: float64 [n], above 0.
        level: the share.
    """
    order = np.lexsort((weight, values))
    reached = np.cumsum(weight[order])
    aim = level * 100 / 100 * reached[-1]
    last = values.size - 1
    at = min(int(np.searchsorted(reached, aim)), last)
    after = at if reached[at] - aim > _SAME else min(at + 1, last)
    return float((values[order[at]] + values[order[after]]) / 2)


_SAME = float(np.finfo(np.float64).eps)
"""Share of the whole weight by which two sums of weights may differ and be one."""


def own_quantile(
    values: Array, weight: Array | None, level: float, settings: Settings, *, spent: bool = False
) -> float:
    """A quantile by the dialect's rule; arguments as of :func:`weighted_quantile`."""
    if settings.rules.running_weights and weight is not None:
        return running_quantile(values, weight, level)
    return weighted_quantile(values, weight, level, spent=spent)


# Errors in the unit of the target.

_SAMPLE = 2048  # errors sampled to bound the median
_SPREAD = 80  # places of the sample on either side of its median: 3.5 standard deviations


def _median_error(rows: Paired, weight: Array | None, settings: Settings) -> float:
    """Median of |prediction - target|."""
    n = rows.target.size
    if weight is None and n > 16 * _SAMPLE:
        sample = np.sort(np.abs(rows.take(slice(None, None, n // _SAMPLE)).error))
        middle = sample.size // 2
        bounds = float(sample[middle - _SPREAD]), float(sample[middle + _SPREAD])
        below, errors = errors_between(rows.target, rows.prediction, *bounds, n // 4)
        first, last = (n - 1) // 2 - below, n // 2 - below
        if errors is not None and first >= 0 and last < errors.size:
            errors.partition((first, last))
            return float((errors[first] + errors[last]) / 2 if first < last else errors[first])
    error = rows.error
    return own_quantile(np.abs(error, out=error), weight, 0.5, settings, spent=True)


def _huber(rows: Paired, settings: Settings) -> Array:
    size, delta = np.abs(rows.error), settings.huber_delta
    return np.where(size <= delta, size**2 / 2, delta * (size - delta / 2))


def _log_cosh(rows: Paired, settings: Settings) -> Array:
    size = np.abs(rows.error)
    small = np.log1p(2 * np.sinh(np.minimum(size, 1) / 2) ** 2)  # keeps the digits of small errors
    return np.where(size < 1, small, size + np.log1p(np.exp(-2 * size)) - math.log(2))


def _median(view: PairedView, settings: Settings) -> list[Cells]:
    value = view.by_cell(lambda rows, weight: _median_error(rows, weight, settings))
    return cells(view, value, "")


_ERRORS_METRICS = (
    metric(
        "MAE",
        "mean of |prediction - target|",
        f"{SCIKIT} mean_absolute_error",
        moment_mean("absolute"),
        interval="log",
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
        interval="bca",
        aliases=("rmse", "root_mean_squared_error"),
        formula=r"\sqrt{\frac{1}{n} \sum_i (p_i - t_i)^2}",
    ),
    metric(
        "MeanError",
        "mean of prediction - target, the bias: above 0 if predictions are too high",
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
        " two if it falls between them",
        f"{SCIKIT} median_absolute_error",
        _median,
        aliases=("MedAE", "median_absolute_error"),
        formula=r"\text{median}_i\, |p_i - t_i|",
    ),
    metric(
        "MaxError",
        "largest |prediction - target| of the rows that have weight",
        f"{SCIKIT} max_error",
        lambda view, settings: cells(view, view.largest_error, ""),
        aliases=("max_error",),
        unfit={"": "no resample exceeds the largest error"},
        formula=r"\max_i |p_i - t_i|",
    ),
    metric(
        "Huber",
        "mean of e^2 / 2 if |e| <= huber_delta, else huber_delta * (|e| - huber_delta / 2)",
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


# Errors as shares of the target.

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
    difference = np.log1p(np.where(fits, rows.prediction, 0)) - np.log1p(
        np.where(fits, rows.target, 0)
    )
    return np.where(fits, difference**2, np.nan)


def _weighted(view: PairedView, settings: Settings) -> list[Cells]:
    (errors, powers), (sizes, theirs) = view.moment("absolute"), view.moment("size")
    return cells(view, unscaled(ratio(errors, sizes), powers - theirs), "all targets are 0")


_BELOW = "a target or prediction is -1 or less"

_RELATIVE_METRICS = (
    metric(
        "MAPE",
        "mean of |prediction - target| / |target|, as a share of 1; undefined if a target is 0,"
        " except in dialect sklearn, which divides by 2.2e-16",
        f"{SCIKIT} mean_absolute_percentage_error",
        mean_of("share", _share, ZERO),
        aliases=("mape", "mean_absolute_percentage_error"),
        formula=r"\frac{1}{n} \sum_i \frac{|p_i - t_i|}{|t_i|}",
    ),
    metric(
        "SMAPE",
        "mean of 2 |prediction - target| / (|prediction| + |target|), from 0 to 2; 0 if both are 0",
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
        "mean of (log (1 + prediction) - log (1 + target))^2; undefined if one is -1 or less",
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


# Errors over those of the naive forecast in training.

NO_SCALE = "a scale is 0"
_SCALED_LARGE = 2.0**500


def _absolute(rows: Paired, settings: Settings) -> Array:
    return ratio(np.abs(rows.error), rows.beside["scale"])


def _squared(rows: Paired, settings: Settings) -> Array:
    error, scale = np.abs(rows.error), rows.beside["squared_scale"]
    down = np.where(error > _SCALED_LARGE, 1 / _SCALED_LARGE, 1.0)
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
            weights = np.ones(values.size) if weight is None else weight
            total, size, drawn, many = (
                ExactSums(names.size).add(one, code).rounded()
                for one in (values * weights, weights, times, np.ones(values.size))
            )
            each, often = total / size, drawn / many
            return weighted_sum(np.sqrt(each) if root else each, often) / weighted_sum(often, None)

        return cells(view, view.by_cell(mean), NO_SCALE)

    return compute


_FROM = ("training", "seasonality")
_WHERE = (
    "from the column of this name, or the option training: mean {} difference of values at a"
    " distance of seasonality steps in the training part of the row's series"
)

_SCALED_METRICS = (
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


METRICS = (*_ERRORS_METRICS, *_RELATIVE_METRICS, *_SCALED_METRICS)
