"""Units and scored labels of one bucket as blocks and pieces, written a few to a file.

A range or a slab of the whole takes few of a bucket. To read one, the list of what is in its file
is read: if all stood in one file, what is read would grow as the square of their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from .. import planner
from ..tally import stored
from ..tally.filed_view import DATUMS
from ..tally.score_rows import OrderedScores, ScoreRows
from ..tally.unit_blocks import cut
from . import slabs
from .datum_blocks import PER_FILE, size_of

SLICES = "slices"
"""Name of the thing that holds the distinct values of a bucket's slice columns."""

KINDS = ("scores", "pooled")
"""Scored labels by label, and by label key."""

UNITS = "units"

_BLOCKS = 4  # blocks of a bucket in a range, so that few units beside it are read with one


def write_apart(
    tallies: Any,
    plan: planner.Plan,
    needs: frozenset[str],
    sizes: tuple[int, int, int],
    folder: str | Path,
    bucket: int,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A bucket's tally written as blocks of units and pieces of scored labels.

    Args:
        tallies: of the bucket.
        plan: of the run.
        needs: what was tallied.
        sizes: number of buckets, bytes of a range of units of all of them, and rows of a piece of
            scored labels.
        folder: the scratch folder.
        bucket: which one.

    Returns:
        what is left, by name, and what is told of blocks and pieces.

    Raises:
        RuntimeError: rows of the bucket do not know their places in the input, or stand in another
            order.
    """
    n, room, most = sizes
    files = plan.does.row_files
    assert files is not None
    part = files.part(tallies, plan.settings, needs, plan.metrics)
    things: dict[str, Any] = {stored.WHOLE: part.bare, SLICES: part.slices}
    shown = files.shows_datums(plan.metrics, plan.settings)
    if shown:
        things[DATUMS] = files.shown(tallies)
    key = part.block.key
    if not key.is_sorted():
        raise RuntimeError("units of a bucket do not stand in the order of the input")
    each = max(1, size_of(part.block) // max(1, len(key)))
    step = max(1, room // (_BLOCKS * n * each))
    bounds = [(first, min(first + step, len(key))) for first in range(0, len(key), step)]
    write_few((cut(part.block, *few) for few in bounds), folder, bucket, UNITS)
    pieces: dict[str, list[slabs.Piece]] = {}
    for kind, ordered in zip(KINDS, (part.scores, part.pooled), strict=True):
        if ordered is not None:
            pieces[kind] = _write_scores(ordered(), most, folder, bucket, kind)
    return things, {
        "blocks": [[key[first], end - first, (end - first) * each] for first, end in bounds],
        "pieces": msgspec.to_builtins(pieces),
        "counts": part.counts,
        "alone": part.alone,
        "shown": shown,
    }


def _write_scores(
    ordered: OrderedScores, most: int, folder: str | Path, bucket: int, kind: str
) -> list[slabs.Piece]:
    """Write scored labels in pieces; only those of one file are made at a time."""
    pieces: list[slabs.Piece] = []

    def made() -> Iterator[ScoreRows]:
        for begin in range(0, len(ordered), most):
            rows = ordered.rows(begin, min(begin + most, len(ordered)))
            pieces.append(slabs.Piece(str(len(pieces)), len(rows), key_at(rows, 0)))
            yield rows

    write_few(made(), folder, bucket, kind)
    return pieces


def write_few(things: Iterable[Any], folder: str | Path, bucket: int, kind: str) -> None:
    """Write consecutive things of a bucket, a few to a file."""
    numbered = enumerate(things)
    for file in count():
        here = {str(number): thing for number, thing in islice(numbered, PER_FILE)}
        if not here:
            return
        stored.save(here, _few_file(folder, bucket, kind, file), lasting=False)


def read_few(folder: str | Path, bucket: int, kind: str, begin: int, end: int) -> Iterator[Any]:
    """Some consecutive things of a bucket, from one to before another; files of others stay shut.

    Args:
        folder: the scratch folder.
        bucket: which one.
        kind: :data:`UNITS`, or one of :data:`KINDS`.
        begin: the first.
        end: one past the last.
    """
    for file in range(begin // PER_FILE, -(-end // PER_FILE)):
        first, last = max(begin, file * PER_FILE), min(end, (file + 1) * PER_FILE)
        names = [str(number) for number in range(first, last)]
        yield from stored.load_several(_few_file(folder, bucket, kind, file), names)


def _few_file(folder: str | Path, bucket: int, kind: str, file: int) -> Path:
    return Path(folder) / "blocks" / f"{bucket}-{kind}-{file}.tally"


def key_at(rows: ScoreRows, row: int) -> slabs.Key:
    """The key of a row."""
    label = int(np.searchsorted(rows.start, row, "right")) - 1
    return slabs.Key(label, float(rows.score[row]), 0.0, int(rows.row[row]))


def place(rows: ScoreRows, key: slabs.Key | None) -> int:
    """How many rows stand before a key; all where it is None."""
    if key is None:
        return len(rows)
    if not key.of_row:
        return 0
    begin, end = int(rows.start[key.label]), int(rows.start[key.label + 1])
    own = rows.score[begin:end]
    value = own.dtype.type(key.ordered)  # of a row of the same precision
    first, last = (int(np.searchsorted(own, value, side)) for side in ("left", "right"))
    tied = rows.row[begin + first : begin + last]
    return begin + first + int(np.searchsorted(tied, key.datum, "left"))
