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
def _positions(datum: Array, label: Array, n_datums: int, n_labels: int) -> Any:
    """Where each row goes in (label, datum, row) order, and where each label starts."""
    n = datum.size
    in_order = True
    for i in range(1, n):
        if datum[i] < datum[i - 1]:
            in_order = False
            break
    start = np.zeros(n_labels + 1, np.int64)
    for i in range(n):
        start[label[i] + 1] += 1
    for k in range(n_labels):
        start[k + 1] += start[k]
    free = start[:-1].copy()
    position = np.empty(n, np.int32)
    if in_order:
        for i in range(n):
            position[i] = free[label[i]]
            free[label[i]] += 1
        return start, position
    by_datum = np.zeros(n_datums + 1, np.int64)
    for i in range(n):
        by_datum[datum[i] + 1] += 1
    for k in range(n_datums):
        by_datum[k + 1] += by_datum[k]
    row = np.empty(n, np.int32)
    for i in range(n):
        row[by_datum[datum[i]]] = i
        by_datum[datum[i]] += 1
    for j in range(n):
        i = row[j]
        position[i] = free[label[i]]
        free[label[i]] += 1
    return start, position


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
    start, position = _positions(
        frozen(datum, np.int32), frozen(label, np.int32), n_datums, n_labels
    )
    return start, position


@kernel
def _sort_segment(score: Array, lo: int, hi: int, order: Array, keys: Array, spare: Array) -> None:
    """Write into ``order[lo:hi]`` the places lo..hi-1 by descending score, ties as they stand."""
    n = hi - lo
    if n < _INSERTION:
        for i in range(lo, hi):
            s = score[i]
            j = i
            while j > lo and score[order[j - 1]] < s:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
        return
    # Floats as unsigned integers whose ascending order is the floats' descending order.
    bits = score[lo:hi].view(np.uint64)
    top = np.uint64(1) << np.uint64(63)
    first = np.uint64(0)
    differing = np.uint64(0)
    for i in range(n):
        b = bits[i]
        if b == top:  # -0.0 ties with 0.0
            b = np.uint64(0)
        key = b if b & top else ~(b | top)
        if i == 0:
            first = key
        differing |= key ^ first
        keys[0, i] = key
        spare[0, i] = lo + i
    counts = np.empty(256, np.int64)
    here = 0
    for byte in range(8):
        shift = np.uint64(8 * byte)
        if (differing >> shift) & np.uint64(255) == 0:
            continue
        counts[:] = 0
        for i in range(n):
            counts[(keys[here, i] >> shift) & np.uint64(255)] += 1
        total = 0
        for b in range(256):
            c = counts[b]
            counts[b] = total
            total += c
        there = 1 - here
        for i in range(n):
            key = keys[here, i]
            b = (key >> shift) & np.uint64(255)
            at = counts[b]
            counts[b] = at + 1
            keys[there, at] = key
            spare[there, at] = spare[here, i]
        here = there
    for i in range(n):
        order[lo + i] = spare[here, i]


@kernel
def _rank(score: Array, start: Array, first: int, last: int, order: Array) -> None:
    """Sort every label of [first, last) into ``order``."""
    longest = 0
    for k in range(first, last):
        longest = max(longest, start[k + 1] - start[k])
    keys = np.empty((2, longest), np.uint64)
    spare = np.empty((2, longest), np.int32)
    for k in range(first, last):
        _sort_segment(score, start[k], start[k + 1], order, keys, spare)


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
    _rank(frozen(score, np.float64), frozen(start, np.int64), first, last, order)
