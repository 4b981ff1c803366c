"""Points of precision-recall curves, computed from ranked rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from ..kernels.matching import LOW
from ..schemas.arrays import Array
from ..schemas.tuning import tuning
from .ranked import Ranked, RankedRun, by_group

# Curve points by segment, and vectorised search for indices in segments.


class Points(msgspec.Struct, frozen=True):
    """Points at every distinct score of every (group, label), scores descending.

    Attributes:
        start: int64 [groups * labels + 1], CSR offsets.
        threshold: float64 [m].
        tp: float64 [m], (weighted) true positives at or above the threshold.
        fp: float64 [m], (weighted) false positives among datums that have a truth of the key.
    """

    start: Array
    threshold: Array
    tp: Array
    fp: Array


def first_of(start: Array, fits: Array) -> Array:
    """Return the first index in every segment with ``fits`` True, int64 [s], -1 without one.

    Args:
        start: int64 [s + 1], CSR offsets.
        fits: bool [m].
    """
    places = np.append(np.flatnonzero(fits), fits.size)
    first = places[np.searchsorted(places, np.minimum(start[:-1], fits.size))]
    return np.where(first < start[1:], first, -1)


def last_of(start: Array, fits: Array) -> Array:
    """Return the last index in every segment with ``fits`` True, int64 [s], -1 without one.

    Args:
        start: int64 [s + 1], CSR offsets.
        fits: bool [m].
    """
    places = np.append(-1, np.flatnonzero(fits))
    last = places[np.searchsorted(places, start[1:]) - 1]
    return np.where(last >= start[:-1], last, -1)


def segment_of(start: Array) -> Array:
    """Return the segment of every index, int64 [m].

    Args:
        start: int64 [s + 1], CSR offsets.
    """
    return np.repeat(np.arange(start.size - 1), np.diff(start))


def largest_of(start: Array, value: Array) -> Array:
    """Return the largest value of every segment, float64 [s], -inf if empty.

    Args:
        start: int64 [s + 1], CSR offsets.
        value: float64 [m], without NaN.
    """
    out = np.full(start.size - 1, -np.inf)
    some = np.diff(start) > 0
    if some.any():
        out[some] = np.maximum.reduceat(value, start[:-1][some])
    return out


# Rows that count at one IoU threshold, by label or pooled by label key.


class CountedRows(msgspec.Struct, frozen=True):
    """Rows that count at one IoU threshold, in the first area range.

    Attributes:
        start: int64 [labels + 1], CSR offsets, by descending score.
        score: float64 [n].
        datum: int32 [n].
        right: bool [n], hits; the others are false positives.
        place: int64 [n] or [0], see :class:`.ranked.Ranked`.
    """

    start: Array
    score: Array
    datum: Array
    right: Array
    place: Array = np.zeros(0, np.int64)


def counted_rows(tally: Ranked, iou: float, first: int, n_labels: int) -> CountedRows:
    """Select the rows of a tally that count at an IoU threshold, in the first area range.

    Args:
        first: label of its first rows, among ``n_labels``.
    """
    right, ignored = tally.outcomes(tally.variants.threshold_index(iou))
    counts = right | ~ignored
    start = np.r_[0, np.cumsum(counts)][tally.start]
    later = n_labels - first - tally.n_labels
    return CountedRows(
        np.concatenate([np.zeros(first, np.int64), start, np.full(later, start[-1])]),
        tally.score[counts],
        tally.datum[counts],
        right[counts],
        tally.place[counts] if tally.place.size else tally.place,
    )


def pooled_rows(pieces: Iterable[CountedRows], key: Array, n_keys: int) -> CountedRows:
    """Pool the rows of all labels of each key.

    Args:
        key: int32 [labels], key of each label.
    """
    parts = [(key[segment_of(one.start)], one.score, one.datum, one.right) for one in pieces]
    of, score, datum, right = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-score, of)) if n_keys > 1 else np.argsort(-score, kind="stable")
    start = np.r_[0, np.cumsum(np.bincount(of, minlength=n_keys))]
    return CountedRows(start, score[order], datum[order], right[order])


_COUNTED_BYTES = 24
"""Bytes per prediction whose counted rows are kept in memory."""
_POOLED_BYTES = 40
"""Bytes per prediction while the rows of all labels are pooled in memory."""
_SAMPLED = 1 << 20
"""Approximate number of scores that are sampled to find the cuts."""


class CountedScan(msgspec.Struct, frozen=True):
    """Rows of a run that count at an IoU threshold, read again in every iteration.

    Attributes:
        iou: one of the thresholds of the run.
        key: int32 [labels], key of each label.
        n_keys: number of keys to pool by; 0 for rows by label, block by block. Pooled rows come in
            blocks of descending scores.
    """

    run: RankedRun
    iou: float
    key: Array
    n_keys: int = 0

    def load_if_small(self, by_label: Iterable[CountedRows] | None = None) -> Iterable[CountedRows]:
        """Return the rows, read once if they fit in memory.

        Args:
            by_label: rows to pool, if they are read already.
        """
        if not self.run.fits(_POOLED_BYTES if self.n_keys else _COUNTED_BYTES):
            return self
        by_label = self._by_label() if by_label is None else by_label
        return [pooled_rows(by_label, self.key, self.n_keys)] if self.n_keys else list(by_label)

    def __iter__(self) -> Iterator[CountedRows]:
        return self._by_score() if self.n_keys else self._by_label()

    def _by_label(self) -> Iterator[CountedRows]:
        for first, tally in self.run.scan():
            yield counted_rows(tally, self.iou, first, self.key.size)

    def _by_score(self) -> Iterator[CountedRows]:
        """Pool rows between two cuts; those with the score of a cut follow, block by block."""
        before = [tally.start[:-1] for _, tally in self.run.scan()]
        for cut in [*self._cuts(), None]:
            between, at = [], []
            for place, (first, tally) in enumerate(self.run.scan()):
                begin, end = _around(tally, cut)
                between.append(self._some(first, tally, before[place], begin))
                at.append(begin)
                before[place] = end
            yield pooled_rows(between, self.key, self.n_keys)
            for begin, end, (first, tally) in zip(at, before, self.run.scan(), strict=True):
                if cut is not None:
                    rows = self._some(first, tally, begin, end)
                    yield pooled_rows([rows], self.key, self.n_keys)

    def _cuts(self) -> list[float]:
        """Return descending scores that split rows into about equal blocks, from a sample."""
        most = max(1, tuning().drawn_bytes // (4 * _POOLED_BYTES))
        every = max(1, min(self.run.n_rows // _SAMPLED, most // 4))
        sample = np.concatenate([tally.score[::every] for _, tally in self.run.scan()])
        step = max(1, most // every)
        return list(dict.fromkeys(np.sort(sample)[::-1][step::step].tolist()))

    def _some(self, label: int, tally: Ranked, first: Array, last: Array) -> CountedRows:
        """Rows of every label of a block from one place to another."""
        n = last - first
        start = np.r_[0, np.cumsum(n)]
        at = np.repeat(first - start[:-1], n) + np.arange(start[-1])
        columns = ("score", "datum", "hit", "ignored")
        few = {name: getattr(tally, name)[..., at] for name in columns}
        rows = msgspec.structs.replace(tally, start=start, place=tally.place[:0], **few)
        return counted_rows(rows, self.iou, label, self.key.size)


def _around(tally: Ranked, cut: float | None) -> tuple[Array, Array]:
    """Return, per label, the first row at a score and the first below it, int64 [labels] each.

    Without a score, both are the end.
    """
    begin, end = tally.start[:-1], tally.start[1:]
    if cut is None:
        return end, end
    rising = [tally.score[a:b][::-1] for a, b in zip(begin, end, strict=True)]
    at, below = (
        end - np.array([np.searchsorted(one, cut, side) for one in rising], np.int64)
        for side in ("right", "left")
    )
    return at, below


# Counts at every distinct score of a label. A point that may continue in the next piece waits for
# it.


def point_blocks(
    pieces: Iterable[CountedRows], group: Array | None, n_groups: int, weights: Array | None
) -> Iterator[Points]:
    """Yield the points of every (group, label): (weighted) counts at or above each distinct score.

    Args:
        pieces: rows of the same labels, in order.
        group: int32 [n_datums], -1 for none; None for a single group.
        weights: int64 [n_datums], multiplicity of each datum, or None. Rows of weight 0 make no
            point.
    """
    carried: _LastPoints | None = None
    for rows in pieces:
        start: Array = rows.start
        order: Any = slice(None)
        if group is not None:
            start, order = by_group(start, rows.datum, group, n_groups)
        score, right = rows.score[order], rows.right[order]
        weight = None if weights is None else weights[rows.datum[order]]
        if weight is not None and not weight.all():
            nonzero = weight != 0
            start = np.r_[0, np.cumsum(nonzero)][start]
            score, right, weight = score[nonzero], right[nonzero], weight[nonzero]
        if carried is None:
            carried = _LastPoints(start.size - 1)
        yield carried.go_on(start, score, right, weight)
    if carried is not None:
        yield carried.last()


class _LastPoints:
    """The last point of every segment, which the next rows may go on with."""

    def __init__(self, n: int) -> None:
        self.score = np.full(n, np.nan)
        self.tp, self.fp = np.zeros(n), np.zeros(n)

    def go_on(self, start: Array, score: Array, right: Array, weight: Array | None) -> Points:
        """Return the points completed by these rows; the last of each segment is kept back.

        Args:
            start: int64 [s + 1], CSR offsets.
            score: float64 [n], descending within a segment.
            right: bool [n].
            weight: int64 [n], or None for 1 each.
        """
        n = score.size
        each = np.ones(n, np.int64) if weight is None else weight
        true, false = (np.r_[0, np.cumsum(each * side)] for side in (right, ~right))
        last_of_score = np.ones(n, bool)
        last_of_score[:-1] = score[1:] != score[:-1]
        some = np.diff(start) > 0
        lasts = start[1:][some] - 1
        last_of_score[lasts] = False
        segment = segment_of(start)
        at = np.flatnonzero(last_of_score)
        of = segment[at]
        first = start[:-1]
        tp = self.tp[of] + (true[at + 1] - true[first[of]])
        fp = self.fp[of] + (false[at + 1] - false[first[of]])
        begun = np.zeros(some.size, bool)
        begun[some] = ~np.isnan(self.score[some]) & (score[first[some]] != self.score[some])
        whose = np.flatnonzero(begun)
        out = np.r_[0, np.cumsum(np.bincount(of, minlength=some.size) + begun)]
        places = np.arange(at.size) + np.cumsum(begun)[of]
        columns = [np.empty(out[-1]) for _ in range(3)]
        for column, values, before in zip(
            columns, (score[at], tp, fp), (self.score, self.tp, self.fp), strict=True
        ):
            column[places] = values
            column[out[:-1][whose]] = before[whose]
        self.tp += true[start[1:]] - true[first]
        self.fp += false[start[1:]] - false[first]
        self.score[some] = score[lasts]
        return Points(out, *columns)

    def last(self) -> Points:
        """Return the points kept back."""
        present = ~np.isnan(self.score)
        start = np.r_[0, np.cumsum(present)]
        return Points(start, self.score[present], self.tp[present], self.fp[present])


# Precision at recall levels, interpolated linearly, as in nuscenes-devkit ``accumulate``,
# ``calc_ap``.


def at_levels(right: Array, score: Array, positives: int, levels: Array) -> tuple[Array, Array]:
    """Return precision and score at recall levels, float64 [r] each.

    Args:
        right: bool [n], hits, by descending score.
        score: float64 [n].
        positives: number of ground truths.
        levels: float64 [r], ascending.

    Returns:
        precision, 0 at levels that are not reached, and scores, NaN there.
    """
    if not positives or not right.any():
        return np.zeros(levels.size), np.full(levels.size, np.nan)
    true = np.cumsum(right).astype(np.float64)
    false = np.cumsum(~right).astype(np.float64)
    recall = true / float(positives)
    precision = np.interp(levels, recall, true / (false + true), right=0.0)
    return precision, np.interp(levels, recall, score, right=np.nan)


def averaged(precision: Array, levels: Array, clip: float) -> Array:
    """Return AP, [..., 1]: mean precision above ``clip`` at levels above it, over 1 - ``clip``."""
    above = np.ascontiguousarray(np.maximum(precision[..., levels > clip + 1e-9] - clip, 0.0))
    return np.mean(above, axis=-1, keepdims=True) / (1.0 - clip)


def on_lines(view: Any, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return precision and scores at levels of recall, [group, label, area, threshold, level]."""
    out = np.zeros((2, *shape, view.levels.size))
    no_key = np.zeros(shape[1], np.int32)
    for t, iou in enumerate(view.tally.variants.thresholds):
        pieces = [*CountedScan(view.run, iou, no_key)]
        score, datum, right = (
            np.concatenate([getattr(one, name) for one in pieces])
            for name in ("score", "datum", "right")
        )
        # Only a single label has several pieces: rows stay in the order of labels.
        start = np.sum([one.start for one in pieces], axis=0)
        start, order = by_group(start, datum, view.group, view.n_groups, view.weights)
        for s in range(start.size - 1):
            g, label = divmod(s, shape[1])
            rows = order[start[s] : start[s + 1]]
            positives = int(view.positives[g, label, 0])
            out[:, g, label, 0, t] = at_levels(right[rows], score[rows], positives, view.levels)
    return out[0], out[1]


