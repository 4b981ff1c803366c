"""Scored labels of many parts brought together one part at a time, each row put into its place.

Merging (:mod:`evalengine.tally.merging_units`) holds all parts beside what it makes of them. Where
rows know their places in the whole input, one part at a time is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .merging import one_precision
from .units import Scored

Array = np.ndarray[Any, Any]
Load = Callable[[int], Scored]
"""Reads the scored labels of one part."""


def places(load: Load, sizes: Sequence[int]) -> Array | None:
    """Where the rows of each place of the whole input begin among all scored labels.

    Args:
        load: reads one part.
        sizes: scored labels of each part.

    Returns:
        int64 [rows of the input]; None where the rows of some part have no places, or stand in
        another order than these.
    """
    total, counted = sum(sizes), np.zeros(0, np.int32)
    for part, size in enumerate(sizes):
        row = load(part).row if size else None
        if size and (row is None or (np.diff(row) < 0).any()):
            return None
        if row is not None:
            if row[-1] >= counted.size:
                counted = np.r_[counted, np.zeros(max(row[-1] + 1, total) - counted.size, np.int32)]
            first = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
            counted[row[first]] = np.diff(np.r_[first, row.size])
    start: Array = np.cumsum(counted, dtype=np.int64)
    start -= counted
    return start


def gather_scored(
    load: Load,
    sizes: Sequence[int],
    start: Array,
    units: Sequence[Array],
    labels: Sequence[Array],
    n_labels: int,
) -> Scored:
    """The scored labels of all parts, as merging them gives, but for their places.

    Args:
        load: reads one part; all are of several labels.
        sizes: scored labels of each part, some in all.
        start: as :func:`places` gives it.
        units: new number of each unit of each part.
        labels: new label codes of each part.
        n_labels: labels of the whole.
    """
    n = sum(sizes)
    score, outcome = np.empty(n), np.empty(n, np.uint8)
    label, unit = np.empty(n, np.int32), np.empty(n, np.int32)
    precisions = []
    ranked = True
    for part, size in enumerate(sizes):
        if not size:
            continue
        some = load(part)
        assert some.row is not None
        codes, own = some.label_codes, some.unit_codes
        assert codes is not None
        first = np.flatnonzero(np.r_[True, some.row[1:] != some.row[:-1]])
        within = np.arange(size) - np.repeat(first, np.diff(np.r_[first, size]))
        at = start[some.row] + within
        score[at] = some.score
        outcome[at] = some.outcome
        label[at] = labels[part][codes]
        unit[at] = units[part] if own is None else units[part][own]
        precisions.append((some.single, size))
        ranked = some.ranked
    plain = n == sum(new.size for new in units) and bool((unit == np.arange(n)).all())
    return Scored(
        (score,),
        outcome,
        label,
        None if plain else unit,
        -1,
        np.ones(n_labels, bool),
        one_precision(precisions),
        ranked,
    )
