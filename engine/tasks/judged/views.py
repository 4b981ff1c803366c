"""Views of a judged tally, and the frame of single datums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from ...tally.stats import StatsView
from ..per_datum import per_datum_frame
from ..workers import Workers
from .settings import Settings
from .tallies import Tallies

Array = np.ndarray[Any, Any]


def view(
    tallies: Tallies,
    settings: Settings,
    group: Array | None = None,
    n_groups: int = 1,
    weights: Array | None = None,
    threads: Workers | None = None,
) -> StatsView:
    """The tally by groups of datums.

    Args:
        tallies: what the run left behind.
        settings: the run's settings.
        group: int32 [n], group of each datum, -1 for none; None for all in one.
        n_groups: number of groups.
        weights: int64 [n], how often each datum counts, or None.
        threads: unused: means are one cheap pass.
    """
    return StatsView(tallies.stats, tallies.labels, group=group, n_groups=n_groups, weights=weights)


def cells_per_group(tallies: Tallies, settings: Settings) -> int:
    """Numbers of one group of datums."""
    return len(tallies.stats.columns)


def own_frames(
    frame: str,
    tallies: Tallies,
    settings: Settings,
    each_view: Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]],
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """The values of single datums.

    Args:
        frame: its name, ``per_datum``.
        tallies: what the run left behind.
        settings: the run's settings.
        each_view: unused: single datums have no slices.
        cuts: need -> None, which stands for no cut-off.
    """
    return per_datum_frame(tallies.stats, tallies.datums, cuts)
