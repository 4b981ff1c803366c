"""Tally of detection."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...ingest.problems import MANY, Note, count_of, listing, note_of
from ...kernels.matching import Pairs, judged
from ...kernels.spans import most_pairs
from ...metrics import Metric
from ...schemas.arrays import Array
from ...schemas.contract import ATTRIBUTE, GROUND_TRUTHS, PREDICTIONS, VX, VY
from ...schemas.errors import N_EXAMPLES, InputError, OptionError
from ...schemas.wording import option
from ...tallies.datums import Datums, Deferred, Labels
from ...tallies.merging import (
    merge_counts,
    merge_datums,
    merge_labels,
    merge_ranked,
    merged_seconds,
)
from ...tallies.ranked import ConfusedPairs, Ranked, Variants, counted
from ...tallies.ranked_points import places_of
from ...tallies.registry import stored_as
from ...tallies.units import ranked_by_rank
from ..encoding import Workers, declared_sizes, truth_of_labels
from ..scores import check_probabilities, limits_of, notes_of
from .detailed import Examples, detailed_examples, merge_examples
from .dialects import ANGLES, ERRORS, OF_HITS, DetectionRules
from .dialects import NEEDS as OF_POINTS
from .encode import Batch, Side, encode_batch
from .errors import Errors, find_label_errors, in_order, in_the_input, merge_errors, merge_rows
from .errors import find as find_errors
from .matching import (
    BY_BOXES,
    LOOKING_AT_ALL,
    Matched,
    OverlapPairs,
    SortedRows,
    annotated_areas,
    find_overlaps,
    in_regions,
    lay_out_sides,
    match,
    match_by_difficulty,
    outside_regions,
    ranked_in_datum,
)
from .overlaps import cross_match, find_facts, find_pairs, label_of, merge_outcomes, outcomes_frame
from .overlaps import in_order as outcomes_in_order
from .point_counts import PointCounts, count_points, merge_points, pairing
from .preparing import CentreLayer, ground_distance
from .settings import Settings

# Position and size of predictions in their images, as bins.


def true_positive_rows(batch: Batch, matched: Matched, settings: Settings) -> Ranked:
    """Return the ranked true positives; values are their errors, NaN if meaningless."""
    ranked = matched.ranked
    threshold = ranked.variants.threshold_index(settings.pr_curve_iou_threshold)
    taker = matched.taker[threshold]
    truth = np.flatnonzero(taker >= 0)
    truth = truth[np.argsort(taker[truth], kind="stable")]
    at = taker[truth]
    rows, truths = ranked.row[at], ranked.gt_row[truth]
    boxes, others = _boxes(batch.predictions)[rows], _boxes(batch.ground_truths)[truths]
    label = np.repeat(np.arange(ranked.n_labels), np.diff(ranked.start))[at]
    names = batch.labels.frame["label_value"].cast(pl.String).to_list()
    halves = np.isin(names, settings.rules.half_turns)[label] if names else np.zeros(0, bool)
    period = np.where(halves, np.pi, 2 * np.pi)
    turn = (others[:, 6] - boxes[:, 6] + period / 2) % period - period / 2
    values = np.stack(
        [
            ground_distance(boxes, others),
            1 - _scale_iou(boxes[:, 3:6], others[:, 3:6]),
            np.abs(np.where(turn > np.pi, turn - 2 * np.pi, turn)),
            _faster(batch.predictions, batch.ground_truths, rows, truths),
            _other(batch.predictions, batch.ground_truths, rows, truths),
        ]
    )
    for name, without in settings.rules.unjudged.items():
        for error in without:
            values[ERRORS.index(error), np.array([names[one] == name for one in label], bool)] = (
                np.nan
            )
    start = np.searchsorted(at, ranked.start)
    one = np.ones((1, at.size), np.uint64)
    none = np.zeros(0, np.int64)
    return Ranked(
        variants=Variants((settings.pr_curve_iou_threshold,), ((None, -np.inf, np.inf),)),
        start=start.astype(np.int64),
        score=ranked.score[at],
        datum=ranked.datum[at],
        row=ranked.row[at],
        rank=ranked.rank[at],
        hit=one,
        ignored=np.zeros_like(one),
        tie=ranked.tie[at],
        gt_start=np.zeros(ranked.n_labels + 1, np.int64),
        gt_datum=none.astype(np.int32),
        gt_row=none,
        gt_counted=np.zeros((1, 0), np.uint64),
        single=ranked.single,
        values=values,
    )


def _boxes(side: Side) -> Array:
    """Centre, length, width, height and yaw of all rows of a table, float64 [n, 7]."""
    assert side.shapes is not None
    layer = side.shapes.layers[0]
    assert isinstance(layer, CentreLayer)
    return layer.numbers


def _scale_iou(sizes: Array, others: Array) -> Array:
    """IoU of boxes that are laid on each other, turned alike, float64 [k]."""
    shared = np.minimum(sizes, others).prod(axis=1)
    union = others.prod(axis=1) + sizes.prod(axis=1) - shared
    return np.divide(shared, union, out=np.zeros(shared.size), where=union > 0)


def _faster(side: Side, other: Side, rows: Array, truths: Array) -> Array:
    """Return the difference of velocities, float64 [k], in m/s; NaN if one is unknown."""
    squares = np.zeros(rows.size)
    for column in (VX, VY):
        if not (column.name in side.frame.columns and column.name in other.frame.columns):
            return np.full(rows.size, np.nan)
        mine, theirs = (
            one.frame[column.name].cast(pl.Float64).fill_null(np.nan).to_numpy()[at]
            for one, at in ((side, rows), (other, truths))
        )
        squares += (mine - theirs) * (mine - theirs)
    return np.sqrt(squares)


def _other(side: Side, other: Side, rows: Array, truths: Array) -> Array:
    """Return 1 if attributes differ, 0 if equal, NaN if the ground truth has none."""
    name = ATTRIBUTE.name
    if not (name in side.frame.columns and name in other.frame.columns):
        return np.full(rows.size, np.nan)
    mine, theirs = (
        one.frame[name].fill_null("").gather(at) for one, at in ((side, rows), (other, truths))
    )
    return np.where((theirs == "").to_numpy(), np.nan, (mine != theirs).to_numpy().astype(float))


PLACES = "places"
"""Need of every prediction's position and size in its image."""


