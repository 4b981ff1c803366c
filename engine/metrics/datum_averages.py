"""Means over datums: how the numbers of single queries, texts or verdicts become one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..schemas.arrays import Array
from ..tally.cells import Cells

if TYPE_CHECKING:
    from ..tally.stats import StatsView


AXES = ("group", "parameters", "k")
_NOBODY = "no datum to average over"


Compute = Callable[["StatsView", Any], "list[Cells]"]
"""Metric function: from a view and settings to cells."""


def _over_datums(
    needs: tuple[str, ...],
    summed: Callable[[Array, Array, Any], Array],
    *,
    of: Callable[[Array], Array] = lambda values: values,
    metric: str | None = None,
) -> Compute:
    """Make a metric that is a number over datums, at the requested cut-offs.

    Args:
        needs: its tally; several if they contain its cut-offs together.
        summed: from sums, numbers of values, and settings to the number.
        metric: its name, by default that of the columns.
    """

    def compute(view: StatsView, settings: Any) -> list[Cells]:
        made = []
        for column in (column for need in needs for column in view.stats.columns[need]):
            own = len(needs) == 1 and len(column.k) == 1  # a metric without cut-offs
            cuts = column.k if own else tuple(k for k in settings.k if k in column.k)
            if not cuts:
                continue
            at = [column.k.index(k) for k in cuts]
            total, scored = view.total(column, partial(_at, at, of))
            value = summed(total, scored, settings)
            support = np.broadcast_to(view.support[:, None, None], value.shape)
            cells = Cells(
                axes=AXES,
                values={"parameters": column.parameters, "k": cuts},
                columns={
                    "metric": metric or column.metric,
                    "statistic": column.statistic,
                    "value": value,
                    "support": support,
                    "scored": scored,
                },
                shape=value.shape,
                reason=_why(column.reason, support),
            )
            made.append(cells)
        return made

    return compute


def _at(cuts: list[int], of: Callable[[Array], Array], values: Array) -> Array:
    return of(values[:, :, cuts])


def _why(reason: str | None, support: Array) -> Any:
    """Why numbers are undefined: for the metric's own reason, unless they rest on no datum."""
    if reason is None or support.all():
        return reason or _NOBODY
    return np.where(support > 0, reason, _NOBODY)


def mean_of(*needs: str) -> Compute:
    """Make the mean over datums of a tally.

    Args:
        *needs: the tally; several if they contain a metric's cut-offs together.
    """
    return _over_datums(
        needs, lambda total, many, settings: _rounded(_over(total, many), settings.rules.decimals)
    )


def sum_of(need: str) -> Compute:
    """Make the sum over datums of a tally."""
    return _over_datums((need,), lambda total, many, settings: total)


def pooled(need: str, metric: str, formula: Callable[[Array, Any], Array]) -> Compute:
    """Make a formula of sums over datums.

    Args:
        formula: from sums [group, n] and settings to float64 [group], NaN if undefined.
    """

    def compute(view: StatsView, settings: Any) -> list[Cells]:
        column = view.stats.columns[need][-1]
        total, scored = view.total(column)
        value = np.full(total.shape[0], np.nan)
        some = scored[:, 0, 0] > 0
        value[some] = formula(total[some, 0], settings)
        shape = (value.size, 1, 1)
        return [
            Cells(
                axes=AXES,
                values={"parameters": column.parameters, "k": (None,)},
                columns={
                    "metric": metric,
                    "statistic": None,
                    "value": value[:, None, None],
                    "support": view.support[:, None, None],
                    "scored": scored[:, :, :1],
                },
                shape=shape,
                reason=np.where(some, column.reason or _NOBODY, _NOBODY)[:, None, None],
            )
        ]

    return compute


def geometric_of(need: str, metric: str, floor: float = 1e-5) -> Compute:
    """Make the geometric mean over datums of a tally.

    Args:
        floor: lower limit of values, since one 0 would make the mean 0.
    """
    return _over_datums(
        (need,),
        lambda total, many, settings: np.exp(_over(total, many)),
        of=lambda values: np.log(np.maximum(values, floor)),
        metric=metric,
    )


def _rounded(values: Array, decimals: int | None) -> Array:
    """Round as Python does, for dialects that round pooled values."""
    if decimals is None:
        return values
    return np.array([round(float(value), decimals) for value in values.ravel()]).reshape(
        values.shape
    )


def _over(total: Array, many: Array) -> Array:
    """Divide; NaN if the number of values is 0."""
    out = np.full(total.shape, np.nan)
    np.divide(total, many, out=out, where=many > 0)
    return out
