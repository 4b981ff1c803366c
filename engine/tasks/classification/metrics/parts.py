"""Shared parts of classification metrics: guards for missing scores and for zero weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ....metrics.averages import UNREACHED
from ....metrics.registry import Metric
from ....tally.cells import Cells
from ....tally.scored_view import ScoredView

if TYPE_CHECKING:
    from ..settings import Settings

NO_WEIGHT = "weights are all zero"


def metric(
    name: str,
    definition: str,
    source: str,
    compute: Any,
    *,
    frame: str = "metrics",
    needs: tuple[str, ...] = ("hard",),
    **more: Any,
) -> Metric:
    """Define a classification metric; a metric of scores yields no rows without scores.

    Args:
        definition: one sentence with the formula.
        source: origin of the definition.
        compute: maps a view and settings to cells.
        frame: the frame it fills.
        needs: required tallies.
        **more: other fields of :class:`Metric`.
    """
    return Metric(
        name=name,
        task="classification",
        frame=frame,
        needs=needs,
        definition=definition,
        source=source,
        compute=told_by_weight(if_scored(compute) if "scores" in needs else compute),
        **more,
    )


def if_scored(compute: Callable[[ScoredView, Settings], list[Cells]]) -> Any:
    """Wrap a metric of scores so that it yields no rows without scores."""

    def guarded(view: ScoredView, settings: Settings) -> list[Cells]:
        return compute(view, settings) if view.has_scores else []

    return guarded


def told_by_weight(compute: Callable[[ScoredView, Settings], list[Cells]]) -> Any:
    """Wrap a metric so that values undefined only because of zero weights get that reason."""

    def explained(view: ScoredView, settings: Settings) -> list[Cells]:
        cells = compute(view, settings)
        if view.plain is view or not any("value" in one.columns for one in cells):
            return cells
        others = compute(view.plain, settings)
        return [_weightless(*pair) for pair in zip(cells, others, strict=True)]

    return explained


def _weightless(cells: Cells, plain: Cells) -> Cells:
    """Return cells with the unweighted reason if the value is undefined without weights too.

    Otherwise zero weights make it undefined, or weighted scores do not reach the target.
    """
    if cells.reason is None:  # counts, which are always defined
        return cells
    other = np.isnan(np.asarray(plain.columns["value"]))
    alone = np.where(np.asarray(cells.reason) == UNREACHED, UNREACHED, NO_WEIGHT)
    return msgspec.structs.replace(cells, reason=np.where(other, np.asarray(plain.reason), alone))