def placed(frames: Frames, batch: Batch, matched: Matched, settings: Settings) -> Matched:
    """Add the position bins of predictions to the match.

    Args:
        frames: the tables; ``datums`` declares height and width.
        settings: resolution of the bins.

    Raises:
        InputError: predictions on images of unknown size; the message names the first.
    """
    ranked = matched.ranked
    sizes = declared_sizes(frames, batch.datums)[ranked.datum]
    unknown = np.unique(ranked.datum[sizes[:, 0] == 0])
    if unknown.size:
        framed = [batch.datums.id[int(code)] for code in unknown[:N_EXAMPLES]]
        raise InputError(
            f"calibration by position and size: {count_of(unknown.size, 'datum')} with predictions"
            f" and without height and width, first: {listing(framed, unknown.size)}. Give all of"
            f" them in {option('datums')}, or remove these metrics.",
            code="image_size_missing",
            count=unknown.size,
        )
    boxes = matched.predictions.boxes[matched.order]
    place = places_of(boxes, sizes.astype(np.float64), settings.box_bins.boxes)
    return msgspec.structs.replace(matched, ranked=msgspec.structs.replace(ranked, place=place))


# Federated annotation: drop rows of labels not searched for in a datum, and rows without area.


def taking_part(
    batch: Batch, sides: tuple[SortedRows, SortedRows], rules: DetectionRules
) -> tuple[tuple[SortedRows, SortedRows], Array, tuple[int, int]]:
    """Return the rows that count, and the predictions that are ignored if unmatched.

    Args:
        sides: layouts of predictions and ground truths.

    Returns:
        the sides; bool [n], predictions ignored if unmatched, [0] for none; number of predictions
        and of ground truths that do not count.
    """
    ours, theirs = sides
    mask = np.ones(ours.row.size, np.bool_)
    lenient = np.zeros(0, np.bool_)
    if batch.graded is not None:
        return (ours, theirs.where(~batch.graded.left[theirs.row])), lenient, (0, 0)
    if GROUND_TRUTHS in rules.needs_area:
        theirs = theirs.where(_is_area(annotated_areas(batch, theirs)))
    if PREDICTIONS in rules.needs_area:
        mask = _is_area(ours.area)
    if batch.listed is not None:
        of = batch.listed
        checked, lenient = judged(
            (ours.start, ours.datum),
            (theirs.start, theirs.datum),
            (of.start, of.datum),
            (of.checked, of.partial),
            len(batch.datums),
        )
        mask &= checked
    left = int(mask.size - mask.sum()), int(sides[1].row.size - theirs.row.size)
    if rules.most_of_label:  # they count towards the cap, but never match
        return (ours, theirs), lenient | ~mask, left
    return (ours.where(mask), theirs), lenient[mask] if lenient.size else lenient, left


