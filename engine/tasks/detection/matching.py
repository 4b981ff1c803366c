"""Matching of predictions and ground truths per datum and label, at all variants at once."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import numpy as np

from ...kernels.boxes import lay_out
from ...kernels.jit import frozen
from ...kernels.matching import (
    BEST,
    GREEDY,
    LOCKED,
    NEAREST,
    POOL,
    Bits,
    GroundTruths,
    Outcomes,
    Pairs,
    Predictions,
    Scratch,
)
from ...kernels.matching import match as match_labels
from ...kernels.order import group_by_label, rank_by_score
from ...schemas.arrays import Array
from ...tally.ranked import Ranked, Variants, Word
from ..workers import Workers
from .encode import Batch, Side

RULES = {"greedy": GREEDY, "locked": LOCKED, "pool": POOL, "best": BEST, "nearest": NEAREST}
LOOKING_AT_ALL = ("locked", "pool")
"""Rules for which overlaps below the lowest threshold count too."""


class LaidOut(msgspec.Struct, frozen=True):
    """One side's rows by label, then datum, then row.

    Attributes:
        start: int64 [labels + 1].
        boxes: float64 [n, 4].
        area: float64 [n], width * height, or the area of the polygon or mask; used by area ranges
            if
            no area was annotated.
        datum: int32 [n].
        row: int32 [n], row of the table.
        score: float64 [n] of predictions, [0] of ground truths.
    """

    start: Array
    boxes: Array
    area: Array
    datum: Array
    row: Array
    score: Array

    def laid(self, column: Array) -> Array:
        """A column of the table in this layout."""
        return column[self.row]

    def where(self, kept: Array) -> LaidOut:
        """Select rows.

        Args:
            kept: bool [n].
        """
        if kept.all():
            return self
        upto = np.zeros(kept.size + 1, np.int64)
        np.cumsum(kept, out=upto[1:])
        return LaidOut(
            upto[self.start],
            self.boxes[kept],
            self.area[kept],
            self.datum[kept],
            self.row[kept],
            self.score[kept] if self.score.size else self.score,
        )


_NOBODY = np.zeros(0, np.bool_)
BY_BOXES = Pairs(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float64))
"""No pairs: matching computes the IoU of boxes on the way."""


class Matched(msgspec.Struct, frozen=True):
    """The ranked tally, and its inputs, for outputs that need geometry again.

    Attributes:
        ranked: the tally.
        predictions: predictions by label, datum, row.
        order: int32 [n], index in that layout of each ranked prediction.
        ground_truths: ground truths by label, datum, row, as in ``ranked``.
        taker: int32 [thresholds, m], the ranked prediction that hit each ground truth in the
            first area range, -1 for none; or [0, 0] if not requested.
        took: int32 [areas, thresholds, n], the ground truth that each ranked prediction took,
            regular or ignored, -1 for none; or [0, 0, 0] if not requested.
        left: number of predictions and of ground truths that do not count at all.
        below: number of predictions below the threshold of their label.
    """

    ranked: Ranked
    predictions: LaidOut
    order: Array
    ground_truths: LaidOut
    taker: Array
    took: Array
    left: tuple[int, int] = (0, 0)
    below: int = 0


def _lay_out(
    side: Side, start: Array, position: Array, threads: Workers, *, from_extent: bool
) -> LaidOut:
    boxes, area, datum, row, score = lay_out(
        position, side.datum, side.pieces, threads.over, from_extent=from_extent
    )
    if side.shapes is not None:
        told = side.shapes.told_area
        boxes, area = side.shapes.boxes[row], (side.shapes.area if told is None else told)[row]
    return LaidOut(start, boxes, area, datum, row, score)


def lay_out_sides(batch: Batch, rules: Any, threads: Workers) -> tuple[LaidOut, LaidOut]:
    """Lay out both sides by label, then datum, then row, before any filtering."""
    n_datums, n_labels = len(batch.datums), len(batch.labels)
    sides = (batch.predictions, batch.ground_truths)
    placed = threads.each(
        [partial(group_by_label, side.datum, side.label, n_datums, n_labels) for side in sides]
    )
    predictions, ground_truths = (
        _lay_out(side, *places, threads, from_extent=rules.from_extent)
        for side, places in zip(sides, placed, strict=True)
    )
    return predictions, ground_truths


def annotated_areas(batch: Batch, ground_truths: LaidOut) -> Array:
    """Return the areas of the ground truths for area ranges, in layout order, float64 [m]."""
    return ground_truths.area if batch.area is None else ground_truths.laid(batch.area)


def _counted(word: Word, variants: Variants, area: Array, set_aside: Array) -> Array:
    """Variants of a word in which each ground truth is not ignored, uint64 [m]."""
    bits = np.zeros(area.size, np.uint64)
    for a in range(word.n_areas):
        _, low, high = variants.areas[word.first_area + a]
        inside = ~set_aside & (area >= low) & (area <= high)
        bits |= np.where(inside, area_bits(word, a), np.uint64(0))
    return bits


def area_bits(word: Word, area: int) -> np.uint64:
    """Variants of a word in one of its area ranges."""
    return np.uint64(((1 << word.n_thresholds) - 1) << (area * word.n_thresholds))


def _prefix(word: Word) -> Array:
    """Variants of a word whose threshold is among the first c, uint64 [thresholds + 1]."""
    rows = [
        sum(((1 << c) - 1) << (a * word.n_thresholds) for a in range(word.n_areas))
        for c in range(word.n_thresholds + 1)
    ]
    return np.array(rows, np.uint64)


def match(
    batch: Batch,
    sides: tuple[LaidOut, LaidOut],
    rules: Any,
    variants: Variants,
    cap: int | None,
    threads: Workers,
    *,
    taker: bool,
    took: bool = False,
    pairs: Pairs = BY_BOXES,
    lenient: Array = _NOBODY,
) -> Matched:
    """Match all labels at all variants.

    Args:
        sides: layouts from :func:`lay_out_sides`.
        variants: IoU thresholds and area ranges.
        cap: predictions of that rank or beyond within (datum, label) are ignored.
        taker: record the prediction that hit each ground truth.
        took: record the ground truth of each prediction.
        pairs: IoUs of other geometry than boxes.
        lenient: bool [n], in layout order, predictions that are ignored if they hit no ground
            truth;
            [0] for none.
    """
    predictions, ground_truths = sides
    n_datums = len(batch.datums)
    n, m = predictions.row.size, ground_truths.row.size
    words = variants.words
    counted = np.empty((len(words), m), np.uint64)

    crowd = ground_truths.laid(batch.crowd) if rules.crowd else np.zeros(m, bool)
    set_aside = ground_truths.laid(batch.ignore)
    if not rules.crowd_counts:
        set_aside = crowd | set_aside
    annotated = annotated_areas(batch, ground_truths)
    score = predictions.score
    order = np.empty(n, np.int32)
    of_ranked: tuple[Array, Array, Array] = (
        np.empty(n, np.float64),
        np.empty(n, np.int32),
        np.empty(n, np.int64),
    )
    rank = np.empty(n, np.int32)
    hit = np.empty((len(words), n), np.uint64)
    ignored = np.empty((len(words), n), np.uint64)
    skipped = np.zeros(n if rules.matching == "pool" else 0, bool)
    tie = np.zeros(n if rules.matching == "locked" or rules.later_first else 0, np.float64)
    number = predictions.row
    if batch.predictions.rows is not None:
        number = batch.predictions.rows[number]
    takers = np.full((len(variants.thresholds), m) if taker else (0, 0), -1, np.int32)
    takes = [
        np.full((word.n_areas * word.n_thresholds, n) if took else (0, 0), -1, np.int32)
        for word in words
    ]
    ceiling = np.minimum(np.asarray(variants.thresholds), rules.iou_ceiling)
    most = int(np.diff(ground_truths.start).max(initial=0)) + 1
    rule = RULES[rules.matching]
    longest = int(np.diff(predictions.start).max(initial=0)) if rule in (LOCKED, BEST) else 0
    ours = Predictions(
        frozen(predictions.start, np.int64),
        frozen(score, np.float64),
        frozen(predictions.boxes, np.float64),
        frozen(predictions.area, np.float64),
        frozen(predictions.datum, np.int32),
    )
    theirs = GroundTruths(
        frozen(ground_truths.start, np.int64),
        frozen(ground_truths.boxes, np.float64),
        frozen(ground_truths.area, np.float64),
        frozen(ground_truths.datum, np.int32),
        frozen(crowd, np.bool_),
        frozen(np.empty(0), np.uint64),
    )
    given = Pairs(
        frozen(pairs.start, np.int64),
        frozen(pairs.ground_truth, np.int32),
        frozen(pairs.iou, np.float64),
    )
    of_words = []
    for w, word in enumerate(words):
        counted[w] = _counted(word, variants, annotated, set_aside)
        block = slice(word.first_threshold, word.first_threshold + word.n_thresholds)
        bits = Bits(
            frozen(ceiling[block], np.float64),
            frozen(_prefix(word), np.uint64),
            frozen([a[1:] for a in variants.areas[word.first_area :][: word.n_areas]], np.float64),
            frozen([area_bits(word, a) for a in range(word.n_areas)], np.uint64),
            n + 1 if cap is None else cap,
        )
        out = Outcomes(
            order,
            rank,
            hit[w],
            ignored[w],
            skipped,
            tie,
            takers[block] if taker and word.first_area == 0 else np.empty((0, 0), np.int32),
            takes[w],
        )
        of_words.append((theirs._replace(regular=frozen(counted[w], np.uint64)), bits, out))

    def run(first: int, last: int) -> None:
        rank_by_score(score, predictions.start, first, last, order)
        here = slice(predictions.start[first], predictions.start[last])
        if rules.later_first:
            label = np.repeat(np.arange(first, last), np.diff(predictions.start[first : last + 1]))
            at = order[here]
            order[here] = at[np.lexsort((-number[at], -score[at], label))]
            tie[here] = number[order[here]]
        scratch = Scratch(
            np.full(n_datums, -1, np.int32),
            np.zeros(n_datums, np.int32),
            np.empty(most, np.uint64),
            np.empty(most, np.float64),
            np.empty(most, np.uint64),
            np.empty(most, np.int64),
            np.empty(longest, np.float64),
            np.empty(longest, np.int64),
            np.empty(longest, np.int32),
        )
        for truths, bits, out in of_words:
            match_labels(first, last, rule, ours, truths, given, bits, scratch, out)
        for made, laid in zip(of_ranked, (score, predictions.datum, predictions.row), strict=True):
            made[here] = laid[order[here]]

    threads.over(predictions.start, run)
    if lenient.size:
        at = np.flatnonzero(lenient[order])
        for w, word in enumerate(words):
            ignored[w, at] |= _prefix(word)[-1] & ~hit[w, at]
    ranked = Ranked(
        variants=variants,
        start=predictions.start,
        score=of_ranked[0],
        datum=of_ranked[1],
        row=of_ranked[2],
        rank=rank,
        hit=hit,
        ignored=ignored,
        skipped=skipped,
        tie=tie,
        gt_start=ground_truths.start,
        gt_datum=ground_truths.datum,
        gt_row=ground_truths.row.astype(np.int64),
        gt_counted=counted,
        cap=cap,
        single=batch.single,
        most=rules.most_of_label,
    )
    grid = len(variants.areas), len(variants.thresholds), n
    each = np.empty(grid if took else (0, 0, 0), np.int32)
    for word, some in zip(words, takes, strict=True):
        if took:
            each[word.places] = some.reshape(word.n_areas, word.n_thresholds, n)
    return Matched(ranked, predictions, order, ground_truths, takers, each)
