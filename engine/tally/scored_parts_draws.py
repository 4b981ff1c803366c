"""Scored labels in parts under the weights of many resamples: only additive numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import msgspec
import numpy as np

from ..kernels.drawn_ranking import Drawing
from ..schemas.arrays import Array
from .draws import Draws, OneByOne
from .ordered_rows import OrderedRows
from .scored_draws import ScoredDraws, grid_of
from .scored_parts import PartsView
from .scored_view import ScoredView
from .sorted_scores import HIT, OTHER


class PartsDraws(ScoredDraws):
    """A view of scored labels in parts whose groups are resamples.

    Counts and sums are accumulated over parts. Numbers that need all scores sorted are refused.
    """

    _of: PartsView

    def __init__(self, view: PartsView, draws: Draws) -> None:
        super().__init__(view, draws)

    def blocks(self) -> Iterator[ScoredDraws]:
        """Yield the resampled view of each part."""
        for few, keys in self._of.keyed_blocks():
            yield ScoredDraws(few, msgspec.structs.replace(self._draws, keys=keys))

    @cached_property
    def _plain(self) -> ScoredView:
        plain = self._of.plain
        assert isinstance(plain, PartsView)
        return PartsDraws(plain, self._draws)

    def _areas(self, of: Any) -> Array:
        if self._of.units.weight is not None or self._draws.leaving_out is not None:
            raise OneByOne  # weights of rows and keys do not both stand beside scores
        found, draws = self._of.keyed_run, self._draws
        keys = np.zeros(0, np.uint64) if found.weight is None else found.weight.view(np.uint64)
        drawing = Drawing(draws.seed, draws.first, draws.last, None, keys)
        sides = found.bounds(HIT), found.bounds(OTHER)
        return self._of_slots(of(*sides, (found.score, np.zeros(0, np.int32), None), drawing))

    @property
    def _rows(self) -> OrderedRows:
        raise OneByOne

    @cached_property
    def _known_and_judged(self) -> tuple[int, int]:
        return self._of._known_and_judged

    @cached_property
    def _all_true(self) -> bool:
        return self._of._all_true

    @cached_property
    def _one_unit_each(self) -> bool:
        return self._of._one_unit_each

    def sums_of(self, pick: Callable[[Any], Any]) -> Any:
        picked = (few.weighed(*_unit_and_value(pick(few))) for few in self.blocks())
        values = [one for one in picked if one is not None]
        step = grid_of(values) if values else None
        del values
        out: Any = None
        for few in self.blocks():
            found = few.drawn(pick(few), step).ravel()
            out = found if out is None else out + found
        return out

    def summed_by_bin(self, pick: Callable[[Any], Any], n_bins: int) -> list[Array]:
        n = len(pick(self._of)[2])
        return [
            self.added(partial(_one_by_bin, pick, i, n_bins), self._width(n_bins)).reshape(
                self.n_groups, -1, n_bins
            )
            for i in range(n)
        ]

    def _width(self, n_bins: int) -> int:
        return len(self.labels.key_names) * n_bins

    @cached_property
    def _unit_step(self) -> float | None:
        """Step of the grid of units' own weights; None without any."""
        if self._of.units.weight is None:
            return None
        return grid_of(few.units.weight for few in self._of.blocks())  # type: ignore[misc]

    @cached_property
    def _row_step(self) -> float | None:
        """Step of the grid of the weights of scored rows; None without any."""
        if self._of.units.weight is None:
            return None
        return grid_of(
            few.ordered_rows.own  # type: ignore[misc]
            for few in self._of.blocks()
            if few.scored is not None and len(few.scored)
        )

    @cached_property
    def _hard(self) -> tuple[Array, Array, Array, Array]:
        found = [few.hard_counts(self._unit_step) for few in self.blocks()]
        right, judged, stray, actual = (sum(each) for each in zip(*found, strict=True))
        return right, judged, stray, actual

    def _scored_blocks(self) -> Iterator[ScoredDraws]:
        return (few for few in self.blocks() if few.scored is not None and len(few.scored))

    @cached_property
    def listed(self) -> tuple[Array, Array, Array]:
        found = [few.listed_rows(self._row_step) for few in self._scored_blocks()]
        return self._together(found, ())

    def reached(self, thresholds: tuple[float, ...]) -> tuple[Array, Array, Array]:
        found = [few.rows_reaching(thresholds, self._row_step) for few in self._scored_blocks()]
        return self._together(found, (len(thresholds),))

    def _together(
        self, found: list[tuple[Array, Array, Array]], more: tuple[int, ...]
    ) -> tuple[Array, Array, Array]:
        none = np.zeros((*self.shape, *more))
        columns = zip(*found, strict=True) if found else [(), (), ()]
        hits, others, strays = (sum(each, start=none) for each in columns)
        return hits, others, strays

    @cached_property
    def pooled(self) -> ScoredView:
        raise OneByOne


def _one_by_bin(pick: Callable[[Any], Any], i: int, n_bins: int, few: Any) -> Any:
    """One of the values that are summed by bin, as :meth:`.UnitView.by_group` takes it."""
    unit, at, values = pick(few)
    return few.keyed(unit, values[i], at, n_bins)


def _unit_and_value(summands: Any) -> tuple[Array, Array | None]:
    unit, _, _, value = summands
    return unit, value
