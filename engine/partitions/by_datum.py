"""Tallies of one row a datum, merged in files of consecutive datums instead of in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .. import planner
from ..executors.pools import Pool
from ..tally import stored
from ..tally.merging_stats import merge_stats
from ..tally.pieces import Pieces
from ..tasks import stats_pieces
from .datum_blocks import BLANK, PER_FILE, blocks_between, files_of
from .ranges import cuts, ends, overlapping
from .scratch import look_for_room
from .stages import collected, job_of, part_file

Array = np.ndarray[Any, Any]


def merged_by_datums(
    folder: str,
    parts: Sequence[int],
    heads: Sequence[dict[str, Any]],
    plan: planner.Plan,
    room: int,
    pool: Pool,
    digest: str,
) -> tuple[Any, int]:
    """The tally of all buckets in files, and how many datums it has.

    Args:
        folder: the scratch folder.
        parts: the buckets.
        heads: what each of them told.
        plan: of the run.
        room: bytes of a piece.
        pool: where stages run.
        digest: of the job.

    Raises:
        ScratchError: the disk has no room for the merged files, which are as large as those that
            they are made of: how large those are is known by now.
    """
    _look_for_room(folder, size_of_files(Path(folder) / "blocks"))
    (Path(folder) / "datums").mkdir()
    blanks = [stored.load(part_file(folder, bucket), BLANK) for bucket in parts]
    blank = files_of(plan).merge(blanks, plan.settings)
    del blanks
    stored.save(blank, _file(folder, BLANK), lasting=False)
    begins = cuts([tuple(block) for head in heads for block in head["blocks"]], room)
    firsts = {
        bucket: [first for first, _, _ in head["blocks"]]
        for bucket, head in zip(parts, heads, strict=True)
    }
    calls = [
        (folder, piece, between, overlapping(firsts, between), digest)
        for piece, between in enumerate(zip([None, *begins], [*begins, None], strict=True))
    ]
    collected(pool.run(merge_range, calls))
    files = [_file(folder, piece) for piece in range(len(calls))]
    about = [stored.head_of(file)["about"] for file in files]
    sizes = [told["n"] for told in about]
    pieces = Pieces(tuple(map(str, files)), tuple(sizes))
    rows = [told["rows"] for told in about]
    by_row = None
    if any(rows) and not _ascending([told for told in rows if told]):
        # Dealt out and then merged: twice what is there, none of which goes before all is done.
        _look_for_room(folder, 2 * size_of_files(Path(folder) / "datums"))
        by_row = _by_row(folder, pieces, rows, pool)
    return files_of(plan).of_files(pieces, blank, by_row), sum(sizes)


def _look_for_room(folder: str, size: int) -> None:
    look_for_room(Path(folder).parent, size, " more")


def size_of_files(folder: Path) -> int:
    """Bytes of the files of a folder."""
    return sum(file.stat().st_size for file in folder.iterdir())


def _file(folder: str | Path, name: object) -> Path:
    return Path(folder) / "datums" / f"{name}.tally"


def merge_range(
    folder: str,
    piece: int,
    between: tuple[Any, Any],
    blocks: Sequence[tuple[int, int, int]],
    digest: str,
) -> None:
    """Bring together the datums of all buckets whose ids lie in a range.

    Args:
        folder: the scratch folder.
        piece: number of the range.
        between: its first id and that of the next one; None where it has no such end.
        blocks: buckets, the first of their blocks to look into, and one past the last.
        digest: of the job.
    """
    target = _file(folder, piece)
    if target.exists():
        return
    _, plan = job_of(folder, digest)
    datums = files_of(plan)
    parts = [stored.load(_file(folder, BLANK))]
    for bucket, begin, end in blocks:
        for part in blocks_between(folder, bucket, begin, end):
            rows = slice(*ends(datums.key(part), between))
            if rows.start < rows.stop:
                parts.append(datums.cut(part, rows))
    merged = datums.merge(parts, plan.settings)
    about = {"n": len(merged.datums), "rows": _told_rows(datums.rows(merged))}
    stored.save(datums.things(merged), target, about=about, lasting=False)


def _told_rows(row: Array | None) -> list[int] | None:
    """Whether rows ascend (1 or 0), lowest and highest; None where order is the ids' own."""
    if row is None or not row.size:
        return None
    ascending = bool((np.diff(row) > 0).all()) and row[0] >= 0
    return [int(ascending), int(row.min()), int(row.max())]


