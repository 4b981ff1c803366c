"""HOTA: matches of all frames, and what their objects and tracks have in common (Luiten 2021).

The arithmetic is TrackEval's, sums in its order, since their last bits decide ties.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .assignment import assign, assignment_scratch
from .jit import inner, kernel
from .row_sums import row_sum
from .track_frames import EPSILON, Couples, TrackFrames, couples_of, dense_overlaps, most_rows

Array = np.ndarray[Any, Any]


@inner
def _align(frames: TrackFrames, unit: int, couples: Couples, dense: Array, sums: Array) -> Array:
    """How well each couple of a unit goes together over all frames, float64 [couples].

    Args:
        frames: all units.
        unit: which of them.
        couples: its couples.
        dense: room for the overlaps of a frame.
        sums: room for the rows and for the columns of a frame, float64 [2, k].
    """
    n_truth = np.zeros(frames.n_truth_ids[unit], np.float64)
    n_found = np.zeros(frames.n_found_ids[unit], np.float64)
    out = np.zeros(couples.truth.size, np.float64)
    before = frames.pair_start[frames.start[unit]]
    for frame in range(frames.start[unit], frames.start[unit + 1]):
        g, t = frames.truth_start[frame], frames.found_start[frame]
        n, m = frames.truth_start[frame + 1] - g, frames.found_start[frame + 1] - t
        for i in range(n):
            n_truth[frames.truth_id[g + i]] += 1.0
        for j in range(m):
            n_found[frames.found_id[t + j]] += 1.0
        first, last = frames.pair_start[frame], frames.pair_start[frame + 1]
        if first == last:
            continue
        dense_overlaps(frames, frame, m, dense)
        for i in range(n):
            sums[0, i] = row_sum(dense, i * m, m)
        if m == 1:  # NumPy takes one column for a row
            sums[1, 0] = row_sum(dense, 0, n)
        else:
            for j in range(m):
                total = dense[j]
                for i in range(1, n):
                    total += dense[i * m + j]
                sums[1, j] = total
        for pair in range(first, last):
            s = frames.overlap[pair]
            either = sums[1, frames.found[pair]] + sums[0, frames.truth[pair]] - s
            if either > EPSILON:
                out[couples.of_pair[pair - before]] += s / either
    for c in range(out.size):
        out[c] = out[c] / (n_truth[couples.truth[c]] + n_found[couples.found[c]] - out[c])
    return out


class HotaSums(NamedTuple):
    """What HOTA sums by unit and alpha.

    Attributes:
        tp: int64 [units, alphas], pairs that match.
        overlap: float64 [units, alphas], their overlaps.
        either: float64, over matches the share that the two have in common of all rows of either.
        of_truth: float64, the same of the rows of the object alone.
        of_found: float64, the same of the rows of the track alone.
    """

    tp: Array
    overlap: Array
    either: Array
    of_truth: Array
    of_found: Array


@kernel
def hota(frames: TrackFrames, first: int, last: int, floors: Array, out: HotaSums) -> None:
    """HOTA's sums of a range of units.

    Args:
        frames: all units.
        first: the first unit of the range.
        last: the one behind it.
        floors: float64 [alphas], the least overlap of a match at each alpha, ascending.
        out: written at the range.
    """
    n_alphas = floors.size
    for unit in range(first, last):
        begin, end = frames.start[unit], frames.start[unit + 1]
        most_truth = most_rows(frames.truth_start, begin, end)
        most_found = most_rows(frames.found_start, begin, end)
        longest = max(most_truth, most_found)
        dense = np.empty(most_truth * most_found, np.float64)
        weight = np.empty(most_truth * most_found, np.float64)
        sums = np.empty((2, longest), np.float64)
        scratch = assignment_scratch(longest)
        column = np.empty(most_truth, np.int32)
        couples = couples_of(frames, unit)
        aligned = _align(frames, unit, couples, dense, sums)
        before = frames.pair_start[begin]
        couple_at = np.empty(most_truth * most_found, np.int32)
        room = frames.truth_start[end] - frames.truth_start[begin]
        met_place = np.empty(room, np.int32)
        met_overlap = np.empty(room, np.float64)
        place = np.full(couples.truth.size, -1, np.int32)
        n_met = 0
        n_places = 0
        for frame in range(begin, end):
            pairs = frames.pair_start[frame], frames.pair_start[frame + 1]
            if pairs[0] == pairs[1]:
                continue
            g, t = frames.truth_start[frame], frames.found_start[frame]
            n, m = frames.truth_start[frame + 1] - g, frames.found_start[frame + 1] - t
            dense_overlaps(frames, frame, m, dense)
            weight[: n * m] = 0.0
            for pair in range(pairs[0], pairs[1]):
                i, j = frames.truth[pair], frames.found[pair]
                couple = couples.of_pair[pair - before]
                weight[i * m + j] = aligned[couple] * frames.overlap[pair]
                couple_at[i * m + j] = couple
            assign(weight, n, m, scratch, column)
            for i in range(n):
                j = column[i]
                if j < 0 or dense[i * m + j] < floors[0]:
                    continue
                couple = couple_at[i * m + j]
                if place[couple] < 0:
                    place[couple] = n_places
                    n_places += 1
                met_place[n_met] = place[couple]
                met_overlap[n_met] = dense[i * m + j]
                n_met += 1
        counts = np.zeros((n_places, n_alphas), np.int64)
        for k in range(n_met):
            for a in range(n_alphas):
                if met_overlap[k] < floors[a]:
                    break
                counts[met_place[k], a] += 1
                out.tp[unit, a] += 1
                out.overlap[unit, a] += met_overlap[k]
        rows_truth = np.zeros(frames.n_truth_ids[unit], np.int64)
        rows_found = np.zeros(frames.n_found_ids[unit], np.int64)
        for g in range(frames.truth_start[begin], frames.truth_start[end]):
            rows_truth[frames.truth_id[g]] += 1
        for t in range(frames.found_start[begin], frames.found_start[end]):
            rows_found[frames.found_id[t]] += 1
        for c in range(place.size):
            if place[c] < 0:
                continue
            n_object, n_track = rows_truth[couples.truth[c]], rows_found[couples.found[c]]
            for a in range(n_alphas):
                both = counts[place[c], a]
                out.either[unit, a] += both * (both / (n_object + n_track - both))
                out.of_truth[unit, a] += both * (both / n_object)
                out.of_found[unit, a] += both * (both / n_track)
