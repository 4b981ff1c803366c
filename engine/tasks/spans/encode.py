"""Tables of spans as those of boxes of height 1, and outcomes by nervaluate's schemas."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import offsets_of
from ...ingest.frames import Frames
from ...ingest.problems import note_of
from ...kernels.spans import judge_schemas
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...tallies.ranked import Ranked, Variants
from ..detection.encode import Batch, Side, keep_rows
from ..detection.point_counts import PointCounts
from .dialects import OUTCOMES, SCHEMA_NAMES, SCOPES
from .settings import Settings

_ENDS = ("start", "end")
_BEYOND = 1.01  # times the duration, which files round


def boxed(frames: Frames, settings: Settings) -> bool:
    """Replace the ends of spans by corners of boxes; return whether predictions have scores.

    Without scores, all get the same. Empty spans that are compared for equality become as short as
    floats allow, so that they equal themselves.
    """
    scored = "score" in frames.predictions.columns
    _note_values(frames, settings)
    frames.heights = frames.heights or (frames.predictions.height, frames.ground_truths.height)
    for side in (PREDICTIONS, GROUND_TRUTHS):
        frame = getattr(frames, side)
        if "start" not in frame.columns:
            continue
        if settings.rules.merged and not scored and _may_repeat(frame):
            key = ["datum_id", "label_key", "label_value", *_ENDS]
            first = frame.select(
                pl.struct(name for name in key if name in frame.columns).is_first_distinct()
            ).to_series()
            words = "span", "spans", "that repeat another skipped"
            keep_rows(frames, side, first, "repeated_spans", words)
            frame = getattr(frames, side)
        start, end = (pl.col(name).cast(pl.Float64) for name in _ENDS)
        if settings.span_ends == "inclusive":
            end = end + 1.0
        elif settings.rules.equal and not scored:
            end = pl.when(end > start).then(end).otherwise(_following(frame["start"]))
        score_column = [] if scored or side == GROUND_TRUTHS else [pl.lit(1.0).alias("score")]
        corners = frame.with_columns(
            start.alias("xmin"),
            pl.lit(0.0).alias("ymin"),
            end.alias("xmax"),
            pl.lit(1.0).alias("ymax"),
            *score_column,
        )
        setattr(frames, side, corners.drop(_ENDS))
    return scored


def _note_values(frames: Frames, settings: Settings) -> None:
    """Note spans before 0 or after the end of their recording, and ``ignore`` that is not read."""
    for side in (PREDICTIONS, GROUND_TRUTHS):
        frame = getattr(frames, side)
        if "start" not in frame.columns:
            continue
        before = f"{side.replace('_', ' ')}: "
        if n := int((frame["start"] < 0).sum()):
            words = "span", "spans", "with a negative start"
            frames.notes.append(note_of("starts_negative", n, words, before=before))
        if frames.datums is not None and "duration" in frames.datums.columns:
            last = frame.group_by("datum_id").agg(pl.col("end").max())
            joined = last.join(frames.datums.select("datum_id", "duration"), on="datum_id")
            beyond = joined.filter(pl.col("end") > pl.col("duration") * _BEYOND)["datum_id"].sort()
            if n := len(beyond):
                words = "recording", "recordings", "with spans that end after the duration"
                frames.notes.append(note_of("spans_after_end", n, words, beyond, before))
        if "ignore" not in frame.columns or settings.rules.ignore:
            continue
        if n := int(frame["ignore"].cast(pl.Boolean).sum()):
            words = "span", "spans", "with ignore counted: this dialect does not read it"
            frames.notes.append(note_of("ignore_unread", n, words, before=before))


def _following(values: pl.Series) -> pl.Series:
    return pl.Series(np.nextafter(values.cast(pl.Float64).to_numpy(), np.inf))


def _may_repeat(frame: pl.DataFrame) -> bool:
    """Return whether a table is not strictly in the order of datums and starts."""
    datum, start = pl.col("datum_id"), pl.col("start")
    before = datum.shift(), start.shift()
    again = (datum < before[0]) | ((datum == before[0]) & (start <= before[1]))
    return bool(frame.select(again.any()).item())


def count_schemas(batch: Batch, settings: Settings) -> PointCounts:
    """Return the outcomes of all spans under each schema, as marks of rows.

    Every row is a prediction, or a ground truth, which has marks where it is missed.
    """
    ours, theirs = (_by_datum(batch, side) for side in (batch.predictions, batch.ground_truths))
    outcomes = judge_schemas(
        (ours.start, theirs.start),
        (ours.begin, theirs.begin),
        (ours.end, theirs.end),
        (ours.label, theirs.label),
        (batch.labels.key[ours.label], batch.labels.key[theirs.label]),
        settings.min_overlap_percentage,
    )
    datum, label = np.r_[ours.datum, theirs.datum], np.r_[ours.label, theirs.label]
    row = np.r_[2 * ours.row, 2 * theirs.row + 1]
    bits = np.concatenate([_marks(outcome) for outcome in outcomes])
    order = np.lexsort((row, datum, label))
    n_labels = len(batch.labels)
    none = np.zeros(n_labels + 1, np.int64)
    empty = np.zeros((1, 0), np.uint64)
    tally = Ranked(
        variants=Variants((0.0,), tuple((f"{name} 1", -np.inf, np.inf) for name in MARKS)),
        start=none,
        score=np.zeros(0),
        datum=np.zeros(0, np.int32),
        row=np.zeros(0, np.int64),
        rank=np.zeros(0, np.int32),
        hit=empty,
        ignored=empty,
        gt_start=offsets_of(np.bincount(label, minlength=n_labels)),
        gt_datum=datum[order].astype(np.int32),
        gt_row=row[order],
        gt_counted=bits[order][None],
        single=batch.single,
    )
    return PointCounts(MARKS, tally)


MARKS = tuple(
    f"{scope} {schema} {outcome}"
    for scope in SCOPES
    for schema in SCHEMA_NAMES
    for outcome in OUTCOMES
)
"""Marks of rows: outcome under a schema, over all labels or within the label."""


class _Spans(msgspec.Struct, frozen=True):
    """Spans of one side by datum, then row; ``start`` are offsets by datum."""

    start: Array
    begin: Array
    end: Array
    datum: Array
    label: Array
    row: Array


def _by_datum(batch: Batch, side: Side) -> _Spans:
    rows = np.arange(side.datum.size) if side.rows is None else side.rows
    place = np.lexsort((rows, side.datum))
    boxes = side.boxes(place)
    start = offsets_of(np.bincount(side.datum, minlength=len(batch.datums)))
    ends = boxes[:, 0], boxes[:, 2]
    return _Spans(start, *ends, side.datum[place], side.label[place], rows[place])


def _marks(outcome: Array) -> Array:
    """Outcomes [2, 4, n], -1 for none, as bits in the order of :data:`MARKS`, uint64 [n]."""
    out = np.zeros(outcome.shape[-1], np.uint64)
    for scope, schema in np.ndindex(*outcome.shape[:2]):
        code = outcome[scope, schema].astype(np.int64)
        at = (scope * len(SCHEMA_NAMES) + schema) * len(OUTCOMES) + np.maximum(code, 0)
        out |= np.where(code >= 0, np.uint64(1) << at.astype(np.uint64), np.uint64(0))
    return out
