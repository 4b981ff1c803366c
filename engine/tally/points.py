"""Curve points by segment, and vectorised search for indices in segments."""

from __future__ import annotations

import msgspec
import numpy as np

from ..schemas.arrays import Array


class Points(msgspec.Struct, frozen=True):
    """Points at every distinct score of every (group, label), scores descending.

    Attributes:
        start: int64 [groups * labels + 1], CSR offsets.
        threshold: float64 [m].
        tp: float64 [m], (weighted) true positives at or above the threshold.
        fp: float64 [m], (weighted) false positives among datums that have a truth of the key.
    """

    start: Array
    threshold: Array
    tp: Array
    fp: Array


def first_of(start: Array, fits: Array) -> Array:
    """Return the first index in every segment with ``fits`` True, int64 [s], -1 without one.

    Args:
        start: int64 [s + 1], CSR offsets.
        fits: bool [m].
    """
    places = np.append(np.flatnonzero(fits), fits.size)
    found = places[np.searchsorted(places, np.minimum(start[:-1], fits.size))]
    return np.where(found < start[1:], found, -1)


def last_of(start: Array, fits: Array) -> Array:
    """Return the last index in every segment with ``fits`` True, int64 [s], -1 without one.

    Args:
        start: int64 [s + 1], CSR offsets.
        fits: bool [m].
    """
    places = np.append(-1, np.flatnonzero(fits))
    found = places[np.searchsorted(places, start[1:]) - 1]
    return np.where(found >= start[:-1], found, -1)


def segment_of(start: Array) -> Array:
    """Return the segment of every index, int64 [m].

    Args:
        start: int64 [s + 1], CSR offsets.
    """
    return np.repeat(np.arange(start.size - 1), np.diff(start))


def largest_of(start: Array, value: Array) -> Array:
    """Return the largest value of every segment, float64 [s], -inf if empty.

    Args:
        start: int64 [s + 1], CSR offsets.
        value: float64 [m], without NaN.
    """
    out = np.full(start.size - 1, -np.inf)
    some = np.diff(start) > 0
    if some.any():
        out[some] = np.maximum.reduceat(value, start[:-1][some])
    return out
