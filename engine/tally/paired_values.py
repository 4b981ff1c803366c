"""Views of paired values: sums over predicted and true numbers, and rank statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ..kernels.paired_sums import MOMENTS, Laid, Means, Scales, add_moments, largest
from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from .counted_rows import CountsView
from .datums import Labels
from .paired_rows import Paired, joined

_PIECE = 1 << 15  # rows at a time, so few that what is made of them stays in the cache

Values = Callable[[Paired], Array]
"""From rows to numbers, float64 [n]."""

OfRows = Callable[[Paired, "Array | None"], float]
"""From rows and their weights, None for all alike, to a number."""

Scaled = tuple[Array, Array]
"""Numbers [group, key], and the powers of two, int64, that each is to be multiplied by."""

SIDES = ("target", "prediction", "error")
_TOGETHER = (
    ("absolute", "squared", "error"),
    ("target", "prediction"),
    ("size",),
    *((f"{one}-", f"{one}*{one}") for one in SIDES),
    ("target*prediction",),
)
"""Moments that are summed in one pass."""

_HUGE, _DOWN = 2.0**500, -600
_TINY, _UP = 2.0**-400, 700


class Scaling(msgspec.Struct, frozen=True):
    """Powers of two that keep squares of huge and of tiny numbers within the range of float64.

    Attributes:
        largest: float64 [cells, 3], the largest absolute target, prediction and error.
        powers: int64 [cells, 3], exponents of the factors; 0 almost everywhere.
        scales: the factors.
    """

    largest: Array
    powers: Array
    scales: Scales

    @staticmethod
    def of(found: Array) -> Scaling:
        """Choose the scaling for the largest numbers.

        Args:
            found: float64 [cells, 3].
        """
        tiny = (found < _TINY) & (found > 0)
        powers = np.where(found > _HUGE, _DOWN, np.where(tiny, _UP, 0))
        factors = np.ldexp(1.0, powers)
        of_error = factors[:, 2]
        scales = Scales(
            factors[:, 0], factors[:, 1], np.minimum(of_error, 1.0), np.maximum(of_error, 1.0)
        )
        return Scaling(found, powers, scales)

    def undone(self, name: str) -> Array:
        """The powers of two that sums of a moment are to be multiplied by, int64 [cells]."""
        of = {"absolute": "error", "squared": "error*error", "size": "target"}.get(name, name)
        out: Array = -sum(self.powers[:, SIDES.index(one)] for one in of.rstrip("-").split("*"))  # type: ignore[assignment]
        return out


class PairedView(CountsView):
    """Paired values by groups of datums; numbers have the axes [group, key].

    Args:
        counts: :class:`.paired_rows.Paired`, or :class:`~evalengine.tally.counted_rows.CountParts`
            of it.
        labels: their keys are the targets.
        stats: per-datum numbers.
        **grouping: see :class:`~evalengine.tally.ranked_view.View`.
    """

    slack: float = 4 * float(np.finfo(np.float64).eps)
    """Share of a sum of squares below which its difference from another is rounding."""

    def __init__(self, counts: Any, labels: Labels, stats: Any, **grouping: Any) -> None:
        super().__init__(counts, labels, stats, **grouping)
        self.shape = self.n_groups, len(labels.key_names)
        self._totals: dict[str, Array] = {}
        self.kept: dict[str, Any] = {}  # what views of draws of this one share

    @property
    def n_cells(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def base(self) -> PairedView:
        """The view whose means numbers are counted from, so that squares lose no digits."""
        return self

    def cell_of(self, rows: Paired, group: Array | None) -> Array | None:
        """Return the cell of each row, int32 [n], -1 outside; None if there is one cell."""
        n_keys = self.shape[1]
        if group is None:
            return None if n_keys == 1 else rows.key
        alike = n_keys == 1 and rows.datum.size == group.size  # row i is datum i
        own = group if alike else group[rows.datum]
        if n_keys == 1:
            return own
        cell = own.astype(np.int64) * n_keys + rows.key
        return np.where(own < 0, -1, cell).astype(np.int32)

    def _factor(self, rows: Paired) -> Array | None:
        """Return the weight of each row; None if equal."""
        if self.weights is None:
            return rows.weight
        times: Array = self.weights[rows.datum].astype(np.float64)
        return times if rows.weight is None else times * rows.weight

    def _lay(self, rows: Paired, group: Array | None) -> tuple[Paired, Array]:
        return rows.laid(self.cell_of(rows, group), self._factor(rows), self.n_cells)

    @cached_property
    def _held(self) -> tuple[Paired, Array]:
        """Rows of a tally in memory, for all numbers."""
        return self._lay(self.counts, self.group)

    def _laid(self) -> Iterator[tuple[Paired, Array]]:
        """Yield weighted rows sorted by cell, with cell offsets, in blocks."""
        for rows, group in self._blocks():
            yield self._held if rows is self.counts else self._lay(rows, group)

    # -- sums --------------------------------------------------------------------------------------

    def total(self, name: str, of: Values) -> Array:
        """Return exact weighted sums over rows.

        Args:
            name: cache key of the sum.
            of: computes the numbers.

        Returns:
            float64 [group, key]; NaN if a number is NaN, infinite on overflow.
        """
        if name not in self._totals:
            with np.errstate(over="ignore", invalid="ignore"):
                self._totals[name] = self._summed(of)
        return self._totals[name]

    def _summed(self, of: Values) -> Array:
        sums = ExactSums(self.n_cells)
        length = max(_PIECE, 4 * self.n_cells)
        for rows, start in self._laid():
            for first in range(0, rows.target.size, length):
                some = rows.chosen(slice(first, first + length))
                values = of(some)
                values = values if some.weight is None else values * some.weight
                sums.add_runs(values, np.clip(start - first, 0, values.size))
        return sums.rounded().reshape(self.shape)

    @cached_property
    def rows(self) -> Array:
        """Number of rows, with the multiplicity of resamples, int64 [group, key]."""
        out = np.zeros(self.n_cells)
        for rows, group in self._blocks():
            if self.weights is None and rows.weight is None:
                out += np.diff((self._held if rows is self.counts else self._lay(rows, group))[1])
                continue
            times = None if self.weights is None else self.weights[rows.datum]
            cell = self.cell_of(rows, group)
            place = np.zeros(rows.datum.size, np.int64) if cell is None else cell + 1
            found = np.bincount(place, times, minlength=self.n_cells + 1)
            out += found[: self.n_cells] if cell is None else found[1:]
        return out.reshape(self.shape).astype(np.int64)

    @cached_property
    def weight(self) -> Array:
        """Sum of the weights of the rows, float64 [group, key]."""
        if self.whole.weight is None:
            return self.rows.astype(np.float64)
        return self.total("weight", lambda rows: np.ones(rows.target.size))

    def mean(self, name: str, of: Values) -> Array:
        """Return weighted means over rows, float64 [group, key]; NaN without rows."""
        return self.per_weight(self.total(name, of))

    def per_weight(self, total: Array) -> Array:
        """Divide sums by the weights of the rows; NaN without rows."""
        out = np.full(self.shape, np.nan)
        np.divide(total, self.weight, out=out, where=self.weight > 0)
        return out

    # -- moments -----------------------------------------------------------------------------------

    @cached_property
    def _scaling(self) -> Scaling:
        found = np.zeros((self.n_cells, 3))
        for rows, start in self._laid():
            largest(_sides(rows, start), found)
        return Scaling.of(found)

    @property
    def scaling(self) -> Scaling:
        """Scaling of each cell's numbers."""
        return self._scaling

    @property
    def largest_error(self) -> Array:
        """The largest absolute error, float64 [group, key]; NaN without rows."""
        found = self.scaling.largest[:, 2].reshape(self.shape)
        return np.where(self.weight > 0, found, np.nan)

    def moment(self, name: str) -> Scaled:
        """Return exact weighted sums of a moment over rows.

        Args:
            name: one of :data:`.MOMENTS`.
        """
        if name not in self._totals:
            with np.errstate(over="ignore", invalid="ignore"):
                self._totals |= self._moments(name)
        return self._totals[name], self.undone(name)

    def undone(self, name: str) -> Array:
        """The powers of two that a moment is to be multiplied by, int64 [group, key]."""
        return self.scaling.undone(name).reshape(self.shape)

    def centres(self, name: str) -> dict[str, Array]:
        """Return the means subtracted in a moment, float64 [cells]; 0 without rows."""
        needed = set(name.rstrip("-").split("*")) if "*" in name or "-" in name else ()
        means = {one: np.nan_to_num(self.per_weight(self.moment(one)[0])).ravel() for one in needed}
        return {one: means.get(one, np.zeros(self.n_cells)) for one in SIDES}

    def _moments(self, name: str) -> dict[str, Array]:
        """A moment, and those that are summed along with it."""
        names = next(some for some in _TOGETHER if name in some)
        means, scales = Means(**self.centres(name)), self.scaling.scales
        sums = ExactSums(self.n_cells * len(names))
        codes = [MOMENTS[one] for one in names]
        for rows, start in self._laid():
            add_moments(codes, _sides(rows, start), scales, means, sums)
        found = sums.rounded().reshape(*self.shape, len(names))
        return {one: found[..., i] for i, one in enumerate(names)}

    def comoment(self, one: str, other: str) -> Scaled:
        """Return sums of products of two centred numbers.

        Args:
            one: ``target``, ``prediction`` or ``error``.
            other: same.
        """
        square, powers = self.moment(f"{one}*{other}")
        left, right = self.moment(f"{one}-")[0], self.moment(f"{other}-")[0]
        off = np.zeros(self.shape)
        np.divide(left * right, self.weight, out=off, where=self.weight > 0)
        # Correct for the rounding of the mean; squares of a constant are below the slack.
        moved = square - off
        if one == other:
            return np.where(moved <= self.slack * square, 0.0, moved), powers
        flat = (self.comoment(one, one)[0] == 0) | (self.comoment(other, other)[0] == 0)
        return np.where(flat, 0.0, moved), powers

    # -- order -------------------------------------------------------------------------------------

    @cached_property
    def ordered(self) -> tuple[Paired, Array]:
        """All weighted rows sorted by cell, also those in files: rank statistics need all."""
        if isinstance(self.counts, Paired):
            return self._held
        blocks = list(self._laid())
        cell = [np.arange(self.n_cells, dtype=np.int32).repeat(np.diff(of)) for _, of in blocks]
        rows = joined([rows for rows, _ in blocks])
        return rows.laid(np.concatenate(cell), rows.weight, self.n_cells)

    def by_cell(self, of: OfRows) -> Array:
        """Compute a number over the rows of each cell, float64 [group, key]; NaN without rows.

        Args:
            of: maps rows and weights (None if equal) to the number.
        """
        rows, start = self.ordered
        out = np.full(self.n_cells, np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            for cell in np.flatnonzero(np.diff(start)).tolist():
                some = rows.chosen(slice(start[cell], start[cell + 1]))
                out[cell] = of(some, some.weight)
        return out.reshape(self.shape)


def _sides(rows: Paired, start: Array) -> Laid:
    weight = np.zeros(0) if rows.weight is None else rows.weight
    return Laid(rows.target, rows.prediction, weight, start)
