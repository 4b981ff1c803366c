"""Score thresholds of single labels, against the labels of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ingest.problems import Note, listing
from ..schemas.label_thresholds import LabelThresholds, label_text
from ..tally.datums import Labels
from ..tally.precision import comparable

Array = np.ndarray[Any, Any]


def limits_of(given: LabelThresholds, labels: Labels, *, single: bool, otherwise: float) -> Array:
    """The score from which predictions of each label count, float64 [labels].

    A label's own row goes before that of its key, and a row of its key before one of any.

    Args:
        given: thresholds.
        labels: of the run.
        single: whether scores came in single precision, to which thresholds are rounded then.
        otherwise: of labels without a threshold.
    """
    own = {(key, value): number for key, value, number in given}
    made = []
    for key, *names in _named(labels):
        places = [(k, name) for name in (*names, None) for k in (key, None)]
        number = next((own[place] for place in places if place in own), otherwise)
        made.append(comparable(number, single=single))
    return np.array(made, np.float64)


def notes_of(given: LabelThresholds, labels: Labels, scored: Array | None = None) -> list[Note]:
    """What there is to tell of thresholds: labels that no table has, labels without one.

    Args:
        given: thresholds.
        labels: of the run.
        scored: bool [labels], those whose scores are looked at; None for all.
    """
    known = {(k, name) for key, *names in _named(labels) for name in names for k in (key, None)}
    strange = [value for key, value, _ in given if value is not None and (key, value) not in known]
    notes = []
    if strange:
        notes.append(
            Note("thresholds_unused", f"thresholds: no side has the label {listing(strange)}.", 0)
        )
    limits = limits_of(given, labels, single=False, otherwise=np.nan)
    lacks = np.isnan(limits) if scored is None else np.isnan(limits) & scored
    without = [names[0] for (_, *names), lack in zip(_named(labels), lacks, strict=True) if lack]
    if without:
        said = f"thresholds: none for the label {listing(without)}, which is as without the option."
        notes.append(Note("thresholds_lacking", said, 0))
    return notes


def _named(labels: Labels) -> list[tuple[str, ...]]:
    """Key, value and (where there is one) name of each label, as text."""
    frame = labels.frame
    names = frame["label_name"].to_list() if "label_name" in frame.columns else [None] * len(frame)
    rows = zip(frame["label_key"].to_list(), frame["label_value"].to_list(), names, strict=True)
    return [
        (key, label_text(value), *(() if name is None else (str(name),)))
        for key, value, name in rows
    ]
