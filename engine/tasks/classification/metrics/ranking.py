"""Classification by the order of scores: ROC areas and average precision."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....metrics.averages import by_key, key_cells, label_cells, macro, ratio, scored_rows, weighted
from ....schemas.arrays import Array
from ....tally.cells import Cells, parameters
from ....tally.scored_view import ScoredView
from ....tally.sorted_scores import delong_variance, partial_area
from .parts import metric

if TYPE_CHECKING:
    from ..settings import Settings


_ONE_CLASS = "only one class: no positive or no negative datum"
_NO_TRUTH = "no ground truth of the label"
_LABELS = {"roc": "both classes", "precision": "ground truth"}
"""Requirement for a label to enter the means of ROC areas and of average precisions."""
_DATUMS = {"roc": "both a true and another label", "precision": "a true label"}
"""Requirement for a datum to enter their means over datums."""
_SKLEARN = "scikit-learn metrics"


def _averaged(view: ScoredView, settings: Settings) -> Array:
    """Labels that enter averages, bool [group, label]."""
    if view.declared is not None and settings.rules.declared_labels_only:
        return scored_rows(view) & view.declared
    return scored_rows(view)


def _filled_auc(view: ScoredView, settings: Settings, area: Array) -> Array:
    """Fill areas with the dialect's values if a class is missing."""
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
    """Return macro, weighted and, if requested, micro or samples averages of values per label."""
    inside = _averaged(view, settings)
    mean = macro(view, value, inside)
    has = _LABELS[micro]
    nothing = f"no label with {has}"
    broken: Array | bool = False
    counting: Array | bool = False  # of labels that weigh something
    if settings.rules.auc_mean_needs_all:
        broken = by_key(view, inside & np.isnan(value)) > 0
        mean = np.where(broken, np.nan, mean)
    support = by_key(view, view.positives, inside)
    by_weight = weighted(view, value, inside, view.positives)
    if settings.rules.auc_mean_needs_all:
        counting = by_key(view, inside & np.isnan(value) & (view.positives > 0)) > 0
        by_weight = np.where(counting, np.nan, by_weight)
    lacking = f"a label without {has}"
    cells = [
        key_cells(view, mean, np.where(broken, lacking, nothing), "macro", support),
        key_cells(view, by_weight, np.where(counting, lacking, nothing), "weighted", support),
    ]
    if settings.average == "micro":
        pooled = view.pooled
        found = pooled.roc_auc if micro == "roc" else pooled.average_precision
        cells.append(key_cells(view, found, nothing, "micro", support))
    if settings.average == "samples":
        cells.append(_over_samples(view, settings, micro, support))
    return cells


def _over_samples(view: ScoredView, settings: Settings, kind: str, support: Array) -> Cells:
    """Return the mean over datums of each datum's value over its labels, one row per key.

    As scikit-learn's ``average="samples"``; undefined datums are filled, skipped or propagated in
    the
    same way.
    """
    rules = settings.rules

    def defined(few: ScoredView) -> tuple[Array, Array]:
        value = few.sample_areas[kind == "precision"]
        judged = few.judged_units
        if kind == "precision" and rules.precision_without_positives is not None:
            value = np.where(np.isnan(value), rules.precision_without_positives, value)
        unit = judged[~np.isnan(value[judged])]
        return unit, value[unit]

    n = view.summed(lambda few: (defined(few)[0], None))
    mean = ratio(view.summed(defined), n)
    has = _DATUMS[kind]
    why: Array | str = f"no datum with {has}"
    if rules.auc_mean_needs_all:
        broken = view.summed(lambda few: (few.judged_units, None)) > n
        mean = np.where(broken, np.nan, mean)
        why = np.where(broken, f"a datum without {has}", why)
    return key_cells(view, mean, why, "samples", support)


def _filled_precision(view: ScoredView, settings: Settings) -> Array:
    value = view.average_precision
    rules, there = settings.rules, view.positives > 0
    if rules.precision_without_positives is None:
        return value
    value = np.where(there, value, rules.precision_without_positives)
    several = view.scored is not None and view.scored.several
    if rules.absent_precision_means or settings.multilabel or not several:
        return value
    return np.where(there | _first_alone(view), value, np.nan)


def _first_alone(view: ScoredView) -> Array:
    """Return True if all datums have the first label of the label's key, bool [group, label].

    torchmetrics takes a target of only zeros, which is class 0, for one without any positive, and
    then sets the recall of every class to 1 (``_binary_precision_recall_curve_compute``).
    """
    first = np.zeros(len(view.labels), bool)
    first[np.unique(view.labels.key, return_index=True)[1]] = True
    others = by_key(view, np.where(first, 0.0, view.positives))
    alone: Array = (others == 0)[:, view.labels.key]
    return alone


def _label_ap(view: ScoredView, settings: Settings) -> list[Cells]:
    value = _filled_precision(view, settings)
    keep = scored_rows(view)
    return [label_cells(view, value, keep, _NO_TRUTH, view.positives)]


def _mean_ap(view: ScoredView, settings: Settings) -> list[Cells]:
    return _means(view, settings, _filled_precision(view, settings), "precision")


