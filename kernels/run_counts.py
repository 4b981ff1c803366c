"""Run-length codes: COCO's compressed strings and lists of counts, from and to runs of ones.

Counts are the lengths of runs of zeros and ones in turn, zeros first. In a compressed string a
number takes 6 bits a character less 48: five of its bits, lowest first, and whether more follow;
its last fifth bit is the sign; from the fourth number on it is the difference to the count two
before. Source: pycocotools ``rleFrString``, ``rleToString``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .run_layout import Array, Runs, closed, put

FILLS, MALFORMED, CUT, NEGATIVE, SHORT, LONG = range(6)
"""What became of a code: it fills its size, or has a character that is none of the 64, ends inside
a number, has a run below zero, holds fewer pixels than its size, or more."""


@kernel
def _n_numbers(data: Array, offset: Array, n: Array) -> None:
    """How many numbers each text holds: characters after which no more bits follow."""
    for i in range(n.size):
        count: Any = 0
        for p in range(offset[i], offset[i + 1]):
            count += (((np.int64(data[p]) - 48) >> 5) & 1) ^ 1
        n[i] = count


@inner
def _number(data: Array, p: int, stop: int) -> tuple[Any, Any]:
    """The number that starts at ``p`` and its characters, or less 1 or 2 for what is wrong."""
    value: Any = 0
    shift, at = 0, p
    while at < stop:
        c = np.int64(data[at]) - 48
        if c < 0 or c > 63 or shift > 50:
            return 0, -1
        value |= (c & 31) << shift
        shift += 5
        at += 1
        if c & 32 == 0:
            return (value | (-1 << shift) if c & 16 else value), at - p
    return 0, -2


@kernel
def _decode(
    data: Array, offset: Array, pixels: Array, room: Array,
    begin: Array, end: Array, used: Array, fault: Array,
) -> None:  # fmt: skip
    for i in range(pixels.size):
        first, at = room[i], room[i]
        p, stop = offset[i], offset[i + 1]
        position, m, before, last, wrong, reach = 0, 0, 0, 0, 0, -1
        while p < stop:
            # Most numbers have one or two characters: read without a loop.
            c = np.int64(data[p]) - 48
            d = np.int64(data[p + 1]) - 48 if p + 1 < stop else 64
            if c & ~31 == 0:
                value: Any = (c << 59) >> 59
                p += 1
            elif c & ~63 == 0 and d & ~31 == 0:
                value = ((c & 31 | d << 5) << 54) >> 54
                p += 2
            else:
                value, size = _number(data, p, stop)
                if size < 0:
                    wrong = -size
                    break
                p += size
            if m > 2:
                value += before
            if value < 0 or value > pixels[i] - position:
                wrong = 3 if value < 0 else 5
                break
            before, last = last, value
            if m & 1 and value > 0:
                if reach == position:
                    at -= 1  # no zeros in between: the run before goes on
                else:
                    begin[at] = np.uint32(position)
                reach = position + value
                end[at] = np.uint32(reach)
                at += 1
            position += value
            m += 1
        if wrong == 0 and position < pixels[i]:
            wrong = 4
        used[i] = at - first
        fault[i] = wrong


@kernel
def _from_counts(
    count: Array, offset: Array, pixels: Array, room: Array,
    begin: Array, end: Array, used: Array, fault: Array,
) -> None:  # fmt: skip
    for i in range(pixels.size):
        first, at = room[i], room[i]
        position, wrong = 0, 0
        for k in range(offset[i], offset[i + 1]):
            if count[k] < 0:
                wrong = 3  # said before any excess: what a negative run takes back is no excess
        for k in range(offset[i], offset[i + 1]):
            value = count[k]
            if wrong == 0 and value > pixels[i] - position:  # a sum could be too large a number
                wrong = 5
            if wrong != 0:
                break
            if (k - offset[i]) & 1:
                at = put(begin, end, first, at, position, position + value)
            position += value
        if wrong == 0 and position < pixels[i]:
            wrong = 4
        used[i] = at - first
        fault[i] = wrong


class Room:
    """Room for the runs of codes, of which ranges can be read side by side.

    A code of n numbers has n / 2 runs at most, and mostly just as many: no part is copied to be
    joined with others.

    Args:
        numbers: int64 [n], how many numbers each code has.
    """

    def __init__(self, numbers: Array) -> None:
        n = numbers.size
        self._start = np.zeros(n + 1, np.int64)
        np.cumsum(numbers >> 1, out=self._start[1:])
        runs = int(self._start[-1])
        self._begin, self._end = np.empty(runs, np.uint32), np.empty(runs, np.uint32)
        self._used = np.empty(n, np.int64)
        self.fault = np.empty(n, np.uint8)
        """What became of each code (:data:`FILLS` and so on)."""

    def decode(self, first: int, last: int, data: Array, offset: Array, pixels: Array) -> None:
        """Read the compressed strings [first, last).

        Args:
            first: number of the first one.
            last: one past the last.
            data: uint8, the characters of all strings.
            offset: int64 [n + 1], where each starts in them; need not start at 0.
            pixels: int64 [n], height * width of each mask, below 2^32.
        """
        self._read(_decode, first, last, frozen(data, np.uint8), offset, pixels)

    def from_counts(
        self, first: int, last: int, count: Array, offset: Array, pixels: Array
    ) -> None:
        """Read the lists of counts [first, last): as :meth:`decode`, ``count`` being int64."""
        self._read(_from_counts, first, last, frozen(count, np.int64), offset, pixels)

    def _read(
        self, function: Any, first: int, last: int, values: Array, offset: Array, pixels: Array
    ) -> None:
        function(
            values,
            frozen(offset[first : last + 1], np.int64),
            frozen(pixels[first:last], np.int64),
            frozen(self._start[first : last + 1], np.int64),
            self._begin,
            self._end,
            self._used[first:last],
            self.fault[first:last],
        )

    def runs(self) -> Runs:
        """The runs of all codes, once every range was read; to be called once."""
        return closed(self._start, self._used, self._begin, self._end)


def numbers_of(data: Array, offset: Array) -> Array:
    """How many numbers each compressed string has, int64 [n]; arguments as in ``Room.decode``."""
    at = frozen(offset, np.int64)
    numbers = np.empty(at.size - 1, np.int64)
    _n_numbers(frozen(data, np.uint8), at, numbers)
    return numbers


def decode(data: Array, offset: Array, pixels: Array) -> tuple[Runs, Array]:
    """Runs of compressed strings.

    Args:
        data: uint8, the characters of all strings.
        offset: int64 [n + 1], where each string starts in them; need not start at 0.
        pixels: int64 [n], height * width of each mask, below 2^32.

    Returns:
        runs of n masks; uint8 [n], what became of each string (:data:`FILLS` and so on).
    """
    room = Room(numbers_of(data, offset))
    room.decode(0, offset.size - 1, data, offset, pixels)
    return room.runs(), room.fault


def from_counts(count: Array, offset: Array, pixels: Array) -> tuple[Runs, Array]:
    """Runs of lists of counts: arguments and results as :func:`decode`, ``count`` being int64."""
    room = Room(np.diff(offset))
    room.from_counts(0, offset.size - 1, count, offset, pixels)
    return room.runs(), room.fault


@kernel
def _encode(
    start: Array, begin: Array, end: Array, pixels: Array, offset: Array, data: Array
) -> int:
    """Write strings, or only their lengths into ``offset`` where there is no room for any."""
    write = data.size > 0
    total = 0
    for i in range(pixels.size):
        first, last = start[i], start[i + 1]
        position, older, old = 0, 0, 0
        # zeros and ones in turn, then the zeros after the last run
        n = 2 * (last - first)
        for k in range(n + 1):
            if k == n:
                value = pixels[i] - position
                if value == 0 and n > 0:
                    break
            else:
                run = first + (k >> 1)
                value = (
                    np.int64(end[run] - begin[run]) if k & 1 else np.int64(begin[run]) - position
                )
            position += value
            left = value - older if k > 2 else value
            older, old = old, value
            more = True
            while more:
                c = left & 31
                left >>= 5
                more = left != -1 if c & 16 else left != 0
                if write:
                    data[total] = np.uint8((c | 32 if more else c) + 48)
                total += 1
        offset[i + 1] = total
    return total


def encode(runs: Runs, pixels: Array) -> tuple[Array, Array]:
    """Compressed strings of masks, character for character what pycocotools ``encode`` gives.

    Args:
        runs: of n masks.
        pixels: int64 [n], height * width of each.

    Returns:
        offsets int64 [n + 1] of the strings; uint8, their characters.
    """
    start, begin, end = runs
    given = (
        frozen(start, np.int64), frozen(begin, np.uint32), frozen(end, np.uint32),
        frozen(pixels, np.int64),
    )  # fmt: skip
    offset = np.zeros(start.size, np.int64)
    data = np.empty(_encode(*given, offset, np.empty(0, np.uint8)), np.uint8)
    if data.size:
        _encode(*given, offset, data)
    return offset, data
