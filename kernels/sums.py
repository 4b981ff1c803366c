"""Exact sums of floats, and moments of paired values.

The same bits result in any order of the addends and any split into parts.

Arguments of these names are the same everywhere:

    chunks: int64 [cells, width], chunks of 32 bits of each sum.
    cell: index of a sum.
    first: number of the chunk ``chunks[:, 0]`` among all chunks.
    odd: float64 [cells], sums of infinities and NaN.
    need: int64 [2], missing chunks: the first, and one past the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .jit import F64, I32, I64, Array, MaybeF64, allocating, frozen, inner, kernel

# Sums as whole numbers: adjacent chunks of 32 bits.

ABOVE = 4
"""Chunks from the lowest of the highest addend to the last one that a carry reaches."""

_LOW = 0xFFFFFFFF


@inner
def add_bits(chunks: Array, cell: int, first: int, bits: int) -> None:
    """Add a finite double, given its bits as int64, to a sum."""
    exponent = (bits >> 52) & 0x7FF
    mantissa = bits & 0xFFFFFFFFFFFFF
    if exponent == 0:
        if mantissa == 0:
            return
        exponent = 1  # subnormal
    else:
        mantissa |= 1 << 52
    at = ((exponent - 1) >> 5) - first
    shift = (exponent - 1) & 31
    rest = mantissa >> (32 - shift)
    if bits < 0:
        chunks[cell, at] -= (mantissa << shift) & _LOW
        chunks[cell, at + 1] -= rest & _LOW
        chunks[cell, at + 2] -= rest >> 32
    else:
        chunks[cell, at] += (mantissa << shift) & _LOW
        chunks[cell, at + 1] += rest & _LOW
        chunks[cell, at + 2] += rest >> 32


@inner
def carry(chunks: Array, cell: int) -> None:
    """Bring all chunks of a sum except the last, which has the sign, into [0, 2^32)."""
    for i in range(chunks.shape[1] - 1):
        over = chunks[cell, i] >> 32
        chunks[cell, i] &= _LOW
        chunks[cell, i + 1] += over


@inner
def nearest(chunks: Array, cell: int, first: int) -> float:
    """Double nearest to a sum, ties to even; carries first."""
    width = chunks.shape[1]
    if width == 0:
        return 0.0
    carry(chunks, cell)
    sign = 1.0
    if chunks[cell, width - 1] < 0:
        sign = -1.0
        for i in range(width):
            chunks[cell, i] = -chunks[cell, i]
        carry(chunks, cell)
    top = width - 1
    while top >= 0 and chunks[cell, top] == 0:
        top -= 1
    value = 0.0
    if top >= 0:
        # The upper 22 to 53 and the lower 43 of 96 bits are doubles without loss, and so is one bit
        # more for all lower ones: their sum is rounded once, by the processor.
        second = chunks[cell, top - 1] if top > 0 else 0
        third = chunks[cell, top - 2] if top > 1 else 0
        sticky = 0
        for i in range(top - 2):
            if chunks[cell, i] != 0:
                sticky = 1
                break
        high = (chunks[cell, top] << 21) | (second >> 11)
        low = ((((second & 0x7FF) << 32) | third) << 1) | sticky
        value = math.ldexp(
            float(high) * 17592186044416.0 + float(low), 32 * (first + top - 2) - 1 - 1074
        )
    if sign < 0:
        for i in range(width):
            chunks[cell, i] = -chunks[cell, i]
        carry(chunks, cell)
    return sign * value


# Exact sums by blocks. All values of a block are cut at the same bits, given by its largest value,
# by adding and subtracting a large number; the pieces are whole numbers of 51 bits, which the
# processor adds several at a time. A block with remainders is added value by value.

BLOCK = 2048
"""Values of a block; the sum of so many values of 50 bits has 61."""

_CUTS = 4
_FEW = 24  # values that are added one by one faster
_EXPONENT = 0x7FF0000000000000


@inner
def _cut(values: Array, n: int, step: int, above: Array, rest: Array) -> int:
    """Sum of values in whole steps of 2^step; the remainders are written to ``rest``.

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
    """Check that chunks from ``low`` to below ``stop`` exist; otherwise note those needed."""
    need[0], need[1] = low, stop
    return low >= first and stop <= first + width


