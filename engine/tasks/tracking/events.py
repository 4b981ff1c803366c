"""Events: outcome of every box in CLEAR, per video frame, and the subset of errors."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...ingest.boxes import CORNER_NAMES
from ...kernels.clear import FRAGMENT, MATCH, SWITCH
from ...schemas.results import frame_schema
from .encode import Batch
from .matching import Matched
from .settings import Settings

OUTCOMES = ("match", "switch", "fragment", "miss", "false")
"""Outcomes of rows: the last is for predictions without a match, the others for ground truths."""
_KEYS = ("datum_id", "frame", "label_value", "object_id", "track_id")


def event_frame(batch: Batch, matched: Matched, settings: Settings) -> pl.DataFrame:
    """Return one row per ground truth, and per unmatched prediction, by sequence and frame."""
    laid, events = matched.laid, matched.events
    alone = np.ones(laid.found_row.size, bool)
    alone[events.met[events.met >= 0]] = False
    wrong = laid.found_row[np.flatnonzero(alone)]
    truth, found = laid.truth_row, matched.found
    event = events.event.astype(np.int64)
    kind = np.select(
        [event & SWITCH > 0, event & FRAGMENT > 0, event & MATCH > 0], [1, 2, 0], default=3
    )
    met = np.where(events.met < 0, -1, laid.found_row[events.met] if laid.found_row.size else -1)
    before = _tracks_before(matched)
    n, k = truth.size, wrong.size
    label = np.r_[matched.truth.label[truth], found.label[wrong]]
    table = batch.labels.frame
    none = np.full(k, -1, np.int64)
    track = np.r_[np.where(met < 0, -1, found.id[met] if found.id.size else -1), found.id[wrong]]
    scored = np.r_[met, wrong]
    made = {
        "datum_id": batch.datums.id.gather(np.r_[matched.truth.datum[truth], found.datum[wrong]]),
        "label_key": table["label_key"].gather(label),
        "label_value": table["label_value"].gather(label),
        "iou_threshold": np.full(n + k, settings.overlap),
        "score_threshold": pl.Series([None], dtype=pl.Float64).new_from_index(0, n + k),
        "outcome": pl.Series(OUTCOMES).gather(np.r_[kind, np.full(k, 4)]),
        "score": _given(found.score, scored),
        "iou": pl.Series(np.r_[events.overlap, np.full(k, np.nan)], nan_to_null=True),
        "matched_annotation_id": pl.Series([None], dtype=pl.Int64).new_from_index(0, n + k),
        "frame": np.r_[matched.truth.frame[truth], found.frame[wrong]],
        "object_id": _given(matched.truth.ids, np.r_[matched.truth.id[truth], none]),
        "track_id": _given(found.ids, track),
        "previous_track_id": _given(found.ids, np.r_[before, none]),
        "resumed": np.r_[event & FRAGMENT > 0, np.zeros(k, bool)],
        **_corners("", found.boxes, scored),
        **_corners("annotation_", matched.truth.boxes, np.r_[truth, none]),
    }
    schema = frame_schema("outcomes", label=batch.labels.dtype, datum=batch.datums.id_dtype)
    frame = pl.DataFrame(made)
    if not batch.labelled:
        nothing = [pl.lit(None, frame.schema[name]).alias(name) for name in _LABEL]
        frame = frame.with_columns(nothing)
    return in_order(frame.cast({name: dtype for name, dtype in schema.items() if dtype}))


_LABEL = ("label_key", "label_value")
_ERRORS = ("switch", "fragment", "false", "miss")
"""Outcomes that are errors, the most informative first."""


def outcome_rows(events: pl.DataFrame) -> pl.DataFrame:
    """The ``outcomes`` frame: events without boxes."""
    return events.drop(name for name in events.columns if name.endswith(CORNER_NAMES))


def error_rows(events: pl.DataFrame) -> pl.DataFrame:
    """Return the ``errors`` frame: per sequence in the order of ``_ERRORS``."""
    wrong = events.filter(pl.col("outcome").is_in(_ERRORS)).rename({"outcome": "error"})
    place = pl.col("error").replace_strict(_ERRORS, range(len(_ERRORS)), return_dtype=pl.Int8)
    wrong = wrong.sort("datum_id", place, maintain_order=True)
    schema = frame_schema(
        "errors", label=events.schema["label_value"], datum=events.schema["datum_id"]
    )
    own = ("frame", "object_id", "track_id", "previous_track_id", "resumed")
    return wrong.select(
        *(
            pl.col(name) if name in wrong.columns else pl.lit(None, dtype).alias(name)
            for name, dtype in schema.items()
        ),
        *own,
    )


def _corners(before: str, boxes: np.ndarray, at: np.ndarray) -> dict[str, pl.Series]:
    """Corners of boxes at places, null at -1."""
    corners = np.full((at.size, 4), np.nan)
    corners[at >= 0] = boxes[at[at >= 0]]
    return {
        before + name: pl.Series(column, nan_to_null=True)
        for name, column in zip(CORNER_NAMES, corners.T, strict=True)
    }


def _tracks_before(matched: Matched) -> np.ndarray:
    """The track from which each ground truth switched, its code, int64 [n], -1 for none."""
    frames, before = matched.laid.frames, matched.events.before
    many = np.diff(frames.start)
    unit_of_frame = np.repeat(np.arange(many.size), many)
    units = [
        np.repeat(unit_of_frame, np.diff(start))
        for start in (frames.truth_start, frames.found_start)
    ]
    width = int(max(before.max(initial=0), frames.found_id.max(initial=0))) + 1
    own = matched.found.id[matched.laid.found_row]
    keys, first = np.unique(units[1] * width + frames.found_id, return_index=True)
    here = np.flatnonzero(before >= 0)
    out = np.full(before.size, -1, np.int64)
    out[here] = own[first[np.searchsorted(keys, units[0][here] * width + before[here])]]
    return out


def _given(values: pl.Series | None, at: np.ndarray) -> pl.Series:
    """Values at places, null at -1."""
    if values is None:
        return pl.Series([None], dtype=pl.Float64).new_from_index(0, at.size)
    return values.gather(pl.Series(at, dtype=pl.Int64).replace(-1, None))


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows by sequence, frame, label, object and track."""
    return frame.sort(_KEYS, nulls_last=True, maintain_order=True)
