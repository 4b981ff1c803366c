"""Two tables of one row a datum, paired by ids that are consecutive integers, in one table of bytes.

Each side is scattered over memory once: ground truths write their label to their id's byte,
predictions read it and leave a mark. That proves on the way that no id repeats or stays alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

HIGHEST = 126
"""The highest label that a byte has room for, beside the mark and a value for none."""
_MET = np.uint8(128)


@kernel
def _write_truths(datum: Array, label: Array, first: int, seen: Array, table: Array) -> bool:
    """Write labels to bytes that are free; False as soon as that cannot be done."""
    for i in range(datum.size):
        at = datum[i] - first
        if at < 0 or at >= table.size or table[at] != 0:
            return False
        table[at] = label[i] + np.uint8(1)
        seen[label[i]] = True
    return True


@kernel
def _meet(datum: Array, label: Array, one: int, table: Array, unit: Array, outcome: Array) -> bool:
    """Read what is true of each datum; False as soon as one is unknown, met before or not ``one``."""
    wanted = np.uint8(one + 1)
    for i in range(datum.size):
        at = datum[i]
        if at < 0 or at >= table.size or label[i] != one:
            return False
        found = table[at]
        if found == 0 or found >= _MET:
            return False
        table[at] = found | _MET
        unit[i] = at
        outcome[i] = np.uint8(found == wanted)
    return True


def write_truths(datum: Array, label: Array, first: int, seen: Array, table: Array) -> bool:
    """Write the labels of ground truths to the bytes of their datums.

    Args:
        datum: int64 [n], ids.
        label: uint8 [n], ``HIGHEST`` at most.
        first: the id that the first byte is of.
        seen: bool [256], set where a label occurs.
        table: uint8 [m], 0 where nothing is known, else one more than the label; changed.

    Returns:
        whether all ids have bytes of their own.
    """
    datum, label = frozen(datum, np.int64), frozen(label, np.uint8)
    return bool(_write_truths(datum, label, first, seen, table))


def meet(
    datum: Array, first: int, label: Array, one: int, table: Array
) -> tuple[Array, Array] | None:
    """What is true of the datums that predictions are of; their bytes are marked.

    Args:
        datum: int64 [n], ids.
        first: the id that the first byte is of.
        label: uint8 [n], the labels predicted.
        one: the only label that may be predicted.
        table: uint8 [m], as :func:`write_truths` leaves it; changed.

    Returns:
        byte of each row, int32 [n], and whether its label is true, uint8 [n]; None where an id is
        unknown or stood in a row before, or another label is predicted.
    """
    unit, outcome = np.empty(datum.size, np.int32), np.empty(datum.size, np.uint8)
    place, label = frozen(datum - np.int64(first), np.int64), frozen(label, np.uint8)
    return (unit, outcome) if _meet(place, label, one, table, unit, outcome) else None


def labels_of(table: Array) -> Array:
    """The labels of a table whose bytes are all marked, in place.

    Args:
        table: uint8 [m], as :func:`meet` leaves it; changed.
    """
    table &= np.uint8(127)
    table -= np.uint8(1)
    return table
