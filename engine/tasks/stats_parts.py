"""Tallies of one row per datum in parts on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..tally.merging import merged_seconds
from ..tally.merging_stats import merge_stats
from ..tally.parts import SHOWN, Part, Place, parts_of, things_of_part
from ..tally.stats import Stats
from ..tally.stats_parts import Cuts, ShownDatums, StatsParts, chosen_stats, single_datums, variants
from .stats_views import StatsTallies
from .task import InParts


def part_things(tallies: StatsTallies, settings: Any, metrics: Any) -> dict[str, Any]:
    """Return the file entries of one part's tally, datums in display order.

    Args:
        tallies: of the part, with rows numbered as in the whole.
        settings: unused.
        metrics: unused.
    """
    order = tallies.order
    every = np.arange(len(tallies.datums)) if order is None else order
    bare = msgspec.structs.replace(
        tallies, stats=chosen_stats(tallies.stats, slice(0, 0)), row=None
    )
    stats = tallies.stats if order is None else chosen_stats(tallies.stats, order)
    ids, row = tallies.datums.ids, tallies.row
    if ids is None:
        ids = tallies.datums.id if row is None else pl.Series("datum_id", row)
    shown = ShownDatums(ids[every], None if row is None else row[every])
    return things_of_part(tallies, bare, stats, order) | {SHOWN: shown}


def of_parts(files: Sequence[str], place: Place, settings: Any) -> StatsTallies:
    """Return the tally whose parts are on disk.

    Args:
        place: storage for long data.
        settings: unused.

    Raises:
        InputError: parts were measured differently.
    """
    heads, parts, datums = parts_of(files, place)
    bare: list[StatsTallies] = [head.bare for head in heads]
    none = [np.zeros(0, np.int64)] * len(bare)
    columns = merge_stats([one.stats for one in bare], none).columns
    return msgspec.structs.replace(
        bare[0],
        datums=datums,
        stats=StatsParts(parts, columns, _stats_of),
        row=None,
        height=None,
        seconds=merged_seconds(bare),
    )


def _stats_of(part: Part) -> Stats:
    found: Stats = part.rows
    return found


def shown(tallies: Any, cuts: Cuts) -> int:
    """Return the number of rows of the per-datum frame.

    Args:
        cuts: need -> the cut-offs to show.
    """
    return len(tallies.datums) * sum(1 for _ in variants(tallies.stats, cuts))


def tallies_of_few(tallies: StatsTallies, cuts: Cuts) -> Iterator[tuple[StatsTallies, Cuts]]:
    """Yield tallies of a few datums and one metric each, in display order.

    Args:
        cuts: need -> the cut-offs to show.
    """
    for datums, stats, chosen in single_datums(tallies.stats, cuts):
        yield StatsTallies(datums, tallies.labels, stats, None, None, {}), chosen


IN_PARTS = InParts(part_things, of_parts, shown=shown, of_few=tallies_of_few)
