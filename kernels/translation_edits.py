"""Translation edit rate: edits and shifts of words, as sacrebleu 2.6 counts them after Tercom.

Snover et al., "A Study of Translation Edit Rate with Targeted Human Annotation", 2006. While it
lowers the edit distance, the best shift of words that also stand in the reference is made: of equal
gains the longest, then the earliest, then that to the earliest place. Distances are searched
within 25 cells of the diagonal; shifts are of up to 10 words over up to 50 places, and no more are
tried after 1,000.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .coded_texts import coded_texts
from .jit import frozen, inner, kernel
from .word_alignment import align_words, bands, fill_rows, kept_cells

Array = np.ndarray[Any, Any]

_LONGEST_SHIFT, _FARTHEST, _MOST_TRIED = 10, 50, 1000


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
    low: Array,
    top: Array,
    cost: Array,
    step: Array,
    tried: Array,
    align: Array,
    h_wrong: Array,
    r_wrong: Array,
    shifted: Array,
) -> int:
    """Edits and shifts of one hypothesis, which is shifted in place."""
    bands(n, m, low, top)
    for j in range(top[0]):
        cost[0, j + 1] = tried[0, j + 1] = j
    shifts, checked = 0, 0
    while True:
        before = fill_rows(h, n, ref, m, 0, low, top, cost, step, True)
        align_words(n, m, low, step, align, h_wrong, r_wrong)
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
                        for k in range(cost.shape[1]):
                            tried[same, k] = cost[same, k]
                        after = fill_rows(shifted, n, ref, m, same, low, top, tried, step, False)
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
    n_max, m_max = 0, 0
    for u in range(begin, stop):
        n = c_start[candidate[u] + 1] - c_start[candidate[u]]
        m = r_start[u + 1] - r_start[u]
        n_max, m_max = max(n_max, n), max(m_max, m)
    align = np.empty(m_max, np.int64)
    h_wrong, r_wrong = np.zeros(n_max + 1, np.int64), np.zeros(m_max + 1, np.int64)
    h, shifted = np.empty(n_max, np.int32), np.empty(n_max, np.int32)
    low, top = np.empty(n_max + 1, np.int64), np.empty(n_max + 1, np.int64)
    for u in range(begin, stop):
        c0, r0 = c_start[candidate[u]], r_start[u]
        n, m = c_start[candidate[u] + 1] - c0, r_start[u + 1] - r0
        if m == 0 or n == 0:
            out[u] = n + m
            continue
        for i in range(n):
            h[i] = c_code[c0 + i]
        cells = n + 1, kept_cells(n, m)
        out[u] = _edits(
            h,
            n,
            r_code[r0 : r0 + m],
            m,
            low,
            top,
            np.empty(cells, np.int32),
            np.empty(cells, np.uint8),
            np.empty(cells, np.int32),
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
