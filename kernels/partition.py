"""Partition: values of rows laid out by segment (group, label, outcome), keeping their order.

A counting sort: one pass counts the rows of every segment, one lays them out. Sorting each segment
afterwards touches memory that fits the cache, and needs no order of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

_MANY = 4096  # segments from which values are laid out in two rounds
_BUCKETS = 512  # of the first round


@kernel
def _count(
    outcome: Array,
    label: Array,
    datum: Array,
    group: Array,
    n_labels: int,
    n_outcomes: int,
    start: Array,
) -> None:
    """Rows of every segment, into ``start[segment + 1]``."""
    for i in range(outcome.size):
        g = 0
        if group.size:
            g = group[datum[i] if datum.size else i]
            if g < 0:
                continue
        s = g * n_labels + (label[i] if label.size else 0)
        start[s * n_outcomes + outcome[i] + 1] += 1


@kernel
def _count_three(outcome: Array, count: Array) -> None:
    """Rows of one segment by outcome; sums of comparisons, several rows at a time."""
    ones, twos = 0, 0
    for i in range(outcome.size):
        ones += int(outcome[i] == 1)
        twos += int(outcome[i] == 2)
    count[0] += outcome.size - ones - twos
    count[1] += ones
    count[2] += twos


@kernel
def _three(outcome: Array, offset: int, value: Array, free: Array, out: Array) -> None:
    """Values of one segment by outcome; places in registers, no branch on a coin toss."""
    at0, at1, at2 = free[0], free[1], free[2]
    for i in range(value.size):
        is1 = np.int64(outcome[offset + i] == 1)
        is2 = np.int64(outcome[offset + i] == 2)
        is0 = 1 - is1 - is2
        out[at0 * is0 + at1 * is1 + at2 * is2] = value[i]
        at0 += is0
        at1 += is1
        at2 += is2
    free[0], free[1], free[2] = at0, at1, at2


@kernel
def _two(outcome: Array, offset: int, value: Array, begin: int, free: Array, out: Array) -> None:
    """The same of outcomes 0 and 1 alone, of segments that stand side by side.

    What went to the one says how many went to the other, so one place is carried along.
    """
    at0 = free[0]
    after = free[1] - (offset - (at0 - begin))  # where row 0 would go if all rows were 1
    for i in range(value.size):
        row = offset + i
        hit = np.int64(outcome[row])
        at1 = after + row - (at0 - begin)
        out[at0 + (at1 - at0) * hit] = value[i]
        at0 += 1 - hit
    free[1] = after + offset + value.size - (at0 - begin)
    free[0] = at0


@kernel
def _lay_out(
    outcome: Array,
    label: Array,
    datum: Array,
    group: Array,
    n_labels: int,
    n_outcomes: int,
    offset: int,
    value: Array,
    free: Array,
    out: Array,
    row: Array,
) -> None:
    """Values by segment, and the row each came from where ``row`` has room for it."""
    for i in range(offset, offset + value.size):
        g = 0
        if group.size:
            g = group[datum[i] if datum.size else i]
            if g < 0:
                continue
        s = (g * n_labels + (label[i] if label.size else 0)) * n_outcomes + outcome[i]
        at = free[s]
        free[s] = at + 1
        out[at] = value[i - offset]
        if row.size:
            row[at] = i


@kernel
def _to_buckets(
    outcome: Array,
    label: Array,
    datum: Array,
    group: Array,
    n_labels: int,
    n_outcomes: int,
    offset: int,
    value: Array,
    shift: int,
    free: Array,
    segment: Array,
    out: Array,
) -> None:
    """Values and their segments, roughly by segment: by what ``shift`` leaves of its number."""
    for i in range(offset, offset + value.size):
        g = group[datum[i] if datum.size else i]
        if g < 0:
            continue
        s = (g * n_labels + (label[i] if label.size else 0)) * n_outcomes + outcome[i]
        at = free[s >> shift]
        free[s >> shift] = at + 1
        segment[at] = s
        out[at] = value[i - offset]


@kernel
def _from_buckets(segment: Array, value: Array, free: Array, out: Array) -> None:
    """Values by segment, from an order in which segments near one another stand together."""
    for i in range(segment.size):
        s = segment[i]
        at = free[s]
        free[s] = at + 1
        out[at] = value[i]


def partition(
    parts: Sequence[Array],
    outcome: Array,
    label: Array | None,
    datum: Array | None,
    group: Array | None,
    shape: tuple[int, int, int],
    *,
    want_rows: bool = False,
) -> tuple[Array, Array, Array]:
    """Lay values out by (group, label, outcome).

    Args:
        parts: float64 arrays of n values together, in row order.
        outcome: uint8 [n], below ``n_outcomes``.
        label: int32 [n], label codes; None where there is one label. See :func:`only_label` too.
        datum: int32 [n], datum codes; None where row i is datum i.
        group: int32 [n_datums], group of each datum, -1 for none; None for one group of all.
        shape: (n_groups, n_labels, n_outcomes).
        want_rows: whether to return the rows the values came from.

    Returns:
        ``start``, int64 [groups * labels * outcomes + 1], CSR offsets of the segments, outcome
        fastest; the values float64 [m] by segment, in row order within each; their rows int64
        [m], or empty.
    """
    _, n_labels, n_outcomes = shape
    only = only_label(label)
    if group is None and only is not None and n_outcomes == 3:
        start, out = _of_one_label(parts, outcome, only, n_labels)
        if not want_rows:
            return start, out, np.empty(0, np.int64)
        row = np.arange(outcome.size)  # the bits of integers are moved as those of doubles
        return start, out, _of_one_label([row.view(float)], outcome, only, n_labels)[1].view(int)
    start = _segment_starts(outcome, label, datum, group, shape)
    none = np.zeros(0, np.int32)
    rows = (
        frozen(outcome, np.uint8),
        frozen(none if label is None else label, np.int32),
        frozen(none if datum is None else datum, np.int32),
        frozen(none if group is None else group, np.int32),
    )
    out = np.empty(int(start[-1]), np.float64)
    row = np.empty(out.size if want_rows else 0, np.int64)
    free = start[:-1].copy()
    offset = 0
    if start.size > _MANY and group is not None and not want_rows:
        # Writing to very many places at once misses the cache at every row; two rounds do not.
        shift = int(start.size).bit_length() - _BUCKETS.bit_length() + 1
        rough = free[:: 1 << shift].copy()
        segment, near = np.empty(out.size, np.int32), np.empty_like(out)
        for part in parts:
            value = frozen(part, np.float64)
            _to_buckets(*rows, n_labels, n_outcomes, offset, value, shift, rough, segment, near)
            offset += value.size
        _from_buckets(segment, near, free, out)
        return start, out, row
    for part in parts:
        value = frozen(part, np.float64)
        _lay_out(*rows, n_labels, n_outcomes, offset, value, free, out, row)
        offset += value.size
    return start, out, row


def _segment_starts(
    outcome: Array,
    label: Array | None,
    datum: Array | None,
    group: Array | None,
    shape: tuple[int, int, int],
) -> Array:
    """CSR offsets of the segments, as :func:`partition` gives and its arguments are.

    Returns:
        int64 [groups * labels * outcomes + 1], outcome fastest.
    """
    n_groups, n_labels, n_outcomes = shape
    start = np.zeros(n_groups * n_labels * n_outcomes + 1, np.int64)
    none = np.zeros(0, np.int32)
    _count(
        frozen(outcome, np.uint8),
        frozen(none if label is None else label, np.int32),
        frozen(none if datum is None else datum, np.int32),
        frozen(none if group is None else group, np.int32),
        n_labels,
        n_outcomes,
        start,
    )
    return np.cumsum(start, out=start)


def only_label(label: Array | None) -> int | None:
    """The code that all rows have, where an array says so by its shape; None where it does not.

    Args:
        label: int32 [n], or one value that NumPy repeats without memory (``broadcast_to``); None
            where there is one label, whose code is 0.
    """
    if label is None:
        return 0
    return int(label[0]) if label.size and label.strides == (0,) else None


def _of_one_label(
    parts: Sequence[Array], outcome: Array, label: int, n_labels: int
) -> tuple[Array, Array]:
    """Values of one label's rows by outcome, among the segments of all labels."""
    outcome = frozen(outcome, np.uint8)
    start = np.zeros(n_labels * 3 + 1, np.int64)
    _count_three(outcome, start[3 * label + 1 : 3 * label + 4])
    np.cumsum(start, out=start)
    out = np.empty(outcome.size, np.float64)
    begin, _, third, end = (int(place) for place in start[3 * label : 3 * label + 4])
    free = start[3 * label : 3 * label + 3].copy()
    offset = 0
    for part in parts:
        value = frozen(part, np.float64)
        if third == end:
            _two(outcome, offset, value, begin, free, out)
        else:
            _three(outcome, offset, value, free, out)
        offset += value.size
    return start, out
