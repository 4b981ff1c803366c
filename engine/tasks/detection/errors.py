"""TIDE errors and label errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ...ingest.dtypes import stacked
from ...ingest.geometry import CORNER_NAMES
from ...kernels.boxes import close_pairs, rows_by_datum, truths_by_datum
from ...kernels.matching import (
    BACKGROUND,
    BOTH,
    CLASS,
    DUPLICATE,
    LOCATION,
    NONE,
    Overlaps,
    find_errors,
    match_first_best,
)
from ...schemas import label_errors
from ...schemas.arrays import Array
from ...schemas.errors import invalid
from ...schemas.results import empty_frame, frame_schema
from ...tallies.merging import merge_ranked
from ...tallies.ranked import Interpolation, Ranked, RankedAside, Variants
from ...tallies.registry import stored_as
from ..encoding import Workers
from .dialects import DetectionRules
from .encode import Batch, Side
from .matching import Matched, OverlapPairs, overlap
from .overlaps import Pairs, annotation_ids, find_pairs, label_of, regular_ground_truths
from .settings import Settings

# Rows of the ``errors`` frame, with prediction and ground truth.

IDS = ("annotation_id", "swapped_annotation_id")
"""Columns of ground-truth ids, or of their rows if there are no ids."""


def error_rows(
    batch: Batch,
    ranked: Ranked,
    *,
    predictions: Array,
    truths: Array,
    error: Array,
    iou: Array,
    threshold: float,
    mended: Array | None = None,
    keypoint: Array | None = None,
    swapped: Array | None = None,
) -> pl.DataFrame:
    """Build the rows of the ``errors`` frame.

    Args:
        predictions: int [k], ranked predictions, -1 for none.
        truths: int [k], layout indices of the compared ground truths, -1 for none.
        error: names [k].
        iou: float64 [k], NaN for none.
        threshold: the IoU threshold.
        mended: bool [k]; null if unknown.
        keypoint: int64 [k], from 1; null by default.
        swapped: int [k], layout indices of other ground truths, -1 for none.
    """
    n, table = error.size, batch.labels.frame
    ours, theirs = predictions >= 0, truths >= 0
    p_label, g_label = label_of(ranked.start), label_of(ranked.gt_start)
    nobody = np.full(n, -1)
    label = _at(g_label, truths)
    label[ours] = p_label[predictions[ours]]
    datum = _at(ranked.gt_datum, truths)
    datum[ours] = ranked.datum[predictions[ours]]
    p_row, g_row = _at(ranked.row, predictions), _at(ranked.gt_row, truths)
    score = np.full(n, np.nan)
    score[ours] = ranked.score[predictions[ours]]
    ids = annotation_ids(batch)
    views = _at(ranked.gt_row, nobody if swapped is None else swapped)
    return pl.DataFrame(
        {
            "datum_id": batch.datums.id.gather(datum),
            "label_key": table["label_key"].gather(label),
            "label_value": table["label_value"].gather(label),
            "iou_threshold": np.full(n, threshold),
            "error": pl.Series(error, dtype=pl.String),
            "score": pl.Series(score, nan_to_null=True),
            "iou": pl.Series(iou, nan_to_null=True),
            "prediction_row": _series(p_row, ours),
            "annotation_id": ids.gather(_series(g_row, theirs)),
            "annotation_label": table["label_value"].gather(_series(_at(g_label, truths), theirs)),
            "mended": pl.Series([None] * n if mended is None else mended, dtype=pl.Boolean),
            "keypoint": pl.Series([None] * n if keypoint is None else keypoint, dtype=pl.Int64),
            "swapped_annotation_id": ids.gather(_series(views, views >= 0)),
            **corners_of("", batch.predictions, p_row[ours], np.flatnonzero(ours), n),
            **corners_of(
                "annotation_", batch.ground_truths, g_row[theirs], np.flatnonzero(theirs), n
            ),
        }
    )


def _at(values: Array, places: Array) -> Array:
    """Gather values, int64 [k]; -1 for index -1."""
    out = np.full(places.size, -1, np.int64)
    valid = places >= 0
    out[valid] = values[places[valid]]
    return out


def _series(values: Array, present: Array) -> pl.Series:
    return pl.Series(values).set(pl.Series(~present), None)


def corners_of(before: str, side: Side, rows: Array, places: Array, n: int) -> dict[str, pl.Series]:
    """Corners of some rows of a table at some of ``n`` places, null at all others."""
    corners = np.full((n, 4), np.nan)
    corners[places] = side.boxes(rows)
    return {
        before + name: pl.Series(column, nan_to_null=True)
        for name, column in zip(CORNER_NAMES, corners.T, strict=True)
    }


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows as the ``errors`` frame has them; of equal ones the order stays."""
    return frame.sort(
        ["iou_threshold", "datum_id", "score", "label_key", "label_value"],
        descending=[False, False, True, False, False],
        nulls_last=True,
        maintain_order=True,
    )


