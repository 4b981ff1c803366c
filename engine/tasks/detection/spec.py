"""Detection as a task: fit, views, confusion matrix, and losses and contents of single images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import dialects, metrics
from ...dialects import Aims, Dialect
from ...ingest.collecting import Prepared
from ...ingest.frames import Frames
from ...ingest.geometry import CORNER_NAMES, GEOMETRY_NAMES
from ...ingest.opening import SIZES_OF_SOME, SIZES_UNKNOWN
from ...ingest.problems import Note, count_of, listing
from ...kernels.matching import confusion_cells
from ...metrics.registry import Metric
from ...metrics.thresholds import LARGEST_F, Curve, walk
from ...schemas.arrays import Array
from ...schemas.contract import HEAD_SIZE, KEYPOINTS, PREDICTIONS
from ...schemas.errors import InputError
from ...schemas.options import Options
from ...schemas.results import empty_frame, frame_schema
from ...schemas.wording import option
from ...tallies.ranked import BITS, OF_ROWS, Interpolation, Ranked, RankedAside, RankedRun, counted
from ...tallies.ranked_points import CountedScan, point_blocks
from ...tallies.ranked_view import RankedView
from ..contents import MOST_BOXES, MOST_POINTS, Box, Boxes, Content, Contents, Ring, called, copied
from ..counted import hundredths
from ..encoding import SIZE_NAMES, Workers
from ..task import (
    AT_LEAST,
    EXACT,
    Bound,
    Cuts,
    Facts,
    Given,
    Limit,
    Losses,
    PageFrame,
    Ranking,
    Sample,
    Task,
    any_of,
)
from .detailed import examples_frame
from .dialects import ANGLES, HITS, NEEDS, OF_HITS, PCKH, READS, SINGLE_KEYPOINTS, DetectionRules
from .encode import Side, angles_unknown, encode_batch
from .errors import MISS, errors_frame, label_errors_frame, views
from .geometry import POINTS, SOLID
from .metrics.calibration import curve_of
from .overlaps import find_facts, find_pairs, label_of
from .settings import DISTANCE, Settings
from .tallies import (
    NO_OVERALL_RANGE,
    OF_ALL_SIZES,
    PLACES,
    Tallies,
    by_rank,
    by_value,
    match_batch,
    merge,
    tally,
    truth,
    variants,
)

# Contents of single images: boxes and their outcomes.

_ORDER = ("missed", "fp", "tp", "ignored")
_MAX_POINTS = 1_000  # points of all outlines of an image
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
    drawn = np.flatnonzero(ranked.score >= ranked.comparable(lowest))
    missed = np.flatnonzero(
        facts.gt_regular & ((facts.gt_taker < 0) | (facts.gt_taken < ranked.comparable(lowest)))
    )
    outcome = np.select([facts.hit, facts.ignored], [2, 3], default=1)[drawn]
    kind = np.r_[outcome, np.zeros(missed.size, np.int64)]
    score = np.r_[ranked.score[drawn], np.full(missed.size, np.nan)]
    datum = np.r_[ranked.datum[drawn], ranked.gt_datum[missed]]
    label = np.r_[label_of(ranked.start)[drawn], label_of(ranked.gt_start)[missed]]
    corners = np.concatenate(
        [
            batch.predictions.boxes(ranked.row[drawn]),
            batch.ground_truths.boxes(ranked.gt_row[missed]),
        ]
    )
    row = np.r_[ranked.row[drawn], ranked.gt_row[missed]]
    order = np.lexsort((np.arange(kind.size), -np.nan_to_num(score), kind, datum))
    sides = batch.predictions, batch.ground_truths
    code = {str(one): i for i, one in enumerate(batch.datums.id.to_list())}
    out: list[Content | None] = []
    for one in ids:
        places = order[datum[order] == code[one]] if one in code else order[:0]
        most = min(MOST_POINTS, max(_FEWEST, _MAX_POINTS // max(1, min(places.size, MOST_BOXES))))
        boxes = [
            Box(
                label=called(batch.labels.frame, int(label[at])),
                outcome=_ORDER[kind[at]],
                score=None if np.isnan(score[at]) else float(score[at]),
                corners=tuple(corners[at].tolist()),
                rings=_outline(sides[int(at >= drawn.size)], int(row[at]), most),
            )
            for at in places[:MOST_BOXES].tolist()
        ]
        out.append(
            Boxes(
                boxes=tuple(boxes),
                left_out=max(0, places.size - MOST_BOXES),
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


# Confusion matrix: true positives on the diagonal, leftovers matched across labels, rest null.


def confusion_frame(
    view: RankedView, settings: Settings, slice_name: str | None, group_names: list[str]
) -> pl.DataFrame:
    """Build the ``confusion`` frame of one view.

    Args:
        view: ranked view with confusion pairs.
        slice_name: the slice column, None for the whole set.
        group_names: names of the view's groups.
    """
    labels, crossed = view.labels, counted(view.crossed)
    if crossed is None or len(labels) == 0 or view.n_groups == 0:
        return empty_frame("confusion", label=labels.dtype)
    at = [view.tally.variants.threshold_index(iou) for iou in settings.spot_ious]
    tp, fp = (counts[:, :, 0, at] for counts in view.counts(settings.score_thresholds))
    n = crossed.datum.size
    end, (actual, predicted, iou, score, count) = confusion_cells(
        (crossed.actual, crossed.predicted, crossed.threshold, crossed.scores),
        np.zeros(n, np.int32) if view.group is None else view.group[crossed.datum],
        np.ones(n, np.int64) if view.weights is None else view.weights[crossed.datum],
        np.array([settings.in_user_unit(iou) for iou in settings.spot_ious]),
        np.asarray(settings.score_thresholds),
        (tp, fp, view.positives[:, :, 0, None, None] - tp),
    )
    blank = pl.Series([None], dtype=labels.dtype)
    values = pl.concat([labels.frame["label_value"], blank.alias("label_value")])
    group = np.repeat(np.arange(end.size, dtype=np.uint32), np.diff(end, prepend=0))
    columns = {
        "actual": values.gather(pl.Series(actual)),
        "predicted": values.gather(pl.Series(predicted)),
        "iou_threshold": iou,
        "score_threshold": score,
        "slice_value": pl.Series(group_names or [None], dtype=pl.String).gather(pl.Series(group)),
        "count": count,
    }
    constants: dict[str, str | None] = {"slice": slice_name}
    if len(labels.key_names) == 1:
        constants["label_key"] = labels.key_names[0]
    else:  # the key of whichever label is none past the last
        labelled = np.where(actual == len(labels), predicted, actual)
        columns["label_key"] = labels.frame["label_key"].gather(pl.Series(labelled))
    return pl.DataFrame(columns).select(
        pl.lit(constants[name], dtype=dtype).alias(name)
        if name in constants
        else pl.col(name).cast(dtype)
        for name, dtype in frame_schema("confusion", label=labels.dtype).items()
    )


# Views of a detection tally, and the frames that are not made of cells.

_NO_CAP = int(np.iinfo(np.int32).max)


def view(
    tallies: Tallies,
    settings: Settings,
    group: Array | None = None,
    n_groups: int = 1,
    weights: Array | None = None,
    threads: Workers | None = None,
) -> RankedView:
    """Return the tally by groups of datums.

    Args:
        group: int32 [n_datums], -1 for none; None for a single group.
        weights: int64 [n_datums], multiplicity of each datum, or None.
        threads: used for the view's kernels; serial if None.
    """
    rules = settings.rules
    how = Interpolation(
        np.asarray(rules.levels),
        rules.every_point,
        rules.integer_grid,
        rules.epsilon,
        rules.linear,
        rules.positions,
    )
    over: dict[str, Any] = {} if threads is None else {"over": threads.over}
    tallied = {} if tallies.errors is None else views(tallies.errors, rules, how)
    if tallies.points is not None:
        tallied[SINGLE_KEYPOINTS] = RankedAside(tallies.points.ranked, how)
    if tallies.found is not None:
        tallied[HITS] = RankedAside(tallies.found, how)
    return RankedView(
        tallies.ranked,
        tallies.labels,
        interpolation=how,
        caps=np.array(settings.max_detections or (_NO_CAP,), np.int64),
        crossed=tallies.crossed,
        tallies=tallied,
        group=group,
        n_groups=n_groups,
        weights=weights,
        **over,
    )


def own_frames(
    frame: str,
    tallies: Tallies,
    settings: Settings,
    each_view: Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]],
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """See :class:`..task.OwnFrames`: examples, confusion, outcomes, errors or label errors."""
    if frame == "outcomes" and tallies.outcomes is not None:
        return tallies.outcomes
    if frame == "errors":
        return errors_frame(tallies.errors, tallies.labels.dtype, tallies.datums.id_dtype)
    if frame == "label_errors":
        ours = tallies.label_errors
        return label_errors_frame(ours, tallies.labels.dtype, tallies.datums.id_dtype)
    if frame == "examples" and tallies.examples is not None:
        return examples_frame(
            tallies.examples,
            tallies.datums,
            tallies.labels,
            settings.in_user_unit(settings.pr_curve_iou_threshold),
            settings.score_thresholds,
        )
    if frame == "confusion" and tallies.crossed is not None:
        return pl.concat(
            each_view(lambda column, names, v: confusion_frame(v, settings, column, names))
        )
    return empty_frame(frame, label=tallies.labels.dtype, datum=tallies.datums.id_dtype)


def outcome_bytes(settings: Settings, needs: frozenset[str]) -> tuple[int, int]:
    """Return the bytes of a row's words of outcomes beyond the first; in memory also of its takers.

    A word has two bits of 64 variants. A run in memory matches again on demand, and then records
    the prediction that took each ground truth at every threshold.
    """
    matched = variants(settings, needs)
    words = 16 * (len(matched.words) - 1)
    return words, words + 4 * max(0, len(matched.thresholds) - BITS)


def cells_per_group(n_labels: int, settings: Settings, needs: frozenset[str]) -> int:
    """Return the sampled precisions per group of datums, which limits the groups in memory."""
    matched = variants(settings, needs)
    n_levels = len(settings.rules.levels)
    return n_labels * len(matched.areas) * len(matched.thresholds) * n_levels


def cells_by_datum(tallies: Tallies, settings: Settings, needs: frozenset[str]) -> Array:
    """Return :func:`cells_per_group` of each datum as a group, int64 [n_datums].

    Precisions are stored only for labels with ground truth, unless they are read from a curve;
    numbers of true positives, one for each cap, for all labels.
    """
    n_labels, n_levels = len(tallies.labels), len(settings.rules.levels)
    every = cells_per_group(n_labels, settings, needs)
    if settings.rules.linear is not None or settings.rules.positions is not None:
        return np.full(len(tallies.datums), every)
    ranked = tallies.ranked
    pair = np.unique(ranked.gt_datum * np.int64(n_labels) + label_of(ranked.gt_start))
    stored = np.bincount(pair // max(1, n_labels), minlength=len(tallies.datums))
    dense = every // n_levels * max(1, len(settings.max_detections))
    return stored * cells_per_group(1, settings, needs) + dense


# Tiny tables that make every kernel of detection run once.


def samples() -> Iterator[Sample]:
    """Yield predictions, ground truths and options: each dialect, resamples, masks, keypoints."""
    box = {"xmin": [0.0, 0.0], "ymin": [0.0, 0.0], "xmax": [9.0, 9.0], "ymax": [9.0, 8.0]}
    visible = {"occluded": 0.0, "truncated": 0.0, "alpha": 0.0}
    truth = pl.DataFrame({"datum_id": [1, 1], "label_value": ["a", "b"], **box, **visible})
    predicted = truth.with_columns(score=pl.Series([0.9, 0.8]))
    for dialect in dialects.names("detection"):
        if "bbox" not in dialects.get("detection", dialect).rules.compares:
            continue
        yield (
            predicted,
            truth,
            {
                "dialect": dialect,
                "metrics": metrics.names("detection"),
                "by": "slice",
                "datums": pl.DataFrame(
                    {
                        "datum_id": [1],
                        "slice": ["one"],
                        "height": [9],
                        "width": [9],
                        "negative_labels": [["b"]],
                        "partial_labels": [["a"]],
                    }
                ),
            },
        )
    yield predicted, truth, {"intervals": 0.95, "draws": 20}
    square = {"size": [9, 9], "counts": [9, 36, 36]}
    shapes = truth.select("datum_id", "label_value").with_columns(
        polygon=pl.Series([[[0.0, 0.0, 9.0, 0.0, 9.0, 8.0]], None]), mask=pl.Series([None, square])
    )
    predictions = predicted.select("datum_id", "label_value", "score").with_columns(
        mask=pl.Series([square, square])
    )
    turned = pl.Series("obb", [[4.5, 4.5, 9.0, 5.0, 0.3]] * 2)
    one, other = (side.drop(*box).with_columns(turned) for side in (predicted, truth))
    for dialect in ("standard", "detectron2"):
        how = {"iou_type": "obb", "angle_format": "radians-clockwise"}
        yield one, other, {**how, "dialect": dialect}
    solid = pl.Series("box3d", [[4.5, 4.5, 1.0, 9.0, 5.0, 2.0, 0.3]] * 2)
    one, other = (side.drop(*box).with_columns(solid) for side in (predicted, truth))
    yield one, other, {"iou_type": "3d", "angle_format": "radians-z-up"}
    yield (
        one,
        other,
        {"iou_type": "distance", "angle_format": "radians-z-up", "dialect": "nuscenes"},
    )
    size = pl.DataFrame({"datum_id": [1], "height": [9], "width": [9]})
    yield predictions, shapes, {"iou_type": "boundary", "datums": size}
    person = [5.0, 5.0, 2.0, 6.0, 6.0, 0.0]
    people = truth.with_columns(keypoints=pl.Series([person, None]), area=pl.lit(9.0))
    seen = predicted.with_columns(keypoints=pl.Series([person, person]))
    yield (
        seen,
        people.with_columns(head_size=4.0),
        {
            "iou_type": "keypoints",
            "keypoint_sigmas": 0.1,
            "metrics": ["mAP", "PCKh", "KeypointErrors"],
        },
    )


# Bounds due to the order of equal scores, and to the cap on detections.


_PRECISIONS = {"AP", "mAP", "APAveragedOverIOUs", "mAPAveragedOverIOUs"}
_COUNTED = {
    "Counts",
    "Precision",
    "Recall",
    "F1",
    "Accuracy",
    "AR",
    "mAR",
    "ARAveragedOverScores",
    "mARAveragedOverScores",
}
"""Metrics of how much is right from a score on, whatever the order of equal ones."""


def _facts(frames: Frames, settings: Settings) -> Facts | None:
    """Return whether matches, or the rows within a cap, may depend on the order of equal scores."""
    run, rules = frames.sides.get(PREDICTIONS), settings.rules
    if run is None or "score" not in run.columns:
        return None
    columns = ["datum_id", *(() if rules.cap_of_datum else ("label_key", "label_value"))]
    columns = [name for name in columns if name in run.columns]
    within = bool(rules.most_of_label) or run.select(*columns, "score").is_duplicated().any()
    return {"within": within}


def _extremes(given: Given) -> Iterator[Tallies]:
    """Yield tallies with true positives last and first among equal scores of a label.

    Moving a true positive up never lowers precision at any recall, so that these orders bound
    average
    precision. They do so for all IoU thresholds at once if the hits at one are a subset of the hits
    at
    another. If two equal scores belong to one datum, matches and capped rows depend on their order;
    the
    reversed rows are then tried as well, and other orders may exceed the bounds.
    """
    cases = [given.tallies]
    if given.facts["within"]:
        run = given.frames.sides[PREDICTIONS]
        sides = {**given.frames.sides, PREDICTIONS: run.reverse()}
        turned = msgspec.structs.replace(given.frames, sides=sides, ids=None)
        cases.append(given.run(turned, given.settings))
    for tallies in cases:
        for sign in (-1.0, 1.0):
            ranked = _ordered(tallies.ranked, sign)
            yield msgspec.structs.replace(tallies, ranked=ranked)


def _ordered(ranked: Ranked, sign: float) -> Ranked:
    """The rows of a label by descending score, of equal ones those that hit more last, or first."""
    label = np.repeat(np.arange(ranked.n_labels), np.diff(ranked.start))
    new = np.ones(label.size, np.bool_)
    new[1:] = (label[1:] != label[:-1]) | (ranked.score[1:] != ranked.score[:-1])
    group = np.cumsum(new)
    hits = np.bitwise_count(ranked.hit).sum(axis=0, dtype=np.int64)
    # Keep rows of one datum adjacent and in the matched order: another order changes their matches.
    _, block = np.unique(np.stack([group, ranked.datum]), axis=1, return_inverse=True)
    block = block.reshape(-1)
    tie = sign * (np.bincount(block, hits) / np.maximum(np.bincount(block), 1))[block]
    order = np.lexsort((np.arange(label.size), ranked.datum, -tie, group))
    moved = {name: column[..., order] for name in OF_ROWS if (column := getattr(ranked, name)).size}
    return msgspec.structs.replace(ranked, **{**moved, "tie": tie[order]})


def _ties(ranked: Ranked | RankedRun) -> tuple[bool, bool]:
    """Return whether a label has equal scores, and whether hits at IoU thresholds are then nested.

    Rows with the most hits come first.
    """
    tied, nested, before = False, True, -1
    last = np.zeros(0), np.zeros((0, 0), np.uint64)
    for first, piece in RankedRun.of(ranked).scan():
        on, before = first == before, first
        label = np.repeat(np.arange(piece.n_labels), np.diff(piece.start))
        score, bits = piece.score, piece.hit
        if on and last[0].size and score.size:
            score, bits = np.append(last[0], score), np.append(last[1], bits, axis=1)
            label = np.append(label[:1], label)
        if not score.size:
            continue
        same = (label[1:] == label[:-1]) & (score[1:] == score[:-1])
        tied |= bool(same.any())
        nested &= bool((((bits[:, :-1] & bits[:, 1:]) == bits[:, 1:]) | ~same).all())
        last = score[-1:], bits[:, -1:]
    return tied, nested


def _bound(settings: Settings, facts: Facts, extremes: Sequence[Tallies]) -> Bound | None:
    within = facts["within"]
    ties = [_ties(one.ranked) for one in extremes[1::2]]
    if not within and not any(tied for tied, _ in ties):
        return None
    nested = all(one for _, one in ties)

    def bound(metric: str) -> str:
        exact = not within and (metric in _COUNTED or (nested and metric in _PRECISIONS))
        return EXACT if exact else AT_LEAST

    return bound


def _free(settings: Settings, facts: Facts) -> tuple[Settings, ...]:
    return (msgspec.structs.replace(settings, max_detections=()),)


LIMITS = (
    Limit(
        name="ties",
        why="true positives last, or first, among equal scores of a label",
        facts=_facts,
        whole=any_of,
        settings=lambda settings, facts: (settings,) * (4 if facts["within"] else 2),
        extremes=_extremes,
        bound=_bound,
    ),
    Limit(
        name="cap",
        why="without a cap on detections",
        facts=lambda frames, settings: None if settings.cap is None else {},
        whole=any_of,
        settings=_free,
        extremes=lambda given: iter([given.run(given.frames, *_free(given.settings, given.facts))]),
        bound=lambda settings, facts, extremes: lambda metric: EXACT,
    ),
)


# The metrics that the tables at hand can carry: boxes with scores carry all of detection's.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics that the tables support; see :func:`_missing`.

    Raises:
        InputError: no requested metric is supported; area ranges while some images have no size.
    """
    for place, note in enumerate(frames.notes if settings.ranged else ()):
        if note.kind == SIZES_OF_SOME:
            raise InputError(
                f"area ranges: {note.message}", code="image_size_missing", count=note.count
            )
        if note.kind == SIZES_UNKNOWN:
            frames.notes[place] = msgspec.structs.replace(note, warning=True)
    fitting, reasons, notes = metrics, [], []
    for kind, needs, why in _missing(frames, settings):
        left = [one for one in fitting if needs & {*one.needs}]
        if left:
            fitting = tuple(one for one in fitting if one not in left)
            names = ", ".join(one.name for one in left)
            reasons.append(f"{names}: {why}.")
            notes.append(Note(kind, f"{names} skipped: {why}."))
    if requested and reasons and not fitting:
        raise InputError(
            " ".join(reasons), code="metric_unfit", metrics=[one.name for one in metrics]
        )
    if not requested:  # no notes on metrics outside every default set
        kinds = {"without_columns"} if settings.by_distance else {"without_all_sizes"}
        notes = [one for one in notes if one.kind in kinds]
    return (fitting, notes) if fitting else (metrics, [])


