"""Whether scores mean what they say: gaps by bins, and what two fits would make of them.

Scores come as the points of a curve: how many right and wrong rows have each distinct score. A
temperature T turns a score p into the logistic function of logit(p) / T; an isotonic fit turns it
into the mean of a block of pooled adjacent violators. Neither is ever applied to a run.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ..kernels.isotonic import pooled_blocks
from ..tally.points import Points, segment_of
from .label_averages import ratio
from .thresholds import Curve

Array = np.ndarray[Any, Any]

_SMALLEST = 1e-12  # scores are clipped by so much where their logit is taken
_STEPS = 200
_HOTTEST = 1e3


class Told(msgspec.Struct, frozen=True):
    """Distinct scores of every segment, descending, and what has them.

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

    def of(self, segment: int) -> Told:
        """One segment."""
        here = slice(int(self.start[segment]), int(self.start[segment + 1]))
        return Told(
            np.array([0, here.stop - here.start]), self.score[here], self.right[here], self.n[here]
        )

    def instead(self, score: Array) -> Told:
        """The same with other scores."""
        return msgspec.structs.replace(self, score=score)


def told_by(curve: Curve) -> Told:
    """The scores behind the points of a curve."""
    nothing = Points(np.zeros(curve.positives.size + 1, np.int64), *np.zeros((3, 0)))
    blocks = [nothing, *curve.blocks()]
    segment = np.concatenate([segment_of(one.start) for one in blocks])
    order = np.argsort(segment, kind="stable")
    score, tp, fp = (
        np.concatenate([getattr(one, name) for one in blocks])[order]
        for name in ("threshold", "tp", "fp")
    )
    start = np.r_[0, np.cumsum(np.bincount(segment, minlength=curve.positives.size))]
    right, n = np.diff(tp, prepend=0.0), np.diff(tp + fp, prepend=0.0)
    first = start[:-1][np.diff(start) > 0]
    right[first], n[first] = tp[first], (tp + fp)[first]
    return Told(start, score, right, n)


class Bins(msgspec.Struct, frozen=True):
    """Equal bins of scores from 0 to 1, each with its lower edge; float64 [s, bins].

    Attributes:
        n: rows.
        score: mean score, NaN in an empty bin, and in all of a segment with scores that are no
            probabilities.
        right: share of the rows that are right, NaN in an empty bin.
    """

    n: Array
    score: Array
    right: Array

    @property
    def gap(self) -> Array:
        """How far mean score and share lie apart, 0 in an empty bin."""
        return np.where(self.n > 0, np.abs(self.right - self.score), 0.0)

    @property
    def expected(self) -> Array:
        """Mean of the gaps over rows, float64 [s]; NaN without any."""
        return ratio((self.gap * self.n).sum(axis=1), self.n.sum(axis=1))

    @property
    def largest(self) -> Array:
        """The largest gap, float64 [s]; NaN without any row."""
        return np.where(self.n.sum(axis=1) > 0, self.gap.max(axis=1), np.nan)


def bins_of(told: Told, n_bins: int) -> Bins:
    """Rows by bins of their score; scores beyond 0 and 1 leave a segment without numbers."""
    edges = np.arange(n_bins + 1) / n_bins
    at = np.clip(np.searchsorted(edges, told.score, side="right") - 1, 0, n_bins - 1)
    n_segments = told.start.size - 1
    place = segment_of(told.start) * n_bins + at
    n, score, right = (
        np.bincount(place, values, minlength=n_segments * n_bins).reshape(n_segments, n_bins)
        for values in (told.n, told.n * told.score, told.right)
    )
    beyond = np.zeros(n_segments, bool)
    beyond[segment_of(told.start)[(told.score < 0) | (told.score > 1)]] = True
    return Bins(n, np.where(beyond[:, None], np.nan, ratio(score, n)), ratio(right, n))


def ece_of(told: Told, n_bins: int) -> float:
    """Expected calibration error of one segment."""
    return float(bins_of(told, n_bins).expected[0])


def fitted_temperature(told: Told) -> float:
    """The temperature with the least negative log likelihood of one segment.

    The likelihood is convex in 1 / T, whose root of the derivative is found by halving. NaN where
    there is no least: rows all right or all wrong, or scores that say nothing or the contrary.
    Source: C. Guo et al., "On calibration of modern neural networks" (2017), of two classes.
    """
    if not told.n.sum() or not 0 < told.right.sum() < told.n.sum():
        return float("nan")
    z = _logit(told.score)

    def slope(inverse: float) -> float:
        return float((z * (told.n * _logistic(z * inverse) - told.right)).sum())

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
    out: Array = np.log(p) - np.log1p(-p)
    return out


def _logistic(z: Array) -> Array:
    with np.errstate(over="ignore"):
        out: Array = 1 / (1 + np.exp(-z))
    return out


class Isotonic(msgspec.Struct, frozen=True):
    """A fit that never falls: blocks of scores, ascending, each with its share of right rows.

    Attributes:
        low: float64 [b], the lowest score of a block.
        high: float64 [b], the highest.
        value: float64 [b], what its scores become.
    """

    low: Array
    high: Array
    value: Array

    def of(self, score: Array) -> Array:
        """Scores as the fit has them: linear between blocks, constant beyond the outermost."""
        at = np.stack([self.low, self.high], axis=1).ravel()
        return np.asarray(np.interp(score, at, np.repeat(self.value, 2)))


def fitted_isotonic(told: Told) -> Isotonic:
    """The isotonic least-squares fit of one segment, by pooling adjacent violators.

    Source: M. Ayer et al. (1955); B. Zadrozny, C. Elkan (2002) for calibration. The values are
    those of scikit-learn's ``IsotonicRegression(out_of_bounds="clip")``.
    """
    score, right, n = (column[::-1] for column in (told.score, told.right, told.n))
    stop = pooled_blocks(right, n)
    first = np.r_[0, stop[:-1]].astype(np.int64)
    value = ratio(np.add.reduceat(right, first), np.add.reduceat(n, first)) if stop.size else right
    return Isotonic(score[first], score[stop - 1], value)
