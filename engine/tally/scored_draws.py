"""Scored labels under the weights of many resamples."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from ..kernels.drawn_ranking import Drawing, drawn_precisions, drawn_wins
from ..kernels.drawn_sums import drawn_counts, drawn_sums, on_grid, step_of_grid
from ..kernels.reached import first_reaching
from ..schemas.arrays import Array
from .draws import Draws, OneByOne, by_draw
from .ordered_rows import OrderedRows
from .scored_view import ScoredView
from .sorted_scores import HIT, N_OUTCOMES, OTHER, STRAY, Sorted
from .unit_view import Summands


class ScoredDraws(ScoredView):
    """A view of scored labels whose groups are resamples.

    Sums are exact: weights of rows are rounded to a grid on which they add up without error.
    """

    def __init__(self, view: ScoredView, draws: Draws) -> None:
        super().__init__(
            view.units,
            view.scored,
            view.labels,
            declared=view.declared,
            order=view.order,
            decision=view.decision,
            over=view.over,
            n_groups=view.n_groups * len(draws),
        )
        self._of = view
        self._draws = draws

    @property
    def plain(self) -> ScoredView:  # kept by nobody: what holds itself is held until later
        return self if self._of.plain is self._of else self._plain

    @cached_property
    def _plain(self) -> ScoredView:
        return ScoredDraws(self._of.plain, self._draws)

    @property
    def unit_weight(self) -> Array | None:
        """None: summed values already include the weights of units."""
        return None

    @property
    def unit_group(self) -> Array | None:
        raise OneByOne

    # -- sums over units -----------------------------------------------------------------------

    def _cells(self, unit: Array | None, code: Array, width: int) -> Array:
        """Cells of [group, code] of units, int64, -1 outside of groups."""
        group = self._of.unit_group
        if group is None:
            return code.astype(np.int64)
        own = (group if unit is None else group[unit]).astype(np.int64)
        return np.where((own < 0) | (code < 0), -1, own * width + code)

    def weighed(self, unit: Array | None, value: Array | None) -> Array | None:
        """Return the values of units times their weights; None for 1 each."""
        own = self.units.weight
        if own is None or value is None:
            return value if own is None else own if unit is None else own[unit]
        return value * (own if unit is None else own[unit])

    def drawn(self, summands: tuple[Any, ...], step: float | None = None) -> Array:
        """Return sums over units in every resample, float64 [draws * groups, width].

        Args:
            summands: units or None for all, code of each, number of codes, values.
            step: grid step for rounding; None to derive it from the values.
        """
        unit, code, width, value = summands
        cells = self._cells(unit, code, width)
        datum = self.units.datum if unit is None else self.units.datum_of(unit)
        values = self.weighed(unit, value)
        return self._summed(datum, cells, values, width * self._of.n_groups, step)

    def _summed(
        self, datum: Any, cells: Array, values: Array | None, n: int, step: float | None
    ) -> Array:
        sums = np.zeros((n, 1, len(self._draws)))
        if values is None:
            drawn_counts(datum, cells, None, self._draws.weights, sums)
        else:
            step = grid_of([values]) if step is None else step
            drawn_sums(datum, cells, on_grid(values, step)[:, None], self._draws.weights, sums)
        return by_draw(sums, self._of.n_groups)[..., 0]

    def _added(self, summands: Summands, onto: Any) -> Any:
        assert onto is None
        return self.drawn(summands).ravel()

    @cached_property
    def _hard(self) -> tuple[Array, Array, Array, Array]:
        return self.hard_counts(None)

    def hard_counts(self, step: float | None) -> tuple[Array, Array, Array, Array]:
        """Return :attr:`.UnitClasses._hard` for every resample."""
        units, n = self.units, len(self.labels)
        truth = units.truth
        hard = np.full(truth.size, -1, np.int32) if units.hard is None else units.hard
        none = np.int32(-1)
        codes = (
            np.where(truth == hard, truth, none),
            np.where(truth >= 0, hard, none),
            np.where(truth < 0, hard, none),
            truth,
        )
        right, judged, stray, actual = (
            self.drawn((None, code, n, None), step)
            if (code >= 0).any()
            else np.zeros((self.n_groups, n))
            for code in codes
        )
        return right, judged, stray, actual

    # -- scored labels -------------------------------------------------------------------------

    @property
    def _rows(self) -> OrderedRows:
        return self._of.ordered_rows

    @property
    def sorted(self) -> Sorted:
        raise OneByOne

    @property
    def _laid(self) -> Sorted:
        raise OneByOne

    def run(self) -> tuple[Sorted, bool]:
        raise OneByOne

    @property
    def _grid(self) -> None:
        return None

    @cached_property
    def between(self) -> Sorted:
        raise OneByOne

    @property
    def sample_areas(self) -> tuple[Array, Array]:
        raise OneByOne

    @property
    def pairwise_auc(self) -> tuple[Array, Array]:
        raise OneByOne

    @property
    def row_weights(self) -> Array | None:
        """Weights of the rows, in the order of the scores; None for 1 each."""
        return self._rows.own

    def _by_outcome(self, sums: Array, *more: int) -> list[Array]:
        """Split [draws * groups, slots * outcomes * ...] into one array per outcome, by label."""
        shape = self.n_groups, self.slots.size, N_OUTCOMES, *more
        found = sums.reshape(shape)
        return [
            self.spread(np.ascontiguousarray(found[:, :, one]).reshape(-1, *more), 0.0)
            for one in (HIT, OTHER, STRAY)
        ]

    @cached_property
    def listed(self) -> tuple[Array, Array, Array]:
        return self.listed_rows(None)

    def listed_rows(self, step: float | None) -> tuple[Array, Array, Array]:
        """Return :attr:`.ScoredView.listed` for every resample."""
        rows = self._rows
        n = rows.sorted.start.size - 1
        sums = self._summed(rows.datum, rows.segment, rows.own, n, step)
        hits, others, strays = self._by_outcome(sums)
        return hits, others, strays

    def reached(self, thresholds: tuple[float, ...]) -> tuple[Array, Array, Array]:
        return self.rows_reaching(thresholds, None)

    def rows_reaching(
        self, thresholds: tuple[float, ...], step: float | None
    ) -> tuple[Array, Array, Array]:
        """Return :meth:`.ScoredView.reached` for every resample."""
        assert self.scored is not None
        grid = np.array([self.scored.comparable(t) for t in thresholds])
        rows, width = self._rows, grid.size + 1
        found = rows.sorted
        first, last = found.start[:-1], found.start[1:]
        reaching = first_reaching(first, last, found.score, grid)  # [segments, thresholds]
        bin_of = np.zeros(found.score.size, np.int64)
        for t in range(grid.size):
            # Rows from here on reach the threshold, up to the end of their segment.
            marks = np.zeros(found.score.size + 1, np.int64)
            np.add.at(marks, reaching[:, t], 1)
            np.add.at(marks, last, -1)
            bin_of += np.cumsum(marks[:-1])
        cell = rows.segment * width + bin_of
        n = (found.start.size - 1) * width
        by_bin = self._by_outcome(self._summed(rows.datum, cell, rows.own, n, step), width)
        out = [np.cumsum(one[..., ::-1], axis=-1)[..., ::-1][..., 1:] for one in by_bin]
        return out[0], out[1], out[2]

    def _areas(self, of: Any) -> Array:
        """Return the sum from a pass over the scores of every segment, [draws * groups, label]."""
        rows = self._rows
        found = rows.sorted
        sides = found.bounds(HIT), found.bounds(OTHER)
        own = None if rows.own is None else on_grid(rows.own, grid_of([rows.own]))
        draws = self._draws
        drawing = Drawing(draws.seed, draws.first, draws.last, draws.weights, None)
        return self._of_slots(of(*sides, (found.score, rows.datum, own), drawing))

    def _of_slots(self, sums: Array) -> Array:
        """Reshape [groups * slots, draws] to [draws * groups, label]."""
        laid = np.ascontiguousarray(sums.T).reshape(self.n_groups * self.slots.size)
        return self.spread(laid, 0.0)

    @property
    def _won(self) -> Array:
        return self._areas(drawn_wins)

    @cached_property
    def average_precision(self) -> Array:
        from .curve_areas import with_unlisted

        total = self._areas(drawn_precisions)
        columns = (self.listed[0], self.positives, self.negatives)
        hits, positives, negatives = (column.ravel() for column in columns)
        return with_unlisted(total.ravel(), hits, positives, negatives).reshape(self.shape)

    @cached_property
    def points(self) -> Any:
        raise OneByOne

    @cached_property
    def pooled(self) -> ScoredView:
        return PooledDraws(self)


class PooledDraws(ScoredDraws):
    """Pooled labels of each key, in many resamples."""

    def __init__(self, view: ScoredDraws) -> None:
        super().__init__(view._of.pooled, view._draws)
        self._view = view

    @cached_property
    def positives(self) -> Array:
        return self._view.classes_of_keys[0]

    @cached_property
    def negatives(self) -> Array:
        return self._view.classes_of_keys[1]


def grid_of(values: Iterable[Array]) -> float:
    """Return the step of a grid on which all values add up exactly.

    Raises:
        OneByOne: some are infinite.
    """
    largest, n = 0.0, 0
    for some in values:
        largest = max(largest, float(np.abs(some[~np.isnan(some)]).max(initial=0.0)))
        n += some.size
    if not np.isfinite(largest):
        raise OneByOne
    return float(step_of_grid(largest, n))
