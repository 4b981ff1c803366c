"""Regression dialects: what is divided by where a target is 0."""

from __future__ import annotations

import msgspec

from ...dialects.registry import Dialect


class RegressionRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the references disagree about.

    Attributes:
        least_target: what MAPE divides by at least; 0 where a target of 0 leaves it undefined.
        constant: what R2, ExplainedVariance and the D2 metrics are of a constant target: the first
            where predictions are without error, the second elsewhere; None for undefined.
        running_weights: whether weighted medians and quantiles rest on running sums of weights as
            floats have them.
    """

    least_target: float = 0.0
    constant: tuple[float, float] | None = None
    running_weights: bool = False


class RegressionDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults of the options that were not given.

    Attributes:
        metrics: default set; those of distributions where tables have these and no predictions.
    """

    metrics: tuple[str, ...] = (
        "MAE", "RMSE", "R2", "MedianAE", "MeanError",
        "CRPS", "CRPSFromQuantiles", "QuantileLoss", "QuantileCoverage",
        "Coverage", "IntervalWidth", "Winkler",
    )  # fmt: skip


DIALECTS: dict[str, Dialect] = {
    "standard": Dialect(
        name="standard",
        task="regression",
        about="every number by its definition, undefined where that divides by 0",
        rules=RegressionRules(),
        defaults=RegressionDefaults(),
        undefined=None,
    ),
    "sklearn": Dialect(
        name="sklearn",
        task="regression",
        about="scikit-learn 1.9: MAPE divides by 2.2e-16 at least; R2 of a constant target is 1"
        " without error and else 0",
        rules=RegressionRules(
            least_target=2.220446049250313e-16, constant=(1.0, 0.0), running_weights=True
        ),
        defaults=RegressionDefaults(),
        undefined=None,
    ),
}
"""The dialects of regression."""
