"""Tasks that count by datum and label: views, buckets and frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..ingest.dtypes import stacked
from ..schemas.arrays import Array
from ..schemas.results import frame_schema, in_schema
from ..tallies import stored
from ..tallies.counts import CountsView
from ..tallies.datums import Datums, Labels
from ..tallies.merging import merge_datums, merge_labels, merged_present, merged_seconds
from ..tallies.stats import Cuts, DisplayedDatums, Stats, few_datums, merge_stats, single_datums
from ..tallies.stored import FRAME_DATA, ROWS, Part, Place, parts_of, things_of_part
from ..tallies.tables import Codes, InFiles, codes_of, merged
from .contents import ROWS as MAX_ROWS
from .contents import Content, Rows, called
from .encoding import Workers
from .per_datum import count_rows, per_datum_frame
from .task import InParts, Merge, OwnFrames, View

# Merging and views of tallies of counts by datum and label; frames that are not made of cells.


class CountTallies(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the tallies of these tasks, which have another field with the counts.

    Attributes:
        datums: ids and slices.
        labels: of both sides and the declared ones.
        stats: per-datum values, :class:`~evalengine.tallies.stats.Stats`, or on disk
            :class:`~evalengine.tallies.tables.InFiles`.
        present: int8 [n_datums], status of each datum: on both sides or only one.
        seconds: step -> wall seconds.
        beside: frames that exist for any metrics.
        weighted: counts are sums of weights; always False.
    """

    datums: Datums
    labels: Labels
    present: Array
    stats: Any = None
    seconds: dict[str, float] = {}
    beside: tuple[str, ...] = ("per_datum",)
    weighted: bool = False


def merge_by(
    field: str,
    stats_of: Callable[[Any, Any], Stats],
    frame: str | None = None,
    keys: Sequence[str] = (),
) -> Merge:
    """Return the function that merges tallies of disjoint sets of datums.

    Args:
        field: tally field with the counts.
        stats_of: computes the per-datum values from a tally and settings.
        frame: tally field with rows, or None in each part.
        keys: columns by which its rows are sorted.
    """

    def merge(parts: Sequence[Any], settings: Any) -> Any:
        part_labels = [part.labels for part in parts]
        datums, of_datum = merge_datums([part.datums for part in parts])
        labels, of_label = merge_labels(part_labels)
        codes = codes_of(of_datum, of_label, part_labels, labels)
        fields = {
            "datums": datums,
            "labels": labels,
            field: merged([getattr(part, field) for part in parts], codes, labels),
            "present": merged_present(parts, of_datum, len(datums)),
            "seconds": merged_seconds(parts),
        }
        if frame is not None:
            every = (getattr(part, frame) for part in parts)
            listed = [rows for rows in every if rows is not None]
            filled = [rows for rows in listed if rows.height] or listed[:1]
            fields[frame] = in_order(stacked(filled), keys) if filled else None
        tallies = msgspec.structs.replace(parts[0], **fields)
        return msgspec.structs.replace(tallies, stats=stats_of(tallies, settings))

    return merge


