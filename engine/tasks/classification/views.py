"""Views of a classification tally, and the frames that are not made of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ...kernels.detailed_cells import N_CELLS
from ...schemas.arrays import Array
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
    """Return the tally by groups of datums.

    Args:
        group: int32 [n_datums], -1 for none; for tallies on disk, the groups of their datums; None
            for a single group.
        weights: int64 [n_datums], multiplicity of each datum, or None.
        threads: used for sorting segments; serial if None.
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
    """Return the view of a block of resamples."""
    return PartsDraws(view, draws) if isinstance(view, PartsView) else ScoredDraws(view, draws)


def one_draw(view: ScoredView, weights: Array) -> ScoredView:
    """Return the view of one resample, which shares the sorted scores.

    Args:
        view: of a tally in memory.
        weights: int64 [n_datums], multiplicity of each datum.
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
    """Yield tallies and views of disjoint sets of datums: for a tally on disk, its parts.

    Args:
        of: view of the tally, whose groups the others use.
    """
    if tallies.parts is None:
        yield tallies, of
        return
    assert isinstance(of, PartsView)
    yield from of.whole_datums()


def cells_per_group(tallies: Tallies, settings: Settings) -> int:
    """Return the curve cells per group of datums, which limits the groups in memory."""
    of_curve = len(tallies.labels) * len(settings.score_thresholds)
    if not tallies.details:
        return of_curve
    return of_curve * N_CELLS * (1 + settings.pr_curve_max_examples)
