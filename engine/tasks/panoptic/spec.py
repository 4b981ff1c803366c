"""Panoptic segmentation as a task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from ... import metrics
from ...dialects import Dialect
from ...ingest.frames import Frames
from ...ingest.problems import Note
from ...metrics import Metric
from ...schemas.arrays import Array
from ...schemas.results import empty_frame, frame_schema, in_schema
from ...tallies.counts import Crossings, SegmentRows, Segments, SegmentView
from ...tallies.registry import stored_as
from ...tallies.stats import Column, Stats
from ..contents import Content, Contents
from ..counted import (
    CountTallies,
    cells_per_group,
    counts_in_parts,
    crossing_frame,
    frames_of,
    in_order,
    label_tables,
    merge_by,
    sides_of,
    view_of,
)
from ..encoding import Workers
from ..task import Cuts, Losses, PageFrame, Sample, Task
from .dialects import Settings
from .encode import Batch, encode_batch
from .matching import THRESHOLD, Matched, joined_stuff, match
from .metrics import OF_IMAGE

# Tally: outcomes of segments by datum and label, and per-datum values.


STATUS = ("scored", "not_predicted", "no_ground_truth", "no_segments")
"""Standing of a datum; those of the last have no number."""


@stored_as("panoptic.run/1")
class Tallies(CountTallies, frozen=True, kw_only=True):
    """Tally of a panoptic run.

    Attributes:
        segments: the counts, :class:`~evalengine.tallies.counts.Segments`, or on disk
            :class:`~evalengine.tallies.tables.InFiles`.
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
    unmatched, astray = np.flatnonzero(missed), np.flatnonzero(wrong)
    none = np.full(unmatched.size, -1, np.int32), np.full(astray.size, -1, np.int32)
    truth_rows = np.r_[matched.truth, t]
    actual = np.r_[truth.label[truth_rows], truth.label[unmatched], none[1]]
    predicted = np.r_[
        predicted_side.label[np.r_[matched.found, f]], none[0], predicted_side.label[astray]
    ]
    datum = np.r_[truth.datum[truth_rows], truth.datum[unmatched], predicted_side.datum[astray]]
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
    partners = np.r_[partner, missed]
    label = np.r_[predicted.label, truth.label[missed]]
    table = batch.labels.frame
    ids = np.r_[truth.id, -1][partners]
    columns = {
        "datum_id": batch.datums.id.gather(np.r_[predicted.datum, truth.datum[missed]]),
        "label_key": table["label_key"].gather(label),
        "label_value": table["label_value"].gather(label),
        "outcome": np.array(OUTCOMES)[np.r_[code, lost[missed]]],
        "iou": pl.Series(np.r_[iou, np.full(missed.size, np.nan)], nan_to_null=True),
        "matched_annotation_id": pl.Series(ids).set(pl.Series(partners < 0), None),
        "segment_id": pl.Series(np.r_[predicted.id, np.full(missed.size, -1)]).replace(-1, None),
    }
    schema = frame_schema("outcomes", label=batch.labels.dtype, datum=batch.datums.id_dtype)
    schema |= {"matched_annotation_id": pl.Int64(), "segment_id": pl.Int64()}
    return in_order(in_schema(columns, schema, iou_threshold=THRESHOLD), _KEYS)


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


# Loss of single images: PQ over their labels; and their contents.


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses:
    """See :class:`..task.JudgeDatums`."""
    (column,) = tallies.stats.columns["PQ"]
    value = column.values[:, 0, 0]
    rows = tallies.segments.rows
    fp, fn = (
        np.bincount(rows.datum, getattr(rows, name), minlength=value.size) for name in ("fp", "fn")
    )

    def why(codes: Array) -> list[str]:
        return [f"{int(fn[code]):,} missed, {int(fp[code]):,} too many" for code in codes.tolist()]

    return Losses(
        metric="PQ",
        value=value,
        higher=True,
        best=1.0,
        ties=lambda codes: [fp[codes] + fn[codes]],
        why=why,
    )


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`: labels of images, those with most errors first."""
    rows = tallies.segments.rows
    columns: dict[str, Callable[[int], str | None]] = {
        "matched": lambda at: str(rows.tp[at]),
        "missed": lambda at: str(rows.fn[at]),
        "too many": lambda at: str(rows.fp[at]),
        "mean IoU": lambda at: f"{rows.iou[at] / rows.tp[at]:.3f}" if rows.tp[at] else None,
    }
    return label_tables(tallies, rows, codes, rows.fp + rows.fn, columns)


# Tiny tables that make every kernel of panoptic segmentation run once.


def samples() -> Iterator[Sample]:
    """Maps of few ids and of many, whole segments and their boundaries."""
    every = metrics.names("panoptic")
    for factor in (1, 1000):
        ids = (np.arange(64) // 16 + 1).reshape(8, 8) * factor
        side = pl.DataFrame(
            {
                "datum_id": [0] * 4,
                "segment_id": np.unique(ids),
                "label_value": [1, 1, 2, 2],
                "raster": pl.Series([ids.tolist()] * 4, dtype=pl.List(pl.List(pl.Int64))),
            }
        )
        for kind in ("segm", "boundary"):
            yield side, side, {"metrics": every, "iou_type": kind}


# The plan of a panoptic run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    rules = settings.rules
    what = "IoU of whole segments"
    if settings.boundary_ratio is not None:
        what = (
            "the smaller of the IoU of segments and of their boundaries, of"
            f" {settings.boundary_ratio:g} of the diagonal"
        )
    void = "of either side" if rules.void_predictions else "of the ground truths"
    areas = "annotated" if rules.annotated_areas else "counted"
    return [
        f"match     {what} above 0.5; void {void} taken off; areas of ground truths {areas}",
        f"tally     {', '.join(sorted(needs))} by datum and label",
        "mean      over labels with segments: all, things, stuff",
    ]


# The metrics of a run: any segments can carry all of them.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics as planned, and notes on columns that the dialect ignores."""
    notes = []
    if not settings.rules.crowds and "iscrowd" in frames.ground_truths.columns:
        message = "column 'iscrowd' is not read: the dialect knows no crowds."
        notes.append(Note("crowds_unread", message))
    return metrics, notes


TASK = Task(
    name="panoptic",
    settings=Settings,
    fit=fit,
    tally=tally,
    merge=merge,
    view=view_of(SegmentView, "segments"),
    cells_per_group=cells_per_group,
    own_frames=frames_of(crossing_frame, outcomes=outcomes),
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tally=contents),
    drawn=SegmentView.drawn,
    warm=("parts", "masks", "label_maps"),
    examine=lambda frames, settings, _, workers: encode_batch(frames, settings, workers),
    in_parts=counts_in_parts("segments", merge),
    page=(PageFrame(name="confusion", metrics=("ConfusionMatrix",)),),
)
