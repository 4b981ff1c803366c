"""Views of tallies of one row a datum, and the frame of single datums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array
from ..tally.common_values import Fill, common_stats
from ..tally.datums import Datums, Labels
from ..tally.merging import merge_datums, merge_labels, merged_seconds
from ..tally.merging_stats import merge_stats
from ..tally.registry import stored_as
from ..tally.stats import StatsView
from .per_datum import per_datum_frame
from .workers import Workers


@stored_as("values.run/1")
class StatsTallies(msgspec.Struct, frozen=True):
    """Tally of a run with one row per datum.

    Attributes:
        datums: images, datums, texts.
        labels: empty.
        stats: one row per datum: :class:`~evalengine.tally.stats.Stats`, or on disk
            :class:`~evalengine.tally.stats_parts.StatsParts`.
        row: int64 [n], row of each datum in the single table, -1 if only a table of datums has it;
            defines the display order. None for code order.
        height: rows of that table, if ``row`` counts from its first; None if ``row`` already counts
            from the first row of the whole input.
        seconds: step -> wall seconds.
        beside: frames that exist for any metrics.
        weighted: counts are sums of weights; always False.
    """

    datums: Datums
    labels: Labels
    stats: Any
    row: Array | None
    height: int | None
    seconds: dict[str, float]
    beside: tuple[str, ...] = ("per_datum",)
    weighted: bool = False

    @property
    def order(self) -> Array | None:
        """Datums in the order of the single table's rows, others last; None for code order."""
        if self.row is None:
            return None
        return np.argsort(np.where(self.row < 0, np.iinfo(np.int64).max, self.row), kind="stable")


def merge(parts: Sequence[StatsTallies], settings: Any) -> StatsTallies:
    """Merge tallies.

    Args:
        parts: tallies of disjoint sets of datums; for a single table, in the order of their rows.

    Raises:
        InputError: parts are incompatible.
    """
    datums, codes = merge_datums([part.datums for part in parts])
    labels, _ = merge_labels([part.labels for part in parts])
    stats = merge_stats([part.stats for part in parts], codes)
    row, height = _rows(parts, codes, len(datums))
    return StatsTallies(datums, labels, stats, row, height, merged_seconds(parts))


def _rows(
    parts: Sequence[StatsTallies], codes: Sequence[Array], n: int
) -> tuple[Array | None, int | None]:
    """Row of every datum, those of a part behind those of the parts before it."""
    named = [part for part in parts if len(part.datums)]
    if all(part.row is None for part in named):
        heights = [part.height for part in parts]
        if all(height is None for height in heights) or parts[0].datums.ids is None:
            return None, None if None in heights else sum(h for h in heights if h is not None)
    row = np.full(n, -1, np.int64)
    before = 0
    for part, code in zip(parts, codes, strict=True):
        own = np.arange(len(part.datums)) if part.row is None else part.row
        row[code] = np.where(own < 0, -1, own + (before if part.height is not None else 0))
        before += part.height or 0
    shifted = all(part.height is not None for part in parts)
    if (np.diff(row) > 0).all() and row.size and row[0] >= 0:
        return None, before if shifted else None
    return row, before if shifted else None


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
    """Return the tally by groups of datums.

    Args:
        group: int32 [n], -1 for none; None for a single group.
        weights: int64 [n], multiplicity of each datum, or None.
        threads: unused, since means are one cheap pass.
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
    """Return the per-datum frame.

    Args:
        frame: its name, ``per_datum``.
        each_view: unused, since single datums have no slices.
        cuts: need -> requested cut-offs.
    """
    return per_datum_frame(tallies.stats, tallies.datums, cuts, tallies.order)


def counted(tallies: StatsTallies) -> Array:
    """Return the datums that enter means, bool [n_datums]."""
    inside: Array = tallies.stats.counted
    return inside


def common(
    tallies: Sequence[StatsTallies], codes: Sequence[Array], fill: Fill, *, cuts: bool = False
) -> list[StatsTallies] | None:
    """The tallies with the values that all runs have; see :class:`.task.Common`."""
    made = common_stats([one.stats for one in tallies], codes, fill, cuts=cuts)
    if made is None:
        return None
    return [
        msgspec.structs.replace(one, stats=stats) for one, stats in zip(tallies, made, strict=True)
    ]
