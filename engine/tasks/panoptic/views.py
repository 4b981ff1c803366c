"""Views of a panoptic tally, and the frames that are not made of cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from ...schemas.results import empty_frame
from ...tally.segments import SegmentView
from ..crossings import crossing_frame
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
) -> SegmentView:
    """The tally by groups of datums.

    Args:
        tallies: what the run left behind.
        settings: the run's settings.
        group: int32 [n_datums], group of each datum, -1 for none; None for all in one.
        n_groups: number of groups.
        weights: int64 [n_datums], how often each datum counts, or None.
        threads: unused: sums are one cheap pass over a row a datum and label.
    """
    return SegmentView(
        tallies.segments,
        tallies.labels,
        tallies.stats,
        group=group,
        n_groups=n_groups,
        weights=weights,
    )


def own_frames(
    frame: str,
    tallies: Tallies,
    settings: Settings,
    each_view: Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]],
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """The confusion matrix, the outcomes, or the values of single datums.

    Args:
        frame: its name, ``confusion``, ``outcomes`` or ``per_datum``.
        tallies: what the run left behind.
        settings: the run's settings.
        each_view: calls a function with slice column (None for the whole set), group names and
            view of each, and returns the results in order.
        cuts: unused: nothing here has cut-offs.
    """
    if frame == "confusion":
        return pl.concat(each_view(crossing_frame))
    if frame == "outcomes":
        none = empty_frame(frame, label=tallies.labels.dtype, datum=tallies.datums.id_dtype)
        return none if tallies.outcomes is None else tallies.outcomes
    everything: dict[str, set[int | None]] = {need: {None} for need in tallies.stats.columns}
    return per_datum_frame(tallies.stats, tallies.datums, everything)


def cells_per_group(tallies: Tallies, settings: Settings) -> int:
    """Numbers of one group of datums."""
    return 8 * (len(tallies.labels) + 1)
