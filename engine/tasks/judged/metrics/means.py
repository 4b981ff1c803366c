"""Means over judged datums, with counts of those without a value."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....metrics.registry import Metric
from ....tally.cells import Cells

if TYPE_CHECKING:
    from ....tally.stats import Column, StatsView


SCORED, NOT_JUDGED = "scored", "not_judged"
"""Standing of a datum that has a value, and of one that has no row of the metric."""
_MOST_KINDS = 10


def mean_of_judged(need: str) -> Callable[[StatsView, Any], list[Cells]]:
    """Return a function that computes the mean over datums with a value, and reasons for the rest.

    ``support`` counts the datums with rows of the metric, ``scored`` those of them with a
    value, ``reason`` the rest by kind; ``parameters`` contain the better direction.
    """

    def compute(view: StatsView, settings: Any) -> list[Cells]:
        return [_cells(column, view, settings) for column in view.stats.columns[need]]

    return compute


def _cells(column: Column, view: StatsView, settings: Any) -> Cells:
    assert column.status is not None
    names, _ = column.status
    total, scored = (part[:, 0, 0] for part in view.total(column))
    value = np.full(total.shape, np.nan)
    np.divide(total, scored, out=value, where=scored > 0)
    group, code, count = view.standings(column)
    out = code == names.index(NOT_JUDGED)
    absent = np.bincount(group[out], count[out], view.n_groups)
    support = np.bincount(group[~out], count[~out], view.n_groups)
    unscored: list[dict[str, int]] = [{} for _ in range(view.n_groups)]
    for i in np.flatnonzero(~out & (code != names.index(SCORED)) & (count > 0)):
        unscored[group[i]][names[code[i]]] = int(count[i])
    reasons = [
        _reason(int(support[group]), int(absent[group]), kinds)
        for group, kinds in enumerate(unscored)
    ]
    return Cells(
        axes=("group",),
        columns={
            "metric": column.metric,
            "value": value,
            "support": support,
            "scored": scored,
            "parameters": json.dumps(settings.parameters_of(column.metric)),
        },
        shape=value.shape,
        reason=np.array(reasons, dtype=np.str_),
        always=True,
    )


def _reason(rows: int, absent: int, unscored: dict[str, int]) -> str:
    """Return why a mean is undefined, or which datums are not in it, based on counts."""
    if not rows:
        return "no verdict of this metric" if absent else "no datum to average over"
    left = sum(unscored.values())
    return f"{left} of {_rows(rows)} not scored: {kinds_of(unscored)}" if left else ""


def kinds_of(unscored: dict[str, int]) -> str:
    """Format counts per kind as ``timeout 3, refused 1``, the most frequent kinds first."""
    first = sorted(unscored.items(), key=lambda kind: (-kind[1], kind[0]))
    told = [f"{name} {count}" for name, count in first[:_MOST_KINDS]]
    rest = [count for _, count in first[_MOST_KINDS:]]
    if rest:
        kinds = "another kind" if len(rest) == 1 else f"{len(rest):,} other kinds"
        told.append(f"{sum(rest):,} of {kinds}")
    return ", ".join(told)


def _rows(rows: int) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def metric(name: str, need: str, *, formula: str, **rest: Any) -> Metric:
    """Define a judged metric: the mean over datums of its need's value."""
    return Metric(
        name=name,
        task="judged",
        frame="metrics",
        needs=(need,),
        compute=mean_of_judged(need),
        formula=r"\frac{1}{n} \sum_d " + formula,
        **rest,
    )
