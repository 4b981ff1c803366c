"""Metrics of hard predictions: precision, recall, F, accuracy and agreement."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from ....metrics.averages import (
    NO_TRUTH,
    TRIALS,
    UNREACHED,
    averaged,
    averaged_ratio,
    by_key,
    in_use,
    key_cells,
    label_cells,
    macro,
    members,
    present,
    ratio,
    weighted,
)
from ....metrics.registry import AsShare, Metric
from ....schemas.arrays import Array
from ....schemas.option_values import in_name
from ....tallies.datums import Cells
from ....tallies.scored_view import ScoredView
from ..dialects import Settings

# Shared parts of classification metrics: guards for missing scores and for zero weights.

NO_WEIGHT = "weights are all zero"


def metric(
    name: str,
    definition: str,
    source: str,
    compute: Any,
    *,
    frame: str = "metrics",
    needs: tuple[str, ...] = ("hard",),
    **more: Any,
) -> Metric:
    """Define a classification metric; a metric of scores yields no rows without scores."""
    return Metric(
        name=name,
        task="classification",
        frame=frame,
        needs=needs,
        definition=definition,
        source=source,
        compute=with_weight_reason(if_scored(compute) if "scores" in needs else compute),
        **more,
    )


def if_scored(compute: Callable[[ScoredView, Settings], list[Cells]]) -> Any:
    """Wrap a metric of scores so that it yields no rows without scores."""

    def guarded(view: ScoredView, settings: Settings) -> list[Cells]:
        return compute(view, settings) if view.has_scores else []

    return guarded


def with_weight_reason(compute: Callable[[ScoredView, Settings], list[Cells]]) -> Any:
    """Wrap a metric so that values undefined only because of zero weights get that reason."""

    def explained(view: ScoredView, settings: Settings) -> list[Cells]:
        cells = compute(view, settings)
        if view.plain is view or not any("value" in one.columns for one in cells):
            return cells
        others = compute(view.plain, settings)
        return [_weightless(*pair) for pair in zip(cells, others, strict=True)]

    return explained


def _weightless(cells: Cells, plain: Cells) -> Cells:
    """Return cells with the unweighted reason if the value is undefined without weights too.

    Otherwise zero weights make it undefined, or weighted scores do not reach the target.
    """
    if cells.reason is None:  # counts, which are always defined
        return cells
    other = np.isnan(np.asarray(plain.columns["value"]))
    reasons = np.where(np.asarray(cells.reason) == UNREACHED, UNREACHED, NO_WEIGHT)
    return msgspec.structs.replace(cells, reason=np.where(other, np.asarray(plain.reason), reasons))


# Classification by hard predictions: precision, recall, F, accuracy and agreement.

_VALOR = "Valor metrics document, Classification"
_SKLEARN = "scikit-learn metrics"
_ONE_CLASS = "truths or predictions are all of one class, or there are none"


def _precision(settings: Settings, right: Array, predicted: Array, actual: Array) -> Array:
    return ratio(right, predicted, settings.zero_division)


def _recall(settings: Settings, right: Array, predicted: Array, actual: Array) -> Array:
    return ratio(right, actual, settings.zero_division)


def _selection_rate(view: ScoredView, settings: Settings) -> list[Cells]:
    every = view.judged[:, view.labels.key]
    value = ratio(view.hard.judged, every)
    return [label_cells(value, present(view, settings), NO_TRUTH, every, **{TRIALS: every})]


FAIRNESS = {
    "DemographicParity": ("SelectionRate",),
    "EqualOpportunity": ("Recall",),
    "EqualisedOdds": ("Recall", "FPR"),
}
"""Criterion -> metrics that are equal in all groups if it holds."""


def _f(beta: float, settings: Settings, right: Array, predicted: Array, actual: Array) -> Array:
    square = beta * beta
    if not settings.rules.f_from_ratios:
        return ratio((1 + square) * right, square * actual + predicted, settings.zero_division)
    p = _precision(settings, right, predicted, actual)
    r = _recall(settings, right, predicted, actual)
    f = ratio((1 + square) * p * r, square * p + r, settings.zero_division)
    return np.where((p == 0) & (r == 0), 0.0, f)


_ROUNDING = 8 * np.finfo(np.float64).eps
NO_NEGATIVE = "no datum without the label"
Rate = Callable[[Array, Array, Array, Array], tuple[Array, Array]]
"""Function from true and false positives, false and true negatives to numerator and denominator."""


def _of_datums(view: ScoredView, settings: Settings, *, of: Rate, reason: str) -> list[Cells]:
    """Compute a rate per label, and its macro, micro and weighted averages.

    Negatives are the datums with a ground truth and without the label.
    """
    counts = view.hard
    every = view.judged[:, view.labels.key]
    tp, fp = counts.right, counts.mistaken
    tn = every - counts.actual - fp
    tn = np.where(tn <= _ROUNDING * every, 0.0, tn)  # a difference of sums of weights
    parts = tp, fp, counts.missed, tn
    top, bottom = of(*parts)
    value, inside = ratio(top, bottom, settings.zero_division), members(view, settings)
    rests, key = {TRIALS: bottom}, view.labels.key
    why = np.where(view.judged > 0, reason, NO_TRUTH)
    cells = [label_cells(value, present(view, settings), why[:, key], counts.actual, **rests)]
    sums = [by_key(view, part, inside) for part in parts]
    averages = {
        "macro": macro(view, value, averaged(view, settings)),
        "micro": ratio(*of(*sums), settings.zero_division),
        "weighted": weighted(view, value, inside, counts.actual),
    }
    support = by_key(view, counts.actual, inside)
    return cells + [
        key_cells(view, mean, why, average, support=support) for average, mean in averages.items()
    ]


def _datum_rate(
    name: str, definition: str, of: Rate, formula: str, *, lower: bool = False, reason: str
) -> Metric:
    return metric(
        name,
        f"{definition} of the hard predictions, per label; tn are the other datums.",
        f"{_SKLEARN}.confusion_matrix",
        partial(_of_datums, of=of, reason=reason),
        params=("zero_division", "multilabel", "decision_threshold", "average"),
        averages=("macro", "micro", "weighted"),
        trials=TRIALS,
        better="lower" if lower else "higher",
        formula=formula,
    )


def _zero_one_loss(view: ScoredView, settings: Settings) -> list[Cells]:
    (cells,) = _accuracy(view, settings)
    loss = 1 - np.asarray(cells.columns["value"])
    return [msgspec.structs.replace(cells, columns={**cells.columns, "value": loss})]


def _accuracy(view: ScoredView, settings: Settings) -> list[Cells]:
    if settings.multilabel:
        return [key_cells(view, ratio(view.summed(_exact), view.judged), NO_TRUTH)]
    value = ratio(by_key(view, view.hard.right), view.judged)
    return [key_cells(view, value, NO_TRUTH)]


def _exact(view: ScoredView) -> tuple[Array, None]:
    """Units whose predicted labels are exactly the true ones."""
    hit, predicted, actual = view.samples
    judged = view.judged_units
    return judged[((hit == predicted) & (hit == actual))[judged]], None


def _balanced(view: ScoredView, settings: Settings, *, adjusted: bool = False) -> list[Cells]:
    recall = ratio(view.hard.right, view.hard.actual)
    inside = members(view, settings)
    value = macro(view, recall, inside)
    reason = NO_TRUTH
    if adjusted:
        reason = "fewer than two labels with ground truth"
        chance = ratio(np.ones_like(value), by_key(view, inside & ~np.isnan(recall)))
        value = ratio(value - chance, 1 - chance)
    return [key_cells(view, value, reason)]


def _matthews(view: ScoredView, settings: Settings) -> list[Cells]:
    """Compute Matthews' correlation, avoiding differences of counts of very different weight."""
    counts = view.hard
    truths, guesses = _of_others(view, counts.actual), _of_others(view, counts.judged)
    nothing = _unanswered(view)
    judged_right = truths - counts.mistaken  # units whose truth and prediction are other labels
    shared = by_key(view, counts.right * judged_right - counts.missed * counts.mistaken)
    actual = by_key(view, counts.actual * truths)
    answered = by_key(view, counts.judged)
    predicted = by_key(view, counts.judged * guesses) + 2 * nothing * answered
    fill = settings.rules.degenerate
    value = ratio(shared, np.sqrt(actual * predicted), np.nan if fill is None else fill)
    return [key_cells(view, value, _ONE_CLASS)]