def in_order(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Sort rows of a frame, null last."""
    return rows.sort(keys, nulls_last=True, maintain_order=True)


def sides_of(predicted: Array, true: Array) -> Array:
    """Status of datums by the sides that have them, int8 [n]: 0 for both, 1 not predicted, else 2.

    Args:
        predicted: bool [n].
        true: bool [n].
    """
    return np.where(~true, 2, np.where(predicted, 0, 1)).astype(np.int8)


def view_of(kind: Callable[..., Any], field: str) -> View:
    """Return a function that views tallies with counts by groups of datums.

    Args:
        kind: a :class:`~evalengine.tallies.counts.CountsView`.
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


def cells_per_group(n_labels: int, settings: Any, needs: frozenset[str]) -> int:
    """Numbers of one group of datums."""
    return 8 * (n_labels + 1)


# Tallies of counts by datum and label in parts on disk.


def counts_in_parts(
    field: str, merge: Merge, rows_of_frame: Callable[[Any], int] | None = None
) -> InParts:
    """Return the part functions of a task whose tallies contain counts.

    Args:
        field: tally field with the counts, a :class:`~evalengine.tallies.tables.Table` or several.
        merge: merges tallies with ``datums``, ``labels``, ``stats`` and ``present``.
        rows_of_frame: number of rows of the per-datum frame if it has the rows of the counts (one
            table); None if it is made of ``stats``.
    """

    def things(tallies: Any, settings: Any, metrics: Any) -> dict[str, Any]:
        n = len(tallies.datums)
        rows = msgspec.structs.replace(tallies, datums=Datums(None, pl.DataFrame(), None, n))
        seen = DisplayedDatums(tallies.datums.id, None)
        bare = msgspec.structs.replace(
            tallies,
            stats=tallies.stats.bare(),
            present=tallies.present[:0],
            **{field: getattr(tallies, field).bare()},
        )
        return things_of_part(tallies, bare, rows) | {FRAME_DATA: seen}

    def of_parts(files: Sequence[str], place: Place, settings: Any) -> Any:
        heads, parts, datums = parts_of(files, place)
        bare = [head.bare for head in heads]
        total = merge(bare, settings)
        relabelled = [
            file
            if one.labels.frame.equals(total.labels.frame)
            else _relabelled(file, total, merge, settings)
            for file, one in zip(parts.files, bare, strict=True)
        ]
        parts = msgspec.structs.replace(parts, files=tuple(relabelled))
        in_files = {name: InFiles(parts, name, getattr(total, name)) for name in ("stats", field)}
        return msgspec.structs.replace(total, datums=datums, **in_files)

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
        return InParts(things, of_parts, rows=_rows, of_few=of_few)
    return InParts(
        things, of_parts, rows=lambda tallies, cuts: rows_of_frame(tallies), of_few=of_few_counts
    )


def _relabelled(file: str, overall: Any, merge: Merge, settings: Any) -> str:
    """A part with labels under the codes of the run; only tallying finds which there are."""
    part: Part = stored.load(file, ROWS)
    slices = pl.DataFrame(schema=overall.datums.slices.schema)
    nothing = msgspec.structs.replace(overall, datums=Datums(None, slices))
    tallies = msgspec.structs.replace(
        part.rows, datums=Datums(None, slices, None, part.rows.present.size)
    )
    path = f"{file}.labels"
    rows = Part(merge([nothing, tallies], settings), part.codes, part.keys)
    stored.save({ROWS: rows, FRAME_DATA: stored.load(file, FRAME_DATA)}, path, lasting=False)
    return path


def _rows(tallies: Any, cuts: Cuts) -> int:
    """Return the number of rows of the per-datum frame, without cut-offs."""
    return count_rows(tallies, {need: {None} for need in tallies.stats.columns})


# Confusion matrix of shared pixels or segments.


def crossing_frame(column: str | None, names: list[str], view: CountsView) -> pl.DataFrame:
    """Build the ``confusion`` frame of one view."""
    labels = view.labels
    group, actual, predicted, count = view.crossed
    last = len(labels)
    none = pl.Series("label_value", [None], dtype=labels.dtype)
    values = pl.concat([labels.frame["label_value"], none])
    columns = {
        "label_key": labels.frame["label_key"].gather(np.where(actual < 0, predicted, actual)),
        "actual": values.gather(np.where(actual < 0, last, actual)),
        "predicted": values.gather(np.where(predicted < 0, last, predicted)),
        "slice_value": pl.Series(names or [None], dtype=pl.String).gather(group),
        "count": count,
    }
    return in_schema(columns, frame_schema("confusion", label=labels.dtype), slice=column)


# Contents of single datums.


def label_tables(
    tallies: Any,
    rows: Any,
    codes: Array,
    most: Array,
    columns: Mapping[str, Callable[[int], str | None]],
) -> list[Content]:
    """Show the labels of datums as tables.

    Args:
        rows: counts by datum and label.
        codes: the datums.
        most: number of each row; labels with the most are first.
        columns: heading -> the cell of a row.
    """
    out: list[Content] = []
    for code in codes.tolist():
        places = np.flatnonzero(rows.datum == code)
        places = places[np.argsort(-most[places], kind="stable")]
        listed = tuple(
            (
                called(tallies.labels.frame, int(rows.label[at])),
                *(of(at) for of in columns.values()),
            )
            for at in places[:MAX_ROWS].tolist()
        )
        left_out = max(0, places.size - MAX_ROWS)
        out.append(Rows(columns=("label", *columns), rows=listed, left_out=left_out))
    return out


# Frames of the report that several tasks have.

HUNDREDTHS = tuple(i / 100 for i in range(100))
"""Score thresholds of the report's counts."""


def hundredths(tallies: Any) -> dict[str, Any]:
    """Options of counts at a hundred score thresholds."""
    return {"score_thresholds": HUNDREDTHS}