def _missing(frames: Frames, settings: Settings) -> Iterator[tuple[str, frozenset[str], str]]:
    """Yield the missing columns of the tables: kind of note, needs that require it, and advice."""
    if not settings.has_overall_range:
        why = f"area_ranges {[name for name, _, _ in settings.areas]}: {NO_OVERALL_RANGE}"
        yield "without_all_sizes", OF_ALL_SIZES, why
    if settings.geometry != POINTS:
        why = f"no keypoints are compared: write {option('iou_type', KEYPOINTS.name)}"
        yield "without_keypoints", NEEDS, why
    elif settings.head_segment is None and HEAD_SIZE.name not in frames.ground_truths.columns:
        why = "heads have no size: give the ground truths a column head_size, or write"
        why += f" {option('head_segment', [9, 10])} with your two points"
        yield "without_keypoints", frozenset({PCKH}), why
    if settings.geometry == SOLID:
        yield "without_sizes", frozenset({PLACES}), "3-D boxes have no place in an image"
    elif frames.datums is None or not {*SIZE_NAMES} <= {*frames.datums.columns}:
        why = "images have no size: give a table of datum_id, height and width as"
        yield "without_sizes", frozenset({PLACES}), f"{why} {option('datums')}"
    if settings.rules.linear is None:
        why = f"they are of dialect nuscenes: write {option('iou_type', DISTANCE)} with it"
        yield "without_errors", frozenset({OF_HITS}), why
    why = "" if settings.rules.positions else "it is of dialect kitti"
    if settings.geometry == SOLID:
        why = f"it is of boxes in pixels: write {option('iou_type', 'bbox')}"
    why = why or angles_unknown(frames.predictions)
    if why:
        yield "without_angles", frozenset({ANGLES}), why
    if settings.rules.positions:
        why = f"dialect kitti matches anew at every score: write {option('dialect', 'standard')}"
        yield "without_errors", frozenset({"errors", "shown errors", "label errors"}), why
    common = {*frames.predictions.columns} & {*frames.ground_truths.columns}
    for need, names in READS.items():
        if not common.issuperset(names):
            why = f"both sides need {' and '.join(f'a column {name}' for name in names)}"
            yield "without_columns", frozenset({need}), why
    if settings.by_distance:
        why = "they rest on IoU, and distances are compared"
        yield "without_iou", frozenset({"label errors"}), why


