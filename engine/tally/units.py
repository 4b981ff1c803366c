"""Units: one row per datum and label key, with its true and predicted labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ..schemas.arrays import Array
from .grid import Grid
from .precision import comparable
from .registry import stored_as

_SHARING = Lock()  # views side by side wait for the one that sorts


def joined(parts: tuple[Array, ...]) -> Array:
    """Pieces of a column as one array."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0)


@stored_as("classification.facts/1")
class Facts(msgspec.Struct, frozen=True):
    """Per-unit inputs of top-k accuracy, log loss, Brier score and calibration.

    Attributes:
        true_score: float64 [u], score of the true label; NaN if it is not listed.
        rank: int32 [u], rank of the true label from 0; meaningless if it is not listed.
        squared: float64 [u], sum over listed labels of (score - truth)^2.
    """

    true_score: Array
    rank: Array
    squared: Array


@stored_as("classification.units/1", changes={1: {"row": None}})
class Units(msgspec.Struct, frozen=True):
    """The units of one bucket, in datum order.

    Attributes:
        datum: int32 [u], datum codes; None if unit u is datum u.
        key: int32 [u], codes of label keys; None if there is one.
        truth: true labels: int32 [u], -1 for none, or [m] with offsets ``truth_start``.
        truth_start: int64 [u + 1], CSR offsets of each unit's true labels; None if units have at
            most one.
        hard: int32 [u], label predicted, -1 for none; None if not needed.
        hard_score: float64 [u], its score, or None.
        weight: float64 [u], sample weights, or None.
        facts: see :class:`Facts`; None if not needed.
        by_row: units are in the order of one table's rows instead of datum order.
        decided: ``hard`` was decided by a threshold on the score of one label. Below it, the other
            label is predicted, or none if there are several others.
    """

    datum: Array | None
    key: Array | None
    truth: Array
    truth_start: Array | None
    hard: Array | None
    hard_score: Array | None
    weight: Array | None
    facts: Facts | None = None
    by_row: bool = False
    decided: bool = False

    def __len__(self) -> int:
        return int(self.truth.size if self.truth_start is None else self.truth_start.size - 1)

    @property
    def n_truths(self) -> Array:
        """True labels of each unit, int64 [u]."""
        if self.truth_start is None:
            return (self.truth >= 0).astype(np.int64)
        return np.diff(self.truth_start)

    def truth_rows(self) -> tuple[Array, Array]:
        """Unit and label of every true label, int64 and int32 [m]."""
        if self.truth_start is None:
            unit = np.flatnonzero(self.truth >= 0)
            return unit, self.truth[unit]
        return np.repeat(np.arange(len(self)), self.n_truths), self.truth

    def datum_of(self, unit: Array | None = None) -> Array:
        """Datums of some units (of all unless given), int32."""
        if self.datum is None:
            every = np.arange(len(self), dtype=np.int32)
            return every if unit is None else unit.astype(np.int32)
        return self.datum if unit is None else self.datum[unit]


class Listed:
    """Mixin for rows of scores, each of a label and a unit.

    It has no fields: structs keep their field order, and stored tallies their names.

    Attributes:
        parts: float64 arrays, n scores in total.
        label: int32 [n], label codes; None if all rows have one label, or there is a ``grid``.
        unit: int32 [n], unit of each row; None if row i is unit i, or there is a ``grid``.
        grid: labels and units of the rows, if every unit lists the same labels in one order.
    """

    if TYPE_CHECKING:

        @property
        def parts(self) -> tuple[Array, ...]: ...
        @property
        def label(self) -> Array | None: ...
        @property
        def unit(self) -> Array | None: ...
        @property
        def grid(self) -> Grid | None: ...

    @property
    def several(self) -> bool:
        """True if rows have different labels."""
        return self.label is not None or self.grid is not None

    @cached_property
    def label_codes(self) -> Array | None:
        """Label codes, int32 [n]; None if all rows have one label."""
        return self.label if self.grid is None else self.grid.labels

    @cached_property
    def unit_codes(self) -> Array | None:
        """Unit of each row, int32 [n]; None if row i is unit i."""
        return self.unit if self.grid is None else self.grid.units

    @cached_property
    def score(self) -> Array:
        """All scores in one array, float64 [n]."""
        return joined(self.parts)


@stored_as(
    "classification.scores/1",
    changes={1: {"given": "parts", "few": None, "columns": None, "row": None}},
)
class Scored(Listed, msgspec.Struct, frozen=True, dict=True):
    """Scored labels of one bucket, one row per prediction, in input order.

    Attributes:
        parts: float64 arrays, n scores in total: columns of large files are chunked.
        outcome: uint8 [n]: 1 if the label is true of its unit, 0 if the unit has other true labels
            (or is multi-label and has none), 2 if it has none.
        label: int32 [n], label codes; None if all rows have label ``only``, or there is a ``grid``.
        unit: int32 [n], unit of each row; None if row i is unit i, or there is a ``grid``.
        only: the scored label if ``several`` is False.
        labels: bool [l], labels that are scored: in a binary table only the positive one.
        single: scores came in single precision; thresholds are then rounded to it.
        ranked: there are scores; otherwise every row is predicted, and its score infinite.
        grid: labels and units of the rows, if every unit lists the same labels in one order.
    """

    parts: tuple[Array, ...]
    outcome: Array
    label: Array | None
    unit: Array | None
    only: int
    labels: Array
    single: bool
    ranked: bool = True
    grid: Grid | None = None

    def __len__(self) -> int:
        return int(self.outcome.size)

    def shared(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a cached value that does not depend on groups or weights.

        Args:
            name: cache key.
            make: computes the value on first use.
        """
        kept: dict[str, Any] = self.__dict__
        with _SHARING:
            if f"_{name}" not in kept:
                kept[f"_{name}"] = make()
            return kept[f"_{name}"]

    def comparable(self, threshold: float) -> float:
        """A score threshold as the scores' own precision can express it."""
        return comparable(threshold, single=self.single)
