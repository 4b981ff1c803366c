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
def _count(
    bits: Array, outcome: Array, n_seen: int, place: Array, key: Array, count: Array, code: Array
) -> int:
    """Rows by score and outcome, and the code of each row's score where ``code`` has room for it.

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
        if code.size:
            code[i] = c
    return n_seen


class FewScores:
    """The distinct scores of rows that come piece by piece, and rows of each outcome at each.

    Args:
        n_outcomes: number of outcomes.
    """

    def __init__(self, n_outcomes: int) -> None:
        self._place = np.full(1 << _BITS, -1, np.int16)
        self._key = np.zeros(MOST, np.uint64)
        self._count = np.zeros((MOST, n_outcomes), np.int64)
        self._seen = 0

    def add(self, score: Array, outcome: Array, *, coded: bool = False) -> Array | None:
        """Count the rows of a piece.

        Args:
            score: float64 [n], without NaN.
            outcome: uint8 [n], below ``n_outcomes``.
            coded: whether the code of each row's score is asked for.

        Returns:
            codes of the scores in ``values``, uint16 [n], or empty; None where more than ``MOST``
            scores differ or one is -0.0, after which the counts hold no more.
        """
        bits = frozen(np.ascontiguousarray(score, np.float64).view(np.uint64), np.uint64)
        code = np.empty(bits.size if coded else 0, np.uint16)
        self._seen = _count(
            bits, frozen(outcome, np.uint8), self._seen, self._place, self._key, self._count, code
        )
        return None if self._seen < 0 else code

    @property
    def values(self) -> Array:
        """The distinct scores in the order of their codes, float64 [m]."""
        return self._key[: self._seen].view(np.float64)

    @property
    def ascending(self) -> tuple[Array, Array]:
        """The distinct scores ascending, float64 [m]; rows, int64 [n_outcomes, m]."""
        order = np.argsort(self.values)
        return self.values[order], self._count[order].T


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
    few, offset = FewScores(n_outcomes), 0
    for part in parts:
        if few.add(part, outcome[offset : offset + part.size]) is None:
            return None
        offset += part.size
    return few.ascending