@allocating
def scratch() -> Array:
    """Scratch memory of :func:`add_block`, float64 [3, BLOCK]."""
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
    """Add a block of values to a sum, and carry; False, without adding, if chunks are missing.

    Args:
        values: float64 [n or more]; not finite ones go to ``odd``.
        n: number of values, at most :data:`BLOCK`.
        room: result of :func:`scratch`.
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
    """Add values grouped by cell; see :meth:`ExactSums.resumed`.

    Args:
        values: float64 [n].
        start: int64 [cells + 1], offsets of the values of each cell.
        state: int64 [2], cell and value to continue with.
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


# Exact sums of floats as whole numbers in chunks of 32 bits, selected by the exponent (Neal 2015,
# Fast exact summation using small and large superaccumulators, arXiv 1505.05571). Only the chunks
# that addends reach are kept, about six for ordinary weights. The only rounding is at the end, as
# in ``math.fsum``.

_MOST = 1 << 29  # addends between two carries: each below 2^32, a chunk of 64 bits fits 2^31


@kernel
def _reach(bits: Array) -> tuple[int, int]:
    """Lowest chunks that the smallest and the largest double reach; (1, 0) if all are zeros."""
    low, high = 1 << 20, -1
    for i in range(bits.size):
        if bits[i] & 0x7FFFFFFFFFFFFFFF:
            exponent = (bits[i] >> 52) & 0x7FF
            low = min(low, exponent)
            high = max(high, exponent)
    if high < 0:
        return 1, 0
    return max(low - 1, 0) >> 5, max(high - 1, 0) >> 5


@kernel
def _add(bits: Array, cell: Array, chunks: Array, first: int) -> None:
    for i in range(bits.size):
        add_bits(chunks, cell[i], first, bits[i])
    for c in range(chunks.shape[0]):
        carry(chunks, c)


@kernel
def _round(chunks: Array, first: int, out: Array) -> None:
    for c in range(chunks.shape[0]):
        out[c] = nearest(chunks, c, first)


@kernel
def _carry_all(chunks: Array) -> None:
    for c in range(chunks.shape[0]):
        carry(chunks, c)


