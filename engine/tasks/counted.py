"""Tasks that count by datum and label: views, buckets and frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array
from ..schemas.results import frame_schema
from ..tally import stored
from ..tally.counted_rows import CountParts, CountsView
from ..tally.datums import Datums
from ..tally.merging import merge_stats
from ..tally.stats import Stats
from ..tally.stats_parts import (
    Cuts,
    ShownDatums,
    StatsParts,
    chosen_stats,
    few_datums,
    single_datums,
)
from ..tally.stored import ROWS, SHOWN, Part, Place, parts_of, things_of_part
from .encoding import Workers
from .task import InParts, Merge, OwnFrames, View
from .values import per_datum_frame, shown

# Views of tallies of counts by datum and label, and the frames that are not made of cells.


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
    crossings: Callable[..., pl.DataFrame] | None = None, **makers: Callable[[Any], pl.DataFrame]
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
        if frame in makers:
            return makers[frame](tallies)
        everything: dict[str, set[int | None]] = {need: {None} for need in tallies.stats.columns}
        return per_datum_frame(tallies.stats, tallies.datums, everything)

    return own_frames


def cells_per_group(tallies: Any, settings: Any) -> int:
    """Numbers of one group of datums."""
    return 8 * (len(tallies.labels) + 1)


# Tallies of counts by datum and label in parts on disk.


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
    stats: Stats = part.rows.stats
    return stats


def _shown(tallies: Any, cuts: Cuts) -> int:
    """Return the number of rows of the per-datum frame, without cut-offs."""
    return shown(tallies, {need: {None} for need in tallies.stats.columns})


# Confusion matrix of shared pixels or segments.


def crossing_frame(column: str | None, names: list[str], view: CountsView) -> pl.DataFrame:
    """Build the ``confusion`` frame of one view.

    Args:
        column: the slice column, None for the whole set.
        names: names of the view's groups.
    """
    labels = view.labels
    group, actual, predicted, count = view.crossed
    last = len(labels)
    none = pl.Series("label_value", [None], dtype=labels.dtype)
    values = pl.concat([labels.frame["label_value"], none])
    made = {
        "label_key": labels.frame["label_key"].gather(np.where(actual < 0, predicted, actual)),
        "actual": values.gather(np.where(actual < 0, last, actual)),
        "predicted": values.gather(np.where(predicted < 0, last, predicted)),
        "slice_value": pl.Series(names or [None], dtype=pl.String).gather(group),
        "count": count,
    }
    schema = frame_schema("confusion", label=labels.dtype)
    return pl.DataFrame(made).select(
        pl.col(name).cast(dtype)
        if name in made
        else pl.lit(column if name == "slice" else None, dtype=dtype).alias(name)
        for name, dtype in schema.items()
    )


# Frames of the report that several tasks have.

HUNDREDTHS = tuple(i / 100 for i in range(100))
"""Score thresholds of the report's counts."""

_HALF = 0.5
_SPOT = ("iou_threshold", "score_threshold")


def hundredths(tallies: Any) -> dict[str, Any]:
    """Options of counts at a hundred score thresholds."""
    return {"score_thresholds": HUNDREDTHS}


def one_spot(confusion: pl.DataFrame) -> pl.DataFrame:
    """A confusion matrix at one IoU and score threshold: the lowest IoU, the score nearest 0.5."""
    for column, at in ((_SPOT[0], 0.0), (_SPOT[1], _HALF)):
        every = confusion[column].drop_nulls().unique()
        if len(every):
            nearest = every.sort()[int((every.sort() - at).abs().arg_min() or 0)]
            confusion = confusion.filter(pl.col(column) == nearest)
    return confusion
