"""Duplicated rows: a file given twice, or results that were appended to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...ingest.problems import Note

if TYPE_CHECKING:
    from .encode import Side


_DATUMS = 200  # looked at, evenly spaced
_LEAST = 6  # rows below which nothing is said


def doubled(side: Side, name: str, n_datums: int) -> Note | None:
    """Return a warning if every row of the sampled datums has a duplicate.

    Single duplicates are legal: two objects may have the same box.

    Args:
        name: name of the side, for messages.
    """
    there = np.flatnonzero(np.bincount(side.datum, minlength=n_datums))
    chosen = np.zeros(n_datums, bool)
    chosen[there[:: max(1, there.size // _DATUMS)]] = True
    rows = np.flatnonzero(chosen[side.datum])
    if rows.size < _LEAST:
        return None
    boxes = side.boxes(rows)
    scores = side.scores(rows)
    columns = [side.datum[rows], side.label[rows], *boxes.T, *([] if scores is None else [scores])]
    _, many = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    if many.min() < 2:
        return None
    return Note(
        "rows_doubled",
        f"every row of the {name} appears twice or more, with the same label, box"
        f"{'' if scores is None else ' and score'}, in all datums looked at. Was a file given"
        " twice, or were results appended to? Each counts as a box of its own.",
        warning=True,
    )
