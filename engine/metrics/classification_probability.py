"""Classification by probabilities: log loss, Brier score and calibration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tally.cells import Cells, parameters
from ..tally.scored_view import ScoredView
from .label_averages import NO_TRUTH, key_cells, metric, ratio

if TYPE_CHECKING:
    from ..tasks.classification.settings import Settings

Array = np.ndarray[Any, Any]

_SKLEARN = "scikit-learn metrics"


def _log_loss(view: ScoredView, settings: Settings) -> list[Cells]:
    facts, scored = view.units.facts, view.scored
    assert facts is not None
    assert scored is not None
    judged = view.judged_units
    smallest = float(np.finfo(np.float32 if scored.single else np.float64).eps)
    true = np.nan_to_num(facts.true_score[judged], nan=0.0)
    loss = -np.log(np.clip(true, smallest, 1 - smallest))
    return [key_cells(view, ratio(view.sum_by_key(judged, loss), view.judged), NO_TRUTH)]


def _brier(view: ScoredView, settings: Settings) -> list[Cells]:
    facts, scored = view.units.facts, view.scored
    assert facts is not None
    assert scored is not None
    judged = view.judged_units
    squared = facts.squared[judged] + np.isnan(facts.true_score[judged])
    value = ratio(view.sum_by_key(judged, squared), view.judged)
    if scored.several:  # of two classes both squares are there, alike
        value = np.where(np.bincount(view.labels.key)[None, :] == 2, value / 2, value)
    return [key_cells(view, value, NO_TRUTH)]


def _bins(view: ScoredView, settings: Settings) -> tuple[Array, Array, Array]:
    """Weight, sum of confidence and sum of right ones, [group, key, bin] each."""
    judged = view.judged_units
    confidence, right = view.confidence
    confidence, right = confidence[judged], right[judged]
    assert view.scored is not None
    edges = [view.scored.comparable(edge) for edge in np.linspace(0.0, 1.0, settings.n_bins + 1)]
    at = np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, settings.n_bins - 1)
    n, sure, hits = (
        view.sum_by_bin(judged, value, at, settings.n_bins) for value in (None, confidence, right)
    )
    return n, sure, hits


def _gaps(view: ScoredView, settings: Settings) -> tuple[Array, Array]:
    """|accuracy - confidence| of every bin, 0 where it is empty, and its share of the weight."""
    n, confidence, right = _bins(view, settings)
    gap = np.abs(ratio(right, n, 0.0) - ratio(confidence, n, 0.0))
    return gap, ratio(n, n.sum(axis=-1, keepdims=True))


def _expected_error(view: ScoredView, settings: Settings) -> list[Cells]:
    gap, share = _gaps(view, settings)
    return [_with_bins(view, settings, (gap * share).sum(axis=-1))]


def _largest_error(view: ScoredView, settings: Settings) -> list[Cells]:
    gap, share = _gaps(view, settings)
    return [_with_bins(view, settings, np.where(np.isnan(share[..., 0]), np.nan, gap.max(-1)))]


def _with_bins(view: ScoredView, settings: Settings, value: Array) -> Cells:
    return key_cells(view, value, NO_TRUTH, parameters=parameters(n_bins=settings.n_bins))


def _reliability(view: ScoredView, settings: Settings) -> list[Cells]:
    n, confidence, right = _bins(view, settings)
    edges = np.linspace(0.0, 1.0, settings.n_bins + 1)[:-1]
    return [
        Cells(
            axes=("group", "key", "score_threshold"),
            values={"score_threshold": [float(edge) for edge in edges]},
            shape=n.shape,
            keep=_bins(view.plain, settings)[0] > 0,
            columns={
                "value": value,
                "statistic": statistic,
                "support": n,
            },
            reason=NO_TRUTH,
        )
        for statistic, value in (
            ("confidence", ratio(confidence, n)),
            ("accuracy", ratio(right, n)),
            ("share", ratio(n, n.sum(axis=-1, keepdims=True))),
        )
    ]


_metric = partial(metric, needs=("hard", "scores", "probabilities"), better="lower")


METRICS = (
    _metric(
        "LogLoss",
        "Mean of -ln p of the true label, p clipped to the scores' machine epsilon; a label that"
        " is not listed has p = 0.",
        f"{_SKLEARN}.log_loss",
        _log_loss,
        range=(0.0, np.inf),
    ),
    _metric(
        "Brier",
        "Mean over datums of the sum over labels of (p - truth)^2; half of it with two labels.",
        f"Brier 1950; {_SKLEARN}.brier_score_loss",
        _brier,
        range=(0.0, 2.0),
    ),
    _metric(
        "ECE",
        "Expected calibration error: mean over n_bins equal bins of |accuracy - confidence|,"
        " weighed by the datums in each; confidence is the best score, or the positive one's.",
        "Naeini et al. 2015; torchmetrics calibration_error(norm='l1')",
        _expected_error,
        params=("n_bins",),
    ),
    _metric(
        "MCE",
        "Maximum calibration error: the largest |accuracy - confidence| of any bin.",
        "Naeini et al. 2015; torchmetrics calibration_error(norm='max')",
        _largest_error,
        params=("n_bins",),
    ),
    _metric(
        "Reliability",
        "The bins behind ECE: mean confidence, accuracy and share of datums of each bin, which"
        " starts at score_threshold.",
        "DeGroot and Fienberg 1983",
        _reliability,
        params=("n_bins",),
        better="neither",
    ),
)
