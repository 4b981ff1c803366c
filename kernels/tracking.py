"""Tracks: pairs per video frame, assignment, CLEAR, HOTA and identity counts.

Arguments of these names are the same everywhere:

    first, last: range [first, last) of units, for which outputs are written.
    least: smallest overlap of a match, minus an epsilon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .boxes import Over, box_iou
from .jit import F64, I32, I64, Array, allocating, inner, kernel
from .sums import row_sum

# Pairs of boxes that overlap in the same frame, and their IoU.

_EPSILON = 2.0**-52  # boxes of no greater area overlap with no box


class Boxes(NamedTuple):
    """Boxes by frame."""

    corners: F64  # [n, 4]: xmin, ymin, xmax, ymax
    area: F64  # [n]

    @staticmethod
    def of(corners: Array) -> Boxes:
        width, height = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
        return Boxes(corners, width * height)


@kernel
def _overlapping(
    first: int,
    last: int,
    truth_start: I64,
    track_start: I64,
    truth: Boxes,
    track: Boxes,
    pair_start: Array,
    out: tuple[Array, Array, Array],
) -> None:
    """Count the pairs of frames into ``pair_start``, shifted by one; or write them.

    They are written if the outputs have room, after counting.
    """
    pair_truth, pair_track, overlap = out
    write = overlap.size > 0
    for frame in range(first, last):
        g, t = truth_start[frame], track_start[frame]
        at = pair_start[frame]
        many = 0
        for i in range(g, truth_start[frame + 1]):
            if truth.area[i] <= _EPSILON:
                continue
            xmin, ymin = truth.corners[i, 0], truth.corners[i, 1]
            xmax, ymax = truth.corners[i, 2], truth.corners[i, 3]
            for j in range(t, track_start[frame + 1]):
                if track.area[j] <= _EPSILON:
                    continue
                iou = box_iou(
                    xmin, ymin, xmax, ymax, truth.area[i], track.corners, track.area, j, False
                )
                if iou <= 0.0:
                    continue
                if write:
                    pair_truth[at + many] = i - g
                    pair_track[at + many] = j - t
                    overlap[at + many] = iou
                many += 1
        if not write:
            pair_start[frame + 1] = many


def pairs_of(
    truth_start: Array, track_start: Array, truth: Boxes, track: Boxes, over: Over
) -> tuple[Array, Array, Array, Array]:
    """Find pairs of boxes that overlap, frame by frame, row by row.

    Args:
        truth_start: int64 [frames + 1], offsets of the first side's boxes.
        track_start: int64 [frames + 1], of the other side.
        over: calls a function on ranges of frames with CSR offsets, possibly in parallel.

    Returns:
        int64 [frames + 1], offsets of the pairs; int32 [p], the row of either side of each, from 0
        in its frame; float64 [p], its IoU.
    """
    many = np.zeros(truth_start.size, np.int64)
    none = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float64)
    offsets = truth_start + track_start

    def run(place: Array, out: tuple[Array, Array, Array]) -> None:
        over(
            offsets,
            lambda first, last: _overlapping(
                first, last, truth_start, track_start, truth, track, place, out
            ),
        )

    run(many, none)
    start = np.cumsum(many)
    n = int(start[-1])
    out = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float64)
    if n:
        run(start, out)
    return start, *out


# Assignment of rows to columns of the largest total weight, by shortest augmenting paths: Crouse
# 2016, On implementing 2D rectangular assignment algorithms. Ties are resolved as in SciPy's
# ``linear_sum_assignment``: rows of the shorter side are added in order; columns are searched from
# the last; of equally far columns the last free one, else the first, is next.


class AssignmentScratch(NamedTuple):
    """Scratch memory of an assignment; each array is as long as the longer side."""

    u: Array  # float64, dual value of each row
    v: Array  # float64, dual value of each column
    far: Array  # float64, length of the shortest path to each column
    path: Array  # int32, the row before each column on it
    column_of: Array  # int32, column of each row
    row_of: Array  # int32, row of each column
    left: Array  # int32, columns not reached yet
    reached_row: Array  # bool
    reached_column: Array  # bool


@allocating
def assignment_scratch(n: int) -> AssignmentScratch:
    """Scratch memory for sides of up to n."""
    return AssignmentScratch(
        np.empty(n, np.float64),
        np.empty(n, np.float64),
        np.empty(n, np.float64),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.bool_),
        np.empty(n, np.bool_),
    )


@inner
def assign(weight: Array, n: int, m: int, scratch: AssignmentScratch, out: Array) -> None:
    """Assign n rows to different columns of m, as many as possible, at the largest total weight.

    Args:
        weight: float64 [n * m or more], row after row; finite.
        scratch: memory for the longer side.
        out: int32 [n or more], the column of each row, -1 for none.
    """
    u, v, far, path, column_of, row_of, left, reached_row, reached_column = scratch
    turned = n > m
    n_rows, n_columns = (m, n) if turned else (n, m)
    down, right = (1, m) if turned else (m, 1)
    u[:n_rows] = 0.0
    v[:n_columns] = 0.0
    column_of[:n_rows] = -1
    row_of[:n_columns] = -1
    for new in range(n_rows):
        for at in range(n_columns):
            left[at] = n_columns - 1 - at
        far[:n_columns] = np.inf
        reached_row[:n_rows] = False
        reached_column[:n_columns] = False
        n_left = n_columns
        length = 0.0
        row = new
        end = -1
        while end < 0:
            reached_row[row] = True
            least = np.inf
            best = -1
            for at in range(n_left):
                column = left[at]
                cost = -weight[row * down + column * right]
                through = length + cost - u[row] - v[column]
                if through < far[column]:
                    far[column] = through
                    path[column] = row
                if far[column] < least or (far[column] == least and row_of[column] < 0):
                    least = far[column]
                    best = at
            length = least
            column = left[best]
            n_left -= 1
            left[best] = left[n_left]
            reached_column[column] = True
            if row_of[column] < 0:
                end = column
            else:
                row = row_of[column]
        u[new] += length
        for i in range(n_rows):
            if reached_row[i] and i != new:
                u[i] += length - far[column_of[i]]
        for j in range(n_columns):
            if reached_column[j]:
                v[j] -= length - far[j]
        column = end
        while True:
            row = path[column]
            row_of[column] = row
            before = column_of[row]
            column_of[row] = column
            if row == new:
                break
            column = before
    for i in range(n):
        out[i] = row_of[i] if turned else column_of[i]


# Rows of both sides by unit (a sequence and label) and frame. An object and a track that overlap in
# some frame of their unit are a couple: far fewer than all objects times all tracks.

EPSILON = 2.0**-52


class TrackFrames(NamedTuple):
    """Rows of both sides by unit, frame and row of the table."""

    start: I64  # [units + 1], frames of each unit
    truth_start: I64  # [frames + 1], ground truths of each frame
    track_start: I64  # [frames + 1], predictions of each frame
    pair_start: I64  # [frames + 1], pairs of each frame
    truth: I32  # [pairs], the ground truth of each pair, from 0 in its frame
    track: I32  # [pairs], the same of the prediction; pairs ascend by both
    overlap: F64  # [pairs], similarity, in (0, 1]
    truth_id: I32  # [n], object of each ground truth, from 0 in its unit
    track_id: I32  # [m], track of each prediction, from 0 in its unit
    n_truth_ids: I32  # [units]
    n_track_ids: I32  # [units]


class Couples(NamedTuple):
    """Objects and tracks of a unit that overlap in some frame, by object and track."""

    of_pair: Array  # int32 [pairs of the unit], the couple of each pair
    truth: Array  # int32 [couples], their object
    track: Array  # int32 [couples], their track


@allocating
def by_code(code: Array, n_codes: int, rows: Array) -> Array:
    """Group ``rows`` by their code, in their order; ``code`` int32 is of any row."""
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


@allocating
def couples_of(frames: TrackFrames, unit: int) -> Couples:
    begin, end = frames.start[unit], frames.start[unit + 1]
    before = frames.pair_start[begin]
    many = frames.pair_start[end] - before
    truth = np.empty(many, np.int32)
    predicted = np.empty(many, np.int32)
    for frame in range(begin, end):
        g, t = frames.truth_start[frame], frames.track_start[frame]
        for pair in range(frames.pair_start[frame], frames.pair_start[frame + 1]):
            truth[pair - before] = frames.truth_id[g + frames.truth[pair]]
            predicted[pair - before] = frames.track_id[t + frames.track[pair]]
    rows = by_code(predicted, frames.n_track_ids[unit], np.arange(many).astype(np.int32))
    rows = by_code(truth, frames.n_truth_ids[unit], rows)
    of_pair = np.empty(many, np.int32)
    first = np.empty(many, np.int32)
    n = 0
    for k in range(many):
        row = rows[k]
        if n == 0 or truth[row] != truth[first[n - 1]] or predicted[row] != predicted[first[n - 1]]:
            first[n] = row
            n += 1
        of_pair[row] = n - 1
    return Couples(of_pair, truth[first[:n]], predicted[first[:n]])


@inner
def most_rows(start: Array, first: int, last: int) -> int:
    """Highest number of rows of a frame."""
    most = 1
    for frame in range(first, last):
        most = max(most, start[frame + 1] - start[frame])
    return most


@inner
def dense_overlaps(frames: TrackFrames, frame: int, m: int, out: Array) -> None:
    """Overlaps of a frame, row after row of m, 0 for missing pairs."""
    n = frames.truth_start[frame + 1] - frames.truth_start[frame]
    out[: n * m] = 0.0
    for pair in range(frames.pair_start[frame], frames.pair_start[frame + 1]):
        out[frames.truth[pair] * m + frames.track[pair]] = frames.overlap[pair]


# CLEAR: matches frame by frame, those of the previous frame first (Bernardin and Stiefelhagen
# 2008), with TrackEval's arithmetic.

CONTINUED = 1000.0
"""Extra weight in CLEAR of a pair of the previous frame."""
MOSTLY, PARTLY = 0.8, 0.2
"""Shares of an object's frames above which it is mostly, and from which on partly, tracked."""
MISS, MATCH, SWITCH, FRAGMENT = 0, 1, 2, 4
"""Outcome of a ground truth in CLEAR; the last two are added to a match."""
TAKEN = 2
"""Outcome of a prediction that matches an ignored ground truth."""