# TIDE errors: D. Bolya et al., "TIDE" (ECCV 2020), and its code tidecv 1.0.1. Each IoU threshold
# has a tally whose variants are fixes, not area ranges: the cost of a kind is AP of the variant
# minus AP.

BASE = "as it is"
KINDS = {"Cls": CLASS, "Loc": LOCATION, "Both": BOTH, "Dupe": DUPLICATE, "Bkg": BACKGROUND}
"""Kinds of wrong predictions, in the order of tidecv's tables."""
MISS, FALSE_POSITIVES, FALSE_NEGATIVES = "Miss", "FalsePos", "FalseNeg"
FIXES = (*KINDS, MISS, FALSE_POSITIVES, FALSE_NEGATIVES)
_COUNTED = "counted "
COUNTED = tuple(f"{_COUNTED}{kind}" for kind in KINDS)
"""Variants in which only errors of one kind count, if some do not count without fixes."""

_NAMES = np.array(["", *(name for name, _ in sorted(KINDS.items(), key=lambda item: item[1]))])


@stored_as("detection.errors/1")
class Errors(msgspec.Struct, frozen=True):
    """TIDE errors at all thresholds.

    Attributes:
        ranked: tally per IoU threshold, with one variant per fix instead of an area range, since
            the
            counted ground truths depend on both.
        unmended: same without fixes, if its order of ties differs; else empty.
        frame: the ``errors`` frame, or None.
    """

    ranked: tuple[Ranked, ...]
    unmended: tuple[Ranked, ...]
    frame: pl.DataFrame | None


class _ErrorsAtIou(msgspec.Struct, frozen=True):
    """TIDE errors at one IoU threshold.

    Attributes:
        hit: bool [n], true positives.
        ignored: bool [n], neither true nor false positives.
        kind: int8 [n].
        target: int32 [n], ground truth that a location or class error is the first to hit once
            fixed; -1 for others.
        best: int32 [n], ground truth that determines the error, -1 for none.
        taken: bool [m], ground truths that were hit.
        missed: bool [m], ground truths that no fixed prediction would hit.
    """

    iou: float
    hit: Array
    ignored: Array
    kind: Array
    target: Array
    best: Array
    taken: Array
    missed: Array


