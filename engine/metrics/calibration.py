"""Calibration of scores: errors by bins, and two recalibration fits.

Scores come as the points of a curve: numbers of right and wrong rows per distinct score. A
temperature T maps a score p to the logistic function of logit(p) / T; an isotonic fit maps it to
the mean of a block of pooled adjacent violators. Neither is ever applied to a run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

import msgspec
import numpy as np

from ..kernels.isotonic import pooled_blocks
from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from ..schemas.tuning import tuning
from ..tally.points import segment_of
from .label_averages import ratio
from .thresholds import Curve

_SMALLEST = 1e-12  # scores are clipped by so much where their logit is taken
_STEPS = 200
_HOTTEST = 1e3


class Told(msgspec.Struct, frozen=True):
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

    def of(self, segment: int) -> Told:
        """One segment."""
        here = slice(int(self.start[segment]), int(self.start[segment + 1]))
        return Told(
            np.array([0, here.stop - here.start]), self.score[here], self.right[here], self.n[here]
        )

    def pieces(self) -> Iterator[tuple[Array, Told]]:
        """The scores, few at a time, and the segment of each."""
        segment = np.arange(self.start.size - 1)
        for begin in range(0, self.score.size, tuning().calibrated_scores):
            here = slice(begin, min(begin + tuning().calibrated_scores, self.score.size))
            start = np.clip(self.start, here.start, here.stop) - here.start
            few = Told(start, self.score[here], self.right[here], self.n[here])
            yield np.repeat(segment, np.diff(start)), few


Pieces = Iterable[tuple[Array, Told]]


def _pieces(curve: Curve) -> Iterator[tuple[Array, Told]]:
    """The scores behind the points of a curve, block by block, and the segment of each."""
    before = np.zeros((2, curve.positives.size))
    for block in curve.blocks():
        counts, segment = np.diff(block.start), segment_of(block.start)
        filled = np.flatnonzero(counts)
        first, last = block.start[:-1][filled], block.start[1:][filled] - 1
        rows = []
        for own, column in zip(before, (block.tp, block.tp + block.fp), strict=True):
            each = np.diff(column, prepend=0.0)
            each[first] = column[first] - own[filled]
            own[filled] = column[last]
            rows.append(each)
        yield segment, Told(block.start, block.threshold, *rows)


def told_by(curve: Curve, scratch: str | None = None) -> Told:
    """Collect the scores behind the points of a curve; in unnamed files if they are many.

    Args:
        scratch: folder for the files; the system's by default.
    """
    n_segments = curve.positives.size
    kept: list[tuple[Array, Told]] = []
    size, held = np.zeros(n_segments, np.int64), True
    for segment, few in _pieces(curve):
        size += np.diff(few.start)
        held = held and int(size.sum()) <= tuning().calibrated_scores
        kept = [*kept, (segment, few)] if held else []
    start = np.r_[0, np.cumsum(size)]
    columns = [_room(int(start[-1]), scratch, held=held) for _ in range(3)]
    at = start[:-1].copy()
    for segment, few in kept if held else _pieces(curve):
        place = at[segment] + np.arange(segment.size) - few.start[segment]
        for column, values in zip(columns, (few.score, few.right, few.n), strict=True):
            column[place] = values
        at += np.diff(few.start)
    return Told(start, *columns)


def _room(n: int, scratch: str | None, *, held: bool) -> Array:
    """Numbers to be written, float64 [n]."""
    if held:
        return np.empty(n)
    with tempfile.TemporaryFile(dir=scratch) as file:
        file.truncate(8 * n)
        return np.asarray(np.memmap(file, np.float64, "r+", shape=n))


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


def bins_of(told: Told, n_bins: int) -> Bins:
    """Bin rows by score; scores outside [0, 1] make a segment undefined."""
    return _binned(told.pieces(), told.start.size - 1, n_bins)


def bins_by(curve: Curve, n_bins: int) -> Bins:
    """The same, of the scores behind the points of a curve."""
    return _binned(_pieces(curve), curve.positives.size, n_bins)


def _binned(pieces: Pieces, n_segments: int, n_bins: int) -> Bins:
    edges = np.arange(n_bins + 1) / n_bins
    sums = [ExactSums(n_segments * n_bins) for _ in range(3)]
    beyond = np.zeros(n_segments, bool)
    for segment, few in pieces:
        at = np.clip(np.searchsorted(edges, few.score, side="right") - 1, 0, n_bins - 1)
        for own, values in zip(sums, (few.n, few.n * few.score, few.right), strict=True):
            own.add(values, segment * n_bins + at)
        beyond[segment[(few.score < 0) | (few.score > 1)]] = True
    n, score, right = (own.rounded().reshape(n_segments, n_bins) for own in sums)
    return Bins(n, np.where(beyond[:, None], np.nan, ratio(score, n)), ratio(right, n))


def ece_of(
    parts: Sequence[Told], n_bins: int, changed: Sequence[Callable[[Array], Array]] = ()
) -> float:
    """Compute the expected calibration error of one segment.

    Args:
        changed: function on the scores of each block; identity if missing.
    """

    def pieces() -> Iterator[tuple[Array, Told]]:
        for told, change in zip_longest(parts, changed):
            for segment, few in told.pieces():
                score = few.score if change is None else change(few.score)
                yield segment, msgspec.structs.replace(few, score=score)

    return float(_binned(pieces(), 1, n_bins).expected[0])


def fitted_temperature(told: Told) -> float:
    """Fit the temperature that minimises the negative log likelihood of one segment.

    The likelihood is convex in 1 / T; the root of its derivative is found by bisection. NaN without
    a minimum: rows all right or all wrong, or scores that are uninformative or inverse. Source: C.
    Guo et al., "On calibration of modern neural networks" (2017), of two classes.
    """
    if not told.n.sum() or not 0 < told.right.sum() < told.n.sum():
        return float("nan")
    every = [_logit(told.score)] if told.score.size <= tuning().calibrated_scores else None

    def slope(inverse: float) -> float:
        total = ExactSums(1)
        for i, (_, few) in enumerate(told.pieces()):
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
    out: Array = np.log(p) - np.log1p(-p)
    return out


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


def fitted_isotonic(told: Told) -> Isotonic:
    """Compute the isotonic least-squares fit of one segment, by pooling adjacent violators.

    Source: M. Ayer et al. (1955); B. Zadrozny, C. Elkan (2002) for calibration. The values are
    those of scikit-learn's ``IsotonicRegression(out_of_bounds="clip")``.
    """
    low, high, right, n = np.zeros((4, 0))
    for end in range(told.score.size, 0, -tuning().calibrated_scores):
        here = slice(max(0, end - tuning().calibrated_scores), end)
        score = told.score[here][::-1]
        low, high = np.append(low, score), np.append(high, score)
        stop, right, n = pooled_blocks(
            np.append(right, told.right[here][::-1]), np.append(n, told.n[here][::-1])
        )
        low, high = low[np.r_[0, stop[:-1]].astype(np.int64)], high[stop - 1]
    return Isotonic(low, high, ratio(right, n))