class ClearCounts(NamedTuple):
    """Counts of CLEAR by unit, int64 [units] each except the overlaps."""

    tp: Array  # pairs that match
    switches: Array  # matches of an object whose previous track was another one
    fragments: Array  # how often objects are found again
    mostly: Array  # objects that are matched in most of their frames
    partly: Array  # objects that are in some
    lost: Array  # all other objects
    overlap: Array  # float64, sum of the overlaps of pairs that match


class ClearEvents(NamedTuple):
    """Outcomes of single ground truths."""

    event: Array  # uint8 [n], sums of ``MATCH``, ``SWITCH`` and ``FRAGMENT``
    met: Array  # int64 [n], the matched prediction's place in the layout, -1 for none
    before: Array  # int32 [n], the track from which it switched, -1 for none
    overlap: Array  # float64 [n], of the match, NaN without one


@kernel
def clear(
    frames: TrackFrames, first: int, last: int, least: float, out: ClearCounts, events: ClearEvents
) -> None:
    """Count a range of units for CLEAR, and record the outcomes of their rows."""
    for unit in range(first, last):
        begin, end = frames.start[unit], frames.start[unit + 1]
        most_truth = most_rows(frames.truth_start, begin, end)
        most_track = most_rows(frames.track_start, begin, end)
        weight = np.empty(most_truth * most_track, np.float64)
        dense = np.empty(most_truth * most_track, np.float64)
        scratch = assignment_scratch(max(most_truth, most_track))
        column = np.empty(most_truth, np.int32)
        n_ids = frames.n_truth_ids[unit]
        frames_of = np.zeros(n_ids, np.int64)
        matched = np.zeros(n_ids, np.int64)
        begun = np.zeros(n_ids, np.int64)
        last_track = np.full(n_ids, -1, np.int32)  # whenever that was
        tracked = np.full(n_ids, -1, np.int64)  # number of the frame in which it was last matched
        number = 0  # of frames that have rows of both sides
        for frame in range(begin, end):
            g, t = frames.truth_start[frame], frames.track_start[frame]
            n, m = frames.truth_start[frame + 1] - g, frames.track_start[frame + 1] - t
            for i in range(n):
                frames_of[frames.truth_id[g + i]] += 1
            if n == 0 or m == 0:  # a match of the previous frame remains
                continue
            number += 1
            dense_overlaps(frames, frame, m, dense)
            weight[: n * m] = 0.0
            for pair in range(frames.pair_start[frame], frames.pair_start[frame + 1]):
                i, j, s = frames.truth[pair], frames.track[pair], frames.overlap[pair]
                if s < least:
                    continue
                one = frames.truth_id[g + i]
                same = tracked[one] == number - 1 and last_track[one] == frames.track_id[t + j]
                weight[i * m + j] = CONTINUED + s if same else s
            assign(weight, n, m, scratch, column)
            for i in range(n):
                j = column[i]
                if j < 0 or not weight[i * m + j] > EPSILON:
                    continue
                one, track = frames.truth_id[g + i], frames.track_id[t + j]
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
    """Flags of predictions that match a ground truth, and an ignored one, per frame.

    Args:
        ignored: bool [n], of ground truths.
        out: uint8 [m], ``MATCH``, or ``TAKEN`` if the ground truth is ignored.
    """
    for unit in range(first, last):
        begin, end = frames.start[unit], frames.start[unit + 1]
        most_truth = most_rows(frames.truth_start, begin, end)
        most_track = most_rows(frames.track_start, begin, end)
        weight = np.empty(most_truth * most_track, np.float64)
        scratch = assignment_scratch(max(most_truth, most_track))
        column = np.empty(most_truth, np.int32)
        for frame in range(begin, end):
            g, t = frames.truth_start[frame], frames.track_start[frame]
            n, m = frames.truth_start[frame + 1] - g, frames.track_start[frame + 1] - t
            if n == 0 or m == 0:
                continue
            weight[: n * m] = 0.0
            for pair in range(frames.pair_start[frame], frames.pair_start[frame + 1]):
                if frames.overlap[pair] >= least:
                    at = frames.truth[pair] * m + frames.track[pair]
                    weight[at] = frames.overlap[pair]
            assign(weight, n, m, scratch, column)
            for i in range(n):
                j = column[i]
                if j >= 0 and weight[i * m + j] > EPSILON:
                    out[t + j] = TAKEN if ignored[g + i] else MATCH


