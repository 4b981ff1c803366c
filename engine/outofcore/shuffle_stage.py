"""Shuffle stage: consecutive rows of one table go into one file per bucket.

One call takes one :class:`RowRange` and writes one folder, renamed when it is complete: a call
whose worker died is repeated, a finished one is not. Ranges are independent. Rows are numbered
within their range; the offset is known when all ranges are done, and is added when rows are read.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..atomic import fresh_name
from ..ingest import meeting
from ..ingest.collecting import Side, rows_of
from ..ingest.marks import dealt
from ..ingest.slices import SlicePlan
from ..ingest.sources.explain import explain
from ..ingest.sources.tables import READ_FAILURES
from ..ingest.where import Condition
from ..kernels.datum_hash import by_bucket
from ..schemas.arrays import Array
from ..schemas.contract import ROW, TABLE
from ..schemas.tuning import tuning
from ..tasks.packing import hashes_of
from .repeats import PER_FILE, Writer, once_only
from .shuffle_files import ends_of, own_files


class Shuffle(msgspec.Struct):
    """Parameters for shuffling rows of a table.

    Attributes:
        where: role to the condition on its rows.
        per: rows of a bucket if rows are datums.
        cuts: rows, ascending, at which a new query begins: a query reads ahead and keeps that in
            memory.
        ahead: columns whose distinct combinations are collected.
        before: rows of the table between its first file and the next one here, if files of other
            ranges are omitted.
        width: approximate number of bytes per row.
    """

    role: str
    side: Side
    where: dict[str, Condition]
    plan: SlicePlan
    targets: dict[str, pl.DataType]
    n: int
    per: int
    cuts: tuple[int, ...] = ()
    ahead: tuple[str, ...] = ()
    before: int = 0
    width: int = 1


class Shuffled(msgspec.Struct):
    """Summary of a range.

    Attributes:
        pairs: side to the distinct (label_key, label_value) of its rows.
        keys: the distinct label keys of a table with score columns, or None.
        buckets: those with rows of this range, ascending.
        ahead: distinct combinations of the requested columns, or None.
    """

    rows: int
    pairs: dict[str, pl.DataFrame]
    keys: pl.Series | None
    buckets: list[int]
    ahead: pl.DataFrame | None = None


RowRange = tuple[int, int, int | None]
"""Number of a range, its first row, and how many it has; None for all that follow."""


def range_folder(folder: str | Path, role: str, span: int) -> Path:
    """Return the folder of a range."""
    return Path(folder) / "buckets" / f"{role}-{span}"


def bucket_file(folder: str | Path, role: str, span: int, bucket: int) -> Path:
    """Return the file of a range's rows in one bucket."""
    return range_folder(folder, role, span) / f"{bucket}.arrow"


def told_of(folder: str | Path, role: str, span: int) -> Shuffled:
    """Load the summary of a finished range."""
    home = range_folder(folder, role, span)
    names, rest = msgspec.json.decode((home / _TOLD).read_bytes(), type=tuple[list[str], Any])
    frames = {name: pl.read_ipc(home / f"{_TOLD}-{at}")
              for at, name in enumerate(names)}  # fmt: skip
    ahead, keys = frames.pop(_AHEAD, None), frames.pop(_KEYS, None)
    return Shuffled(pairs=frames, keys=None if keys is None else keys[_KEYS], ahead=ahead, **rest)


def _tell(folder: Path, told: Shuffled) -> None:
    """Write the summary of a range: numbers, and frames in separate files."""
    frames = dict(told.pairs)
    if told.keys is not None:
        frames[_KEYS] = told.keys.alias(_KEYS).to_frame()
    if told.ahead is not None:
        frames[_AHEAD] = told.ahead
    for at, frame in enumerate(frames.values()):
        frame.write_ipc(folder / f"{_TOLD}-{at}")
    rest = {"rows": told.rows, "buckets": told.buckets}
    (folder / _TOLD).write_bytes(msgspec.json.encode((list(frames), rest)))


_TOLD = "told"
_KEYS, _AHEAD = "label keys", "ahead"  # beside the sides of tables


def shuffle_range(folder: str, span: RowRange, shuffle: bytes) -> None:
    """Shuffle the rows of one range, in any process; see :func:`shuffle_rows`.

    Args:
        shuffle: the table, pickled. Passed with the call instead of a file, since it may contain
            credentials of an object store.
    """
    shuffle_rows(folder, span, pickle.loads(shuffle))


def shuffle_rows(folder: str | Path, span: RowRange, shuffle: Shuffle) -> None:
    """Shuffle the rows of one range.

    Args:
        folder: the scratch folder, with a folder ``buckets``.

    Raises:
        ReadError: a file that cannot be read; names it.
    """
    target = range_folder(folder, shuffle.role, span[0])
    if target.exists():
        return
    draft = fresh_name(target)
    draft.mkdir()
    told = _written(draft, span, shuffle)
    _tell(draft, told)
    try:
        os.rename(draft, target)
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(draft)  # another worker, which takes this one for dead, was faster