def _is_area(area: Array) -> Array:
    return (area > 0) & (area < np.inf)


def left_out(frames: Frames, left: tuple[int, int]) -> None:
    """Add notes on the number of rows that do not count."""
    words = (
        ("row", "rows", "of labels not annotated in the datum, or of no area, skipped"),
        ("row", "rows", "of no area skipped"),
    )
    kinds = ("not_judged", "without_area")
    for side, n, words_of_side, kind in zip(
        (PREDICTIONS, GROUND_TRUTHS), left, words, kinds, strict=True
    ):
        if n:
            frames.notes.append(
                note_of(kind, n, words_of_side, before=f"{side.replace('_', ' ')}: ")
            )


_OVERLAPPING = frozenset(
    {"detailed", "confusion", "outcomes", "errors", "shown errors", "label errors"}
)
"""Needs that require overlaps across labels, and the taker of each ground truth."""


_SINGLE = frozenset({"single datums"})
OF_ALL_SIZES = _OVERLAPPING | _SINGLE | OF_POINTS
"""Needs that ignore area ranges, so that the first one has to cover all sizes."""
NO_OVERALL_RANGE = (
    "detailed curves, confusion matrix, outcomes, PCK and single datums are over all sizes; add a"
    " range called 'all', such as 'all': (0, 1e10)"
)
_AT_IOUS = _OVERLAPPING - {"detailed"}
_ERRORS = frozenset({"errors", "shown errors"})
_BELOW = _ERRORS | {"label errors"}
"""Needs that require overlaps from the background IoU on."""


@stored_as("detection.run/1")
class Tallies(msgspec.Struct, frozen=True):
    """Tally of a detection run.

    Attributes:
        datums: the datums and their slices.
        labels: the labels.
        ranked: ranked rows.
        crossed: pairs across labels, for the confusion matrix; deferred if it is all that needs
            overlaps across labels.
        examples: examples of the detailed curve, or None.
        outcomes: the outcomes frame, or None.
        errors: TIDE errors, or None.
        label_errors: ground truths that are likely wrong, or None.
        heights: rows of the predictions and the ground truths, if row numbers count from the first
            of them; None if they already count from the first row of the whole input.
        rows_as_ids: ground truths have no ids, so that outcomes use their rows.
        seconds: wall time by step.
        points: marks of single keypoints, or None.
        found: true positives of 3-D boxes, with their errors as values, or None.
        judged: single datums are shown with their loss.
        beside: frames that exist for any metrics: none.
        weighted: counts are sums of weights: always False.
    """

    datums: Datums
    labels: Labels
    ranked: Ranked
    crossed: ConfusedPairs | Deferred[ConfusedPairs] | None
    examples: Examples | None
    outcomes: pl.DataFrame | None
    errors: Errors | None
    label_errors: pl.DataFrame | None
    heights: tuple[int, int] | None
    rows_as_ids: bool
    seconds: dict[str, float]
    points: PointCounts | None = None
    found: Ranked | None = None
    judged: bool = False
    beside: tuple[str, ...] = ()
    weighted: bool = False

    @property
    def has_more(self) -> bool:
        """True if the tally has data of single rows or datums.

        Runs in bounded memory keep these data and the ids of their datums in memory.
        """
        optional = (
            *(self.examples, self.outcomes, self.errors, self.label_errors),
            *(self.points, self.found),
        )
        return self.judged or any(one is not None for one in optional)


def truth(tallies: Tallies) -> Array:
    """See :attr:`evalengine.tasks.task.Task.truth`."""
    ranked = tallies.ranked
    label = label_of(ranked.gt_start)
    return truth_of_labels(tallies.labels, len(tallies.datums), ranked.gt_datum, label)


def variants(settings: Settings, needs: frozenset[str]) -> Variants:
    """IoU thresholds and area ranges that the needs name."""
    sources = settings.ious_of_needs.items()
    values = {iou for need, ious in sources if need in needs for iou in ious}
    if needs & OF_POINTS:
        values |= {*pairing(settings, needs)}
    return Variants(tuple(sorted(values)) or settings.iou_thresholds, settings.areas)


