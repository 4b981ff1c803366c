"""Order: rows grouped by label, then ranked by descending score, without a global sort.

A stable counting sort by datum, one by label and a stable radix sort by score inside each label
give the order in which pycocotools accumulates: label, descending score, datum, row.
Source: pycocotools ``COCOeval.accumulate`` (stable mergesort of scores laid out by image).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

_INSERTION = 48  # below this many rows an insertion sort beats histograms


@kernel
def _positions(
    datum: Array, label: Array, start: Array, free: Array, by_datum: Array, row: Array, out: Array
) -> None:
    """Where each row goes in (label, datum, row) order, and where each label starts."""
    n = datum.size
    in_order = True
    for i in range(1, n):
        if datum[i] < datum[i - 1]:
            in_order = False
            break
    for i in range(n):
        start[label[i] + 1] += 1
    for k in range(free.size):
        start[k + 1] += start[k]
        free[k] = start[k]
    if not in_order:
        for i in range(n):
            by_datum[datum[i] + 1] += 1
        for k in range(by_datum.size - 1):
            by_datum[k + 1] += by_datum[k]
        for i in range(n):
            row[by_datum[datum[i]]] = i
            by_datum[datum[i]] += 1
    for j in range(n):
        i = j if in_order else row[j]
        out[i] = free[label[i]]
        free[label[i]] += 1


def group_by_label(datum: Array, label: Array, n_datums: int, n_labels: int) -> tuple[Array, Array]:
    """Lay rows out by label, then datum, then row.

    Args:
        datum: int32 [n], dense datum codes.
        label: int32 [n], dense label codes.
        n_datums: number of datums.
        n_labels: number of labels.

    Returns:
        ``start``, int64 [n_labels + 1], CSR offsets by label; ``position``, int32 [n], the place
        of each row in the new layout.
    """
    start = np.zeros(n_labels + 1, np.int64)
    position = np.empty(datum.size, np.int32)
    _positions(
        frozen(datum, np.int32),
        frozen(label, np.int32),
        start,
        np.empty(n_labels, np.int64),
        np.zeros(n_datums + 1, np.int64),
        np.empty(datum.size, np.int32),
        position,
    )
    return start, position


@kernel
def _rank(
    score: Array,
    bits: Array,
    start: Array,
    first: int,
    last: int,
    order: Array,
    keys: Array,
    places: Array,
    counts: Array,
) -> None:
    """Sort the places of every label of [first, last) into ``order``."""
    top = np.uint64(1) << np.uint64(63)
    none = np.uint64(0)
    low = np.uint64(255)
    for k in range(first, last):
        lo, hi = start[k], start[k + 1]
        n = hi - lo
        if n < _INSERTION:
            for i in range(lo, hi):
                s = score[i]
                j = i
                while j > lo and score[order[j - 1]] < s:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = i
            continue
        # Floats as unsigned integers whose ascending order is the floats' descending order.
        differing = none
        for i in range(n):
            b = bits[lo + i]
            if b == top:  # -0.0 ties with 0.0
                b = none
            key = b if b & top else ~(b | top)
            keys[0, i] = key
            places[0, i] = lo + i
            differing |= key ^ keys[0, 0]
        here = 0
        for byte in range(8):
            shift = np.uint64(8 * byte)
            if (differing >> shift) & low == none:
                continue
            for c in range(256):
                counts[c] = 0
            for i in range(n):
                counts[(keys[here, i] >> shift) & low] += 1
            total = 0
            for c in range(256):
                total += counts[c]
                counts[c] = total - counts[c]
            there = 1 - here
            for i in range(n):
                c = (keys[here, i] >> shift) & low
                at = counts[c]
                counts[c] = at + 1
                keys[there, at] = keys[here, i]
                places[there, at] = places[here, i]
            here = there
        for i in range(n):
            order[lo + i] = places[here, i]


def rank_by_score(score: Array, start: Array, first: int, last: int, order: Array) -> None:
    """Rank rows within each label by descending score; ties keep their place.

    Args:
        score: float64 [n], laid out by label; no NaN. -0.0 ties with 0.0.
        start: int64 [n_labels + 1], CSR offsets.
        first: first label to rank.
        last: one past the last.
        order: int32 [n], written between ``start[first]`` and ``start[last]``: ``order[i]`` is
            the place of the i-th best row.
    """
    score = frozen(score, np.float64)
    longest = int(np.diff(start[first : last + 1]).max(initial=0))
    _rank(
        score,
        score.view(np.uint64),
        frozen(start, np.int64),
        first,
        last,
        order,
        np.empty((2, longest), np.uint64),
        np.empty((2, longest), np.int32),
        np.empty(256, np.int64),
    )


@kernel
def _segments(
    start: Array, datum: Array, group: Array, n_groups: int, offsets: Array, order: Array
) -> None:
    """Count, then place; see :func:`group_rows`."""
    n_labels = start.size - 1
    for k in range(n_labels):
        for i in range(start[k], start[k + 1]):
            g = group[datum[i]]
            if g >= 0:
                offsets[g * n_labels + k + 1] += 1
    for s in range(n_groups * n_labels):
        offsets[s + 1] += offsets[s]
    # Each segment's offset runs to its end, which is where the next one starts.
    for k in range(n_labels):
        for i in range(start[k], start[k + 1]):
            g = group[datum[i]]
            if g >= 0:
                s = g * n_labels + k
                order[offsets[s]] = i
                offsets[s] += 1
    for s in range(n_groups * n_labels, 0, -1):
        offsets[s] = offsets[s - 1]
    offsets[0] = 0


def group_rows(start: Array, datum: Array, group: Array, n_groups: int) -> tuple[Array, Array]:
    """Rows by group of their datum, then label, then as they stand.

    Args:
        start: int64 [labels + 1], offsets of each label's rows.
        datum: int32 [n], datum codes.
        group: int32 [n_datums], group of each datum, -1 for none.
        n_groups: number of groups.

    Returns:
        ``offsets``, int64 [groups * labels + 1]; ``order``, int32 [n], of which those before the
        last offset are rows, by segment.
    """
    offsets = np.zeros(n_groups * (start.size - 1) + 1, np.int64)
    order = np.empty(datum.size, np.int32)
    _segments(
        frozen(start, np.int64),
        frozen(datum, np.int32),
        frozen(group, np.int32),
        n_groups,
        offsets,
        order,
    )
    return offsets, order
