"""Counts by datum and code, summed by groups of datums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ..kernels.datums import drawn_counts, drawn_sums, largest_of_cells, on_grid, step_of_grid
from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from .datums import Labels
from .draws import Draws, OneByOne, by_draw
from .ranked_view import View
from .registry import stored_as
from .stats import StatsDraws, StatsView
from .stored import PartGroups, Parts

# Rows of counts by datum and code, and their sums by groups of datums.

Rows = Callable[[Any], tuple[Array, Array, Array]]
"""From counts to rows: datum int32 [n], code int [n], value [n]."""


@stored_as("counts.pairs/1")
class Crossings(msgspec.Struct, frozen=True):
    """Shared pixels or segments: one row per datum and pair of labels of one key.

    Attributes:
        datum: int32 [n], datum code.
        actual: int32 [n], label code in the ground truth, -1 for unlabelled.
        predicted: int32 [n], label code in the prediction, -1 for unlabelled; never both -1.
        count: int64 [n].
    """

    datum: Array
    actual: Array
    predicted: Array
    count: Array


def merged_crossings(
    parts: Sequence[Crossings], datums: Sequence[Array], labels: Sequence[Array], whole: Labels
) -> Crossings:
    """Merge crossings, sorted by datum, label key and pair.

    Args:
        parts: of disjoint sets of datums.
        datums: new datum codes per part.
        labels: new label codes per part, with -1 appended for -1.
        whole: labels of all parts.
    """

    def mapped(name: str, by: Sequence[Array]) -> Array:
        return np.concatenate(
            [new[getattr(part, name)] for part, new in zip(parts, by, strict=True)]
        )

    datum, count = mapped("datum", datums), np.concatenate([part.count for part in parts])
    actual, predicted = mapped("actual", labels), mapped("predicted", labels)
    key = whole.key[np.maximum(actual, predicted)]
    order = np.lexsort((predicted, actual, key, datum))
    return Crossings(datum[order], actual[order], predicted[order], count[order])


def no_rows(rows: Any) -> Any:
    """Return a struct of columns without rows."""
    return type(rows)(*(getattr(rows, name)[:0] for name in rows.__struct_fields__))


class CountParts(msgspec.Struct, frozen=True):
    """Counts of a run stored in files of tallies, with label codes of the run.

    Attributes:
        parts: the files.
        field: field of each part's rows (a tally) that contains the counts.
        whole: counts without rows, for the shared fields.
    """

    parts: Parts
    field: str
    whole: Any

    def blocks(self, group: PartGroups | None) -> Iterator[tuple[Any, Array | None, Array | None]]:
        """The counts of each part, the group of each of its datums, and its key."""
        for part in self.parts:
            of = None if group is None else group.of(part)
            yield getattr(part.rows, self.field), of, part.keys


class CountsView(View):
    """Counts by groups of datums.

    Args:
        counts: a struct of rows with ``blocks``, or :class:`CountParts`.
        stats: per-datum metrics, one column per metric, one parameter per label key.
        **grouping: see :class:`View`.
    """

    def __init__(self, counts: Any, labels: Labels, stats: Any, **grouping: Any) -> None:
        super().__init__(labels, **grouping)
        self.counts = counts
        self.single: Any = StatsView(stats, labels, **grouping)

    @property
    def whole(self) -> Any:
        """Counts with their shared fields; without rows if these are in parts."""
        return self.counts.whole if isinstance(self.counts, CountParts) else self.counts

    def _blocks(self) -> Iterator[tuple[Any, Array | None]]:
        for counts, group, _ in self.counts.blocks(self.group):
            if counts is not self.counts:
                self.refuse_draws()
            yield counts, group

    def image_total(self, need: str) -> tuple[Array, Array]:
        """Sums of a metric over datums, and how many have it, float64 [group, key] each."""
        (column,) = self.single.stats.columns[need]
        total, many = self.single.total(column)
        return total[:, :, 0], many[:, :, 0]

    def exact_total(self, of: Rows, n_codes: int) -> tuple[Array, Array]:
        """Return exact sums by group and code, without undefined values.

        Args:
            of: maps counts to rows, values float64.

        Returns:
            sums, and number of values in each, float64 [group, code].
        """
        many = np.zeros((self.n_groups, n_codes))
        total = ExactSums(many.size)
        for counts, groups in self._blocks():
            datum, code, value = of(counts)
            group = np.zeros(value.size, np.int64) if groups is None else groups[datum]
            chosen = ~np.isnan(value) & (group >= 0)
            place = group[chosen], code[chosen]
            times = 1 if self.weights is None else self.weights[datum[chosen]]
            total.add(value[chosen] * times, place[0] * n_codes + place[1])
            np.add.at(many, place, times)
        return total.rounded().reshape(many.shape), many

    def summed(self, of: Rows, n_codes: int) -> Array:
        """Return sums of integers by group and code, weighted by datum.

        Args:
            of: maps counts to rows, values int64 or bool.

        Returns:
            int64 [group, code].
        """
        out = np.zeros((self.n_groups, n_codes), np.int64)
        for counts, groups in self._blocks():
            datum, code, values = of(counts)
            group = np.zeros(datum.size, np.int64) if groups is None else groups[datum]
            inside = group >= 0
            values = values.astype(np.int64, copy=False)
            if self.weights is not None:
                values = values * self.weights[datum]
            np.add.at(out, (group[inside], code[inside]), values[inside])
        return out

    @cached_property
    def crossed(self) -> tuple[Array, Array, Array, Array]:
        """Pairs of labels that share something: group, actual, predicted (-1 for none), count."""
        n = len(self.labels) + 1

        def pair(counts: Any) -> Array:
            crossings: Crossings = counts.crossings
            return (crossings.actual.astype(np.int64) + 1) * n + crossings.predicted + 1

        pairs = np.zeros(0, np.int64)
        for counts, _ in self._blocks():
            pairs = np.union1d(pairs, pair(counts))

        def rows(counts: Any) -> tuple[Array, Array, Array]:
            at = np.searchsorted(pairs, pair(counts))
            return counts.crossings.datum, at, counts.crossings.count

        shared = self.summed(rows, pairs.size)
        group, at = np.nonzero(shared)
        return group, pairs[at] // n - 1, pairs[at] % n - 1, shared[group, at]


# Rows of counts under the weights of many resamples.


class CountDraws(CountsView):
    """Mixin for views of counts whose groups are resamples."""

    def __init__(self, view: CountsView, draws: Draws) -> None:
        super().__init__(
            view.counts,
            view.labels,
            view.single.stats,
            group=view.group,
            n_groups=view.n_groups * len(draws),
        )
        self._draws = draws
        self._groups = view.n_groups
        self.single = StatsDraws(view.single, draws)

    def _drawn_blocks(self) -> Iterator[tuple[Any, Array | None, Array]]:
        for counts, group, keys in self.counts.blocks(self.group):
            yield counts, group, self._draws.weights if keys is None else self._draws.of(keys)

    def exact_total(self, of: Rows, n_codes: int) -> tuple[Array, Array]:
        shape = self._groups * n_codes, 1, len(self._draws)
        sums, many = np.zeros(shape), np.zeros(shape)
        n, largest = np.zeros(shape[0]), np.zeros(shape[0])
        for counts, group, _ in self.counts.blocks(self.group):
            datum, code, value = of(counts)
            cell = _cells(datum, group, code, n_codes)
            largest_of_cells(cell, np.where(np.isnan(value), 0.0, value), n, largest)
        if not np.isfinite(largest).all():
            raise OneByOne
        step = step_of_grid(largest, n)
        for counts, group, weights in self._drawn_blocks():
            datum, code, value = of(counts)
            cell = _cells(datum, group, code, n_codes)
            values = on_grid(value, step[cell])[:, None]
            drawn_sums(datum, cell, values, weights, sums)
            drawn_counts(datum, cell, values, weights, many)
        return by_draw(sums, self._groups)[..., 0], by_draw(many, self._groups)[..., 0]

    def summed(self, of: Rows, n_codes: int) -> Array:
        sums = np.zeros((self._groups * n_codes, 1, len(self._draws)))
        for counts, group, weights in self._drawn_blocks():
            datum, code, values = of(counts)
            cell = _cells(datum, group, code, n_codes)
            drawn_sums(datum, cell, values.astype(np.float64)[:, None], weights, sums)
        return by_draw(sums, self._groups)[..., 0].astype(np.int64)

    @property
    def crossed(self) -> tuple[Array, Array, Array, Array]:
        """Raise OneByOne: the pairs that occur differ between resamples."""
        raise OneByOne


def _cells(datum: Array, group: Array | None, code: Array, n_codes: int) -> Array:
    """Cells of [group, code], int64 [m], -1 outside of groups."""
    if group is None:
        return code.astype(np.int64)
    own = group[datum].astype(np.int64)
    return np.where(own < 0, -1, own * n_codes + code)
