"""Tally: counts by sequence and label, and what single sequences are worth."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...schemas.results import empty_frame
from ...tally.datums import Datums, Labels
from ...tally.merging import merge_datums, merge_labels, merged_present, merged_seconds
from ...tally.registry import stored_as
from ...tally.stats import Column, Stats
from ...tally.tracks import Tracks, merge_tracks
from ..workers import Workers
from .agreement import disagreement
from .encode import Batch, encode_batch, refuse_frames
from .events import event_frame, in_order
from .matching import Matched, match
from .metrics.numbers import NUMBERS
from .settings import Settings

Array = np.ndarray[Any, Any]

STATUS = ("scored", "not_predicted", "no_ground_truth", "no_boxes")
"""Standing of a sequence; those of the last have no number."""


@stored_as("tracking.run/1")
class Tallies(msgspec.Struct, frozen=True):
    """What a tracking run leaves behind.

    Attributes:
        datums: sequences and their slices.
        labels: of both sides and the declared ones.
        tracks: the counts, :class:`~evalengine.tally.tracks.Tracks`, or in files
            :class:`~evalengine.tally.counted_rows.CountParts`.
        stats: metrics of single sequences, :class:`~evalengine.tally.stats.Stats`, or in files
            :class:`~evalengine.tally.stats_parts.StatsParts`.
        present: int8 [n_datums], standing of each sequence.
        counted: what was counted: ``hota``, ``clear``, ``identity``.
        events: what became of every box, as :func:`.event_frame` has it, or None.
        seconds: step -> wall seconds.
        beside: frames there are whatever the metrics.
        weighted: whether counts are sums of weights; never.
    """

    datums: Datums
    labels: Labels
    tracks: Any
    stats: Any
    present: Array
    counted: tuple[str, ...]
    events: pl.DataFrame | None
    seconds: dict[str, float]
    beside: tuple[str, ...] = ("per_datum",)
    weighted: bool = False


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Args:
        frames: checked tables, used up here; notes are added to theirs.
        settings: the run's settings.
        needs: ``hota``, ``clear``, ``identity``, ``events``.
        workers: runs ranges of sequences side by side.

    Raises:
        InputError: one side alone has labels, rows lack what is compared, or are of frames that
            their sequence does not have.
    """
    begun = time.perf_counter()
    batch = _encoded(frames, settings, workers)
    read = time.perf_counter()
    matched = _matched(batch, frames, settings, needs, workers)
    tracks = Tracks(matched.rows, batch.declared, batch.labelled)
    listed = event_frame(batch, matched, settings) if "events" in needs else None
    counted = tuple(sorted(needs - {"events"}))
    present = _present(len(batch.datums), tracks)
    seconds = {"encode": read - begun, "match": time.perf_counter() - read}
    stats = stats_from(present, tracks, counted)
    return Tallies(batch.datums, batch.labels, tracks, stats, present, counted, listed, seconds)


def examine(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> None:
    """Add the notes of encoding and matching to those of the frames, which are used up.

    Raises:
        InputError: as :func:`tally`.
    """
    _matched(_encoded(frames, settings, workers), frames, settings, needs, workers)


def _encoded(frames: Frames, settings: Settings, workers: Workers) -> Batch:
    batch = encode_batch(frames, settings.iou_type, workers)
    if settings.rules.first_frame is not None:
        refuse_frames(batch, settings.rules.first_frame)
    return batch


def _matched(
    batch: Batch, frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> Matched:
    """Match, and add the notes on it to those of the frames."""
    matched = match(batch, settings, needs, workers)
    doubt = disagreement(batch, matched.truth, matched.found, matched.rows, settings.alphas)
    frames.notes += [*matched.notes, *([] if doubt is None else [doubt])]
    return matched


def _present(n_datums: int, tracks: Tracks) -> Array:
    """Standing of each sequence by the sides that have boxes there, int8 [n_datums]."""
    rows = tracks.rows
    truth, found = (
        np.bincount(rows.datum, getattr(rows, name), minlength=n_datums) > 0
        for name in ("truth", "found")
    )
    standing: Array = np.array([[3, 2], [1, 0]], np.int8)[truth.astype(int), found.astype(int)]
    return standing


def stats_from(present: Array, tracks: Tracks, counted: Sequence[str]) -> Stats:
    """The metrics of every sequence, all its labels together.

    Args:
        present: standing of each sequence.
        tracks: the counts.
        counted: what was counted.
    """
    rows = tracks.rows

    def of(name: str) -> Array:
        values = getattr(rows, name)
        out = np.zeros((present.size, *values.shape[1:]), values.dtype)
        np.add.at(out, rows.datum, values)
        return out

    columns: dict[str, tuple[Column, ...]] = {}
    for number in NUMBERS:
        if number.need in counted:
            value = number.formula(of)
            value = value.mean(axis=-1) if number.alphas else value.astype(np.float64)
            values = np.where(number.some(of), value, np.nan)[:, None, None]
            column = Column(metric=number.name, values=values, reason=number.reason)
            columns[number.name] = (column,)
    return Stats(np.ones(present.size, bool), columns, (STATUS, present))


def rows_of(
    name: str, chosen: Callable[[pl.DataFrame], pl.DataFrame]
) -> Callable[[Tallies], pl.DataFrame]:
    """How a frame of rows comes from the events, without rows where nothing was asked for."""

    def rows(tallies: Tallies) -> pl.DataFrame:
        if tallies.events is not None:
            return chosen(tallies.events)
        return empty_frame(name, label=tallies.labels.dtype, datum=tallies.datums.id_dtype)

    return rows


def merge(parts: Sequence[Tallies], settings: Settings) -> Tallies:
    """The tally of all parts.

    Args:
        parts: tallies of disjoint sets of sequences.
        settings: the run's settings.

    Raises:
        InputError: parts that do not go together.
    """
    datums, of_datum = merge_datums([part.datums for part in parts])
    labels, of_label = merge_labels([part.labels for part in parts])
    tracks = merge_tracks([part.tracks for part in parts], of_datum, of_label, labels)
    present = merged_present(parts, of_datum, len(datums))
    listed = [part.events for part in parts if part.events is not None]
    filled = [frame for frame in listed if frame.height] or listed[:1]
    counted = parts[0].counted
    return Tallies(
        datums,
        labels,
        tracks,
        stats_from(present, tracks, counted),
        present,
        counted,
        in_order(pl.concat(filled, how="vertical_relaxed")) if filled else None,
        merged_seconds(parts),
    )
