"""Erosion of masks along the lines of their runs."""

from __future__ import annotations

import numpy as np

from .jit import frozen, kernel
from .run_layout import Array, Runs, longer, put


@kernel
def _erode(
    start: Array, begin: Array, end: Array, length: Array, depth: Array, to_start: Array
) -> tuple[int, Array, Array]:
    to_begin = np.empty(begin.size + 16, np.uint32)
    to_end = np.empty(begin.size + 16, np.uint32)
    at = 0
    for i in range(length.size):
        to_start[i] = at
        size, d, line = length[i], depth[i], 0
        first_run = at
        for k in range(start[i], start[i + 1]):
            low, high = np.int64(begin[k]), np.int64(end[k])
            if low >= line + size:
                line = low - low % size
            while low < high:  # a piece in each line that the run touches
                stop = min(high, line + size)
                if at == to_begin.size:
                    to_begin, to_end = longer(to_begin, 2 * at), longer(to_end, 2 * at)
                at = put(to_begin, to_end, first_run, at, low + d, stop - d)
                low = stop
                if stop == line + size:
                    line += size
    to_start[length.size] = at
    return at, to_begin, to_end


def erode_lines(runs: Runs, length: Array, depth: Array) -> Runs:
    """Masks without the pixels that are nearer than ``depth`` to a zero on their line.

    What lies beyond the ends of a line is zero.

    Args:
        runs: of n masks.
        length: int64 [n], pixels of a line.
        depth: int64 [n], 1 or more.
    """
    start, begin, end = runs
    to_start = np.zeros(length.size + 1, np.int64)
    n, to_begin, to_end = _erode(
        frozen(start, np.int64), frozen(begin, np.uint32), frozen(end, np.uint32),
        frozen(length, np.int64), frozen(depth, np.int64), to_start,
    )  # fmt: skip
    return to_start, to_begin[:n], to_end[:n]
