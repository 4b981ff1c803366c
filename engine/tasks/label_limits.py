"""Score thresholds of single labels, against the labels of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ..ingest.problems import Note, listing
from ..schemas.arrays import Array
from ..schemas.label_thresholds import LabelThreshold, LabelThresholds, label_text
from ..tally.datums import Labels
from ..tally.precision import comparable


def limits_of(given: LabelThresholds, labels: Labels, *, single: bool, otherwise: float) -> Array:
    """Return the score from which predictions of each label count, float64 [labels].

    A row for the label has priority over one for its key, and that over a general row. If both
    sides
    have names, labels match by name, whatever their values.

    Args:
        given: thresholds.
        single: scores came in single precision, to which thresholds are then rounded.
        otherwise: value for labels without a threshold.
    """
    rows = _Rows(given)
    made = []
    for label in _named(labels):
        row = next(rows.of(*label), None)
        made.append(comparable(otherwise if row is None else row.number, single=single))
    return np.array(made, np.float64)


class _Rows:
    """Index of thresholds by name and value."""

    def __init__(self, given: LabelThresholds) -> None:
        self.by_value = {(row.key, row.value): row for row in given}
        often = Counter((row.key, row.name) for row in given)
        self.by_name = {
            (row.key, row.name): row
            for row in given
            if row.name is not None and often[row.key, row.name] == 1
        }

    def of(self, key: str, value: str, name: str | None) -> Iterator[LabelThreshold]:
        """Yield the rows that match a label, the most specific first."""
        for k in (key, None):
            if (row := self.by_name.get((k, name or value))) is not None:
                yield row
        for text in dict.fromkeys((value, name or value, None)):
            for k in (key, None):
                row = self.by_value.get((k, text))
                if row is not None and (text is None or _may_be(row, name)):
                    yield row


def _may_be(row: LabelThreshold, name: str | None) -> bool:
    """Return True unless row and label have different names."""
    return row.name is None or name is None or row.name == name


def notes_of(given: LabelThresholds, labels: Labels, scored: Array | None = None) -> list[Note]:
    """Return notes on thresholds: unknown labels, labels without one, ambiguous matches.

    Matches by name, or by a value that means something else in the other place, are reported.

    Args:
        given: thresholds.
        scored: bool [labels], labels whose scores are used; None for all.
    """
    rows, named = _Rows(given), _named(labels)
    met = [list(rows.of(*label)) for label in named]
    known = {row for own in met for row in own}
    strange = [row.name or row.value for row in given if row.value is not None and row not in known]
    moved, unnamed = [], []
    for (_, value, name), own in zip(named, met, strict=True):
        row = own[0] if own else None
        if row is None or row.name is None:
            continue
        if row.name in (name, value) and row.value != value:
            moved.append(f"{row.name} ({row.value} there, {value} here)")
        elif name is None and row.name != value:
            unnamed.append(f"{value} ({row.name})")
    lacks = np.array([not own for own in met], bool) & (True if scored is None else scored)
    without = [value for (_, value, _), lack in zip(named, lacks, strict=True) if lack]
    told = {
        "thresholds_unused": (strange, "no side has the label {}"),
        "thresholds_moved": (moved, "labels met by name, as their values differ: {}"),
        "thresholds_unnamed": (unnamed, "labels met by value, as the tables do not name them: {}"),
        "thresholds_lacking": (without, "none for the label {}, which is as without the option"),
    }
    return [
        Note(kind, f"thresholds: {words.format(listing(values))}.", 0, facts={"labels": values})
        for kind, (values, words) in told.items()
        if values
    ]


def _named(labels: Labels) -> list[tuple[str, str, str | None]]:
    """Return key, value and name (or None) of each label, as text."""
    frame = labels.frame
    names = frame["label_name"].to_list() if "label_name" in frame.columns else [None] * len(frame)
    rows = zip(frame["label_key"].to_list(), frame["label_value"].to_list(), names, strict=True)
    return [
        (key, label_text(value), None if name is None else str(name)) for key, value, name in rows
    ]
