"""Label errors: ground truths that are likely wrong, and objects likely missing from them.

Ground truths contradicted by a confident prediction are suspicious: ``other label`` if it overlaps
one of another label that no prediction of the right label found as confidently, ``location`` if it
is near one without a hit, ``missing`` if it overlaps none, or only one that another prediction
found. ``unfound`` ground truths have no prediction nearby. ``duplicate`` and ``tiny`` depend only
on
ground truths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ...ingest.boxes import CORNER_NAMES
from ...kernels.pairs import close_pairs, rows_by_datum, truths_by_datum
from ...schemas.arrays import Array
from ...schemas.label_errors import DUPLICATE, LOCATION, MISSING, OTHER_LABEL, TINY, UNFOUND
from ...schemas.results import empty_frame, frame_schema
from ..workers import Workers
from .encode import Batch
from .error_rows import corners_of
from .matching import Matched
from .near import overlap
from .outcomes import annotation_ids
from .overlaps import Pairs, regular_ground_truths
from .settings import Settings

LEAST = 0.1
"""Minimum suspicion to report: unsure predictions on background are many."""
ALIKE = 0.9
"""IoU from which two ground truths of one label are a duplicate."""
_MAY_BE_ALIKE = 0.5  # of the boxes around shapes that are
_SMALL = 1 / 500
"""Shorter side over the extent of the datum's boxes, below which a ground truth is tiny."""
_UNFOUND = 0.3
"""Suspicion of unfound ground truths: detectors miss more than annotators invent."""


class _Told(NamedTuple):
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


