"""Tracks of one sequence and label against each other: HOTA, CLEAR and identity, as counts.

A unit is a sequence and label. Its frames follow each other, and in each frame rows of both sides
and the pairs of them that overlap. Sources: Luiten et al. 2021 (HOTA), Bernardin and Stiefelhagen
2008 (CLEAR), Ristani et al. 2016 (identity), with the arithmetic of TrackEval.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .assignment import assign, assignment_scratch
from .jit import inner, kernel

Array = np.ndarray[Any, Any]

EPSILON = 2.0**-52
CONTINUED = 1000.0
"""What a pair of the frame before weighs more in CLEAR."""
MOSTLY, PARTLY = 0.8, 0.2
"""Shares of an object's frames above which it is mostly, and from which on partly, tracked."""
MISS, MATCH, SWITCH, FRAGMENT = 0, 1, 2, 4
"""What became of a ground truth in CLEAR; the last two are added to a match."""
TAKEN = 2
"""What becomes of a prediction that matches an ignored ground truth."""


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


@inner
def _most(start: Array, first: int, last: int) -> int:
    """The most rows of a frame."""
    most = 1
    for frame in range(first, last):
        most = max(most, start[frame + 1] - start[frame])
    return most


@inner
def _dense(frames: TrackFrames, frame: int, m: int, out: Array) -> None:
    """The overlaps of a frame, row after row of m, 0 for pairs that are not there."""
    n = frames.truth_start[frame + 1] - frames.truth_start[frame]
    out[: n * m] = 0.0
    for pair in range(frames.pair_start[frame], frames.pair_start[frame + 1]):
        out[frames.truth[pair] * m + frames.found[pair]] = frames.overlap[pair]


@inner
def _short_sum(values: Array, first: int, n: int) -> float:
    """The sum of up to 128 values in the order in which NumPy adds them: eight at a time."""
    if n < 8:
        out = 0.0
        for i in range(first, first + n):
            out += values[i]
        return out
    a, b, c, d = values[first], values[first + 1], values[first + 2], values[first + 3]
    e, f, g, h = values[first + 4], values[first + 5], values[first + 6], values[first + 7]
    whole = n - n % 8
    for i in range(first + 8, first + whole, 8):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        e += values[i + 4]
        f += values[i + 5]
        g += values[i + 6]
        h += values[i + 7]
    out = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(first + whole, first + n):
        out += values[i]
    return out


@inner
def row_sum(values: Array, first: int, n: int) -> float:
    """The sum of values that stand side by side, to the bit as NumPy adds a row.

    Sums decide ties of the assignment, so that their last bits count. Rows of more than 128 are
    halved, at a multiple of eight, until they are short; the halves wait on a stack.
    """
    if n <= 128:
        return _short_sum(values, first, n)
    begin = np.empty(64, np.int64)
    many = np.empty(64, np.int64)
    total = np.empty(64, np.float64)
    stage = np.zeros(64, np.int8)
    begin[0], many[0] = first, n
    depth = 0
    result = 0.0
    while depth >= 0:
        size = many[depth]
        if size <= 128:
            result = _short_sum(values, begin[depth], size)
            depth -= 1
            continue
        half = size // 2
        half -= half % 8
        if stage[depth] == 0:
            stage[depth] = 1
            depth += 1
            begin[depth], many[depth], stage[depth] = begin[depth - 1], half, 0
        elif stage[depth] == 1:
            total[depth] = result
            stage[depth] = 2
            depth += 1
            begin[depth], many[depth], stage[depth] = begin[depth - 1] + half, size - half, 0
        else:
            result = total[depth] + result
            depth -= 1
    return result