def _unanswered(view: ScoredView) -> Array:
    """Return (weighted) units with a truth but no prediction, [group, key].

    Rounding residues of weights are set to exactly 0.
    """
    missed = by_key(view, view.hard.missed)
    left: Array = missed - by_key(view, view.hard.mistaken)
    return np.where(left > 1e-13 * missed, left, 0.0)


def _of_others(view: ScoredView, counts: Array) -> Array:
    """Counts of all other labels of each label's key, [group, label]: added up, not taken away."""
    out = np.zeros_like(counts)
    for k in range(len(view.labels.key_names)):
        members = np.flatnonzero(view.labels.key == k)
        some = counts[:, members]
        none = np.zeros((some.shape[0], 1))
        before = np.cumsum(np.hstack([none, some[:, :-1]]), axis=1)
        above = np.cumsum(np.hstack([none, some[:, :0:-1]]), axis=1)[:, ::-1]
        out[:, members] = before + above
    return out


def _kappa(view: ScoredView, settings: Settings, *, power: int = 0) -> list[Cells]:
    """Cohen's kappa from disagreements that weigh 1, or |i - j| to a power."""
    counts = view.hard
    n = view.judged
    if power == 0:
        nothing = _unanswered(view)
        chance = by_key(view, counts.actual * _of_others(view, counts.judged))
        observed = by_key(view, counts.missed)
        expected = ratio(chance + nothing * n, n)
    else:
        observed, expected = _distances(view, power)
    return [key_cells(view, 1 - ratio(observed, expected), _ONE_CLASS)]


