"""Classification by the order of scores: ROC areas, average precision, best thresholds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tally.cells import Cells, parameters
from ..tally.scored_view import ScoredView
from ..tally.sorted_scores import Points
from .label_averages import (
    by_key,
    key_cells,
    label_cells,
    macro,
    metric,
    ratio,
    scored_rows,
    weighted,
)
from .registry import Metric

if TYPE_CHECKING:
    from ..tasks.classification.settings import Settings

Array = np.ndarray[Any, Any]

_ONE_CLASS = "only one class: no positive or no negative datum"
_NO_TRUTH = "no ground truth of the label"
_NO_SCORE = "no score of the label on a datum with ground truth"
_NO_NEGATIVE = "no negative datum of the label"
_LABELS = {"roc": "both classes", "precision": "ground truth"}
"""What a label must have to enter the means of ROC areas and of average precisions."""
_SKLEARN = "scikit-learn metrics"


def _averaged(view: ScoredView, settings: Settings) -> Array:
    """Labels that enter averages, bool [group, label]."""
    if view.declared is not None and settings.rules.declared_labels_only:
        return scored_rows(view) & view.declared
    return scored_rows(view)


def _filled_auc(view: ScoredView, settings: Settings, area: Array) -> Array:
    """Areas with the dialect's values where a class is missing."""
    rules = settings.rules
    if rules.auc_without_negatives is not None:
        alone = (view.positives > 0) & (view.negatives <= 0)
        area = np.where(alone, rules.auc_without_negatives, area)
    if rules.auc_without_positives is not None:
        area = np.where(view.positives <= 0, rules.auc_without_positives, area)
    if rules.auc_without_predictions is not None:
        hits, others, strays = view.listed
        silent = (by_key(view, hits + others + strays) == 0)[:, view.labels.key]
        area = np.where(silent & (view.positives > 0), rules.auc_without_predictions, area)
    return area


def _label_auc(view: ScoredView, settings: Settings) -> list[Cells]:
    area = _filled_auc(view, settings, view.roc_auc)
    keep = scored_rows(view)
    return [label_cells(view, area, keep, _ONE_CLASS, view.positives)]


def _mean_auc(view: ScoredView, settings: Settings) -> list[Cells]:
    area = _filled_auc(view, settings, view.roc_auc)
    return _means(view, settings, area, "roc")


def _means(view: ScoredView, settings: Settings, value: Array, micro: str) -> list[Cells]:
    """Macro, weighted and, where it was asked for, micro average of values per label."""
    inside = _averaged(view, settings)
    mean = macro(view, value, inside)
    has = _LABELS[micro]
    nothing = f"no label with {has}"
    broken: Array | bool = False
    if settings.rules.auc_mean_needs_all:
        broken = by_key(view, inside & np.isnan(value)) > 0
        mean = np.where(broken, np.nan, mean)
    support = by_key(view, view.positives, inside)
    cells = [
        key_cells(
            view, mean, np.where(broken, f"a label without {has}", nothing), "macro", support
        ),
        key_cells(
            view, weighted(view, value, inside, view.positives), nothing, "weighted", support
        ),
    ]
    if settings.average == "micro":
        pooled = view.pooled
        found = pooled.roc_auc if micro == "roc" else average_precision(pooled)
        cells.append(key_cells(view, found, nothing, "micro", support))
    return cells


def average_precision(view: ScoredView) -> Array:
    """Sum over distinct scores of precision times the gain in recall, [group, label]."""
    found = view.points
    starts = found.start[:-1]
    gained = np.diff(found.tp, prepend=0.0)
    some = np.diff(found.start) > 0
    gained[starts[some]] = found.tp[starts[some]]
    terms = gained * ratio(found.tp, found.tp + found.fp, 0.0)
    total = np.zeros(starts.size)
    if terms.size:
        total[some] = np.add.reduceat(terms, starts[some])
    total = total.reshape(view.shape)
    # Datums that do not list the label come last, all at once, as in the ROC curve.
    missing = view.positives - view.listed[0]
    every = view.positives + view.negatives
    total = total + missing * ratio(view.positives, every, 0.0)
    return ratio(total, view.positives)


def _filled_precision(view: ScoredView, settings: Settings) -> Array:
    value = average_precision(view)
    fill = settings.rules.precision_without_positives
    return value if fill is None else np.where(view.positives > 0, value, fill)


def _label_ap(view: ScoredView, settings: Settings) -> list[Cells]:
    value = _filled_precision(view, settings)
    keep = scored_rows(view)
    return [label_cells(view, value, keep, _NO_TRUTH, view.positives)]


