"""Explained variation of the target, and correlation of targets and predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.paired_values import PairedView, Scaled
from .parts import (
    CONSTANT,
    FLAT,
    ONE_ROW,
    SCIKIT,
    cells,
    geometric,
    metric,
    ratio,
    share_explained,
    unscaled,
)  # fmt: skip

if TYPE_CHECKING:
    from ..settings import Settings


_FEW = "no more rows than features and one"


def _r2(view: PairedView, settings: Settings) -> tuple[Array, Array, Array]:
    """R2, why it is undefined, and how much each target counts."""
    whole = view.comoment("target", "target")
    return *share_explained(view, view.moment("squared"), whole, settings), _variances(whole)


def _variances(whole: Scaled) -> Array:
    """Squares around the mean of all targets in one unit."""
    value, powers = whole
    return unscaled(value, powers - powers.max(axis=1, keepdims=True))


def _determination(view: PairedView, settings: Settings) -> list[Cells]:
    return cells(view, *_r2(view, settings))


def _adjusted(view: PairedView, settings: Settings) -> list[Cells]:
    value, why, _ = _r2(view, settings)
    features = settings.n_features or 0
    n = view.rows.astype(np.float64)
    free = n - features - 1
    adjusted = 1 - (1 - value) * np.where(free > 0, ratio(n - 1, free), np.nan)
    return cells(view, adjusted, np.where(free > 0, why, _FEW))


def _explained(view: PairedView, settings: Settings) -> list[Cells]:
    whole = view.comoment("target", "target")
    value, why = share_explained(view, view.comoment("error", "error"), whole, settings)
    return cells(view, value, why, _variances(whole))


def _pearson(view: PairedView, settings: Settings) -> list[Cells]:
    # Scales are no matter: they are the same above and below.
    ours, theirs = (view.comoment(name, name)[0] for name in ("prediction", "target"))
    value = ratio(view.comoment("target", "prediction")[0], geometric(ours, theirs))
    why = np.where(view.rows < 2, ONE_ROW, FLAT)
    return cells(view, np.clip(value, -1, 1), why)


def _concordance(view: PairedView, settings: Settings) -> list[Cells]:
    ours, theirs = (view.comoment(name, name) for name in ("prediction", "target"))
    total, powers = view.moment("error")
    apart = view.weight * view.per_weight(total) ** 2
    parts = (ours, theirs, (apart, 2 * powers), view.comoment("target", "prediction"))
    most = np.maximum(ours[1], theirs[1])
    one, other, beside, both = (unscaled(value, powers - most) for value, powers in parts)
    why = np.where(view.rows < 2, ONE_ROW, f"{CONSTANT} and predicted")
    return cells(view, ratio(2 * both, one + other + beside), why)


_SHARE = {"better": "higher", "range": (-np.inf, 1.0)}
_CORRELATION = {"better": "higher", "range": (-1.0, 1.0)}

METRICS = (
    metric(
        "R2",
        "1 - sum of squared errors / sum of squares of targets less their mean; averages over"
        " targets alike and, weighted, by their variance",
        f"{SCIKIT} r2_score",
        _determination,
        aliases=("r2", "r2_score", "R2Score"),
        formula=r"1 - \frac{\sum_i (p_i - t_i)^2}{\sum_i (t_i - \bar{t})^2}",
        **{**_SHARE, "averages": ("macro", "weighted")},
    ),
    metric(
        "AdjustedR2",
        "1 - (1 - R2) (n - 1) / (n - n_features - 1), of n rows",
        "Theil 1961, Economic forecasts and policy",
        _adjusted,
        aliases=("adjusted_r2", "AdjustedR2Score"),
        params=("n_features",),
        formula=r"1 - (1 - R^2)\, \frac{n - 1}{n - f - 1}",
        **_SHARE,
    ),
    metric(
        "ExplainedVariance",
        "1 - variance of errors / variance of targets",
        f"{SCIKIT} explained_variance_score",
        _explained,
        aliases=("explained_variance_score",),
        formula=r"1 - \frac{\sum_i (e_i - \bar{e})^2}{\sum_i (t_i - \bar{t})^2}, \quad e_i = p_i"
        r" - t_i",
        **{**_SHARE, "averages": ("macro", "weighted")},
    ),
    metric(
        "Pearson",
        "covariance of predictions and targets over the product of their standard deviations",
        "scipy.stats.pearsonr",
        _pearson,
        aliases=("pearsonr", "PearsonCorrelation"),
        formula=r"\frac{\sum_i (p_i - \bar{p}) (t_i - \bar{t})}{\sqrt{\sum_i (p_i - \bar{p})^2"
        r" \sum_i (t_i - \bar{t})^2}}",
        **_CORRELATION,
    ),
    metric(
        "Concordance",
        "2 covariance / (both variances + squared difference of the means), Lin's coefficient",
        "Lin 1989, A concordance correlation coefficient to evaluate reproducibility",
        _concordance,
        aliases=("CCC", "concordance_correlation_coefficient"),
        formula=r"\frac{\frac{2}{n} \sum_i (p_i - \bar{p}) (t_i - \bar{t})}{\frac{1}{n} \sum_i"
        r" (p_i - \bar{p})^2 + \frac{1}{n} \sum_i (t_i - \bar{t})^2 + (\bar{p} - \bar{t})^2}",
        **_CORRELATION,
    ),
)
