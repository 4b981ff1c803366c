"""Views of tallies of one row a datum, and the frame of single datums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..tally.datums import Datums, Labels
from ..tally.stats import Stats, StatsView
from .per_datum import per_datum_frame
from .workers import Workers

Array = np.ndarray[Any, Any]


class StatsTallies(msgspec.Struct, frozen=True):
    """What a run leaves behind whose tally has one row a datum.

    Attributes:
        datums: images, datums, texts.
        labels: none.
        stats: one row a datum.
        order: int32 [n], datums in the order of the one table's rows; None for their own.
        seconds: step -> wall seconds.
        beside: frames there are whatever the metrics.
        weighted: whether counts are sums of weights; never.
    """

    datums: Datums
    labels: Labels
    stats: Stats
    order: Array | None
    seconds: dict[str, float]
    beside: tuple[str, ...] = ("per_datum",)
    weighted: bool = False


def no_labels() -> Labels:
    """The labels of a task that has none."""
    schema = {"label_key": pl.String, "label_value": pl.String, "label_name": pl.String}
    return Labels.of(pl.DataFrame(schema=schema))


def view(
    tallies: StatsTallies,
    settings: Any,
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


def cells_per_group(tallies: StatsTallies, settings: Any) -> int:
    """Numbers of one group of datums."""
    columns = [column for need in tallies.stats.columns.values() for column in need]
    return sum(int(np.prod(column.values.shape[1:])) for column in columns)


def own_frames(
    frame: str,
    tallies: StatsTallies,
    settings: Any,
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
        cuts: need -> the cut-offs at which it is wanted.
    """
    return per_datum_frame(tallies.stats, tallies.datums, cuts, tallies.order)
