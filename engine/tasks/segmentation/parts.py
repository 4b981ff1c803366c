"""Tallies of segmentation in parts: what a part writes, and the tally that all parts are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...tally import stored
from ...tally.datums import Datums
from ...tally.parts import ROWS, SHOWN, Part, Place, parts_of, things_of_part
from ...tally.pixel_parts import PixelParts
from ...tally.pixels import Areas, Crossings, Images, Pixels
from ...tally.stats import Stats
from ...tally.stats_parts import Cuts, ShownDatums, StatsParts, chosen_stats, single_datums
from ..task import InParts
from .settings import Settings
from .tallies import Tallies, merge

Array = np.ndarray[Any, Any]


_CODE, _COUNT = np.zeros(0, np.int32), np.zeros(0, np.int64)
_NO_ROWS: dict[str, Any] = {
    "areas": Areas(_CODE, _CODE, _COUNT, _COUNT, _COUNT),
    "crossings": Crossings(_CODE, _CODE, _CODE, _COUNT),
    "images": Images(_CODE, _CODE, _COUNT, _COUNT, np.zeros(0, bool)),
}


def part_things(tallies: Tallies, settings: Settings, metrics: Any) -> dict[str, Any]:
    """What is written of the tally of one part.

    Args:
        tallies: of the part.
        settings: the run's settings; unused.
        metrics: those of the run; unused.
    """
    n = len(tallies.datums)
    rows = msgspec.structs.replace(tallies, datums=Datums(None, pl.DataFrame(), None, n))
    bare = msgspec.structs.replace(
        tallies,
        pixels=msgspec.structs.replace(tallies.pixels, **_NO_ROWS),
        stats=chosen_stats(tallies.stats, slice(0, 0)),
        present=tallies.present[:0],
    )
    shown = ShownDatums(tallies.datums.id, None)
    return things_of_part(tallies, bare, rows) | {SHOWN: shown}


def of_parts(files: Sequence[str], place: Place, settings: Settings) -> Tallies:
    """The tally whose parts stand in files.

    Args:
        files: of all parts; those that know other labels than the run are written anew.
        place: where what is too long to hold goes.
        settings: the run's settings.

    Raises:
        InputError: parts that do not go together.
    """
    heads, parts, datums = parts_of(files, place)
    bare = [head.bare for head in heads]
    whole = merge(bare, settings)
    known = [
        file if one.labels.frame.equals(whole.labels.frame) else _relabelled(file, whole, settings)
        for file, one in zip(parts.files, bare, strict=True)
    ]
    parts = msgspec.structs.replace(parts, files=tuple(known))
    pixels: Pixels = whole.pixels
    return msgspec.structs.replace(
        whole,
        datums=datums,
        pixels=PixelParts(parts, pixels.declared, pixels.ignored),
        stats=StatsParts(parts, whole.stats.columns, _stats_of),
    )


def _relabelled(file: str, whole: Tallies, settings: Settings) -> str:
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


def shown(tallies: Tallies, cuts: Cuts) -> int:
    """Rows of a datum in the frame of single datums.

    Args:
        tallies: of a run.
        cuts: unused: nothing here has cut-offs.
    """
    columns = [column for made in tallies.stats.columns.values() for column in made]
    return sum(len(column.parameters) for column in columns)


def tallies_of_few(tallies: Tallies, cuts: Cuts) -> Iterator[tuple[Tallies, Cuts]]:
    """Tallies of a few datums and one metric each, in the order in which their rows are shown.

    Args:
        tallies: of a run.
        cuts: unused.
    """
    every: Cuts = {need: {None} for need in tallies.stats.columns}
    none = Pixels(**_NO_ROWS, declared=None, ignored=tallies.pixels.ignored)
    for datums, stats, chosen in single_datums(tallies.stats, every):
        yield Tallies(datums, tallies.labels, none, stats, np.zeros(0, np.int8), {}), chosen


IN_PARTS = InParts(part_things, of_parts, shown=shown, of_few=tallies_of_few)