def _mean_ap(view: ScoredView, settings: Settings) -> list[Cells]:
    return _means(view, settings, _filled_precision(view, settings), "precision")


def _partial_auc(view: ScoredView, settings: Settings) -> list[Cells]:
    """McClish's standardised partial area, up to ``max_fpr``."""
    limit = settings.max_fpr
    value = np.full(view.shape, np.nan)
    for (g, k), (fpr, tpr) in each_roc(view):
        stop = np.searchsorted(fpr, limit, side="right")
        if stop < fpr.size:
            edge = np.interp(limit, fpr[stop - 1 : stop + 1], tpr[stop - 1 : stop + 1])
            fpr, tpr = np.r_[fpr[:stop], limit], np.r_[tpr[:stop], edge]
        area = float(np.trapezoid(tpr, fpr))
        lowest = 0.5 * limit * limit
        value[g, k] = 0.5 * (1 + (area - lowest) / (limit - lowest))
    keep = scored_rows(view)
    told = parameters(max_fpr=limit)
    return [label_cells(view, value, keep, _ONE_CLASS, view.positives, parameters=told)]


def each_roc(view: ScoredView) -> Any:
    """(group, label) and the false and true positive rates of its ROC curve, both classes there.

    Curves run from (0, 0) to (1, 1); datums that do not list the label rank last.
    """
    found = view.points
    n_labels = view.shape[1]
    complete = (view.positives > 0) & (view.negatives > 0) & view.scored.labels  # type: ignore[union-attr]
    for s in np.flatnonzero(complete.ravel()):
        at = slice(found.start[s], found.start[s + 1])
        g, k = divmod(int(s), n_labels)
        tpr = np.r_[0.0, found.tp[at] / view.positives[g, k]]
        fpr = np.r_[0.0, found.fp[at] / view.negatives[g, k]]
        if tpr[-1] < 1 or fpr[-1] < 1:
            tpr, fpr = np.r_[tpr, 1.0], np.r_[fpr, 1.0]
        yield (g, k), (fpr, tpr)


def _one_against_one(view: ScoredView, settings: Settings) -> list[Cells]:
    """Hand and Till's mean over pairs of labels."""
    area, prevalence = view.pairwise_auc
    rows = []
    for average in ("macro", "weighted"):
        out = np.full((view.n_groups, len(view.labels.key_names)), np.nan)
        for g, k in np.ndindex(*out.shape):
            codes = np.flatnonzero((view.labels.key == k) & (view.positives[g] > 0))
            if codes.size < 2:
                continue
            first, second = np.triu_indices(codes.size, 1)
            a, b = codes[first], codes[second]
            pair = (area[g, a, b] + area[g, b, a]) / 2
            weight = np.ones(pair.size)
            if average == "weighted":
                weight = prevalence[g, a] + prevalence[g, b]
            out[g, k] = np.average(pair, weights=weight)
        rows.append(key_cells(view, out, "fewer than two labels with ground truth", average))
    return rows


# -- thresholds --------------------------------------------------------------------------------


def _best(
    view: ScoredView, settings: Settings, choose: Any, told: Any, lacking: str
) -> list[Cells]:
    """The threshold that a rule chooses among the points of every label, and what it reaches."""
    found = view.points
    threshold, precision, recall, fpr, f = (np.full(view.shape, np.nan) for _ in range(5))
    n_labels = view.shape[1]
    square = settings.beta**2
    for s in np.flatnonzero(np.diff(found.start) > 0):
        g, k = divmod(int(s), n_labels)
        here = _Rates(found, int(s), view.positives[g, k], view.negatives[g, k], square)
        at = choose(here, settings)
        if at is None:
            continue
        threshold[g, k] = here.threshold[at]
        precision[g, k], recall[g, k] = here.precision[at], here.recall[at]
        fpr[g, k], f[g, k] = here.fpr[at], here.f[at]
    keep = scored_rows(view)
    missing = {
        _NO_TRUTH: view.positives <= 0,
        _NO_NEGATIVE: view.negatives <= 0,
        _NO_SCORE: (np.diff(found.start) == 0).reshape(view.shape),
    }
    why = np.where(missing.get(lacking, False), lacking, "no threshold reaches it")
    why = np.where(missing[_NO_SCORE], _NO_SCORE, why)
    chosen = ~np.isnan(threshold)
    # What is undefined at a threshold that was chosen: a rate over no datum at all.
    at_chosen = {"recall": _NO_TRUTH, "fpr": _NO_NEGATIVE}
    named = {
        "threshold": threshold,
        "precision": precision,
        "recall": recall,
        "fpr": fpr,
        f"f{settings.beta:g}": f,
    }
    return [
        label_cells(
            view,
            value,
            keep,
            np.where(chosen, at_chosen.get(statistic, "no weight at the threshold"), why),
            view.positives,
            statistic=statistic,
            parameters=parameters(**told(settings)),
        )
        for statistic, value in named.items()
    ]


