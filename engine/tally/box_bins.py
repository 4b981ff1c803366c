"""Predictions by bins of score, position and size in the image, for calibration.

Scores are summed as integer multiples of 2^-60, so that sums do not depend on the order of rows or
on buckets.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from ..schemas.arrays import Array
from .points import segment_of
from .ranked_points import CountedRows

SIDES = 4
"""Position and size: centre x and y, width and height."""
_DIGIT = 2.0**30


class BoxBins(msgspec.Struct, frozen=True):
    """Resolution of the bins.

    Attributes:
        scores: number of equal bins of scores in [0, 1].
        boxes: number of equal bins of each relative box coordinate.
        least: minimum predictions in a bin that counts.
    """

    scores: int
    boxes: int
    least: int


class Binned(msgspec.Struct, frozen=True):
    """Non-empty bins, sorted by segment, place and score.

    Attributes:
        segment: int64 [k], ascending.
        place: int64 [k], bins of centre x, centre y, width and height as digits in base
            ``BoxBins.boxes``, height last.
        at: int64 [k], bin of scores.
        sums: int64 [k, 4], (weighted) predictions, correct predictions, and the sum of scores as
            high and low digit of 2^-30.
        n: number of segments.
        beyond: bool [n], segments with a score outside [0, 1].
    """

    segment: Array
    place: Array
    at: Array
    sums: Array
    n: int
    beyond: Array

    @property
    def score(self) -> Array:
        """Mean score of every bin, float64 [k]."""
        total = self.sums[:, 2] / _DIGIT + self.sums[:, 3] / _DIGIT**2
        return np.asarray(total / self.sums[:, 0])

    @property
    def right(self) -> Array:
        """Share of every bin that is right, float64 [k]."""
        return np.asarray(self.sums[:, 1] / self.sums[:, 0])

    def regrouped(self, segment: Array, place: Array, n: int) -> Binned:
        """Return the bins summed by other segments or places.

        Args:
            segment: int64 [k].
            place: int64 [k].
            n: number of segments.
        """
        beyond = np.zeros(n, bool)
        if self.beyond.any():
            beyond[segment[self.beyond[self.segment]]] = True
        return _added(segment, place, self.at, self.sums, n, beyond)


def _added(segment: Array, place: Array, at: Array, sums: Array, n: int, beyond: Array) -> Binned:
    """Sum rows of the same bin."""
    order = np.lexsort((at, place, segment))
    columns = segment[order], place[order], at[order]
    new = np.ones(order.size, bool)
    new[1:] = np.logical_or.reduce([one[1:] != one[:-1] for one in columns])
    first = np.flatnonzero(new)
    added = np.add.reduceat(sums[order], first, axis=0) if first.size else sums[:0]
    told, where, bins = (one[first] for one in columns)
    return Binned(told, where, bins, added, n, beyond)


def places_of(boxes: Array, sizes: Array, n_bins: int) -> Array:
    """Return the bin of position and size of every box, int64 [n].

    Args:
        boxes: float64 [n, 4], corners.
        sizes: float64 [n, 2], image height and width per box.
        n_bins: equal bins of every share in [0, 1]; values outside go to the outermost bin.
    """
    extent = sizes[:, ::-1]
    low, high = boxes[:, :2], boxes[:, 2:]
    shares = np.concatenate([(low + high) / 2 / extent, (high - low) / extent], axis=1)
    digits = bin_of(shares, n_bins)
    return np.asarray(digits @ n_bins ** np.arange(SIDES)[::-1])


def bin_of(share: Array, n_bins: int) -> Array:
    """The equal bin from 0 to 1 that each share is in, int64; a bin has its lower edge."""
    edges = np.arange(n_bins + 1) / n_bins
    return np.clip(np.searchsorted(edges, share, side="right") - 1, 0, n_bins - 1)


def binned(
    pieces: Iterable[CountedRows],
    group: Array | None,
    n_groups: int,
    weights: Array | None,
    n_scores: int,
) -> Binned:
    """Return counted predictions by (group, label), place and bin of scores.

    Args:
        pieces: rows, with places.
        group: int32 [n_datums], -1 for none; None for a single group.
        weights: int64 [n_datums], multiplicity of each datum, or None.
        n_scores: number of bins of scores.
    """
    made: Binned | None = None
    for rows in pieces:
        n = n_groups * (rows.start.size - 1)
        label = segment_of(rows.start)
        of = np.zeros(label.size, np.int64) if group is None else group[rows.datum]
        weight = np.ones(label.size, np.int64) if weights is None else weights[rows.datum]
        here = (of >= 0) & (weight > 0)
        segment = (of * (rows.start.size - 1) + label)[here]
        score, weight = rows.score[here], weight[here]
        beyond = np.zeros(n, bool)
        beyond[segment[(score < 0) | (score > 1)]] = True
        whole, rest = np.divmod(np.clip(score, 0, 1) * _DIGIT, 1)
        digits = whole.astype(np.int64), np.rint(rest * _DIGIT).astype(np.int64)
        right = rows.right[here].astype(np.int64)
        sums = np.stack([np.ones_like(weight), right, *digits], axis=1) * weight[:, None]
        one = _added(segment, rows.place[here], bin_of(score, n_scores), sums, n, beyond)
        made = one if made is None else _together(made, one)
    assert made is not None
    return made


def _together(one: Binned, other: Binned) -> Binned:
    segment, place, at, sums = (
        np.concatenate([getattr(side, name) for side in (one, other)])
        for name in ("segment", "place", "at", "sums")
    )
    return _added(segment, place, at, sums, one.n, one.beyond | other.beyond)