def _overlap_ious(settings: Settings, needs: frozenset[str]) -> tuple[float, ...]:
    """IoU thresholds at which overlaps across labels count."""
    return (
        *(settings.spot_ious if needs & _AT_IOUS else ()),
        *((settings.pr_curve_iou_threshold,) if "detailed" in needs else ()),
    )


def _lowest(settings: Settings, needs: frozenset[str]) -> float:
    """Return the IoU from which overlaps across labels count; 1 if they are not needed."""
    lowest = min(_overlap_ious(settings, needs), default=1.0)
    return min(lowest, settings.background_iou) if needs & _BELOW else lowest


def _shape_overlaps(
    batch: Batch,
    sides: tuple[SortedRows, SortedRows],
    settings: Settings,
    lowest: float,
    threads: Workers,
    across: bool,
) -> OverlapPairs | None:
    """Return overlaps of polygons or masks, within labels or keys; None for boxes."""
    ours, theirs = batch.predictions.shapes, batch.ground_truths.shapes
    if ours is None or theirs is None:
        return None
    rules = settings.rules
    labels = label_of(sides[0].start), label_of(sides[1].start)
    crowd = batch.crowd[sides[1].row] if rules.crowd else np.zeros(sides[1].row.size, bool)
    reaching = 0.0 if rules.matching in LOOKING_AT_ALL else min(lowest, rules.iou_ceiling)
    keys = (batch.labels.key[labels[0]], batch.labels.key[labels[1]]) if across else labels
    return find_overlaps(sides, (ours, theirs), keys, crowd, len(batch.datums), reaching, threads)


def _select_same_label(
    overlaps: OverlapPairs, sides: tuple[SortedRows, SortedRows], rules: DetectionRules
) -> Pairs:
    """Overlaps within labels, as matching reads them."""
    p_label, g_label = (label_of(side.start) for side in sides)
    same = p_label[overlaps.prediction] == g_label[overlaps.ground_truth]
    same_label = OverlapPairs(
        overlaps.prediction[same], overlaps.ground_truth[same], overlaps.iou[same]
    )
    pairs = same_label.by_prediction(p_label.size)
    if not rules.one_to_one:
        return pairs
    chosen = most_pairs(pairs, g_label.size)
    upto = np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen)])
    return Pairs(upto[pairs.start], pairs.ground_truth[chosen], pairs.iou[chosen])


def _keep_ties(frames: Frames, ranked: Ranked) -> None:
    """Drop the warning of tied scores if no threshold has right and wrong rows: any order does."""
    if any(note.kind == "tied_scores" for note in frames.notes):
        right, settled = ranked.hit, ranked.hit | ranked.ignored
        mixed = np.bitwise_or.reduce(right, axis=1) & np.bitwise_or.reduce(~settled, axis=1)
        if not mixed.any():
            frames.notes = [note for note in frames.notes if note.kind != "tied_scores"]


