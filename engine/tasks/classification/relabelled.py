"""After a label map: labels that became one, each of which may appear once in a unit."""

from __future__ import annotations

import msgspec
import numpy as np

from ...schemas.arrays import Array
from ...schemas.errors import InputError
from .encode import Batch, Rows


def without_repeats(batch: Batch) -> Batch:
    """Drop repeated labels within a unit, keeping the best score, the first of equals.

    Raises:
        InputError: the map puts the truth and the prediction of one row under different keys.
    """
    rows, truth, start = batch.rows, batch.truth, batch.truth_start
    if batch.key is not None and batch.hard is not None:
        _check_keys(batch, batch.hard)
    if rows is not None and rows.label_codes is not None:
        rows = _strongest(rows, rows.label_codes, len(batch.labels))
    if start is not None:
        unit = np.repeat(np.arange(start.size - 1), np.diff(start))
        pair = np.unique(unit * len(batch.labels) + truth)
        unit, truth = pair // len(batch.labels), (pair % len(batch.labels)).astype(np.int32)
        start = np.searchsorted(unit, np.arange(start.size))
    return msgspec.structs.replace(batch, rows=rows, truth=truth, truth_start=start)


def _strongest(rows: Rows, label: Array, n_labels: int) -> Rows:
    unit = np.arange(label.size) if rows.unit_codes is None else rows.unit_codes
    pair = unit.astype(np.int64) * n_labels + label
    order = np.lexsort((-rows.score, pair))  # stable: of equal scores the first row
    first = np.ones(order.size, bool)
    first[1:] = np.diff(pair[order]) != 0
    if first.all():
        return rows
    kept = np.sort(order[first])
    return msgspec.structs.replace(
        rows,
        parts=(rows.score[kept],),
        label=label[kept],
        unit=unit[kept].astype(np.int32),
        grid=None,
    )


def _check_keys(batch: Batch, hard: Array) -> None:
    assert batch.key is not None
    predicted = np.flatnonzero(hard >= 0)
    wrong = predicted[batch.labels.key[hard[predicted]] != batch.key[predicted]]
    if wrong.size:
        labels = batch.labels.frame
        actual, other = (labels.row(code[wrong[0]]) for code in (batch.truth, hard))
        raise InputError(
            f"label_map: {wrong.size:,} rows have their two labels under different label keys"
            f" ({actual[:2]} and {other[:2]}). Map both labels to one key."
        )
