"""Metrics of scores: ROC AUC, average precision, probabilities, thresholds, curves; frames."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from ....metrics.averages import (
    NO_TRUTH,
    UNREACHED,
    by_key,
    key_cells,
    label_cells,
    macro,
    ratio,
    scored_rows,
    weighted,
)
from ....metrics.registry import Metric
from ....metrics.thresholds import NOTHING, RULES, Curve, Rule, best_of
from ....schemas.arrays import Array
from ....schemas.errors import ResultError
from ....schemas.option_values import in_name
from ....schemas.wording import option
from ....tallies.datums import Cells, parameters
from ....tallies.draws import Draws
from ....tallies.ranked_points import first_of, last_of, segment_of
from ....tallies.scored_view import ScoredDraws, ScoredView
from ....tallies.sorted_scores import area_variances, partial_area, placements
from ..dialects import Settings
from .counts import metric

# Classification by the order of scores: ROC areas and average precision.

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
        only_positives = (view.positives > 0) & (view.negatives <= 0)
        area = np.where(only_positives, rules.auc_without_negatives, area)
    if rules.auc_without_positives is not None:
        area = np.where(view.positives <= 0, rules.auc_without_positives, area)
    if rules.auc_without_predictions is not None:
        hits, others, strays = view.listed
        silent = (by_key(view, hits + others + strays) == 0)[:, view.labels.key]
        area = np.where(silent & (view.positives > 0), rules.auc_without_predictions, area)
    return area


def _label_auc(view: ScoredView, settings: Settings) -> list[Cells]:
    area = _filled_auc(view, settings, view.roc_auc)
    return [label_cells(area, scored_rows(view), _ONE_CLASS, view.positives)]


def _mean_auc(view: ScoredView, settings: Settings) -> list[Cells]:
    return _means(view, settings, _filled_auc(view, settings, view.roc_auc), "roc")


def _mean_variance(
    view: ScoredView, settings: Settings, keys: Array | None, *, clustered: bool
) -> Array:
    """Variances and sizes of means over a single label; NaN for others."""
    inside = _averaged(view, settings)
    variances = area_variances(view, keys, clustered=clustered)
    of_keys = np.stack(
        [by_key(view, np.where(inside, np.nan_to_num(one), 0.0)) for one in variances]
    )
    single = (by_key(view, inside) == 1) & (by_key(view, inside & np.isnan(variances[0])) == 0)
    return np.where(single & (settings.average not in ("micro", "samples")), of_keys, np.nan)


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
    broken_by = f"a label without {has}"
    cells = [
        key_cells(view, mean, np.where(broken, broken_by, nothing), "macro", support),
        key_cells(view, by_weight, np.where(counting, broken_by, nothing), "weighted", support),
    ]
    if settings.average == "micro":
        pooled = view.pooled
        if micro == "roc":
            values = _filled_auc(pooled, settings, pooled.roc_auc)
        else:
            fill = settings.rules.precision_without_positives
            values = pooled.average_precision
            values = values if fill is None else np.where(pooled.positives > 0, values, fill)
        cells.append(key_cells(view, values, nothing, "micro", support))
    if settings.average == "samples":
        cells.append(_over_samples(view, settings, micro, support))
    return cells


def _over_samples(view: ScoredView, settings: Settings, kind: str, support: Array) -> Cells:
    """Return the mean over datums of each datum's value over its labels, one row per key.

    As scikit-learn's ``average="samples"``; undefined datums are filled, skipped or propagated in
    the same way.
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
    rules, present = settings.rules, view.positives > 0
    if rules.precision_without_positives is None:
        return value
    value = np.where(present, value, rules.precision_without_positives)
    several = view.scored is not None and view.scored.several
    if rules.absent_precision_means or settings.multilabel or not several:
        return value
    return np.where(present | _only_first_label(view), value, np.nan)


