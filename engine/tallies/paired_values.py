"""Pairs of a predicted and a true number, and their views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import msgspec
import numpy as np

from ..kernels.datums import count_tiny, largest_of_cells, on_grid, step_of_grid
from ..kernels.sums import (
    MOMENTS,
    ExactSums,
    Laid,
    Means,
    Scales,
    add_moments,
    by_cell,
    largest,
    sides_by_cell,
)
from ..schemas.arrays import Array
from .counts import CountsView
from .datums import Labels, Lazy
from .draws import Draws, Summands, by_draw
from .registry import stored_as
from .tables import Table, stacked

# Paired values: predicted and true numbers by datum and label key.


@stored_as("regression.rows/1")
class Paired(Table, frozen=True):
    """One row per datum and label key that both sides have.

    Attributes:
        datum: int32 [n], datum code.
        key: int32 [n], code of the label key.
        target: float64 [n], true values.
        prediction: float64 [n], predicted values.
        weight: float64 [n]; None if equal.
        beside: further columns by name, float64 [n] (hashes of ids, uint64).
    """

    datum: Array
    key: Array
    target: Array
    prediction: Array
    weight: Array | None
    beside: dict[str, Array]

    fills: ClassVar[dict[str, float]] = {"weight": 1.0}

    @property
    def error(self) -> Array:
        """Prediction minus target, float64 [n]; infinite on overflow."""
        with np.errstate(over="ignore"):
            difference: Array = self.prediction - self.target
        return difference

    def laid(self, cell: Array | None, weight: Array | None, n_cells: int) -> tuple[Paired, Array]:
        """Sort rows by cell and drop those with zero weight; codes become meaningless.

        Args:
            cell: int32 [n], -1 for rows outside; None if there is one cell.
            weight: float64 [n]; None if equal.

        Returns:
            the rows; int64 [cells + 1], offsets of the cells.
        """
        if cell is None:
            if weight is None or (weight > 0).all():
                reweighted = msgspec.structs.replace(self, weight=weight)
                return reweighted, np.array([0, self.target.size])
            cell = np.zeros(self.target.size, np.int32)
        none = np.zeros(0, np.int32)
        start, (target, prediction) = sides_by_cell(
            cell, weight, n_cells, self.target, self.prediction
        )
        if weight is None and not self.beside:
            return Paired(none, none, target, prediction, None, {}), start
        _, order = by_cell(cell, weight, n_cells)
        extra = {name: values[order] for name, values in self.beside.items()}
        weighed = None if weight is None else weight[order]
        return Paired(none, none, target, prediction, weighed, extra), start


# Views of paired values: sums over predicted and true numbers, and rank statistics.

_PIECE = 1 << 15  # rows at a time, so that intermediates fit the cache

Values = Callable[[Paired], Array]
"""From rows to numbers, float64 [n]."""

OfRows = Callable[[Paired, "Array | None"], float]
"""From rows and their weights, None for all alike, to a number."""

Scaled = tuple[Array, Array]
"""Numbers [group, key], and the powers of two, int64, that each is to be multiplied by."""

SIDES = ("target", "prediction", "error")
_JOINT_SUMS = (
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
    def of(values: Array) -> Scaling:
        """Choose the scaling for the largest numbers.

        Args:
            values: float64 [cells, 3].
        """
        tiny = (values < _TINY) & (values > 0)
        powers = np.where(values > _HUGE, _DOWN, np.where(tiny, _UP, 0))
        factors = np.ldexp(1.0, powers)
        of_error = factors[:, 2]
        scales = Scales(
            factors[:, 0], factors[:, 1], np.minimum(of_error, 1.0), np.maximum(of_error, 1.0)
        )
        return Scaling(values, powers, scales)

    def undone(self, name: str) -> Array:
        """The powers of two that sums of a moment are to be multiplied by, int64 [cells]."""
        of = {"absolute": "error", "squared": "error*error", "size": "target"}.get(name, name)
        return -sum(self.powers[:, SIDES.index(one)] for one in of.rstrip("-").split("*"))  # type: ignore[return-value]


class PairedView(CountsView):
    """Paired values by groups of datums; numbers have the axes [group, key].

    Args:
        tally: :class:`Paired`, or :class:`~evalengine.tallies.tables.InFiles` of it.
        labels: their keys are the targets.
        stats: per-datum numbers.
        **grouping: see :class:`~evalengine.tallies.datums.View`.
    """

    slack: float = 4 * float(np.finfo(np.float64).eps)
    """Share of a sum of squares below which its difference from another is rounding."""

    def __init__(self, tally: Any, labels: Labels, stats: Any, **grouping: Any) -> None:
        super().__init__(tally, labels, stats, **grouping)
        self.shape = self.n_groups, len(labels.key_names)
        self._totals: dict[str, Array] = {}
        self.cache: dict[str, Any] = {}  # shared by resampled views of this one

    def drawn(self, draws: Draws) -> PairedDraws:
        return PairedDraws(self, draws)

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
        one_row_each = n_keys == 1 and rows.datum.size == group.size  # row i is datum i
        row_group = group if one_row_each else group[rows.datum]
        if n_keys == 1:
            return row_group
        cell = row_group.astype(np.int64) * n_keys + rows.key
        return np.where(row_group < 0, -1, cell).astype(np.int32)

    def _lay(self, rows: Paired, group: Array | None) -> tuple[Paired, Array]:
        factor = rows.weight
        if self.weights is not None:
            drawn = self.weights[rows.datum].astype(np.float64)
            factor = drawn if factor is None else drawn * factor
        return rows.laid(self.cell_of(rows, group), factor, self.n_cells)

    @Lazy
    def _tally_rows(self) -> tuple[Paired, Array]:
        """Rows of a tally in memory, for all numbers."""
        return self._lay(self.tally, self.group)

    def _laid(self) -> Iterator[tuple[Paired, Array]]:
        """Yield weighted rows sorted by cell, with cell offsets, in blocks."""
        for rows, group in self.blocks():
            yield self._tally_rows if rows is self.tally else self._lay(rows, group)

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
                some = rows.take(slice(first, first + length))
                values = of(some)
                values = values if some.weight is None else values * some.weight
                sums.add_runs(values, np.clip(start - first, 0, values.size))
        return sums.rounded().reshape(self.shape)

    @Lazy
    def rows(self) -> Array:
        """Number of rows, with the multiplicity of resamples, int64 [group, key]."""
        out = np.zeros(self.n_cells)
        for rows, group in self.blocks():
            if self.weights is None and rows.weight is None:
                out += np.diff(
                    (self._tally_rows if rows is self.tally else self._lay(rows, group))[1]
                )
                continue
            times = None if self.weights is None else self.weights[rows.datum]
            cell = self.cell_of(rows, group)
            place = np.zeros(rows.datum.size, np.int64) if cell is None else cell + 1
            counts = np.bincount(place, times, minlength=self.n_cells + 1)
            out += counts[: self.n_cells] if cell is None else counts[1:]
        return out.reshape(self.shape).astype(np.int64)

    @Lazy
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

    @Lazy
    def _scaling(self) -> Scaling:
        scales = np.zeros((self.n_cells, 3))
        for rows, start in self._laid():
            largest(_sides(rows, start), scales)
        return Scaling.of(scales)

    @property
    def scaling(self) -> Scaling:
        """Scaling of each cell's numbers."""
        return self._scaling

    @property
    def largest_error(self) -> Array:
        """The largest absolute error, float64 [group, key]; NaN without rows."""
        return np.where(self.weight > 0, self.scaling.largest[:, 2].reshape(self.shape), np.nan)

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
        means = {one: np.zeros(self.n_cells) for one in SIDES}
        if "*" in name or "-" in name:
            for one in set(name.rstrip("-").split("*")):
                means[one] = np.nan_to_num(self.per_weight(self.moment(one)[0])).ravel()
        return means

    def _moments(self, name: str) -> dict[str, Array]:
        """A moment, and those that are summed along with it."""
        names = next(some for some in _JOINT_SUMS if name in some)
        means, scales = Means(**self.centres(name)), self.scaling.scales
        sums = ExactSums(self.n_cells * len(names))
        codes = [MOMENTS[one] for one in names]
        for rows, start in self._laid():
            add_moments(codes, _sides(rows, start), scales, means, sums)
        moments = sums.rounded().reshape(*self.shape, len(names))
        return {one: moments[..., i] for i, one in enumerate(names)}

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

    @Lazy
    def ordered(self) -> tuple[Paired, Array]:
        """All weighted rows sorted by cell, also those in files: rank statistics need all."""
        if isinstance(self.tally, Paired):
            return self._tally_rows
        blocks = list(self._laid())
        cell = [np.arange(self.n_cells, dtype=np.int32).repeat(np.diff(of)) for _, of in blocks]
        rows = stacked([rows for rows, _ in blocks])
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
                some = rows.take(slice(start[cell], start[cell + 1]))
                out[cell] = of(some, some.weight)
        return out.reshape(self.shape)