def tally(
    frames: Frames,
    settings: Settings,
    needs: frozenset[str],
    threads: Workers,
    also: Callable[[Batch], PointCounts] | None = None,
) -> Tallies:
    """Encode, match and tally.

    Args:
        frames: both sides, checked.
        settings: options with every default filled in.
        also: counts further marks of rows, in place of those of keypoints.

    Raises:
        InputError: scores outside [0, 1] if label errors are requested.
    """
    if "label errors" in needs:
        check_probabilities(frames, "Label errors need")
    clock = [time.perf_counter()]
    seconds: dict[str, float] = {}

    def lap(step: str) -> None:
        clock.append(time.perf_counter())
        seconds[step] = clock[-1] - clock[-2]

    batch = encode_batch(frames, settings, threads)
    lap("encode")
    overlapping = needs & _OVERLAPPING
    if needs & OF_ALL_SIZES and not settings.has_overall_range:
        raise OptionError(
            f"area_ranges {[name for name, _, _ in settings.areas]}: {NO_OVERALL_RANGE}.",
            code="option_value",
            option="area_ranges",
        )
    matched, overlap_pairs = match_batch(batch, settings, needs, threads, lap)
    if any(matched.left):
        left_out(frames, matched.left)
    if any(matched.inside):
        frames.notes += _inside_regions(matched, settings)
    if frames.notes:
        _keep_ties(frames, matched.ranked)
    if PLACES in needs:
        matched = placed(frames, batch, matched, settings)
    if settings.thresholds:
        words = "row", "rows", "below the threshold of their label skipped"
        frames.notes.append(note_of("below", matched.below, words, before="predictions: "))
        frames.notes += notes_of(settings.thresholds, batch.labels)
    crossed: ConfusedPairs | Deferred[ConfusedPairs] | None = None
    examples = outcomes = errors = label_errors = points = None
    if overlapping:
        at = settings.pr_curve_iou_threshold
        crowd = batch.crowd[matched.ground_truths.row] if settings.rules.crowd_counts else None
        overlaps = matched, batch.labels, len(batch.datums), _lowest(settings, needs)
        grid = settings.spot_ious, settings.score_thresholds
    if overlapping == {"confusion"}:
        later = threads.own()

        def count() -> ConfusedPairs:
            return cross_match(
                matched, find_pairs(*overlaps, later, overlap_pairs, crowd), *grid, later
            )

        crossed = Deferred(count)
    elif overlapping:
        pairs = find_pairs(*overlaps, threads, overlap_pairs, crowd)
        if needs & _ERRORS:
            errors = find_errors(
                batch,
                matched,
                pairs,
                overlap_pairs,
                settings,
                threads,
                framed="shown errors" in needs,
            )
            errors = msgspec.structs.replace(
                errors, frame=in_the_input(errors.frame, batch.predictions.rows)
            )
        if "label errors" in needs:
            label_errors = in_the_input(
                find_label_errors(batch, matched, pairs, settings, threads), batch.predictions.rows
            )
        if needs & _BELOW:
            pairs = pairs.at_least(min(_overlap_ious(settings, needs)))
        if "confusion" in needs:
            crossed = cross_match(matched, pairs, *grid, threads)
        if "detailed" in needs:
            examples = detailed_examples(
                batch,
                matched,
                pairs,
                find_facts(matched, pairs, at),
                score_thresholds=settings.score_thresholds,
                max_examples=settings.pr_curve_max_examples,
            )
        if "outcomes" in needs:
            outcomes = outcomes_frame(
                batch, matched, pairs, settings.spot_ious, settings.outcome_scores
            )
            outcomes = outcomes_in_order(_in_user_units(outcomes, settings))
        lap("overlaps")
    if needs & OF_POINTS:
        points, rows = count_points(batch, matched, settings, needs, frames.notes)
        rows = in_the_input(rows, batch.predictions.rows)
        if rows is not None:
            errors = errors or Errors((), (), None)
            every = [frame for frame in (errors.frame, rows) if frame is not None]
            errors = msgspec.structs.replace(errors, frame=pl.concat(every))
        lap("keypoints")
    elif also is not None:
        points = also(batch)
    if errors is not None and errors.frame is not None:
        in_words = in_order(_in_user_units(errors.frame, settings))
        errors = msgspec.structs.replace(errors, frame=in_words)
    true_positives = None
    if OF_HITS in needs:
        true_positives = true_positive_rows(batch, matched, settings)
    sides_of = batch.predictions, batch.ground_truths
    return Tallies(
        batch.datums,
        batch.labels,
        _in_the_input(matched.ranked.limited(), sides_of),
        crossed,
        examples,
        outcomes,
        errors,
        label_errors,
        batch.heights,
        "annotation_id" not in batch.ground_truths.frame.columns,
        seconds,
        points,
        true_positives,
        judged=bool(needs & _SINGLE),
    )