def _told(
    reason: str,
    suspicion: Array,
    truth: Array | None = None,
    prediction: Array | None = None,
    iou: Array | None = None,
    given: Array | None = None,
    twin: Array | None = None,
) -> _Told:
    nobody, nothing = np.full(suspicion.size, -1, np.int64), np.full(suspicion.size, np.nan)
    keep = suspicion >= LEAST
    return _Told(
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
    word, bit = ranked.variants.bit(ranked.variants.threshold_index(at))
    one = np.uint64(1) << np.uint64(bit)
    hit, ignored = (ranked.hit[word] & one) != 0, (ranked.ignored[word] & one) != 0
    regular = regular_ground_truths(matched)
    told = [
        *_contradicted(ranked.score, pairs, hit, hit | ignored, regular, at),
        _repeated(batch, matched, regular, threads),
        _tiny(matched, regular, len(batch.datums)),
    ]
    return _frame(batch, matched, pairs, told)


def _contradicted(
    score: Array, pairs: Pairs, hit: Array, settled: Array, regular: Array, at: float
) -> list[_Told]:
    """Return the label errors contradicted by predictions.

    Args:
        score: float64 [n], between 0 and 1.
        hit: bool [n], true positives.
        settled: bool [n], true positives and predictions that do not count.
        regular: bool [m], ground truths that count.
        at: IoU from which predictions overlap a ground truth.
    """
    p, g, iou, same, n = (
        pairs.prediction, pairs.ground_truth, pairs.iou, pairs.same_label, regular.size
    )  # fmt: skip
    on = iou >= at
    given = np.zeros(n)
    np.maximum.at(given, g[on & same], score[p[on & same]])
    free = ~settled[p]
    other = _first(np.flatnonzero(on & ~same & free), g, score[p])
    other = other[score[p[other]] > given[g[other]]]
    sure = score[p[other]] * (1 - given[g[other]])
    struck = np.zeros(n, np.bool_)
    struck[g[on & same]] = True
    beside = np.flatnonzero(~on & same & free & ~struck[g])
    off = score[p] * (1 - iou)
    beside = _first(beside, g, off)
    near = np.zeros(n, np.bool_)
    near[g] = True
    # No other reason, on no ground truth, and the nearest, if any, was hit by another prediction.
    nearest = _first(np.arange(p.size), p, iou)
    alone, most = ~settled, np.zeros(score.size)
    alone[p[nearest[on[nearest] | ~struck[g[nearest]]]]] = False
    alone[p[beside]] = False
    most[p[nearest]] = iou[nearest]
    alone = np.flatnonzero(alone)
    overlap_of = np.where(most[alone] > 0, most[alone], np.nan)
    unfound = np.flatnonzero(regular & ~near)
    return [
        _told(OTHER_LABEL, sure, g[other], p[other], iou[other], given[g[other]]),
        _told(LOCATION, off[beside], g[beside], p[beside], iou[beside], score[p[beside]]),
        _told(MISSING, score[alone] * (1 - most[alone]), None, alone, iou=overlap_of),
        _told(UNFOUND, np.full(unfound.size, _UNFOUND), unfound),
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
    chosen: Array = ordered[first]
    return chosen


def _repeated(batch: Batch, matched: Matched, regular: Array, threads: Workers) -> _Told:
    """Ground truths that repeat one before them in the table, of the same datum and label."""
    laid, n = matched.ground_truths, len(batch.datums)
    label = np.repeat(np.arange(laid.start.size - 1, dtype=np.int32), np.diff(laid.start))
    shapes = batch.ground_truths.shapes
    lowest = ALIKE if shapes is None else _MAY_BE_ALIKE
    start, place = rows_by_datum(laid.datum, n)
    area = (laid.boxes[:, 2] - laid.boxes[:, 0]) * (laid.boxes[:, 3] - laid.boxes[:, 1])
    ours = start, place, laid.boxes, area, label
    theirs = truths_by_datum(laid.datum, n, laid.boxes, area, label)
    parts = threads.over(start, lambda a, b: close_pairs(a, b, ours, theirs, lowest))
    blank = [(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))]
    first, second, iou = map(np.concatenate, zip(*blank, *parts, strict=True))
    keep = (laid.row[first] < laid.row[second]) & regular[first] & regular[second]
    first, second, iou = first[keep], second[keep], iou[keep]
    if shapes is not None:
        rows, crowd = (laid.row[first], laid.row[second]), np.zeros(first.size, np.bool_)
        iou = overlap((shapes, shapes), *rows, crowd, threads)
        keep = iou >= ALIKE
        first, second, iou = first[keep], second[keep], iou[keep]
    chosen = _first(np.arange(second.size), second, iou)
    return _told(DUPLICATE, iou[chosen], second[chosen], iou=iou[chosen], twin=first[chosen])


def _tiny(matched: Matched, regular: Array, n_datums: int) -> _Told:
    """Return ground truths whose shorter side is tiny relative to their datum's boxes."""
    extent = np.zeros(n_datums)
    for laid in (matched.predictions, matched.ground_truths):
        np.maximum.at(extent, laid.datum, laid.boxes[:, 2:].max(axis=1, initial=0))
    boxes = matched.ground_truths.boxes
    side = (boxes[:, 2:] - boxes[:, :2]).min(axis=1, initial=np.inf)
    limit = extent[matched.ground_truths.datum] * _SMALL
    rows = np.flatnonzero(regular & (side < limit))
    return _told(TINY, 1 - np.maximum(side[rows], 0) / limit[rows], rows)


def _frame(batch: Batch, matched: Matched, pairs: Pairs, told: Sequence[_Told]) -> pl.DataFrame:
    ranked = matched.ranked
    truth, prediction, twin = (
        np.concatenate([getattr(one, name) for one in told]).astype(np.int64)
        for name in ("truth", "prediction", "twin")
    )
    values = {
        name: np.concatenate([getattr(one, name) for one in told])
        for name in ("suspicion", "iou", "given")
    }
    theirs, ours = np.flatnonzero(truth >= 0), np.flatnonzero(prediction >= 0)
    doubles = np.flatnonzero(twin >= 0)
    n, table = truth.size, batch.labels.frame

    def at(places: Array, value: Array, dtype: Any = np.int64) -> Array:
        out = np.zeros(n, dtype)
        out[places] = value
        return out

    def known(series: pl.Series, places: Array) -> pl.Series:
        there = np.zeros(n, np.bool_)
        there[places] = True
        return series.set(pl.Series(~there), None)

    gt_row = at(theirs, ranked.gt_row[truth[theirs]])
    row = at(ours, ranked.row[prediction[ours]])
    given = at(theirs, pairs.g_label[truth[theirs]])
    said = at(ours, pairs.p_label[prediction[ours]])
    label = np.where(truth >= 0, given, said)
    datum = at(ours, ranked.datum[prediction[ours]])
    datum[theirs] = ranked.gt_datum[truth[theirs]]
    box = corners_of("", batch.predictions, row[ours], ours, n)
    of_twins = corners_of("", batch.ground_truths, ranked.gt_row[twin[doubles]], doubles, n)
    scores = at(ours, ranked.score[prediction[ours]], np.float64)
    return pl.DataFrame(
        {
            "datum_id": batch.datums.id.gather(datum),
            "label_key": table["label_key"].gather(label),
            "label_value": table["label_value"].gather(known(pl.Series(given), theirs)),
            "reason": [one.reason for one in told for _ in one.suspicion],
            "suggested": table["label_value"].gather(known(pl.Series(said), ours)),
            "suspicion": values["suspicion"],
            "score": known(pl.Series(scores), ours),
            "given_score": pl.Series(values["given"], nan_to_null=True),
            "iou": pl.Series(values["iou"], nan_to_null=True),
            "prediction_row": known(pl.Series(row), ours),
            "annotation_id": annotation_ids(batch).gather(known(pl.Series(gt_row), theirs)),
            **{name: column.fill_null(of_twins[name]) for name, column in box.items()},
            **corners_of("annotation_", batch.ground_truths, gt_row[theirs], theirs, n),
        },
        schema_overrides={"reason": pl.String},
    )


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort rows as in the ``label_errors`` frame: worst first, ties by location."""
    by = ["suspicion", "datum_id", "reason", "label_key", "label_value", "suggested", *CORNER_NAMES]
    return frame.sort(by, descending=[True, *[False] * (len(by) - 1)], nulls_last=True)


def label_errors_frame(found: pl.DataFrame | None, label: Any, datum: Any) -> pl.DataFrame:
    """Return the ``label_errors`` frame; empty if none was built."""
    empty = empty_frame("label_errors", label=label, datum=datum)
    if found is None:
        return empty
    schema = frame_schema("label_errors", label=label, datum=datum)
    schema["annotation_id"] = found.schema["annotation_id"]
    missing = [pl.lit(None).alias(name) for name in schema if name not in found.columns]
    made = in_order(found).with_columns(missing).select(list(schema))
    return made.cast(schema)  # type: ignore[arg-type]
