"""Views of tallies of counts by datum and label, and the frames that are not made of cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from ..schemas.arrays import Array
from .per_datum import per_datum_frame
from .task import OwnFrames, View
from .workers import Workers


def view_of(kind: Callable[..., Any], field: str) -> View:
    """Return a function that views tallies with counts by groups of datums.

    Args:
        kind: a :class:`~evalengine.tally.counted_rows.CountsView`.
        field: tally field with the counts, next to ``labels`` and ``stats``.
    """

    def view(
        tallies: Any,
        settings: Any,
        group: Array | None = None,
        n_groups: int = 1,
        weights: Array | None = None,
        threads: Workers | None = None,
    ) -> Any:
        counts = getattr(tallies, field)
        groups = {"group": group, "n_groups": n_groups, "weights": weights}
        return kind(counts, tallies.labels, tallies.stats, **groups)

    return view


def frames_of(
    crossings: Callable[..., pl.DataFrame] | None = None, **kept: Callable[[Any], pl.DataFrame]
) -> OwnFrames:
    """Return the frames of a task: confusion matrix, per-datum values, frames of the tally.

    Args:
        crossings: builds frame ``confusion`` from slice column, group names and view; None without
            confusion.
        **kept: frame -> function that extracts it from the tally.
    """

    def own_frames(
        frame: str,
        tallies: Any,
        settings: Any,
        each_view: Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]],
        *,
        cuts: Mapping[str, set[int | None]],
    ) -> pl.DataFrame:
        if frame == "confusion" and crossings is not None:
            return pl.concat(each_view(crossings))
        if frame in kept:
            return kept[frame](tallies)
        everything: dict[str, set[int | None]] = {need: {None} for need in tallies.stats.columns}
        return per_datum_frame(tallies.stats, tallies.datums, everything)

    return own_frames


def cells_per_group(tallies: Any, settings: Any) -> int:
    """Numbers of one group of datums."""
    return 8 * (len(tallies.labels) + 1)
