"""Federated annotation: which labels of which datum were looked for, and which exhaustively.

Source: LVIS, Gupta, Dollar and Girshick 2019, and lvis-api ``LVISEval._prepare``; Open Images'
challenge evaluators likewise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]


@kernel
def _judged(
    start: Array,
    datum: Array,
    gt_start: Array,
    gt_datum: Array,
    listed_start: Array,
    listed_datum: Array,
    checked: Array,
    partial: Array,
    seen: Array,
    kept: Array,
    lenient: Array,
) -> None:
    """Label by label; see :func:`judged`."""
    for k in range(start.size - 1):
        for i in range(listed_start[k], listed_start[k + 1]):
            seen[listed_datum[i]] |= np.uint8(checked[i]) | np.uint8(partial[i]) << np.uint8(1)
        for i in range(gt_start[k], gt_start[k + 1]):
            seen[gt_datum[i]] |= np.uint8(1)
        for i in range(start[k], start[k + 1]):
            flags = seen[datum[i]]
            kept[i] = flags & np.uint8(1) != 0
            lenient[i] = flags & np.uint8(2) != 0
        for i in range(listed_start[k], listed_start[k + 1]):
            seen[listed_datum[i]] = 0
        for i in range(gt_start[k], gt_start[k + 1]):
            seen[gt_datum[i]] = 0


def judged(
    predictions: tuple[Array, Array],
    ground_truths: tuple[Array, Array],
    listed: tuple[Array, Array],
    flags: tuple[Array, Array],
    n_datums: int,
) -> tuple[Array, Array]:
    """Which predictions can be judged at all, and which only for the better.

    Args:
        predictions: CSR offsets by label, int64 [labels + 1], and datums, int32 [n].
        ground_truths: likewise; a datum's labels among them are judged there.
        listed: (label, datum) pairs that are said something of, likewise.
        flags: of each pair whether the label is judged there, and whether not every object of it
            is annotated, bool [k] each.
        n_datums: number of datums.

    Returns:
        bool [n] each: whether the label is judged in the datum; whether not exhaustively.
    """
    n = predictions[1].size
    kept, lenient = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    sides = (predictions, ground_truths, listed)
    _judged(
        *(frozen(array, dtype) for side in sides for array, dtype in zip(side, _CSR, strict=True)),
        *(frozen(flag, np.bool_) for flag in flags),
        np.zeros(n_datums, np.uint8),
        kept,
        lenient,
    )
    return kept, lenient


_CSR: tuple[Any, Any] = (np.int64, np.int32)
