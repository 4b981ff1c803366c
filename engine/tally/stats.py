"""Stats: one row a datum, the tally of everything that is computed datum by datum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ..kernels.sums import ExactSums
from .datums import Labels
from .view import View

Array = np.ndarray[Any, Any]


Rows = tuple[Array, Array, Array | None]
"""Datums that count, the group of each, and how often each counts (None: once)."""


def same(values: Array) -> Array:
    """The values as they are."""
    return values


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one metric, for every datum and every one of its variants.

    Attributes:
        metric: name in the output frames.
        statistic: which of several numbers of that metric, or None.
        parameters: JSON of each variant, or None, in order.
        k: cut-off of each, None for the whole list, in order.
        values: float64 [n_datums, n_parameters, n_k]; NaN where undefined.
        reason: why a value is undefined.
        status: names and codes of each datum's standing, where that is the metric's own.
    """

    metric: str
    statistic: str | None = None
    parameters: tuple[str | None, ...] = (None,)
    k: tuple[int | None, ...] = (None,)
    values: Array
    reason: str | None = None
    status: tuple[tuple[str, ...], Array] | None = None


class Stats(msgspec.Struct, frozen=True):
    """One row a datum.

    Attributes:
        counted: bool [n_datums], whether the datum enters means.
        columns: what was tallied, by the need it answers.
        status: name of each datum's standing (``scored``, ``not_retrieved``, ...) and their codes,
            int8 [n_datums].
    """

    counted: Array
    columns: dict[str, tuple[Column, ...]]
    status: tuple[tuple[str, ...], Array]

    def view(self, labels: Labels, **grouping: Any) -> StatsView:
        """The tally by groups of datums; see :class:`View`."""
        return StatsView(self, labels, **grouping)


class StatsView(View):
    """Stats by groups of datums.

    Args:
        stats: the tally.
        labels: of the run; none where the task has no labels.
        **grouping: see :class:`View`.
    """

    def __init__(self, stats: Stats, labels: Labels, **grouping: Any) -> None:
        super().__init__(labels, **grouping)
        self.stats = stats

    @cached_property
    def rows(self) -> Rows:
        """Counted datums in a group, the group of each, and how often each counts."""
        inside = self.stats.counted
        if self.group is not None:
            inside = inside & (self.group >= 0)
        rows = np.flatnonzero(inside)
        group = np.zeros(rows.size, np.int64) if self.group is None else self.group[rows]
        weight = None if self.weights is None else self.weights[rows].astype(np.float64)
        return rows, group, weight

    @cached_property
    def support(self) -> Array:
        """Datums that count, float64 [group]."""
        _, group, weight = self.rows
        return np.bincount(group, weight, minlength=self.n_groups).astype(np.float64)

    def standings(self, column: Column) -> tuple[Array, Array, Array]:
        """How often each standing occurs among the datums of each group that count.

        Args:
            column: one that has a status of its own.

        Returns:
            group int64, code int64 and how often float64, of all pairs that occur, in order.
        """
        assert column.status is not None
        codes = column.status[1]
        rows, group, weight = self.rows
        if not rows.size:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        width = int(codes.max()) + 1
        pair = group * width + codes[rows]
        # Pairs are many where groups and codes both are; few of them occur then.
        there, place = np.unique(pair, return_inverse=True)
        return there // width, there % width, np.bincount(place, weight).astype(np.float64)

    def total(self, column: Column, of: Callable[[Array], Array] = same) -> tuple[Array, Array]:
        """Exact sums over the datums of each group, leaving out undefined values.

        Args:
            column: whose values, float64 [n_datums, ...].
            of: what is summed of them, float64 [n_datums, ...].

        Returns:
            sums float64 [group, ...]; how many values entered each, float64 of that shape.
        """
        values = of(column.values)
        return totals([(values, self.rows)], values.shape[1:], self.n_groups)


def totals(
    parts: Iterable[tuple[Array, Rows]], shape: tuple[int, ...], n_groups: int
) -> tuple[Array, Array]:
    """What :meth:`StatsView.total` gives, of datums that come in parts.

    Args:
        parts: values, float64 [n_datums, ...], and as :attr:`StatsView.rows` has them, which count.
        shape: of the values of one datum.
        n_groups: number of groups.
    """
    width = math.prod(shape)
    sums = [ExactSums(n_groups) for _ in range(width)]
    many = np.zeros((width, n_groups))
    for values, (rows, group, weight) in parts:
        flat = values.reshape(values.shape[0], width)
        for i, total in enumerate(sums):
            value = flat[rows, i]
            known = ~np.isnan(value)
            if known.all():
                of, times = group, weight
            else:
                value, of = value[known], group[known]
                times = None if weight is None else weight[known]
            total.add(value if times is None else value * times, of)
            many[i] += np.bincount(of, times, minlength=n_groups)
    rounded = np.array([total.rounded() for total in sums]).reshape(width, n_groups)
    return rounded.T.reshape(n_groups, *shape), many.T.reshape(n_groups, *shape)
