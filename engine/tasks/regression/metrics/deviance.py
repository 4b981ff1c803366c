"""Deviances of exponential families, and shares of them explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.paired_values import Paired, PairedView, Scaled
from .parts import (
    SCIKIT,
    as_they_are,
    cells,
    mean_of,
    metric,
    own_quantile,
    share_explained,
    weighted_sum,
)  # fmt: skip

if TYPE_CHECKING:
    from ..settings import Settings


_OUTSIDE = "a target or prediction is outside what the distribution allows"


def unit_deviance(target: Array, mean: Array, power: float) -> Array:
    """Compute unit deviance from a Tweedie distribution's mean; NaN outside its support.

    Args:
        target: float64 [n].
        mean: float64 [n], predictions.
        power: of the variance: 0 normal, 1 Poisson, 2 gamma, 3 inverse Gaussian.
    """
    if power == 0:
        square: Array = (target - mean) ** 2
        return square
    fits = mean > 0
    if 1 <= power < 2:
        fits = fits & (target >= 0)
    elif power >= 2:
        fits = fits & (target > 0)
    y, mu = np.where(fits, target, 1.0), np.where(fits, mean, 1.0)
    some = np.where(y > 0, y, 1.0)
    if power == 1:
        half = np.where(y > 0, y * np.log(some / mu), 0.0) - y + mu
    elif power == 2:
        half = np.log(mu / some) + y / mu - 1
    else:
        lifted = np.where(y > 0, some ** (2 - power), 0.0)
        half = (
            lifted / ((1 - power) * (2 - power))
            - y * mu ** (1 - power) / (1 - power)
            + mu ** (2 - power) / (2 - power)
        )
    return np.where(fits, np.where(y == mu, 0.0, 2 * half), np.nan)


def _deviance(power: float | None) -> Any:
    def loss(rows: Paired, settings: Settings) -> Array:
        own = settings.tweedie_power if power is None else power
        return unit_deviance(rows.target, rows.prediction, own)

    return loss


def _d2_tweedie(view: PairedView, settings: Settings) -> list[Cells]:
    power = settings.tweedie_power
    left = view.total("tweedie", lambda rows: _deviance(None)(rows, settings))

    def around(rows: Paired, weight: Array | None) -> float:
        mean = weighted_sum(rows.target, weight) / weighted_sum(np.ones(rows.target.size), weight)
        return weighted_sum(unit_deviance(rows.target, np.full(1, mean), power), weight)

    whole = as_they_are(_flat(view, view.by_cell(around)))
    value, why = share_explained(view, as_they_are(left), whole, settings)
    return cells(view, value, np.where(np.isnan(left) & (view.rows > 1), _OUTSIDE, why))


def _flat(view: PairedView, whole: Array) -> Array:
    """Return 0 for a constant target, removing rounding residues."""
    return np.where(view.comoment("target", "target")[0] == 0, 0.0, whole)


def quantile_loss(target: Array, predicted: Array | float, level: float) -> Array:
    """Loss of each row, float64 [n], of a quantile predicted, or of one number for all rows."""
    less = target - predicted
    loss: Array = np.maximum(level * less, (level - 1) * less)
    return loss


def pinball(rows: Paired, settings: Settings) -> Array:
    """Quantile loss of the predictions at the option ``quantile``."""
    return quantile_loss(rows.target, rows.prediction, settings.quantile)


def _d2_around(level_of: Any, left_of: Any, factor: int = 1) -> Any:
    """Share of a loss that predictions take off from that of the target's own quantile."""

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        level = level_of(settings)

        def around(rows: Paired, weight: Array | None) -> float:
            own = own_quantile(rows.target, weight, level, settings)
            return weighted_sum(quantile_loss(rows.target, own, level) * factor, weight)

        whole = as_they_are(_flat(view, view.by_cell(around)))
        return cells(view, *share_explained(view, left_of(view, settings), whole, settings))

    return compute


def _pinballs(view: PairedView, settings: Settings) -> Scaled:
    return as_they_are(view.total("pinball", lambda rows: pinball(rows, settings)))


_SHARE = {"better": "higher", "range": (-np.inf, 1.0)}

METRICS = (
    metric(
        "PoissonDeviance",
        "mean of 2 (t log (t / p) - t + p) of targets t and predictions p; undefined where p <= 0"
        " or t < 0",
        f"{SCIKIT} mean_poisson_deviance",
        mean_of("poisson", _deviance(1), _OUTSIDE),
        aliases=("mean_poisson_deviance",),
        formula=r"\frac{2}{n} \sum_i \left(t_i \ln \frac{t_i}{p_i} - t_i + p_i\right)",
    ),
    metric(
        "GammaDeviance",
        "mean of 2 (log (p / t) + t / p - 1) of targets t and predictions p; undefined where one"
        " is 0 or less",
        f"{SCIKIT} mean_gamma_deviance",
        mean_of("gamma", _deviance(2), _OUTSIDE),
        aliases=("mean_gamma_deviance",),
        formula=r"\frac{2}{n} \sum_i \left(\ln \frac{p_i}{t_i} + \frac{t_i}{p_i} - 1\right)",
    ),
    metric(
        "TweedieDeviance",
        "mean deviance of the Tweedie distribution whose variance goes with the mean to the power"
        " tweedie_power",
        f"{SCIKIT} mean_tweedie_deviance",
        mean_of("tweedie", _deviance(None), _OUTSIDE),
        aliases=("mean_tweedie_deviance",),
        params=("tweedie_power",),
        formula=r"\frac{2}{n} \sum_i \left(\frac{t_i^{2 - \rho}}{(1 - \rho) (2 - \rho)} -"
        r" \frac{t_i\, p_i^{1 - \rho}}{1 - \rho} + \frac{p_i^{2 - \rho}}{2 - \rho}\right)",
    ),
    metric(
        "D2Tweedie",
        "1 - TweedieDeviance / that of the targets' mean",
        f"{SCIKIT} d2_tweedie_score",
        _d2_tweedie,
        aliases=("d2_tweedie_score",),
        params=("tweedie_power",),
        formula=r"1 - \frac{\sum_i d(t_i, p_i)}{\sum_i d(t_i, \bar{t})}",
        **_SHARE,
    ),
    metric(
        "D2AbsoluteError",
        "1 - MAE / that of the targets' median",
        f"{SCIKIT} d2_absolute_error_score",
        _d2_around(lambda settings: 0.5, lambda view, _: view.moment("absolute"), 2),
        aliases=("d2_absolute_error_score",),
        formula=r"1 - \frac{\sum_i |t_i - p_i|}{\sum_i |t_i - \text{median } t|}",
        **_SHARE,
    ),
    metric(
        "D2Pinball",
        "1 - Pinball / that of the targets' own quantile",
        f"{SCIKIT} d2_pinball_score",
        _d2_around(lambda settings: settings.quantile, _pinballs),
        aliases=("d2_pinball_score",),
        params=("quantile",),
        formula=r"1 - \frac{\sum_i l_q(t_i, p_i)}{\sum_i l_q(t_i, t_{(q)})}",
        **_SHARE,
    ),
)
