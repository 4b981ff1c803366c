"""Merging classification tallies of disjoint sets of datums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ...schemas.errors import InputError
from ...tally.merging import merge_datums, merge_labels, merged_seconds, one_precision
from ...tally.merging_units import merge_places, merge_scored, merge_units
from ...tally.units import Scored
from .settings import Settings
from .tallies import Tallies

Array = np.ndarray[Any, Any]


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


def without_scores(scored: Scored) -> Scored:
    """What scored labels are like, without any."""
    none = np.zeros(0, np.int32)
    return msgspec.structs.replace(
        scored,
        parts=(),
        outcome=np.zeros(0, np.uint8),
        label=none if scored.several else None,
        unit=None if scored.unit_codes is None else none,
        grid=None,
    )


def merge_heads(parts: Sequence[Scored | None], rows: Sequence[int]) -> Scored | None:
    """Scored labels of all parts, without their rows.

    Args:
        parts: those of each part, without their rows.
        rows: how many rows each had.

    Raises:
        InputError: parts that were scored differently.
    """
    found = [(part, n) for part, n in zip(parts, rows, strict=True) if part is not None]
    if not found:
        return None
    filled = [part for part, n in found if n] or [found[0][0]]
    if len({(part.several, part.only, part.ranked) for part in filled}) > 1:
        raise InputError(
            "score columns were read differently in the partitions: as that of one label and as"
            " those of several, or of different labels. Name all labels with labels=, and"
            " positive_label= where there is one."
        )
    single = one_precision([(part.single, n) for part, n in found])
    shown = np.any([part.labels for part in filled], axis=0)
    return msgspec.structs.replace(filled[0], single=single, labels=shown)