def needs_all_rows(
    ready: Prepared, heads: Mapping[str, pl.DataFrame], settings: Settings, options: Options
) -> str:
    """Return why the compared geometry depends on all rows; empty if it does not.

    Args:
        ready: the tables.
        heads: unused.
        settings: unused.
        options: ``convert_to`` or ``iou_type`` fix the geometry.
    """
    names = {name for side in ready.sides.values() for name in side.naming.exprs}
    given = options.convert_to is not None or options.iou_type is not None
    if given or not names & set(GEOMETRY_NAMES):
        return ""
    return (
        "the compared geometry of polygons and masks depends on all rows; write"
        f" {option('convert_to', 'mask')} or another"
    )


# The detection part of a plan, in words.

_MATCHING = {
    "greedy": "per threshold, by descending score, the best ground truth still free (COCO)",
    "nearest": "per threshold, by descending score, the nearest ground truth still free (nuScenes)",
    "locked": "each prediction keeps its best ground truth, free or not (Valor's code)",
    "best": "each prediction has its best ground truth or none (Pascal VOC)",
    "anew": "at each score anew, each ground truth the prediction that it overlaps most (KITTI)",
    "pool": "matched pairs are removed whatever the threshold (Valor's document)",
}
_GEOMETRY = {
    None: "boxes, oriented boxes, polygons or masks",
    "box": "boxes",
    "obb": "oriented boxes",
    "polygon": "polygons",
    "mask": "masks",
    POINTS: "keypoints (OKS in place of IoU)",
    SOLID: "3-D boxes",
}
_OVERLAPS = {"detailed": "detailed curve", "confusion": "confusion matrix", "outcomes": "outcomes"}


