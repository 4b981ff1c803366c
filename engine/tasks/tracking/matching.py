"""Match: HOTA, CLEAR and identity count unit by unit, once it is settled which rows count."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ...ingest.problems import Note
from ...kernels.clear import ClearCounts, ClearEvents, clear
from ...kernels.hota import HotaSums, hota
from ...kernels.identities import identities
from ...kernels.track_frames import EPSILON
from ...tally.tracks import TrackRows
from ..workers import Workers
from .encode import Batch, Side, refuse_short
from .layout import LaidOut
from .preparing import prepare
from .settings import Settings

Array = np.ndarray[Any, Any]


class Matched(msgspec.Struct, frozen=True):
    """What became of the rows of both sides.

    Attributes:
        laid: the rows that count.
        truth: the ground truths that count, in the order of their table.
        found: the predictions that do.
        events: what CLEAR makes of each ground truth, in the layout.
        rows: counts by sequence and label.
        notes: what was left out because of its label.
    """

    laid: LaidOut
    truth: Side
    found: Side
    events: ClearEvents
    rows: TrackRows
    notes: list[Note]


def match(batch: Batch, settings: Settings, needs: frozenset[str], workers: Workers) -> Matched:
    """Count by sequence and label.

    Args:
        batch: all sequences.
        settings: the run's settings.
        needs: ``hota``, ``clear``, ``identity``, ``events``: what is counted; the rest stays 0.
        workers: runs ranges of units side by side.

    Raises:
        InputError: no label is one that the dialect scores, or a sequence has rows of more frames
            than it is long.
    """
    least = settings.overlap
    prepared = prepare(batch, settings.rules, workers)
    seen = np.bincount(prepared.frames, minlength=len(batch.datums))
    refuse_short(batch, seen)
    truth, found, laid = prepared.truth, prepared.found, prepared.laid
    n, n_alphas = laid.datum.size, len(settings.alphas)

    def many(*shape: int, dtype: type = np.int64) -> Array:
        return np.zeros((n, *shape), dtype)

    sums = HotaSums(many(n_alphas), *(many(n_alphas, dtype=np.float64) for _ in range(4)))
    counts = ClearCounts(many(), many(), many(), many(), many(), many(), many(dtype=np.float64))
    common = many()
    n_rows = laid.truth_row.size
    events = ClearEvents(
        np.zeros(n_rows, np.uint8),
        np.full(n_rows, -1, np.int64),
        np.full(n_rows, -1, np.int32),
        np.full(n_rows, np.nan),
    )
    floors = np.array(settings.alphas) - EPSILON

    def count(first: int, last: int) -> None:
        if "hota" in needs:
            hota(laid.frames, first, last, floors, sums)
        if "clear" in needs or "events" in needs:
            clear(laid.frames, first, last, least - EPSILON, counts, events)
        if "identity" in needs:
            identities(laid.frames, first, last, least, common)

    workers.over(laid.offsets, count)
    ends = laid.frames.start
    rows_truth, rows_found = (
        np.diff(start[ends]) for start in (laid.frames.truth_start, laid.frames.found_start)
    )
    both = (rows_truth > 0) & (rows_found > 0)
    length = np.where(batch.length > 0, batch.length, seen)
    rows = TrackRows(
        datum=laid.datum,
        label=laid.label,
        truth=rows_truth,
        found=rows_found,
        frames=np.where(both, length[laid.datum], 0),
        tp=counts.tp,
        switches=counts.switches,
        fragments=counts.fragments,
        mostly=counts.mostly,
        partly=counts.partly,
        lost=counts.lost,
        overlap=counts.overlap,
        common=common,
        alpha_tp=sums.tp,
        alpha_overlap=sums.overlap,
        alpha_either=sums.either,
        alpha_truth=sums.of_truth,
        alpha_found=sums.of_found,
    )
    return Matched(laid, truth, found, events, rows, prepared.notes)
