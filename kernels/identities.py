"""Identity: each object is one track at most, over all frames of its unit (Ristani et al. 2016)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .assignment import assign, assignment_scratch
from .jit import inner, kernel
from .track_frames import Couples, TrackFrames, by_code, couples_of

Array = np.ndarray[Any, Any]


@inner
def _root(parent: Array, node: int) -> int:
    """The node that stands for all that hang together with one; the way there gets shorter."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@inner
def _clusters(couples: Couples, rows: Array, n: int, m: int) -> tuple[Array, Array]:
    """Couples that hang together by objects or tracks, side by side.

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
        one, other = _root(parent, couples.truth[c]), _root(parent, n + couples.found[c])
        parent[one] = other
    cluster = np.empty(couples.truth.size, np.int32)
    for c in rows:
        cluster[c] = _root(parent, couples.truth[c])
    return by_code(cluster, n + m, rows), cluster


@kernel
def identities(frames: TrackFrames, first: int, last: int, least: float, out: Array) -> None:
    """Rows that objects and tracks have in common, each object being one track at most.

    Whatever the order of ties, the assignment that leaves the fewest rows alone has the most
    in common. Objects and tracks that nothing connects are assigned apart from each other, so that
    a table of weights is as large as what hangs together.

    Args:
        frames: all units.
        first: the first unit of the range.
        last: the one behind it.
        least: overlap from which on a pair counts.
        out: int64 [units], written at the range.
    """
    for unit in range(first, last):
        couples = couples_of(frames, unit)
        begin = frames.pair_start[frames.start[unit]]
        common = np.zeros(couples.truth.size, np.float64)
        for pair in range(begin, frames.pair_start[frames.start[unit + 1]]):
            if frames.overlap[pair] >= least:
                common[couples.of_pair[pair - begin]] += 1.0
        n, m = frames.n_truth_ids[unit], frames.n_found_ids[unit]
        counted = np.flatnonzero(common).astype(np.int32)
        rows, cluster = _clusters(couples, counted, n, m)
        row_of = np.full(n, -1, np.int32)
        column_of = np.full(m, -1, np.int32)
        first_row = 0
        while first_row < rows.size:
            behind = first_row
            height = width = 0
            while behind < rows.size and cluster[rows[behind]] == cluster[rows[first_row]]:
                one, other = couples.truth[rows[behind]], couples.found[rows[behind]]
                if row_of[one] < 0:
                    row_of[one] = height
                    height += 1
                if column_of[other] < 0:
                    column_of[other] = width
                    width += 1
                behind += 1
            weight = np.zeros(height * width, np.float64)
            for k in range(first_row, behind):
                one, other = couples.truth[rows[k]], couples.found[rows[k]]
                weight[row_of[one] * width + column_of[other]] = common[rows[k]]
            column = np.empty(height, np.int32)
            assign(weight, height, width, assignment_scratch(max(height, width)), column)
            for i in range(height):
                if column[i] >= 0:
                    out[unit] += np.int64(weight[i * width + column[i]])
            first_row = behind