def _averaged(rules: DetectionRules) -> str:
    """Describe the definition of average precision."""
    if rules.every_point:
        return "AP is the area under interpolated precision"
    if rules.positions:
        return (
            f"AP is the mean of interpolated precision at {len(rules.positions)} recall positions"
        )
    levels = f"precision at {len(rules.levels)} recall levels"
    if rules.linear is None:
        return f"AP is the mean of interpolated {levels}"
    return f"AP is of {levels}, on lines between points: the part above {rules.linear:g}"


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    grid = variants(settings, needs)
    ious = ", ".join(f"{settings.in_user_unit(iou):g}" for iou in grid.thresholds)
    what = "metres" if settings.by_distance else "IoU"
    areas = ", ".join(name or "any size" for name, _, _ in settings.areas)
    passes = len(grid.words)
    geometry = settings.geometry_by or "the most detailed that every row of both sides has"
    lines = [
        "encode    ids and labels to codes; rows by label, then datum",
        f"geometry  {_GEOMETRY[settings.geometry]}, {geometry}",
        f"match     {_MATCHING[settings.rules.matching]}",
        f"          {what} {ious} x area {areas} in {passes} pass{'es' if passes > 1 else ''}",
    ]
    if settings.cap is not None:
        lines.append(f"          at most {settings.cap} predictions per datum and label")
    used = [name for need, name in _OVERLAPS.items() if need in needs]
    if used:
        lines.append(f"overlaps  across labels, for {', '.join(used)}")
    if "iou_thresholds" in needs:
        lines.append(f"average   {_averaged(settings.rules)}")
    scores = settings.score_thresholds
    lines.append(f"tally     ranked outcomes; counts at {len(scores)} score thresholds on demand")
    return lines