def find(
    batch: Batch,
    matched: Matched,
    pairs: Pairs,
    other_overlaps: OverlapPairs | None,
    settings: Settings,
    threads: Workers,
    *,
    framed: bool,
) -> Errors:
    """Compute the errors at the thresholds of the confusion matrix and outcomes.

    Args:
        matched: the match, with takers.
        pairs: overlaps of at least the background threshold.
        other_overlaps: overlaps of other geometry than boxes, None for boxes.
        framed: build the frame.

    Raises:
        OptionError: the background threshold is above an IoU threshold.
    """
    ranked, ious = matched.ranked, settings.spot_ious
    if min(ious) < settings.background_iou:
        raise invalid(
            "background_iou",
            settings.background_iou,
            f"must not exceed the lowest IoU threshold: {min(ious):g}.",
        )
    regular = regular_ground_truths(matched)
    if settings.rules.first_best is not None:
        pairs = find_pairs(
            matched,
            batch.labels,
            len(batch.datums),
            settings.background_iou,
            threads,
            other_overlaps,
            crowd=batch.crowd[matched.ground_truths.row],
        )
    start, order = rows_by_datum(pairs.prediction, ranked.score.size)
    overlaps = Overlaps(start, pairs.ground_truth[order], pairs.iou[order])
    outcomes = [_errors_at(batch, matched, pairs, overlaps, regular, settings, iou) for iou in ious]
    if settings.rules.first_best is None:
        tallies = tuple(_tally(ranked, pairs, one, regular, (BASE, *FIXES)) for one in outcomes)
        unmended: tuple[Ranked, ...] = ()
    else:  # after a correction tidecv lists wrong predictions first, then hits
        names = (BASE, *FIXES, *COUNTED)
        tallies = tuple(
            _tally(ranked, pairs, one, regular, names, wrong_first=True) for one in outcomes
        )
        unmended = tuple(_tally(ranked, pairs, one, regular, (BASE,)) for one in outcomes)
    frame = None
    if framed:
        parts = [
            _rows(batch, ranked, overlaps, one, iou)
            for one, iou in zip(outcomes, ious, strict=True)
        ]
        frame = in_order(pl.concat(parts)) if parts else None
    return Errors(tallies, unmended, frame)


def _errors_at(
    batch: Batch,
    matched: Matched,
    pairs: Pairs,
    overlaps: Overlaps,
    regular: Array,
    settings: Settings,
    iou: float,
) -> _ErrorsAtIou:
    ranked = matched.ranked
    labels = pairs.p_label, pairs.g_label
    if settings.rules.first_best is not None:
        order = np.lexsort((ranked.row, -ranked.score, ranked.datum)).astype(np.int32)
        state, taker = match_first_best(
            order,
            ranked.datum,
            overlaps,
            labels,
            ranked.gt_row,
            ~regular,
            positive=iou,
            cap=settings.rules.first_best,
        )
        hit, ignored, wrong = state == 1, state >= 2, (state == 0) | (state == 2)
        mask = regular[overlaps.truth]
        counted = np.r_[0, np.cumsum(mask)]
        overlaps = Overlaps(counted[overlaps.start], overlaps.truth[mask], overlaps.iou[mask])
    else:
        threshold = ranked.variants.threshold_index(iou)
        hit, ignored = ranked.outcomes(threshold)
        taker = matched.taker[threshold]
        if ranked.skipped.size:
            ignored = ignored | (ranked.skipped & ~hit)
        wrong = ~hit & ~ignored
    taken = taker >= 0
    anything = np.zeros(len(batch.datums), bool)
    anything[ranked.gt_datum[regular]] = True
    judged = np.where(wrong, np.where(anything[ranked.datum], 2, 1), 0).astype(np.uint8)
    kind, target, best = find_errors(
        overlaps,
        judged,
        labels,
        ranked.gt_row,
        taken,
        background=settings.background_iou,
        positive=iou,
    )
    open_targets: Array = np.flatnonzero(target >= 0)
    open_targets = open_targets[~taken[target[open_targets]]]
    mislaid: Array = np.zeros(taken.size, bool)
    mislaid[target[open_targets]] = True
    # If several errors would hit one ground truth, the first by score does.
    by_target: Array = np.lexsort(
        (ranked.row[open_targets], -ranked.score[open_targets], target[open_targets])
    )
    open_targets = open_targets[by_target]
    hits = target[open_targets]
    first = open_targets[np.r_[True, hits[1:] != hits[:-1]]] if hits.size else open_targets
    mended = np.full(kind.size, -1, np.int32)
    mended[first] = target[first]
    return _ErrorsAtIou(iou, hit, ignored, kind, mended, best, taken, regular & ~taken & ~mislaid)


