"""Units: one row per datum and label key, with what is true of it and what was predicted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from .grid import Grid
from .precision import comparable
from .registry import stored_as

Array = np.ndarray[Any, Any]


_SHARING = Lock()  # views side by side wait for the one that sorts


def joined(parts: tuple[Array, ...]) -> Array:
    """Pieces of a column as one array."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0)


@stored_as("classification.facts/1")
class Facts(msgspec.Struct, frozen=True):
    """What top-k accuracy, log loss, Brier score and calibration need of every unit.

    Attributes:
        true_score: float64 [u], score of the true label; NaN where it is not listed.
        rank: int32 [u], rank of the true label from 0; meaningless where it is not listed.
        squared: float64 [u], sum over listed labels of (score - truth)^2.
    """

    true_score: Array
    rank: Array
    squared: Array


@stored_as("classification.units/1", changes={1: {"row": None}})
class Units(msgspec.Struct, frozen=True):
    """The units of one partition, in datum order.

    Attributes:
        datum: int32 [u], datum codes; None where unit u is datum u.
        key: int32 [u], codes of label keys; None where there is one.
        truth: true labels: int32 [u], -1 for none, or by unit of ``truth_start`` [m].
        truth_start: int64 [u + 1], CSR offsets of each unit's true labels; None where none has
            more than one.
        hard: int32 [u], label predicted, -1 for none; None where nothing hard was asked for.
        hard_score: float64 [u], its score, or None.
        weight: float64 [u], sample weights, or None.
        facts: see :class:`Facts`; None where nothing asked for them.
        by_row: whether units stand in the order of the rows of one table, not in that of datums.
        decided: whether ``hard`` was decided by a threshold on the score of one label, so that
            the label predicted below it is the only other one, or none where there are several.
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
    """Rows of scores, each of a label and a unit: what structs with these attributes tell of them.

    It has no fields: structs keep theirs in their own order, and tallies on disk by their own name.

    Attributes:
        parts: float64 arrays of n scores together.
        label: int32 [n], label codes; None where all rows are of one label, or there is a ``grid``.
        unit: int32 [n], unit of each row; None where row i is unit i, or there is a ``grid``.
        grid: labels and units of the rows, where every unit lists the same labels in one order.
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
        """Whether rows have labels of their own."""
        return self.label is not None or self.grid is not None

    @cached_property
    def label_codes(self) -> Array | None:
        """Label codes, int32 [n]; None where all rows are of one label."""
        return self.label if self.grid is None else self.grid.labels

    @cached_property
    def unit_codes(self) -> Array | None:
        """Unit of each row, int32 [n]; None where row i is unit i."""
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
    """Scored labels of one partition, one row per prediction, in input order.

    Attributes:
        parts: float64 arrays of n scores together: columns of large files come in pieces.
        outcome: uint8 [n]: 1 where the label is true of its unit, 0 where the unit has other
            true labels (or may have several and has none), 2 where it has none.
        label: int32 [n], label codes; None where all rows are of label ``only``, or there
            is a ``grid``.
        unit: int32 [n], unit of each row; None where row i is unit i, or there is a
            ``grid``.
        only: the one label that is scored where ``several`` is false.
        labels: bool [l], labels that are scored at all: in a binary table the positive one.
        single: whether scores came in single precision; thresholds are then rounded to it.
        ranked: whether there are scores; else every row is predicted, and its score infinite.
        grid: labels and units of the rows, where every unit lists the same labels in one order.
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
        """What does not depend on groups or weights, made by the first view that asks for it.

        Args:
            name: what it is kept under.
            make: makes it.
        """
        kept: dict[str, Any] = self.__dict__
        with _SHARING:
            if f"_{name}" not in kept:
                kept[f"_{name}"] = make()
            return kept[f"_{name}"]

    def comparable(self, threshold: float) -> float:
        """A score threshold as the scores' own precision can express it."""
        return comparable(threshold, single=self.single)