class ExactSums:
    """Sums in cells, to which values are added in any order.

    Attributes:
        cells: number of sums, all 0 at first.
        first: number of the first chunk kept among all chunks.
        chunks: int64 [cells, width], argument of :func:`add_bits`; [cells, 0] if all are 0.
    """

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.first = 0
        self.chunks = np.zeros((cells, 0), np.int64)
        self._odd: Array | None = None  # float64 [cells], sums of addends that are not finite

    def reserve(self, values: Array) -> Array:
        """Make room for doubles as large and as small as these, and return their bits.

        Args:
            values: float64 [n], finite.

        Returns:
            int64 [n], as :func:`add_bits` takes them.
        """
        bits = frozen(values, np.float64).view(np.int64)
        low, high = _reach(bits)
        if low <= high:
            self._widen(low, high + ABOVE)
        return bits

    def reserve_products(self, sums: ExactSums) -> None:
        """Make room for products of two sums within the range of ``sums``, and twice that."""
        width = sums.chunks.shape[1]
        if width:
            # As powers of two: of the least addend, and of the largest times 2^40 of them.
            least = 2 * (32 * sums.first - 1074)
            most = 2 * (32 * (sums.first + width - ABOVE + 1) + 53 - 1074 + 40) + 2
            self.reserve(np.ldexp(1.0, np.clip([least, most], -1074, 1023)))

    def _widen(self, low: int, stop: int) -> None:
        width = self.chunks.shape[1]
        if not width:
            self.first, self.chunks = low, np.zeros((self.cells, stop - low), np.int64)
            return
        first, end = min(low, self.first), max(stop, self.first + width)
        if (first, end) == (self.first, self.first + width):
            return
        chunks = np.zeros((self.cells, end - first), np.int64)
        at = self.first - first
        chunks[:, at : at + width] = self.chunks
        self.first, self.chunks = first, chunks
        self.carry()  # a negative sum has its sign in the former last chunk

    def carry(self) -> None:
        """Make room in all chunks again, after at most 2^29 addends were added by a kernel."""
        _carry_all(self.chunks)

    def add(self, values: Array, cell: Array | None = None) -> ExactSums:
        """Add values to their cells; return itself.

        Args:
            values: float64 [n]; infinities and NaN have the same effect as in sums of floats.
            cell: int [n], cell of each; None if there is one cell.
        """
        values = np.asarray(values, np.float64)
        if cell is None:
            return self.add_runs(values, np.array([0, values.size]))
        finite = np.isfinite(values)
        if not finite.all():
            odd = ~finite
            if self._odd is None:
                self._odd = np.zeros(self.cells)
            with np.errstate(invalid="ignore"):
                np.add.at(self._odd, cell[odd], values[odd])
            values, cell = values[finite], cell[finite]
        bits = self.reserve(values)
        place = frozen(cell, np.int64)
        for begin in range(0, bits.size if self.chunks.shape[1] else 0, _MOST):
            some = slice(begin, begin + _MOST)
            _add(bits[some], place[some], self.chunks, self.first)
        return self

    def add_runs(self, values: Array, start: Array) -> ExactSums:
        """Add values ordered by cell; return itself.

        Args:
            values: float64 [n], as in :meth:`add`.
            start: int64 [cells + 1], offsets of the values of each cell.
        """
        inputs = frozen(values, np.float64), frozen(start, np.int64)
        self.resumed(lambda *state: add_runs(*inputs, *state), 2)
        return self

    def resumed(self, kernel: Callable[..., bool], n: int) -> None:
        """Call a kernel that adds, widening the chunks until they suffice.

        Args:
            kernel: takes chunks, odd sums, the first chunk, int64 [n] (place at which it stopped),
                and int64 [2] (the chunks it needs there); returns whether it finished.
            n: how many whole numbers describe that place.
        """
        odd = np.zeros(self.cells) if self._odd is None else self._odd
        state, need = np.zeros(n, np.int64), np.zeros(2, np.int64)
        while not kernel(self.chunks, odd, self.first, state, need):
            self._widen(int(need[0]), int(need[1]))
        if self._odd is None and not (odd == 0).all():
            self._odd = odd

    def merge(self, other: ExactSums, sign: int = 1) -> ExactSums:
        """Add, or with ``sign=-1`` subtract, other sums, cell by cell; return itself."""
        width = other.chunks.shape[1]
        if width:
            self._widen(other.first, other.first + width + 1)
            at = other.first - self.first
            self.chunks[:, at : at + width] += sign * other.chunks
            self.carry()
        if other._odd is not None:
            odd = np.zeros(self.cells) if self._odd is None else self._odd
            with np.errstate(invalid="ignore"):
                self._odd = odd + sign * other._odd
        return self

    def gathered(self, cell: Array, cells: int) -> ExactSums:
        """Sums of the sums of several cells.

        Args:
            cell: int [self.cells], the new cell of each, -1 for none.
            cells: number of new cells.
        """
        out = ExactSums(cells)
        chosen = np.flatnonzero(cell >= 0)
        if self.chunks.shape[1]:
            out._widen(self.first, self.first + self.chunks.shape[1] + 1)
            np.add.at(out.chunks[:, :-1], cell[chosen], self.chunks[chosen])
            out.carry()
        if self._odd is not None:
            out._odd = np.zeros(cells)
            with np.errstate(invalid="ignore"):
                np.add.at(out._odd, cell[chosen], self._odd[chosen])
        return out

    def select(self, cell: Array) -> ExactSums:
        """Select cells, int [m], possibly repeatedly."""
        out = ExactSums(cell.size)
        out.first, out.chunks = self.first, self.chunks[cell]
        out._odd = None if self._odd is None else self._odd[cell]
        return out

    def rounded(self) -> Array:
        """Double nearest to each sum, float64 [cells]; infinite if beyond the largest."""
        out = np.zeros(self.cells)
        if self.chunks.shape[1]:
            _round(self.chunks, self.first, out)
        return out if self._odd is None else np.where(self._odd == 0, out, self._odd)


