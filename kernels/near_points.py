"""Which values of a column stand near some points, and how many of the others are below each point.

How many values are below a point takes no order of them all. A range of values is cut into small
places; a value shares the place of a point or it does not, and of those that do not the number by
place is enough. What is left is short, and whoever sorts that has the ranks of the points among all
values, ties told exactly: places only decide what is compared, never how.

Where no point is negative, places are of equal width in the bits of floats, which rise with them:
scores that add up to one over many labels are tiny but for a few. Otherwise they are of equal width
in the values themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .score_grid import key_of

Array = np.ndarray[Any, Any]

_TOGETHER = 2048  # values whose places are found before the first is counted
_SAMPLE = 512  # values that tell whether few are near
_OCTAVE = np.int64(1 << 51)  # what keys rise by where values double
_OCTAVES = 32  # below the highest point; smaller values share one place
_FEWEST, _MOST = 1 << 12, 1 << 16  # places
_EACH = 8  # places to a point


@inner
def _by_bits(bits: Array, origin: int, shift: int, last: int, at: Array) -> None:
    """Places of equal width in the bits; the first and the last one are of all values beyond."""
    for i in range(bits.size):
        at[i] = np.int32(min(max(((key_of(bits[i]) - origin) >> shift) + 1, 0), last))


@inner
def _by_value(value: Array, low: float, scale: float, last: int, at: Array) -> None:
    """Places of equal width in the values; rounding keeps their order."""
    for i in range(value.size):
        at[i] = np.int32(min(max((value[i] - low) * scale + 1.0, 0.0), np.float64(last)))


@kernel
def _near(
    value: Array,
    bits: Array,
    point: Array,
    point_bits: Array,
    flag: Array,
    count: Array,
    at: Array,
    below: Array,
    near: Array,
) -> int:
    """Values near points to ``near``, how many others are below each to ``below``.

    The arrays between are to work in: zeros of as many places as there are, ``flag`` and ``count``,
    and ``at`` with room for ``_TOGETHER`` values or all points.

    Returns how many are near; -1, and nothing is of use, where a sample says that most are.
    """
    low, high = point[0], point[0]
    bottom, top = key_of(point_bits[0]), key_of(point_bits[0])
    for i in range(point.size):
        low, high = min(low, point[i]), max(high, point[i])
        key = key_of(point_bits[i])
        bottom, top = min(bottom, key), max(top, key)
    last = count.size - 1
    places = last - 1
    by_bits = low >= 0.0
    origin, shift, scale = np.int64(0), np.int64(0), 0.0
    if by_bits:
        origin = max(bottom, top - _OCTAVE * _OCTAVES)
        while (top - origin) >> shift >= places:
            shift += 1
    elif high - low < np.inf:
        scale = (places - 1) / max(high - low, 1e-300)
    else:
        return -1

    if by_bits:
        _by_bits(point_bits, origin, shift, last, at)
    else:
        _by_value(point, low, scale, last, at)
    for i in range(point.size):
        below[i] = at[i]
        flag[at[i]] = 1

    step = max(value.size // _SAMPLE, 1)
    found, seen = 0, 0
    for i in range(0, value.size, step):
        if by_bits:
            _by_bits(bits[i : i + 1], origin, shift, last, at)
        else:
            _by_value(value[i : i + 1], low, scale, last, at)
        found += flag[at[0]]
        seen += 1
    if 2 * found > seen:
        return -1

    m = np.uint64(0)
    for first in range(0, value.size, _TOGETHER):
        some = value[first : first + _TOGETHER]
        if by_bits:
            _by_bits(bits[first : first + _TOGETHER], origin, shift, last, at)
        else:
            _by_value(some, low, scale, last, at)
        for i in range(some.size):
            place = np.uint64(at[i])
            count[place] += 1
            near[m] = some[i]  # stays if it is near, else the next one takes its room
            m += np.uint64(flag[place])

    passed = np.int64(0)
    for k in range(last + 1):
        here = np.int64(0) if flag[k] else count[k]
        count[k] = passed
        passed += here
    for i in range(point.size):
        below[i] = count[below[i]]
    return int(np.int64(m))


def near_points(value: Array, point: Array) -> tuple[Array, Array] | None:
    """Values that have to be compared with points to know how many are below each of these.

    Args:
        value: float64 [n], fewer than 2^31, finite, in any order.
        point: float64 [p], at least one, without NaN, in any order.

    Returns:
        float64 [m], values near points, in the order they stand in; int64 [p], how many of the
        others are below each point, the rest of them being above it. None where most are near.
    """
    value, point = frozen(value, np.float64), frozen(point, np.float64)
    places = 2 + min(max(1 << (_EACH * point.size - 1).bit_length(), _FEWEST), _MOST)
    below, near = np.empty(point.size, np.int64), np.empty(value.size)
    n = _near(
        value,
        frozen(value.view(np.int64), np.int64),
        point,
        frozen(point.view(np.int64), np.int64),
        np.zeros(places, np.uint8),
        np.zeros(places, np.int32),
        np.empty(max(point.size, _TOGETHER), np.int32),
        below,
        near,
    )
    return None if n < 0 else (near[:n], below)
