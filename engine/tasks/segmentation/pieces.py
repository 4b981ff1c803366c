"""Tallies of segmentation in files: cut by datum, merged range by range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...tally.datums import Labels
from ...tally.pieces import DatumsInPieces, Pieces, StatsInPieces
from ...tally.pixel_pieces import PIXELS, PixelsInPieces
from ...tally.pixels import Areas, Crossings, Images, Pixels
from ..stats_pieces import IDS, Cuts, chosen_datums, chosen_stats, single_stats, things_of_stats
from ..task import DatumFiles
from .settings import Settings
from .tallies import Tallies, merge

Array = np.ndarray[Any, Any]


class TalliesInPieces(msgspec.Struct, frozen=True):
    """What a segmentation run leaves behind in files.

    Attributes:
        datums: ids and slices.
        labels: of both sides and the declared ones.
        pixels: the counts.
        stats: metrics of single datums.
        seconds: step -> wall seconds.
        beside: frames there are whatever the metrics.
        weighted: whether counts are sums of weights; never.
    """

    datums: DatumsInPieces
    labels: Labels
    pixels: PixelsInPieces
    stats: StatsInPieces
    seconds: dict[str, float]
    beside: tuple[str, ...] = ("per_datum",)
    weighted: bool = False


def key_of(tallies: Tallies) -> pl.Series:
    """Ids of datums, ascending."""
    return tallies.datums.id


def cut(tallies: Tallies, rows: slice) -> Tallies:
    """The tally of consecutive datums.

    Args:
        tallies: of a part.
        rows: from the first datum to one past the last.
    """
    pixels = tallies.pixels
    few = {name: _between(getattr(pixels, name), rows) for name in ("areas", "crossings", "images")}
    return msgspec.structs.replace(
        tallies,
        datums=chosen_datums(tallies.datums, rows, tallies.datums.id),
        pixels=msgspec.structs.replace(pixels, **few),
        stats=chosen_stats(tallies.stats, rows),
        present=tallies.present[rows],
    )


def _between(table: Any, rows: slice) -> Any:
    """Rows of some datums, counted from the first of them; tables stand in order of datum."""
    begin, end = np.searchsorted(table.datum, [rows.start, rows.stop])
    few = {name: getattr(table, name)[begin:end] for name in table.__struct_fields__}
    few["datum"] = (few["datum"] - rows.start).astype(table.datum.dtype)
    return type(table)(**few)


def merge_piece(parts: Sequence[Tallies], settings: Settings) -> Tallies:
    """The tally of consecutive datums of all parts.

    Args:
        parts: as :func:`cut` makes them.
        settings: the run's settings.
    """
    return merge(parts, settings)


def things_of(tallies: Tallies) -> dict[str, Any]:
    """A piece as things that are read one by one."""
    return {
        IDS: tallies.datums.id,
        PIXELS: tallies.pixels,
        **things_of_stats(tallies.datums, tallies.stats),
    }


def row_of(tallies: Tallies) -> None:
    """Datums are shown in order of their ids."""
    return


def of_pieces(pieces: Pieces, blank: Tallies, by_row: Pieces | None) -> TalliesInPieces:
    """The tally of a run.

    Args:
        pieces: of all datums.
        blank: what all parts have in common, without a datum.
        by_row: nothing: datums are shown in order of their ids.
    """
    pixels: Pixels = blank.pixels
    return TalliesInPieces(
        DatumsInPieces(pieces, blank.datums),
        blank.labels,
        PixelsInPieces(pieces, pixels.declared, pixels.ignored),
        StatsInPieces(pieces, blank.stats.columns),
        blank.seconds,
    )


def single_datums(tallies: TalliesInPieces, cuts: Cuts) -> Iterator[tuple[Tallies, Cuts]]:
    """Tallies of a few datums and one metric each, in the order in which their rows are shown.

    Args:
        tallies: of a run.
        cuts: unused: nothing here has cut-offs.
    """
    every: Cuts = {need: {None} for need in tallies.stats.columns}
    for datums, stats, chosen in single_stats(tallies.stats.pieces, tallies.stats, every):
        yield Tallies(datums, tallies.labels, _NO_PIXELS, stats, np.zeros(0, np.int8), {}), chosen


def _without_pixels() -> Pixels:
    code, count = np.zeros(0, np.int32), np.zeros(0, np.int64)
    return Pixels(
        Areas(code, code, count, count, count),
        Crossings(code, code, code, count),
        Images(code, code, count, count, np.zeros(0, bool)),
        None,
        np.zeros(0, bool),
    )


_NO_PIXELS = _without_pixels()


def shown(tallies: TalliesInPieces, cuts: Cuts) -> int:
    """Rows of a datum in the frame of single datums.

    Args:
        tallies: of a run.
        cuts: unused.
    """
    columns = [column for made in tallies.stats.columns.values() for column in made]
    return sum(len(column.parameters) for column in columns)


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