def _tally(
    ranked: Ranked,
    pairs: Pairs,
    outcome: _ErrorsAtIou,
    regular: Array,
    names: tuple[str, ...],
    *,
    wrong_first: bool = False,
) -> Ranked:
    """Build the tally: the predictions, repeated under another label if they would hit there.

    Args:
        pairs: with labels.
        regular: bool [m], ground truths that count.
        names: variants.
        wrong_first: among ties, wrong predictions come first.
    """
    n = ranked.score.size
    moved = np.flatnonzero((outcome.kind == CLASS) & (outcome.target >= 0))
    row_of = np.r_[np.arange(n), moved]
    label = np.r_[pairs.p_label, pairs.g_label[outcome.target[moved]]]
    extra = np.arange(row_of.size) >= n
    base, out, kind = outcome.hit[row_of], outcome.ignored[row_of], outcome.kind[row_of]
    score, datum, row = ranked.score[row_of], ranked.datum[row_of], ranked.row[row_of]
    tie = ranked.tie[row_of] if ranked.tie.size else None
    if wrong_first:
        tie = (kind != NONE).astype(np.float64)
    order = _in_rank(n, (label, -score, *(() if tie is None else (-tie,)), datum, row), wrong_first)
    mended = (kind == LOCATION) & (outcome.target[row_of] >= 0)
    hit, ignored = _of_predictions(names)
    fate = _code(base, out, extra, mended, kind)[order]
    truth = _code(regular, outcome.missed, outcome.taken)
    start = np.zeros(ranked.n_labels + 1, np.int64)
    np.cumsum(np.bincount(label, minlength=ranked.n_labels), out=start[1:])
    return Ranked(
        variants=Variants((outcome.iou,), tuple((name, -np.inf, np.inf) for name in names)),
        start=start,
        score=score[order],
        datum=datum[order],
        row=row[order],
        rank=np.zeros(row_of.size, np.int32),
        hit=hit[fate][None],
        ignored=ignored[fate][None],
        tie=np.zeros(0) if tie is None else tie[order],
        gt_start=ranked.gt_start,
        gt_datum=ranked.gt_datum,
        gt_row=ranked.gt_row,
        gt_counted=_of_truths(names)[truth][None],
        single=ranked.single,
    )


def _in_rank(n: int, keys: tuple[Array, ...], every: bool) -> Array:
    """Sort rows by keys, the first key first, int64.

    Args:
        n: number of leading rows that are already sorted, unless ``every``.
        every: sort all rows, not just those after the first ``n``.
    """
    if every:
        return np.lexsort(keys[::-1])
    few = n + np.lexsort(tuple(key[n:] for key in keys[::-1]))
    fields = [(f"{i}", key.dtype) for i, key in enumerate(keys)]
    sorted_keys, new = np.empty(n, fields), np.empty(few.size, fields)
    for (name, _), key in zip(fields, keys, strict=True):
        sorted_keys[name], new[name] = key[:n], key[few]
    return np.insert(np.arange(n), np.searchsorted(sorted_keys, new), few)


def _code(*parts: Array) -> Array:
    """Pack facts of rows into one integer: booleans from the lowest bit, then a last part."""
    code = parts[0].astype(np.uint8)
    for bit, part in enumerate(parts[1:], 1):
        code |= part.astype(np.uint8) << np.uint8(bit)
    return code


def _of_predictions(names: tuple[str, ...]) -> tuple[Array, Array]:
    """Variants in which predictions hit and in which they are ignored, uint64 by their code."""
    code = np.arange((max(KINDS.values()) + 1) << 4)
    base, out, extra, mended = ((code >> bit) & 1 == 1 for bit in range(4))
    kind = code >> 4
    right = {"Loc": ~extra & mended, "Cls": extra}
    hit, ignored = np.zeros((2, len(names), code.size), bool)
    for a, name in enumerate(names):
        hit[a] = base & ~extra
        ignored[a] = (out & ~base) | extra
        if name in KINDS:
            hit[a] |= right.get(name, False)
            ignored[a] |= (kind == KINDS[name]) & ~extra
            ignored[a] &= ~hit[a]
        elif name == FALSE_POSITIVES:
            ignored[a] |= ~base
        elif name in COUNTED:
            hit[a] = False
            ignored[a] = extra | (kind != KINDS[name.removeprefix(_COUNTED)])
    return _word(hit), _word(ignored)


def _of_truths(names: tuple[str, ...]) -> Array:
    """Variants in which ground truths are asked for, uint64 by their code."""
    regular, missed, taken = ((np.arange(8) >> bit) & 1 == 1 for bit in range(3))
    counted = {MISS: regular & ~missed, FALSE_NEGATIVES: regular & taken}
    return _word(np.stack([counted.get(name, regular) for name in names]))


