"""Frames of sequences with the rows of both sides in them, and the couples that meet in some.

A unit is a sequence and label. Its frames follow each other, and in each frame rows of both sides
and the pairs of them that overlap. An object and a track that overlap in some frame of their unit
are a couple: far fewer than all objects times all tracks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import inner

Array = np.ndarray[Any, Any]

EPSILON = 2.0**-52


class TrackFrames(NamedTuple):
    """Rows of both sides by unit, frame and row of the table.

    Attributes:
        start: int64 [units + 1], frames of each unit.
        truth_start: int64 [frames + 1], ground truths of each frame.
        found_start: int64 [frames + 1], predictions of each frame.
        pair_start: int64 [frames + 1], pairs of each frame.
        truth: int32 [pairs], the ground truth of each pair, from 0 in its frame.
        found: int32 [pairs], the prediction, likewise; pairs ascend by both.
        overlap: float64 [pairs], how alike they are, in (0, 1].
        truth_id: int32 [n], object of each ground truth, from 0 in its unit.
        found_id: int32 [m], track of each prediction, from 0 in its unit.
        n_truth_ids: int32 [units].
        n_found_ids: int32 [units].
    """

    start: Array
    truth_start: Array
    found_start: Array
    pair_start: Array
    truth: Array
    found: Array
    overlap: Array
    truth_id: Array
    found_id: Array
    n_truth_ids: Array
    n_found_ids: Array


class Couples(NamedTuple):
    """Objects and tracks of a unit that overlap in some frame, by object and track.

    Attributes:
        of_pair: int32 [pairs of the unit], the couple of each pair.
        truth: int32 [couples], their object.
        found: int32 [couples], their track.
    """

    of_pair: Array
    truth: Array
    found: Array


@inner
def by_code(code: Array, n_codes: int, rows: Array) -> Array:
    """Rows by their code, those of one code as they stand.

    Args:
        code: int32, of any row.
        n_codes: how many there are.
        rows: int32 [n].
    """
    start = np.zeros(n_codes + 1, np.int64)
    for row in rows:
        start[code[row] + 1] += 1
    for i in range(n_codes):
        start[i + 1] += start[i]
    out = np.empty(rows.size, np.int32)
    for row in rows:
        out[start[code[row]]] = row
        start[code[row]] += 1
    return out


@inner
def couples_of(frames: TrackFrames, unit: int) -> Couples:
    """The couples of a unit."""
    begin, end = frames.start[unit], frames.start[unit + 1]
    before = frames.pair_start[begin]
    many = frames.pair_start[end] - before
    truth = np.empty(many, np.int32)
    found = np.empty(many, np.int32)
    for frame in range(begin, end):
        g, t = frames.truth_start[frame], frames.found_start[frame]
        for pair in range(frames.pair_start[frame], frames.pair_start[frame + 1]):
            truth[pair - before] = frames.truth_id[g + frames.truth[pair]]
            found[pair - before] = frames.found_id[t + frames.found[pair]]
    rows = by_code(found, frames.n_found_ids[unit], np.arange(many).astype(np.int32))
    rows = by_code(truth, frames.n_truth_ids[unit], rows)
    of_pair = np.empty(many, np.int32)
    first = np.empty(many, np.int32)
    n = 0
    for k in range(many):
        row = rows[k]
        if n == 0 or truth[row] != truth[first[n - 1]] or found[row] != found[first[n - 1]]:
            first[n] = row
            n += 1
        of_pair[row] = n - 1
    return Couples(of_pair, truth[first[:n]], found[first[:n]])


@inner
def most_rows(start: Array, first: int, last: int) -> int:
    """The most rows of a frame."""
    most = 1
    for frame in range(first, last):
        most = max(most, start[frame + 1] - start[frame])
    return most


@inner
def dense_overlaps(frames: TrackFrames, frame: int, m: int, out: Array) -> None:
    """The overlaps of a frame, row after row of m, 0 for pairs that are not there."""
    n = frames.truth_start[frame + 1] - frames.truth_start[frame]
    out[: n * m] = 0.0
    for pair in range(frames.pair_start[frame], frames.pair_start[frame + 1]):
        out[frames.truth[pair] * m + frames.found[pair]] = frames.overlap[pair]