def _distances(view: ScoredView, power: int) -> tuple[Array, Array]:
    """Observed and expected sums of |i - j| to a power over the ranks of a key's labels."""
    counts = view.hard
    place = _places(view)

    def gaps(few: ScoredView) -> tuple[Array, Array]:
        units = few.units
        assert units.hard is not None
        inside = (units.truth >= 0) & (units.hard >= 0)
        if few.unit_group is None:
            compared = np.flatnonzero(inside)
            group = np.zeros(compared.size, np.int64)
        else:
            compared = np.flatnonzero(inside & (few.unit_group >= 0))
            group = few.unit_group[compared].astype(np.int64)
        gap = np.abs(place[group, units.truth[compared]] - place[group, units.hard[compared]])
        return compared, gap.astype(np.float64) ** power

    observed = view.summed(gaps)
    n_keys = len(view.labels.key_names)
    expected = np.zeros((view.n_groups, n_keys))
    missed = view.judged - by_key(view, counts.judged)
    used = in_use(view)
    for k in range(n_keys):
        of_key = view.labels.key == k
        t, p, at = counts.actual[:, of_key], counts.judged[:, of_key], place[:, of_key]
        if power == 2:
            expected[:, k] = (
                (t * at**2).sum(1) * p.sum(1)
                - 2 * (t * at).sum(1) * (p * at).sum(1)
                + (p * at**2).sum(1) * t.sum(1)
            )
        else:
            order = np.argsort(at, axis=1, kind="stable")
            t, p, at = (np.take_along_axis(array, order, axis=1) for array in (t, p, at))
            # |i - j| is the number of steps between, each crossed by exactly one of the two
            below_t, below_p = np.cumsum(t, axis=1), np.cumsum(p, axis=1)
            step = np.diff(at, axis=1)
            crossed = below_t * (p.sum(1, keepdims=True) - below_p) + below_p * (
                t.sum(1, keepdims=True) - below_t
            )
            expected[:, k] = (crossed[:, :-1] * step).sum(1)
        # A missing prediction is as far from every label as two labels can be.
        at, here = place[:, of_key], used[:, of_key]
        last = at.max(initial=0)
        low = np.where(here, at, last).min(axis=1, initial=last)
        high = np.where(here, at, 0).max(axis=1, initial=0)
        far = np.maximum(high - low, 1).astype(np.float64) ** power
        observed[:, k] += missed[:, k] * far
        expected[:, k] += view.judged[:, k] * missed[:, k] * far
    return observed, ratio(expected, view.judged)


def _places(view: ScoredView) -> Array:
    """Ranks of labels, int64 [group, label]: as declared, or those in use as they sort."""
    if view.order is None:
        return np.cumsum(in_use(view), axis=1)
    after = view.order.max(initial=-1) + np.cumsum(view.order < 0)
    return np.broadcast_to(np.where(view.order < 0, after, view.order), view.shape)


