"""Losses of predicted quantiles."""

from __future__ import annotations

from .deviance import pinball
from .parts import SCIKIT, mean_of, metric

METRICS = (
    metric(
        "Pinball",
        "mean of quantile * (t - p) where the target t is above the prediction p, else"
        " (1 - quantile) * (p - t)",
        f"{SCIKIT} mean_pinball_loss",
        mean_of("pinball", pinball),
        aliases=("mean_pinball_loss", "pinball_loss", "QuantileLoss"),
        params=("quantile",),
    ),
)