def _word(bits: Array) -> Array:
    """Booleans of variants, [variants, n], as bits of one word, uint64 [n]."""
    out = np.zeros(bits.shape[1], np.uint64)
    for bit, values in enumerate(bits):
        out |= values.astype(np.uint64) << np.uint64(bit)
    return out


def _rows(
    batch: Batch, ranked: Ranked, overlaps: Overlaps, outcome: _ErrorsAtIou, iou: float
) -> pl.DataFrame:
    wrong = np.flatnonzero(outcome.kind != NONE)
    prediction = np.repeat(np.arange(ranked.score.size), np.diff(overlaps.start))
    mask = overlaps.truth == outcome.best[prediction]
    at = np.full(ranked.score.size, np.nan)
    at[prediction[mask]] = overlaps.iou[mask]
    missed = np.flatnonzero(outcome.missed)
    nobody = np.full(missed.size, -1)
    return error_rows(
        batch,
        ranked,
        predictions=np.r_[wrong, nobody],
        truths=np.r_[outcome.best[wrong], missed],
        error=np.r_[_NAMES[outcome.kind[wrong]], np.full(missed.size, MISS)],
        iou=np.r_[at[wrong], np.full(missed.size, np.nan)],
        threshold=iou,
        mended=np.r_[outcome.target[wrong] >= 0, np.zeros(missed.size, bool)],
    )


_HUNDREDTHS = np.arange(101) / 100  # as tidecv divides: some differ from COCO's by one bit


def views(
    errors: Errors, rules: DetectionRules, interpolation: Interpolation
) -> dict[str, RankedAside]:
    """The tallies of errors, as views have them: by the place of their threshold."""
    own = interpolation if rules.first_best is None else Interpolation(_HUNDREDTHS)
    every = {"errors": errors.ranked, "unmended": errors.unmended}
    return {
        f"{name} {t}": RankedAside(ranked, own)
        for name, tallies in every.items()
        for t, ranked in enumerate(tallies)
    }


def in_the_input(frame: pl.DataFrame | None, rows: Array | None) -> pl.DataFrame | None:
    """Replace row numbers by those of the whole input, if the table is part of one."""
    if rows is None or frame is None:
        return frame
    place = pl.Series("prediction_row", rows)
    return frame.with_columns(place.gather(frame["prediction_row"]))


def merge_errors(
    parts: Sequence[Errors],
    datums: Sequence[Array],
    labels: Sequence[Array],
    n_labels: int,
    before: Sequence[tuple[int, int]],
    *,
    named_by_row: bool,
) -> Errors | None:
    """Merge errors.

    Args:
        parts: of disjoint sets of datums; empty if not requested.
        datums: new datum codes per part.
        labels: new label codes per part.
        n_labels: labels of the whole.
        before: rows of both sides that precede each part.
        named_by_row: ground truths are identified by row.
    """
    if not parts:
        return None

    def merged(name: str) -> tuple[Ranked, ...]:
        of_thresholds = zip(*(getattr(part, name) for part in parts), strict=True)
        return tuple(merge_ranked(some, datums, labels, n_labels) for some in of_thresholds)

    frame = merge_rows([part.frame for part in parts], before, named_by_row=named_by_row)
    return Errors(merged("ranked"), merged("unmended"), None if frame is None else in_order(frame))


def merge_rows(
    frames: Sequence[pl.DataFrame | None], before: Sequence[tuple[int, int]], *, named_by_row: bool
) -> pl.DataFrame | None:
    """Concatenate rows that refer to predictions and ground truths.

    Args:
        frames: per part; None if not requested.
        before: rows of both sides that precede each part.
        named_by_row: ground truths are identified by row.
    """
    moved = [
        frame.with_columns(
            pl.col("prediction_row") + ours,
            *(pl.col(name) + theirs for name in IDS if named_by_row and name in frame.columns),
        )
        for frame, (ours, theirs) in zip(frames, before, strict=True)
        if frame is not None
    ]
    filled = [frame for frame in moved if frame.height] or moved[:1]
    return stacked(filled) if filled else None


