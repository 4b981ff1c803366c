"""How many units have each label, and how many have another: what every ratio is divided by."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..kernels.hard_counts import HardWeights, count_hard, weigh_hard
from ..kernels.sums import ExactSums
from .datums import Labels
from .unit_view import Summands, UnitView
from .units import Scored, Units

Array = np.ndarray[Any, Any]


def _truths(few: UnitClasses) -> Summands:
    """True labels of units that may have several."""
    unit, label = few.units.truth_rows()
    return unit, label, len(few.labels), None


def _leads(few: UnitClasses) -> Summands:
    """One unit of every known datum."""
    return few.leads, np.zeros(few.leads.size, np.int64), 1, None


class UnitClasses(UnitView):
    """Units by their true and predicted labels; arrays have leading axes [group, label] or key.

    Sums of weights are exact, and so are their differences: each is rounded once.

    Args:
        units: every unit.
        scored: its scored labels, or None where none were tallied.
        labels: what label codes stand for.
        **grouping: see :class:`View`.
    """

    def __init__(
        self, units: Units, scored: Scored | None, labels: Labels, **grouping: Any
    ) -> None:
        super().__init__(units, labels, **grouping)
        self.scored = scored

    @property
    def shape(self) -> tuple[int, int]:
        """Groups and labels."""
        return self.n_groups, len(self.labels)

    @cached_property
    def _hard(self) -> tuple[Array, Array, Array, Array]:
        """Right, judged, stray and actual labels of units with one truth at most."""
        if self.unit_weight is not None:
            right, judged, stray, actual = (s.rounded().reshape(self.shape) for s in self._weighed)
            return right, judged, stray, actual
        right, judged, stray, actual = np.zeros((4, *self.shape))
        for few in self.blocks():
            truth, hard, datum, group = few._hard_inputs
            count_hard(truth, hard, datum, group, (right, judged, stray, actual))
        return right, judged, stray, actual

    @cached_property
    def _weighed(self) -> HardWeights:
        """The same as exact sums of weights."""
        sums = HardWeights(*(ExactSums(self.shape[0] * self.shape[1]) for _ in range(4)))
        for few in self.blocks():
            truth, hard, datum, group = few._hard_inputs
            weigh_hard(truth, hard, datum, group, few.unit_weight, sums, len(self.labels))
        return sums

    @property
    def _hard_inputs(self) -> tuple[Array, Array, Array | None, Array | None]:
        """What hard predictions are counted by: truth, prediction, datum and its group."""
        units = self.units
        hard = np.zeros(0, np.int32) if units.hard is None else units.hard
        return units.truth, hard, units.datum, self.group

    @cached_property
    def positives(self) -> Array:
        """(Weighted) true labels, float64 [group, label]."""
        if self.unit_weight is not None:
            return self._positive_sums.rounded().reshape(self.shape)
        if self.units.truth_start is None:
            return self._hard[3]
        return self.added(_truths, len(self.labels))

    @cached_property
    def _positive_sums(self) -> ExactSums:
        """Weight of true labels, cells of [group, label]."""
        if self.units.truth_start is None:
            return self._weighed.actual
        return self._exact(_truths, len(self.labels))

    def _exact(self, pick: Callable[[Any], Summands], width: int) -> ExactSums:
        """Weights of the units of all blocks, cells of [group, width]."""
        found = self.sums_of(pick)
        return found if isinstance(found, ExactSums) else ExactSums(self.n_groups * width)

    @property
    def _of_key(self) -> Array:
        """The place in [group, key] of every label in [group, label], int64."""
        n_keys = len(self.labels.key_names)
        return (np.arange(self.n_groups)[:, None] * n_keys + self.labels.key).ravel()

    @cached_property
    def judged_units(self) -> Array:
        """Units that have a truth, int64 [m].

        Where several labels may be true, also those with a prediction: none of them is true there.
        """
        if self.units.truth_start is not None:
            return self.known_units
        return np.flatnonzero(self.units.n_truths > 0)

    @cached_property
    def judged(self) -> Array:
        """(Weighted) units of ``judged_units``, float64 [group, key]."""
        if self.unit_weight is not None:
            return self._by_key(self._judged_sums)
        if self.units.truth_start is not None:
            return self.summed(lambda few: (few.judged_units, None))
        out = np.zeros((self.n_groups, len(self.labels.key_names)))
        for k in range(out.shape[1]):
            out[:, k] = self.positives[:, self.labels.key == k].sum(axis=1)
        return out

    @cached_property
    def _judged_sums(self) -> ExactSums:
        """Weight of the units of ``judged_units``, cells of [group, key]."""
        n_keys = len(self.labels.key_names)
        if self.units.truth_start is None:
            return self._positive_sums.gathered(self._of_key, self.n_groups * n_keys)
        return self._exact(lambda few: few.keyed(few.judged_units, None), n_keys)

    def _by_key(self, sums: ExactSums) -> Array:
        return sums.rounded().reshape(self.n_groups, len(self.labels.key_names))

    @cached_property
    def known_datums(self) -> Array:
        """(Weighted) datums with a truth or a prediction of any key, float64 [group]."""
        if self.unit_weight is not None:
            return self._known_sums.rounded()
        if self._one_unit_each:
            whole: Array = self.every.sum(axis=1)
            return whole
        return self.added(_leads, 1)[:, 0]

    @cached_property
    def _known_sums(self) -> ExactSums:
        """Weight of the datums of ``known_datums``, cells of [group]."""
        if self._one_unit_each:
            n_keys = len(self.labels.key_names)
            group = np.repeat(np.arange(self.n_groups), n_keys)
            return self._every_sums.gathered(group, self.n_groups)
        return self._exact(_leads, 1)

    @property
    def _one_unit_each(self) -> bool:
        """Whether every datum has one unit."""
        return self.units.datum is None

    @cached_property
    def leads(self) -> Array:
        """The first unit of every datum with a truth or a prediction, int64 [m]."""
        unit = self.known_units
        return unit[np.unique(self.units.datum_of(unit), return_index=True)[1]]

    @cached_property
    def known_units(self) -> Array:
        """Units that have a truth or a prediction, or a row of one table of both, int64 [m]."""
        if self.units.by_row:
            return np.arange(len(self.units))
        known = self.units.n_truths > 0
        if self.scored is not None:
            grid, unit = self.scored.grid, self.scored.unit
            unit = unit if grid is None else grid.unit
            known[slice(None) if unit is None else unit] = True
        if self.units.hard is not None:
            known |= self.units.hard >= 0
        return np.flatnonzero(known)

    @cached_property
    def every(self) -> Array:
        """(Weighted) units that have a truth or a prediction, float64 [group, key]."""
        if self.unit_weight is not None:
            return self._by_key(self._every_sums)
        if self.units.truth_start is None and self._all_true:
            return self.judged  # one cheap pass instead of lists of all units
        known, judged = self._known_and_judged
        if known == judged:
            return self.judged
        return self.summed(lambda few: (few.known_units, None))

    @cached_property
    def _every_sums(self) -> ExactSums:
        """Weight of the units of ``every``, cells of [group, key]."""
        if self.units.truth_start is None and self._all_true:
            return self._judged_sums
        n_keys = len(self.labels.key_names)
        return self._exact(lambda few: few.keyed(few.known_units, None), n_keys)

    def rest(self, *, of_datums: bool = False) -> Array:
        """(Weighted) units of ``every`` that are not truths of the label, float64 [group, label].

        Args:
            of_datums: of ``known_datums`` in place of ``every``.
        """
        n_labels = len(self.labels)
        if self.unit_weight is None:
            every = self.known_datums[:, None] if of_datums else self.every[:, self.labels.key]
            left: Array = every - self.positives
            return left
        place = np.repeat(np.arange(self.n_groups), n_labels) if of_datums else self._of_key
        sums = (self._known_sums if of_datums else self._every_sums).taken(place)
        return sums.merge(self._positive_sums, sign=-1).rounded().reshape(self.shape)

    @property
    def _all_true(self) -> bool:
        """Whether there are units, and all have a truth; of those with one at most."""
        return self.units.truth.size > 0 and bool(self.units.truth.min() >= 0)

    @property
    def _known_and_judged(self) -> tuple[int, int]:
        """Units that have a truth or a prediction, and those of ``judged_units``."""
        return self.known_units.size, self.judged_units.size

    @cached_property
    def negatives(self) -> Array:
        """(Weighted) units with a truth of the key that is not the label, [group, label]."""
        if self.unit_weight is not None:
            return self._negative_sums.rounded().reshape(self.shape)
        found: Array = self.judged[:, self.labels.key] - self.positives
        return found

    @cached_property
    def _negative_sums(self) -> ExactSums:
        """Weight of the units of ``negatives``, cells of [group, label]."""
        return self._judged_sums.taken(self._of_key).merge(self._positive_sums, sign=-1)

    @cached_property
    def classes_of_keys(self) -> tuple[Array, Array]:
        """(Weighted) positives of all labels of a key, and negatives of those that are scored,
        float64 [group, key] each.
        """
        assert self.scored is not None
        keys = self.labels.key[:, None] == np.arange(len(self.labels.key_names))
        if self.unit_weight is None:
            return self.positives @ keys, (self.negatives * self.scored.labels) @ keys
        cells = self.n_groups * keys.shape[1]
        positives = self._positive_sums.gathered(self._of_key, cells)
        scored = np.where(np.tile(self.scored.labels, self.n_groups), self._of_key, -1)
        negatives = self._negative_sums.gathered(scored, cells)
        return self._by_key(positives), self._by_key(negatives)
