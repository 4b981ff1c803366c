"""Values of some consecutive groups, laid out by segment (group, label, outcome).

Laying out all groups at once takes more than twice the memory of all values. One range of groups
after the other takes what one range has, and a look at the group of every row. A range stands
roughly by group at first: writing to very many places at once misses the cache at every row. A few
groups of it are then laid out at a time, in memory that fits the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

_BUCKETS = 512  # at most, of a range
_ROWS = 4096  # looked at before those of a range are laid out, which stay in the cache


@kernel
def _to_buckets(
    outcome: Array,
    label: Array,
    datum: Array,
    group: Array,
    n_labels: int,
    n_outcomes: int,
    first: int,
    last: int,
    shift: int,
    offset: int,
    value: Array,
    free: Array,
    near: Array,
    segment: Array,
    out: Array,
) -> None:
    """Values of the groups [first, last) and their segments, by what ``shift`` leaves of groups.

    Of a few rows at a time those of these groups are found first, without a branch on what nobody
    can foretell: every row is noted, and the place moves on behind those.
    """
    for begin in range(offset, offset + value.size, near.size - 1):
        end = min(begin + near.size - 1, offset + value.size)
        found = 0
        for i in range(begin, end):
            near[found] = i - offset
            g = group[datum[i] if datum.size else i]
            found += int(g >= first) & int(g < last)
        for k in range(found):
            i = near[k] + offset
            g = group[datum[i] if datum.size else i] - first
            at = free[g >> shift]
            free[g >> shift] = at + 1
            segment[at] = (g * n_labels + (label[i] if label.size else 0)) * n_outcomes + outcome[i]
            out[at] = value[i - offset]


@kernel
def _from_buckets(segment: Array, value: Array, first: int, free: Array, out: Array) -> None:
    """Values by segment, the lowest of which is ``first``."""
    for i in range(segment.size):
        s = segment[i] - first
        at = free[s]
        free[s] = at + 1
        out[at] = value[i]


def cut_groups(begin: Array, rows: int) -> Array:
    """Where to cut groups into ranges of about as many rows; no group is cut.

    Args:
        begin: int64 [n + 1], CSR offsets of the rows of n groups.
        rows: of a range, at least 1; a range has more where its last group does.

    Returns:
        int64 [ranges + 1], ascending from 0 to n: first group of each range, and the end.
    """
    n = begin.size - 1
    marks = np.arange(int(begin[0]) + rows, int(begin[-1]), rows)
    return np.unique(np.r_[0, np.searchsorted(begin, marks), n])


class GroupRange:
    """The values of some groups, roughly by group.

    Args:
        parts: float64 arrays of n values together, in row order.
        outcome: uint8 [n], below ``n_outcomes``.
        label: int32 [n], label codes; None where there is one label, whose code is 0.
        datum: int32 [n], datum codes; None where row i is datum i.
        group: int32 [n_datums], group of each datum, -1 for none.
        first: first group.
        last: one past the last.
        start: int64 [groups * labels * outcomes + 1], offsets of the segments of all groups, as
            :func:`evalengine.kernels.partition.segment_starts` gives them.
        shape: (n_groups, n_labels, n_outcomes); groups times the rest below 2^31.
        room: int32 and float64, for as many values as these groups have; written, and held by this
            object alone until it is dropped.
    """

    def __init__(
        self,
        parts: Sequence[Array],
        outcome: Array,
        label: Array | None,
        datum: Array | None,
        group: Array,
        first: int,
        last: int,
        start: Array,
        shape: tuple[int, int, int],
        room: tuple[Array, Array],
    ) -> None:
        _, n_labels, n_outcomes = shape
        self._width = n_labels * n_outcomes
        self._start = start[first * self._width : last * self._width + 1]
        self._start = self._start - self._start[0]
        self.shift = max(0, (last - first).bit_length() - _BUCKETS.bit_length() + 1)
        self.n_groups = last - first
        self._segment, self._value = (array[: int(self._start[-1])] for array in room)
        none = np.zeros(0, np.int32)
        rows = (
            frozen(outcome, np.uint8),
            frozen(none if label is None else label, np.int32),
            frozen(none if datum is None else datum, np.int32),
            frozen(group, np.int32),
        )
        free = self._start[: -1 : self._width << self.shift].copy()
        given = (n_labels, n_outcomes, first, last, self.shift)
        near = np.empty(_ROWS + 1, np.int32)  # one more, which is written to but never looked at
        offset = 0
        for part in parts:
            value = frozen(part, np.float64)
            _to_buckets(*rows, *given, offset, value, free, near, self._segment, self._value)
            offset += value.size

    @property
    def buckets(self) -> Array:
        """CSR offsets of the rows of each 2^``shift`` groups, int64 [buckets + 1]."""
        return np.r_[self._start[: -1 : self._width << self.shift], self._start[-1]]

    def laid(self, first: int, last: int) -> tuple[Array, Array]:
        """The values of some buckets by (group, label, outcome).

        Args:
            first: first bucket.
            last: one past the last.

        Returns:
            CSR offsets of their segments, from 0, int64; float64 values by segment, in row order
            within each.
        """
        low = (first << self.shift) * self._width
        high = min(last << self.shift, self.n_groups) * self._width
        begin, end = int(self._start[low]), int(self._start[high])
        start = self._start[low : high + 1] - begin
        out = np.empty(end - begin, np.float64)
        segment = frozen(self._segment[begin:end], np.int32)
        value = frozen(self._value[begin:end], np.float64)
        _from_buckets(segment, value, low, start[:-1].copy(), out)
        return start, out
