"""Units seen by groups of datums: their groups, their weights, and sums over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from .datums import Labels
from .ranked_view import View
from .units import Units

Sums = Array | ExactSums
"""Numbers of units, int64 [group * width], or exact sums in as many cells."""

Summands = tuple[Array, Array, int, Array | None]
"""Arguments of :meth:`UnitView.by_group`."""


class UnitView(View):
    """Units by groups of datums; arrays have leading axes [group, key].

    Args:
        units: every unit.
        labels: meaning of label codes.
        **grouping: see :class:`View`.
    """

    def __init__(self, units: Units, labels: Labels, **grouping: Any) -> None:
        super().__init__(labels, **grouping)
        self.units = units

    @cached_property
    def unit_weight(self) -> Array | None:
        """Weight of every unit times its datum's multiplicity, float64 [u]; None for 1 each."""
        own = self.units.weight
        if self.weights is None:
            return own
        drawn = self.weights[self.units.datum_of()].astype(np.float64)
        return drawn if own is None else own * drawn

    @cached_property
    def unit_group(self) -> Array | None:
        """Group of every unit, int32 [u], -1 for none; None for one group of all."""
        group: Array | None = self.group
        return group if group is None or self.units.datum is None else group[self.units.datum]

    def by_group(self, unit: Array, column: Array, width: int, value: Array | None = None) -> Array:
        """Return (weighted) counts or sums of units by group and code, float64 [group, width].

        Sums are exact, and rounded once.

        Args:
            unit: int64 [m], units.
            column: int [m], code of each below ``width``.
            value: float64 [m], summands, or None for 1 each.
        """
        return _rounded(self._added((unit, column, width, value), None), self.n_groups, width)

    def _added(self, summands: Summands, onto: Sums | None) -> Sums:
        """Add counts or sums of units to existing sums."""
        unit, column, width, value = summands
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
        if weight is None:
            found = np.bincount(code, minlength=cells)
            return found if not isinstance(onto, np.ndarray) else onto + found
        sums = onto if isinstance(onto, ExactSums) else ExactSums(cells)
        return sums.add(weight, code)

    def keyed(
        self, unit: Array, value: Array | None, at: Array | None = None, n_bins: int = 1
    ) -> Summands:
        """Return the arguments of :meth:`by_group` for units by label key and bin.

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
        """Return (weighted) sums of a value over units, float64 [group, key].

        Args:
            pick: maps each view of :meth:`blocks` to units, int64 [m], ascending, and their values,
                float64 [m], or None for 1 each.
        """
        return self.added(lambda few: few.keyed(*pick(few)), len(self.labels.key_names))

    def added(self, pick: Callable[[Any], Summands], width: int) -> Array:
        """Return :meth:`by_group` over all blocks, float64 [group, width].

        Args:
            pick: maps each view of :meth:`blocks` to its summands.
            width: number of codes.
        """
        return _rounded(self.sums_of(pick), self.n_groups, width)

    def sums_of(self, pick: Callable[[Any], Summands]) -> Sums | None:
        """The same before it is rounded; None without a block."""
        out: Sums | None = None
        for few in self.blocks():
            out = few._added(pick(few), out)
        return out

    def summed_by_bin(
        self, pick: Callable[[Any], tuple[Array, Array, Sequence[Array | None]]], n_bins: int
    ) -> list[Array]:
        """Return (weighted) sums over units by key and bin, float64 [group, key, bin] each.

        Args:
            pick: maps each view of :meth:`blocks` to units, int64 [m], ascending, the bin of each,
                int64 [m], and several values of each, as in :meth:`summed`.
            n_bins: number of bins.
        """
        n_keys = len(self.labels.key_names)
        sums: list[Sums | None] = []
        for few in self.blocks():
            unit, at, values = pick(few)
            sums = sums or [None] * len(values)
            sums = [
                few._added(few.keyed(unit, value, at, n_bins), before)
                for value, before in zip(values, sums, strict=True)
            ]
        shape = self.n_groups, n_keys, n_bins
        return [_rounded(found, self.n_groups, n_keys * n_bins).reshape(shape) for found in sums]


def _rounded(sums: Sums | None, n_groups: int, width: int) -> Array:
    """Sums as floats, [group, width]."""
    if sums is None:
        return np.zeros((n_groups, width))
    values = sums.rounded() if isinstance(sums, ExactSums) else sums.astype(np.float64)
    return values.reshape(n_groups, width)
