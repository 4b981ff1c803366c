"""Outcomes: one row per prediction or missed ground truth, at given thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ...schemas.results import empty_frame, frame_schema
from .encode import Batch
from .matching import Matched
from .overlaps import Facts, Pairs, find_facts

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
    near = pairs.iou >= iou
    kind = np.select(
        [facts.hit, facts.ignored, facts.near_other, facts.near_own], [0, 4, 1, 2], default=3
    )
    partner, value = np.full(n, -1, np.int64), np.full(n, np.nan)
    for code, mask in ((1, near & ~pairs.same_label), (2, near & pairs.same_label)):
        best, overlap = _best_overlap(pairs, mask, n)
        here = kind == code
        partner[here], value[here] = best[here], overlap[here]
    taken = np.flatnonzero(facts.gt_taker >= 0)
    partner[facts.gt_taker[taken]] = taken
    met = pairs.ground_truth == partner[pairs.prediction]
    hits = met & (kind[pairs.prediction] == 0)
    value[pairs.prediction[hits]] = pairs.iou[hits]
    counts = np.flatnonzero(ranked.score >= lowest)
    missed = np.flatnonzero(facts.gt_regular & ((facts.gt_taker < 0) | (facts.gt_taken < lowest)))
    other = facts.gt_other[missed]
    confused = (other >= lowest) & (other > -np.inf)
    known = partner[counts] >= 0
    gt_row = np.r_[
        np.where(
            known, ranked.gt_row[np.maximum(partner[counts], 0)] if ranked.gt_row.size else 0, 0
        ),
        ranked.gt_row[missed],
    ]
    unmatched = pl.Series(np.r_[~known, np.zeros(missed.size, bool)])
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
    return in_order(pl.concat(filled, how="vertical_relaxed"))
