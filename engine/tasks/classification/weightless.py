"""Weights that are all zero, of the whole set, a slice or a label: nothing is defined there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...ingest.problems import Note, listing
from ...tally.datums import Datums, Labels
from ...tally.units import Units

Array = np.ndarray[Any, Any]


Block = tuple[Units, Sequence[Array]]
"""Some units, and the group of each of their datums in every slice column, int32 [datums]."""


class _Seen:
    """Ground truths by code, and those of them that have weight.

    Args:
        n: number of codes.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._truths, self._heavy = np.zeros((2, n), np.int64)

    def add(self, code: Array, weight: Array) -> None:
        """Take in truths with codes below ``n``, -1 for none."""
        inside = code >= 0
        code, heavy = code[inside], weight[inside] > 0
        self._truths += np.bincount(code, minlength=self._n)
        self._heavy += np.bincount(code[heavy], minlength=self._n)

    @property
    def all_zero(self) -> Array:
        """Codes that occur, but never with a weight above 0, int64 ascending."""
        return np.flatnonzero((self._truths > 0) & (self._heavy == 0))


def notes_of_blocks(
    blocks: Iterable[Block], labels: Labels, groups: Mapping[str, list[str]]
) -> list[Note]:
    """What has ground truths, but none of any weight, one note a kind.

    Args:
        blocks: every unit, with weights.
        labels: what label codes stand for.
        groups: slice columns, and the names of their groups.
    """
    n, some = 0, False
    of_labels = _Seen(len(labels))
    of_groups = {column: _Seen(len(names)) for column, names in groups.items()}
    for units, codes in blocks:
        unit, label = units.truth_rows()
        assert units.weight is not None
        weight = units.weight[unit]
        n, some = n + unit.size, some or bool(weight.any())
        of_labels.add(label, weight)
        for seen, code in zip(of_groups.values(), codes, strict=True):
            seen.add(code[units.datum_of(unit)], weight)
    if n and not some:
        said = (
            f"column 'weight': all {n:,} weights are 0, so no number is defined. Leave the"
            " column out, or give weights above 0."
        )
        return [Note("zero_weights", said, n)]
    notes = []
    found = of_labels.all_zero
    if found.size:
        values = labels.frame["label_value"].gather(found).to_list()
        notes.append(_note(listing(values), found.size, "label", "labels"))
    for column, seen in of_groups.items():
        found = seen.all_zero
        if found.size:
            shown = listing([groups[column][code] for code in found])
            one, several = (f"{word} of {column!r}" for word in ("slice", "slices"))
            notes.append(_note(shown, found.size, one, several))
    return notes


def weightless_notes(units: Units, labels: Labels, datums: Datums) -> list[Note]:
    """The notes of units in memory; none without weights of 0.

    Args:
        units: every unit.
        labels: what label codes stand for.
        datums: the datums, with their slices.
    """
    if units.weight is None or not (units.weight == 0).any():
        return []
    found = {column: datums.groups(column) for column in datums.slices.columns}
    codes = [group for group, _ in found.values()]
    return notes_of_blocks(
        [(units, codes)], labels, {column: names for column, (_, names) in found.items()}
    )


def _note(some: str, count: int, one: str, several: str) -> Note:
    named = one if count == 1 else several
    said = f"column 'weight': {count:,} {named} with ground truths of weight 0 alone: {some}."
    return Note("zero_weights", said, int(count))