def _only_first_label(view: ScoredView) -> Array:
    """Return True if all datums have the first label of the label's key, bool [group, label].

    torchmetrics takes a target of only zeros, which is class 0, for one without any positive, and
    then sets the recall of every class to 1 (``_binary_precision_recall_curve_compute``).
    """
    first = np.zeros(len(view.labels), bool)
    first[np.unique(view.labels.key, return_index=True)[1]] = True
    others = by_key(view, np.where(first, 0.0, view.positives))
    return (others == 0)[:, view.labels.key]


def _label_ap(view: ScoredView, settings: Settings) -> list[Cells]:
    value = _filled_precision(view, settings)
    return [label_cells(value, scored_rows(view), _NO_TRUTH, view.positives)]


def _mean_ap(view: ScoredView, settings: Settings) -> list[Cells]:
    return _means(view, settings, _filled_precision(view, settings), "precision")


def _partial_auc(view: ScoredView, settings: Settings) -> list[Cells]:
    """McClish's standardised partial area, up to ``max_fpr``."""
    limit = settings.max_fpr
    area = partial_area(view, limit)
    keep = scored_rows(view)
    lowest = 0.5 * limit * limit
    value = _filled_auc(view, settings, 0.5 * (1 + (area - lowest) / (limit - lowest)))
    limits = parameters(max_fpr=limit)
    return [label_cells(value, keep, _ONE_CLASS, view.positives, parameters=limits)]


def _one_against_one(view: ScoredView, settings: Settings) -> list[Cells]:
    """Hand and Till's mean over pairs of labels."""
    area, prevalence = view.pairwise_auc
    n_keys = len(view.labels.key_names)
    means = {name: np.full((view.n_groups, n_keys), np.nan) for name in ("macro", "weighted")}
    for k in range(n_keys):
        codes = np.flatnonzero(view.labels.key == k)
        first, second = np.triu_indices(codes.size, 1)
        a, b = codes[first], codes[second]
        present = (view.positives[:, a] > 0) & (view.positives[:, b] > 0)
        pair = np.where(present, (area[:, a, b] + area[:, b, a]) / 2, 0.0)
        weight = np.where(present, prevalence[:, a] + prevalence[:, b], 0.0)
        means["macro"][:, k] = ratio(pair.sum(axis=1), present.sum(axis=1))
        means["weighted"][:, k] = ratio((pair * weight).sum(axis=1), weight.sum(axis=1))
    reason = "fewer than two labels with ground truth"
    return [key_cells(view, mean, reason, average) for average, mean in means.items()]


_metric = partial(metric, needs=("scores",), ranks=True)


