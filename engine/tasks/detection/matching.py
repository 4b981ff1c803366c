"""Matching of predictions and ground truths at all IoU thresholds."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from ...geometry.polygons import corners_of_upright, from_boxes, rasterise
from ...kernels.boxes import lay_out, rows_by_datum
from ...kernels.matching import (
    BEST,
    GREEDY,
    LOCKED,
    NEAREST,
    POOL,
    Bits,
    Both,
    Gains,
    GroundTruths,
    Outcomes,
    Pairs,
    Predictions,
    Scratch,
    match_best,
)
from ...kernels.matching import match as match_labels
from ...kernels.matching import rematch as match_again
from ...kernels.order import group_by_label, rank_by_score
from ...schemas.arrays import Array
from ...tallies.ranked import Ranked, Variants, Word
from ..encoding import Workers
from .dialects import DetectionRules
from .encode import Batch
from .layers import BoxLayer, Candidates, MaskLayer, PolygonLayer, QuadLayer, Shapes

# Matching of predictions and ground truths per datum and label, at all variants at once.

RULES = {"greedy": GREEDY, "locked": LOCKED, "pool": POOL, "best": BEST, "nearest": NEAREST}
LOOKING_AT_ALL = ("locked", "pool")
"""Rules for which overlaps below the lowest threshold count too."""


class SortedRows(msgspec.Struct, frozen=True):
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

    def where(self, selected: Array) -> SortedRows:
        """Select rows.

        Args:
            selected: bool [n].
        """
        if selected.all():
            return self
        upto = np.zeros(selected.size + 1, np.int64)
        np.cumsum(selected, out=upto[1:])
        return SortedRows(
            upto[self.start],
            self.boxes[selected],
            self.area[selected],
            self.datum[selected],
            self.row[selected],
            self.score[selected] if self.score.size else self.score,
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
        inside: number of predictions and of ground truths inside regions.
    """

    ranked: Ranked
    predictions: SortedRows
    order: Array
    ground_truths: SortedRows
    taker: Array
    took: Array
    left: tuple[int, int] = (0, 0)
    below: int = 0
    inside: tuple[int, int] = (0, 0)


def lay_out_sides(batch: Batch, rules: Any, threads: Workers) -> tuple[SortedRows, SortedRows]:
    """Sort both sides by label, then datum, then row, before any filtering."""
    n_datums, n_labels = len(batch.datums), len(batch.labels)
    sides = (batch.predictions, batch.ground_truths)
    placed = threads.each(
        [partial(group_by_label, side.datum, side.label, n_datums, n_labels) for side in sides]
    )
    result = []
    for side, (start, position) in zip(sides, placed, strict=True):
        boxes, area, datum, row, score = lay_out(
            position, side.datum, side.pieces, threads.over, from_extent=rules.from_extent
        )
        if (shapes := side.shapes) is not None:
            boxes = shapes.boxes[row]
            area = (shapes.area if shapes.given_area is None else shapes.given_area)[row]
        result.append(SortedRows(start, boxes, area, datum, row, score))
    return result[0], result[1]


def annotated_areas(batch: Batch, ground_truths: SortedRows) -> Array:
    """Return the areas of the ground truths for area ranges, in layout order, float64 [m]."""
    return ground_truths.area if batch.area is None else batch.area[ground_truths.row]


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
    counts = np.array([(1 << c) - 1 for c in range(word.n_thresholds + 1)], np.uint64)
    shifts = np.arange(word.n_areas, dtype=np.uint64) * np.uint64(word.n_thresholds)
    return (counts[:, None] << shifts).sum(axis=1)


