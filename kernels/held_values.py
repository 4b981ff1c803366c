"""Values that have to stay the same for so many rows: ids of datums that list every label."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _hold(value: Array, offset: int, width: int, held: Array) -> bool:
    """Whether all rows of a block have one value; the first row of each tells which."""
    block, at, i = offset // width, offset % width, 0
    while i < value.size:
        if at == 0:
            held[block] = value[i]
        wanted = held[block]
        stop = min(value.size, i + width - at)
        wrong = np.int64(0)
        for k in range(i, stop):  # no way out: several rows are compared at a time
            wrong |= value[k] ^ wanted
        if wrong != 0:
            return False
        block, at, i = block + 1, 0, stop
    return True


def hold(value: Array, offset: int, width: int, held: Array) -> bool:
    """Whether a value stays the same within every block of rows.

    Args:
        value: int64 [m], of rows from ``offset`` on; pieces are given in turn, from row 0 on.
        offset: the first row.
        width: rows of a block, at least 1.
        held: int64 [blocks], changed: the value of every block that begins in these rows; that of
            a block that began before is read.

    Returns:
        False as soon as one differs; ``held`` is of no use then. Values of two blocks may be equal.
    """
    return bool(_hold(frozen(value, np.int64), offset, width, held))
