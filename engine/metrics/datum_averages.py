"""Means over datums: how the numbers of single queries, texts or verdicts become one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tally.cells import Cells

if TYPE_CHECKING:
    from ..tally.stats import Column, StatsView

Array = np.ndarray[Any, Any]

AXES = ("group", "parameters", "k")
_NOBODY = "no datum to average over"


def cells_of(
    column: Column, view: StatsView, value: Array, scored: Array, cuts: tuple[int | None, ...]
) -> Cells:
    """Rows of the metrics frame, at the cut-offs that a metric was asked for.

    Args:
        column: whose rows they are.
        view: the datums, by group.
        value: float64 [group, parameters, k].
        scored: datums that have a value, of that shape.
        cuts: the metric's own cut-offs.
    """
    at = [column.k.index(k) for k in cuts] if len(column.k) > 1 else [0]
    value, scored = value[:, :, at], scored[:, :, at]
    support = np.broadcast_to(view.support[:, None, None], value.shape)
    return Cells(
        axes=AXES,
        values={"parameters": column.parameters, "k": tuple(column.k[i] for i in at)},
        columns={
            "metric": column.metric,
            "statistic": column.statistic,
            "value": value,
            "support": support,
            "scored": scored,
        },
        shape=value.shape,
        reason=column.reason or _NOBODY,
    )


def mean_of(*needs: str) -> Callable[[StatsView, Any], list[Cells]]:
    """The mean over datums of what was tallied for a need.

    Args:
        *needs: the need; several where they hold a metric's cut-offs between them.
    """

    def compute(view: StatsView, settings: Any) -> list[Cells]:
        made = []
        for column in (column for need in needs for column in view.stats.columns[need]):
            own = len(needs) == 1 and len(column.k) == 1  # a metric without cut-offs
            cuts = column.k if own else tuple(k for k in settings.k if k in column.k)
            if cuts:
                total, scored = view.total(column.values)
                mean = _rounded(_over(total, scored), settings.rules.decimals)
                made.append(cells_of(column, view, mean, scored, cuts))
        return made

    return compute


def sum_of(need: str) -> Callable[[StatsView, Any], list[Cells]]:
    """The sum over datums of what was tallied for a need."""

    def compute(view: StatsView, settings: Any) -> list[Cells]:
        made = []
        for column in view.stats.columns[need]:
            total, scored = view.total(column.values)
            made.append(cells_of(column, view, total, scored, settings.k))
        return made

    return compute


def geometric_of(
    need: str, metric: str, floor: float = 1e-5
) -> Callable[[StatsView, Any], list[Cells]]:
    """The geometric mean over datums of what was tallied for a need.

    Args:
        need: whose values.
        metric: name of the mean.
        floor: values below count as this, since one 0 would make all 0.
    """

    def compute(view: StatsView, settings: Any) -> list[Cells]:
        made = []
        for column in view.stats.columns[need]:
            total, scored = view.total(np.log(np.maximum(column.values, floor)))
            cells = cells_of(column, view, np.exp(_over(total, scored)), scored, settings.k)
            made.append(_named(cells, metric))
        return made

    return compute


def _named(cells: Cells, metric: str) -> Cells:
    import msgspec

    return msgspec.structs.replace(cells, columns={**cells.columns, "metric": metric})


def _rounded(values: Array, decimals: int | None) -> Array:
    """To so many digits, as Python rounds, where a dialect's pooled values are rounded."""
    if decimals is None:
        return values
    return np.array([round(float(value), decimals) for value in values.ravel()]).reshape(
        values.shape
    )


def _over(total: Array, many: Array) -> Array:
    """Means; NaN over nothing."""
    out = np.full(total.shape, np.nan)
    np.divide(total, many, out=out, where=many > 0)
    return out
