"""Many short ranges of scores, each sorted in place: quicksort down to an insertion sort.

NumPy sorts a long range faster than this, but a call for each of a hundred thousand short ones
costs more than the sorting.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

_INSERTION = 24
_DEPTH = 64


@kernel
def _sort(
    start: Array, first: int, last: int, longest: int, lows: Array, highs: Array, score: Array
) -> None:
    """Sort every range of [first, last) that is no longer than ``longest``."""
    for s in range(first, last):
        if start[s + 1] - start[s] > longest:
            continue
        lows[0], highs[0] = start[s], start[s + 1] - 1
        top = 1
        while top > 0:
            top -= 1
            low, high = lows[top], highs[top]
            while high - low >= _INSERTION:
                middle = (low + high) // 2
                a, b, c = score[low], score[middle], score[high]
                pivot = max(min(a, b), min(max(a, b), c))
                i, j = low, high
                while i <= j:
                    while score[i] < pivot:
                        i += 1
                    while score[j] > pivot:
                        j -= 1
                    if i <= j:
                        score[i], score[j] = score[j], score[i]
                        i += 1
                        j -= 1
                # the longer part waits, so that the stack stays as deep as the logarithm
                if j - low > high - i:
                    lows[top], highs[top] = low, j
                    low = i
                else:
                    lows[top], highs[top] = i, high
                    high = j
                top += 1
            for i in range(low + 1, high + 1):
                value = score[i]
                j = i
                while j > low and score[j - 1] > value:
                    score[j] = score[j - 1]
                    j -= 1
                score[j] = value


def sort_short(start: Array, first: int, last: int, longest: int, score: Array) -> None:
    """Sort short ranges in place, ascending; longer ones are left as they are.

    Args:
        start: int64 [s + 1], CSR offsets.
        first: first range to sort.
        last: one past the last.
        longest: ranges with more values than this are left alone.
        score: float64 [n], without NaN.
    """
    _sort(
        frozen(start, np.int64),
        first,
        last,
        longest,
        np.empty(_DEPTH, np.int64),
        np.empty(_DEPTH, np.int64),
        score,
    )