class _Rates:
    """Precision, recall, false-positive rate and F at every distinct score of one label."""

    def __init__(
        self, found: Points, s: int, positives: float, negatives: float, square: float
    ) -> None:
        at = slice(found.start[s], found.start[s + 1])
        tp, fp = found.tp[at], found.fp[at]
        self.threshold = found.threshold[at]
        self.precision = ratio(tp, tp + fp)
        self.recall = ratio(tp, np.full(tp.shape, positives))
        self.fpr = ratio(fp, np.full(fp.shape, negatives))
        self.f = ratio((1 + square) * tp, square * positives + tp + fp)


def _max_f(rates: _Rates, settings: Settings) -> int | None:
    """The highest threshold of those with the largest F."""
    return None if np.isnan(rates.f).all() else int(np.nanargmax(rates.f))


def _at_precision(rates: _Rates, settings: Settings) -> int | None:
    """The lowest threshold that keeps the precision: the most recall."""
    fits = np.flatnonzero(rates.precision >= settings.target_precision)
    return int(fits[-1]) if fits.size else None


def _at_recall(rates: _Rates, settings: Settings) -> int | None:
    """The highest threshold that reaches the recall: the best precision for it."""
    fits = np.flatnonzero(rates.recall >= settings.target_recall)
    return int(fits[0]) if fits.size else None


def _at_fpr(rates: _Rates, settings: Settings) -> int | None:
    """The lowest threshold whose false-positive rate stays at or below the target."""
    fits = np.flatnonzero(rates.fpr <= settings.target_fpr)
    return int(fits[-1]) if fits.size else None


_metric = partial(metric, needs=("scores",))


def _threshold_metric(
    name: str, definition: str, choose: Any, told: Any, param: str, lacking: str = ""
) -> Metric:
    """A metric of a chosen threshold.

    Args:
        name: what users write.
        definition: one sentence.
        choose: from rates and settings to the index of a threshold, or None.
        told: from settings to what the ``parameters`` column says.
        param: the option that sets the aim.
        lacking: without which kind of datum no threshold can reach the aim, as a reason.
    """
    return _metric(
        name,
        definition,
        "points of scikit-learn's precision_recall_curve and roc_curve",
        partial(_best, choose=choose, told=told, lacking=lacking),
        params=tuple(dict.fromkeys((param, "beta"))),
        range=(-np.inf, np.inf),
        better="neither",
    )


METRICS = (
    _metric(
        "ROCAUC",
        "Area under the ROC curve of a label against the rest of its key; ties count half, datums"
        " that do not list the label rank last.",
        f"Valor metrics document, ROCAUC; {_SKLEARN}.roc_auc_score; Hanley and McNeil 1982",
        _label_auc,
    ),
    _metric(
        "mROCAUC",
        "Mean of ROCAUC over the labels of a key (macro), by their ground truths (weighted), or"
        " over all datum-label pairs at once (micro, with average='micro').",
        f"Valor metrics document, mROCAUC; {_SKLEARN}.roc_auc_score(multi_class='ovr')",
        _mean_auc,
        averages=("macro", "micro", "weighted"),
        params=("average",),
    ),
    _metric(
        "mROCAUCOneVsOne",
        "Mean over pairs of labels of the area between the two (Hand and Till).",
        f"Hand and Till 2001; {_SKLEARN}.roc_auc_score(multi_class='ovo')",
        _one_against_one,
        averages=("macro", "weighted"),
    ),
    _metric(
        "PartialROCAUC",
        "Area under the ROC curve up to max_fpr, standardised so that chance scores 0.5.",
        f"McClish 1989; {_SKLEARN}.roc_auc_score(max_fpr=...)",
        _partial_auc,
        params=("max_fpr",),
    ),
    _metric(
        "AP",
        "Sum over distinct scores of precision times the gain in recall, without interpolation.",
        f"{_SKLEARN}.average_precision_score",
        _label_ap,
    ),
    _metric(
        "mAP",
        "Mean of AP over the labels of a key.",
        f"{_SKLEARN}.average_precision_score",
        _mean_ap,
        averages=("macro", "micro", "weighted"),
        params=("average",),
    ),
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
