"""Views of a classification tally, and the frames that are not made of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ...kernels.detailed_cells import N_CELLS
from ...tally.draws import Draws
from ...tally.parts import PartGroups
from ...tally.scored_draws import ScoredDraws
from ...tally.scored_parts import PartsView
from ...tally.scored_parts_draws import PartsDraws
from ...tally.scored_view import ScoredView
from ...tally.sorted_scores import Sorted
from ..workers import Workers
from .deciding import decision_of
from .settings import Settings
from .tallies import Tallies

Array = np.ndarray[Any, Any]
EachView = Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]]
"""Calls a function with slice column (None for the whole set), group names and view of each."""


def view(
    tallies: Tallies,
    settings: Settings,
    group: Array | PartGroups | None = None,
    n_groups: int = 1,
    weights: Array | None = None,
    threads: Workers | None = None,
) -> ScoredView:
    """The tally by groups of datums.

    Args:
        tallies: what the run left behind.
        settings: the run's settings.
        group: int32 [n_datums], group of each datum, -1 for none; of tallies in files what their
            datums give; None for all in one.
        n_groups: number of groups.
        weights: int64 [n_datums], how often each datum counts, or None.
        threads: where segments are sorted; one after the other where None.
    """
    make: Callable[..., ScoredView] = ScoredView
    if tallies.parts is not None:
        make = partial(PartsView, tallies.parts)
    return make(
        tallies.units,
        tallies.scored,
        tallies.labels,
        declared=None if tallies.declared is None else tallies.declared >= 0,
        order=tallies.declared,
        decision=decision_of(settings, tallies.labels),
        **({} if threads is None else {"over": threads.over}),
        group=group,
        n_groups=n_groups,
        weights=weights,
    )


def drawn(view: ScoredView, draws: Draws) -> Any:
    """The view of a block of draws."""
    return PartsDraws(view, draws) if isinstance(view, PartsView) else ScoredDraws(view, draws)


def one_draw(view: ScoredView, weights: Array) -> ScoredView:
    """The view of one draw, which shares the order of the scores.

    Args:
        view: of a tally in memory.
        weights: int64 [n_datums], how often each datum counts.
    """
    one = ScoredView(
        view.units,
        view.scored,
        view.labels,
        declared=view.declared,
        order=view.order,
        decision=view.decision,
        over=view.over,
        group=view.group,
        n_groups=view.n_groups,
        weights=weights,
    )
    if view.scored is not None:
        rows = view.ordered_rows
        drawn = weights[rows.datum].astype(np.float64)
        weight = drawn if rows.own is None else drawn * rows.own
        one.__dict__["sorted"] = Sorted(rows.sorted.start, rows.sorted.score, weight)
    return one


def whole_datums(
    tallies: Tallies, settings: Settings, of: ScoredView
) -> Iterator[tuple[Tallies, ScoredView]]:
    """Tallies and views of disjoint sets of whole datums: of a tally in files its parts.

    Args:
        tallies: what the run left behind.
        settings: the run's settings.
        of: a view of it, by whose groups the others are.
    """
    if tallies.parts is None:
        yield tallies, of
        return
    assert isinstance(of, PartsView)
    yield from of.whole_datums()


def cells_per_group(tallies: Tallies, settings: Settings) -> int:
    """Curve cells of one group of datums, which bound how many are held at once."""
    of_curve = len(tallies.labels) * len(settings.score_thresholds)
    if not tallies.details:
        return of_curve
    return of_curve * N_CELLS * (1 + settings.pr_curve_max_examples)
