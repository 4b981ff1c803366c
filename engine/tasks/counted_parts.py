"""Tallies of counts by datum and label in parts on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import polars as pl

from ..schemas.arrays import Array
from ..tally import stored
from ..tally.counted_rows import CountParts
from ..tally.datums import Datums
from ..tally.merging_stats import merge_stats
from ..tally.parts import ROWS, SHOWN, Part, Place, parts_of, things_of_part
from ..tally.stats import Stats
from ..tally.stats_parts import (
    Cuts,
    ShownDatums,
    StatsParts,
    chosen_stats,
    few_datums,
    single_datums,
)
from .stats_parts import shown
from .task import InParts, Merge


def counts_in_parts(
    field: str,
    merge: Merge,
    few_counts: Callable[[list[tuple[Any, slice]], list[Array]], Any] | None = None,
    rows_of_frame: Callable[[Any], int] | None = None,
) -> InParts:
    """Return the part functions of a task whose tallies contain counts.

    Args:
        field: tally field with the counts, a struct with ``bare()``.
        merge: merges tallies with ``datums``, ``labels``, ``stats`` and ``present``.
        few_counts: selects the counts of a few datums, from counts of parts with slices, and new
            codes; None if the per-datum frame only uses ``stats``.
        rows_of_frame: number of rows of that frame.
    """

    def bare_of(tallies: Any) -> Any:
        return msgspec.structs.replace(
            tallies,
            stats=chosen_stats(tallies.stats, slice(0, 0)),
            present=tallies.present[:0],
            **{field: getattr(tallies, field).bare()},
        )

    def things(tallies: Any, settings: Any, metrics: Any) -> dict[str, Any]:
        n = len(tallies.datums)
        rows = msgspec.structs.replace(tallies, datums=Datums(None, pl.DataFrame(), None, n))
        seen = ShownDatums(tallies.datums.id, None)
        return things_of_part(tallies, bare_of(tallies), rows) | {SHOWN: seen}

    def of_parts(files: Sequence[str], place: Place, settings: Any) -> Any:
        heads, parts, datums = parts_of(files, place)
        bare = [head.bare for head in heads]
        whole = merge(bare, settings)
        known = [
            file
            if one.labels.frame.equals(whole.labels.frame)
            else _relabelled(file, whole, merge, settings)
            for file, one in zip(parts.files, bare, strict=True)
        ]
        parts = msgspec.structs.replace(parts, files=tuple(known))
        return msgspec.structs.replace(
            whole,
            datums=datums,
            stats=StatsParts(parts, whole.stats.columns, _stats_of),
            **{field: CountParts(parts, field, getattr(whole, field))},
        )

    def of_few(tallies: Any, cuts: Cuts) -> Iterator[tuple[Any, Cuts]]:
        every: Cuts = {need: {None} for need in tallies.stats.columns}
        for datums, stats, chosen in single_datums(tallies.stats, every):
            yield msgspec.structs.replace(tallies, datums=datums, stats=stats), chosen

    def of_few_counts(tallies: Any, cuts: Cuts) -> Iterator[tuple[Any, Cuts]]:
        assert few_counts is not None
        for few in (make() for make in few_datums(tallies.stats.parts)):
            some = [chosen_stats(part.rows.stats, rows) for part, rows in few.rows]
            stats = merge_stats(some, few.codes)
            counts = few_counts(
                [(getattr(part.rows, field), rows) for part, rows in few.rows], few.codes
            )
            own = {"datums": few.datums, "stats": stats, "present": stats.status[1], field: counts}
            yield msgspec.structs.replace(tallies, **own), cuts

    def shown_counts(tallies: Any, cuts: Cuts) -> int:
        assert rows_of_frame is not None
        return rows_of_frame(tallies)

    if few_counts is None:
        return InParts(things, of_parts, shown=_shown, of_few=of_few)
    return InParts(things, of_parts, shown=shown_counts, of_few=of_few_counts)


def _relabelled(file: str, whole: Any, merge: Merge, settings: Any) -> str:
    """A part with labels under the codes of the run; only tallying finds which there are."""
    part: Part = stored.load(file, ROWS)
    slices = pl.DataFrame(schema=whole.datums.slices.schema)
    nothing = msgspec.structs.replace(whole, datums=Datums(None, slices))
    own = msgspec.structs.replace(
        part.rows, datums=Datums(None, slices, None, part.rows.present.size)
    )
    made = f"{file}.labels"
    rows = Part(merge([nothing, own], settings), part.codes, part.keys)
    stored.save({ROWS: rows, SHOWN: stored.load(file, SHOWN)}, made, lasting=False)
    return made


def _stats_of(part: Part) -> Stats:
    found: Stats = part.rows.stats
    return found


def _shown(tallies: Any, cuts: Cuts) -> int:
    """Return the number of rows of the per-datum frame, without cut-offs."""
    return shown(tallies, {need: {None} for need in tallies.stats.columns})
