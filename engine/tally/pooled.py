"""The labels of each key as one label, for micro averages of rank metrics."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .datums import Labels
from .scored_view import ScoredView

Array = np.ndarray[Any, Any]


def keys_as_labels(labels: Labels) -> Labels:
    """Label keys as labels."""
    names = pl.DataFrame(
        {"label_key": list(labels.key_names), "label_value": list(labels.key_names)}
    )
    keys = np.arange(len(labels.key_names), dtype=np.int32)
    return Labels(names, keys, labels.key_names)


class Pooled(ScoredView):
    """The labels of each key as one label."""

    def __init__(self, view: ScoredView) -> None:
        labels, scored = view.labels, view.scored
        assert scored is not None
        names = keys_as_labels(labels)
        label = None if scored.label_codes is None else labels.key[scored.label_codes]
        only = int(labels.key[scored.only]) if not scored.several else -1
        pooled = msgspec.structs.replace(
            scored,
            label=label,
            unit=scored.unit_codes,
            grid=None,
            only=only,
            labels=np.ones(len(labels.key_names), bool),
        )
        super().__init__(
            view.units,
            pooled,
            names,
            decision=view.decision,
            over=view.over,
            group=view.group,
            n_groups=view.n_groups,
            weights=view.weights,
        )
        self._of = view

    @cached_property
    def positives(self) -> Array:
        return self._of.classes_of_keys[0]

    @cached_property
    def negatives(self) -> Array:
        return self._of.classes_of_keys[1]
