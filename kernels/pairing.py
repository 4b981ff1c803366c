"""Two tables of a row a datum, paired by ids that are consecutive integers, in a table of bytes.

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
    room = np.uint64(table.size)
    for i in range(datum.size):
        at = np.uint64(datum[i] - first)  # an id below the first is far above the last
        if at >= room or table[at] != 0:
            return False
        table[at] = label[i] + np.uint8(1)
        seen[label[i]] = True
    return True


@kernel
def _meet(
    datum: Array, label: Array, first: int, one: int, table: Array, unit: Array, outcome: Array
) -> bool:
    """Read what is true of each datum; False as soon as a row has to be refused."""
    room, wanted = np.uint64(table.size), np.uint8(one + 1)
    for i in range(datum.size):
        at = np.uint64(datum[i] - first)
        if at >= room or label[i] != one:
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
    datum: Array, label: Array, first: int, one: int, table: Array, unit: Array, outcome: Array
) -> bool:
    """Find what is true of the datums that predictions are of; their bytes are marked.

    Args:
        datum: int64 [n], ids.
        label: uint8 [n], the labels predicted.
        first: the id that the first byte is of.
        one: the only label that may be predicted.
        table: uint8 [m], as :func:`write_truths` leaves it; changed.
        unit: int32 [n], written: byte of each row.
        outcome: uint8 [n], written: whether its label is true.

    Returns:
        False where an id is unknown or stood in a row before, or another label is predicted.
    """
    datum, label = frozen(datum, np.int64), frozen(label, np.uint8)
    return bool(_meet(datum, label, first, one, table, unit, outcome))


def labels_of(table: Array) -> Array:
    """The labels of a table whose bytes are all marked, in place.

    Args:
        table: uint8 [m], as :func:`meet` leaves it; changed.
    """
    table &= np.uint8(127)
    table -= np.uint8(1)
    return table
