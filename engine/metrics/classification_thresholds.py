"""Score thresholds that serve best, and what they reach."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tally.cells import Cells, parameters
from ..tally.scored_view import ScoredView
from .label_averages import UNREACHED, label_cells, metric, ratio, scored_rows
from .registry import Metric
from .segments import first_of, largest_of, last_of, segment_of

if TYPE_CHECKING:
    from ..tasks.classification.settings import Settings

Array = np.ndarray[Any, Any]

_NO_TRUTH = "no ground truth of the label"
_NO_SCORE = "no score of the label on a datum with ground truth"
_NO_NEGATIVE = "no negative datum of the label"
_NO_RATE = {"recall": _NO_TRUTH, "fpr": _NO_NEGATIVE}
"""Why a rate is undefined at a threshold that was chosen: it is one over no datum at all."""


class _Rates:
    """Every distinct score of every (group, label), and what it reaches.

    Attributes:
        start: int64 [groups * labels + 1], CSR offsets.
        threshold: float64 [m], descending within a segment; so are the others' shapes.
        precision: likewise.
        recall: likewise.
        fpr: likewise.
        f: F-beta.
    """

    def __init__(self, view: ScoredView, beta: float) -> None:
        found, square = view.points, beta**2
        self.start, self.threshold = found.start, found.threshold
        segment = segment_of(found.start)
        positives = view.positives.ravel()[segment]
        tp, fp = found.tp, found.fp
        self.precision = ratio(tp, tp + fp)
        self.recall = ratio(tp, positives)
        self.fpr = ratio(fp, view.negatives.ravel()[segment])
        self.f = ratio((1 + square) * tp, square * positives + tp + fp)


def _unchosen(view: ScoredView, rates: _Rates, lacking: str) -> Array:
    """Why no threshold of a label was chosen, [group, label]; objects, as fixed widths are slow."""
    missing = {
        _NO_TRUTH: view.positives <= 0,
        _NO_NEGATIVE: view.negatives <= 0,
        _NO_SCORE: (np.diff(rates.start) == 0).reshape(view.shape),
    }
    why = np.full(view.shape, UNREACHED, dtype=object)
    if lacking:
        why[missing[lacking]] = lacking
    why[missing[_NO_SCORE]] = _NO_SCORE
    return why


def _best(
    view: ScoredView, settings: Settings, choose: Any, told: Any, lacking: str
) -> list[Cells]:
    """The threshold that a rule chooses among the points of every label, and what it reaches."""
    rates = _Rates(view, settings.beta)
    at = choose(rates, settings)
    some = at >= 0
    chosen = some.reshape(view.shape)
    why = _unchosen(view, rates, lacking)
    keep = scored_rows(view)
    named = {
        "threshold": rates.threshold,
        "precision": rates.precision,
        "recall": rates.recall,
        "fpr": rates.fpr,
        f"f{settings.beta:g}": rates.f,
    }
    cells = []
    for statistic, of_point in named.items():
        value = np.full(at.size, np.nan)
        value[some] = of_point[at[some]]
        reason = why.copy()
        reason[chosen] = _NO_RATE.get(statistic, "no weight at the threshold")
        cells.append(
            label_cells(
                view,
                value.reshape(view.shape),
                keep,
                reason,
                view.positives,
                statistic=statistic,
                parameters=parameters(**told(settings)),
            )
        )
    return cells


def _max_f(rates: _Rates, settings: Settings) -> Array:
    """The highest threshold of those with the largest F."""
    f = np.where(np.isnan(rates.f), -np.inf, rates.f)
    largest = largest_of(rates.start, f)[segment_of(rates.start)]
    return first_of(rates.start, (f == largest) & ~np.isnan(rates.f))


def _at_precision(rates: _Rates, settings: Settings) -> Array:
    """The lowest threshold that keeps the precision: the most recall."""
    return last_of(rates.start, rates.precision >= settings.target_precision)


def _at_recall(rates: _Rates, settings: Settings) -> Array:
    """The highest threshold that reaches the recall: the best precision for it."""
    return first_of(rates.start, rates.recall >= settings.target_recall)


def _at_fpr(rates: _Rates, settings: Settings) -> Array:
    """The lowest threshold whose false-positive rate stays at or below the target."""
    return last_of(rates.start, rates.fpr <= settings.target_fpr)


def _threshold_metric(
    name: str, definition: str, choose: Any, told: Any, param: str, lacking: str = ""
) -> Metric:
    """A metric of a chosen threshold.

    Args:
        name: what users write.
        definition: one sentence.
        choose: from rates and settings to a point of each segment, -1 for none.
        told: from settings to what the ``parameters`` column says.
        param: the option that sets the aim.
        lacking: without which kind of datum no threshold can reach the aim, as a reason.
    """
    return metric(
        name,
        definition,
        "points of scikit-learn's precision_recall_curve and roc_curve",
        partial(_best, choose=choose, told=told, lacking=lacking),
        params=tuple(dict.fromkeys((param, "beta"))),
        range=(-np.inf, np.inf),
        better="neither",
        needs=("scores",),
    )


METRICS = (
    _threshold_metric(
        "ThresholdAtMaxF",
        "The score threshold with the largest F-beta, and what it reaches.",
        _max_f,
        lambda settings: {"beta": settings.beta},
        "beta",
    ),
    _threshold_metric(
        "ThresholdAtPrecision",
        "The lowest score threshold with precision at or above target_precision.",
        _at_precision,
        lambda settings: {"target_precision": settings.target_precision},
        "target_precision",
    ),
    _threshold_metric(
        "ThresholdAtRecall",
        "The highest score threshold with recall at or above target_recall.",
        _at_recall,
        lambda settings: {"target_recall": settings.target_recall},
        "target_recall",
        _NO_TRUTH,
    ),
    _threshold_metric(
        "ThresholdAtFPR",
        "The lowest score threshold with a false-positive rate at or below target_fpr.",
        _at_fpr,
        lambda settings: {"target_fpr": settings.target_fpr},
        "target_fpr",
        _NO_NEGATIVE,
    ),
)
