"""Scored labels under the weights of many draws."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..kernels.drawn_ranking import drawn_precisions, drawn_wins
from ..kernels.drawn_sums import drawn_counts, drawn_sums, on_grid, step_of_grid
from ..kernels.reached import first_reaching
from .draws import Draws, OneByOne, by_draw
from .ordered_rows import OrderedRows
from .scored_view import ScoredView
from .sorted_scores import HIT, N_OUTCOMES, OTHER, STRAY, Sorted
from .unit_view import Summands

Array = np.ndarray[Any, Any]


class ScoredDraws(ScoredView):
    """A view of scored labels whose groups are draws.

    Sums are exact: weights of rows are rounded to a grid on which all of them add up.

    Args:
        view: the view whose datums are drawn.
        draws: the block.
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

    @cached_property
    def plain(self) -> ScoredView:
        plain = self._of.plain
        return self if plain is self._of else ScoredDraws(plain, self._draws)

    @property
    def unit_weight(self) -> Array | None:
        """None: what is added up has the weights of units in it."""
        return None

    @property
    def unit_group(self) -> Array | None:
        raise OneByOne

    @cached_property
    def _own(self) -> Array | None:
        """Weights of units, on the grid."""
        own = self.units.weight
        return None if own is None else _gridded(own)

    # -- sums over units -----------------------------------------------------------------------

    def _cells(self, unit: Array | None, code: Array, width: int) -> Array:
        """Cells of [group, code] of units, int64, -1 outside of groups."""
        group = self._of.unit_group
        if group is None:
            return code.astype(np.int64)
        own = (group if unit is None else group[unit]).astype(np.int64)
        return np.where((own < 0) | (code < 0), -1, own * width + code)

    def _drawn(self, unit: Array | None, code: Array, width: int, value: Array | None) -> Array:
        """Sums of units under every draw, float64 [draws * groups, width]."""
        cells = self._cells(unit, code, width)
        units = self.units
        datum = units.datum if unit is None else units.datum_of(unit)
        own = self._own
        if own is not None:
            some = own if unit is None else own[unit]
            value = some if value is None else _gridded(some * value)
        elif value is not None:
            value = _gridded(value)
        sums = np.zeros((self._of.n_groups * width, 1, len(self._draws)))
        if value is None:
            drawn_counts(datum, cells, None, self._draws.weights, sums)
        else:
            drawn_sums(datum, cells, value[:, None], self._draws.weights, sums)
        return by_draw(sums, self._of.n_groups)[..., 0]

    def _added(self, summands: Summands, onto: Any) -> Any:
        assert onto is None
        unit, code, width, value = summands
        return self._drawn(unit, code, width, value).ravel()

    @cached_property
    def _hard(self) -> tuple[Array, Array, Array, Array]:
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
            self._drawn(None, code, n, None) if (code >= 0).any() else np.zeros((self.n_groups, n))
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

    @cached_property
    def _own_rows(self) -> Array | None:
        own = self._rows.own
        return None if own is None else _gridded(own)

    def _by_segment(self, cell: Array, n_cells: int) -> Array:
        """Weights of rows by cell of [group, slot, outcome, ...], [draws * groups, cells]."""
        rows, own = self._rows, self._own_rows
        sums = np.zeros((n_cells, 1, len(self._draws)))
        if own is None:
            drawn_counts(rows.datum, cell, None, self._draws.weights, sums)
        else:
            drawn_sums(rows.datum, cell, own[:, None], self._draws.weights, sums)
        return by_draw(sums, self._of.n_groups)[..., 0]

    def _by_outcome(self, sums: Array, *more: int) -> list[Array]:
        """[draws * groups, slots * outcomes * ...] to one array an outcome, by label."""
        shape = self.n_groups, self.slots.size, N_OUTCOMES, *more
        found = sums.reshape(shape)
        return [
            self.spread(np.ascontiguousarray(found[:, :, one]).reshape(-1, *more), 0.0)
            for one in (HIT, OTHER, STRAY)
        ]

    @cached_property
    def listed(self) -> tuple[Array, Array, Array]:
        n = self._rows.sorted.start.size - 1
        hits, others, strays = self._by_outcome(self._by_segment(self._rows.segment, n))
        return hits, others, strays

    def reached(self, thresholds: tuple[float, ...]) -> tuple[Array, Array, Array]:
        assert self.scored is not None
        grid = np.array([self.scored.comparable(t) for t in thresholds])
        found, width = self._rows.sorted, grid.size + 1
        first, last = found.start[:-1], found.start[1:]
        reaching = first_reaching(first, last, found.score, grid)  # [segments, thresholds]
        bin_of = np.zeros(found.score.size, np.int64)
        for t in range(grid.size):
            # Rows from here on reach the threshold, up to the end of their segment.
            marks = np.zeros(found.score.size + 1, np.int64)
            np.add.at(marks, reaching[:, t], 1)
            np.add.at(marks, last, -1)
            bin_of += np.cumsum(marks[:-1])
        cell = self._rows.segment * width + bin_of
        sums = self._by_segment(cell, (found.start.size - 1) * width)
        by_bin = self._by_outcome(sums, width)
        out = [np.cumsum(one[..., ::-1], axis=-1)[..., ::-1][..., 1:] for one in by_bin]
        return out[0], out[1], out[2]

    def _areas(self, of: Any) -> Array:
        """What a walk over the scores of every segment adds up, [draws * groups, label]."""
        rows = self._rows
        found = rows.sorted
        sides = found.bounds(HIT), found.bounds(OTHER)
        held = found.score, rows.datum, self._own_rows
        sums = of(*sides, held, self._draws.weights)
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
    """The labels of each key as one label, in many draws."""

    def __init__(self, view: ScoredDraws) -> None:
        super().__init__(view._of.pooled, view._draws)
        self._view = view

    @cached_property
    def positives(self) -> Array:
        return self._view.classes_of_keys[0]

    @cached_property
    def negatives(self) -> Array:
        return self._view.classes_of_keys[1]


def _gridded(values: Array) -> Array:
    """Values so coarse that every sum of them is exact; not a number stays."""
    known = np.abs(values[~np.isnan(values)])
    largest = float(known.max(initial=0.0))
    if not np.isfinite(largest):
        raise OneByOne
    return on_grid(values, step_of_grid(largest, values.size))
