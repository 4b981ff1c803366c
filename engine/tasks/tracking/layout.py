"""Lay out: rows of both sides by unit (a sequence and label), frame and row, and what overlaps."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest.codes import encode
from ...kernels.boxes_in_frames import Boxes, pairs_of
from ...kernels.jit import frozen
from ...kernels.order import group_by_label
from ...kernels.track_frames import TrackFrames
from ..workers import Workers
from .encode import Side
from .masks import shared

Array = np.ndarray[Any, Any]


class LaidOut(msgspec.Struct, frozen=True):
    """Both sides by unit and frame.

    Attributes:
        datum: int32 [units], code of the sequence.
        label: int32 [units], label code.
        frames: rows and pairs, as the kernels take them.
        truth_row: int64 [n], row in the table of each ground truth.
        found_row: int64 [m], of each prediction.
        offsets: int64 [units + 1], rows of both sides before each unit: what its work goes by.
    """

    datum: Array
    label: Array
    frames: TrackFrames
    truth_row: Array
    found_row: Array
    offsets: Array

    def some(self, truth: Array, found: Array) -> LaidOut:
        """What is left with some of the rows, as if these were all there are.

        Args:
            truth: bool [n], which ground truths, by row of their table; rows are told among these.
            found: bool [m], which predictions, likewise.
        """
        frames = self.frames
        kept = [chosen[row] for chosen, row in ((truth, self.truth_row), (found, self.found_row))]
        starts = [frames.truth_start, frames.found_start]
        place = [np.r_[0, np.cumsum(own)] for own in kept]
        rows = [at[start] for at, start in zip(place, starts, strict=True)]
        filled = (np.diff(rows[0]) + np.diff(rows[1])) > 0
        filled_before = np.r_[0, np.cumsum(filled)][frames.start]
        units = np.diff(filled_before) > 0
        of_frame = np.repeat(np.cumsum(units) - 1, np.diff(frames.start))
        of_pair = np.repeat(np.arange(filled.size), np.diff(frames.pair_start))
        ids = [
            _ids(code[own], np.repeat(of_frame, np.diff(start))[own], int(units.sum()))
            for code, own, start in zip(
                (frames.truth_id, frames.found_id), kept, starts, strict=True
            )
        ]
        at = [
            start[of_pair] + own
            for start, own in zip(starts, (frames.truth, frames.found), strict=True)
        ]
        pairs = np.flatnonzero(kept[0][at[0]] & kept[1][at[1]])
        pair_start = np.r_[0, np.cumsum(kept[0][at[0]] & kept[1][at[1]])][frames.pair_start]
        pair = [
            (before[place_of[pairs]] - first[of_pair[pairs]]).astype(np.int32)
            for before, place_of, first in zip(place, at, rows, strict=True)
        ]

        def left(start: Array) -> Array:
            """Starts of the frames that are left: those without rows add nothing."""
            out: Array = np.r_[start[:-1][filled], start[-1]]
            return out

        start = np.r_[filled_before[:-1][units], filled_before[-1]]
        truth_start, found_start = left(rows[0]), left(rows[1])
        overlap = frames.overlap[pairs]
        (truth_id, n_truth_ids), (found_id, n_found_ids) = ids
        parts = (
            *(start, truth_start, found_start, left(pair_start), *pair, overlap),
            *(truth_id, found_id, n_truth_ids, n_found_ids),
        )
        order = [
            (np.cumsum(chosen) - 1)[row[own]]
            for chosen, row, own in zip(
                (truth, found), (self.truth_row, self.found_row), kept, strict=True
            )
        ]
        return LaidOut(
            datum=self.datum[units],
            label=self.label[units],
            frames=TrackFrames(*(frozen(part, part.dtype) for part in parts)),
            truth_row=order[0],
            found_row=order[1],
            offsets=truth_start[start] + found_start[start],
        )


def lay_out(truth: Side, found: Side, workers: Workers) -> LaidOut:
    """Both sides by unit and frame.

    Args:
        truth: ground truths.
        found: predictions.
        workers: compute overlaps side by side.
    """
    n_labels = int(max(truth.label.max(initial=0), found.label.max(initial=0))) + 1
    sides = (truth, found)
    numbers, frame_codes = coded([side.frame for side in sides])
    unit, units = coded([side.datum.astype(np.int64) * n_labels + side.label for side in sides])
    many = max(1, numbers.size)
    keys = [own.astype(np.int64) * many + at for own, at in zip(units, frame_codes, strict=True)]
    both, codes = coded(keys)
    start = np.searchsorted(both, np.arange(unit.size + 1) * many)
    rows, order = zip(*(_by_code(code, both.size) for code in codes), strict=True)
    laid_units = [own[at] for own, at in zip(units, order, strict=True)]
    ids, n_ids = zip(
        *(
            _ids(side.id[own], at, unit.size)
            for side, own, at in zip(sides, order, laid_units, strict=True)
        ),
        strict=True,
    )
    boxes = [Boxes.of(side.boxes[own]) for side, own in zip((truth, found), order, strict=True)]
    pairs = pairs_of(rows[0], rows[1], boxes[0], boxes[1], workers.over)
    if truth.masks is not None and found.masks is not None:
        frame = np.repeat(np.arange(both.size), np.diff(pairs[0]))
        place = [own[at[frame] + of] for own, at, of in zip(order, rows, pairs[1:3], strict=True)]
        common = shared(found.masks, truth.masks, place[1], place[0], workers)
        union = truth.masks.area[place[0]] + found.masks.area[place[1]] - common
        some = np.flatnonzero(common)
        before = np.r_[0, np.cumsum(common > 0)][pairs[0]]
        pairs = before, pairs[1][some], pairs[2][some], common[some] / union[some]
    parts = (start, rows[0], rows[1], *pairs, *ids, *n_ids)
    frames = TrackFrames(*(frozen(part, part.dtype) for part in parts))
    return LaidOut(
        datum=(unit // n_labels).astype(np.int32),
        label=(unit % n_labels).astype(np.int32),
        frames=frames,
        truth_row=order[0],
        found_row=order[1],
        offsets=rows[0][start] + rows[1][start],
    )


def coded(columns: list[Array]) -> tuple[Array, list[Array]]:
    """The distinct values of integer columns, ascending, and int32 codes of each column."""
    values, codes = encode([pl.Series("value", column) for column in columns])
    return values.to_numpy(), codes


def _by_code(code: Array, n_codes: int) -> tuple[Array, Array]:
    """Rows before each code, int64 [n_codes + 1], and the rows by code, int32 [n]."""
    start, place = group_by_label(np.zeros(code.size, np.int32), code, 1, n_codes)
    order = np.empty(code.size, np.int32)
    order[place] = np.arange(code.size, dtype=np.int32)
    return start, order


def _ids(ids: Array, unit: Array, n_units: int) -> tuple[Array, Array]:
    """Ids from 0 in each unit.

    Args:
        ids: int32 [n], codes over all units.
        unit: int32 [n].
        n_units: number of units.

    Returns:
        int32 [n], the code of each row in its unit; int32 [n_units], how many there are.
    """
    width = int(ids.max(initial=0)) + 1
    there, (at,) = coded([unit.astype(np.int64) * width + ids])
    count = np.bincount(there // width, minlength=n_units)
    before = np.cumsum(count) - count
    return (at - before[unit]).astype(np.int32), count.astype(np.int32)
