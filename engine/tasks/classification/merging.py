"""Merging classification tallies of disjoint sets of datums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ...schemas.errors import InputError
from ...tally.gathering import Load, gather_scored, places
from ...tally.merging import merge_datums, merge_labels, merged_seconds, one_precision
from ...tally.merging_units import merge_places, merge_scored, merge_units
from ...tally.units import Scored
from .settings import Settings
from .tallies import Tallies

Array = np.ndarray[Any, Any]


def merge(
    parts: Sequence[Tallies],
    settings: Settings,
    load: Load | None = None,
) -> Tallies:
    """The tally of all parts.

    Args:
        parts: tallies of disjoint sets of datums, in the order of their rows.
        settings: the run's settings.
        load: reads the scored labels of one part, where ``parts`` come without their rows
            (:func:`lean`).

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
        _scored(scored, of_unit, of_label, len(labels), load),
        merged_seconds(parts),
        max((part.beside for part in parts), key=len),
        keyed=first.keyed,
        details=first.details,
        confusion_examples=first.confusion_examples,
    )


def lean(tallies: Tallies) -> tuple[Tallies, Scored | None]:
    """A tally without the rows of its scored labels, which are of several labels; and these.

    None where they are of one label, and as many as units: then nothing is taken out.
    """
    scored = tallies.scored
    if scored is None or not scored.several:
        return tallies, None
    return msgspec.structs.replace(tallies, scored=without_scores(scored)), scored


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
        row=None if scored.row is None else np.zeros(0, np.int64),
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


def _scored(
    scored: Sequence[Scored | None],
    units: Sequence[Array],
    labels: Sequence[Array],
    n_labels: int,
    load: Load | None,
) -> Scored | None:
    if load is None:
        return merge_scored(scored, units, labels, n_labels)
    apart = [one is not None and one.several for one in scored]
    sizes = [load(part).outcome.size if own else 0 for part, own in enumerate(apart)]
    start = places(load, sizes) if all(apart) and any(sizes) else None
    if start is None:
        full = [load(i) if own else scored[i] for i, own in enumerate(apart)]
        return merge_scored(full, units, labels, n_labels)
    return gather_scored(load, sizes, start, units, labels, n_labels)
