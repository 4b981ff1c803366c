"""Lay out: rows of both sides by unit (a sequence and label), frame and row, and what overlaps."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ...kernels.boxes_in_frames import Boxes, pairs_of
from ...kernels.jit import frozen
from ...kernels.tracking import TrackFrames
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
        number: int64 [frames], the number of each frame.
        truth_row: int64 [n], row in the table of each ground truth.
        found_row: int64 [m], of each prediction.
        offsets: int64 [units + 1], rows of both sides before each unit: what its work goes by.
    """

    datum: Array
    label: Array
    frames: TrackFrames
    number: Array
    truth_row: Array
    found_row: Array
    offsets: Array


def lay_out(truth: Side, found: Side, workers: Workers) -> LaidOut:
    """Both sides by unit and frame.

    Args:
        truth: ground truths.
        found: predictions.
        workers: compute overlaps side by side.
    """
    n_labels = int(max(truth.label.max(initial=0), found.label.max(initial=0))) + 1
    numbers, code = np.unique(np.concatenate([truth.frame, found.frame]), return_inverse=True)
    codes = code[: truth.frame.size], code[truth.frame.size :]
    many = max(1, numbers.size)
    units = [side.datum.astype(np.int64) * n_labels + side.label for side in (truth, found)]
    keys = [unit * many + own for unit, own in zip(units, codes, strict=True)]
    order = [np.argsort(key, kind="stable") for key in keys]
    ranked = [key[own] for key, own in zip(keys, order, strict=True)]
    both = np.union1d(*ranked)
    unit = np.unique(both // many)
    start = np.r_[np.searchsorted(both, unit * many), both.size].astype(np.int64)
    rows = [np.r_[np.searchsorted(own, both), own.size].astype(np.int64) for own in ranked]
    ids, n_ids = zip(
        *(
            _ids(side.id[own], np.searchsorted(unit, of[own]), unit.size)
            for side, own, of in zip((truth, found), order, units, strict=True)
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
        number=numbers[both % many],
        truth_row=order[0],
        found_row=order[1],
        offsets=rows[0][start] + rows[1][start],
    )


def _ids(ids: Array, unit: Array, n_units: int) -> tuple[Array, Array]:
    """Ids from 0 in each unit.

    Args:
        ids: int32 [n], codes over all units.
        unit: int64 [n].
        n_units: number of units.

    Returns:
        int32 [n], the code of each row in its unit; int32 [n_units], how many there are.
    """
    width = int(ids.max(initial=0)) + 1
    there, at = np.unique(unit * width + ids, return_inverse=True)
    count = np.bincount(there // width, minlength=n_units)
    before = np.cumsum(count) - count
    return (at - before[unit]).astype(np.int32), count.astype(np.int32)
