"""Unions of masks by group, and what is left of masks without others: merges of their runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .run_layout import Array, Runs, closed, put


@inner
def _merge(begin: Array, end: Array, i: int, middle: int, last: int, first: int) -> Any:
    """The union of the runs [i, middle) and [middle, last), written from ``first`` on; its end."""
    j = middle
    at = first
    while i < middle or j < last:
        if j == last or (i < middle and begin[i] <= begin[j]):
            k = i
            i += 1
        else:
            k = j
            j += 1
        at = put(begin, end, first, at, np.int64(begin[k]), np.int64(end[k]))
    return at


@kernel
def _unite(
    start: Array, begin: Array, end: Array, order: Array, group_start: Array,
    room: Array, to_begin: Array, to_end: Array, used: Array,
) -> None:  # fmt: skip
    """Neighbouring masks are merged in rounds until one is left of each group."""
    for g in range(used.size):
        members = group_start[g + 1] - group_start[g]
        size = room[g + 1] - room[g]
        cut = np.zeros(members + 1, np.int64)
        at = room[g]
        for m in range(members):
            row = order[group_start[g] + m]
            for k in range(start[row], start[row + 1]):
                to_begin[at] = begin[k]
                to_end[at] = end[k]
                at += 1
            cut[m + 1] = at - room[g]
        used[g] = size
        if members < 2:
            continue
        # From one half of a buffer into the other, and back.
        buffer_begin, buffer_end = np.empty(2 * size, np.uint32), np.empty(2 * size, np.uint32)
        for k in range(size):
            buffer_begin[k] = to_begin[room[g] + k]
            buffer_end[k] = to_end[room[g] + k]
        here, there = 0, size
        while members > 1:
            half = (members + 1) >> 1
            at = there
            for m in range(half):
                low, middle = here + cut[2 * m], here + cut[2 * m + 1]
                last = here + cut[2 * m + 2] if 2 * m + 2 <= members else middle
                cut[m] = at - there
                at = _merge(buffer_begin, buffer_end, low, middle, last, at)
            cut[half] = at - there
            members = half
            here, there = there, here
        used[g] = cut[1]
        for k in range(used[g]):
            to_begin[room[g] + k] = buffer_begin[here + k]
            to_end[room[g] + k] = buffer_end[here + k]


def unite(runs: Runs, group: Array, n_groups: int) -> Runs:
    """The union of the masks of each group.

    Args:
        runs: of n masks, those of a group of equal size.
        group: int32 [n], in [0, n_groups).
        n_groups: how many masks to make; one of a group without members is empty.
    """
    start, begin, end = runs
    codes = np.ascontiguousarray(group, np.int64)
    order = np.argsort(codes, kind="stable")
    group_start, room = np.zeros(n_groups + 1, np.int64), np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=n_groups), out=group_start[1:])
    sizes = np.zeros(codes.size + 1, np.int64)
    np.cumsum(np.diff(start)[order], out=sizes[1:])
    room[:] = sizes[group_start]
    total = int(room[-1])
    to_begin, to_end = np.empty(total, np.uint32), np.empty(total, np.uint32)
    used = np.zeros(n_groups, np.int64)
    _unite(
        frozen(start, np.int64), frozen(begin, np.uint32), frozen(end, np.uint32),
        frozen(order, np.int64), frozen(group_start, np.int64), frozen(room, np.int64),
        to_begin, to_end, used,
    )  # fmt: skip
    return closed(room, used, to_begin, to_end)


@kernel
def _subtract(
    start: Array, begin: Array, end: Array, less_start: Array, less_begin: Array, less_end: Array,
    room: Array, to_begin: Array, to_end: Array, used: Array,
) -> None:  # fmt: skip
    for i in range(used.size):
        first, at = room[i], room[i]
        j, last = less_start[i], less_start[i + 1]
        for k in range(start[i], start[i + 1]):
            low, high = np.int64(begin[k]), np.int64(end[k])
            while j < last and np.int64(less_end[j]) <= low:
                j += 1
            while j < last and np.int64(less_begin[j]) < high:
                at = put(to_begin, to_end, first, at, low, np.int64(less_begin[j]))
                low = np.int64(less_end[j])
                if low >= high:
                    break  # it may reach into the next run
                j += 1
            at = put(to_begin, to_end, first, at, low, high)
        used[i] = at - first


def subtract(runs: Runs, less: Runs) -> Runs:
    """What each mask has that its partner in another set of as many masks has not."""
    sides = [
        (frozen(start, np.int64), frozen(begin, np.uint32), frozen(end, np.uint32))
        for start, begin, end in (runs, less)
    ]
    room = (runs[0] - runs[0][0]) + (less[0] - less[0][0])  # a run taken out leaves two
    total = int(room[-1])
    to_begin, to_end = np.empty(total, np.uint32), np.empty(total, np.uint32)
    used = np.zeros(room.size - 1, np.int64)
    _subtract(*sides[0], *sides[1], frozen(room, np.int64), to_begin, to_end, used)
    return closed(room, used, to_begin, to_end)
