"""Score thresholds and calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

import msgspec
import numpy as np

from ..dialects import Aims
from ..kernels.labels import pooled_blocks
from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from ..schemas.tuning import tuning
from ..tallies.datums import parameters
from ..tallies.ranked_points import Points, first_of, largest_of, last_of, segment_of
from ..tallies.sorted_scores import room
from ..tallies.stored import Place
from .averages import ratio

# Rules that choose a score threshold: the highest of largest merit, in one pass over blocks of
# points.

NOTHING = "no predictions at the threshold"
"""Why a threshold above every score has no precision."""


class Curve(msgspec.Struct, frozen=True):
    """Points of every segment (group, label), and numbers of positives and negatives.

    Attributes:
        blocks: yields the points, block by block, in order.
        positives: float64 [s], ground truths that count.
        negatives: float64 [s], datums without the label; None if there are no negatives, as in
            detection.
        reported: returns the segments that make rows, bool [s].
        exclusive: whether one label of a key is predicted per datum, so that a threshold of one
            label affects the others.
        cut: whether rows below thresholds of the run were excluded.
    """

    blocks: Callable[[], Iterable[Points]]
    positives: Array
    negatives: Array | None
    reported: Callable[[], Array]
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
        required: the side without which no threshold satisfies it: ``positives``, ``negatives`` or
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
    required: str = ""
    nothing: bool = False
    negatives: bool = False


def _equal(threshold: Array, at: Reached, aims: Aims) -> Array:
    """Return the merit of equal error: FPR and FNR if there are negatives, otherwise precision and
    recall.

    Precision equals recall if the number of predictions equals that of positives; unlike their
    difference, that excludes points without a true positive.
    """
    if not np.isnan(at.tn).all():
        return -np.abs(at.fpr - (1 - at.recall))
    return np.where(at.tp > 0, -np.abs(at.fp - at.fn), np.nan)


LARGEST_F = Rule(
    metric="ThresholdAtMaxF",
    definition="The score threshold with the largest F-beta, and the numbers at it.",
    formula=r"\text{arg max}_\tau\, F_\beta(\tau)",
    merit=lambda threshold, at, aims: np.where(at.tp + at.fn > 0, at.f, np.nan),
    serves="f",
    required="positives",
)
RULES: tuple[Rule, ...] = (
    LARGEST_F,
    Rule(
        metric="ThresholdAtPrecision",
        definition="The lowest score threshold with precision at or above target_precision.",
        formula=r"\min \{\tau : P(\tau) \ge P^*\}",
        merit=lambda threshold, at, aims: np.where(
            at.precision >= aims.target_precision, -threshold, np.nan
        ),
        params=("target_precision",),
        serves="recall",
        holds=("precision", "target_precision", True),
        required="positives",
    ),
    Rule(
        metric="ThresholdAtRecall",
        definition="The highest score threshold with recall at or above target_recall.",
        formula=r"\max \{\tau : R(\tau) \ge R^*\}",
        merit=lambda threshold, at, aims: np.where(
            at.recall >= aims.target_recall, threshold, np.nan
        ),
        params=("target_recall",),
        serves="precision",
        holds=("recall", "target_recall", True),
        required="positives",
    ),
    Rule(
        metric="ThresholdAtFPR",
        definition="The lowest score threshold with a false-positive rate at or below target_fpr.",
        formula=r"\min \{\tau : \text{FPR}(\tau) \le \text{FPR}^*\}",
        merit=lambda threshold, at, aims: np.where(at.fpr <= aims.target_fpr, -threshold, np.nan),
        params=("target_fpr",),
        serves="recall",
        holds=("fpr", "target_fpr", False),
        required="negatives",
        negatives=True,
    ),
    Rule(
        metric="ThresholdAtCost",
        definition="The score threshold with the least false_positive_cost times false positives"
        " plus miss_cost times misses; above every score if predicting none costs least.",
        source="Elkan 2001, The Foundations of Cost-Sensitive Learning",
        formula=r"\text{arg min}_\tau \left(\kappa_+\, \text{fp}(\tau) +"
        r" \kappa_-\, \text{fn}(\tau)\right)",
        merit=lambda threshold, at, aims: -at.cost,
        params=("false_positive_cost", "miss_cost"),
        serves="cost",
        nothing=True,
    ),
    Rule(
        metric="ThresholdAtEqualError",
        definition="The score threshold at which both kinds of error are nearest to each other:"
        " false-positive and false-negative rate, or, without negatives, precision and recall (the"
        " break-even point).",
        source="ISO/IEC 19795-1 (equal error rate); Lewis 1992 (break-even point)",
        formula=r"\text{arg min}_\tau \left|\text{FPR}(\tau) - \text{FNR}(\tau)\right|, \quad"
        r" \text{without negatives} \quad \text{arg min}_\tau \left|\text{fp}(\tau) -"
        r" \text{fn}(\tau)\right|",
        merit=_equal,
        serves="f",
        required="positives",
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

    def see(self, points: Points, segment: Array, at: Reached, aims: Aims) -> None:
        merit = self.rule.merit(points.threshold, at, aims)
        fits = ~np.isnan(merit)
        largest = largest_of(points.start, np.where(fits, merit, -np.inf))
        place = first_of(points.start, fits & (merit == largest[segment]))
        better = (place >= 0) & (largest > self.merit)
        place = place[better]
        self.merit[better] = largest[better]
        self.threshold[better] = points.threshold[place]
        self.tp[better], self.fp[better] = points.tp[place], points.fp[place]


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
    for points in curve.blocks():
        segment = segment_of(points.start)
        negatives = None if curve.negatives is None else curve.negatives[segment]
        at = reached(points.tp, points.fp, curve.positives[segment], negatives, aims)
        new = np.isnan(top) & (np.diff(points.start) > 0)
        top[new] = points.threshold[points.start[:-1][new]]
        for one in best:
            one.see(points, segment, at, aims)
        for threshold, (tp, fp) in zip(fixed, counted, strict=True):
            last = last_of(points.start, points.threshold >= threshold[segment])
            here = last >= 0
            tp[here], fp[here] = points.tp[last[here]], points.fp[last[here]]
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


# Calibration of scores: errors by bins, temperature scaling of logits, isotonic fit. Runs never
# apply them.

_SMALLEST = 1e-12  # distance from 0 and 1 to which scores are clipped for logits
_STEPS = 200
_HOTTEST = 1e3


class ScoredSegments(msgspec.Struct, frozen=True):
    """Distinct scores of every segment, descending, and their rows.

    Attributes:
        start: int64 [s + 1], CSR offsets.
        score: float64 [m].
        right: float64 [m], (weighted) rows that are right.
        n: float64 [m], (weighted) rows.
    """

    start: Array
    score: Array
    right: Array
    n: Array

    def of(self, segment: int) -> ScoredSegments:
        """One segment."""
        here = slice(int(self.start[segment]), int(self.start[segment + 1]))
        return ScoredSegments(
            np.array([0, here.stop - here.start]), self.score[here], self.right[here], self.n[here]
        )

    def pieces(self) -> Iterator[tuple[Array, ScoredSegments]]:
        """The scores, few at a time, and the segment of each."""
        segment = np.arange(self.start.size - 1)
        for begin in range(0, self.score.size, tuning().calibrated_scores):
            here = slice(begin, min(begin + tuning().calibrated_scores, self.score.size))
            start = np.clip(self.start, here.start, here.stop) - here.start
            few = ScoredSegments(start, self.score[here], self.right[here], self.n[here])
            yield np.repeat(segment, np.diff(start)), few


Pieces = Iterable[tuple[Array, ScoredSegments]]


def _pieces(curve: Curve) -> Iterator[tuple[Array, ScoredSegments]]:
    """The scores behind the points of a curve, block by block, and the segment of each."""
    before = np.zeros((2, curve.positives.size))
    for block in curve.blocks():
        counts, segment = np.diff(block.start), segment_of(block.start)
        filled = np.flatnonzero(counts)
        first, last = block.start[:-1][filled], block.start[1:][filled] - 1
        rows = []
        for carried, column in zip(before, (block.tp, block.tp + block.fp), strict=True):
            each = np.diff(column, prepend=0.0)
            each[first] = column[first] - carried[filled]
            carried[filled] = column[last]
            rows.append(each)
        yield segment, ScoredSegments(block.start, block.threshold, *rows)


def segments_of(curve: Curve, scratch: str | None = None) -> ScoredSegments:
    """Collect the scores behind the points of a curve; in unnamed files if they are many.

    Args:
        scratch: folder for the files; the system's by default.
    """
    n_segments = curve.positives.size
    pieces: list[tuple[Array, ScoredSegments]] = []
    size, in_memory = np.zeros(n_segments, np.int64), True
    for segment, few in _pieces(curve):
        size += np.diff(few.start)
        in_memory = in_memory and int(size.sum()) <= tuning().calibrated_scores
        pieces = [*pieces, (segment, few)] if in_memory else []
    start = np.r_[0, np.cumsum(size)]
    n = int(start[-1])
    columns = [room(n, Place(scratch, n if in_memory else 0)) for _ in range(3)]
    at = start[:-1].copy()
    for segment, few in pieces if in_memory else _pieces(curve):
        place = at[segment] + np.arange(segment.size) - few.start[segment]
        for column, values in zip(columns, (few.score, few.right, few.n), strict=True):
            column[place] = values
        at += np.diff(few.start)
    return ScoredSegments(start, *columns)


class Bins(msgspec.Struct, frozen=True):
    """Equal bins of scores from 0 to 1, lower edge included; float64 [s, bins].

    Attributes:
        score: mean score, NaN in an empty bin, and in all bins of a segment whose scores are no
            probabilities.
        right: share of right rows, NaN in an empty bin.
    """

    n: Array
    score: Array
    right: Array

    @property
    def gap(self) -> Array:
        """Difference of mean score and share, 0 in an empty bin."""
        return np.where(self.n > 0, np.abs(self.right - self.score), 0.0)

    @property
    def expected(self) -> Array:
        """Mean of the gaps over rows, float64 [s]; NaN without any."""
        return ratio((self.gap * self.n).sum(axis=1), self.n.sum(axis=1))

    @property
    def largest(self) -> Array:
        """The largest gap, float64 [s]; NaN without any row."""
        return np.where(self.n.sum(axis=1) > 0, self.gap.max(axis=1), np.nan)


def bins_of(scores: ScoredSegments, n_bins: int) -> Bins:
    """Bin rows by score; scores outside [0, 1] make a segment undefined."""
    return _binned(scores.pieces(), scores.start.size - 1, n_bins)


def bins_by(curve: Curve, n_bins: int) -> Bins:
    """The same, of the scores behind the points of a curve."""
    return _binned(_pieces(curve), curve.positives.size, n_bins)


def _binned(pieces: Pieces, n_segments: int, n_bins: int) -> Bins:
    edges = np.arange(n_bins + 1) / n_bins
    sums = [ExactSums(n_segments * n_bins) for _ in range(3)]
    beyond = np.zeros(n_segments, bool)
    for segment, few in pieces:
        at = np.clip(np.searchsorted(edges, few.score, side="right") - 1, 0, n_bins - 1)
        for total, values in zip(sums, (few.n, few.n * few.score, few.right), strict=True):
            total.add(values, segment * n_bins + at)
        beyond[segment[(few.score < 0) | (few.score > 1)]] = True
    n, score, right = (total.rounded().reshape(n_segments, n_bins) for total in sums)
    return Bins(n, np.where(beyond[:, None], np.nan, ratio(score, n)), ratio(right, n))


def ece_of(
    parts: Sequence[ScoredSegments], n_bins: int, changed: Sequence[Callable[[Array], Array]] = ()
) -> float:
    """Compute the expected calibration error of one segment.

    Args:
        changed: function on the scores of each block; identity if missing.
    """

    def pieces() -> Iterator[tuple[Array, ScoredSegments]]:
        for scores, change in zip_longest(parts, changed):
            for segment, few in scores.pieces():
                score = few.score if change is None else change(few.score)
                yield segment, msgspec.structs.replace(few, score=score)

    return float(_binned(pieces(), 1, n_bins).expected[0])


def fitted_temperature(scores: ScoredSegments) -> float:
    """Fit the temperature that minimises the negative log likelihood of one segment.

    The likelihood is convex in 1 / T; the root of its derivative is found by bisection. NaN without
    a minimum: rows all right or all wrong, or scores that are uninformative or inverse. Source: C.
    Guo et al., "On calibration of modern neural networks" (2017), of two classes.
    """
    if not scores.n.sum() or not 0 < scores.right.sum() < scores.n.sum():
        return float("nan")
    every = [_logit(scores.score)] if scores.score.size <= tuning().calibrated_scores else None

    def slope(inverse: float) -> float:
        total = ExactSums(1)
        for i, (_, few) in enumerate(scores.pieces()):
            z = _logit(few.score) if every is None else every[i]
            total.add(z * (few.n * _logistic(z * inverse) - few.right))
        return float(total.rounded()[0])

    low, high = 1 / _HOTTEST, _HOTTEST
    if not slope(low) < 0 < slope(high):
        return float("nan")
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 2 / (low + high)


def heated(score: Array, temperature: float) -> Array:
    """Scores at a temperature."""
    return _logistic(_logit(score) / temperature)


def _logit(score: Array) -> Array:
    p = np.clip(score, _SMALLEST, 1 - _SMALLEST)
    return np.log(p) - np.log1p(-p)


def _logistic(z: Array) -> Array:
    with np.errstate(over="ignore"):
        out: Array = 1 / (1 + np.exp(-z))
    return out


class Isotonic(msgspec.Struct, frozen=True):
    """Monotone fit: blocks of scores, ascending, with their shares of right rows.

    Attributes:
        low: float64 [b], the lowest score of a block.
        high: float64 [b], the highest.
        value: float64 [b], fitted value.
    """

    low: Array
    high: Array
    value: Array

    def of(self, score: Array) -> Array:
        """Scores as the fit has them: linear between blocks, constant beyond the outermost."""
        at = np.stack([self.low, self.high], axis=1).ravel()
        return np.asarray(np.interp(score, at, np.repeat(self.value, 2)))


def fitted_isotonic(scores: ScoredSegments) -> Isotonic:
    """Compute the isotonic least-squares fit of one segment, by pooling adjacent violators.

    Source: M. Ayer et al. (1955); B. Zadrozny, C. Elkan (2002) for calibration. The values are
    those of scikit-learn's ``IsotonicRegression(out_of_bounds="clip")``.
    """
    low, high, right, n = np.zeros((4, 0))
    for end in range(scores.score.size, 0, -tuning().calibrated_scores):
        here = slice(max(0, end - tuning().calibrated_scores), end)
        score = scores.score[here][::-1]
        low, high = np.append(low, score), np.append(high, score)
        stop, right, n = pooled_blocks(
            np.append(right, scores.right[here][::-1]), np.append(n, scores.n[here][::-1])
        )
        low, high = low[np.r_[0, stop[:-1]].astype(np.int64)], high[stop - 1]
    return Isotonic(low, high, ratio(right, n))
