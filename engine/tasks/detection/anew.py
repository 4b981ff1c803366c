"""Repeated matching at every score, as in KITTI, and exclusion of predictions in regions."""

from __future__ import annotations

import numpy as np

from ...kernels.jit import frozen
from ...kernels.matching_anew import Anew, Gains
from ...kernels.matching_anew import match_anew as match_labels
from ...kernels.order import rank_by_score
from ...kernels.pairs import rows_by_datum
from ...schemas.arrays import Array
from ...tally.ranked import Ranked, Variants
from ..workers import Workers
from .encode import Batch
from .layers import BoxLayer, Shapes
from .matching import LaidOut, Matched, area_bits
from .near import Near, find_near
from .rules import DetectionRules

_NONE = np.uint64(0)


def in_regions(batch: Batch, ours: LaidOut, lowest: float, threads: Workers) -> Array:
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
    boxes, n = seen.regions, seen.of_region.size
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    every = np.arange(n, dtype=np.int32)
    laid = LaidOut(np.array([0, n]), boxes, area, seen.of_region, every, np.zeros(0))
    found = find_near(
        (ours, laid),
        (mine, Shapes((BoxLayer(area, boxes),), boxes)),
        (np.zeros(share.size, np.int32), np.zeros(n, np.int32)),
        np.ones(n, np.bool_),
        len(batch.datums),
        lowest,
        threads,
    )
    np.maximum.at(share, found.prediction, found.iou)
    return share


def match_anew(
    batch: Batch,
    sides: tuple[LaidOut, LaidOut],
    rules: DetectionRules,
    variants: Variants,
    near: Near,
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
        near: overlaps across labels.
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
    small = [seen.small(one)[ours.row] for one in rules.difficulties]
    set_aside = theirs.laid(batch.ignore)
    regular = [seen.regular(one)[theirs.row] & ~set_aside for one in rules.difficulties]
    alpha = [
        one[laid.row] if turned else one[:0] for one, laid in zip(seen.alpha, sides, strict=True)
    ]
    pairs_start, pairs = rows_by_datum(near.ground_truth, m)
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
        for bit, little, there in zip(bits, small[areas], regular[areas], strict=True):
            tiny |= np.where(little, bit, _NONE)
            counted[w] |= np.where(there, bit, _NONE)
        for t, iou in enumerate(variants.thresholds[ious]):
            every = sum(1 << (a * word.n_thresholds + t) for a in range(word.n_areas))
            absorbed |= np.where(share >= iou, np.uint64(every), _NONE)
        both = Anew(
            frozen(ours.start, np.int64),
            frozen(ours.datum, np.int32),
            frozen(number, np.int64),
            frozen(ours.score, np.float64),
            frozen(tiny, np.uint64),
            frozen(absorbed, np.uint64),
            frozen(alpha[0], np.float64),
            frozen(theirs.start, np.int64),
            frozen(theirs.datum, np.int32),
            frozen(counted[w], np.uint64),
            frozen(alpha[1], np.float64),
            frozen(pairs_start, np.int64),
            frozen(near.prediction[pairs], np.int32),
            frozen(near.iou[pairs], np.float64),
        )
        size = word.n_areas * word.n_thresholds
        out = Gains(rank, hit[w], ignored[w], np.full((size, n), -1, np.int32),
                    np.zeros((len(gains), size, n)))  # fmt: skip
        jobs.append((both, frozen([*variants.thresholds[ious]] * word.n_areas, np.float64), out))

    def run(first: int, last: int) -> None:
        rank_by_score(ours.score, ours.start, first, last, order)
        for both, thresholds, out in jobs:
            match_labels(first, last, both, thresholds, out)

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
        skipped=np.zeros(0, bool),
        tie=np.zeros(0),
        gt_start=theirs.start,
        gt_datum=theirs.datum,
        gt_row=theirs.row.astype(np.int64),
        gt_counted=counted,
        cap=None,
        single=batch.single,
        values=gains.reshape(len(gains) * shape[0] * shape[1], n),
    )
    each = takes if took else np.empty((0, 0, 0), np.int32)
    return Matched(ranked, ours, order, theirs, taker, each)
