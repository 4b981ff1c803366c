"""Work on ranges of shapes, in parallel if the caller provides threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..schemas.arrays import Array

Over = Callable[[Array, Callable[[int, int], Any]], list[Any]]
"""Executor's ``over``: calls ``function(first, last)`` on ranges of groups, with CSR offsets as the
amount of work, and returns the results in order.
"""

R = TypeVar("R")


def in_ranges(over: Over | None, offsets: Array, function: Callable[[int, int], R]) -> list[R]:
    """The results of ``function`` on ranges that cover all groups; one range without ``over``."""
    if over is None:
        return [function(0, offsets.size - 1)]
    return over(offsets, function)


def offsets_of(counts: Array) -> Array:
    """CSR offsets, int64 [n + 1], of groups of some sizes."""
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
