"""Translation edit rate: edits and shifts of words, as sacrebleu 2.6 counts them after Tercom.

Snover et al., "A Study of Translation Edit Rate with Targeted Human Annotation", 2006. While it
lowers the edit distance, the best shift of words that also stand in the reference is made: of equal
gains the longest, then the earliest, then that to the earliest place. Distances are searched
within 25 cells of the diagonal; shifts are of up to 10 words over up to 50 places, and no more are
tried after 1,000.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .coded_texts import coded_texts
from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_LONGEST_SHIFT, _FARTHEST, _BEAM, _MOST_TRIED = 10, 50, 25, 1000
_NEVER = np.int32(1 << 28)
_KEEP, _REPLACE, _DELETE, _INSERT = np.uint8(0), np.uint8(1), np.uint8(2), np.uint8(3)


@inner
def _band(i: int, n: int, m: int, ratio: float, width: int) -> tuple[int, int]:
    """The columns of row ``i`` that are searched."""
    diagonal = math.floor(i * ratio)
    low = max(0, diagonal - width)
    return low, (m + 1 if i == n else min(m + 1, diagonal + width))


@inner
def _rows(
    h: Array,
    n: int,
    ref: Array,
    m: int,
    from_row: int,
    cost: Array,
    step: Array,
    stepped: bool,
) -> int:
    """Rows of the table after ``from_row``; returns the distance.

    ``cost`` is [n + 1, m + 2], column 0 unused, so that every cell has one before it.
    """
    ratio = m / n if n > 0 else 1.0
    width = _BEAM
    if width < ratio / 2:
        width = math.ceil(ratio / 2 + _BEAM)
    high = m + 1
    if from_row > 0:
        high = _band(from_row, n, m, ratio, width)[1]
    for i in range(from_row + 1, n + 1):
        low, top = _band(i, n, m, ratio, width)
        for j in range(high, top):
            cost[i - 1, j + 1] = _NEVER
        cost[i, low] = _NEVER
        word = h[i - 1]
        for j in range(low, top):
            best, op = _NEVER, _KEEP
            if j == 0:
                best, op = cost[i - 1, 1] + np.int32(1), _DELETE
            else:
                best = cost[i - 1, j]
                if word != ref[j - 1]:
                    best, op = best + np.int32(1), _REPLACE
                above = cost[i - 1, j + 1] + np.int32(1)
                if best > above:
                    best, op = above, _DELETE
                left = cost[i, j] + np.int32(1)
                if best > left:
                    best, op = left, _INSERT
            cost[i, j + 1] = best
            if stepped:
                step[i, j] = op
        high = top
    return cost[n, m + 1]


@inner
def _align(n: int, m: int, step: Array, align: Array, h_wrong: Array, r_wrong: Array) -> None:
    """Where each word of the reference stands in the hypothesis, and running counts of errors."""
    i, j = n, m
    while i > 0 or j > 0:
        op = step[i, j] if i > 0 else _INSERT
        if op == _INSERT:
            align[j - 1] = i - 1
            r_wrong[j] = 1
            j -= 1
        elif op == _DELETE:
            h_wrong[i] = 1
            i -= 1
        else:
            align[j - 1] = i - 1
            h_wrong[i] = r_wrong[j] = op
            i -= 1
            j -= 1
    h_wrong[0] = r_wrong[0] = 0
    for k in range(n):
        h_wrong[k + 1] += h_wrong[k]
    for k in range(m):
        r_wrong[k + 1] += r_wrong[k]


@inner
def _shift(h: Array, n: int, start: int, length: int, target: int, out: Array) -> None:
    """Words with [start, start + length) moved to ``target``."""
    k = 0
    if target < start:
        for i in range(target):
            out[i] = h[i]
        k = target
        for i in range(start, start + length):
            out[k] = h[i]
            k += 1
        for i in range(target, start):
            out[k] = h[i]
            k += 1
        for i in range(start + length, n):
            out[k] = h[i]
            k += 1
        return
    until = target if target > start + length else min(length + target, n)
    for i in range(start):
        out[i] = h[i]
    k = start
    for i in range(start + length, until):
        out[k] = h[i]
        k += 1
    for i in range(start, start + length):
        out[k] = h[i]
        k += 1
    for i in range(until, n):
        out[k] = h[i]
        k += 1


@inner
def _edits(
    h: Array,
    n: int,
    ref: Array,
    m: int,
    cost: Array,
    step: Array,
    tried: Array,
    align: Array,
    h_wrong: Array,
    r_wrong: Array,
    shifted: Array,
) -> int:
    """Edits and shifts of one hypothesis, which is shifted in place."""
    for j in range(m + 1):
        cost[0, j + 1] = tried[0, j + 1] = j
    shifts, checked = 0, 0
    while True:
        before = _rows(h, n, ref, m, 0, cost, step, True)
        _align(n, m, step, align, h_wrong, r_wrong)
        found = False
        gain, size, first, place = 0, 0, 0, 0
        for start in range(n):
            if checked >= _MOST_TRIED:
                break
            for at in range(max(0, start - _FARTHEST), min(m, start + _FARTHEST + 1)):
                if checked >= _MOST_TRIED:
                    break
                length = 0
                while (
                    length < _LONGEST_SHIFT
                    and start + length < n
                    and at + length < m
                    and h[start + length] == ref[at + length]
                ):
                    length += 1
                    if h_wrong[start + length] == h_wrong[start]:
                        continue
                    if r_wrong[at + length] == r_wrong[at]:
                        continue
                    if start <= align[at] < start + length:
                        continue
                    previous = -1
                    for offset in range(-1, length):
                        target = 0 if at + offset == -1 else align[at + offset] + 1
                        if target == previous:
                            continue
                        previous = target
                        _shift(h, n, start, length, target, shifted)
                        same = min(start, target)
                        for j in range(m + 2):
                            tried[same, j] = cost[same, j]
                        after = _rows(shifted, n, ref, m, same, tried, step, False)
                        checked += 1
                        won = before - after
                        if (
                            not found
                            or won > gain
                            or (
                                won == gain
                                and (
                                    length > size
                                    or (
                                        length == size
                                        and (start < first or (start == first and target < place))
                                    )
                                )
                            )
                        ):
                            found = True
                            gain, size, first, place = won, length, start, target
                    if checked >= _MOST_TRIED:
                        break
        if checked >= _MOST_TRIED or not found or gain <= 0:
            return shifts + before
        shifts += 1
        _shift(h, n, first, size, place, shifted)
        for i in range(n):
            h[i] = shifted[i]


@kernel
def _rate(
    begin: int,
    stop: int,
    candidate: Array,
    c_start: Array,
    c_code: Array,
    r_start: Array,
    r_code: Array,
    out: Array,
) -> None:
    """Edits of the units [begin, stop)."""
    n_max, m_max, cells = 0, 0, 0
    for u in range(begin, stop):
        n = c_start[candidate[u] + 1] - c_start[candidate[u]]
        m = r_start[u + 1] - r_start[u]
        n_max, m_max = max(n_max, n), max(m_max, m)
        cells = max(cells, (n + 1) * (m + 2))
    costs, others = np.empty(cells, np.int32), np.empty(cells, np.int32)
    steps = np.empty(cells, np.uint8)
    align = np.empty(m_max, np.int64)
    h_wrong, r_wrong = np.zeros(n_max + 1, np.int64), np.zeros(m_max + 1, np.int64)
    h, shifted = np.empty(n_max, np.int32), np.empty(n_max, np.int32)
    for u in range(begin, stop):
        c0, r0 = c_start[candidate[u]], r_start[u]
        n, m = c_start[candidate[u] + 1] - c0, r_start[u + 1] - r0
        if m == 0 or n == 0:
            out[u] = n + m
            continue
        for i in range(n):
            h[i] = c_code[c0 + i]
        size = (n + 1) * (m + 2)
        out[u] = _edits(
            h,
            n,
            r_code[r0 : r0 + m],
            m,
            costs[:size].reshape(n + 1, m + 2),
            steps[:size].reshape(n + 1, m + 2),
            others[:size].reshape(n + 1, m + 2),
            align,
            h_wrong,
            r_wrong,
            shifted,
        )


def translation_edits(
    first: int,
    last: int,
    candidate: Array,
    candidates: tuple[Array, Array],
    references: tuple[Array, Array],
    out: Array,
) -> None:
    """Insertions, deletions, replacements and shifts from each candidate to a reference.

    Args:
        first: first reference.
        last: one past the last.
        candidate: int64 [m], the candidate of each reference.
        candidates: offsets of the words of each candidate, int64; their codes, int32.
        references: the same of the references, int64 [m + 1].
        out: int64 [m], filled.
    """
    _rate(
        first,
        last,
        frozen(candidate, np.int64),
        *coded_texts(candidates, references),
        out,
    )
