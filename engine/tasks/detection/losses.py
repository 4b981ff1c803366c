"""Losses and contents of single images."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...dialects import Aims, Dialect
from ...ingest.frames import Frames
from ...ingest.geometry import CORNER_NAMES
from ...ingest.problems import count_of, listing
from ...metrics import Metric
from ...metrics.thresholds import LARGEST_F, Curve, walk
from ...schemas.arrays import Array
from ...schemas.wording import option
from ...tallies.ranked import RankedRun
from ...tallies.ranked_points import CountedScan, point_blocks
from ..contents import BOXES, POINTS, Box, Boxes, Content, Ring, called, copied
from ..encoding import Workers
from ..task import Cuts, Losses
from .encode import Side, encode_batch
from .errors import MISS
from .overlaps import find_facts, find_pairs, label_of
from .settings import Settings
from .tallies import Tallies, match_batch

# Contents of single images: boxes and their outcomes.

_ORDER = ("missed", "fp", "tp", "ignored")
_TOGETHER = 1_000  # points of all outlines of an image
_FEWEST = 16  # of one of them


def contents(
    frames: Frames, settings: Settings, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`: matched again, datum by datum as in the run."""
    iou_threshold, lowest = made_with["iou_threshold"], made_with["score_threshold"]
    iou = settings.internal_threshold(iou_threshold)
    settings = msgspec.structs.replace(settings, spot_ious=(iou,))
    batch = encode_batch(copied(frames), settings, workers)
    matched, overlaps = match_batch(batch, settings, frozenset({"spot_ious", "outcomes"}), workers)
    pairs = find_pairs(matched, batch.labels, len(batch.datums), iou, workers, overlaps)
    facts, ranked = find_facts(matched, pairs, iou), matched.ranked
    shown = np.flatnonzero(ranked.score >= ranked.comparable(lowest))
    missed = np.flatnonzero(
        facts.gt_regular & ((facts.gt_taker < 0) | (facts.gt_taken < ranked.comparable(lowest)))
    )
    outcome = np.select([facts.hit, facts.ignored], [2, 3], default=1)[shown]
    kind = np.r_[outcome, np.zeros(missed.size, np.int64)]
    score = np.r_[ranked.score[shown], np.full(missed.size, np.nan)]
    datum = np.r_[ranked.datum[shown], ranked.gt_datum[missed]]
    label = np.r_[label_of(ranked.start)[shown], label_of(ranked.gt_start)[missed]]
    corners = np.concatenate(
        [
            batch.predictions.boxes(ranked.row[shown]),
            batch.ground_truths.boxes(ranked.gt_row[missed]),
        ]
    )
    row = np.r_[ranked.row[shown], ranked.gt_row[missed]]
    order = np.lexsort((np.arange(kind.size), -np.nan_to_num(score), kind, datum))
    sides = batch.predictions, batch.ground_truths
    code = {str(one): i for i, one in enumerate(batch.datums.id.to_list())}
    out: list[Content | None] = []
    for one in ids:
        places = order[datum[order] == code[one]] if one in code else order[:0]
        most = min(POINTS, max(_FEWEST, _TOGETHER // max(1, min(places.size, BOXES))))
        boxes = [
            Box(
                label=called(batch.labels.frame, int(label[at])),
                outcome=_ORDER[kind[at]],
                score=None if np.isnan(score[at]) else float(score[at]),
                corners=tuple(corners[at].tolist()),
                rings=_outline(sides[int(at >= shown.size)], int(row[at]), most),
            )
            for at in places[:BOXES].tolist()
        ]
        out.append(
            Boxes(
                boxes=tuple(boxes),
                left_out=max(0, places.size - BOXES),
                iou_threshold=iou_threshold,
                score_threshold=lowest,
            )
        )
    return out


def _outline(side: Side, row: int, most: int) -> tuple[Ring, ...]:
    return () if side.shapes is None else side.shapes.outline(row, most)


# Loss of single images: F1 at one IoU and one score threshold.

IOU = 0.5


def score_threshold(run: RankedRun, n_labels: int, iou: float) -> float:
    """Return the score threshold with the highest F1 of the whole run, all labels pooled.

    As in the metrics of chosen thresholds: over every distinct score, the highest among ties; 0 if
    there is none.

    Args:
        iou: one of the tally's thresholds.
    """
    rows = CountedScan(run, iou, np.zeros(n_labels, np.int32), 1).load_if_small()
    nearest = run.variants.threshold_index(iou)
    truths = sum(int(tally.regular(nearest).sum()) for _, tally in run.scan())
    curve = Curve(
        partial(point_blocks, rows, None, 1, None),
        np.array([float(truths)]),
        None,
        lambda: np.ones(1, bool),
    )
    (best,), _ = walk(curve, [LARGEST_F], Aims())
    return float(np.nan_to_num(best.threshold[0]))


def operating_point(run: RankedRun, n_labels: int, iou: float, counted: Sequence[float]) -> float:
    """Return the score threshold of single images, and of the page.

    It is that of the highest F1, rounded down to one at which the run counts confusions, so that
    the whole page has one; unchanged below all of them.

    Args:
        iou: one of the tally's thresholds.
        counted: score thresholds of the run's counts.
    """
    best = score_threshold(run, n_labels, iou)
    return max((one for one in counted if one <= best), default=best)


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses | str:
    """See :class:`..task.JudgeDatums`."""
    if not settings.has_overall_range:
        return "area_ranges have no range of all sizes"
    run = RankedRun.of(tallies.ranked)
    n = len(tallies.datums)
    thresholds = np.asarray(run.variants.thresholds)
    iou = settings.pr_curve_iou_threshold if settings.by_distance else IOU
    nearest = int(np.argmin(np.abs(thresholds - iou)))
    at = float(thresholds[nearest])
    lowest = operating_point(run, len(tallies.labels), at, settings.score_thresholds)
    tp, fp, support = np.zeros((3, n), np.int64)
    least, low = lowest, 0
    for _, ranked in run.scan():
        hit, ignored = ranked.outcomes(nearest)
        least = ranked.comparable(lowest)
        low += int((hit & ~ignored & (ranked.score < least)).sum())
        counts = ~ignored & (ranked.score >= least)
        tp += np.bincount(ranked.datum[hit & counts], minlength=n)
        fp += np.bincount(ranked.datum[counts & ~hit], minlength=n)
        support += np.bincount(ranked.gt_datum[ranked.regular(nearest)], minlength=n)
    total = tp + fp + support
    f1 = np.full(n, np.nan)
    np.divide(2 * tp, total, out=f1, where=total > 0)

    def why(codes: Array) -> list[str]:
        return [
            _sentence(int(support[code] - tp[code]), int(support[code]), int(fp[code]))
            for code in codes
        ]

    iou = settings.in_user_unit(float(thresholds[nearest]))
    return Losses(
        metric="F1",
        made_with={"iou_threshold": iou, "score_threshold": lowest},
        rows=lambda frame: counted_rows(frame, iou, lowest, float(least), low),
        value=f1,
        higher=True,
        best=1.0,
        ties=lambda codes: [(support - tp + fp)[codes].astype(np.float64)],
        why=why,
    )


def _sentence(missed: int, total: int, false: int) -> str:
    """Such as "3 of 5 objects missed, 2 false positives"."""
    counts = []
    if missed > 0:  # of a group of objects several predictions may be right
        counts.append(f"{missed:,} of {count_of(total, 'object')} missed")
    if false:
        counts.append(count_of(false, "false positive"))
    if not total:
        counts.append("no object there")
    return ", ".join(counts)


_OF_PREDICTION = ("score", "iou", "prediction_row", *CORNER_NAMES)


def counted_rows(
    frame: pl.DataFrame, iou: float, lowest: float, least: float, low: int
) -> tuple[pl.DataFrame, list[str]]:
    """Return the rows of errors that F1 of images counts.

    Predictions below its score threshold are removed, and ground truths that only they match are
    missed.

    Args:
        frame: the ``errors`` frame; rows of keypoints are unchanged.
        iou: IoU threshold of F1.
        lowest: score threshold of F1.
        least: same, in the precision of the frame's scores.
        low: number of hits below it, whose ground truths have no row in the frame.

    Returns:
        the rows; remarks on the removed rows, a sentence each.
    """
    points = frame.filter(pl.col("keypoint").is_not_null())
    boxes = frame.filter(pl.col("keypoint").is_null())
    if not boxes.height:
        return frame, []
    thresholds = boxes["iou_threshold"].unique().sort().to_list()
    at = min(thresholds, key=lambda one: abs(one - iou))
    rows = boxes.filter(pl.col("iou_threshold") == at)
    below = rows.filter(pl.col("score") < least)
    # One that would hit, were its place or class right, is the one row of its ground truth.
    missed = below.filter("mended").with_columns(
        pl.lit(None, rows.schema[name]).alias(name) for name in _OF_PREDICTION
    )
    missed = missed.with_columns(
        label_value=pl.col("annotation_label"), error=pl.lit(MISS), mended=pl.lit(value=False)
    )
    counted = rows.filter(pl.col("score").is_null() | (pl.col("score") >= least))
    texts = []
    if below.height:
        texts.append(
            f"rows show the predictions that F1 counts, with scores from {lowest:.4g}:"
            f" {count_of(below.height, 'row')} below are skipped, and the objects that"
            f" {missed.height:,} of them came nearest listed as missed."
        )
    if len(thresholds) > 1:
        others = listing([one for one in thresholds if one != at])
        texts.append(f"rows are at IoU {at:g}: rows at {others} are not shown.")
    if at != iou:
        texts.append(f"rows are at IoU {at:g}, at which the run was scored, and F1 at {iou:g}.")
    elif low:
        texts.append(
            f"{count_of(low, 'missed object')} without a row: predictions below {lowest:.4g} hit"
            f" {'it' if low == 1 else 'them'}."
        )
    if texts:
        texts.append(
            f"the frame errors of a run with {option('metrics', ['Errors'])} has all rows."
        )
    return pl.concat([counted, missed, points]), texts