def match(
    batch: Batch,
    sides: tuple[SortedRows, SortedRows],
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

    crowd = batch.crowd[ground_truths.row] if rules.crowd else np.zeros(m, bool)
    set_aside = batch.ignore[ground_truths.row]
    if rules.ignored_missed:
        crowd = set_aside
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
        predictions.start, score, predictions.boxes, predictions.area, predictions.datum
    )
    of_words = []
    for w, word in enumerate(words):
        counted[w] = _counted(word, variants, annotated, set_aside)
        block = slice(word.first_threshold, word.first_threshold + word.n_thresholds)
        bits = Bits(
            ceiling[block],
            _prefix(word),
            np.array([a[1:] for a in variants.areas[word.first_area :][: word.n_areas]]),
            np.array([area_bits(word, a) for a in range(word.n_areas)]),
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
        theirs = GroundTruths(
            ground_truths.start,
            ground_truths.boxes,
            ground_truths.area,
            ground_truths.datum,
            crowd,
            counted[w],
        )
        of_words.append((theirs, bits, out))

    match_rows = match_labels if rule in (GREEDY, NEAREST) else match_best

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
            match_rows(first, last, rule, ours, truths, pairs, bits, scratch, out)
        for target, source in zip(
            of_ranked, (score, predictions.datum, predictions.row), strict=True
        ):
            target[here] = source[order[here]]

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
        gt_counted=np.full_like(counted, ~np.uint64(0)) if rules.ignored_missed else counted,
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


# Pairs of similar geometry within a datum. Boundaries use the smaller of boundary and mask IoU,
# only the mask against a crowd (Cheng et al., "Boundary IoU", CVPR 2021, boundary-iou-api).


class OverlapPairs(msgspec.Struct, frozen=True):
    """Pairs within a datum and their similarity, by datum, prediction and ground truth.

    Attributes:
        prediction: int32 [k], index in the layout of predictions.
        ground_truth: int32 [k], index in the layout of ground truths.
        iou: float64 [k], above 0.
    """

    prediction: Array
    ground_truth: Array
    iou: Array

    def at_least(self, lowest: float) -> OverlapPairs:
        keep = self.iou >= lowest
        return OverlapPairs(self.prediction[keep], self.ground_truth[keep], self.iou[keep])

    def by_prediction(self, n: int) -> Pairs:
        """Return the pairs by prediction, for matching."""
        start, order = rows_by_datum(self.prediction, n)
        return Pairs(start, self.ground_truth[order], self.iou[order])


def find_overlaps(
    sides: tuple[SortedRows, SortedRows],
    shapes: tuple[Shapes, Shapes],
    keys: tuple[Array, Array],
    crowd: Array,
    n_datums: int,
    lowest: float,
    threads: Workers,
) -> OverlapPairs:
    """Find the pairs of one datum and key with IoU above 0, complete from ``lowest`` on.

    Args:
        sides: layouts of predictions and ground truths.
        shapes: by row of the tables.
        keys: int32 [n], [m] in layout order: only rows of the same key are paired.
        crowd: bool [m] in layout order, ground truths that count as crowd regions.
        lowest: pairs below it may be missing; 0 for all.
    """
    predicted, truths = sides
    candidates = Candidates(
        datum=(predicted.datum, truths.datum),
        key=keys,
        row=(predicted.row, truths.row),
        boxes=(predicted.boxes, truths.boxes),
        crowd=crowd,
        n_datums=n_datums,
        lowest=lowest,
    )
    p, g = shapes[0].layers[0].candidates(shapes[1].layers[0], candidates, threads)
    rows, truth_rows = predicted.row[p], truths.row[g]
    iou = overlap(shapes, rows, truth_rows, crowd[g], threads)
    keep = iou > 0
    return OverlapPairs(p[keep], g[keep], iou[keep])


def overlap(
    shapes: tuple[Shapes, Shapes], rows: Array, truth_rows: Array, crowd: Array, threads: Workers
) -> Array:
    """Return the similarity of pairs, float64 [k]: IoU, or against a crowd the detection's share.

    Args:
        shapes: by row of the tables.
        rows: int64 [k], the detection of each pair.
        truth_rows: int64 [k], its ground truth.
        crowd: bool [k], the ground truth is a crowd region.
    """
    iou = np.full(rows.size, np.inf)
    counts = np.ones(rows.size, np.bool_)
    for mine, other in zip(shapes[0].layers, shapes[1].layers, strict=True):
        part = mine.similarity(other, rows, truth_rows, crowd, threads)
        np.minimum(iou, part, out=iou, where=counts)
        counts = ~crowd  # crowds: only the share of the mask counts, not of its boundary
    return iou


# Repeated matching at every score, as in KITTI, and exclusion of predictions in regions.

_NONE = np.uint64(0)


def in_regions(batch: Batch, ours: SortedRows, lowest: float, threads: Workers) -> Array:
    """Return the largest share of each prediction inside one region, float64 [n], in layout order.

    3-D boxes get 0, since regions are in pixels.

    Args:
        ours: layout of the predictions.
        lowest: shares below it may be missing.
    """
    share = np.zeros(ours.row.size)
    seen, mine = batch.graded, batch.predictions.shapes
    if seen is None or mine is None or not isinstance(mine.layers[0], BoxLayer):
        return share
    regions = seen.of_region, seen.regions
    overlaps = _overlaps_with(regions, ours, mine.layers[0], len(batch.datums), lowest, threads)
    np.maximum.at(share, overlaps.prediction, overlaps.iou)
    return share


def _overlaps_with(
    regions: tuple[Array, Array],
    ours: SortedRows,
    layer: Any,
    n_datums: int,
    lowest: float,
    threads: Workers,
) -> OverlapPairs:
    """Return the share of rows inside each region of their datum.

    Args:
        layer: geometry of the rows of the table.
    """
    of_region, boxes = regions
    n = of_region.size
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    other: Any = BoxLayer(area, boxes)
    if isinstance(layer, QuadLayer):
        layer = QuadLayer(layer.area, layer.corners, layer.pieces)
        other = QuadLayer.of(corners_of_upright(boxes))
    elif isinstance(layer, PolygonLayer):
        polygons = from_boxes(boxes, flat_ones_empty=True)
        other = PolygonLayer(polygons.area, polygons)
    elif isinstance(layer, MaskLayer):
        size = np.zeros((n_datums, 2), np.int64)
        size[ours.datum, 0] = layer.masks.height[ours.row]
        size[ours.datum, 1] = layer.masks.width[ours.row]
        extents = size[of_region]
        sized = extents.min(axis=1, initial=1) > 0
        extents = np.maximum(extents, 1)
        drawn = rasterise(from_boxes(boxes), extents[:, 0], extents[:, 1], threads.over)
        other = MaskLayer(np.where(sized, drawn.area, 0), drawn)
    every = np.arange(n, dtype=np.int32)
    region_rows = SortedRows(np.array([0, n]), boxes, area, of_region, every, np.zeros(0))
    return find_overlaps(
        (ours, region_rows),
        (Shapes((layer,), ours.boxes), Shapes((other,), boxes)),
        (np.zeros(ours.row.size, np.int32), np.zeros(n, np.int32)),
        np.ones(n, np.bool_),
        n_datums,
        lowest,
        threads,
    )


# Regions in which nothing counts, whatever the label. Those of a datum are cut into pieces that do
# not overlap, so that shares of pieces add up to the share of their union.

_CLOSE = 1e-12  # of sums of shares


def outside_regions(
    batch: Batch,
    regions: tuple[Array, Array],
    sides: tuple[SortedRows, SortedRows],
    settings: Any,
    threads: Workers,
) -> tuple[tuple[SortedRows, SortedRows], tuple[int, int]]:
    """Return the sides without rows inside regions, and how many predictions and truths those are.

    Ground truths that count stay, unless regions are of pixels.

    Source of ``pixel_regions``: VisDrone2018-DET-toolkit, ``dropObjectsInIgr``.
    """
    ours, theirs = sides
    of_region, boxes = regions
    n, most = len(batch.datums), settings.region_overlap - _CLOSE
    if not settings.rules.pixel_regions:
        cut = _pieces((of_region, boxes))
        outside, stay = (
            _share(cut, rows, None if side.shapes is None else side.shapes.layers[0], n, threads)
            < most
            for rows, side in ((ours, batch.predictions), (theirs, batch.ground_truths))
        )
        aside = batch.ignore | batch.crowd if settings.rules.crowd else batch.ignore
        inside = ~stay & ~aside[theirs.row]
        return (ours.where(outside), theirs), (int(outside.size - outside.sum()), int(inside.sum()))
    assert batch.sizes is not None
    low = np.maximum(1.0, boxes[:, :2])
    extent = np.maximum(1.0, boxes[:, 2:] - boxes[:, :2])
    pixels = np.concatenate([low - 1, low + extent], axis=1)
    pieces = _pieces((of_region, _clipped(pixels, batch.sizes[of_region])))
    result, many = [], []
    for side in sides:
        low, extent = (
            np.maximum(1.0, np.floor(corners + 0.5))
            for corners in (side.boxes[:, :2], side.boxes[:, 2:] - side.boxes[:, :2])
        )
        around = np.concatenate([low, low + extent], axis=1)
        inside = _clipped(around, batch.sizes[side.datum])
        clipped = msgspec.structs.replace(
            side, boxes=inside, row=np.arange(side.row.size, dtype=np.int32)
        )
        outside = _share(pieces, clipped, BoxLayer(extent.prod(axis=1), inside), n, threads) < most
        result.append(side.where(outside))
        many.append(int(outside.size - outside.sum()))
    return (result[0], result[1]), (many[0], many[1])


def _clipped(boxes: Array, size: Array) -> Array:
    """Clip boxes to images of known height and width."""
    return np.minimum(boxes, np.where(size > 0, size, np.inf)[:, [1, 0, 1, 0]])


def _share(
    pieces: tuple[Array, Array], ours: SortedRows, layer: Any, n_datums: int, threads: Workers
) -> Array:
    """Share of each row inside the pieces of its datum, float64 [n]."""
    if layer is None:
        every = np.arange(ours.row.size, dtype=np.int32)
        layer, ours = BoxLayer(ours.area, ours.boxes), msgspec.structs.replace(ours, row=every)
    overlaps = _overlaps_with(pieces, ours, layer, n_datums, 0.0, threads)
    return np.bincount(overlaps.prediction, overlaps.iou, ours.row.size)


def _pieces(regions: tuple[Array, Array]) -> tuple[Array, Array]:
    """Rectangles that do not overlap and cover the regions of each datum."""
    of_region, boxes = regions
    order = np.argsort(of_region, kind="stable")
    first = np.flatnonzero(np.diff(of_region[order], prepend=-1))
    owners: list[int] = []
    out: list[tuple[float, float, float, float]] = []
    for at in np.split(order, first[1:]):
        group = boxes[at]
        edges = np.unique(group[:, [0, 2]])
        for left, right in pairwise(edges.tolist()):
            strip = group[(group[:, 0] <= left) & (group[:, 2] >= right)]
            top = bottom = -np.inf
            for _, low, _, high in strip[np.argsort(strip[:, 1])].tolist():
                if low > bottom:
                    if bottom > top:
                        out.append((left, top, right, bottom))
                    top, bottom = low, high
                bottom = max(bottom, high)
            if bottom > top:
                out.append((left, top, right, bottom))
        owners += [int(of_region[at[0]])] * (len(out) - len(owners))
    return np.array(owners, np.int32), np.array(out, np.float64).reshape(-1, 4)


def ranked_in_datum(ours: SortedRows, cap: int | None) -> tuple[SortedRows, Array]:
    """Return the rows within a cap per datum over all labels, and rank by row, int32."""
    order = np.lexsort((ours.row, -ours.score, ours.datum))
    start = np.flatnonzero(np.diff(ours.datum[order], prepend=-1))
    many = np.diff(np.append(start, order.size))
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size) - np.repeat(start, many)
    rank = np.zeros(int(ours.row.max(initial=-1)) + 1, np.int32)
    rank[ours.row] = place
    return (ours if cap is None else ours.where(place < cap)), rank