# Moments of pairs of numbers by cell: errors, their squares, products of centred numbers, as exact
# sums. A pass makes one quantity after another for a block of rows in the cache.

MOMENTS = {
    name: code
    for code, name in enumerate(
        (
            "absolute",
            "squared",
            "error",
            "target",
            "prediction",
            "size",
            "target-",
            "prediction-",
            "error-",
            "target*target",
            "prediction*prediction",
            "error*error",
            "target*prediction",
        )
    )
}
"""Summands: absolute errors, their squares, errors, both sides, absolute targets; sides and
errors minus their means, and products of these.
"""


class Laid(NamedTuple):
    """Rows by cell."""

    target: F64  # float64 [n]
    prediction: F64  # float64 [n]
    weight: F64  # float64 [n]; [0] if all weigh 1
    start: I64  # int64 [cells + 1], first row of each cell


class Scales(NamedTuple):
    """Factors of the numbers of each cell, powers of two that avoid overflow and underflow."""

    target: F64  # float64 [cells]
    prediction: F64  # float64 [cells]
    sides: F64  # float64 [cells], at most 1, factor of both sides before errors are computed
    error: F64  # float64 [cells], at least 1, factor of these errors


class Means(NamedTuple):
    """Means of the cells, of scaled numbers, float64 [cells] each."""

    target: F64
    prediction: F64
    error: F64


@kernel
def _count_rows(cell: I32, weight: MaybeF64, start: Array) -> None:
    for i in range(cell.size):
        if cell[i] >= 0 and (weight.size == 0 or weight[i] > 0.0):
            start[cell[i] + 1] += 1
    for c in range(start.size - 1):
        start[c + 1] += start[c]


@kernel
def _place_rows(cell: I32, weight: MaybeF64, at: Array, order: Array) -> None:
    for i in range(cell.size):
        if cell[i] >= 0 and (weight.size == 0 or weight[i] > 0.0):
            order[at[cell[i]]] = i
            at[cell[i]] += 1


@kernel
def _place_sides(
    cell: I32, weight: MaybeF64, at: Array, target: F64, prediction: F64, out: Array
) -> None:
    for i in range(cell.size):
        if cell[i] >= 0 and (weight.size == 0 or weight[i] > 0.0):
            place = at[cell[i]]
            at[cell[i]] = place + 1
            out[0, place] = target[i]
            if out.shape[0] > 1:
                out[1, place] = prediction[i]


def by_cell(cell: Array, weight: Array | None, n_cells: int) -> tuple[Array, Array]:
    """Group rows by cell, in their order, without those of weight 0.

    Args:
        cell: int32 [n], -1 for rows outside.
        weight: float64 [n]; None if all are equal.

    Returns:
        int64 [cells + 1], offsets of the rows of each cell; int64 [m], the rows.
    """
    start = np.zeros(n_cells + 1, np.int64)
    _count_rows(cell, weight, start)
    order = np.empty(start[-1], np.int64)
    _place_rows(cell, weight, start[:-1].copy(), order)
    return start, order


def sides_by_cell(
    cell: Array, weight: Array | None, n_cells: int, target: Array, prediction: Array
) -> tuple[Array, Array]:
    """Group two numbers of rows by cell, in the order of :func:`by_cell`, but faster.

    Returns:
        int64 [cells + 1], offsets of the rows of each cell; targets and predictions, float64 [2,
        m]. If both are the same array, they are placed once.
    """
    start = np.zeros(n_cells + 1, np.int64)
    _count_rows(cell, weight, start)
    sides = np.empty((1 if prediction is target else 2, start[-1]))
    _place_sides(cell, weight, start[:-1].copy(), target, prediction, sides)
    return start, np.broadcast_to(sides, (2, start[-1]))