def _hamming(view: ScoredView, settings: Settings) -> list[Cells]:
    if not settings.multilabel:
        value = 1 - ratio(by_key(view, view.hard.right), view.judged)
        return [key_cells(view, value, NO_TRUTH)]

    def wrong_labels(few: ScoredView) -> tuple[Array, Array]:
        hit, predicted, actual = few.samples
        return np.arange(hit.size), predicted + actual - 2 * hit

    wrong = view.summed(wrong_labels)
    n_labels = np.bincount(view.labels.key, minlength=len(view.labels.key_names))
    return [key_cells(view, ratio(wrong, view.judged * n_labels), NO_TRUTH)]


def _counts(view: ScoredView, settings: Settings) -> list[Cells]:
    counts = view.hard
    tp = counts.right
    fp = counts.wrong
    fn = counts.actual - tp
    tn = np.maximum(view.rest() - fp, 0.0)
    return [
        label_cells(value, present(view, settings), "", counts.actual, statistic=statistic)
        for statistic, value in (("tp", tp), ("fp", fp), ("fn", fn), ("tn", tn))
    ]


def _top_k(view: ScoredView, settings: Settings) -> list[Cells]:
    def among(k: int, few: ScoredView) -> tuple[Array, None]:
        facts = few.units.facts
        assert facts is not None
        return np.flatnonzero(~np.isnan(facts.true_score) & (facts.rank < k)), None

    cells = []
    for k in settings.k:
        right = view.summed(partial(among, k))
        cells.append(key_cells(view, ratio(right, view.judged), NO_TRUTH, k=k))
    return cells


_MEANS = ("macro", "micro", "weighted", "samples")
_FILLED = ("zero_division", "multilabel", "decision_threshold", "average")


def _as_scorers(name: str) -> tuple[str, ...]:
    """Names by which scikit-learn knows a ratio and its averages."""
    return tuple(f"{name}_{one}" for one in ("score", *_MEANS))


def _ratio_metric(
    name: str,
    definition: str,
    of: Any,
    reason: str,
    source: str,
    trials: Any = None,
    *,
    formula: str,
) -> Metric:
    return metric(
        name,
        definition,
        source,
        partial(averaged_ratio, of=of, reason=reason, trials=trials),
        params=_FILLED,
        averages=_MEANS,
        aliases=_as_scorers(name.lower()),
        trials=None if trials is None else TRIALS,
        formula=formula,
    )


def _recalls(settings: Settings) -> str | None:
    """The shares of disjoint datums that balanced accuracy and macro recall average."""
    return None if settings.multilabel else "Recall"


_JACCARD = AsShare(lambda f: f / (2 - f), lambda share: 2 * share / (1 + share))
"""F1 of a label by its Jaccard index, a share of the datums with the label on either side."""


def _either(right: Array, predicted: Array, actual: Array) -> Array:
    return predicted + actual - right


def _f_metric(beta: float) -> Metric:
    f_metric = _ratio_metric(
        f"F{in_name(beta)}",
        f"F-beta with beta = {in_name(beta)}: (1 + beta^2) tp / (beta^2 (tp + fn) + tp + fp) of the"
        " hard predictions.",
        partial(_f, beta),
        "neither ground truth nor prediction",
        f"{_VALOR}; {_SKLEARN}.fbeta_score",
        trials=_either if beta == 1 else None,
        formula=r"\frac{(1 + \beta^2)\, \text{tp}}{\beta^2 (\text{tp} + \text{fn}) + \text{tp} +"
        rf" \text{{fp}}}}, \quad \beta = {in_name(beta)}",
    )
    if beta != 1:
        return msgspec.structs.replace(f_metric, aliases=())
    return msgspec.structs.replace(
        f_metric, aliases=_as_scorers("f1"), as_share=_JACCARD, interval="logit"
    )


def family(name: str) -> Metric | None:
    """F at any beta, written F0.5, F2, f2_score or F1e+16; None if the name is of another kind."""
    written = re.fullmatch(r"[Ff]([0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?)(_?[Ss]core)?", name)
    if written is None:
        return None
    beta = float(written[1])
    return _f_metric(beta) if 0 < beta < float("inf") else None


_SPELLED = {
    "DemographicParity": ("demographic_parity", "StatisticalParity"),
    "EqualOpportunity": ("equal_opportunity",),
    "EqualisedOdds": ("EqualizedOdds", "equalized_odds"),
}
GROUPS: dict[str, Callable[[Any], tuple[str, ...]]] = {
    **dict.fromkeys(
        ("F", "fbeta", "f_beta", "fbeta_score", "FBetaScore"),
        lambda options: (f"F{in_name(1.0 if options.beta is None else options.beta)}",),
    ),
    **{
        name: partial(lambda options, needed: needed, needed=FAIRNESS[criterion])
        for criterion, others in _SPELLED.items()
        for name in (criterion, *others)
    },
}
"""Names of F whose beta is the option of that name, and criteria of fairness."""