# Data of the report: precision by recall, counts by score threshold, confusions.


def _at_point(confusion: pl.DataFrame, tallies: Tallies) -> pl.DataFrame:
    """The confusion matrix at the lowest IoU threshold and the page's operating point."""
    ious, scores = (
        confusion[name].unique().sort().to_list() for name in ("iou_threshold", "score_threshold")
    )
    if not ious:
        return confusion
    run = RankedRun.of(tallies.ranked)
    iou = min(run.variants.thresholds, key=lambda one: abs(one - ious[0]))
    point = operating_point(run, len(tallies.labels), iou, scores)
    nearest = min(scores, key=lambda one: abs(one - point))
    return confusion.filter(iou_threshold=ious[0], score_threshold=nearest)


PAGE = (
    PageFrame(name="curves", metrics=("InterpolatedPrecisionRecallCurve",)),
    PageFrame(name="thresholds", metrics=("PrecisionRecallCurve",), options=hundredths),
    PageFrame(name="confusion", metrics=("ConfusionMatrix",), then=_at_point),
)


TASK = Task(
    name="detection",
    settings=Settings,
    fit=fit,
    tally=tally,
    merge=merge,
    view=view,
    cells_per_group=cells_per_group,
    cells_by_datum=cells_by_datum,
    outcome_bytes=outcome_bytes,
    own_frames=own_frames,
    explain=explain,
    samples=samples,
    losses=losses,
    limits=LIMITS,
    contents=Contents(of_tables=contents),
    truth=truth,
    ranking=Ranking(by_rank, by_value),
    warm=("parts", "fits", "boxes", "masks", "rows"),
    examine=lambda frames, settings, _, workers: encode_batch(frames, settings, workers),
    needs_all_rows=needs_all_rows,
    by_labels=True,
    drawn=RankedView.drawn,
    one_draw=RankedView.weighing,
    curve=curve_of,
    scratch_row=60,
    page=PAGE,
)