# Predictions by bins of score, position and size. Scores are summed exactly, as multiples of 2^-60.

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
    segments, places, bins = (one[first] for one in columns)
    return Binned(segments, places, bins, added, n, beyond)


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
        group: int32 [n_datums], -1 for none; None for a single group.
        weights: int64 [n_datums], multiplicity of each datum, or None.
    """
    merged: Binned | None = None
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
        high, rest = np.divmod(np.clip(score, 0, 1) * _DIGIT, 1)
        digits = high.astype(np.int64), np.rint(rest * _DIGIT).astype(np.int64)
        right = rows.right[here].astype(np.int64)
        sums = np.stack([np.ones_like(weight), right, *digits], axis=1) * weight[:, None]
        one = _added(segment, rows.place[here], bin_of(score, n_scores), sums, n, beyond)
        merged = one if merged is None else _merged_bins(merged, one)
    assert merged is not None
    return merged


def _merged_bins(one: Binned, other: Binned) -> Binned:
    segment, place, at, sums = (
        np.concatenate([getattr(side, name) for side in (one, other)])
        for name in ("segment", "place", "at", "sums")
    )
    return _added(segment, place, at, sums, one.n, one.beyond | other.beyond)


# Precision at recall positions k / 40, each a score of a first match; matching is repeated per
# score. With fewer scores than positions the rest is 0. Source: KITTI's ``evaluate_object.cpp``.


def chosen(hits: int, sought: int, levels: int) -> list[int]:
    """Return the indices of the true positives that represent recall positions.

    Args:
        sought: number of ground truths.
        levels: number of positions, including recall 0.
    """
    result: list[int] = []
    recall, at = 0.0, -1
    while at + 1 < hits and len(result) < levels:
        low, high = at + 1, hits - 1
        while low < high:
            middle = (low + high) // 2
            if (middle + 2) / sought - recall < recall - (middle + 1) / sought:
                low = middle + 1
            else:
                high = middle
        result.append(low)
        recall += 1 / (levels - 1)
        at = low
    return result


def _segments(view: Any) -> Iterator[tuple[int, Any, Array, Array]]:
    """Segments of (group, label), their block of the tally, its rows, and how often each counts."""
    for part in view.blocks():
        start, order = part.rows
        for s in range(start.size - 1):
            rows = order[start[s] : start[s + 1]]
            if rows.size:
                tally = part.tally
                many = np.ones(rows.size, np.int64)
                if view.weights is not None:
                    many = view.weights[tally.datum[rows]]
                yield s, tally, rows, many


def at_positions(view: Any, shape: tuple[int, ...]) -> tuple[Array, Array, Array | None]:
    """Return precision, scores and similarity of angles at recall positions.

    Args:
        view: a ranked view whose rows have gains.
        shape: groups, labels, area ranges, thresholds.

    Returns:
        float64 [group, label, area, threshold, level] each; scores are NaN if undefined, and
        similarity is None without angles.
    """
    n_segments, levels = shape[0] * shape[1], view.levels.size
    grid = shape[2:]
    curves: dict[tuple[int, ...], list[tuple[Array, Array]]] = {}
    for s, tally, rows, many in _segments(view):
        for w, word in enumerate(tally.variants.words):
            hits = tally.hit[w][rows]
            for bit in range(word.n_areas * word.n_thresholds):
                hit = np.flatnonzero((hits >> np.uint64(bit)) & np.uint64(1))
                a, t = divmod(bit, word.n_thresholds)
                where = s, word.first_area + a, word.first_threshold + t
                curves.setdefault(where, []).append((tally.score[rows[hit]], many[hit]))
    scores = np.full((n_segments, *grid, levels), np.nan)
    positives = view.positives.reshape(n_segments, grid[0])
    for (s, a, t), parts in curves.items():
        score, many = (np.concatenate(one) for one in zip(*parts, strict=True))
        upto = np.cumsum(many)
        places = chosen(int(upto[-1]) if upto.size else 0, int(positives[s, a]), levels)
        rows = np.searchsorted(upto, places, side="right")
        scores[s, a, t, : len(places)] = score[rows]
    totals: Array | None = None
    for s, tally, rows, many in _segments(view):
        kinds = len(tally.values) // (grid[0] * grid[1])
        if totals is None:
            totals = np.zeros((kinds, n_segments, *grid, levels))
        gains = tally.values[:, rows].reshape(kinds, *grid, rows.size) * many
        upto = np.concatenate([np.zeros((kinds, *grid, 1)), np.cumsum(gains, axis=-1)], axis=-1)
        last = np.searchsorted(-tally.score[rows], -scores[s], side="right")
        totals[:, s] += np.take_along_axis(upto, np.broadcast_to(last, totals[:, s].shape), axis=-1)
    sums = np.zeros((2, n_segments, *grid, levels))
    angles = totals is not None and len(totals) > 2
    if totals is not None:
        defined = ~np.isnan(scores) & (totals[0] + totals[1] > 0)
        every = np.where(defined, totals[0] + totals[1], 1.0)
        similar = totals[2] * 2.0 ** (LOW - 54) + totals[3] * 2.0**-54 if angles else totals[0]
        for out, right in zip(sums, (totals[0], similar), strict=True):
            out[:] = np.where(defined, right / every, 0.0)
            out[:] = np.maximum.accumulate(out[..., ::-1], axis=-1)[..., ::-1]
    full_shape = *shape, levels
    precision, similarity = sums.reshape(2, *full_shape)
    return precision, scores.reshape(full_shape), similarity if angles else None