METRICS = (
    metric(
        "Accuracy",
        "Share of datums whose hard prediction is the true label, per key; with several labels a"
        " datum, share whose predicted set is exactly the true one.",
        f"{_VALOR}; {_SKLEARN}.accuracy_score",
        _accuracy,
        params=("multilabel", "decision_threshold"),
        trials="support",
        formula=r"\frac{1}{n} \sum_d [\hat{y}_d = y_d]",
    ),
    _ratio_metric(
        "Precision",
        "tp / (tp + fp) of the hard predictions.",
        _precision,
        "never predicted",
        f"{_VALOR}; {_SKLEARN}.precision_score",
        trials=lambda right, predicted, actual: predicted,
        formula=r"\frac{\text{tp}}{\text{tp} + \text{fp}}",
    ),
    msgspec.structs.replace(
        _ratio_metric(
            "Recall",
            "tp / (tp + fn) of the hard predictions.",
            _recall,
            NO_TRUTH,
            f"{_VALOR}; {_SKLEARN}.recall_score",
            trials=lambda right, predicted, actual: actual,
            formula=r"\frac{\text{tp}}{\text{tp} + \text{fn}}",
        ),
        mean_of=_recalls,
    ),
    metric(
        "SelectionRate",
        "Share of datums whose hard prediction is the label.",
        "fairlearn.metrics.selection_rate",
        _selection_rate,
        better="neither",
        trials=TRIALS,
        aliases=("selection_rate",),
        formula=r"\frac{\text{tp} + \text{fp}}{n}",
    ),
    _f_metric(1.0),
    _ratio_metric(
        "Jaccard",
        "tp / (tp + fp + fn) of the hard predictions.",
        lambda settings, right, predicted, actual: ratio(
            right, predicted + actual - right, settings.zero_division
        ),
        "neither ground truth nor prediction",
        f"{_SKLEARN}.jaccard_score",
        trials=_either,
        formula=r"\frac{\text{tp}}{\text{tp} + \text{fp} + \text{fn}}",
    ),
    _datum_rate(
        "Specificity",
        "tn / (tn + fp)",
        lambda tp, fp, fn, tn: (tn, tn + fp),
        r"\frac{\text{tn}}{\text{tn} + \text{fp}}",
        reason=NO_NEGATIVE,
    ),
    _datum_rate(
        "NPV",
        "tn / (tn + fn)",
        lambda tp, fp, fn, tn: (tn, tn + fn),
        r"\frac{\text{tn}}{\text{tn} + \text{fn}}",
        reason="the label is predicted for every datum",
    ),
    _datum_rate(
        "FPR",
        "fp / (fp + tn)",
        lambda tp, fp, fn, tn: (fp, tn + fp),
        r"\frac{\text{fp}}{\text{fp} + \text{tn}}",
        lower=True,
        reason=NO_NEGATIVE,
    ),
    _datum_rate(
        "FNR",
        "fn / (fn + tp)",
        lambda tp, fp, fn, tn: (fn, tp + fn),
        r"\frac{\text{fn}}{\text{fn} + \text{tp}}",
        lower=True,
        reason=NO_TRUTH,
    ),
    metric(
        "ZeroOneLoss",
        "Share of datums whose hard prediction is not the true label, per key: 1 - Accuracy.",
        f"{_SKLEARN}.zero_one_loss",
        _zero_one_loss,
        params=("multilabel", "decision_threshold"),
        trials="support",
        better="lower",
        formula=r"\frac{1}{n} \sum_d [\hat{y}_d \ne y_d]",
    ),
    metric(
        "BalancedAccuracy",
        "Mean of recall over the labels that have ground truth.",
        f"{_SKLEARN}.balanced_accuracy_score",
        _balanced,
        aliases=("balanced_accuracy", "balanced_accuracy_score"),
        mean_of=_recalls,
        formula=r"\frac{1}{|T|} \sum_{\ell \in T} \frac{\text{tp}_\ell}{\text{tp}_\ell +"
        r" \text{fn}_\ell}",
    ),
    metric(
        "BalancedAccuracyAdjusted",
        "Balanced accuracy rescaled so that chance scores 0: (b - 1/n) / (1 - 1/n), n labels.",
        f"{_SKLEARN}.balanced_accuracy_score(adjusted=True)",
        partial(_balanced, adjusted=True),
        range=(-np.inf, 1.0),
        formula=r"\frac{a - 1 / |T|}{1 - 1 / |T|}, \quad a = \frac{1}{|T|} \sum_{\ell \in T}"
        r" \frac{\text{tp}_\ell}{\text{tp}_\ell + \text{fn}_\ell}",
    ),
    metric(
        "MCC",
        "Matthews correlation of several classes: (c s - sum t_k p_k) / sqrt((s^2 - sum p_k^2)"
        " (s^2 - sum t_k^2)).",
        f"Gorodkin 2004; {_SKLEARN}.matthews_corrcoef",
        _matthews,
        range=(-1.0, 1.0),
        aliases=("matthews_corrcoef", "matthews_correlation"),
        formula=r"\frac{n \sum_\ell \text{tp}_\ell - \sum_\ell t_\ell\, p_\ell}{\sqrt{\left(n^2"
        r" - \sum_\ell p_\ell^2\right) \left(n^2 - \sum_\ell t_\ell^2\right)}}",
    ),
    metric(
        "CohenKappa",
        "1 - observed / expected disagreement.",
        f"Cohen 1960; {_SKLEARN}.cohen_kappa_score",
        _kappa,
        range=(-1.0, 1.0),
        aliases=("cohen_kappa", "cohen_kappa_score"),
        formula=r"1 - \frac{\sum_{i \ne j} C_{ij}}{\frac{1}{n} \sum_{i \ne j} t_i\, p_j}",
    ),
    metric(
        "CohenKappaLinear",
        "Cohen's kappa with disagreements weighed by |i - j|, the labels' ranks in order.",
        f"Cohen 1968; {_SKLEARN}.cohen_kappa_score(weights='linear')",
        partial(_kappa, power=1),
        range=(-1.0, 1.0),
        chooses=True,
        formula=r"1 - \frac{\sum_{i,j} |i - j|\, C_{ij}}{\frac{1}{n} \sum_{i,j} |i - j|\, t_i\,"
        r" p_j}",
    ),
    metric(
        "CohenKappaQuadratic",
        "Cohen's kappa with disagreements weighed by (i - j)^2, the labels' ranks in order.",
        f"Cohen 1968; {_SKLEARN}.cohen_kappa_score(weights='quadratic')",
        partial(_kappa, power=2),
        range=(-1.0, 1.0),
        chooses=True,
        formula=r"1 - \frac{\sum_{i,j} (i - j)^2\, C_{ij}}{\frac{1}{n} \sum_{i,j} (i - j)^2\,"
        r" t_i\, p_j}",
    ),
    metric(
        "HammingLoss",
        "Share of wrong labels: 1 - accuracy, or with several labels a datum wrong cells of the"
        " datum x label matrix.",
        f"{_SKLEARN}.hamming_loss",
        _hamming,
        better="lower",
        aliases=("hamming_loss",),
        formula=r"\frac{1}{n} \sum_d [\hat{y}_d \ne y_d], \quad \text{with several labels a"
        r" datum} \quad \frac{1}{n L} \sum_{d, \ell} \left|[\ell \in y_d] - [\ell \in"
        r" \hat{y}_d]\right|",
    ),
    metric(
        "Counts",
        "tp, fp, fn and tn of the hard predictions, one label against the rest.",
        "Valor-lite Counts",
        _counts,
        range=(0.0, np.inf),
        better="neither",
        counts=True,
        formula=r"\text{tp}_\ell = \sum_d [\hat{y}_d = \ell = y_d], \quad \text{fp}_\ell ="
        r" \sum_d [\hat{y}_d = \ell \ne y_d], \quad \text{fn}_\ell = \sum_d [\hat{y}_d \ne"
        r" \ell = y_d]",
    ),
    metric(
        "TopKAccuracy",
        "Share of datums whose true label is among the k best scores.",
        f"{_SKLEARN}.top_k_accuracy_score",
        _top_k,
        needs=("ranks", "scores"),
        params=("k",),
        trials="support",
        aliases=("top_k_accuracy", "top_k_accuracy_score"),
        formula=r"\frac{1}{n} \sum_d [r_d \le k]",
    ),
)