def _in_user_units(frame: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """A frame with thresholds and how alike rows are as users see them."""
    thresholds = frame["iou_threshold"].unique().to_list()
    names = dict(zip(thresholds, map(settings.in_user_unit, thresholds), strict=True))
    return frame.with_columns(
        pl.col("iou_threshold").replace_strict(names, return_dtype=pl.Float64),
        pl.Series("iou", settings.in_user_units(frame["iou"].to_numpy()), nan_to_null=True),
    )


def _inside_regions(matched: Matched, settings: Settings) -> Iterator[Note]:
    """Yield notes on rows inside regions: skipped, or ground truths that stay."""
    skipped = "inside regions in which nothing counts skipped"
    stays = (
        "inside regions in which nothing counts: ground truths there still count, and are missed if"
        " their detections are there, too. Set their 'ignore' to 1, remove them, or choose dialect"
        " visdrone, which skips both sides"
    )
    for side, n in zip((PREDICTIONS, GROUND_TRUTHS), matched.inside, strict=True):
        before = f"{side.replace('_', ' ')}: "
        if n and (side == PREDICTIONS or settings.rules.pixel_regions):
            yield note_of("inside_regions", n, ("row", "rows", skipped), before=before)
        elif n:
            of = matched.ground_truths.row.size
            note = note_of("truths_in_regions", n, ("row", "rows", stays), before=before)
            facts = {"count": n, "of": of, "beyond": MANY}
            yield msgspec.structs.replace(note, warning=n > MANY * of, facts=facts)


def match_batch(
    batch: Batch,
    settings: Settings,
    needs: frozenset[str],
    threads: Workers,
    lap: Callable[[str], None] = lambda step: None,
    *,
    took: bool = False,
) -> tuple[Matched, OverlapPairs | None]:
    """Return the match of all predictions, and overlaps of polygons or masks (None for boxes).

    Args:
        lap: called after each step.
        took: record the ground truth of each prediction.
    """
    grid = variants(settings, needs)
    overlap_ious = _overlap_ious(settings, needs)
    sides = lay_out_sides(batch, settings.rules, threads)
    below, inside, rank = 0, (0, 0), None
    if settings.thresholds:
        sides, below = _reaching(batch, sides, settings)
    if batch.regions is not None:
        sides, inside = outside_regions(batch, batch.regions, sides, settings, threads)
    if settings.rules.ranked_in_datum:
        ours, rank = ranked_in_datum(sides[0], settings.cap)
        sides = ours, sides[1]
    sides, lenient, left = taking_part(batch, sides, settings.rules)
    lowest = min((*overlap_ious, *grid.thresholds, _lowest(settings, needs)))
    rematches = settings.rules.matching == "anew"
    overlap_pairs = _shape_overlaps(
        batch, sides, settings, lowest, threads, bool(overlap_ious) or rematches
    )
    lap("near")
    if rematches:
        assert overlap_pairs is not None
        share = in_regions(batch, sides[0], lowest, threads)
        rules, turned = settings.rules, ANGLES in needs
        matched = match_by_difficulty(
            batch, sides, rules, grid, overlap_pairs, share, threads, took=took, turned=turned
        )
        lap("match")
        return msgspec.structs.replace(matched, left=left, below=below), overlap_pairs
    matched = match(
        batch,
        sides,
        settings.rules,
        grid,
        settings.cap,
        threads,
        taker=bool(needs & (_OVERLAPPING | OF_POINTS | {OF_HITS})),
        took=took,
        pairs=BY_BOXES
        if overlap_pairs is None
        else _select_same_label(overlap_pairs, sides, settings.rules),
        lenient=lenient,
    )
    if rank is not None:
        ranked = matched.ranked
        ranks = rank[ranked.row].astype(np.int32)
        matched = msgspec.structs.replace(
            matched, ranked=msgspec.structs.replace(ranked, rank=ranks)
        )
    lap("match")
    return msgspec.structs.replace(matched, left=left, below=below, inside=inside), overlap_pairs


def _reaching(
    batch: Batch, sides: tuple[SortedRows, SortedRows], settings: Settings
) -> tuple[tuple[SortedRows, SortedRows], int]:
    """The sides without predictions below their label's threshold, and how many those are."""
    ours, theirs = sides
    limits = limits_of(settings.thresholds, batch.labels, single=batch.single, otherwise=-math.inf)
    mask = ours.score >= limits[label_of(ours.start)]
    return (ours.where(mask), theirs), int(mask.size - mask.sum())


def _in_the_input(ranked: Ranked, sides: tuple[Side, Side]) -> Ranked:
    """Return the tally with row numbers of the whole input, if the tables are part of one."""
    ours, theirs = sides[0].rows, sides[1].rows
    return msgspec.structs.replace(
        ranked,
        row=ranked.row if ours is None else ours[ranked.row],
        gt_row=ranked.gt_row if theirs is None else theirs[ranked.gt_row],
    )


def _common(parts: Sequence[Tallies]) -> list[Tallies]:
    """Drop fields missing from some parts: compared runs may differ in metrics."""
    gaps = [
        name
        for name in ("crossed", "examples", "outcomes", "errors", "label_errors", "found")
        if any(getattr(part, name) is None for part in parts)
    ]
    return [msgspec.structs.replace(part, **dict.fromkeys(gaps)) for part in parts]


def merge(parts: Sequence[Tallies], settings: Settings) -> Tallies:
    """Merge tallies.

    Args:
        parts: tallies of disjoint sets of datums, in the order of their rows.

    Raises:
        InputError: parts are incompatible.
    """
    parts = _common(parts)
    datums, of_datum = merge_datums([part.datums for part in parts])
    labels, of_label = merge_labels([part.labels for part in parts])
    before = _before(parts)
    later = settings.rules.later_first
    moved = [
        _shifted(part.ranked, shift, tied=later) for part, shift in zip(parts, before, strict=True)
    ]
    ranked = merge_ranked(moved, of_datum, of_label, len(labels))
    crossed = [matrix for part in parts if (matrix := counted(part.crossed)) is not None]
    examples = [part.examples for part in parts if part.examples is not None]
    outcomes = [part.outcomes for part in parts if part.outcomes is not None]
    by_row = {part.rows_as_ids for part in parts if part.ranked.gt_datum.size}
    if outcomes and len(by_row) > 1:
        raise InputError(
            "ground truths have an annotation_id in some partitions and none in others: give all"
            " of them the column, or none.",
            code="partitions_differ",
            column="annotation_id",
        )
    named_by_row = True in by_row
    shifts = [theirs for _, theirs in before] if named_by_row else None
    heights_of = [part.heights for part in parts if part.heights is not None]
    heights = None
    if len(heights_of) == len(parts):
        heights = sum(ours for ours, _ in heights_of), sum(theirs for _, theirs in heights_of)
    return Tallies(
        datums,
        labels,
        ranked,
        merge_counts(crossed, of_datum, of_label) if crossed else None,
        merge_examples(examples, of_datum, of_label, len(labels), settings.pr_curve_max_examples)
        if examples
        else None,
        merge_outcomes(outcomes, shifts) if outcomes else None,
        merge_errors(
            [part.errors for part in parts if part.errors is not None],
            of_datum,
            of_label,
            len(labels),
            before,
            named_by_row=named_by_row,
        ),
        merge_rows([part.label_errors for part in parts], before, named_by_row=named_by_row),
        heights,
        named_by_row if by_row else parts[0].rows_as_ids,
        merged_seconds(parts),
        merge_points(
            [part.points for part in parts],
            lambda every: merge_ranked(every, of_datum, of_label, len(labels)),
        ),
        None
        if parts[0].found is None
        else merge_ranked(
            [
                _shifted(part.found, shift, tied=later)
                for part, shift in zip(parts, before, strict=True)
                if part.found is not None
            ],
            of_datum,
            of_label,
            len(labels),
        ),
        judged=any(part.judged for part in parts),
    )


def _shifted(ranked: Ranked, shift: tuple[int, int], *, tied: bool) -> Ranked:
    """Shift the row numbers of a tally, and its ties if they are row numbers."""
    if shift == (0, 0):
        return ranked
    return msgspec.structs.replace(
        ranked,
        row=ranked.row + shift[0],
        gt_row=ranked.gt_row + shift[1],
        tie=ranked.tie + float(shift[0]) if tied else ranked.tie,
    )


def _before(parts: Sequence[Tallies]) -> list[tuple[int, int]]:
    """Return the number of rows of both sides that precede each part."""
    out, ours, theirs = [], 0, 0
    for part in parts:
        out.append((0, 0) if part.heights is None else (ours, theirs))
        if part.heights is not None:
            ours, theirs = ours + part.heights[0], theirs + part.heights[1]
    return out


def by_rank(tallies: Tallies, settings: Settings, within: Array | None) -> Tallies:
    """The tally with ranks in place of scores; see :class:`..task.Ranking`."""
    return msgspec.structs.replace(tallies, ranked=ranked_by_rank(tallies.ranked, within))


def by_value(tallies: Tallies, settings: Settings, metric: Metric) -> bool:
    """Return True if a metric depends on score values, as recall above a score does."""
    ranked, lowest = tallies.ranked, settings.recall_score_threshold
    if not metric.ranks or "recall_score_threshold" not in metric.params:
        return not metric.ranks
    if lowest is None or not ranked.score.size:
        return False
    return bool(ranked.score.min() < ranked.comparable(lowest))