# HOTA: matches of all frames, and the rows that objects and tracks share (Luiten 2021), with
# TrackEval's arithmetic: sums in its order, since their last bits decide ties.


@allocating
def _align(frames: TrackFrames, unit: int, couples: Couples, dense: Array, sums: Array) -> Array:
    """Agreement of each couple of a unit over all frames, float64 [couples].

    ``dense`` and ``sums`` float64 [2, k] are scratch memory for a frame.
    """
    n_truth = np.zeros(frames.n_truth_ids[unit], np.float64)
    n_track = np.zeros(frames.n_track_ids[unit], np.float64)
    out = np.zeros(couples.truth.size, np.float64)
    before = frames.pair_start[frames.start[unit]]
    for frame in range(frames.start[unit], frames.start[unit + 1]):
        g, t = frames.truth_start[frame], frames.track_start[frame]
        n, m = frames.truth_start[frame + 1] - g, frames.track_start[frame + 1] - t
        for i in range(n):
            n_truth[frames.truth_id[g + i]] += 1.0
        for j in range(m):
            n_track[frames.track_id[t + j]] += 1.0
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
            either = sums[1, frames.track[pair]] + sums[0, frames.truth[pair]] - s
            if either > EPSILON:
                out[couples.of_pair[pair - before]] += s / either
    for c in range(out.size):
        out[c] = out[c] / (n_truth[couples.truth[c]] + n_track[couples.track[c]] - out[c])
    return out


