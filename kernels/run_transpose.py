"""Runs along the rows of images to runs down their columns, or the other way round.

Between two neighbouring lines a pixel changes where exactly one of them has a run. Those stretches
are found by merging the ends of both lines' runs; every pixel of a stretch begins or ends one run
across the lines. The work is that of the runs read and written, whatever the size of the image.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .run_layout import Array, Runs, longer, put


@inner
def _line_ends(
    begin: Array, end: Array, k: int, last: int, line_begin: Any, length: Any, ends: Array
) -> tuple[Any, Any]:
    """Where runs begin and end within one line; how many of those, and the first run left."""
    n = 0
    line_end = line_begin + length
    while k < last and np.int64(begin[k]) < line_end:
        ends[n] = max(np.int64(begin[k]) - line_begin, 0)
        ends[n + 1] = min(np.int64(end[k]) - line_begin, length)
        n += 2
        if np.int64(end[k]) > line_end:
            break
        k += 1
    return n, k


@inner
def _changes(one: Array, n: int, two: Array, m: int, out: Array) -> Any:
    """Where the stretches on which exactly one of two lines has a run begin and end, in turn."""
    i, j, at = 0, 0, 0
    while i < n or j < m:
        if j == m or (i < n and one[i] <= two[j]):
            value = one[i]
            i += 1
        else:
            value = two[j]
            j += 1
        if at & 1 and out[at - 1] == value:
            at -= 1
        else:
            out[at] = value
            at += 1
    return at


@inner
def _stretches(
    begin: Array, end: Array, first: int, last: int, size: int, line: int, last_line: int,
    stretch: Array, place: Array,
) -> Any:  # fmt: skip
    """Write first pixel, end and line of every stretch, and how many open less close at a pixel."""
    one, two = np.empty(size + 2, np.int64), np.empty(size + 2, np.int64)
    changes = np.empty(2 * size + 4, np.int64)
    n, m, k, found = 0, 0, first, 0
    for y in range(line, last_line + 2):
        m = 0
        if y <= last_line:
            m, k = _line_ends(begin, end, k, last, y * size, size, two)
        count = _changes(one, n, two, m, changes)
        for c in range(0, count, 2):
            stretch[found], stretch[found + 1], stretch[found + 2] = changes[c], changes[c + 1], y
            place[changes[c]] += 1
            place[changes[c + 1]] -= 1
            found += 3
        one, two = two, one
        n = m
    return found


@inner
def _positions(
    stretch: Array, found: int, place: Array, size: int, n_lines: int, position: Array
) -> None:
    """Where runs across the lines begin and end, ascending, given where those of a pixel go."""
    for s in range(0, found, 3):
        for x in range(stretch[s], stretch[s + 1]):
            position[place[x]] = x * n_lines + stretch[s + 2]
            place[x] += 1


@kernel
def _transpose(
    start: Array, begin: Array, end: Array, length: Array, lines: Array, to_start: Array
) -> tuple[int, Array, Array]:
    to_begin = np.empty(2 * begin.size + 16, np.uint32)
    to_end = np.empty(2 * begin.size + 16, np.uint32)
    at = 0
    for i in range(length.size):
        first, last = start[i], start[i + 1]
        to_start[i] = at
        if first == last:
            continue
        size = length[i]
        line = np.int64(begin[first]) // size
        last_line = (np.int64(end[last - 1]) - 1) // size
        # A run is a piece in every line it touches, and a piece is part of two stretches at most.
        stretch = np.empty(6 * (last - first + last_line - line + 1), np.int64)
        place = np.zeros(size + 1, np.int64)
        found = _stretches(begin, end, first, last, size, line, last_line, stretch, place)
        total, here = 0, 0
        for x in range(size):
            here += place[x]
            place[x] = total
            total += here
        position = np.empty(total, np.int64)
        _positions(stretch, found, place, size, lines[i], position)
        if at + total > to_begin.size:
            to_begin, to_end = longer(to_begin, 2 * (at + total)), longer(to_end, 2 * (at + total))
        first_run = at
        for p in range(0, total, 2):
            at = put(to_begin, to_end, first_run, at, position[p], position[p + 1])
    to_start[length.size] = at
    return at, to_begin, to_end


def transpose(runs: Runs, length: Array, lines: Array) -> Runs:
    """Runs of the same masks across the lines of the given ones.

    Args:
        runs: of n masks, along lines.
        length: int64 [n], pixels of a line: the width for runs along rows, the height for runs
            down columns.
        lines: int64 [n], how many lines there are.
    """
    start, begin, end = runs
    to_start = np.zeros(length.size + 1, np.int64)
    n, to_begin, to_end = _transpose(
        frozen(start, np.int64), frozen(begin, np.uint32), frozen(end, np.uint32),
        frozen(length, np.int64), frozen(lines, np.int64), to_start,
    )  # fmt: skip
    return to_start, to_begin[:n], to_end[:n]