def errors_frame(errors: Errors | None, label: Any, datum: Any) -> pl.DataFrame:
    """Return the ``errors`` frame; empty if none was built."""
    if errors is None or errors.frame is None:
        return empty_frame("errors", label=label, datum=datum)
    return errors.frame.cast(
        frame_schema("errors", label=label, datum=datum)  # type: ignore[arg-type]
        | {name: errors.frame.schema[name] for name in IDS}
    )


# Label errors: ground truths contradicted by a confident prediction (other label, location,
# missing), without a prediction nearby (unfound), or suspicious by themselves (duplicate, tiny).

LEAST = 0.1
"""Minimum suspicion to report: unsure predictions on background are many."""
DUPLICATE_IOU = 0.9
"""IoU from which two ground truths of one label are a duplicate."""
_CANDIDATE = 0.5  # of the boxes around shapes that are
_SMALL = 1 / 500
"""Shorter side over the extent of the datum's boxes, below which a ground truth is tiny."""
_UNFOUND = 0.3
"""Suspicion of unfound ground truths: detectors miss more than annotators invent."""


class _ErrorReason(NamedTuple):
    """Label errors of one reason.

    Attributes:
        reason: of :mod:`evalengine.schemas.label_errors`.
        suspicion: float64 [k], between 0 and 1.
        truth: int32 [k], the ground truth; -1 for none.
        prediction: int32 [k], the ranked prediction; -1 for none.
        iou: float64 [k]; NaN for none.
        given: float64 [k], score of the given label; NaN for none.
        twin: int32 [k], the ground truth that it duplicates; -1 for none.
    """

    reason: str
    suspicion: Array
    truth: Array
    prediction: Array
    iou: Array
    given: Array
    twin: Array


def _reason_rows(
    reason: str,
    suspicion: Array,
    truth: Array | None = None,
    prediction: Array | None = None,
    iou: Array | None = None,
    given: Array | None = None,
    twin: Array | None = None,
) -> _ErrorReason:
    nobody, nothing = np.full(suspicion.size, -1, np.int64), np.full(suspicion.size, np.nan)
    keep = suspicion >= LEAST
    return _ErrorReason(
        reason,
        suspicion[keep],
        truth=(nobody if truth is None else truth)[keep],
        prediction=(nobody if prediction is None else prediction)[keep],
        iou=(nothing if iou is None else iou)[keep],
        given=(nothing if given is None else given)[keep],
        twin=(nobody if twin is None else twin)[keep],
    )


def find_label_errors(
    batch: Batch, matched: Matched, pairs: Pairs, settings: Settings, threads: Workers
) -> pl.DataFrame:
    """Build the ``label_errors`` frame of one part, unsorted; see :func:`in_order`.

    Args:
        pairs: overlaps of at least the background threshold.
    """
    at = min(settings.spot_ious)
    ranked = matched.ranked
    hit, ignored = ranked.outcomes(ranked.variants.threshold_index(at))
    regular = regular_ground_truths(matched)
    suspects = [
        *_contradicted(ranked.score, pairs, hit | ignored, regular, at),
        _repeated(batch, matched, regular, threads),
        _tiny(matched, regular, len(batch.datums)),
    ]
    return _frame(batch, matched, pairs, suspects)


