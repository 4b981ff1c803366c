"""Rules that choose a score threshold among the points of a curve, and the resulting counts.

A rule gives every point a merit, NaN for non-candidates; among those with the largest merit the
highest threshold is chosen. Points come in blocks of descending thresholds, so that a curve larger
than memory is read once for all rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from ..schemas.arrays import Array
from ..tally.cells import parameters
from ..tally.points import Points, first_of, largest_of, last_of, segment_of
from .aims import Aims
from .label_averages import ratio

NOTHING = "nothing is predicted at the threshold"
"""Why a threshold above every score has no precision."""


class Curve(msgspec.Struct, frozen=True):
    """Points of every segment (group, label), and numbers of positives and negatives.

    Attributes:
        blocks: yields the points, block by block, in order.
        positives: float64 [s], ground truths that count.
        negatives: float64 [s], datums without the label; None if there are no negatives, as in
            detection.
        shown: returns the segments that make rows, bool [s].
        exclusive: whether one label of a key is predicted per datum, so that a threshold of one
            label affects the others.
        cut: whether rows below thresholds of the run were excluded.
    """

    blocks: Callable[[], Iterable[Points]]
    positives: Array
    negatives: Array | None
    shown: Callable[[], Array]
    exclusive: bool = False
    cut: bool = False


class Reached(msgspec.Struct, frozen=True):
    """Counts and rates at points; arrays of one shape, float64.

    Attributes:
        tn: true negatives; NaN without negatives.
    """

    tp: Array
    fp: Array
    fn: Array
    tn: Array
    precision: Array
    recall: Array
    fpr: Array
    f: Array
    cost: Array


def reached(tp: Array, fp: Array, positives: Array, negatives: Array | None, aims: Aims) -> Reached:
    """Rates of counts; ``positives`` and ``negatives`` have the shape of the counts."""
    square = aims.beta**2
    none = np.full(np.shape(tp), np.nan)
    return Reached(
        tp=tp,
        fp=fp,
        fn=positives - tp,
        tn=none if negatives is None else negatives - fp,
        precision=ratio(tp, tp + fp),
        recall=ratio(tp, positives),
        fpr=none if negatives is None else ratio(fp, negatives),
        f=ratio((1 + square) * tp, square * positives + tp + fp),
        cost=aims.false_positive_cost * fp + aims.miss_cost * (positives - tp),
    )


Merit = Callable[[Array, Reached, Aims], Array]
"""Function from thresholds and their counts to merits, float64 [m]."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Rule that chooses a threshold.

    Attributes:
        params: options that set it, in addition to ``beta``.
        serves: field of :class:`Reached` that it optimises, subject to its target.
        holds: constrained statistic, option with the bound, and whether it is a minimum: (name,
            option, bool).
        lacking: the side without which no threshold satisfies it: ``positives``, ``negatives`` or
            none.
        nothing: whether predicting no rows is a candidate: a threshold above every score.
        negatives: whether it needs negatives.
    """

    metric: str
    definition: str
    formula: str
    source: str = "points of scikit-learn's precision_recall_curve and roc_curve"
    merit: Merit
    params: tuple[str, ...] = ()
    serves: str
    holds: tuple[str, str, bool] | None = None
    lacking: str = ""
    nothing: bool = False
    negatives: bool = False


def _f(threshold: Array, at: Reached, aims: Aims) -> Array:
    return np.where(at.tp + at.fn > 0, at.f, np.nan)


def _precise(threshold: Array, at: Reached, aims: Aims) -> Array:
    return np.where(at.precision >= aims.target_precision, -threshold, np.nan)


def _recalling(threshold: Array, at: Reached, aims: Aims) -> Array:
    return np.where(at.recall >= aims.target_recall, threshold, np.nan)


def _rarely_false(threshold: Array, at: Reached, aims: Aims) -> Array:
    return np.where(at.fpr <= aims.target_fpr, -threshold, np.nan)


def _cheap(threshold: Array, at: Reached, aims: Aims) -> Array:
    return -at.cost


def _equal(threshold: Array, at: Reached, aims: Aims) -> Array:
    """Return the merit of equal error: FPR and FNR if there are negatives, otherwise precision and
    recall.

    Precision equals recall if the number of predictions equals that of positives; unlike their
    difference, that excludes points without a true positive.
    """
    if not np.isnan(at.tn).all():
        apart: Array = -np.abs(at.fpr - (1 - at.recall))
        return apart
    return np.where(at.tp > 0, -np.abs(at.fp - at.fn), np.nan)


LARGEST_F = Rule(
    metric="ThresholdAtMaxF",
    definition="The score threshold with the largest F-beta, and what it reaches.",
    formula=r"\text{arg max}_\tau\, F_\beta(\tau)",
    merit=_f,
    serves="f",
    lacking="positives",
)
RULES: tuple[Rule, ...] = (
    LARGEST_F,
    Rule(
        metric="ThresholdAtPrecision",
        definition="The lowest score threshold with precision at or above target_precision.",
        formula=r"\min \{\tau : P(\tau) \ge P^*\}",
        merit=_precise,
        params=("target_precision",),
        serves="recall",
        holds=("precision", "target_precision", True),
        lacking="positives",
    ),
    Rule(
        metric="ThresholdAtRecall",
        definition="The highest score threshold with recall at or above target_recall.",
        formula=r"\max \{\tau : R(\tau) \ge R^*\}",
        merit=_recalling,
        params=("target_recall",),
        serves="precision",
        holds=("recall", "target_recall", True),
        lacking="positives",
    ),
    Rule(
        metric="ThresholdAtFPR",
        definition="The lowest score threshold with a false-positive rate at or below target_fpr.",
        formula=r"\min \{\tau : \text{FPR}(\tau) \le \text{FPR}^*\}",
        merit=_rarely_false,
        params=("target_fpr",),
        serves="recall",
        holds=("fpr", "target_fpr", False),
        lacking="negatives",
        negatives=True,
    ),
    Rule(
        metric="ThresholdAtCost",
        definition="The score threshold with the least false_positive_cost times false positives"
        " plus miss_cost times misses; above every score where predicting nothing costs least.",
        source="Elkan 2001, The Foundations of Cost-Sensitive Learning",
        formula=r"\text{arg min}_\tau \left(\kappa_+\, \text{fp}(\tau) +"
        r" \kappa_-\, \text{fn}(\tau)\right)",
        merit=_cheap,
        params=("false_positive_cost", "miss_cost"),
        serves="cost",
        nothing=True,
    ),
    Rule(
        metric="ThresholdAtEqualError",
        definition="The score threshold at which both kinds of error are nearest to each other:"
        " false-positive and false-negative rate, or, where nothing is negative, precision and"
        " recall (the break-even point).",
        source="ISO/IEC 19795-1 (equal error rate); Lewis 1992 (break-even point)",
        formula=r"\text{arg min}_\tau \left|\text{FPR}(\tau) - \text{FNR}(\tau)\right|, \quad"
        r" \text{without negatives} \quad \text{arg min}_\tau \left|\text{fp}(\tau) -"
        r" \text{fn}(\tau)\right|",
        merit=_equal,
        serves="f",
        lacking="positives",
    ),
)


class Chosen(msgspec.Struct, frozen=True):
    """Chosen point of every segment, float64 [s] each, NaN for none.

    Attributes:
        unscored: bool [s], segments without any point.
    """

    threshold: Array
    tp: Array
    fp: Array
    unscored: Array


class _Best:
    """The best point of every segment so far, by one rule."""

    def __init__(self, rule: Rule, curve: Curve, aims: Aims) -> None:
        n = curve.positives.size
        self.rule = rule
        self.merit = np.full(n, -np.inf)
        self.threshold, self.tp, self.fp = (np.full(n, np.nan) for _ in range(3))
        if rule.nothing:
            self.merit = -aims.miss_cost * np.asarray(curve.positives, np.float64)
            self.tp[:], self.fp[:] = 0.0, 0.0

    def see(self, found: Points, segment: Array, at: Reached, aims: Aims) -> None:
        merit = self.rule.merit(found.threshold, at, aims)
        fits = ~np.isnan(merit)
        largest = largest_of(found.start, np.where(fits, merit, -np.inf))
        place = first_of(found.start, fits & (merit == largest[segment]))
        better = (place >= 0) & (largest > self.merit)
        place = place[better]
        self.merit[better] = largest[better]
        self.threshold[better] = found.threshold[place]
        self.tp[better], self.fp[better] = found.tp[place], found.fp[place]


def above(score: Array) -> Array:
    """The least scores above some, in the precision that they have."""
    single = score.astype(np.float32)
    higher = np.nextafter(single, np.float32(np.inf)).astype(np.float64)
    return np.where(single == score, higher, np.nextafter(score, np.inf))


def walk(
    curve: Curve, rules: Sequence[Rule], aims: Aims, fixed: Sequence[Array] = ()
) -> tuple[list[Chosen], list[tuple[Array, Array]]]:
    """Choose by every rule, and count at fixed thresholds, in one pass over the points.

    Args:
        fixed: float64 [s] each, thresholds of the segments, NaN for none.

    Returns:
        the choice of each rule; true and false positives with scores at or above each of the fixed
        thresholds, float64 [s], NaN if there is no threshold.
    """
    best = [_Best(rule, curve, aims) for rule in rules]
    n = curve.positives.size
    counted = [
        (np.where(np.isnan(t), np.nan, 0.0), np.where(np.isnan(t), np.nan, 0.0)) for t in fixed
    ]
    top = np.full(n, np.nan)
    for found in curve.blocks():
        segment = segment_of(found.start)
        negatives = None if curve.negatives is None else curve.negatives[segment]
        at = reached(found.tp, found.fp, curve.positives[segment], negatives, aims)
        new = np.isnan(top) & (np.diff(found.start) > 0)
        top[new] = found.threshold[found.start[:-1][new]]
        for one in best:
            one.see(found, segment, at, aims)
        for threshold, (tp, fp) in zip(fixed, counted, strict=True):
            last = last_of(found.start, found.threshold >= threshold[segment])
            here = last >= 0
            tp[here], fp[here] = found.tp[last[here]], found.fp[last[here]]
    unscored = np.isnan(top)
    chosen = []
    for one in best:
        if one.rule.nothing:
            nothing = np.isnan(one.threshold)
            one.threshold[nothing] = above(top[nothing])
            one.tp[unscored] = one.fp[unscored] = np.nan
        chosen.append(Chosen(one.threshold, one.tp, one.fp, unscored))
    return chosen, counted


def best_of(curve: Curve, rule: Rule, aims: Aims) -> tuple[Chosen, Reached, str]:
    """Return a rule's choice in every segment, the resulting rates, and the targets as JSON."""
    (best,), _ = walk(curve, [rule], aims)
    at = reached(best.tp, best.fp, curve.positives, curve.negatives, aims)
    return best, at, parameters(**{name: getattr(aims, name) for name in rule.params or ("beta",)})
