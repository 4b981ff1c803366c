"""Losses of predicted quantiles and of samples from the predicted distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.paired_values import Paired, PairedView
from ..dialects import QUANTILES, SAMPLES, quantiles_of
from .deviance import pinball, quantile_loss
from .parts import SCIKIT, at_level, mean_of, metric

if TYPE_CHECKING:
    from ..settings import Settings


_SOURCE = "Gneiting & Raftery 2007, Strictly proper scoring rules"


def _each(name: str, number: Callable[[Array, Array, float], Array]) -> Any:
    """Define a metric: a mean over rows for every column of quantiles.

    Args:
        name: cache key of the sums.
        number: computes the value of each row from targets, quantiles and their level.
    """

    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        made: list[Cells] = []
        for column, level in quantiles_of(view.whole.beside).items():

            def loss(
                rows: Paired, settings: Settings, column: str = column, level: float = level
            ) -> Array:
                return number(rows.target, rows.beside[column], level)

            made += at_level(mean_of(f"{name} {column}", loss)(view, settings), quantile=level)
        return made

    return compute


def _covered(target: Array, predicted: Array, level: float) -> Array:
    return (target <= predicted).astype(np.float64)


def of_quantiles(rows: Paired, settings: Settings) -> Array:
    """Twice the mean quantile loss over the levels of a row."""
    levels = quantiles_of(rows.beside)
    losses = [
        quantile_loss(rows.target, rows.beside[column], level) for column, level in levels.items()
    ]
    twice: Array = 2 * np.mean(losses, axis=0)
    return twice


def of_samples(rows: Paired, settings: Settings) -> Array:
    """Mean distance of samples from the target less half of that between samples."""
    ordered = np.sort(rows.beside[SAMPLES] - rows.target[:, None], axis=1)
    n = ordered.shape[1]
    apart = (ordered * (2 * np.arange(n) - n + 1)).sum(axis=1) / n**2
    score: Array = np.abs(ordered).mean(axis=1) - apart
    return score


METRICS = (
    metric(
        "Pinball",
        "mean of quantile * (t - p) where the target t is above the prediction p, else"
        " (1 - quantile) * (p - t)",
        f"{SCIKIT} mean_pinball_loss",
        mean_of("pinball", pinball),
        aliases=("mean_pinball_loss", "pinball_loss"),
        params=("quantile",),
        formula=r"\frac{1}{n} \sum_i \max\left(q\, (t_i - p_i), (q - 1) (t_i - p_i)\right)",
    ),
    metric(
        "QuantileLoss",
        "Pinball of every column of quantiles, at the level that its name says",
        f"{SCIKIT} mean_pinball_loss",
        _each("loss", quantile_loss),
        needs=("target", QUANTILES),
        reads=("q",),
        formula=r"\frac{1}{n} \sum_i \max\left(q\, (t_i - p_{iq}), (q - 1) (t_i - p_{iq})\right)",
    ),
    metric(
        "QuantileCoverage",
        "share of targets at or below every column of quantiles; right where it is the level",
        _SOURCE,
        _each("covered", _covered),
        needs=("target", QUANTILES),
        reads=("q",),
        better="neither",
        range=(0.0, 1.0),
        formula=r"\frac{1}{n} \sum_i [t_i \le p_{iq}]",
    ),
    metric(
        "CRPSFromQuantiles",
        "twice the mean of QuantileLoss over the levels there are, which nears CRPS the more"
        " evenly spread levels there are",
        "scoringrules crps_quantile",
        mean_of("crps_quantiles", of_quantiles),
        aliases=("crps_quantile",),
        needs=("target", QUANTILES),
        reads=("q",),
        formula=r"\frac{1}{n} \sum_i \frac{2}{|Q|} \sum_{q \in Q} \max\left(q\, (t_i - p_{iq}),"
        r" (q - 1) (t_i - p_{iq})\right)",
    ),
    metric(
        "CRPS",
        "mean of |x - t| over samples x less half of the mean of |x - x'| over all pairs of them",
        "properscoring crps_ensemble",
        mean_of("crps", of_samples),
        aliases=("crps", "crps_ensemble"),
        needs=("target", SAMPLES),
        reads=(SAMPLES,),
        formula=r"\frac{1}{n} \sum_i \left(\frac{1}{m} \sum_j |x_{ij} - t_i| - \frac{1}{2 m^2}"
        r" \sum_{j, k} |x_{ij} - x_{ik}|\right)",
    ),
)
