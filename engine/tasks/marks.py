"""Usual marks of missing values, such as -999."""

from __future__ import annotations

MARKS = frozenset(
    sign * one for sign in (1, -1) for one in (99.0, 999.0, 9999.0, 99999.0, 999999.0, 1e20, 1e30)
)
_TIMES = 10


def is_usual(mark: float, low: float, high: float) -> bool:
    """Return whether a mark is unlike all other values: positive ones are ten times as large.

    99 is no mark among percentages of 98.

    Args:
        low: lowest of the other values.
        high: highest of them.
    """
    return mark in MARKS and (mark < 0 or mark > _TIMES * max(abs(low), abs(high)))
