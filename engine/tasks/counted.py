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
from ..tally.counts import CountsView
from ..tally.datums import Datums
from ..tally.merging import merge_datums, merge_labels, merged_present, merged_seconds
from ..tally.stats import Cuts, ShownDatums, few_datums, merge_stats, single_datums
from ..tally.stored import ROWS, SHOWN, Part, Place, parts_of, things_of_part
from ..tally.tables import Codes, InFiles, codes_of, merged
from .encoding import Workers
from .task import InParts, Merge, OwnFrames, View
from .values import per_datum_frame, shown

# Merging and views of tallies of counts by datum and label; frames that are not made of cells.


def merged_counts(parts: Sequence[Any], field: str) -> dict[str, Any]:
    """Merge the fields that all these tasks have, except ``stats``.

    Args:
        parts: tallies of disjoint sets of datums.
        field: tally field with the counts.

    Raises:
        InputError: parts are incompatible.
    """
    own = [part.labels for part in parts]
    datums, of_datum = merge_datums([part.datums for part in parts])
    labels, of_label = merge_labels(own)
    codes = codes_of(of_datum, of_label, own, labels)
    return {
        "datums": datums,
        "labels": labels,
        field: merged([getattr(part, field) for part in parts], codes, labels),
        "present": merged_present(parts, of_datum, len(datums)),
        "seconds": merged_seconds(parts),
    }


def joined_frames(frames: Sequence[pl.DataFrame | None]) -> pl.DataFrame | None:
    """Return the rows of all buckets' frames; None if no bucket has the frame."""
    listed = [frame for frame in frames if frame is not None]
    filled = [frame for frame in listed if frame.height] or listed[:1]
    return pl.concat(filled, how="vertical_relaxed") if filled else None


def view_of(kind: Callable[..., Any], field: str) -> View:
    """Return a function that views tallies with counts by groups of datums.

    Args:
        kind: a :class:`~evalengine.tally.counts.CountsView`.
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
    field: str, merge: Merge, rows_of_frame: Callable[[Any], int] | None = None
) -> InParts:
    """Return the part functions of a task whose tallies contain counts.

    Args:
        field: tally field with the counts, a :class:`~evalengine.tally.tables.Table` or several.
        merge: merges tallies with ``datums``, ``labels``, ``stats`` and ``present``.
        rows_of_frame: number of rows of the per-datum frame if it has the rows of the counts (one
            table); None if it is made of ``stats``.
    """

    def bare_of(tallies: Any) -> Any:
        return msgspec.structs.replace(
            tallies,
            stats=tallies.stats.bare(),
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
        in_files = {name: InFiles(parts, name, getattr(whole, name)) for name in ("stats", field)}
        return msgspec.structs.replace(whole, datums=datums, **in_files)

    def of_few(tallies: Any, cuts: Cuts) -> Iterator[tuple[Any, Cuts]]:
        every: Cuts = {need: {None} for need in tallies.stats.columns}
        for datums, stats, chosen in single_datums(tallies.stats, every):
            yield msgspec.structs.replace(tallies, datums=datums, stats=stats), chosen

    def of_few_counts(tallies: Any, cuts: Cuts) -> Iterator[tuple[Any, Cuts]]:
        keys = np.arange(len(tallies.labels.key_names))
        for few in (make() for make in few_datums(tallies.stats.parts)):
            some, counts = [], []
            for part, rows in few.rows:
                some.append(part.rows.stats.take(rows))
                own = getattr(part.rows, field)
                own = own.take(slice(*np.searchsorted(own.datum, [rows.start, rows.stop])))
                counts.append(msgspec.structs.replace(own, datum=own.datum - rows.start))
            stats = merge_stats(some, few.codes)
            codes = [Codes(code, keys[:0], keys) for code in few.codes]
            own = {
                "datums": few.datums,
                "stats": stats,
                "present": stats.status[1],
                field: merged(counts, codes),
            }
            yield msgspec.structs.replace(tallies, **own), cuts

    if rows_of_frame is None:
        return InParts(things, of_parts, shown=_shown, of_few=of_few)
    return InParts(
        things, of_parts, shown=lambda tallies, cuts: rows_of_frame(tallies), of_few=of_few_counts
    )


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
