"""Exact sums of floats: the same bits in whatever order, in however many parts the addends come.

A sum is kept as whole numbers, chunks of 32 bits that lie side by side, of which the one that a
float falls into follows from its exponent (Neal 2015, Fast exact summation using small and large
superaccumulators, arXiv 1505.05571). Adding is adding integers; the one rounding is made at the
end, to the nearest double, ties to even: what ``math.fsum`` gives. Only the chunks that the
exponents of the addends reach are kept, six or so for ordinary weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .block_sums import add_runs
from .chunks import ABOVE, add_bits, carry, nearest
from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

_MOST = 1 << 29  # addends between two carries: of 2^32 each, a chunk of 64 bits holds 2^31


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
            self._widen(low, high + ABOVE)
        return bits

    def reserve_products(self, sums: ExactSums) -> None:
        """Make room for products of two sums of what ``sums`` has room for, and twice that."""
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
        """Add values that lie by cell.

        Args:
            values: float64 [n], as :meth:`add` takes them.
            start: int64 [cells + 1], where those of each cell begin, and the end of the last.

        Returns:
            itself.
        """
        inputs = frozen(values, np.float64), frozen(start, np.int64)
        self.resumed(lambda *state: add_runs(*inputs, *state), 2)
        return self

    def resumed(self, kernel: Callable[..., bool], n: int) -> None:
        """Call a kernel that adds until the chunks that are kept reach.

        Args:
            kernel: of chunks, odd sums, the first chunk, int64 [n] (where it stopped), and int64
                [2] (the chunks it needs there); returns whether it is through.
            n: how many whole numbers say where it stopped.
        """
        odd = np.zeros(self.cells) if self._odd is None else self._odd
        state, need = np.zeros(n, np.int64), np.zeros(2, np.int64)
        while not kernel(self.chunks, odd, self.first, state, need):
            self._widen(int(need[0]), int(need[1]))
        if self._odd is None and not (odd == 0).all():
            self._odd = odd

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
