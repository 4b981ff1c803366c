"""How sure the difference between a run and an earlier one is, whether or not their data are the
same: what gates rest on."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..plan.summary import Tallied
from .asked import Wanted
from .comparing import pair
from .paired import numbers

Array = np.ndarray[Any, Any]

ENOUGH = 0.5
"""Share of the smaller run's datums that both must have for these alone to be compared."""


class Margins(msgspec.Struct, frozen=True):
    """Differences between a run and an earlier one, the run less the earlier.

    Attributes:
        rows: a row for every number that both have, with the columns that tell numbers apart and
            ``a`` (earlier), ``b``, ``difference``, ``lower``, ``upper``, ``support``.
        level: confidence of the intervals, in (0, 1).
        told: which datums they rest on, where these are not those of both runs; else empty.
    """

    rows: pl.DataFrame
    level: float
    told: str = ""


def margins(first: Tallied, second: Tallied, differing: pl.Series, asked: Wanted) -> Margins:
    """Differences of the numbers of two runs in draws of their datums.

    A datum has the same weight in both runs, so that what they share cancels. Runs whose data grew
    are compared over what both have; runs of other data (less than :data:`ENOUGH` in common) over
    what each has, whose draws are then independent of each other.

    Args:
        first: the earlier run.
        second: the run.
        differing: ids of datums that both have, with other ground truths.
        asked: level, draws, seed.
    """
    within, told = _shared(first.tallies.datums, second.tallies.datums, differing)
    drawn = [
        numbers(run, lambda drawing, view: drawing.by_chance(view, asked.draws, asked.seed), some)
        for run, some in zip((first, second), within, strict=True)
    ]
    rows, _, _ = pair(drawn[0], drawn[1], None, asked)
    return Margins(rows, asked.level, told)


def _shared(
    first: Any, second: Any, differing: pl.Series
) -> tuple[tuple[Array | None, Array | None], str]:
    """Which datums of two runs are compared, bool [datums] or None for all, and what to tell."""
    everything = (None, None)
    ids = first.ids, second.ids
    if any(one is None for one in ids):
        same = ids[0] is ids[1] and len(first) == len(second) and not len(differing)
        return everything, "" if same else _APART
    if ids[0].dtype.is_integer() != ids[1].dtype.is_integer():
        return everything, _APART
    shared = ids[1].filter(ids[1].is_in(ids[0].implode()) & ~ids[1].is_in(differing.implode()))
    n = len(shared)
    if n == len(ids[0]) == len(ids[1]):
        return everything, ""
    if n < ENOUGH * min(len(first), len(second)):
        return (
            everything,
            f"other data than the baseline's: {n:,} of {len(second):,} datums in both",
        )
    within = tuple(one.is_in(shared.implode()).to_numpy() for one in ids)
    left = len(ids[0]) + len(ids[1]) - 2 * n - len(differing)
    return (within[0], within[1]), f"over the {n:,} datums of both runs, without {left:,} others"


_APART = "other data than the baseline's, as far as datum ids tell"
