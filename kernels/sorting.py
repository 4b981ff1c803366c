"""Scores sorted in place: many short ranges by quicksort, long ones by the digits of their bits.

NumPy sorts ranges of medium length faster than either, but a call for each of a hundred thousand
short ones costs more than the sorting. Its sort of millions of doubles rests on instructions that
some processors with AVX-512 take long for: there a radix sort takes a half to a fifth of it (least
significant digit first: Knuth, The Art of Computer Programming 3, 5.2.5).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel
from .order import rank_by_score

Array = np.ndarray[Any, Any]

_INSERTION = 24
_DEPTH = 64
_LONG = 1 << 17  # scores from which digits are counted, whose tables stay in the cache
_DIGIT, _DIGITS = np.uint64(11), 6
_FIRST = 4  # digits by which millions of scores that differ are in order, but for a few neighbours
_MOVES = 1  # per score, up to which those are put in order one by one
_LOW, _SIGN = np.uint64((1 << 11) - 1), np.uint64(1 << 63)


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


@kernel
def _count_digits(bits: Array, count: Array) -> None:
    """Bits of doubles to integers of the same order, in place, and how often each digit occurs."""
    for i in range(bits.size):
        b = bits[i]
        b = ~b if b & _SIGN else b | _SIGN
        bits[i] = b
        for d in range(_DIGITS):
            count[d, np.int64(b & _LOW)] += 1
            b >>= _DIGIT


@kernel
def _by_digit(
    source: Array, free: Array, shift: np.uint64, target: Array, beside: Array, taken: Array
) -> None:
    """Values in the order of one digit, equal ones as they stood, and what stands beside them."""
    both = beside.size > 0
    for i in range(source.size):
        digit = np.int64((source[i] >> shift) & _LOW)
        at = free[digit]
        free[digit] = at + 1
        target[at] = source[i]
        if both:
            taken[at] = beside[i]


@kernel
def _finish(bits: Array, beside: Array, moves: int) -> bool:
    """Put values in order that nearly are, equal ones as they stand; False after too many moves."""
    both = beside.size > 0
    for i in range(1, bits.size):
        value = bits[i]
        if bits[i - 1] <= value:
            continue
        with_it = beside[i] if both else 0
        j = i
        while j > 0 and bits[j - 1] > value and moves > 0:
            bits[j] = bits[j - 1]
            if both:
                beside[j] = beside[j - 1]
            j -= 1
            moves -= 1
        bits[j] = value
        if both:
            beside[j] = with_it
        if moves == 0:
            return False
    return True


@kernel
def _as_doubles(source: Array, target: Array) -> None:
    """The bits of doubles again."""
    for i in range(source.size):
        b = source[i]
        target[i] = b & ~_SIGN if b & _SIGN else ~b


def sort_range(score: Array) -> None:
    """Sort scores in place, ascending; -0.0 stands before 0.0 or among them.

    Args:
        score: float64 [n], without NaN, contiguous. As much memory is taken once more where it is
            long.
    """
    if score.size < _LONG:
        score.sort()
    else:
        _sort_digits(score, None)


def sort_with(start: Array, first: int, last: int, score: Array, beside: Array) -> None:
    """Sort ranges in place, ascending, and what stands beside each score with it.

    Args:
        start: int64 [s + 1], CSR offsets.
        first: first range to sort.
        last: one past the last.
        score: float64 [n], without NaN, contiguous.
        beside: float64 or int64 [n], a weight or row of each score.
    """
    long = np.flatnonzero(np.diff(start[first : last + 1]) >= _LONG) + first
    for a, b in zip(start[long].tolist(), start[long + 1].tolist(), strict=True):
        _sort_digits(score[a:b], beside[a:b])
    for low, high in zip([first, *(long + 1)], [*long, last], strict=True):
        a, b = int(start[low]), int(start[high])
        if a < b:
            down, order = -score[a:b], np.empty(b - a, np.int32)
            rank_by_score(down, start[low : high + 1] - a, 0, high - low, order)
            np.negative(down[order], out=score[a:b])
            beside[a:b] = beside[a:b][order]


def _sort_digits(score: Array, beside: Array | None) -> None:
    bits = score.view(np.uint64)
    count = np.zeros((_DIGITS, int(_LOW) + 1), np.int64)
    _count_digits(bits, count)
    source, target = bits, np.empty_like(bits)
    own = np.zeros(0, np.int64) if beside is None else beside.view(np.int64)
    here, there = own, np.empty_like(own)
    places = np.flatnonzero(count.max(axis=1) < bits.size)  # of the others all digits are alike
    for some in (places[-_FIRST:], places):
        for place in some:
            free = np.cumsum(count[place]) - count[place]
            _by_digit(source, free, np.uint64(place) * _DIGIT, target, here, there)
            source, target = target, source
            here, there = there, here
        if some.size == places.size or _finish(source, here, _MOVES * bits.size):
            break
    _as_doubles(source, bits)
    if here is not own:
        own[:] = here
