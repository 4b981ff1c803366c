"""Detection: boxes are encoded, matched and tallied here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import polars as pl

from ... import dialects, metrics
from ...ingest.collecting import Prepared
from ...ingest.frames import Frames
from ...ingest.geometry import GEOMETRY_NAMES
from ...ingest.opening import SIZES_OF_SOME, SIZES_UNKNOWN
from ...ingest.problems import Note
from ...metrics.registry import Metric
from ...schemas.contract import HEAD_SIZE, KEYPOINTS, PREDICTIONS
from ...schemas.errors import InputError
from ...schemas.options import Options
from ...schemas.wording import option
from ...tallies.ranked import OF_ROWS, Ranked, RankedRun
from ...tallies.ranked_view import RankedView
from ..contents import Contents
from ..counted import hundredths
from ..encoding import SIZE_NAMES
from ..task import (
    AT_LEAST,
    EXACT,
    Bound,
    Facts,
    Given,
    Limit,
    PageFrame,
    Ranking,
    Sample,
    Task,
    any_of,
)
from .dialects import ANGLES, NEEDS, OF_FOUND, PCKH, READS, DetectionRules
from .encode import angles_unknown, encode_batch
from .geometry import POINTS, SOLID
from .losses import contents, losses, operating_point
from .metrics.calibration import curve_of
from .settings import DISTANCE, Settings
from .tallies import (
    NO_OVERALL_RANGE,
    OF_ALL_SIZES,
    PLACES,
    Tallies,
    by_rank,
    by_value,
    merge,
    tally,
    truth,
    variants,
)
from .views import cells_by_datum, cells_per_group, outcome_bytes, own_frames, view

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
    pairs = np.stack([group, ranked.datum])
    _, block = np.unique(pairs, axis=1, return_inverse=True)
    block = block.reshape(-1)
    tie = sign * (np.bincount(block, hits) / np.maximum(np.bincount(block), 1))[block]
    order = np.lexsort((np.arange(label.size), ranked.datum, -tie, group))
    moved = {name: column[..., order] for name in OF_ROWS if (column := getattr(ranked, name)).size}
    return msgspec.structs.replace(ranked, **{**moved, "tie": tie[order]})


def _looked_at(ranked: Ranked | RankedRun) -> tuple[bool, bool]:
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


def _bound(settings: Settings, facts: Facts, ends: Sequence[Tallies]) -> Bound | None:
    within = facts["within"]
    looked = [_looked_at(one.ranked) for one in ends[1::2]]
    if not within and not any(tied for tied, _ in looked):
        return None
    nested = all(one for _, one in looked)

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
        ends=_extremes,
        bound=_bound,
    ),
    Limit(
        name="cap",
        why="without a cap on detections",
        facts=lambda frames, settings: None if settings.cap is None else {},
        whole=any_of,
        settings=_free,
        ends=lambda given: iter([given.run(given.frames, *_free(given.settings, given.facts))]),
        bound=lambda settings, facts, ends: lambda metric: EXACT,
    ),
)


# The metrics that the tables at hand can carry: boxes with scores carry all of detection's.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics that the tables support; see :func:`_lacking`.

    Raises:
        InputError: no requested metric is supported; area ranges while some images have no size.
    """
    _hold_areas(frames, settings)
    fitting, reasons, notes = metrics, [], []
    for kind, needs, why in _lacking(frames, settings):
        left = [one for one in fitting if needs & {*one.needs}]
        if left:
            fitting = tuple(one for one in fitting if one not in left)
            names = ", ".join(one.name for one in left)
            reasons.append(f"{names}: {why}.")
            notes.append(Note(kind, f"{names} skipped: {why}."))
    if asked_for and reasons and not fitting:
        raise InputError(
            " ".join(reasons), code="metric_unfit", metrics=[one.name for one in metrics]
        )
    if not asked_for:  # no notes on metrics outside every default set
        kinds = {"without_columns"} if settings.by_distance else {"without_all_sizes"}
        notes = [one for one in notes if one.kind in kinds]
    return (fitting, notes) if fitting else (metrics, [])


def _lacking(frames: Frames, settings: Settings) -> Iterator[tuple[str, frozenset[str], str]]:
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
        yield "without_errors", frozenset({OF_FOUND}), why
    sides = frames.predictions, frames.ground_truths
    why = "" if settings.rules.positions else "it is of dialect kitti"
    if settings.geometry == SOLID:
        why = f"it is of boxes in pixels: write {option('iou_type', 'bbox')}"
    why = why or angles_unknown(frames.predictions)
    if why:
        yield "without_angles", frozenset({ANGLES}), why
    if settings.rules.positions:
        why = f"dialect kitti matches anew at every score: write {option('dialect', 'standard')}"
        yield "without_errors", frozenset({"errors", "shown errors", "label errors"}), why
    for need, names in READS.items():
        if any(name not in side.columns for side in sides for name in names):
            why = f"both sides need {' and '.join(f'a column {name}' for name in names)}"
            yield "without_columns", frozenset({need}), why
    if settings.by_distance:
        why = "they rest on IoU, and distances are compared"
        yield "without_iou", frozenset({"label errors"}), why


def _hold_areas(frames: Frames, settings: Settings) -> None:
    """Refuse area ranges if some images have no size, and warn if all are without.

    Raises:
        InputError: names these images, and files that cannot be read.
    """
    for place, note in enumerate(frames.notes if settings.ranged else ()):
        if note.kind == SIZES_OF_SOME:
            raise InputError(
                f"area ranges: {note.message}", code="image_size_missing", count=note.count
            )
        if note.kind == SIZES_UNKNOWN:
            frames.notes[place] = msgspec.structs.replace(note, warning=True)


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
    asked = options.convert_to is not None or options.iou_type is not None
    if asked or not names & set(GEOMETRY_NAMES):
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
    geometry = settings.geometry_said or "the most detailed that every row of both sides has"
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
