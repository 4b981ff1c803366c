"""Weights that are all zero, of the whole set, a slice or a label: nothing is defined there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...inputs.problems import Note, listing
from ...tally.datums import Datums, Labels
from ...tally.units import Units

Array = np.ndarray[Any, Any]


def weightless_notes(units: Units, labels: Labels, datums: Datums) -> list[Note]:
    """What has ground truths, but none of any weight, one note a kind; none without weights of 0.

    Args:
        units: every unit.
        labels: what label codes stand for.
        datums: the datums, with their slices.
    """
    weight = units.weight
    if weight is None or not (weight == 0).any():
        return []
    unit, label = units.truth_rows()
    of_truth = weight[unit]
    if unit.size and not of_truth.any():
        said = (
            f"column 'weight': all {unit.size:,} weights are 0, so no number is defined. Leave the"
            " column out, or give weights above 0."
        )
        return [Note("zero_weights", said, int(unit.size))]
    notes = []
    found = _all_zero(label, of_truth, len(labels))
    if found.size:
        values = labels.frame["label_value"].gather(found).to_list()
        notes.append(_note(listing(values), found.size, "label", "labels"))
    for column in datums.slices.columns:
        group, names = datums.groups(column)
        of_group = group[units.datum_of(unit)]
        inside = of_group >= 0
        found = _all_zero(of_group[inside], of_truth[inside], len(names))
        if found.size:
            some = listing([names[code] for code in found])
            one, several = (f"{word} of {column!r}" for word in ("slice", "slices"))
            notes.append(_note(some, found.size, one, several))
    return notes


def _all_zero(code: Array, weight: Array, n: int) -> Array:
    """Codes that occur, but never with a weight above 0, int64 ascending."""
    there = np.bincount(code, minlength=n) > 0
    return np.flatnonzero(there & ~(np.bincount(code, weight > 0, minlength=n) > 0))


def _note(some: str, count: int, one: str, several: str) -> Note:
    named = one if count == 1 else several
    said = f"column 'weight': {count:,} {named} with ground truths of weight 0 alone: {some}."
    return Note("zero_weights", said, int(count))