class HotaSums(NamedTuple):
    """Sums of HOTA by unit and alpha."""

    tp: Array  # int64 [units, alphas], pairs that match
    overlap: Array  # float64 [units, alphas], their overlaps
    either: Array  # float64, over matches the share of common rows in all rows of object or track
    of_truth: Array  # float64, the same in the rows of the object
    of_track: Array  # float64, the same in the rows of the track


@kernel
def hota(frames: TrackFrames, first: int, last: int, floors: Array, out: HotaSums) -> None:
    """HOTA's sums of a range of units.

    Args:
        floors: float64 [alphas], the least overlap of a match at each alpha, ascending.
    """
    n_alphas = floors.size
    for unit in range(first, last):
        begin, end = frames.start[unit], frames.start[unit + 1]
        most_truth = most_rows(frames.truth_start, begin, end)
        most_track = most_rows(frames.track_start, begin, end)
        longest = max(most_truth, most_track)
        dense = np.empty(most_truth * most_track, np.float64)
        weight = np.empty(most_truth * most_track, np.float64)
        sums = np.empty((2, longest), np.float64)
        scratch = assignment_scratch(longest)
        column = np.empty(most_truth, np.int32)
        couples = couples_of(frames, unit)
        aligned = _align(frames, unit, couples, dense, sums)
        before = frames.pair_start[begin]
        couple_at = np.empty(most_truth * most_track, np.int32)
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
            g, t = frames.truth_start[frame], frames.track_start[frame]
            n, m = frames.truth_start[frame + 1] - g, frames.track_start[frame + 1] - t
            dense_overlaps(frames, frame, m, dense)
            weight[: n * m] = 0.0
            for pair in range(pairs[0], pairs[1]):
                i, j = frames.truth[pair], frames.track[pair]
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
        rows_track = np.zeros(frames.n_track_ids[unit], np.int64)
        for g in range(frames.truth_start[begin], frames.truth_start[end]):
            rows_truth[frames.truth_id[g]] += 1
        for t in range(frames.track_start[begin], frames.track_start[end]):
            rows_track[frames.track_id[t]] += 1
        for c in range(place.size):
            if place[c] < 0:
                continue
            n_object, n_track = rows_truth[couples.truth[c]], rows_track[couples.track[c]]
            for a in range(n_alphas):
                matches = counts[place[c], a]
                out.either[unit, a] += matches * (matches / (n_object + n_track - matches))
                out.of_truth[unit, a] += matches * (matches / n_object)
                out.of_track[unit, a] += matches * (matches / n_track)