def _partial_auc(view: ScoredView, settings: Settings) -> list[Cells]:
    """McClish's standardised partial area, up to ``max_fpr``."""
    limit = settings.max_fpr
    area = partial_area(view, limit)
    keep = scored_rows(view)
    lowest = 0.5 * limit * limit
    value = 0.5 * (1 + (area - lowest) / (limit - lowest))
    told = parameters(max_fpr=limit)
    return [label_cells(view, value, keep, _ONE_CLASS, view.positives, parameters=told)]


def _one_against_one(view: ScoredView, settings: Settings) -> list[Cells]:
    """Hand and Till's mean over pairs of labels."""
    area, prevalence = view.pairwise_auc
    n_keys = len(view.labels.key_names)
    means = {name: np.full((view.n_groups, n_keys), np.nan) for name in ("macro", "weighted")}
    for k in range(n_keys):
        codes = np.flatnonzero(view.labels.key == k)
        first, second = np.triu_indices(codes.size, 1)
        a, b = codes[first], codes[second]
        there = (view.positives[:, a] > 0) & (view.positives[:, b] > 0)
        pair = np.where(there, (area[:, a, b] + area[:, b, a]) / 2, 0.0)
        weight = np.where(there, prevalence[:, a] + prevalence[:, b], 0.0)
        means["macro"][:, k] = ratio(pair.sum(axis=1), there.sum(axis=1))
        means["weighted"][:, k] = ratio((pair * weight).sum(axis=1), weight.sum(axis=1))
    reason = "fewer than two labels with ground truth"
    return [key_cells(view, mean, reason, average) for average, mean in means.items()]


_metric = partial(metric, needs=("scores",), ranks=True)


METRICS = (
    _metric(
        "ROCAUC",
        "Area under the ROC curve of a label against the rest of its key; ties count half, datums"
        " that do not list the label rank last.",
        f"Valor metrics document, ROCAUC; {_SKLEARN}.roc_auc_score; Hanley and McNeil 1982",
        _label_auc,
        aliases=("AUROC", "roc_auc", "roc_auc_score", "AUC"),
        variance=lambda view, settings: [delong_variance(view)],
        formula=r"\frac{1}{n_+ n_-} \sum_{i \in +} \sum_{j \in -} \left([s_i > s_j] +"
        r" \tfrac{1}{2} [s_i = s_j]\right)",
    ),
    _metric(
        "mROCAUC",
        "Mean of ROCAUC over the labels of a key (macro), by their ground truths (weighted), or"
        " over all datum-label pairs at once (micro, with average='micro'), or over datums, each by"
        " its own labels (samples, with average='samples').",
        f"Valor metrics document, mROCAUC; {_SKLEARN}.roc_auc_score(multi_class='ovr')",
        _mean_auc,
        averages=("macro", "micro", "weighted", "samples"),
        params=("average",),
        aliases=("roc_auc_ovr", "roc_auc_ovr_weighted"),
        formula=r"\frac{1}{L} \sum_\ell A_\ell, \quad \text{weighted} \quad \frac{\sum_\ell"
        r" t_\ell A_\ell}{\sum_\ell t_\ell}",
    ),
    _metric(
        "mROCAUCOneVsOne",
        "Mean over pairs of labels of the area between the two (Hand and Till).",
        f"Hand and Till 2001; {_SKLEARN}.roc_auc_score(multi_class='ovo')",
        _one_against_one,
        averages=("macro", "weighted"),
        aliases=("roc_auc_ovo", "roc_auc_ovo_weighted"),
        pairs=True,
        formula=r"\frac{2}{L (L - 1)} \sum_{i < j} \frac{A_{i|j} + A_{j|i}}{2}",
    ),
    _metric(
        "PartialROCAUC",
        "Area under the ROC curve up to max_fpr, standardised so that chance scores 0.5.",
        f"McClish 1989; {_SKLEARN}.roc_auc_score(max_fpr=...)",
        _partial_auc,
        params=("max_fpr",),
        formula=r"\frac{1}{2} \left(1 + \frac{A(x) - x^2 / 2}{x - x^2 / 2}\right), \quad A(x) ="
        r" \int_0^x \text{TPR}\; d\,\text{FPR}",
    ),
    _metric(
        "AP",
        "Sum over distinct scores of precision times the gain in recall, without interpolation.",
        f"{_SKLEARN}.average_precision_score",
        _label_ap,
        aliases=("average_precision", "average_precision_score"),
        formula=r"\sum_i (R_i - R_{i-1})\, P_i",
    ),
    _metric(
        "mAP",
        "Mean of AP over the labels of a key (macro, weighted), of all pairs at once (micro), or"
        " over datums (samples).",
        f"{_SKLEARN}.average_precision_score",
        _mean_ap,
        averages=("macro", "micro", "weighted", "samples"),
        params=("average",),
        formula=r"\frac{1}{L} \sum_\ell \text{AP}_\ell, \quad \text{weighted} \quad"
        r" \frac{\sum_\ell t_\ell \text{AP}_\ell}{\sum_\ell t_\ell}",
    ),
)