def _contradicted(
    score: Array, pairs: Pairs, settled: Array, regular: Array, at: float
) -> list[_ErrorReason]:
    """Return the label errors contradicted by predictions.

    Args:
        score: float64 [n], between 0 and 1.
        settled: bool [n], true positives and predictions that do not count.
        regular: bool [m], ground truths that count.
        at: IoU from which predictions overlap a ground truth.
    """
    p, g, iou, same, n = (
        pairs.prediction,
        pairs.ground_truth,
        pairs.iou,
        pairs.same_label,
        regular.size,
    )
    on = iou >= at
    given_score = np.zeros(n)
    np.maximum.at(given_score, g[on & same], score[p[on & same]])
    free = ~settled[p]
    other = _first(np.flatnonzero(on & ~same & free), g, score[p])
    other = other[score[p[other]] > given_score[g[other]]]
    sure = score[p[other]] * (1 - given_score[g[other]])
    struck = np.zeros(n, np.bool_)
    struck[g[on & same]] = True
    views = np.flatnonzero(~on & same & free & ~struck[g])
    off = score[p] * (1 - iou)
    views = _first(views, g, off)
    overlapped = np.zeros(n, np.bool_)
    overlapped[g] = True
    # No other reason, on no ground truth, and the nearest, if any, was hit by another prediction.
    nearest = _first(np.arange(p.size), p, iou)
    unmatched, most = ~settled, np.zeros(score.size)
    unmatched[p[nearest[on[nearest] | ~struck[g[nearest]]]]] = False
    unmatched[p[views]] = False
    most[p[nearest]] = iou[nearest]
    unmatched = np.flatnonzero(unmatched)
    overlap_of = np.where(most[unmatched] > 0, most[unmatched], np.nan)
    unfound = np.flatnonzero(regular & ~overlapped)
    return [
        _reason_rows(
            label_errors.OTHER_LABEL, sure, g[other], p[other], iou[other], given_score[g[other]]
        ),
        _reason_rows(
            label_errors.LOCATION, off[views], g[views], p[views], iou[views], score[p[views]]
        ),
        _reason_rows(
            label_errors.MISSING,
            score[unmatched] * (1 - most[unmatched]),
            None,
            unmatched,
            iou=overlap_of,
        ),
        _reason_rows(label_errors.UNFOUND, np.full(unfound.size, _UNFOUND), unfound),
    ]


def _first(rows: Array, group: Array, value: Array) -> Array:
    """Return the row with the highest value in each group, the first of ties.

    Args:
        rows: int64 [k], indices into the other two.
        group: int32, of every row.
        value: float64, of every row.
    """
    ordered: Array = rows[np.lexsort((rows, -value[rows], group[rows]))]
    first: Array = np.ones(ordered.size, np.bool_)
    first[1:] = group[ordered][1:] != group[ordered][:-1]
    return ordered[first]


def _repeated(batch: Batch, matched: Matched, regular: Array, threads: Workers) -> _ErrorReason:
    """Ground truths that repeat one before them in the table, of the same datum and label."""
    truths, n = matched.ground_truths, len(batch.datums)
    label = np.repeat(np.arange(truths.start.size - 1, dtype=np.int32), np.diff(truths.start))
    shapes = batch.ground_truths.shapes
    lowest = DUPLICATE_IOU if shapes is None else _CANDIDATE
    start, place = rows_by_datum(truths.datum, n)
    area = (truths.boxes[:, 2] - truths.boxes[:, 0]) * (truths.boxes[:, 3] - truths.boxes[:, 1])
    ours = start, place, truths.boxes, area, label
    theirs = truths_by_datum(truths.datum, n, truths.boxes, area, label)
    parts = threads.over(start, lambda a, b: close_pairs(a, b, ours, theirs, lowest))
    blank = [(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))]
    first, second, iou = map(np.concatenate, zip(*blank, *parts, strict=True))
    keep = (truths.row[first] < truths.row[second]) & regular[first] & regular[second]
    first, second, iou = first[keep], second[keep], iou[keep]
    if shapes is not None:
        rows, crowd = (truths.row[first], truths.row[second]), np.zeros(first.size, np.bool_)
        iou = overlap((shapes, shapes), *rows, crowd, threads)
        keep = iou >= DUPLICATE_IOU
        first, second, iou = first[keep], second[keep], iou[keep]
    chosen = _first(np.arange(second.size), second, iou)
    return _reason_rows(
        label_errors.DUPLICATE, iou[chosen], second[chosen], iou=iou[chosen], twin=first[chosen]
    )