# Identity: each object is one track at most, over all frames of its unit (Ristani et al. 2016).


@inner
def _root(parent: Array, node: int) -> int:
    """Root of a node's component; shortens the path to it."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@allocating
def _clusters(couples: Couples, rows: Array, n: int, m: int) -> tuple[Array, Array]:
    """Components of couples that share objects or tracks.

    Args:
        couples: of a unit.
        rows: int32 [k], those that count.
        n: objects of the unit.
        m: its tracks.

    Returns:
        int32 [k], couples by cluster; int32 [couples], the cluster of each.
    """
    parent = np.arange(n + m).astype(np.int32)
    for c in rows:
        one, other = _root(parent, couples.truth[c]), _root(parent, n + couples.track[c])
        parent[one] = other
    cluster = np.empty(couples.truth.size, np.int32)
    for c in rows:
        cluster[c] = _root(parent, couples.truth[c])
    return by_code(cluster, n + m, rows), cluster


@kernel
def identities(frames: TrackFrames, first: int, last: int, least: float, out: Array) -> None:
    """Rows common to objects and tracks, one track per object at most, int64 [units].

    For any order of ties, the assignment with the fewest unmatched rows has the most common rows.
    Unconnected objects and tracks are assigned separately, so that tables of weights stay small.
    """
    for unit in range(first, last):
        couples = couples_of(frames, unit)
        begin = frames.pair_start[frames.start[unit]]
        common = np.zeros(couples.truth.size, np.float64)
        for pair in range(begin, frames.pair_start[frames.start[unit + 1]]):
            if frames.overlap[pair] >= least:
                common[couples.of_pair[pair - begin]] += 1.0
        n, m = frames.n_truth_ids[unit], frames.n_track_ids[unit]
        counted = np.flatnonzero(common).astype(np.int32)
        rows, cluster = _clusters(couples, counted, n, m)
        row_of = np.full(n, -1, np.int32)
        column_of = np.full(m, -1, np.int32)
        first_row = 0
        while first_row < rows.size:
            behind = first_row
            height = width = 0
            while behind < rows.size and cluster[rows[behind]] == cluster[rows[first_row]]:
                one, other = couples.truth[rows[behind]], couples.track[rows[behind]]
                if row_of[one] < 0:
                    row_of[one] = height
                    height += 1
                if column_of[other] < 0:
                    column_of[other] = width
                    width += 1
                behind += 1
            weight = np.zeros(height * width, np.float64)
            for k in range(first_row, behind):
                one, other = couples.truth[rows[k]], couples.track[rows[k]]
                weight[row_of[one] * width + column_of[other]] = common[rows[k]]
            column = np.empty(height, np.int32)
            assign(weight, height, width, assignment_scratch(max(height, width)), column)
            for i in range(height):
                if column[i] >= 0:
                    out[unit] += np.int64(weight[i * width + column[i]])
            first_row = behind