@inner
def _align(frames: TrackFrames, unit: int, dense: Array, sums: Array, out: Array) -> None:
    """How well each object and track of a unit go together over all frames.

    Args:
        frames: all units.
        unit: which of them.
        dense: room for the overlaps of a frame.
        sums: room for the rows and for the columns of a frame, float64 [2, k].
        out: float64 [objects, tracks] of zeros.
    """
    n_truth = np.zeros(out.shape[0], np.float64)
    n_found = np.zeros(out.shape[1], np.float64)
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
        _dense(frames, frame, m, dense)
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
            i, j, s = frames.truth[pair], frames.found[pair], frames.overlap[pair]
            either = sums[1, j] + sums[0, i] - s
            if either > EPSILON:
                out[frames.truth_id[g + i], frames.found_id[t + j]] += s / either
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = out[i, j] / (n_truth[i] + n_found[j] - out[i, j])


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
        most_truth = _most(frames.truth_start, begin, end)
        most_found = _most(frames.found_start, begin, end)
        longest = max(most_truth, most_found)
        dense = np.empty(most_truth * most_found, np.float64)
        weight = np.empty(most_truth * most_found, np.float64)
        sums = np.empty((2, longest), np.float64)
        scratch = assignment_scratch(longest)
        column = np.empty(most_truth, np.int32)
        n_truth, n_found = frames.n_truth_ids[unit], frames.n_found_ids[unit]
        aligned = np.zeros((n_truth, n_found), np.float64)
        _align(frames, unit, dense, sums, aligned)
        room = frames.truth_start[end] - frames.truth_start[begin]
        met_place = np.empty(room, np.int32)
        met_overlap = np.empty(room, np.float64)
        place = np.full((n_truth, n_found), -1, np.int32)
        n_met = 0
        n_places = 0
        for frame in range(begin, end):
            pairs = frames.pair_start[frame], frames.pair_start[frame + 1]
            if pairs[0] == pairs[1]:
                continue
            g, t = frames.truth_start[frame], frames.found_start[frame]
            n, m = frames.truth_start[frame + 1] - g, frames.found_start[frame + 1] - t
            _dense(frames, frame, m, dense)
            weight[: n * m] = 0.0
            for pair in range(pairs[0], pairs[1]):
                i, j = frames.truth[pair], frames.found[pair]
                share = aligned[frames.truth_id[g + i], frames.found_id[t + j]]
                weight[i * m + j] = share * frames.overlap[pair]
            assign(weight, n, m, scratch, column)
            for i in range(n):
                j = column[i]
                if j < 0 or dense[i * m + j] < floors[0]:
                    continue
                a, b = frames.truth_id[g + i], frames.found_id[t + j]
                if place[a, b] < 0:
                    place[a, b] = n_places
                    n_places += 1
                met_place[n_met] = place[a, b]
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
        rows_truth = np.zeros(n_truth, np.int64)
        rows_found = np.zeros(n_found, np.int64)
        for g in range(frames.truth_start[begin], frames.truth_start[end]):
            rows_truth[frames.truth_id[g]] += 1
        for t in range(frames.found_start[begin], frames.found_start[end]):
            rows_found[frames.found_id[t]] += 1
        for i in range(n_truth):
            for j in range(n_found):
                if place[i, j] < 0:
                    continue
                for a in range(n_alphas):
                    both = counts[place[i, j], a]
                    out.either[unit, a] += both * (both / (rows_truth[i] + rows_found[j] - both))
                    out.of_truth[unit, a] += both * (both / rows_truth[i])
                    out.of_found[unit, a] += both * (both / rows_found[j])


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
        most_truth = _most(frames.truth_start, begin, end)
        most_found = _most(frames.found_start, begin, end)
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
            _dense(frames, frame, m, dense)
            weight[: n * m] = 0.0
            for pair in range(frames.pair_start[frame], frames.pair_start[frame + 1]):
                i, j, s = frames.truth[pair], frames.found[pair], frames.overlap[pair]
                if s < least:
                    continue
                one = frames.truth_id[g + i]
                same = tracked[one] == number - 1 and last_track[one] == frames.found_id[t + j]
                weight[i * m + j] = CONTINUED + s if same and number > 1 else s
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
def identities(frames: TrackFrames, first: int, last: int, least: float, out: Array) -> None:
    """Rows that objects and tracks have in common, each object being one track at most.

    Whatever the order of ties, the assignment that leaves the fewest rows alone has the most
    in common.

    Args:
        frames: all units.
        first: the first unit of the range.
        last: the one behind it.
        least: overlap from which on a pair counts.
        out: int64 [units], written at the range.
    """
    for unit in range(first, last):
        n, m = frames.n_truth_ids[unit], frames.n_found_ids[unit]
        common = np.zeros(n * m, np.float64)
        for frame in range(frames.start[unit], frames.start[unit + 1]):
            g, t = frames.truth_start[frame], frames.found_start[frame]
            for pair in range(frames.pair_start[frame], frames.pair_start[frame + 1]):
                if frames.overlap[pair] >= least:
                    one = frames.truth_id[g + frames.truth[pair]]
                    common[one * m + frames.found_id[t + frames.found[pair]]] += 1.0
        column = np.empty(n, np.int32)
        assign(common, n, m, assignment_scratch(max(n, m)), column)
        for i in range(n):
            if column[i] >= 0:
                out[unit] += np.int64(common[i * m + column[i]])


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
        most_truth = _most(frames.truth_start, begin, end)
        most_found = _most(frames.found_start, begin, end)
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
