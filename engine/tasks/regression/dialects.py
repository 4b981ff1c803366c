"""Regression dialects: divisors for targets of 0, and constant targets."""

from __future__ import annotations

import msgspec

from ...dialects.registry import Dialect


class RegressionRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        least_target: minimum divisor of MAPE; 0 if a target of 0 makes it undefined.
        constant: R2, ExplainedVariance and the D2 metrics of a constant target: first value if
            predictions have no error, else the second; None for undefined.
        running_weights: weighted medians and quantiles use floating-point running sums of weights.
    """

    least_target: float = 0.0
    constant: tuple[float, float] | None = None
    running_weights: bool = False


class RegressionDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Default values of options.

    Attributes:
        metrics: default set; the metrics of distributions if tables have these and no predictions.
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