def match_by_difficulty(
    batch: Batch,
    sides: tuple[SortedRows, SortedRows],
    rules: DetectionRules,
    variants: Variants,
    overlaps: OverlapPairs,
    share: Array,
    threads: Workers,
    *,
    took: bool,
    turned: bool,
) -> Matched:
    """Match all labels at all thresholds and difficulties.

    Args:
        sides: layouts of predictions and ground truths.
        variants: thresholds and difficulties.
        overlaps: overlaps across labels.
        share: float64 [n], from :func:`in_regions`.
        took: record the ground truth of each prediction.
        turned: gains include angles.

    Returns:
        The match; values of its rows are their gains, by kind, difficulty and threshold.
    """
    ours, theirs = sides
    seen = batch.graded
    assert seen is not None
    n, m = ours.row.size, theirs.row.size
    number = ours.row if batch.predictions.rows is None else batch.predictions.rows[ours.row]
    number = number.astype(np.int64)
    small = [seen.small(one)[ours.row] for one in rules.difficulties]
    set_aside = batch.ignore[theirs.row]
    regular = [seen.regular(one)[theirs.row] & ~set_aside for one in rules.difficulties]
    alpha = [
        one[side.row] if turned else one[:0] for one, side in zip(seen.alpha, sides, strict=True)
    ]
    pairs_start, pairs = rows_by_datum(overlaps.ground_truth, m)
    shape = len(variants.areas), len(variants.thresholds)
    gains = np.zeros((4 if turned else 2, *shape, n))
    order, rank = np.empty(n, np.int32), np.zeros(n, np.int32)
    words = variants.words
    hit, ignored = np.zeros((2, len(words), n), np.uint64)
    counted = np.zeros((len(words), m), np.uint64)
    takes = np.full((*shape, n), -1, np.int32)
    jobs = []
    for w, word in enumerate(words):
        areas, ious = word.places
        bits = [area_bits(word, a) for a in range(word.n_areas)]
        tiny, absorbed = np.zeros((2, n), np.uint64)
        for bit, little, is_regular in zip(bits, small[areas], regular[areas], strict=True):
            tiny |= np.where(little, bit, _NONE)
            counted[w] |= np.where(is_regular, bit, _NONE)
        for t, iou in enumerate(variants.thresholds[ious]):
            every = sum(1 << (a * word.n_thresholds + t) for a in range(word.n_areas))
            absorbed |= np.where(share >= iou, np.uint64(every), _NONE)
        both = Both(
            *(ours.start, ours.datum, number, ours.score, tiny, absorbed, alpha[0]),
            *(theirs.start, theirs.datum, counted[w], alpha[1]),
            *(pairs_start, overlaps.prediction[pairs], overlaps.iou[pairs]),
        )
        size = word.n_areas * word.n_thresholds
        out = Gains(
            rank,
            hit[w],
            ignored[w],
            np.full((size, n), -1, np.int32),
            np.zeros((len(gains), size, n)),
        )
        jobs.append((both, np.array([*variants.thresholds[ious]] * word.n_areas), out))

    def run(first: int, last: int) -> None:
        rank_by_score(ours.score, ours.start, first, last, order)
        for both, thresholds, out in jobs:
            match_again(first, last, both, thresholds, out)

    threads.over(ours.start, run)
    for word, (_, _, out) in zip(words, jobs, strict=True):
        block = word.n_areas, word.n_thresholds, n
        takes[word.places] = out.taken.reshape(block)[..., order]
        gains[:, *word.places] = out.gains.reshape(len(gains), *block)[..., order]
    hit, ignored = hit[:, order], ignored[:, order]
    taker = np.full((shape[1], m), -1, np.int32)
    for t in range(shape[1]):
        w, place = variants.bit(t)
        of = np.flatnonzero((hit[w] >> np.uint64(place)) & np.uint64(1))
        taker[t, takes[0, t, of]] = of
    ranked = Ranked(
        variants=variants,
        start=ours.start,
        score=ours.score[order],
        datum=ours.datum[order],
        row=ours.row[order].astype(np.int64),
        rank=rank[order],
        hit=hit,
        ignored=ignored,
        gt_start=theirs.start,
        gt_datum=theirs.datum,
        gt_row=theirs.row.astype(np.int64),
        gt_counted=counted,
        single=batch.single,
        values=gains.reshape(len(gains) * shape[0] * shape[1], n),
    )
    each = takes if took else np.empty((0, 0, 0), np.int32)
    return Matched(ranked, ours, order, theirs, taker, each)
