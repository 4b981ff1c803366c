"""Exact sums of floats: the same bits in whatever order, in however many parts the addends come.

A sum is kept as whole numbers, chunks of 32 bits that lie side by side, of which the one that a
float falls into follows from its exponent (Neal 2015, Fast exact summation using small and large
superaccumulators, arXiv 1505.05571). Adding is adding integers; the one rounding is made at the
end, to the nearest double, ties to even: what ``math.fsum`` gives. Only the chunks that the
exponents of the addends reach are kept, six or so for ordinary weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

_LOW = 0xFFFFFFFF
_MOST = 1 << 29  # addends between two carries: of 2^32 each, a chunk of 64 bits holds 2^31
_ABOVE = 4  # chunks from the lowest that the highest addend reaches to the last one a carry does


@inner
def add_bits(chunks: Array, cell: int, first: int, bits: int) -> None:
    """Add a finite double to a sum.

    Args:
        chunks: int64 [cells, width].
        cell: which sum.
        first: which of all chunks ``chunks[:, 0]`` is.
        bits: the double's bits as int64.
    """
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
    """Bring all chunks of a sum but the last, which bears the sign, into [0, 2^32)."""
    for i in range(chunks.shape[1] - 1):
        over = chunks[cell, i] >> 32
        chunks[cell, i] &= _LOW
        chunks[cell, i + 1] += over


@inner
def nearest(chunks: Array, cell: int, first: int) -> float:
    """The double nearest to a sum, ties to even; carries first.

    Args:
        chunks: int64 [cells, width].
        cell: which sum.
        first: which of all chunks ``chunks[:, 0]`` is.
    """
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
        # Of 96 bits the upper 22 to 53 and the lower 43 are doubles without loss, and so is one bit
        # more for whatever lies below: their sum is rounded once, by the processor.
        second = chunks[cell, top - 1] if top > 0 else 0
        third = chunks[cell, top - 2] if top > 1 else 0
        sticky = 0
        for i in range(top - 2):
            if chunks[cell, i] != 0:
                sticky = 1
                break
        high = (chunks[cell, top] << 21) | (second >> 11)
        low = ((((second & 0x7FF) << 32) | third) << 1) | sticky
        value = math.ldexp(float(high) * 17592186044416.0 + float(low),
                           32 * (first + top - 2) - 1 - 1074)  # fmt: skip
    if sign < 0:
        for i in range(width):
            chunks[cell, i] = -chunks[cell, i]
        carry(chunks, cell)
    return sign * value


@kernel
def _reach(bits: Array) -> tuple[int, int]:
    """The lowest chunks that the smallest and the largest double reach; (1, 0) of zeros alone."""
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
        add_bits(chunks, cell[i] if cell.size else 0, first, bits[i])
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
        cells: number of sums.
        first: which of all chunks the first one kept is.
        chunks: int64 [cells, width], what :func:`add_bits` adds to; [cells, 0] where all is 0.

    Args:
        cells: number of sums, all 0.
    """

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.first = 0
        self.chunks = np.zeros((cells, 0), np.int64)
        self._odd: Array | None = None  # float64 [cells], sums of addends that are not finite

    def reserve(self, values: Array) -> Array:
        """Make room for doubles as large and as small as these.

        Args:
            values: float64 [n], finite.

        Returns:
            their bits, int64 [n], as :func:`add_bits` takes them.
        """
        bits = frozen(values, np.float64).view(np.int64)
        low, high = _reach(bits)
        if low <= high:
            self._widen(low, high + _ABOVE)
        return bits

    def reserve_products(self, sums: ExactSums) -> None:
        """Make room for products of two sums of what ``sums`` has room for, and twice that."""
        width = sums.chunks.shape[1]
        if width:
            # As powers of two: of the least addend, and of the largest times 2^40 of them.
            least = 2 * (32 * sums.first - 1074)
            most = 2 * (32 * (sums.first + width - _ABOVE + 1) + 53 - 1074 + 40) + 2
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
        self.carry()  # a negative sum has its sign in what was the last chunk

    def carry(self) -> None:
        """Make room in all chunks again, once at most 2^29 addends were added by a kernel."""
        _carry_all(self.chunks)

    def add(self, values: Array, cell: Array | None = None) -> ExactSums:
        """Add values to their cells.

        Args:
            values: float64 [n]; infinities and NaN make their sums what they would be in floats.
            cell: int [n], cell of each; None where there is one cell.

        Returns:
            itself.
        """
        values = np.asarray(values, np.float64)
        finite = np.isfinite(values)
        if not finite.all():
            odd = ~finite
            cell = np.zeros(values.size, np.int64) if cell is None else cell
            if self._odd is None:
                self._odd = np.zeros(self.cells)
            with np.errstate(invalid="ignore"):
                np.add.at(self._odd, cell[odd], values[odd])
            values, cell = values[finite], cell[finite]
        bits = self.reserve(values)
        place = frozen(np.zeros(0) if cell is None else cell, np.int64)
        for begin in range(0, bits.size if self.chunks.shape[1] else 0, _MOST):
            some = slice(begin, begin + _MOST)
            _add(bits[some], place[some], self.chunks, self.first)
        return self

    def merge(self, other: ExactSums, sign: int = 1) -> ExactSums:
        """Add, or with ``sign=-1`` take away, the sums of other values, cell by cell.

        Returns:
            itself.
        """
        width = other.chunks.shape[1]
        if width:
            self._widen(other.first, other.first + width + 1)
            at = other.first - self.first
            self.chunks[:, at : at + width] += sign * other.chunks
            self.carry()
        if other._odd is not None:
            own = np.zeros(self.cells) if self._odd is None else self._odd
            with np.errstate(invalid="ignore"):
                self._odd = own + sign * other._odd
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

    def taken(self, cell: Array) -> ExactSums:
        """Some of the cells, perhaps several times.

        Args:
            cell: int [m], which.
        """
        out = ExactSums(cell.size)
        out.first, out.chunks = self.first, self.chunks[cell]
        out._odd = None if self._odd is None else self._odd[cell]
        return out

    def rounded(self) -> Array:
        """The double nearest to each sum, float64 [cells]; infinite where none is large enough."""
        out = np.zeros(self.cells)
        if self.chunks.shape[1]:
            _round(self.chunks, self.first, out)
        return out if self._odd is None else np.where(self._odd == 0, out, self._odd)
