"""Merging classification tallies of disjoint sets of datums."""

from __future__ import annotations

from collections.abc import Sequence

from ...tally.merging import merge_datums, merge_labels, merged_seconds
from ...tally.merging_units import merge_places, merge_scored, merge_units
from .settings import Settings
from .tallies import Tallies


def merge(parts: Sequence[Tallies], settings: Settings) -> Tallies:
    """The tally of all parts.

    Args:
        parts: tallies of disjoint sets of datums, in the order of their rows.
        settings: the run's settings.

    Raises:
        InputError: parts that do not go together.
    """
    datums, of_datum = merge_datums([part.datums for part in parts])
    labels, of_label = merge_labels([part.labels for part in parts])
    scored = [part.scored for part in parts]
    units, of_unit = merge_units(
        [part.units for part in parts],
        of_datum,
        of_label,
        labels,
        [part.labels.key_names for part in parts],
        scored,
    )
    first = parts[0]
    return Tallies(
        datums,
        labels,
        merge_places(
            [(part.declared, part.labels) for part in parts], of_label, labels, keyed=first.keyed
        ),
        units,
        merge_scored(scored, of_unit, of_label, len(labels)),
        merged_seconds(parts),
        max((part.beside for part in parts), key=len),
        keyed=first.keyed,
        details=first.details,
        confusion_examples=first.confusion_examples,
    )
