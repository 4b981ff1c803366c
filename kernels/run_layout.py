"""Runs of ones of many masks: the layout that all kernels of masks share, and what closes its gaps.

Masks stand one after the other: ``start`` int64 [n + 1] are offsets of each mask's runs, a run is
the pixels [begin, end), both uint32 [r]. Pixels are counted line by line: down the columns of the
image, as COCO does, unless a kernel says otherwise. Runs of one mask ascend and never touch, so two
equal masks have equal runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]
Runs = tuple[Array, Array, Array]
"""start int64 [n + 1], begin uint32 [r], end uint32 [r]."""


@inner
def put(begin: Array, end: Array, first: int, at: int, low: int, high: int) -> Any:
    """Write the run [low, high) as number ``at`` of a mask whose runs start at ``first``.

    An empty run is left out, one that touches the run before lengthens it. Returns the number of
    the next run.
    """
    if high <= low:
        return at
    if at > first and np.int64(end[at - 1]) >= low:
        if high > np.int64(end[at - 1]):
            end[at - 1] = np.uint32(high)
        return at
    begin[at] = np.uint32(low)
    end[at] = np.uint32(high)
    return at + 1


@inner
def longer(old: Array, size: int) -> Any:
    """A copy with room for more."""
    new = np.empty(size, np.uint32)
    for i in range(old.size):  # compiles faster than a slice
        new[i] = old[i]
    return new


@kernel
def _close_gaps(room: Array, used: Array, begin: Array, end: Array) -> int:
    """Move the runs in use together, in place."""
    at = 0
    for i in range(used.size):
        first = room[i]
        for k in range(used[i]):
            begin[at] = begin[first + k]
            end[at] = end[first + k]
            at += 1
    return at


def closed(room: Array, used: Array, begin: Array, end: Array) -> Runs:
    """Runs without gaps, from those written into rooms that may be larger than needed.

    Args:
        room: int64 [n + 1], where each mask's room starts.
        used: int64 [n], how many runs of it were written.
        begin: uint32 [room[n]], changed.
        end: uint32 [room[n]], changed.
    """
    start = np.zeros(used.size + 1, np.int64)
    np.cumsum(used, out=start[1:])
    n = int(start[-1])
    if n < int(room[-1]):
        _close_gaps(frozen(room, np.int64), frozen(used, np.int64), begin, end)
        begin, end = begin[:n], end[:n]
        if 4 * n < 3 * int(room[-1]):  # else the view is worth its waste
            begin, end = begin.copy(), end.copy()
    return start, begin, end


def sliced(runs: Runs) -> Runs:
    """Runs with offsets from 0, where those of a range of masks start elsewhere."""
    start, begin, end = runs
    first, last = int(start[0]), int(start[-1])
    return start - first, begin[first:last], end[first:last]


def joined(parts: list[Runs]) -> Runs:
    """The masks of several parts, one after the other; no copy of a single one."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint32)
    counts = np.concatenate([np.diff(start) for start, _, _ in parts])
    start = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=start[1:])
    begins = [part[1] for part in parts]
    ends = [part[2] for part in parts]
    return start, np.concatenate(begins), np.concatenate(ends)


@kernel
def _take(
    start: Array, begin: Array, end: Array, rows: Array, to: Array, b: Array, e: Array
) -> None:
    for i in range(rows.size):
        first = start[rows[i]]
        at = to[i]
        for k in range(to[i + 1] - at):
            b[at + k] = begin[first + k]
            e[at + k] = end[first + k]


def take_runs(runs: Runs, rows: Array) -> Runs:
    """The masks at some rows, in their order.

    Args:
        runs: of all masks.
        rows: integer [k], each in [0, n).
    """
    start, begin, end = runs
    picked = frozen(rows, np.int64)
    to = np.zeros(picked.size + 1, np.int64)
    np.cumsum((start[1:] - start[:-1])[picked], out=to[1:])
    b, e = np.empty(int(to[-1]), np.uint32), np.empty(int(to[-1]), np.uint32)
    _take(
        frozen(start, np.int64), frozen(begin, np.uint32), frozen(end, np.uint32),
        picked, frozen(to, np.int64), b, e,
    )  # fmt: skip
    return to, b, e