_RANKING_METRICS = (
    _metric(
        "ROCAUC",
        "Area under the ROC curve of a label against the rest of its key; ties count half, datums"
        " that do not list the label rank last.",
        f"Valor metrics document, ROCAUC; {_SKLEARN}.roc_auc_score; Hanley and McNeil 1982",
        _label_auc,
        aliases=("AUROC", "roc_auc", "roc_auc_score", "AUC"),
        interval="logit",
        area_variance=lambda view, settings, keys, **how: area_variances(view, keys, **how),
        placements=placements,
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
        interval="logit",
        area_variance=_mean_variance,
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
        chooses=True,
        formula=r"\frac{2}{L (L - 1)} \sum_{i < j} \frac{A_{i|j} + A_{j|i}}{2}",
    ),
    _metric(
        "PartialROCAUC",
        "Area under the ROC curve up to max_fpr, standardised so that chance scores 0.5.",
        f"McClish 1989; {_SKLEARN}.roc_auc_score(max_fpr=...)",
        _partial_auc,
        params=("max_fpr",),
        chooses=True,
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


# Metrics of optimal score thresholds.

_NO_SCORE = "no score of the label on a datum with ground truth"
_NO_NEGATIVE = "no negative datum of the label"
_NO_RATE = {"recall": _NO_TRUTH, "fpr": _NO_NEGATIVE}
"""Why a rate is undefined at a threshold that was chosen: it is one over no datum at all."""
_WITHOUT = {"positives": _NO_TRUTH, "negatives": _NO_NEGATIVE}


def curve_of(view: ScoredView, settings: Settings, *, pooled: bool = False) -> Curve:
    """The points of every (group, label), or of all labels of a key as one."""
    if not view.has_scores:
        raise ResultError(
            f"the run keeps no scores: score it with {option('metrics', 'ROCAUC')}.",
            code="not_kept",
        )
    of = view.pooled if pooled else view

    def reported() -> Array:
        here = scored_rows(view)
        return (by_key(view, here) > 1 if pooled else here).ravel()

    return Curve(
        of.point_blocks,
        of.positives.ravel(),
        of.negatives.ravel(),
        reported,
        exclusive=not settings.multilabel,
    )


def drawn_curves(
    view: ScoredView, settings: Settings, draws: Draws
) -> Iterator[tuple[Curve, Curve]]:
    """Yield the curves of each resample of a block, per label and per key pooled, from files."""
    block = ScoredDraws(view, draws)
    sides = (block.positives, block.negatives), block.classes_of_keys
    levels = [[one.reshape(len(draws), -1) for one in side] for side in sides]
    views = view, view.pooled
    whole = [curve_of(view, settings, pooled=pooled) for pooled in (False, True)]

    def curve(d: int, level: int) -> Curve:
        return msgspec.structs.replace(
            whole[level],
            blocks=partial(views[level].drawn_points, draws, d),
            positives=levels[level][0][d],
            negatives=levels[level][1][d],
        )

    return ((curve(d, 0), curve(d, 1)) for d in range(len(draws)))


def _unchosen(view: ScoredView, unscored: Array, required: str) -> Array:
    """Why no threshold of a label was chosen, [group, label]; objects, as fixed widths are slow."""
    missing = {"positives": view.positives <= 0, "negatives": view.negatives <= 0}
    why = np.full(view.shape, UNREACHED, dtype=object)
    if required:
        why[missing[required]] = _WITHOUT[required]
    why[unscored.reshape(view.shape)] = _NO_SCORE
    return why


def _best(view: ScoredView, settings: Settings, rule: Rule) -> list[Cells]:
    """Compute the threshold that a rule chooses for every label, and its rates."""
    curve = curve_of(view, settings)
    best, at, parameters_json = best_of(curve, rule, settings)
    chosen = ~np.isnan(best.threshold).reshape(view.shape)
    why = _unchosen(view, best.unscored, rule.required)
    keep = curve.reported().reshape(view.shape)
    named = {
        "threshold": best.threshold,
        "precision": at.precision,
        "recall": at.recall,
        "fpr": at.fpr,
        f"f{in_name(settings.beta)}": at.f,
    }
    cells = []
    for statistic, value in named.items():
        reason = why.copy()
        reason[chosen] = _NO_RATE.get(statistic, "no weight at the threshold")
        if rule.nothing and statistic not in _NO_RATE:
            reason[chosen & (best.tp + best.fp == 0).reshape(view.shape)] = NOTHING
        cells.append(
            label_cells(
                value.reshape(view.shape),
                keep,
                reason,
                view.positives,
                statistic=statistic,
                parameters=parameters_json,
            )
        )
    return cells


def _threshold_metric(rule: Rule) -> Metric:
    return metric(
        rule.metric,
        rule.definition,
        rule.source,
        partial(_best, rule=rule),
        params=(*rule.params, "beta"),
        range=(-np.inf, np.inf),
        better="neither",
        chooses=True,
        needs=("scores",),
        formula=rule.formula,
    )


def _ks(view: ScoredView, settings: Settings) -> list[Cells]:
    """Compute the largest distance of recall and false-positive rate over all thresholds."""
    curve = curve_of(view, settings)
    best, at, _ = best_of(curve, _KS, settings)
    gap = np.abs(at.recall - at.fpr).reshape(view.shape)
    keep = curve.reported().reshape(view.shape)
    why = np.where(best.unscored.reshape(view.shape), _NO_SCORE, _ONE_CLASS)
    return [label_cells(gap, keep, why, view.positives)]


_KS = Rule(
    metric="KSStatistic",
    definition="",
    merit=lambda threshold, at, aims: np.abs(at.recall - at.fpr),
    serves="recall",
    formula="",
)


def _gain(view: ScoredView, settings: Settings, *, lift: bool) -> list[Cells]:
    """Compute the recall among the share of datums with the highest scores.

    Datums of one score enter in proportion. Source: the cumulative gains chart, Berry and Linoff
    1999, Mastering Data Mining.
    """
    curve, share = curve_of(view, settings), settings.top_share
    positives = np.asarray(curve.positives, np.float64)
    total = view.judged[:, view.labels.key].reshape(-1).astype(np.float64)
    aim = share * total
    low = np.zeros((2, positives.size))  # datums and positives up to the last point before
    high = np.full((2, positives.size), np.nan)
    for points in curve.blocks():
        segment = segment_of(points.start)
        seen = points.tp + points.fp
        before = last_of(points.start, seen <= aim[segment])
        after = first_of(points.start, seen > aim[segment])
        here = before >= 0
        low[:, here] = seen[before[here]], points.tp[before[here]]
        here = (after >= 0) & np.isnan(high[0])
        high[:, here] = seen[after[here]], points.tp[after[here]]
    high = np.where(np.isnan(high), (total, positives), high)
    part = ratio(aim - low[0], high[0] - low[0], 0.0)
    gain = ratio(low[1] + part * (high[1] - low[1]), positives).reshape(view.shape)
    keep = curve.reported().reshape(view.shape)
    at_share = parameters(top_share=share)
    value = gain / share if lift else gain
    return [label_cells(value, keep, _NO_TRUTH, view.positives, parameters=at_share)]


_BY_SHARE: dict[str, Any] = {"chooses": True, "needs": ("scores",)}
_THRESHOLDS_METRICS = (
    *map(_threshold_metric, RULES),
    metric(
        "KSStatistic",
        "Kolmogorov-Smirnov distance of the scores of datums with and without the label: the"
        " largest distance of recall and false-positive rate over all thresholds.",
        "scipy.stats.ks_2samp",
        _ks,
        formula=r"\max_\tau \left|R(\tau) - \text{FPR}(\tau)\right|",
        **_BY_SHARE,
    ),
    metric(
        "Gain",
        "Recall among the top_share of datums with the highest scores; datums of one score enter in"
        " proportion.",
        "cumulative gains chart",
        partial(_gain, lift=False),
        params=("top_share",),
        formula=r"R(\tau_q)",
        **_BY_SHARE,
    ),
    metric(
        "Lift",
        "Gain divided by top_share: how much more often the label is true there than anywhere.",
        "cumulative lift chart",
        partial(_gain, lift=True),
        params=("top_share",),
        range=(0.0, np.inf),
        formula=r"\frac{R(\tau_q)}{q}",
        **_BY_SHARE,
    ),
)


# Classification by probabilities: log loss, Brier score and calibration.


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
        return np.linspace(0.0, 1.0, settings.n_bins + 1).tolist()
    return [i / settings.n_bins for i in range(settings.n_bins + 1)]


def _bins(
    view: ScoredView, settings: Settings, *, upper: bool = False, squares: bool = False
) -> tuple[Array, Array, Array]:
    """Return weight, sum of confidence and sum of correct ones, [group, key, bin] each.

    Args:
        upper: bins include their upper edge, as in a dialect's curve.
        squares: of the weights, sum the squares.
    """
    assert view.scored is not None
    edges = [view.scored.comparable(edge) for edge in _edges(settings, upper=upper)]
    side: Literal["left", "right"] = "left" if upper else "right"

    def binned(few: ScoredView) -> tuple[Array, Array, tuple[Array | None, ...]]:
        judged = few.judged_units
        confidence, right = (column[judged] for column in few.confidence)
        at = np.searchsorted(edges, confidence, side=side) - 1
        weight = few.units.weight[judged] if squares and few.units.weight is not None else None
        return judged, np.clip(at, 0, settings.n_bins - 1), (weight, confidence, right)

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


def _effective_bins(view: ScoredView, settings: Settings) -> tuple[Array, Array, Array, Array]:
    """Return share, accuracy, mean confidence and effective number of datums of every bin."""
    n, confidence, right = _bins(view, settings)
    count = n
    if view.units.weight is not None:  # Kish's number: (sum w)^2 / sum w^2
        count = ratio(n * n, _bins(view, settings, squares=True)[0], 0.0)
    shares = ratio(n, n.sum(axis=-1, keepdims=True))
    return shares, ratio(right, n, 0.0), ratio(confidence, n, 0.0), count


def _debiased_error(view: ScoredView, settings: Settings) -> list[Cells]:
    """Root of the mean squared gap, less what chance adds to each squared gap."""
    share, accuracy, sure, n = _effective_bins(view, settings)
    several = n > 1 + 1e-9  # a weighted datum counts as 1 up to rounding
    by_chance = accuracy * (1 - accuracy) / np.where(several, n - 1, 1.0)
    square = np.where(several, (accuracy - sure) ** 2 - by_chance, 0.0)
    unbiased = ratio((share * square).sum(axis=-1), (share * several).sum(axis=-1))
    cells = _with_bins(view, settings, np.sqrt(np.maximum(unbiased, 0.0)))
    why = np.where(n.sum(axis=-1) > 0, "no bin with two datums", NO_TRUTH)
    return [msgspec.structs.replace(cells, reason=why)]


_WORLDS = 1000  # simulated outcomes of a calibrated model


def _calibrated_error(view: ScoredView, settings: Settings) -> list[Cells]:
    """95 % point of ECE over outcomes drawn from the mean confidence of each bin."""
    share, _, sure, n = _effective_bins(view, settings)
    value = np.full(n.shape[:2], np.nan)
    for place in zip(*np.nonzero(n.sum(axis=-1) > 0), strict=True):
        size = np.maximum(np.rint(n[place]), 1).astype(np.int64)
        p = np.clip(sure[place], 0.0, 1.0)
        hits = np.random.default_rng(0).binomial(size, p, (_WORLDS, size.size))
        errors = np.abs(hits / size - p) @ share[place]
        value[place] = np.quantile(errors, 0.95)
    return [_with_bins(view, settings, value)]


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
            columns={"value": value, "statistic": statistic, "support": n},
            reason=NO_TRUTH,
        )
        for statistic, value in (
            ("confidence", ratio(confidence, n)),
            ("accuracy", ratio(right, n)),
            ("share", ratio(n, n.sum(axis=-1, keepdims=True))),
        )
    ]


