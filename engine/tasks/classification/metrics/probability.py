"""Classification by probabilities: log loss, Brier score and calibration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from ....metrics.averages import NO_TRUTH, key_cells, ratio
from ....schemas.arrays import Array
from ....tally.cells import Cells, parameters
from ....tally.scored_view import ScoredView
from .parts import metric

if TYPE_CHECKING:
    from ..settings import Settings


_SKLEARN = "scikit-learn metrics"


def _log_loss(view: ScoredView, settings: Settings) -> list[Cells]:
    scored = view.scored
    assert scored is not None
    smallest = float(np.finfo(np.float32 if scored.single else np.float64).eps)

    def losses(few: ScoredView) -> tuple[Array, Array]:
        facts, judged = few.units.facts, few.judged_units
        assert facts is not None
        true = np.nan_to_num(facts.true_score[judged], nan=0.0)
        return judged, -np.log(np.clip(true, smallest, 1 - smallest))

    return [key_cells(view, ratio(view.summed(losses), view.judged), NO_TRUTH)]


def _brier(view: ScoredView, settings: Settings) -> list[Cells]:
    scored = view.scored
    assert scored is not None

    def squares(few: ScoredView) -> tuple[Array, Array]:
        facts, judged = few.units.facts, few.judged_units
        assert facts is not None
        return judged, facts.squared[judged] + np.isnan(facts.true_score[judged])

    value = ratio(view.summed(squares), view.judged)
    if scored.several:  # of two classes both squares are there, alike
        value = np.where(np.bincount(view.labels.key)[None, :] == 2, value / 2, value)
    return [key_cells(view, value, NO_TRUTH)]


def _edges(settings: Settings, *, upper: bool = False) -> list[float]:
    """Return the edges of the bins as i / n: 3 / 10, not linspace's 0.30000000000000004."""
    if upper:
        edges: list[float] = np.linspace(0.0, 1.0, settings.n_bins + 1).tolist()
        return edges
    return [i / settings.n_bins for i in range(settings.n_bins + 1)]


def _bins(
    view: ScoredView, settings: Settings, *, upper: bool = False
) -> tuple[Array, Array, Array]:
    """Return weight, sum of confidence and sum of correct ones, [group, key, bin] each.

    Args:
        upper: bins include their upper edge, as in a dialect's curve.
    """
    assert view.scored is not None
    edges = [view.scored.comparable(edge) for edge in _edges(settings, upper=upper)]
    side: Literal["left", "right"] = "left" if upper else "right"

    def binned(few: ScoredView) -> tuple[Array, Array, tuple[Array | None, ...]]:
        judged = few.judged_units
        confidence, right = (column[judged] for column in few.confidence)
        at = np.searchsorted(edges, confidence, side=side) - 1
        return judged, np.clip(at, 0, settings.n_bins - 1), (None, confidence, right)

    n, sure, hits = view.summed_by_bin(binned, settings.n_bins)
    return n, sure, hits


def _gaps(view: ScoredView, settings: Settings) -> tuple[Array, Array]:
    """Return |accuracy - confidence| of every bin, 0 if empty, and its share of the weight."""
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
    upper = settings.rules.bins_to_upper_edge
    n, confidence, right = _bins(view, settings, upper=upper)
    return [
        Cells(
            axes=("group", "key", "score_threshold"),
            values={"score_threshold": _edges(settings, upper=upper)[:-1]},
            shape=n.shape,
            keep=_bins(view.plain, settings, upper=upper)[0] > 0,
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
        aliases=("log_loss",),
        formula=r"-\frac{1}{n} \sum_d \ln \min(\max(p_d, \varepsilon), 1 - \varepsilon)",
    ),
    _metric(
        "Brier",
        "Mean over datums of the sum over labels of (p - truth)^2; half of it with two labels.",
        f"Brier 1950; {_SKLEARN}.brier_score_loss",
        _brier,
        range=(0.0, 2.0),
        aliases=("brier_score", "brier_score_loss"),
        formula=r"\frac{1}{n} \sum_d \sum_\ell \left(p_{d\ell} - [\ell = y_d]\right)^2, \quad"
        r" \text{half of it with two labels}",
    ),
    _metric(
        "ECE",
        "Expected calibration error: mean over n_bins equal bins of |accuracy - confidence|,"
        " weighed by the datums in each; confidence is the best score, or the positive one's.",
        "Naeini et al. 2015; torchmetrics calibration_error(norm='l1')",
        _expected_error,
        params=("n_bins",),
        interval="recentred",
        formula=r"\sum_b \frac{n_b}{n} \left|\text{acc}_b - \text{conf}_b\right|",
    ),
    _metric(
        "MCE",
        "Maximum calibration error: the largest |accuracy - confidence| of any bin.",
        "Naeini et al. 2015; torchmetrics calibration_error(norm='max')",
        _largest_error,
        params=("n_bins",),
        interval="recentred",
        formula=r"\max_b \left|\text{acc}_b - \text{conf}_b\right|",
    ),
    _metric(
        "Reliability",
        "The bins behind ECE: mean confidence, accuracy and share of datums of each bin, which"
        " starts at score_threshold.",
        "DeGroot and Fienberg 1983",
        _reliability,
        params=("n_bins",),
        better="neither",
        formula=r"\text{conf}_b = \frac{1}{n_b} \sum_{d \in b} c_d, \quad \text{acc}_b ="
        r" \frac{1}{n_b} \sum_{d \in b} [\hat{y}_d = y_d], \quad \text{share}_b ="
        r" \frac{n_b}{n}",
    ),
)
