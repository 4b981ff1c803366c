"""Units seen by groups of datums: their groups, their weights, and sums over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .datums import Labels
from .units import Units
from .view import View

Array = np.ndarray[Any, Any]

Summands = tuple[Array, Array, int, Array | None]
"""What :meth:`UnitView.by_group` takes."""


class UnitView(View):
    """Units by groups of datums; arrays have leading axes [group, key].

    Args:
        units: every unit.
        labels: what label codes stand for.
        **grouping: see :class:`View`.
    """

    def __init__(self, units: Units, labels: Labels, **grouping: Any) -> None:
        super().__init__(labels, **grouping)
        self.units = units

    @cached_property
    def unit_weight(self) -> Array | None:
        """Weight of every unit, float64 [u]: its own times its datum's draws; None for 1 each."""
        own = self.units.weight
        if self.weights is None:
            return own
        drawn = self.weights[self.units.datum_of()].astype(np.float64)
        return drawn if own is None else own * drawn

    @cached_property
    def unit_group(self) -> Array | None:
        """Group of every unit, int32 [u], -1 for none; None for one group of all."""
        if self.group is None or self.units.datum is None:
            return self.group
        return self.group[self.units.datum]

    def by_group(
        self,
        unit: Array,
        column: Array,
        width: int,
        value: Array | None = None,
        onto: Array | None = None,
    ) -> Array:
        """(Weighted) number or sum of units by group and one more code, float64 [group, width].

        Sums are made in the order of ``unit``, one addition after the other.

        Args:
            unit: int64 [m], units.
            column: int [m], code of each below ``width``.
            width: number of codes.
            value: float64 [m], what is summed, or None for 1 each.
            onto: float64 [group, width], sums over units before these, which go on; None for none.
        """
        code = column.astype(np.int64)
        weight = value
        if self.unit_weight is not None:
            own = self.unit_weight[unit]
            weight = own if value is None else value * own
        if self.unit_group is not None:
            group = self.unit_group[unit]
            code = code + group.astype(np.int64) * width
            if (group < 0).any():
                inside = group >= 0
                code = code[inside]
                weight = None if weight is None else weight[inside]
        cells = self.n_groups * width
        if onto is not None and weight is not None:  # sums before are added first, each to 0
            code = np.concatenate([np.arange(cells), code])
            weight = np.concatenate([onto.ravel(), weight])
        found = np.bincount(code, weight, minlength=cells).astype(np.float64)
        if onto is not None and weight is None:
            found += onto.ravel()  # whole numbers, which are exact in any order
        return found.reshape(self.n_groups, width)

    def keyed(
        self, unit: Array, value: Array | None, at: Array | None = None, n_bins: int = 1
    ) -> Summands:
        """Units by their label key, and a bin where they have one, as :meth:`by_group` takes them.

        Args:
            unit: int64 [m], ascending.
            value: float64 [m], or None for 1 each.
            at: int64 [m], bin of each; None for one bin.
            n_bins: number of bins.
        """
        key = self.units.key
        code = np.zeros(unit.size, np.int64) if key is None else key[unit].astype(np.int64)
        if at is not None:
            code = code * n_bins + at
        return unit, code, len(self.labels.key_names) * n_bins, value

    def blocks(self) -> Iterator[Any]:
        """Views of all units, in parts that follow one another in their order: of this one, one."""
        yield self

    def summed(self, pick: Callable[[Any], tuple[Array, Array | None]]) -> Array:
        """(Weighted) sum of a value over units, float64 [group, key].

        Args:
            pick: from each of the views that :meth:`blocks` gives to units, int64 [m], ascending,
                and their values, float64 [m], or None for 1 each.
        """
        return self.added(lambda few: few.keyed(*pick(few)), len(self.labels.key_names))

    def added(self, pick: Callable[[Any], Summands], width: int) -> Array:
        """What :meth:`by_group` gives of all blocks, float64 [group, width].

        Args:
            pick: from each of the views that :meth:`blocks` gives to what is summed there.
            width: number of codes.
        """
        out: Array | None = None
        for few in self.blocks():
            out = few.by_group(*pick(few), onto=out)
        return np.zeros((self.n_groups, width)) if out is None else out

    def summed_by_bin(
        self, pick: Callable[[Any], tuple[Array, Array, Sequence[Array | None]]], n_bins: int
    ) -> list[Array]:
        """(Weighted) sums of values over units by key and bin, float64 [group, key, bin] each.

        Args:
            pick: from each of the views that :meth:`blocks` gives to units, int64 [m], ascending,
                the bin of each, int64 [m], and several values of each, as :meth:`summed` has them.
            n_bins: number of bins.
        """
        n_keys = len(self.labels.key_names)
        sums: list[Array | None] = []
        for few in self.blocks():
            unit, at, values = pick(few)
            sums = sums or [None] * len(values)
            sums = [
                few.by_group(*few.keyed(unit, value, at, n_bins), onto=before)
                for value, before in zip(values, sums, strict=True)
            ]
        return [found.reshape(self.n_groups, n_keys, n_bins) for found in sums if found is not None]
