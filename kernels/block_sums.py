"""Exact sums of values that lie side by side, by blocks: what :mod:`.sums` adds one by one.

All values of a block are cut at the same bits, which its largest one chooses, by adding to each a
number so large that what lies below is rounded away; the pieces are whole numbers of 51 bits, which
a processor adds several at a time. A block whose values are so far apart that something is left is
added value by value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .chunks import ABOVE, add_bits, carry
from .jit import inner, kernel

Array = np.ndarray[Any, Any]

BLOCK = 2048
"""Values of a block; of 50 bits each, the sum of so many has 61."""

_CUTS = 4
_FEW = 24  # values that are added one by one faster
_LOW = 0xFFFFFFFF
_EXPONENT = 0x7FF0000000000000


@inner
def _cut(values: Array, n: int, step: int, above: Array, rest: Array) -> int:
    """The sum of values in whole steps of 2^step; what they are beyond that is left in ``rest``.

    ``rest`` may be ``values`` itself.
    """
    edge = 1.5 * 2.0 ** (52 + step)
    for i in range(n):
        above[i] = values[i] + edge
    for i in range(n):
        rest[i] = values[i] - (above[i] - edge)
    bits = above.view(np.int64)
    total = 0
    for i in range(n):
        total += bits[i]
    above[0] = edge
    return total - n * bits[0]  # both wrap around at 2^64


@inner
def _add_whole(chunks: Array, cell: int, first: int, value: int, step: int) -> None:
    """Add value * 2^step, of a value below 2^62."""
    at, shift = (step + 1074 >> 5) - first, step + 1074 & 31
    size = abs(value)
    low, high = (size & _LOW) << shift, (size >> 32) << shift
    parts = low & _LOW, (low >> 32) + (high & _LOW), high >> 32
    if value < 0:
        chunks[cell, at] -= parts[0]
        chunks[cell, at + 1] -= parts[1]
        chunks[cell, at + 2] -= parts[2]
    else:
        chunks[cell, at] += parts[0]
        chunks[cell, at + 1] += parts[1]
        chunks[cell, at + 2] += parts[2]


@inner
def _fits(low: int, stop: int, first: int, width: int, need: Array) -> bool:
    """Whether there are the chunks from ``low`` to below ``stop``; which these are, if not."""
    need[0], need[1] = low, stop
    return low >= first and stop <= first + width


@inner
def scratch() -> Array:
    """What :func:`add_block` writes to, float64 [3, BLOCK]."""
    return np.empty((3, BLOCK))


@inner
def add_block(
    values: Array,
    n: int,
    chunks: Array,
    odd: Array,
    cell: int,
    first: int,
    need: Array,
    room: Array,
) -> bool:
    """Add a block of values to a sum, and carry.

    Args:
        values: float64 [n or more]; what is not finite goes to ``odd``.
        n: how many, at most :data:`BLOCK`.
        chunks: int64 [cells, width]; see :func:`.chunks.add_bits`.
        odd: float64 [cells].
        cell: which sum.
        first: which of all chunks ``chunks[:, 0]`` is.
        need: int64 [2], written where chunks lack: the first, and one past the last.
        room: of :func:`scratch`.

    Returns:
        whether the chunks reach; nothing was added where they do not.
    """
    bits = values.view(np.int64)
    width = chunks.shape[1]
    most = 0
    for i in range(n):
        most = max(most, bits[i] & _EXPONENT)
    most >>= 52
    top = most - 1023  # |value| < 2^(top + 1)
    if n >= _FEW and 51 * _CUTS - 1023 < top < 1000:
        rest, totals = room[1], room[2].view(np.int64)
        totals[0] = _cut(values, n, top - 49, room[0], rest)
        last = 0
        left = 1.0
        while left > 0.0 and last < _CUTS - 1:
            last += 1
            totals[last] = _cut(rest, n, top - 49 - 51 * last, room[0], rest)
            left = 0.0
            for i in range(n):
                left = max(left, abs(rest[i]))
        if left == 0.0:
            while last > 0 and totals[last] == 0:
                last -= 1
            low = (top - 49 - 51 * last) + 1074 >> 5
            if not _fits(low, (most - 1 >> 5) + ABOVE, first, width, need):
                return False
            for k in range(last + 1):
                _add_whole(chunks, cell, first, totals[k], top - 49 - 51 * k)
            carry(chunks, cell)
            return True
    least, most = 0x7FF, -1
    for i in range(n):
        exponent = (bits[i] & _EXPONENT) >> 52
        if exponent != 0x7FF and bits[i] & 0x7FFFFFFFFFFFFFFF:
            least, most = min(least, exponent), max(most, exponent)
    if most >= 0:
        low, high = max(least - 1, 0) >> 5, max(most - 1, 0) >> 5
        if not _fits(low, high + ABOVE, first, width, need):
            return False
    for i in range(n):
        if bits[i] & _EXPONENT == _EXPONENT:
            odd[cell] += values[i]
        else:
            add_bits(chunks, cell, first, bits[i])
    carry(chunks, cell)
    return True


@kernel
def add_runs(
    values: Array, start: Array, chunks: Array, odd: Array, first: int, state: Array, need: Array
) -> bool:
    """Add values that lie by cell; see :meth:`.sums.ExactSums.resumed`.

    Args:
        values: float64 [n].
        start: int64 [cells + 1], where those of each cell begin.
        chunks: int64 [cells, width].
        odd: float64 [cells].
        first: which of all chunks ``chunks[:, 0]`` is.
        state: int64 [2], cell and value to go on with.
        need: int64 [2], written where it stops.
    """
    room = scratch()
    for c in range(state[0], start.size - 1):
        begin, end = max(start[c], state[1]), start[c + 1]
        while begin < end:
            n = min(BLOCK, end - begin)
            if not add_block(values[begin : begin + n], n, chunks, odd, c, first, need, room):
                state[0], state[1] = c, begin
                return False
            begin += n
    return True
