"""Runs of every value of an image, from one pass over its strips."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.run_layout import Runs
from ..schemas.arrays import Array
from .ranges import offsets_of


class ValueRuns:
    """Runs of each value of an image along its rows, built strip by strip.

    Compares neighbouring pixels instead of pixels with values: the cost is one pass over the pixels
    plus the runs, for any number of values.

    Args:
        values: float64 [n], requested values, ascending, distinct, not NaN; pixels are compared as
            float64. None for all that occur, which must be integers.
    """

    def __init__(self, values: Array | None = None) -> None:
        self._values = values
        self._parts: list[tuple[Array, Array, Array]] = []

    def add(self, first: int, pixels: Array) -> None:
        """Add the next strip from the top, without gaps.

        Args:
            pixels: numbers [rows, width]; fewer than 2^32 in all strips.
        """
        flat = pixels.reshape(-1)
        if not flat.size:
            return
        ends = np.flatnonzero(flat[1:] != flat[:-1]) + 1
        begin = np.concatenate([[0], ends]).astype(np.uint32)
        end = np.concatenate([ends, [flat.size]]).astype(np.uint32)
        value = flat[begin]
        if self._values is not None:
            number = value.astype(np.float64)
            code = np.searchsorted(self._values, number)
            code[code == self._values.size] = 0
            kept = np.flatnonzero(self._values[code] == number) if self._values.size else code[:0]
            value, begin, end = code[kept], begin[kept], end[kept]
        base = np.uint32(first * pixels.shape[1])
        self._parts.append((value, begin + base, end + base))

    def taken(self) -> tuple[Array, Runs]:
        """Return the runs of all strips.

        Returns:
            values, ascending: the requested ones, or all that occur in the dtype of the pixels; one
                row-major mask per value, possibly empty.
        """
        none = np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint32)
        value, begin, end = (
            np.concatenate(column) for column in zip(*(self._parts or [none]), strict=True)
        )
        self._parts = []
        # Within a strip runs that touch are of different values: others go on from the last one.
        new = np.ones(value.size, np.bool_)
        new[1:] = (value[1:] != value[:-1]) | (begin[1:] != end[:-1])
        value, begin, end = value[new], begin[new], end[np.append(new[1:], True)[: new.size]]
        values, code = (self._values, value) if self._values is not None else _coded(value)
        return values, _grouped(code, begin, end, values.size)


def _coded(value: Array) -> tuple[Array, Array]:
    """Distinct values, ascending, and the number of each run's value among them."""
    if value.dtype not in (np.uint8, np.bool_):
        values, code = np.unique(value, return_inverse=True)
        return values, code
    here = np.zeros(256, np.bool_)
    here[value.view(np.uint8)] = True
    number: Any = np.cumsum(here) - 1
    return np.flatnonzero(here).astype(value.dtype), number.astype(np.uint8)[value.view(np.uint8)]


def _grouped(code: Array, begin: Array, end: Array, n: int) -> Runs:
    """Sort runs by value; runs of one value keep their order."""
    if n <= 1 << 16:  # so narrow integers are sorted by counting
        code = code.astype(np.uint8 if n <= 1 << 8 else np.uint16, copy=False)
    order = np.argsort(code, kind="stable")
    counts = np.zeros(n, np.int64)
    np.add.at(counts, code, 1)
    return offsets_of(counts), begin[order], end[order]