_of_probabilities = partial(metric, needs=("hard", "scores", "probabilities"), better="lower")


_SKEWED = {"bca": "gaps that cannot be negative are biased, and bca corrects the wrong way"}


_PROBABILITY_METRICS = (
    _of_probabilities(
        "LogLoss",
        "Mean of -ln p of the true label, p clipped to the scores' machine epsilon; a label that"
        " is not listed has p = 0.",
        f"{_SKLEARN}.log_loss",
        _log_loss,
        range=(0.0, np.inf),
        aliases=("log_loss",),
        formula=r"-\frac{1}{n} \sum_d \ln \min(\max(p_d, \varepsilon), 1 - \varepsilon)",
    ),
    _of_probabilities(
        "Brier",
        "Mean over datums of the sum over labels of (p - truth)^2; half of it with two labels.",
        f"Brier 1950; {_SKLEARN}.brier_score_loss",
        _brier,
        range=(0.0, 2.0),
        aliases=("brier_score", "brier_score_loss"),
        formula=r"\frac{1}{n} \sum_d \sum_\ell \left(p_{d\ell} - [\ell = y_d]\right)^2, \quad"
        r" \text{half of it with two labels}",
    ),
    _of_probabilities(
        "ECE",
        "Expected calibration error: mean over n_bins equal bins of |accuracy - confidence|,"
        " weighed by the datums in each; confidence is the best score, or the positive one's.",
        "Naeini et al. 2015; torchmetrics calibration_error(norm='l1')",
        _expected_error,
        params=("n_bins",),
        interval="recentred",
        unfit=_SKEWED,
        formula=r"\sum_b \frac{n_b}{n} \left|\text{acc}_b - \text{conf}_b\right|",
    ),
    _of_probabilities(
        "ECECalibrated",
        "95 % point of ECE over simulated outcomes of a calibrated model with these scores: an ECE"
        " up to it is no sign of miscalibration.",
        "Broecker and Smith 2007, consistency resampling; 1,000 outcomes, each bin's drawn from its"
        " mean confidence",
        _calibrated_error,
        params=("n_bins",),
        better="neither",
        unfit={"": "it is the range of chance itself"},
        formula=r"q_{0.95} \sum_b \frac{1}{n} \left|\text{Bin}(n_b, \text{conf}_b) - n_b\,"
        r" \text{conf}_b\right|",
    ),
    _of_probabilities(
        "RMSCE",
        "Root mean squared calibration error without the part that chance adds: the root of the"
        " mean over n_bins equal bins of (accuracy - confidence)^2 - accuracy (1 - accuracy) /"
        " (n_b - 1), 0 if that is negative; bins of one datum are skipped.",
        "Kumar, Liang, Ma 2019; Broecker 2012",
        _debiased_error,
        params=("n_bins",),
        interval="recentred",
        unfit=_SKEWED,
        formula=r"\sqrt{\sum_b \frac{n_b}{n} \left((\text{acc}_b - \text{conf}_b)^2 -"
        r" \frac{\text{acc}_b (1 - \text{acc}_b)}{n_b - 1}\right)}",
    ),
    _of_probabilities(
        "MCE",
        "Maximum calibration error: the largest |accuracy - confidence| of any bin.",
        "Naeini et al. 2015; torchmetrics calibration_error(norm='max')",
        _largest_error,
        params=("n_bins",),
        interval="recentred",
        unfit=_SKEWED,
        formula=r"\max_b \left|\text{acc}_b - \text{conf}_b\right|",
    ),
    _of_probabilities(
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


# Curves of classification: at given score thresholds, and at every distinct score.


def _columns(
    tp: Array, fp: Array, positives: Array, rest: Array, fill: float
) -> dict[str, Array | str | float | None]:
    """Columns of the curves frame from counts; ``rest`` are all that are no positives."""
    fn = positives - tp
    tn = np.maximum(rest - fp, 0.0)
    return {
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "precision": ratio(tp, tp + fp, fill),
        "recall": ratio(tp, positives, fill),
        "f1": ratio(2 * tp, 2 * tp + fp + fn, fill),
        "fpr": ratio(fp, np.maximum(rest, fp)),
        "accuracy": ratio(tp + tn, positives + rest),
    }


def _at_thresholds(view: ScoredView, settings: Settings) -> list[Cells]:
    hits, others, strays = view.reached(settings.score_thresholds)
    rules = settings.rules
    fill = np.nan if rules.curve_undefined is None else rules.curve_undefined
    rest = view.rest(of_datums=rules.curve_every_datum)
    columns = _columns(hits, others + strays, view.positives[:, :, None], rest[:, :, None], fill)
    if rules.curve_f1_needs_hits:
        columns["f1"] = np.where(hits == 0, fill, columns["f1"])  # type: ignore[arg-type]
    keep = scored_rows(view)
    return [
        Cells(
            axes=("group", "label", "score_threshold"),
            values={"score_threshold": settings.score_thresholds},
            shape=hits.shape,
            keep=keep[:, :, None],
            columns=columns,
        )
    ]


def _at_scores(view: ScoredView, settings: Settings, choose: Any = None) -> list[Cells]:
    """Every distinct score, highest first; the point above all scores has no threshold."""
    curves = _complete(view)
    if not curves.segment.size:
        return []
    keep = slice(None) if choose is None else choose(curves, settings)
    segment = curves.place[keep]
    tp, fp, threshold = curves.tp[keep], curves.fp[keep], curves.threshold[keep]
    group, label = np.divmod(segment, view.shape[1])
    positives = view.positives[group, label]
    columns = _columns(tp, fp, positives, view.negatives[group, label], np.nan)
    return [
        Cells(
            axes=("point",),
            shape=tp.shape,
            columns={**columns, "score_threshold": threshold},
            codes={"group": group, "label": label},
        )
    ]


class _Curves(NamedTuple):
    """Points of all curves, from the one above all scores to the one that includes all rows.

    Attributes:
        start: int64 [c + 1], CSR offsets.
        segment: int64 [c], group * labels + label of each curve.
        place: int64 [m], same for each point.
        threshold: float64 [m], NaN for points without a score.
        tp: float64 [m], ascending within a curve.
        fp: float64 [m], ascending within a curve.
    """

    start: Array
    segment: Array
    place: Array
    threshold: Array
    tp: Array
    fp: Array


def _complete(view: ScoredView) -> _Curves:
    """Return points at every distinct score, plus the two end points without a score."""
    curve = view.points
    size = np.diff(curve.start)
    segment = np.flatnonzero(size)
    last = curve.start[segment + 1] - 1
    positives, negatives = view.positives.ravel()[segment], view.negatives.ravel()[segment]
    # Datums that do not list the label come last, all at once.
    short = (curve.tp[last] < positives) | (curve.fp[last] < negatives)
    start = np.concatenate(([0], np.cumsum(size[segment] + 1 + short)))
    first, end = start[:-1], start[1:][short] - 1
    scored = np.ones(start[-1], bool)
    scored[first] = scored[end] = False
    columns = []
    for points, above, below in (
        (curve.threshold, np.nan, np.full(end.size, np.nan)),
        (curve.tp, 0.0, positives[short]),
        (curve.fp, 0.0, negatives[short]),
    ):
        column = np.empty(start[-1])
        column[first], column[end], column[scored] = above, below, points
        columns.append(column)
    return _Curves(start, segment, np.repeat(segment, np.diff(start)), *columns)


def _corners(curves: _Curves, settings: Settings) -> Array:
    """Points that are not on a straight line between their neighbours, and the highest score."""
    keep = np.ones(curves.tp.size, bool)
    if settings.thin_curves:
        keep[1:-1] = (np.diff(curves.tp, 2) != 0) | (np.diff(curves.fp, 2) != 0)
        keep[curves.start[:-1]] = keep[curves.start[:-1] + 1] = keep[curves.start[1:] - 1] = True
    return keep


def _tradeoff(curves: _Curves, settings: Settings) -> Array:
    """From the last point without a false positive to the first with every true one."""
    start = curves.start
    of = segment_of(start)
    first = last_of(start, curves.fp <= 0)
    last = first_of(start, curves.tp >= curves.tp[start[1:] - 1][of])
    place = np.arange(curves.tp.size)
    return (place >= first[of]) & (place <= last[of])


_curve = partial(metric, frame="curves", needs=("scores",), better="neither")


_CURVES_METRICS = (
    _curve(
        "PrecisionRecallCurve",
        "tp, fp, fn, tn and their ratios per label and score threshold; every scored label counts,"
        " not only the best.",
        "Valor metrics document, Precision-Recall Curves",
        _at_thresholds,
        params=("score_thresholds",),
        formula=r"P(\tau) = \frac{\text{tp}(\tau)}{\text{tp}(\tau) + \text{fp}(\tau)}, \quad"
        r" R(\tau) = \frac{\text{tp}(\tau)}{\text{tp}(\tau) + \text{fn}(\tau)}",
    ),
    _curve(
        "ROCCurve",
        "False and true positive rate at every distinct score, from the point above all scores;"
        " thinned by points on straight lines unless thin_curves is false.",
        "scikit-learn metrics.roc_curve",
        partial(_at_scores, choose=_corners),
        params=("thin_curves",),
        formula=r"\left(\frac{\text{fp}(\tau)}{n_-}, \frac{\text{tp}(\tau)}{n_+}\right)",
    ),
    _curve(
        "ScorePrecisionRecallCurve",
        "Precision and recall at every distinct score.",
        "scikit-learn metrics.precision_recall_curve",
        _at_scores,
        formula=r"P(\tau) = \frac{\text{tp}(\tau)}{\text{tp}(\tau) + \text{fp}(\tau)}, \quad"
        r" R(\tau) = \frac{\text{tp}(\tau)}{\text{tp}(\tau) + \text{fn}(\tau)}",
    ),
    _curve(
        "DETCurve",
        "Detection error trade-off: false positive and false negative counts at distinct scores,"
        " between the first false positive and the last missed one.",
        "Martin et al. 1997; scikit-learn metrics.det_curve",
        partial(_at_scores, choose=_tradeoff),
        formula=r"\left(\frac{\text{fp}(\tau)}{n_-}, \frac{\text{fn}(\tau)}{n_+}\right)",
    ),
)


# Classification metrics with separate frames: confusion, detailed curves, outcomes.

_listing = partial(Metric, task="classification", better="neither")

_FRAMES_METRICS = (
    _listing(
        name="ConfusionMatrix",
        frame="confusion",
        needs=("hard", "confusion"),
        params=("pr_curve_max_examples",),
        range=(0.0, float("inf")),
        definition="Datums by true and hard-predicted label; null if either is missing. With"
        " pr_curve_max_examples, examples of each cell too.",
        formula=r"C_{ij} = \sum_d [y_d = i]\, [\hat{y}_d = j]",
        source="Valor metrics document, Confusion Matrix; scikit-learn metrics.confusion_matrix",
    ),
    _listing(
        name="DetailedPrecisionRecallCurve",
        frame="examples",
        needs=("hard", "scores", "details"),
        params=("score_thresholds", "pr_curve_max_examples"),
        range=(0.0, float("inf")),
        definition="tp, fp, fn and tn per label and score threshold, false ones by kind"
        " (misclassifications, hallucinations, no_predictions), with examples.",
        source="Valor metrics document, Detailed Precision-Recall Curves",
    ),
    _listing(
        name="Outcomes",
        frame="outcomes",
        needs=("hard",),
        definition="One row per hard prediction or missed truth, with its outcome.",
        source="evalengine",
    ),
    _listing(
        name="LabelErrors",
        frame="label_errors",
        needs=("scores", "probabilities"),
        definition="Datums whose label is likely wrong by confident learning, with three qualities"
        " of the label and the ways that pick it.",
        source="Northcutt, Jiang, Chuang, Confident Learning (JAIR 2021); cleanlab 2.9",
    ),
    _listing(
        name="PerDatum",
        frame="per_datum",
        needs=("hard",),
        aliases=("PerSample",),
        range=(0.0, float("inf")),
        definition="The loss that ranks each datum: log loss if LogLoss or another metric of"
        " probabilities is computed; F1 of its labels if it may have several; otherwise the score"
        " of its wrong label, 0 if right, or without scores the share that is right.",
        source="evalengine; the order of its worst datums",
    ),
)


METRICS = (
    *_RANKING_METRICS,
    *_THRESHOLDS_METRICS,
    *_PROBABILITY_METRICS,
    *_CURVES_METRICS,
    *_FRAMES_METRICS,
)
