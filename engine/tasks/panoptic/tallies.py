"""Panoptic tallies: outcomes of segments by datum and label, and per-datum values."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...schemas.arrays import Array
from ...schemas.results import empty_frame, frame_schema, in_schema
from ...tally.counts import Crossings, SegmentRows, Segments
from ...tally.registry import stored_as
from ...tally.stats import Column, Stats
from ..counted import CountTallies, in_order, merge_by, sides_of
from ..encoding import Workers
from .dialects import Settings
from .encode import Batch, encode_batch
from .matching import THRESHOLD, Matched, joined_stuff, match
from .metrics import OF_IMAGE

STATUS = ("scored", "not_predicted", "no_ground_truth", "no_segments")
"""Standing of a datum; those of the last have no number."""


@stored_as("panoptic.run/1")
class Tallies(CountTallies, frozen=True, kw_only=True):
    """Tally of a panoptic run.

    Attributes:
        segments: the counts, :class:`~evalengine.tally.counts.Segments`, or on disk
            :class:`~evalengine.tally.tables.InFiles`.
        outcomes: the ``outcomes`` frame, or None.
    """

    segments: Any
    outcomes: pl.DataFrame | None


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Raises:
        InputError: maps that cannot be read or compared, or unknown ids.
    """
    begun = time.perf_counter()
    batch = encode_batch(frames, settings, workers)
    if settings.rules.joined_stuff:
        batch = joined_stuff(batch)
    read = time.perf_counter()
    matched = match(batch, settings)
    rows = _rows(batch, matched)
    segments = Segments(rows, _crossings(batch, matched), batch.declared, batch.kind)
    present = sides_of(batch.found.present, batch.truth.present)
    listed = _outcomes(batch, matched) if "outcomes" in needs else None
    seconds = {"match": read - begun, "measure": time.perf_counter() - read}
    return Tallies(
        datums=batch.datums,
        labels=batch.labels,
        segments=segments,
        stats=stats_from(present, segments),
        present=present,
        outcomes=listed,
        seconds=seconds,
    )


def _rows(batch: Batch, matched: Matched) -> SegmentRows:
    """Counts and sums by datum and label."""
    truth, predicted = batch.truth, batch.found
    many = max(1, len(batch.labels))

    def place(side: Any, at: Array) -> Array:
        return side.datum[at].astype(np.int64) * many + side.label[at]

    counted = {
        "tp": place(truth, matched.truth),
        "fp": place(predicted, np.flatnonzero(matched.wrong)),
        "fn": place(truth, np.flatnonzero(matched.missed)),
        "touched": place(truth, matched.touching),
        "truth": place(truth, np.flatnonzero(~truth.crowd)),
    }
    code = np.unique(np.concatenate(list(counted.values())))

    def summed(name: str, values: Array | int = 1) -> Array:
        out = np.zeros(code.size, np.int64 if isinstance(values, int) else np.float64)
        np.add.at(out, np.searchsorted(code, counted[name]), values)
        return out

    return SegmentRows(
        datum=(code // many).astype(np.int32),
        label=(code % many).astype(np.int32),
        tp=summed("tp"),
        fp=summed("fp"),
        fn=summed("fn"),
        iou=summed("tp", matched.iou),
        touched=summed("touched", matched.touched),
        truth=summed("truth"),
    )


def _crossings(batch: Batch, matched: Matched) -> Crossings:
    """Segments by datum and pair of labels."""
    truth, predicted_side = batch.truth, batch.found
    missed, wrong = matched.missed.copy(), matched.wrong.copy()
    t, f = matched.mistaken.T
    missed[t], wrong[f] = False, False
    alone, astray = np.flatnonzero(missed), np.flatnonzero(wrong)
    none = np.full(alone.size, -1, np.int32), np.full(astray.size, -1, np.int32)
    both = np.r_[matched.truth, t]
    actual = np.r_[truth.label[both], truth.label[alone], none[1]]
    predicted = np.r_[
        predicted_side.label[np.r_[matched.found, f]], none[0], predicted_side.label[astray]
    ]
    datum = np.r_[truth.datum[both], truth.datum[alone], predicted_side.datum[astray]]
    rows, count = np.unique(
        np.stack([datum, actual, predicted]).astype(np.int32), axis=1, return_counts=True
    )
    return Crossings(rows[0], rows[1], rows[2], count.astype(np.int64))


OUTCOMES = (
    "tp",
    "fp_misclassified",
    "fp_hallucination",
    "ignored",
    "fn_misclassified",
    "fn_missed",
)


def _outcomes(batch: Batch, matched: Matched) -> pl.DataFrame:
    """One row a predicted segment, and one a missed ground truth."""
    truth, predicted = batch.truth, batch.found
    code = np.where(matched.wrong, 2, 3)
    partner, iou = np.full(predicted.id.size, -1, np.int64), np.full(predicted.id.size, np.nan)
    t, f = matched.mistaken.T
    code[matched.found], code[f] = 0, 1
    partner[matched.found], iou[matched.found] = matched.truth, matched.iou
    partner[f], iou[f] = t, matched.mistaken_iou
    missed = np.flatnonzero(matched.missed)
    lost = np.full(truth.id.size, 5)
    lost[t] = 4
    met = np.r_[partner, missed]
    label = np.r_[predicted.label, truth.label[missed]]
    table = batch.labels.frame
    ids = np.r_[truth.id, -1][met]
    made = {
        "datum_id": batch.datums.id.gather(np.r_[predicted.datum, truth.datum[missed]]),
        "label_key": table["label_key"].gather(label),
        "label_value": table["label_value"].gather(label),
        "outcome": np.array(OUTCOMES)[np.r_[code, lost[missed]]],
        "iou": pl.Series(np.r_[iou, np.full(missed.size, np.nan)], nan_to_null=True),
        "matched_annotation_id": pl.Series(ids).set(pl.Series(met < 0), None),
        "segment_id": pl.Series(np.r_[predicted.id, np.full(missed.size, -1)]).replace(-1, None),
    }
    schema = frame_schema("outcomes", label=batch.labels.dtype, datum=batch.datums.id_dtype)
    schema |= {"matched_annotation_id": pl.Int64(), "segment_id": pl.Int64()}
    return in_order(in_schema(made, schema, iou_threshold=THRESHOLD), _KEYS)


def outcomes(tallies: Tallies) -> pl.DataFrame:
    """Return the ``outcomes`` frame; empty if not requested."""
    if tallies.outcomes is not None:
        return tallies.outcomes
    return empty_frame("outcomes", label=tallies.labels.dtype, datum=tallies.datums.id_dtype)


_KEYS = ("datum_id", "segment_id", "matched_annotation_id")


def stats_from(present: Array, segments: Segments) -> Stats:
    """Compute PQ, SQ and RQ of every datum: means over its labels.

    Args:
        present: status of each datum: on both sides or only one.
    """
    rows = segments.rows
    some = np.zeros(present.size, bool)
    some[rows.datum[rows.tp + rows.fp + rows.fn > 0]] = True
    columns: dict[str, tuple[Column, ...]] = {
        name: (Column(metric=name, values=of(rows, present.size)[:, None, None], reason=why),)
        for name, of, why in OF_IMAGE
    }
    status = np.where(some, present, np.int8(3))
    return Stats(np.ones(present.size, bool), columns, (STATUS, status))


merge = merge_by(
    "segments", lambda whole, settings: stats_from(whole.present, whole.segments), "outcomes", _KEYS
)