def _written(draft: Path, span: RowRange, shuffle: Shuffle) -> Shuffled:
    """Write the files of a range."""
    import pyarrow as pa  # here, since every run asks this package whether it is needed

    role, side, n = shuffle.role, shuffle.side, shuffle.n
    pairs: dict[str, pl.DataFrame] = {}
    keys = None
    ahead: list[pl.DataFrame] = []
    done = 0
    with ExitStack() as stack:
        writers: dict[int, Any] = {}
        values = None
        if once := once_only(side):
            values = stack.enter_context(Writer(draft, once, -(-n // PER_FILE), hashes_of))
        for batch in _batches_of(shuffle, span):
            rows = batch.with_columns(pl.col(c).cast(t) for c, t in shuffle.targets.items())
            here = np.arange(done, done + rows.height, dtype=np.int64)
            order: Array | slice
            if side.table.datum in rows.columns:
                ids = rows[side.table.datum]
                found = dealt(ids, n)
                start, order = by_bucket(hashes_of(ids) if found is None else found, n)
            else:  # rows are datums of their own, and stand by bucket
                order = slice(None)
                start = np.clip(np.arange(n + 1) * shuffle.per - span[1] - done, 0, rows.height)
                start[n] = rows.height
            if values is not None:
                values.write(rows.with_columns(pl.Series(ROW, here)))
            ordered = rows[order].with_columns(pl.Series(ROW, here[order]))
            plain = (pl.col(name).cast(pl.String) for name in _categorical(rows))
            by_rows = ordered.with_columns(plain).to_arrow()
            for bucket in np.flatnonzero(np.diff(start)).tolist():
                if bucket not in writers:
                    file = stack.enter_context(pa.OSFile(str(draft / f"{bucket}.arrow"), "wb"))
                    writers[bucket] = stack.enter_context(pa.ipc.new_file(file, by_rows.schema))
                few = by_rows.slice(int(start[bucket]), int(start[bucket + 1] - start[bucket]))
                writers[bucket].write_table(few)
            if role == TABLE or "label_value" in rows.columns:
                pairs = together([pairs, meeting.side_pairs({role: rows})])
            if side.naming.wide and "label_key" in rows.columns:
                some = rows["label_key"].drop_nulls().cast(pl.String)
                keys = (some if keys is None else keys.append(some)).unique()
            if shuffle.ahead:
                few = rows.select(name for name in shuffle.ahead if name in rows.columns).unique()
                ahead = [pl.concat([*ahead, few]).unique()]
            done += rows.height
    return Shuffled(done, pairs, keys, sorted(writers), ahead[0] if ahead else None)


def _batches_of(shuffle: Shuffle, span: RowRange) -> Iterator[pl.DataFrame]:
    """The rows of a range, in order, some at a time."""
    for part in _parts(shuffle, span):
        yield from batches(shuffle.role, part, shuffle.where, shuffle.plan, shuffle.width)


def together(found: Sequence[dict[str, pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """The distinct pairs of all, by side."""
    sides = dict.fromkeys(side for pairs in found for side in pairs)
    return {
        side: pl.concat(
            [pairs[side].drop_nulls() for pairs in found if side in pairs], how="vertical_relaxed"
        ).unique()
        for side in sides
    }


def of_range(table: Shuffle, ends: Sequence[int] | None, span: RowRange) -> Shuffle:
    """Restrict a table to the files of one range.

    Args:
        ends: cumulative number of rows at the end of each file; None to keep all files.
    """
    side, before = own_files(table.side, ends, *span[1:])
    return msgspec.structs.replace(table, side=side, before=before)


def _parts(shuffle: Shuffle, span: RowRange) -> Iterator[Side]:
    """The table with some of a range's rows at a time, one query each."""
    _, first, rows = span
    last = None if rows is None else first + rows
    inside = [cut for cut in shuffle.cuts if cut > first and (last is None or cut < last)]
    if not inside:
        yield _part(shuffle, span)
        return
    ends = ends_of(shuffle.side.source.files)
    for at, end in pairwise([first, *inside, last]):
        assert at is not None
        many = None if end is None else end - at
        side, before = own_files(shuffle.side, ends, at - shuffle.before, many)
        few = msgspec.structs.replace(shuffle, side=side, before=shuffle.before + before)
        yield _part(few, (span[0], at, many))


def _part(shuffle: Shuffle, span: RowRange) -> Side:
    side = shuffle.side
    _, first, rows = span
    if first == 0 and rows is None:
        return side
    frame = side.source.frame.slice(first - shuffle.before, rows)
    source = msgspec.structs.replace(side.source, frame=frame)
    return Side(source, side.table, side.schema, side.naming)


def batches(
    role: str, side: Side, where: dict[str, Condition], plan: SlicePlan, width: int = 1
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table in batches, in order.

    Args:
        where: role to the condition on its rows.
        width: approximate number of bytes per row.

    Raises:
        ReadError: a file that cannot be read; names it.
    """
    query = rows_of(role, side, where, plan)
    try:
        sizes = tuning()
        rows = max(1, min(sizes.shuffle_rows, sizes.shuffle_bytes // max(1, width)))
        yield from query.collect_batches(chunk_size=rows, maintain_order=True)
    except READ_FAILURES as error:
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            raise  # of what is written meanwhile
        raise explain(side.source, error) from error


def _categorical(frame: pl.DataFrame) -> list[str]:
    """Return columns that are stored as strings in files: slices, whose values become text anyway.

    Each batch has another dictionary, and a column of an Arrow file can have only one.
    """
    return [name for name, dtype in frame.schema.items() if dtype == pl.Categorical]


def read_rows(files: Sequence[Path], before: Sequence[int]) -> pl.DataFrame:
    """Read the rows of a bucket, numbered as in their table.

    Not memory-mapped: mapped pages count as memory, too.

    Args:
        files: those of each range that has rows of it, in order; at least one.
    """
    import pyarrow as pa  # here, since every run asks this package whether it is needed

    tables = []
    for path in files:
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
            tables.append(reader.read_all())
    rows = pl.DataFrame(tables[0] if len(tables) == 1 else pa.concat_tables(tables))
    rows.columns = tables[0].column_names  # a column without a name would be given one
    if not any(before):
        return rows
    more = np.repeat(np.asarray(before, np.int64), [table.num_rows for table in tables])
    return rows.with_columns(pl.col(ROW) + pl.Series(more))