def _ascending(told: Sequence[list[int]]) -> bool:
    """Whether rows of consecutive pieces are in order, so that ids' order is theirs."""
    inside = all(ascending for ascending, _, _ in told)
    return inside and all(a[2] < b[1] for a, b in pairwise(told))


def _by_row(folder: str, pieces: Pieces, rows: Sequence[list[int] | None], pool: Pool) -> Pieces:
    """The same datums in files by their rows; those without a row behind, in order of id."""
    height = max(told[2] for told in rows if told) + 1
    step = -(-height // len(pieces))
    begins = list(range(step, height, step))
    collected(pool.run(deal_by_row, [(folder, piece, begins) for piece in range(len(pieces))]))
    ranges = range(len(begins) + 2)  # the last one of datums without a row
    filled = [stored.head_of(_dealt(folder, piece, None))["about"]["ranges"]
              for piece in range(len(pieces))]  # fmt: skip
    having = [[piece for piece, some in enumerate(filled) if one in some] for one in ranges]
    collected(pool.run(merge_by_row, [(folder, one, having[one]) for one in ranges if having[one]]))
    made = [_file(folder, f"rows-{one}") for one in ranges if having[one]]
    return Pieces(tuple(map(str, made)), tuple(stored.head_of(file)["about"]["n"] for file in made))


def _dealt(folder: str, piece: int, one: int | None) -> Path:
    """Where the datums of a piece in a range of rows stand; what is told of all, for None.

    A few ranges stand in a file: what is in a file is read whenever it is opened, which would be
    done for all ranges as often as there are ranges.
    """
    return _file(folder, f"dealt-{piece}" if one is None else f"dealt-{piece}-{one // PER_FILE}")


def deal_by_row(folder: str, piece: int, begins: Sequence[int]) -> None:
    """Deal the datums of a piece out to ranges of rows.

    Args:
        folder: the scratch folder.
        piece: which one.
        begins: rows at which ranges begin, but the first.
    """
    target = _dealt(folder, piece, None)
    if target.exists():
        return
    whole = stats_pieces.whole_piece(_file(folder, piece))
    assert whole.row is not None
    place = np.searchsorted(begins, whole.row, "right")
    place[whole.row < 0] = len(begins) + 1
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(begins) + 3))
    ranges = [one for one, (begin, end) in enumerate(pairwise(bounds.tolist())) if begin < end]
    for file, several in groupby(ranges, lambda one: _dealt(folder, piece, one)):
        things = {
            f"range-{one}": stats_pieces.cut(whole, order[bounds[one] : bounds[one + 1]])
            for one in several
        }
        stored.save(things, file, lasting=False)
    stored.save({}, target, about={"ranges": ranges}, lasting=False)


def merge_by_row(folder: str, one: int, pieces: Sequence[int]) -> None:
    """Bring a range of rows together, in their order.

    Args:
        folder: the scratch folder.
        one: number of the range.
        pieces: those that have datums in it.
    """
    target = _file(folder, f"rows-{one}")
    if target.exists():
        return
    parts = [stored.load(_dealt(folder, piece, one), f"range-{one}") for piece in pieces]
    row = np.concatenate([part.row for part in parts])
    order = np.argsort(row, kind="stable")
    code = np.empty(order.size, np.int64)
    code[order] = np.arange(order.size)
    codes = np.split(code, np.cumsum([len(part.datums) for part in parts])[:-1])
    ids = pl.concat([part.datums.id for part in parts])[order]
    stats = merge_stats([part.stats for part in parts], codes)
    things = stats_pieces.things_of_single(ids, stats)
    stored.save(things, target, about={"n": order.size}, lasting=False)