@inner
def _numbers(
    code: int, rows: Any, at: int, n: int, c: int, scales: Any, means: Any, out: Array
) -> None:
    """Numbers of some rows of a cell, each times its weight."""
    target, prediction = rows.target[at : at + n], rows.prediction[at : at + n]
    of_target, of_prediction = scales.target[c], scales.prediction[c]
    before, after = scales.sides[c], scales.error[c]
    t0, p0, e0 = means.target[c], means.prediction[c], means.error[c]
    if code == 0:
        for i in range(n):
            out[i] = abs((prediction[i] * before - target[i] * before) * after)
    elif code == 1:
        for i in range(n):
            out[i] = ((prediction[i] * before - target[i] * before) * after) ** 2
    elif code == 2:
        for i in range(n):
            out[i] = (prediction[i] * before - target[i] * before) * after
    elif code == 3:
        for i in range(n):
            out[i] = target[i] * of_target
    elif code == 4:
        for i in range(n):
            out[i] = prediction[i] * of_prediction
    elif code == 5:
        for i in range(n):
            out[i] = abs(target[i] * of_target)
    elif code == 6:
        for i in range(n):
            out[i] = target[i] * of_target - t0
    elif code == 7:
        for i in range(n):
            out[i] = prediction[i] * of_prediction - p0
    elif code == 8:
        for i in range(n):
            out[i] = (prediction[i] * before - target[i] * before) * after - e0
    elif code == 9:
        for i in range(n):
            out[i] = (target[i] * of_target - t0) ** 2
    elif code == 10:
        for i in range(n):
            out[i] = (prediction[i] * of_prediction - p0) ** 2
    elif code == 11:
        for i in range(n):
            out[i] = ((prediction[i] * before - target[i] * before) * after - e0) ** 2
    else:
        for i in range(n):
            out[i] = (target[i] * of_target - t0) * (prediction[i] * of_prediction - p0)
    if rows.weight.size:
        for i in range(n):
            out[i] *= rows.weight[at + i]


@kernel
def _add_moments(
    codes: I64,
    rows: Laid,
    scales: Scales,
    means: Means,
    chunks: Array,
    odd: Array,
    first: int,
    state: Array,
    need: Array,
) -> bool:
    out, room = np.empty(BLOCK), scratch()
    for c in range(state[0], rows.start.size - 1):
        at, end = max(rows.start[c], state[1]), rows.start[c + 1]
        while at < end:
            n = min(BLOCK, end - at)
            for j in range(state[2], codes.size):
                _numbers(codes[j], rows, at, n, c, scales, means, out)
                if not add_block(out, n, chunks, odd, c * codes.size + j, first, need, room):
                    state[0], state[1], state[2] = c, at, j
                    return False
            state[2] = 0
            at += n
    return True


@inner
def _most(bits: Array, n: int, most: int) -> int:
    """Largest of some absolute values, as bits, whose order is that of the values."""
    for i in range(n):
        most = max(most, bits[i] & 0x7FFFFFFFFFFFFFFF)
    return most


@kernel
def _largest(rows: Laid, out: Array) -> None:
    error = np.empty(BLOCK)
    for c in range(rows.start.size - 1):
        for at in range(rows.start[c], rows.start[c + 1], BLOCK):
            n = min(BLOCK, rows.start[c + 1] - at)
            target, prediction = rows.target[at : at + n], rows.prediction[at : at + n]
            for i in range(n):
                error[i] = prediction[i] - target[i]
            out[c, 0] = _most(target.view(np.int64), n, out[c, 0])
            out[c, 1] = _most(prediction.view(np.int64), n, out[c, 1])
            out[c, 2] = _most(error.view(np.int64), n, out[c, 2])


def largest(rows: Laid, out: Array) -> None:
    """Update ``out`` float64 [cells, 3]: largest absolute target, prediction and error."""
    _largest(rows, out.view(np.int64))


def add_moments(
    codes: list[int], rows: Laid, scales: Scales, means: Means, sums: ExactSums
) -> None:
    """Add numbers of rows to the sums of their cells.

    Args:
        codes: codes of :data:`MOMENTS`.
        rows: by cell.
        means: means of the cells, subtracted from the numbers that are centred.
        sums: of [cells, codes].
    """
    sums.resumed(lambda *state: _add_moments(np.array(codes), rows, scales, means, *state), 3)


# Sums of neighbouring values, bit-identical to NumPy's, since last bits decide ties.