def _tiny(matched: Matched, regular: Array, n_datums: int) -> _ErrorReason:
    """Return ground truths whose shorter side is tiny relative to their datum's boxes."""
    extent = np.zeros(n_datums)
    for sorted_rows in (matched.predictions, matched.ground_truths):
        np.maximum.at(extent, sorted_rows.datum, sorted_rows.boxes[:, 2:].max(axis=1, initial=0))
    boxes = matched.ground_truths.boxes
    side = (boxes[:, 2:] - boxes[:, :2]).min(axis=1, initial=np.inf)
    limit = extent[matched.ground_truths.datum] * _SMALL
    rows = np.flatnonzero(regular & (side < limit))
    return _reason_rows(label_errors.TINY, 1 - np.maximum(side[rows], 0) / limit[rows], rows)


def _frame(
    batch: Batch, matched: Matched, pairs: Pairs, suspects: Sequence[_ErrorReason]
) -> pl.DataFrame:
    ranked = matched.ranked
    truth, prediction, twin = (
        np.concatenate([getattr(one, name) for one in suspects]).astype(np.int64)
        for name in ("truth", "prediction", "twin")
    )
    values = {
        name: np.concatenate([getattr(one, name) for one in suspects])
        for name in ("suspicion", "iou", "given")
    }
    theirs, ours = np.flatnonzero(truth >= 0), np.flatnonzero(prediction >= 0)
    doubles = np.flatnonzero(twin >= 0)
    n, table = truth.size, batch.labels.frame

    def at(places: Array, value: Array, dtype: Any = np.int64) -> Array:
        out = np.zeros(n, dtype)
        out[places] = value
        return out

    def null_elsewhere(series: pl.Series, places: Array) -> pl.Series:
        present = np.zeros(n, np.bool_)
        present[places] = True
        return series.set(pl.Series(~present), None)

    gt_row = at(theirs, ranked.gt_row[truth[theirs]])
    row = at(ours, ranked.row[prediction[ours]])
    given = at(theirs, pairs.g_label[truth[theirs]])
    predicted = at(ours, pairs.p_label[prediction[ours]])
    label = np.where(truth >= 0, given, predicted)
    datum = at(ours, ranked.datum[prediction[ours]])
    datum[theirs] = ranked.gt_datum[truth[theirs]]
    box = corners_of("", batch.predictions, row[ours], ours, n)
    of_twins = corners_of("", batch.ground_truths, ranked.gt_row[twin[doubles]], doubles, n)
    scores = at(ours, ranked.score[prediction[ours]], np.float64)
    return pl.DataFrame(
        {
            "datum_id": batch.datums.id.gather(datum),
            "label_key": table["label_key"].gather(label),
            "label_value": table["label_value"].gather(null_elsewhere(pl.Series(given), theirs)),
            "reason": [one.reason for one in suspects for _ in one.suspicion],
            "suggested": table["label_value"].gather(null_elsewhere(pl.Series(predicted), ours)),
            "suspicion": values["suspicion"],
            "score": null_elsewhere(pl.Series(scores), ours),
            "given_score": pl.Series(values["given"], nan_to_null=True),
            "iou": pl.Series(values["iou"], nan_to_null=True),
            "prediction_row": null_elsewhere(pl.Series(row), ours),
            "annotation_id": annotation_ids(batch).gather(
                null_elsewhere(pl.Series(gt_row), theirs)
            ),
            **{name: column.fill_null(of_twins[name]) for name, column in box.items()},
            **corners_of("annotation_", batch.ground_truths, gt_row[theirs], theirs, n),
        },
        schema_overrides={"reason": pl.String},
    )


def label_errors_frame(rows: pl.DataFrame | None, label: Any, datum: Any) -> pl.DataFrame:
    """Return the ``label_errors`` frame; empty if none was built."""
    empty = empty_frame("label_errors", label=label, datum=datum)
    if rows is None:
        return empty
    schema = frame_schema("label_errors", label=label, datum=datum)
    schema["annotation_id"] = rows.schema["annotation_id"]
    missing = [pl.lit(None).alias(name) for name in schema if name not in rows.columns]
    by = ["suspicion", "datum_id", "reason", "label_key", "label_value", "suggested", *CORNER_NAMES]
    worst_first = rows.sort(by, descending=[True, *[False] * (len(by) - 1)], nulls_last=True)
    frame = worst_first.with_columns(missing).select(list(schema))
    return frame.cast(schema)  # type: ignore[arg-type]