def _sides(rows: Paired, start: Array) -> Laid:
    weight = np.zeros(0) if rows.weight is None else rows.weight
    return Laid(rows.target, rows.prediction, weight, start)


# Paired values under the weights of many resamples.

_Numbers = Callable[[Paired, "Array | None"], Array]
"""Map rows and their cells (-1 outside, None if there is one cell) to numbers."""

_PAIRED_DRAWS_TINY = 2.0**-30


class PairedDraws(PairedView):
    """A view of paired values whose groups are resamples."""

    slack: float = 1e-10

    def __init__(self, view: PairedView, draws: Draws) -> None:
        super().__init__(view.tally, view.labels, view.stats, draws=draws, **view.grouping)
        self._base = view
        self._draws = draws

    @property
    def base(self) -> PairedView:
        return self._base

    @property
    def scaling(self) -> Scaling:
        return self._base.scaling

    @property
    def largest_error(self) -> Array:
        return self.by_cell(lambda rows, weight: float(np.abs(rows.error).max()))

    # -- sums --------------------------------------------------------------------------------------

    def total(self, name: str, of: Values) -> Array:
        if name not in self._totals:
            with np.errstate(over="ignore", invalid="ignore"):
                self._totals[name] = self._drawn(name, lambda rows, cell: of(rows))
        return self._totals[name]

    def _moments(self, name: str) -> dict[str, Array]:
        return {name: self._drawn(name, self._numbers(name))}

    def undone(self, name: str) -> Array:
        return np.tile(self._base.undone(name), (len(self._draws), 1))

    def _numbers(self, name: str) -> _Numbers:
        """The numbers of a moment, as the kernel makes them."""
        base, scaling = self._base, self._base.scaling
        means = base.centres(name)
        factors = scaling.scales if scaling.powers.any() else None

        def at(values: Array, cell: Array | None) -> Any:
            return values[0] if cell is None else np.append(values, 1.0)[cell]

        def side(one: str, rows: Paired, cell: Array | None) -> Array:
            if factors is None:
                values: Array = getattr(rows, one)
            elif one == "error":
                sides = at(factors.sides, cell)
                values = rows.prediction * sides - rows.target * sides
                values = values * at(factors.error, cell)
            else:
                values = getattr(rows, one) * at(getattr(factors, one), cell)
            return values - at(means[one], cell) if means[one].any() else values

        def numbers(rows: Paired, cell: Array | None) -> Array:
            if name == "size":
                return np.abs(side("target", rows, cell))
            if name in ("absolute", "squared"):
                error = side("error", rows, cell)
                return np.abs(error) if name == "absolute" else error**2
            first, *second = (side(one, rows, cell) for one in name.rstrip("-").split("*"))
            return first * second[0] if second else first

        return numbers

    def _of_blocks(self, of: _Numbers) -> Iterator[tuple[Any, Array, Array, Array]]:
        """Keys, datum, cell (-1 outside) and weighed number of each row; see :data:`Summands`."""
        for rows, group, keys in self.tally.blocks(self.group):
            cell = self._base.cell_of(rows, group)
            values = of(rows, cell)
            place = np.zeros(rows.datum.size, np.int32) if cell is None else cell
            if rows.weight is not None:  # weight 0 never counts, not even if undefined
                values = np.where(rows.weight > 0, values * rows.weight, 0.0)
            yield keys, rows.datum, place, values

    def _one_by_one(self, of: _Numbers, cells: Array) -> Array:
        """Return exact sums per resample for cells whose numbers do not fit one grid.

        These have undefined values, or some so large that others would be lost on a common grid.

        Args:
            of: computes the numbers.
            cells: int64 [m].

        Returns:
            float64 [m, resamples].
        """
        n_draws = len(self._draws)
        position = np.full(self._base.n_cells + 1, -1, np.int64)  # the last: rows outside
        position[cells] = np.arange(cells.size)
        sums = ExactSums(cells.size * n_draws)
        for keys, every, place, values in self._of_blocks(of):
            weights = self._draws.of_block(keys)
            here = np.flatnonzero(position[place] >= 0)
            some, first, datum = values[here], position[place[here]] * n_draws, every[here]
            for draw in range(n_draws):
                times = weights[datum, draw]
                drawn = np.flatnonzero(times)
                sums.add(some[drawn] * times[drawn], first[drawn] + draw)
        return sums.rounded().reshape(cells.size, n_draws)

    def _grid(self, name: str, of: _Numbers) -> Array:
        """Return the grid of each cell's numbers, float64 [cells + 1]; NaN if no grid fits.

        The last is for rows outside. Resamples of one view share it.
        """
        if name not in self._base.cache:
            n_cells = self._base.n_cells
            n, most, few = (np.zeros(n_cells) for _ in range(3))
            for _, _, place, values in self._of_blocks(of):
                largest_of_cells(place, values, n, most)
            least = np.where(np.isfinite(most), most * _PAIRED_DRAWS_TINY, 0.0)
            for _, _, place, values in self._of_blocks(of):
                count_tiny(place, values, least, few)
            fits = np.isfinite(most) & (few * 100 <= n)
            step = np.where(fits, step_of_grid(np.where(fits, most, 0.0), n), np.nan)
            self._base.cache[name] = np.append(step, 0.0)
        return self._base.cache[name]

    def _drawn(self, name: str, of: _Numbers) -> Array:
        step = self._draws.once(lambda: self._grid(name, of))
        left = np.isnan(step)
        own = np.where(left, 0.0, step)

        def summands() -> Summands:
            for keys, datum, place, values in self._of_blocks(of):
                on_steps = on_grid(values, own[0] if own.size == 2 else own[place])
                yield (
                    keys,
                    datum,
                    np.where(left[place], -1, place) if left.any() else place,
                    (on_steps[:, None]),
                )

        sums = self._draws.sums(self._base.n_cells, summands)
        if left.any():
            cells = np.flatnonzero(left)
            sums[cells, 0] = self._one_by_one(of, cells)
        return by_draw(sums, self.slices)[..., 0]

    @Lazy
    def rows(self) -> Array:
        def summands() -> Summands:
            for rows, group, keys in self.tally.blocks(self.group):
                cell = self._base.cell_of(rows, group)
                yield (
                    keys,
                    rows.datum,
                    np.zeros(rows.datum.size, int) if cell is None else cell,
                    None,
                )

        sums = self._draws.sums(self._base.n_cells, summands)
        return by_draw(sums, self.slices).astype(np.int64)

    # -- order -------------------------------------------------------------------------------------

    @Lazy
    def _by_cell(self) -> tuple[Paired, Array, Array]:
        """Return rows sorted by cell of the base view, cell offsets, and weights [n, resamples]."""
        blocks = [
            (rows, self._base.cell_of(rows, group), self._draws.of_block(keys)[rows.datum])
            for rows, group, keys in self.tally.blocks(self.group)
        ]
        cell = [np.zeros(rows.datum.size, np.int32) if at is None else at for rows, at, _ in blocks]
        start, order = by_cell(np.concatenate(cell), None, self._base.n_cells)
        drawn = np.concatenate([times for _, _, times in blocks])[order]
        return stacked([rows for rows, _, _ in blocks]).take(order), start, drawn

    def by_cell(self, of: OfRows) -> Array:
        rows, start, drawn = self._by_cell
        out = np.full((start.size - 1, drawn.shape[1]), np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            for cell in np.flatnonzero(np.diff(start)).tolist():
                first, last = start[cell], start[cell + 1]
                for draw in range(drawn.shape[1]):
                    times = drawn[first:last, draw].astype(np.float64)
                    if rows.weight is not None:
                        times *= rows.weight[first:last]
                    some = np.flatnonzero(times)
                    if some.size:
                        out[cell, draw] = of(rows.take(first + some), times[some])
        return by_draw(out, self.slices)
