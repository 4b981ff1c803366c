"""Overlaps across labels, and outcomes per row."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from ...ingest.dtypes import stacked
from ...kernels.boxes import close_pairs, rows_by_datum, truths_by_datum
from ...kernels.matching import match_across_labels
from ...schemas.arrays import Array
from ...schemas.results import empty_frame, frame_schema
from ...tallies.datums import Labels
from ...tallies.ranked import ConfusedPairs, Ranked
from ..encoding import Workers
from .encode import Batch
from .matching import Matched, OverlapPairs

# Overlaps across labels, for detailed curves, confusion and outcomes.

_BITS = 64


class Pairs(msgspec.Struct, frozen=True):
    """Predictions and regular ground truths of one datum and key that overlap enough.

    Attributes:
        prediction: int32 [k], ranked prediction.
        ground_truth: int32 [k].
        iou: float64 [k].
        p_label: int32 [n], label of each ranked prediction.
        g_label: int32 [m], label of each ground truth.
    """

    prediction: Array
    ground_truth: Array
    iou: Array
    p_label: Array
    g_label: Array

    def at_least(self, lowest: float) -> Pairs:
        keep = self.iou >= lowest
        few = (self.prediction[keep], self.ground_truth[keep], self.iou[keep])
        return Pairs(*few, self.p_label, self.g_label)

    @property
    def same_label(self) -> Array:
        """Return a mask of pairs with equal labels, bool [k]."""
        return self.p_label[self.prediction] == self.g_label[self.ground_truth]


def regular_ground_truths(matched: Matched) -> Array:
    """Ground truths not ignored in the first area range, bool [m]."""
    return matched.ranked.regular(0)


def find_pairs(
    matched: Matched,
    labels: Labels,
    n_datums: int,
    lowest: float,
    threads: Workers,
    given: OverlapPairs | None = None,
    crowd: Array | None = None,
) -> Pairs:
    """Find every overlap of at least ``lowest`` with a ground truth that is not ignored.

    Args:
        lowest: smallest IoU kept.
        given: overlaps of other geometry than boxes within label keys.
        crowd: bool [m] in layout order, crowd regions, whose overlaps are then kept too, as the
            share of the prediction.
    """
    ranked = matched.ranked
    p_label, g_label = label_of(ranked.start), label_of(ranked.gt_start)
    place = np.empty(matched.order.size, np.int32)  # ranked prediction of each laid out one
    place[matched.order] = np.arange(place.size, dtype=np.int32)
    if given is None:
        overlaps = _box_overlaps(matched, labels, n_datums, lowest, threads, crowd)
    else:
        overlaps = given.at_least(lowest)
    p, g, iou = place[overlaps.prediction], overlaps.ground_truth, overlaps.iou
    keep = regular_ground_truths(matched)
    keep = (keep if crowd is None else keep | crowd)[g]
    if not keep.all():
        p, g, iou = p[keep], g[keep], iou[keep]
    return Pairs(p, g, iou, p_label, g_label)


def label_of(start: Array) -> Array:
    """Label of every row, int32 [n], from offsets by label."""
    return np.repeat(np.arange(start.size - 1, dtype=np.int32), np.diff(start))


def _box_overlaps(
    matched: Matched,
    labels: Labels,
    n_datums: int,
    lowest: float,
    threads: Workers,
    crowd: Array | None,
) -> OverlapPairs:
    """Boxes of one datum and label key that overlap enough."""
    ranked = matched.ranked
    p_label, g_label = label_of(ranked.start), label_of(ranked.gt_start)
    predicted, truths = matched.predictions, matched.ground_truths
    (p_start, p_place), gts = threads.each(
        [
            lambda: rows_by_datum(predicted.datum, n_datums),
            lambda: truths_by_datum(
                truths.datum, n_datums, truths.boxes, truths.area, labels.key[g_label], crowd
            ),
        ]
    )
    predictions = p_start, p_place, predicted.boxes, predicted.area, labels.key[p_label]
    pieces = threads.over(
        p_start, lambda first, last: close_pairs(first, last, predictions, gts, lowest)
    )
    empty = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float64))
    return OverlapPairs(*(np.concatenate(parts) for parts in zip(empty, *pieces, strict=True)))


class Facts(msgspec.Struct, frozen=True):
    """Facts of each row at one IoU threshold, for the detailed curve.

    Attributes:
        hit: bool [n], true positive.
        ignored: bool [n], neither true nor false positive.
        on_other: bool [n], overlaps a ground truth of another label.
        on_own: bool [n], overlaps a ground truth of the same label.
        gt_regular: bool [m], counted.
        gt_taken: float64 [m], score of its true positive, -inf for none.
        gt_taker: int32 [m], that prediction, -1 for none.
        gt_other: float64 [m], best score of an overlapping prediction of another label, -inf.
    """

    hit: Array
    ignored: Array
    on_other: Array
    on_own: Array
    gt_regular: Array
    gt_taken: Array
    gt_taker: Array
    gt_other: Array


def find_facts(matched: Matched, pairs: Pairs, iou: float) -> Facts:
    """Compute the facts at one of the match's IoU thresholds.

    Args:
        matched: the match, with takers.
        pairs: overlaps of at least that IoU.
    """
    ranked = matched.ranked
    threshold = ranked.variants.threshold_index(iou)
    hit, ignored = ranked.outcomes(threshold)
    overlapping = pairs.iou >= iou
    same = pairs.same_label
    on_other = np.zeros(ranked.score.size, bool)
    on_own = np.zeros(ranked.score.size, bool)
    on_other[pairs.prediction[overlapping & ~same]] = True
    on_own[pairs.prediction[overlapping & same]] = True
    other = np.full(ranked.gt_datum.size, -np.inf)
    crossing = overlapping & ~same
    np.maximum.at(other, pairs.ground_truth[crossing], ranked.score[pairs.prediction[crossing]])
    taker = matched.taker[threshold]
    return Facts(
        hit=hit,
        ignored=ignored,
        on_other=on_other,
        on_own=on_own,
        gt_regular=regular_ground_truths(matched),
        gt_taken=_taker_score(ranked, taker),
        gt_taker=taker,
        gt_other=other,
    )


def _taker_score(ranked: Ranked, taker: Array) -> Array:
    """Score of the row that took each ground truth; -inf if none did."""
    score = ranked.score[np.maximum(taker, 0)] if ranked.score.size else 0
    return np.where(taker >= 0, score, -np.inf)


def _score_bits(score: Array, thresholds: Array) -> Array:
    """Bits of the ascending thresholds (at most 64) that each score reaches, uint64."""
    table = np.array([(1 << c) - 1 for c in range(thresholds.size + 1)], np.uint64)
    return table[np.searchsorted(thresholds, score, side="right")]


def cross_match(
    matched: Matched,
    pairs: Pairs,
    ious: tuple[float, ...],
    score_thresholds: tuple[float, ...],
    threads: Workers,
) -> ConfusedPairs:
    """Match the remaining rows across labels, at every IoU and score threshold.

    Args:
        matched: the match, with takers.
        pairs: overlaps of at least the lowest of ``ious``.
        ious: IoU thresholds, among the match's.
        score_thresholds: ascending.
        threads: one call per IoU threshold.
    """
    ranked = matched.ranked
    crossing = ~pairs.same_label
    p, g, iou = pairs.prediction[crossing], pairs.ground_truth[crossing], pairs.iou[crossing]
    datum = ranked.datum[p]
    # Ranked position orders ties by datum and row only within a label: use the table's row.
    order = np.lexsort((matched.ground_truths.row[g], -iou, ranked.row[p], -ranked.score[p], datum))
    p, g, iou, datum = p[order], g[order], iou[order], datum[order]
    starts = np.flatnonzero(np.r_[True, datum[1:] != datum[:-1]]) if datum.size else np.empty(0)
    start = np.r_[starts, datum.size].astype(np.int64)
    words = [
        np.asarray([ranked.comparable(t) for t in score_thresholds[at : at + _BITS]])
        for at in range(0, len(score_thresholds), _BITS)
    ]
    reached = [_score_bits(ranked.score, thresholds) for thresholds in words]
    regular = regular_ground_truths(matched)

    def at_iou(index: int, threshold: float) -> ConfusedPairs:
        place = ranked.variants.threshold_index(threshold)
        word, bit = ranked.variants.bit(place)
        taker_score = _taker_score(ranked, matched.taker[place])
        parts = []
        for w, thresholds in enumerate(words):
            all_bits = np.uint64((1 << thresholds.size) - 1)
            free = np.where(regular, all_bits & ~_score_bits(taker_score, thresholds), np.uint64(0))
            p_met, g_met, bits = match_across_labels(
                (start, p, g, iou),
                threshold,
                bit,
                (ranked.hit[word], ranked.ignored[word], reached[w], pairs.p_label),
                pairs.g_label,
                free,
            )
            scores = np.zeros((len(words), bits.size), np.uint64)
            scores[w] = bits
            parts.append(
                ConfusedPairs(
                    actual=pairs.g_label[g_met],
                    predicted=pairs.p_label[p_met],
                    threshold=np.full(bits.size, index, np.int32),
                    scores=scores,
                    datum=ranked.datum[p_met],
                )
            )
        return _joined(parts)

    return _joined(
        threads.each([lambda i=i, t=t: at_iou(i, t) for i, t in enumerate(ious)])  # type: ignore[misc]
    )


def _joined(parts: list[ConfusedPairs]) -> ConfusedPairs:
    """Entries one after the other."""
    return ConfusedPairs(
        actual=np.concatenate([part.actual for part in parts]),
        predicted=np.concatenate([part.predicted for part in parts]),
        threshold=np.concatenate([part.threshold for part in parts]),
        scores=np.concatenate([part.scores for part in parts], axis=1),
        datum=np.concatenate([part.datum for part in parts]),
    )


# Outcomes: one row per prediction or missed ground truth, at given thresholds.

PREDICTED = ("tp", "fp_misclassified", "fp_duplicate", "fp_hallucination", "ignored")
MISSED = ("fn_misclassified", "fn_missed")


def _best_overlap(pairs: Pairs, mask: Array, n: int) -> tuple[Array, Array]:
    """The overlapped ground truth of highest IoU of each prediction (-1), and that IoU."""
    p, g, iou = pairs.prediction[mask], pairs.ground_truth[mask], pairs.iou[mask]
    order = np.lexsort((g, -iou, p))
    p, g, iou = p[order], g[order], iou[order]
    first = np.r_[True, p[1:] != p[:-1]] if p.size else np.zeros(0, bool)
    best, value = np.full(n, -1, np.int64), np.full(n, np.nan)
    best[p[first]], value[p[first]] = g[first], iou[first]
    return best, value


def annotation_ids(batch: Batch) -> pl.Series:
    """Return ids of ground truths by table row; row numbers if the table has none."""
    frame = batch.ground_truths.frame
    if "annotation_id" in frame.columns:
        return frame["annotation_id"]
    rows = batch.ground_truths.rows
    return pl.Series(
        "annotation_id", np.arange(batch.crowd.size, dtype=np.int64) if rows is None else rows
    )


def _at(
    batch: Batch, matched: Matched, pairs: Pairs, facts: Facts, iou: float, score: float
) -> pl.DataFrame:
    """Outcomes at one IoU and score threshold; ``score`` may be -inf for every prediction."""
    ranked = matched.ranked
    n = ranked.score.size
    lowest = ranked.comparable(score)
    overlapping = pairs.iou >= iou
    kind = np.select(
        [facts.hit, facts.ignored, facts.on_other, facts.on_own], [0, 4, 1, 2], default=3
    )
    partner, value = np.full(n, -1, np.int64), np.full(n, np.nan)
    for code, mask in ((1, overlapping & ~pairs.same_label), (2, overlapping & pairs.same_label)):
        best, overlap = _best_overlap(pairs, mask, n)
        here = kind == code
        partner[here], value[here] = best[here], overlap[here]
    truths = np.flatnonzero(facts.gt_taker >= 0)
    partner[facts.gt_taker[truths]] = truths
    is_partner = pairs.ground_truth == partner[pairs.prediction]
    hits = is_partner & (kind[pairs.prediction] == 0)
    value[pairs.prediction[hits]] = pairs.iou[hits]
    counts = np.flatnonzero(ranked.score >= lowest)
    missed = np.flatnonzero(facts.gt_regular & ((facts.gt_taker < 0) | (facts.gt_taken < lowest)))
    other = facts.gt_other[missed]
    confused = (other >= lowest) & (other > -np.inf)
    matched_rows = partner[counts] >= 0
    gt_row = np.r_[
        np.where(
            matched_rows,
            ranked.gt_row[np.maximum(partner[counts], 0)] if ranked.gt_row.size else 0,
            0,
        ),
        ranked.gt_row[missed],
    ]
    unmatched = pl.Series(np.r_[~matched_rows, np.zeros(missed.size, bool)])
    label = np.r_[pairs.p_label[counts], pairs.g_label[missed]]
    datum = np.r_[ranked.datum[counts], ranked.gt_datum[missed]]
    outcome = np.r_[np.array(PREDICTED)[kind[counts]], np.where(confused, MISSED[0], MISSED[1])]
    blank = np.full(missed.size, np.nan)
    table = batch.labels.frame
    return pl.DataFrame(
        {
            "datum_id": batch.datums.id.gather(datum),
            "label_key": table["label_key"].gather(label),
            "label_value": table["label_value"].gather(label),
            "iou_threshold": np.full(label.size, iou),
            "score_threshold": np.full(
                label.size, max(score, 0.0) if np.isneginf(score) else score
            ),
            "outcome": outcome,
            "score": pl.Series(np.r_[ranked.score[counts], blank]).fill_nan(None),
            "iou": pl.Series(np.r_[value[counts], blank]).fill_nan(None),
            "matched_annotation_id": annotation_ids(batch).gather(
                pl.Series(gt_row.astype(np.int64)).set(unmatched, None)
            ),
        }
    )


def outcomes_frame(
    batch: Batch,
    matched: Matched,
    pairs: Pairs,
    ious: tuple[float, ...],
    score_thresholds: tuple[float, ...],
) -> pl.DataFrame:
    """Build the ``outcomes`` frame.

    ``iou`` and ``matched_annotation_id`` refer to the ground truth of a true positive, and to the
    one
    with the largest overlap for a misclassification or duplicate. For a missed ground truth,
    ``matched_annotation_id`` is its id. Without annotation_id, it is the row in the table, from 0.

    Args:
        matched: the match, with takers.
        pairs: overlaps of at least the lowest IoU threshold.
        ious: IoU thresholds, among the match's.
        score_thresholds: lower predictions are omitted; -inf for all, shown as 0.
    """
    dtypes = {"label": batch.labels.dtype, "datum": batch.datums.id_dtype}
    parts = [
        _at(batch, matched, pairs, find_facts(matched, pairs, iou), iou, score)
        for iou in ious
        for score in score_thresholds
    ]
    schema = frame_schema("outcomes", label=dtypes["label"], datum=dtypes["datum"])
    schema["matched_annotation_id"] = annotation_ids(batch).dtype
    if not parts:
        return empty_frame("outcomes", label=dtypes["label"], datum=dtypes["datum"])
    return in_order(pl.concat(parts).cast(schema))  # type: ignore[arg-type]


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows as the ``outcomes`` frame has them; of equal ones the order stays."""
    return frame.sort(
        ["iou_threshold", "score_threshold", "datum_id", "label_key", "label_value", "score"],
        descending=[False, False, False, False, False, True],
        nulls_last=True,
        maintain_order=True,
    )


def merge_outcomes(frames: Sequence[pl.DataFrame], shifts: Sequence[int] | None) -> pl.DataFrame:
    """Merge the ``outcomes`` frames.

    Args:
        frames: of disjoint sets of datums.
        shifts: ground truths before those of each part, if they are identified by row; None if they
            have ids, or their rows are those of the whole input.
    """
    if shifts is not None:
        frames = [
            frame.with_columns(pl.col("matched_annotation_id") + shift)
            for frame, shift in zip(frames, shifts, strict=True)
        ]
    filled = [frame for frame in frames if frame.height] or [frames[0]]
    return in_order(stacked(filled))
