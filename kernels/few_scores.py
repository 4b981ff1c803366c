"""Few distinct scores are counted instead of sorted: rows of every outcome at every score.

A hash table of the scores' bits (open addressing, Fibonacci hashing: Knuth, The Art of Computer
Programming 3, 6.4) stays in the cache, so that one pass takes the place of a layout and a sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

MOST = 4096
"""Distinct scores at most."""
_BITS = 14  # of the table's places: four for each of its scores
_FIBONACCI = np.uint64(0x9E3779B97F4A7C15)
_NEGATIVE_ZERO = np.uint64(1 << 63)


@kernel
def _count(bits: Array, outcome: Array, n_seen: int, place: Array, key: Array, count: Array) -> int:
    """Rows by score and outcome.

    Scores are numbered as they come. Returns how many distinct ones there are; -1 as soon as there
    are too many, or a zero has a sign: it equals the other zero.
    """
    shift = np.uint64(64 - _BITS)
    last = place.size - 1
    for i in range(bits.size):
        b = bits[i]
        at = np.int64((b * _FIBONACCI) >> shift)
        c = np.int64(place[at])
        while c >= 0 and key[c] != b:
            at = (at + 1) & last
            c = np.int64(place[at])
        if c < 0:
            if n_seen == MOST or b == _NEGATIVE_ZERO:
                return -1
            c = np.int64(n_seen)
            n_seen += 1
            place[at] = c
            key[c] = b
        count[c, outcome[i]] += 1
    return n_seen


def count_few(
    parts: Sequence[Array], outcome: Array, n_outcomes: int
) -> tuple[Array, Array] | None:
    """How many rows of each outcome have each score; None where more than ``MOST`` differ.

    Args:
        parts: float64 arrays of n scores together, without NaN.
        outcome: uint8 [n], below ``n_outcomes``.
        n_outcomes: number of outcomes.

    Returns:
        the distinct scores ascending, float64 [m]; rows, int64 [n_outcomes, m]. None as well where
        a score is -0.0.
    """
    place, key = np.full(1 << _BITS, -1, np.int16), np.zeros(MOST, np.uint64)
    count = np.zeros((MOST, n_outcomes), np.int64)
    seen, offset = 0, 0
    for part in parts:
        bits = frozen(np.ascontiguousarray(part, np.float64).view(np.uint64), np.uint64)
        here = frozen(outcome[offset : offset + bits.size], np.uint8)
        seen = _count(bits, here, seen, place, key, count)
        if seen < 0:
            return None
        offset += bits.size
    values = key[:seen].view(np.float64)
    order = np.argsort(values)
    return values[order], count[order].T
