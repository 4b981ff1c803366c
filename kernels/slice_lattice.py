"""Slices by several conditions: which may be bad enough to look at, and what each comes to.

A slice is a set of items (column = value), at most one a column. Of every slice of one level the
rows, the size, the sum and the highest of the errors are known; a slice of the next level joins two
that differ in their last item. It can be no larger than the smallest of all slices it lies in, and
no worse than their sums and highest errors allow. Its size is the sum of the weights of its rows,
each of which counts in the sum of errors by its weight.

Source: S. Sagadeeva, M. Boehm, "SliceLine: Fast, Linear-Algebra-based Slice Finding for ML Model
Debugging" (SIGMOD 2021), sections 3 and 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]


class Scoring(NamedTuple):
    """What makes a slice bad.

    Attributes:
        n: sum of all weights, the number of rows where each weighs 1.
        total: sum of all errors, above 0.
        alpha: weight of the mean error against the size, in (0, 1].
        least: rows that a slice has at least.
        lightest: size that so many rows have at least, above 0.
        beat: score below which a slice is of no account.
    """

    n: float
    total: float
    alpha: float
    least: int
    lightest: float
    beat: float


class Level(NamedTuple):
    """Slices of one level, in ascending order of their items.

    Attributes:
        items: int32 [m, level], of ascending columns.
        key: int64 [m], the items as digits of one number, ascending.
        rows: int64 [m].
        size: float64 [m], sum of their weights.
        total: float64 [m], sum of their errors, each by its weight.
        worst: float64 [m], highest of their errors, without weights.
    """

    items: Array
    key: Array
    rows: Array
    size: Array
    total: Array
    worst: Array


@inner
def _score(size: float, total: float, scoring: Any) -> float:
    n, every, alpha = scoring.n, scoring.total, scoring.alpha
    return alpha * (total / size * (n / every) - 1.0) - (1.0 - alpha) * (n / size - 1.0)


@inner
def _highest_score(size: float, total: float, worst: float, scoring: Any) -> float:
    """The highest score of a slice of at most that size, errors in all, and error of a row."""
    low = scoring.lightest
    best = _score(size, min(total, size * worst), scoring)
    best = max(best, _score(low, min(total, low * worst), scoring))
    if worst > 0.0:
        turn = min(max(total / worst, low), size)
        best = max(best, _score(turn, min(total, turn * worst), scoring))
    return best


@inner
def _place(keys: Array, key: int) -> int:
    """Where a key stands among ascending ones; -1 where it does not."""
    low, high = 0, keys.size
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < keys.size and keys[low] == key else -1


@kernel
def _join(
    first: int, last: int, level: Any, column: Array, scoring: Any, start: Array, children: Array
) -> None:
    """Last items of the slices that each slice grows into: counted, or written where there is room.

    ``start`` int64 [last - first + 1] is written where ``children`` is empty, and read else.
    """
    items, key, rows, size, total, worst = level
    n_items, deep = column.size, items.shape[1]
    counting = children.size == 0
    made = 0
    for p in range(first, last):
        if counting:
            start[p - first] = made
        own = column[items[p, deep - 1]]
        for q in range(p + 1, items.shape[0]):
            alike = True
            for j in range(deep - 1):
                if items[p, j] != items[q, j]:
                    alike = False
                    break
            if not alike:
                break
            item = items[q, deep - 1]
            if column[item] == own:
                continue
            fewest, most, errors, high = (
                min(rows[p], rows[q]),
                min(size[p], size[q]),
                min(total[p], total[q]),
                min(worst[p], worst[q]),
            )
            whole = True
            for left_out in range(deep - 1):
                parent = 0
                for j in range(deep):
                    if j != left_out:
                        parent = parent * n_items + items[p, j]
                parent = parent * n_items + item
                at = _place(key, parent)
                if at < 0:
                    whole = False
                    break
                fewest = min(fewest, rows[at])
                most = min(most, size[at])
                errors = min(errors, total[at])
                high = min(high, worst[at])
            if not whole or fewest < scoring.least or errors <= 0.0:
                continue
            bound = _highest_score(most, errors, high, scoring)
            if bound + 1e-9 * (1.0 + abs(bound)) < scoring.beat:  # sums are rounded
                continue
            if not counting:
                children[start[p - first] + made] = item
            made += 1
        if not counting:
            made = 0
    if counting:
        start[last - first] = made


def join(
    first: int, last: int, level: Level, column: Array, scoring: Scoring
) -> tuple[Array, Array]:
    """The slices of the next level that some slices of one level grow into.

    Args:
        first: first slice.
        last: one past the last.
        level: all slices of that level that are of account.
        column: int32 [items], column of each item, ascending.
        scoring: what makes a slice bad.

    Returns:
        int64 [last - first + 1] offsets, and int32 last items of the new slices, ascending within
        each.
    """
    given = Level(
        frozen(level.items, np.int32),
        frozen(level.key, np.int64),
        frozen(level.rows, np.int64),
        frozen(level.size, np.float64),
        frozen(level.total, np.float64),
        frozen(level.worst, np.float64),
    )
    columns = frozen(column, np.int32)
    start = np.zeros(last - first + 1, np.int64)
    _join(first, last, given, columns, scoring, start, np.zeros(0, np.int32))
    children = np.zeros(start[-1], np.int32)
    if children.size:
        _join(first, last, given, columns, scoring, start, children)
    return start, children


@kernel
def _measure(
    code: Array,
    error: Array,
    weight: Array,
    column: Array,
    items: Array,
    start: Array,
    children: Array,
    rows: Array,
    cells: Any,
    out: Any,
) -> None:
    """Rows, sizes, sums and highest errors of children; see :func:`measure`."""
    n, deep = error.size, items.shape[1]
    weighed = weight.size > 0
    held = np.zeros(deep, np.int64)
    many, heavy, errors, high = cells
    count, size, total, worst = out
    for p in range(items.shape[0]):
        if start[p] == start[p + 1]:
            continue
        same = 0
        if p > 0:
            while same < deep and held[same] >= 0 and rows[same, n] == items[p, same]:
                same += 1
        for j in range(same, deep):
            item = items[p, j]
            own = code[column[item]]
            k = 0
            if j == 0:
                for r in range(n):
                    if own[r] == item:
                        rows[0, k] = r
                        k += 1
            else:
                for i in range(held[j - 1]):
                    r = rows[j - 1, i]
                    if own[r] == item:
                        rows[j, k] = r
                        k += 1
            held[j] = k
            rows[j, n] = item
            for later in range(j + 1, deep):
                rows[later, n] = -1
        at = start[p]
        while at < start[p + 1]:
            c = column[children[at]]
            own = code[c]
            for i in range(held[deep - 1]):
                r = rows[deep - 1, i]
                item = own[r]
                if item >= 0:
                    many[item] += 1
                    if weighed:
                        heavy[item] += weight[r]
                        errors[item] += weight[r] * error[r]
                    else:
                        errors[item] += error[r]
                    high[item] = max(high[item], error[r])
            while at < start[p + 1] and column[children[at]] == c:
                item = children[at]
                count[at], size[at] = many[item], heavy[item] if weighed else many[item]
                total[at], worst[at] = errors[item], high[item]
                at += 1
            for i in range(held[deep - 1]):
                item = own[rows[deep - 1, i]]
                if item >= 0:
                    many[item] = 0
                    heavy[item] = 0.0
                    errors[item] = 0.0
                    high[item] = 0.0


def measure(
    code: Array,
    error: Array,
    weight: Array,
    column: Array,
    items: Array,
    start: Array,
    children: Array,
) -> tuple[Array, Array, Array, Array]:
    """Rows, size, sum and highest of the errors of slices, each given by the slice it grows from.

    Args:
        code: int32 [columns, n], item of each row, -1 for none that counts.
        error: float64 [n], not below 0.
        weight: float64 [n], above 0; [0] where each row weighs 1.
        column: int32 [items], column of each item.
        items: int32 [m, level], the slices that grow.
        start: int64 [m + 1], offsets of their new slices.
        children: int32 [k], last items of the new slices.

    Returns:
        int64, and thrice float64 [k], as :class:`Level` has them; sums are added by ascending row.
    """
    n_items, n = column.size, error.size
    cells, out = (
        (np.zeros(m, np.int64), np.zeros(m), np.zeros(m), np.zeros(m))
        for m in (n_items, children.size)
    )
    _measure(
        frozen(code, np.int32),
        frozen(error, np.float64),
        frozen(weight, np.float64),
        frozen(column, np.int32),
        frozen(items, np.int32),
        frozen(start, np.int64),
        frozen(children, np.int32),
        np.full((items.shape[1], n + 1), -1, np.int32),  # behind its rows the item they have
        cells,
        out,
    )
    return out
