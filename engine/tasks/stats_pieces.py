"""Tallies of one row a datum in files: cut by datum, merged range by range, read need by need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..tally import stored
from ..tally.datums import Datums, Labels
from ..tally.merging import merge_datums, merge_labels, merged_seconds
from ..tally.merging_stats import merge_stats
from ..tally.pieces import (
    COUNTED,
    NEED,
    SLICES,
    STATUS,
    DatumsInPieces,
    Pieces,
    StatsInPieces,
    column_of_thing,
    column_thing,
)
from ..tally.stats import Column, Stats
from .stats_views import StatsTallies, no_labels
from .task import DatumFiles

Array = np.ndarray[Any, Any]
Cuts = Mapping[str, set[int | None]]

IDS, ROW = "ids", "row"


class StatsTalliesInPieces(msgspec.Struct, frozen=True):
    """What a run leaves behind in files whose tally has one row a datum.

    Attributes:
        datums: images, datums, texts.
        labels: none.
        stats: one row a datum.
        by_row: files of the same in the order of the one table's rows, in which single datums are
            shown; None where that is the datums' own.
        seconds: step -> wall seconds.
        beside: frames there are whatever the metrics.
        weighted: whether counts are sums of weights; never.
    """

    datums: DatumsInPieces
    labels: Labels
    stats: StatsInPieces
    by_row: Pieces | None
    seconds: dict[str, float]
    beside: tuple[str, ...] = ("per_datum",)
    weighted: bool = False


def chosen_datums(datums: Datums, rows: Any, key: pl.Series) -> Datums:
    """Some datums, all of them with ids.

    Args:
        datums: of a tally.
        rows: a slice, or int [m].
        key: ids of all.
    """
    return Datums(
        key[rows],
        datums.slices[rows] if datums.slices.width else datums.slices,
        None if datums.dataset is None else datums.dataset[rows],
    )


def chosen_stats(stats: Stats, rows: Any) -> Stats:
    """The rows of some datums."""

    def few(column: Column) -> Column:
        own = None if column.status is None else (column.status[0], column.status[1][rows])
        return msgspec.structs.replace(column, values=column.values[rows], status=own)

    columns = {need: tuple(map(few, made)) for need, made in stats.columns.items()}
    return Stats(stats.counted[rows], columns, (stats.status[0], stats.status[1][rows]))


def key_of(tallies: StatsTallies) -> pl.Series:
    """Ids of datums, ascending; numbers of rows of the whole table where datums have none."""
    if tallies.datums.ids is not None or tallies.row is None:
        return tallies.datums.id
    return pl.Series("datum_id", tallies.row)


def cut(tallies: StatsTallies, rows: Any) -> StatsTallies:
    """The tally of some datums of a part.

    Args:
        tallies: of a part whose rows are numbered as in the whole.
        rows: a slice, or int [m].
    """
    return msgspec.structs.replace(
        tallies,
        datums=chosen_datums(tallies.datums, rows, key_of(tallies)),
        stats=chosen_stats(tallies.stats, rows),
        row=None if tallies.row is None else tallies.row[rows],
    )


def merge_piece(parts: Sequence[StatsTallies], settings: Any) -> StatsTallies:
    """The tally of consecutive datums of all parts, whose rows keep their numbers.

    Args:
        parts: as :func:`cut` makes them.
        settings: the run's settings; unused.
    """
    datums, codes = merge_datums([part.datums for part in parts])
    labels, _ = merge_labels([part.labels for part in parts])
    stats = merge_stats([part.stats for part in parts], codes)
    row = None
    if any(part.row is not None for part in parts):
        row = np.full(len(datums), -1, np.int64)
        for part, code in zip(parts, codes, strict=True):
            if part.row is not None:
                row[code] = part.row
    return StatsTallies(datums, labels, stats, row, None, merged_seconds(parts))


def things_of(tallies: StatsTallies) -> dict[str, Any]:
    """A piece as things that are read one by one."""
    return {
        IDS: tallies.datums.id,
        ROW: tallies.row,
        **things_of_stats(tallies.datums, tallies.stats),
    }


def things_of_stats(datums: Datums, stats: Stats) -> dict[str, Any]:
    """What views of a piece read."""
    return {
        SLICES: datums.slices,
        COUNTED: stats.counted,
        STATUS: stats.status,
        **{
            column_thing(need, i): column
            for need, columns in stats.columns.items()
            for i, column in enumerate(columns)
        },
    }


def things_of_single(ids: pl.Series, stats: Stats) -> dict[str, Any]:
    """What the frame of single datums reads."""
    return {IDS: ids, **things_of_stats(Datums(None, pl.DataFrame()), stats)}


def whole_piece(file: str | Path) -> StatsTallies:
    """A piece as the tally it was, without slices."""
    needs = [name for name in stored.head_of(file)["things"] if name.startswith(NEED)]
    ids, row, counted, status, *columns = stored.load_several(
        file, [IDS, ROW, COUNTED, STATUS, *needs]
    )
    made: dict[str, tuple[Column, ...]] = {}
    for name, column in zip(needs, columns, strict=True):  # in the order of their places
        need, _ = column_of_thing(name)
        made[need] = (*made.get(need, ()), column)
    datums = Datums(ids, pl.DataFrame())
    return StatsTallies(datums, no_labels(), Stats(counted, made, status), row, None, {})


def row_of(tallies: StatsTallies) -> Array | None:
    """Rows that say in which order the datums of a piece are shown."""
    return tallies.row


def of_pieces(pieces: Pieces, blank: StatsTallies, by_row: Pieces | None) -> StatsTalliesInPieces:
    """The tally of a run.

    Args:
        pieces: of all datums.
        blank: what all parts have in common, without a datum.
        by_row: the same in the order of rows, where that is another.
    """
    return StatsTalliesInPieces(
        DatumsInPieces(pieces, blank.datums),
        blank.labels,
        StatsInPieces(pieces, blank.stats.columns),
        by_row,
        blank.seconds,
    )


def shown(tallies: Any, cuts: Cuts) -> int:
    """Rows of a datum in the frame of single datums.

    Args:
        tallies: of a run.
        cuts: need -> the cut-offs to show.
    """
    return sum(1 for _ in _variants(tallies.stats, cuts))


def _variants(stats: StatsInPieces, cuts: Cuts) -> Iterator[tuple[str, int, int, int]]:
    """Need and places of column, parameters and cut-off, in the order in which they are shown."""
    for need, columns in stats.columns.items():
        for i, column in enumerate(columns):
            for p in range(len(column.parameters)):
                for k, at in enumerate(column.k):
                    if at in cuts.get(need, ()):
                        yield need, i, p, k


def single_datums(tallies: StatsTalliesInPieces, cuts: Cuts) -> Iterator[tuple[StatsTallies, Cuts]]:
    """Tallies of a few datums and one metric each, in the order in which their rows are shown.

    Args:
        tallies: of a run.
        cuts: need -> the cut-offs to show.
    """
    pieces = tallies.by_row or tallies.stats.pieces
    for datums, stats, chosen in single_stats(pieces, tallies.stats, cuts):
        yield StatsTallies(datums, tallies.labels, stats, None, None, {}), chosen


def single_stats(
    pieces: Pieces, stats: StatsInPieces, cuts: Cuts
) -> Iterator[tuple[Datums, Stats, Cuts]]:
    """Datums of a file with one metric of theirs, and how its need and cut-off are asked for.

    Args:
        pieces: files in the order in which datums are shown.
        stats: of the run.
        cuts: need -> the cut-offs to show.
    """
    for need, i, p, k in _variants(stats, cuts):
        for piece in range(len(pieces)):
            name = column_thing(need, i)
            ids, counted, status, made = pieces.load(piece, IDS, COUNTED, STATUS, name)
            few = msgspec.structs.replace(
                made,
                parameters=(made.parameters[p],),
                k=(made.k[k],),
                values=made.values[:, p : p + 1, k : k + 1],
            )
            stats_of_few = Stats(counted, {need: (few,)}, status)
            yield Datums(ids, pl.DataFrame()), stats_of_few, {need: {made.k[k]}}


DATUM_FILES = DatumFiles(
    key=key_of,
    cut=cut,
    merge=merge_piece,
    things=things_of,
    rows=row_of,
    of_files=of_pieces,
    shown=shown,
    single_datums=single_datums,
)