@inner
def _short_sum(values: Array, first: int, n: int) -> float:
    """Sum of ``n`` values, at most 128, from ``first`` on in NumPy's order: eight at a time."""
    if n < 8:
        out = 0.0
        for i in range(first, first + n):
            out += values[i]
        return out
    a, b, c, d = values[first], values[first + 1], values[first + 2], values[first + 3]
    e, f, g, h = values[first + 4], values[first + 5], values[first + 6], values[first + 7]
    aligned = n - n % 8
    for i in range(first + 8, first + aligned, 8):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        e += values[i + 4]
        f += values[i + 5]
        g += values[i + 6]
        h += values[i + 7]
    out = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(first + aligned, first + n):
        out += values[i]
    return out


@allocating
def row_sum(values: Array, first: int, n: int) -> float:
    """Sum of ``n`` values from ``first`` on, bit-identical to NumPy's sum of a row.

    Rows of more than 128 values are halved, at a multiple of eight, until they are short; the
    halves wait on a stack.
    """
    if n <= 128:
        return _short_sum(values, first, n)
    begin = np.empty(64, np.int64)
    many = np.empty(64, np.int64)
    total = np.empty(64, np.float64)
    stage = np.zeros(64, np.int8)
    begin[0], many[0] = first, n
    depth = 0
    result = 0.0
    while depth >= 0:
        size = many[depth]
        if size <= 128:
            result = _short_sum(values, begin[depth], size)
            depth -= 1
            continue
        half = size // 2
        half -= half % 8
        if stage[depth] == 0:
            stage[depth] = 1
            depth += 1
            begin[depth], many[depth], stage[depth] = begin[depth - 1], half, 0
        elif stage[depth] == 1:
            total[depth] = result
            stage[depth] = 2
            depth += 1
            begin[depth], many[depth], stage[depth] = begin[depth - 1] + half, size - half, 0
        else:
            result = total[depth] + result
            depth -= 1
    return result


# Absolute errors between two bounds, to select a quantile from.


@kernel
def _between(target: F64, prediction: F64, low: float, high: float, out: Array) -> tuple[int, int]:
    below, n = 0, 0
    for i in range(target.size):
        error = abs(prediction[i] - target[i])
        below += error < low
        if n < out.size:
            out[n] = error
        n += (error >= low) & (error <= high)
    return below, n


def errors_between(
    target: Array, prediction: Array, low: float, high: float, most: int
) -> tuple[int, Array | None]:
    """Count absolute errors below a bound, and collect those up to another.

    Args:
        target: float64 [n].
        prediction: float64 [n].
        low: the lower bound.
        high: the higher one.
        most: most errors between them.

    Returns:
        the number; float64 [m], or None if there are more.
    """
    out = np.empty(most)
    below, n = _between(target, prediction, low, high, out)
    return below, out[:n] if n <= most else None


# Agreement of pairs of rows in the order of two numbers, in n log n, with weights. Rows go by the
# first number; the weights of earlier rows with a lower or higher second number are sums over ranks
# (Fenwick 1994, A new data structure for cumulative frequency tables). Ties in the first are
# queried before any of them is added.


@inner
def _up_to(tree: Array, rank: int) -> float:
    """Weight of the ranks up to one, counted from 1."""
    total = 0.0
    while rank > 0:
        total += tree[rank]
        rank -= rank & -rank
    return total


@kernel
def agreement(tie: I64, rank: I64, weight: F64) -> float:
    """Weight of pairs in the same order minus that of pairs in opposite orders.

    Args:
        tie: int64 [n], rank of the first number, ascending; equal for ties.
        rank: int64 [n], rank of the second, from 0, without gaps.
        weight: float64 [n]; a pair weighs the product.
    """
    n_ranks = 1 if rank.size == 0 else rank.max() + 1
    tree = np.zeros(n_ranks + 1)
    added, total, begin = 0.0, 0.0, 0
    while begin < tie.size:
        end = begin
        while end < tie.size and tie[end] == tie[begin]:
            lower = _up_to(tree, rank[end])
            higher = added - _up_to(tree, rank[end] + 1)
            total += weight[end] * (lower - higher)
            end += 1
        for i in range(begin, end):
            added += weight[i]
            at = rank[i] + 1
            while at <= n_ranks:
                tree[at] += weight[i]
                at += at & -at
        begin = end
    return total
