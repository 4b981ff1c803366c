"""Score thresholds that serve best, and what they reach."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....metrics.label_averages import UNREACHED, label_cells, metric, ratio, scored_rows
from ....metrics.registry import Metric
from ....schemas.asked import in_name
from ....tally.cells import Cells, parameters
from ....tally.scored_view import ScoredView
from ....tally.sorted_scores import Points
from .segments import first_of, largest_of, last_of, segment_of

if TYPE_CHECKING:
    from ..settings import Settings

Array = np.ndarray[Any, Any]

_NO_TRUTH = "no ground truth of the label"
_NO_SCORE = "no score of the label on a datum with ground truth"
_NO_NEGATIVE = "no negative datum of the label"
_NO_RATE = {"recall": _NO_TRUTH, "fpr": _NO_NEGATIVE}
"""Why a rate is undefined at a threshold that was chosen: it is one over no datum at all."""


class _Rates:
    """Distinct scores of every (group, label), and what they reach.

    Attributes:
        start: int64 [groups * labels + 1], CSR offsets.
        threshold: float64 [m], descending within a segment; so are the others' shapes.
        precision: likewise.
        recall: likewise.
        fpr: likewise.
        f: F-beta.
    """

    def __init__(self, view: ScoredView, found: Points, beta: float) -> None:
        square = beta**2
        self.start, self.threshold = found.start, found.threshold
        segment = segment_of(found.start)
        positives = view.positives.ravel()[segment]
        tp, fp = found.tp, found.fp
        self.precision = ratio(tp, tp + fp)
        self.recall = ratio(tp, positives)
        self.fpr = ratio(fp, view.negatives.ravel()[segment])
        self.f = ratio((1 + square) * tp, square * positives + tp + fp)


def _unchosen(view: ScoredView, unscored: Array, lacking: str) -> Array:
    """Why no threshold of a label was chosen, [group, label]; objects, as fixed widths are slow."""
    missing = {
        _NO_TRUTH: view.positives <= 0,
        _NO_NEGATIVE: view.negatives <= 0,
        _NO_SCORE: unscored.reshape(view.shape),
    }
    why = np.full(view.shape, UNREACHED, dtype=object)
    if lacking:
        why[missing[lacking]] = lacking
    why[missing[_NO_SCORE]] = _NO_SCORE
    return why


class _Rule(NamedTuple):
    """How a threshold is chosen.

    Attributes:
        choose: from rates and settings to a point of each segment, -1 for none.
        replaces: whether what was chosen among later points, of lower scores, stands in place of
            what was chosen before: from F of both, float64 [s], to bool [s].
    """

    choose: Callable[[_Rates, Settings], Array]
    replaces: Callable[[Array, Array], Array]


_STATISTICS = ("threshold", "precision", "recall", "fpr", "f")


def _chosen(
    view: ScoredView, settings: Settings, rule: _Rule
) -> tuple[dict[str, Array], Array, Array]:
    """The point of every segment that a rule chooses.

    Returns:
        what it reaches by name, float64 [s] each; whether there is one, bool [s]; whether there
        are no points at all, bool [s].
    """
    n = view.shape[0] * view.shape[1]
    best = {name: np.full(n, np.nan) for name in _STATISTICS}
    some, unscored = np.zeros(n, bool), np.ones(n, bool)
    for found in view.point_blocks():
        rates = _Rates(view, found, settings.beta)
        at = rule.choose(rates, settings)
        here = at >= 0
        of_f = np.full(n, np.nan)
        of_f[here] = rates.f[at[here]]
        here &= ~some | rule.replaces(best["f"], of_f)
        for name in _STATISTICS:
            best[name][here] = getattr(rates, name)[at[here]]
        some |= here
        unscored &= np.diff(found.start) == 0
    return best, some, unscored


def _best(
    view: ScoredView, settings: Settings, rule: _Rule, told: Any, lacking: str
) -> list[Cells]:
    """The threshold that a rule chooses among the points of every label, and what it reaches."""
    best, some, unscored = _chosen(view, settings, rule)
    chosen = some.reshape(view.shape)
    why = _unchosen(view, unscored, lacking)
    keep = scored_rows(view)
    named = {**best, f"f{in_name(settings.beta)}": best["f"]}
    del named["f"]
    cells = []
    for statistic, value in named.items():
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


def _higher(before: Array, now: Array) -> Array:
    return now > before


def _never(before: Array, now: Array) -> Array:
    return np.zeros(now.size, bool)


def _always(before: Array, now: Array) -> Array:
    return np.ones(now.size, bool)


def _threshold_metric(
    name: str, definition: str, rule: _Rule, told: Any, param: str, lacking: str = ""
) -> Metric:
    """A metric of a chosen threshold.

    Args:
        name: what users write.
        definition: one sentence.
        rule: how it is chosen.
        told: from settings to what the ``parameters`` column says.
        param: the option that sets the aim.
        lacking: without which kind of datum no threshold can reach the aim, as a reason.
    """
    return metric(
        name,
        definition,
        "points of scikit-learn's precision_recall_curve and roc_curve",
        partial(_best, rule=rule, told=told, lacking=lacking),
        params=tuple(dict.fromkeys((param, "beta"))),
        range=(-np.inf, np.inf),
        better="neither",
        needs=("scores",),
    )


METRICS = (
    _threshold_metric(
        "ThresholdAtMaxF",
        "The score threshold with the largest F-beta, and what it reaches.",
        _Rule(_max_f, _higher),
        lambda settings: {"beta": settings.beta},
        "beta",
    ),
    _threshold_metric(
        "ThresholdAtPrecision",
        "The lowest score threshold with precision at or above target_precision.",
        _Rule(_at_precision, _always),
        lambda settings: {"target_precision": settings.target_precision},
        "target_precision",
    ),
    _threshold_metric(
        "ThresholdAtRecall",
        "The highest score threshold with recall at or above target_recall.",
        _Rule(_at_recall, _never),
        lambda settings: {"target_recall": settings.target_recall},
        "target_recall",
        _NO_TRUTH,
    ),
    _threshold_metric(
        "ThresholdAtFPR",
        "The lowest score threshold with a false-positive rate at or below target_fpr.",
        _Rule(_at_fpr, _always),
        lambda settings: {"target_fpr": settings.target_fpr},
        "target_fpr",
        _NO_NEGATIVE,
    ),
)
