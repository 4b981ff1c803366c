"""CLEAR: matches frame by frame, those of the frame before first (Bernardin and Stiefelhagen 2008).

The arithmetic is TrackEval's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .assignment import assign, assignment_scratch
from .jit import kernel
from .track_frames import EPSILON, TrackFrames, dense_overlaps, most_rows

Array = np.ndarray[Any, Any]

CONTINUED = 1000.0
"""What a pair of the frame before weighs more in CLEAR."""
MOSTLY, PARTLY = 0.8, 0.2
"""Shares of an object's frames above which it is mostly, and from which on partly, tracked."""
MISS, MATCH, SWITCH, FRAGMENT = 0, 1, 2, 4
"""What became of a ground truth in CLEAR; the last two are added to a match."""
TAKEN = 2
"""What becomes of a prediction that matches an ignored ground truth."""


class ClearCounts(NamedTuple):
    """What CLEAR counts by unit, int64 [units] each but for the overlaps.

    Attributes:
        tp: pairs that match.
        switches: matches of an object whose track before was another one.
        fragments: how often objects are found again.
        mostly: objects that are matched in most of their frames.
        partly: objects that are in some.
        lost: all other objects.
        overlap: float64, sum of the overlaps of pairs that match.
    """

    tp: Array
    switches: Array
    fragments: Array
    mostly: Array
    partly: Array
    lost: Array
    overlap: Array


class ClearEvents(NamedTuple):
    """What became of single ground truths.

    Attributes:
        event: uint8 [n], sums of ``MATCH``, ``SWITCH`` and ``FRAGMENT``.
        met: int64 [n], the prediction that each meets, its place in the layout, -1 for none.
        before: int32 [n], the track from which it switched, -1 for none.
        overlap: float64 [n], of the match, NaN without one.
    """

    event: Array
    met: Array
    before: Array
    overlap: Array


@kernel
def clear(
    frames: TrackFrames, first: int, last: int, least: float, out: ClearCounts, events: ClearEvents
) -> None:
    """CLEAR's counts of a range of units, and what became of their rows.

    Args:
        frames: all units.
        first: the first unit of the range.
        last: the one behind it.
        least: overlap from which on a pair may match, less an epsilon.
        out: written at the range.
        events: written at its rows.
    """
    for unit in range(first, last):
        begin, end = frames.start[unit], frames.start[unit + 1]
        most_truth = most_rows(frames.truth_start, begin, end)
        most_found = most_rows(frames.found_start, begin, end)
        weight = np.empty(most_truth * most_found, np.float64)
        dense = np.empty(most_truth * most_found, np.float64)
        scratch = assignment_scratch(max(most_truth, most_found))
        column = np.empty(most_truth, np.int32)
        n_ids = frames.n_truth_ids[unit]
        frames_of = np.zeros(n_ids, np.int64)
        matched = np.zeros(n_ids, np.int64)
        begun = np.zeros(n_ids, np.int64)
        last_track = np.full(n_ids, -1, np.int32)  # whenever that was
        tracked = np.full(n_ids, -1, np.int64)  # number of the frame in which it was last matched
        number = 0  # of frames that have rows of both sides
        for frame in range(begin, end):
            g, t = frames.truth_start[frame], frames.found_start[frame]
            n, m = frames.truth_start[frame + 1] - g, frames.found_start[frame + 1] - t
            for i in range(n):
                frames_of[frames.truth_id[g + i]] += 1
            if n == 0 or m == 0:  # what was matched in the frame before stays as it was
                continue
            number += 1
            dense_overlaps(frames, frame, m, dense)
            weight[: n * m] = 0.0
            for pair in range(frames.pair_start[frame], frames.pair_start[frame + 1]):
                i, j, s = frames.truth[pair], frames.found[pair], frames.overlap[pair]
                if s < least:
                    continue
                one = frames.truth_id[g + i]
                same = tracked[one] == number - 1 and last_track[one] == frames.found_id[t + j]
                weight[i * m + j] = CONTINUED + s if same else s
            assign(weight, n, m, scratch, column)
            for i in range(n):
                j = column[i]
                if j < 0 or not weight[i * m + j] > EPSILON:
                    continue
                one, track = frames.truth_id[g + i], frames.found_id[t + j]
                event = MATCH
                before = last_track[one]
                if before >= 0 and before != track:
                    event += SWITCH
                    events.before[g + i] = before
                    out.switches[unit] += 1
                if before < 0 or tracked[one] != number - 1:
                    begun[one] += 1
                    if before >= 0:
                        event += FRAGMENT
                last_track[one] = track
                tracked[one] = number
                matched[one] += 1
                events.event[g + i] = event
                events.met[g + i] = t + j
                events.overlap[g + i] = dense[i * m + j]
                out.tp[unit] += 1
                out.overlap[unit] += dense[i * m + j]
        for one in range(n_ids):
            share = matched[one] / frames_of[one]
            if share > MOSTLY:
                out.mostly[unit] += 1
            elif share >= PARTLY:
                out.partly[unit] += 1
            else:
                out.lost[unit] += 1
            out.fragments[unit] += max(0, begun[one] - 1)


@kernel
def absorbed(
    frames: TrackFrames, first: int, last: int, ignored: Array, least: float, out: Array
) -> None:
    """Which predictions match a ground truth, and which an ignored one, each frame by itself.

    Args:
        frames: all units.
        first: the first unit of the range.
        last: the one behind it.
        ignored: bool [n], of ground truths.
        least: overlap from which on a pair may match, less an epsilon.
        out: uint8 [m], ``MATCH``, or ``TAKEN`` where that is ignored, at the range's predictions.
    """
    for unit in range(first, last):
        begin, end = frames.start[unit], frames.start[unit + 1]
        most_truth = most_rows(frames.truth_start, begin, end)
        most_found = most_rows(frames.found_start, begin, end)
        weight = np.empty(most_truth * most_found, np.float64)
        scratch = assignment_scratch(max(most_truth, most_found))
        column = np.empty(most_truth, np.int32)
        for frame in range(begin, end):
            g, t = frames.truth_start[frame], frames.found_start[frame]
            n, m = frames.truth_start[frame + 1] - g, frames.found_start[frame + 1] - t
            if n == 0 or m == 0:
                continue
            weight[: n * m] = 0.0
            for pair in range(frames.pair_start[frame], frames.pair_start[frame + 1]):
                if frames.overlap[pair] >= least:
                    at = frames.truth[pair] * m + frames.found[pair]
                    weight[at] = frames.overlap[pair]
            assign(weight, n, m, scratch, column)
            for i in range(n):
                j = column[i]
                if j >= 0 and weight[i * m + j] > EPSILON:
                    out[t + j] = TAKEN if ignored[g + i] else MATCH
