"""Curve points of ranked rows: counts at every distinct score of a label at one IoU threshold.

Rows come in one or several pieces (files of labels, files of one long label). A point that may
continue in the next piece is kept back until that piece is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from ..kernels.order import group_rows
from ..schemas.arrays import Array
from .points import Points, segment_of
from .ranked import Ranked


class CountedRows(msgspec.Struct, frozen=True):
    """Rows that count at one IoU threshold, in the first area range.

    Attributes:
        start: int64 [labels + 1], CSR offsets of predictions, by descending score.
        score: float64 [n].
        datum: int32 [n].
        right: bool [n], hits; the others are false positives.
        gt_start: int64 [labels + 1], CSR offsets of ground truths.
        gt_datum: int32 [m].
        place: int64 [n] or [0], see :class:`.ranked.Ranked`.
    """

    start: Array
    score: Array
    datum: Array
    right: Array
    gt_start: Array
    gt_datum: Array
    place: Array = np.zeros(0, np.int64)

    def within(self, first: int, n_labels: int) -> CountedRows:
        """The same, of labels that begin at some code, among all."""
        before = np.zeros(first, np.int64)

        def among(start: Array) -> Array:
            after = np.full(n_labels + 1 - first - start.size, start[-1])
            return np.concatenate([before, start, after])

        return msgspec.structs.replace(self, start=among(self.start), gt_start=among(self.gt_start))


def counted_rows(tally: Ranked, iou: float) -> CountedRows:
    """Select the rows of a tally that count at an IoU threshold, in the first area range."""
    w, bit = tally.variants.bit(tally.variants.threshold_index(iou))
    place = np.uint64(1) << np.uint64(bit)
    right = (tally.hit[w] & place) != 0
    counts = right | ((tally.ignored[w] & place) == 0)
    upto = np.r_[0, np.cumsum(counts)]
    sought = (tally.gt_counted[w] & place) != 0
    gt_upto = np.r_[0, np.cumsum(sought)]
    return CountedRows(
        upto[tally.start],
        tally.score[counts],
        tally.datum[counts],
        right[counts],
        gt_upto[tally.gt_start],
        tally.gt_datum[sought],
        tally.place[counts] if tally.place.size else tally.place,
    )


def pooled_rows(pieces: Iterable[CountedRows], key: Array, n_keys: int) -> CountedRows:
    """Pool the rows of all labels of each key.

    Args:
        key: int32 [labels], key of each label.
        n_keys: number of keys.
    """
    parts = [
        (key[segment_of(one.start)], one.score, one.datum, one.right,
         key[segment_of(one.gt_start)], one.gt_datum)
        for one in pieces
    ]  # fmt: skip
    of, score, datum, right, gt_of, gt_datum = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    order = np.lexsort((-score, of)) if n_keys > 1 else np.argsort(-score, kind="stable")
    start = np.r_[0, np.cumsum(np.bincount(of, minlength=n_keys))]
    gt_order = np.argsort(gt_of, kind="stable")
    gt_start = np.r_[0, np.cumsum(np.bincount(gt_of, minlength=n_keys))]
    return CountedRows(
        start, score[order], datum[order], right[order], gt_start, gt_datum[gt_order]
    )


def sought(
    pieces: Iterable[CountedRows], group: Array | None, n_groups: int, weights: Array | None
) -> Array:
    """(Weighted) ground truths that count, float64 [groups * labels]; see :func:`point_blocks`."""
    out: Array | None = None
    for rows in pieces:
        label, n = segment_of(rows.gt_start), rows.gt_start.size - 1
        of = np.zeros(label.size, np.int64) if group is None else group[rows.gt_datum]
        weight = np.ones(label.size) if weights is None else weights[rows.gt_datum]
        here = of >= 0
        made = np.bincount((of * n + label)[here], weight[here], minlength=n_groups * n)
        out = made if out is None else out + made
    assert out is not None
    return out


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
    held: _Held | None = None
    for rows in pieces:
        start, order = _by_group(rows, group, n_groups)
        score, right = rows.score[order], rows.right[order]
        weight = None if weights is None else weights[rows.datum[order]]
        if weight is not None and not weight.all():
            there = weight != 0
            start = np.r_[0, np.cumsum(there)][start]
            score, right, weight = score[there], right[there], weight[there]
        if held is None:
            held = _Held(start.size - 1)
        yield held.go_on(start, score, right, weight)
    if held is not None:
        yield held.last()


def _by_group(rows: CountedRows, group: Array | None, n_groups: int) -> tuple[Array, Any]:
    if group is None:
        return rows.start, slice(None)
    start, order = group_rows(rows.start, rows.datum, group, n_groups)
    return start, order[: start[-1]]


class _Held:
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
        ends = np.ones(n, bool)
        ends[:-1] = score[1:] != score[:-1]
        some = np.diff(start) > 0
        lasts = start[1:][some] - 1
        ends[lasts] = False
        segment = segment_of(start)
        at = np.flatnonzero(ends)
        of = segment[at]
        first = start[:-1]
        tp = self.tp[of] + (true[at + 1] - true[first[of]])
        fp = self.fp[of] + (false[at + 1] - false[first[of]])
        begun = np.zeros(some.size, bool)
        begun[some] = ~np.isnan(self.score[some]) & (score[first[some]] != self.score[some])
        whose = np.flatnonzero(begun)
        counts = np.bincount(of, minlength=some.size) + begun
        out = np.r_[0, np.cumsum(counts)]
        places = np.arange(at.size) + np.cumsum(begun)[of]
        made = [np.empty(out[-1]) for _ in range(3)]
        for column, own, before in zip(
            made, (score[at], tp, fp), (self.score, self.tp, self.fp), strict=True
        ):
            column[places] = own
            column[out[:-1][whose]] = before[whose]
        self.tp += true[start[1:]] - true[first]
        self.fp += false[start[1:]] - false[first]
        self.score[some] = score[lasts]
        return Points(out, *made)

    def last(self) -> Points:
        """Return the points kept back."""
        there = ~np.isnan(self.score)
        start = np.r_[0, np.cumsum(there)]
        return Points(start, self.score[there], self.tp[there], self.fp[there])
