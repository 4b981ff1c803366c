"""The stage of the shuffle: some consecutive rows of one table go into a file for each bucket.

One call takes one :class:`Unit` of rows and writes one folder, made under another name and renamed
when it is complete: a call whose worker died is repeated, and one that was finished is not. Units
are independent. Rows are numbered within their unit; how many rows come before it is known when all
are done, and is added where its rows are read.
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
from ..ingest.slices import SlicePlan
from ..ingest.sources.explain import explain
from ..ingest.sources.tables import READ_FAILURES
from ..ingest.where import Condition
from ..kernels.datum_hash import deal, hash_integers, hash_texts
from ..schemas.contract import ROW, TABLE
from ..schemas.tuning import tuning
from ..tasks.packing import packed
from .repeats import PER_FILE, Writer, once_only
from .shuffle_files import ends_of, own_files

Array = np.ndarray[Any, Any]


class Dealing(msgspec.Struct):
    """What has to be known of a table to shuffle rows of it.

    Attributes:
        role: of the table.
        side: the table.
        where: role to the condition on its rows.
        plan: where slice columns come from.
        targets: dtypes in which ids and labels meet those of other tables, by column.
        n: number of buckets.
        per: rows of a bucket where rows are datums of their own.
        cuts: rows, ascending, at which another query begins: one reads ahead of what is taken
            from it, and holds what it has read.
        ahead: columns whose distinct combinations are told.
        before: rows of the table between its first file and the next one here, where files of
            other units are left out.
        width: bytes of a row, about.
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


class Dealt(msgspec.Struct):
    """What a unit tells of its rows.

    Attributes:
        rows: how many there are, conditions on them applied.
        pairs: side to the distinct (label_key, label_value) of its rows.
        keys: the distinct label keys of a table with score columns; None of others.
        buckets: those that rows fell into, ascending.
        ahead: distinct combinations of the columns that were asked for; None where none were.
    """

    rows: int
    pairs: dict[str, pl.DataFrame]
    keys: pl.Series | None
    buckets: list[int]
    ahead: pl.DataFrame | None = None


Unit = tuple[int, int, int | None]
"""Number of a unit, its first row, and how many it has; None for all that follow."""


def unit_folder(folder: str | Path, role: str, unit: int) -> Path:
    """Where the rows of a unit stand."""
    return Path(folder) / "buckets" / f"{role}-{unit}"


def bucket_file(folder: str | Path, role: str, unit: int, bucket: int) -> Path:
    """Where the rows of a unit that fell into one bucket stand."""
    return unit_folder(folder, role, unit) / f"{bucket}.arrow"


def dealt_of(folder: str | Path, role: str, unit: int) -> Dealt:
    """What a finished unit told."""
    home = unit_folder(folder, role, unit)
    names, rest = msgspec.json.decode((home / _TOLD).read_bytes(), type=tuple[list[str], Any])
    frames = {name: pl.read_ipc(home / f"{_TOLD}-{at}")
              for at, name in enumerate(names)}  # fmt: skip
    ahead, keys = frames.pop(_AHEAD, None), frames.pop(_KEYS, None)
    return Dealt(pairs=frames, keys=None if keys is None else keys[_KEYS], ahead=ahead, **rest)


def _tell(folder: Path, told: Dealt) -> None:
    """Write what a unit tells: numbers, and frames beside them."""
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


def deal_unit(folder: str, unit: Unit, dealing: bytes) -> None:
    """Shuffle the rows of one unit, in whatever process; see :func:`deal_rows`.

    Args:
        folder: the scratch folder.
        unit: which rows.
        dealing: the table, pickled. It comes with the call and stands in no file, since it may
            bring credentials of an object store.
    """
    deal_rows(folder, unit, pickle.loads(dealing))


def deal_rows(folder: str | Path, unit: Unit, dealing: Dealing) -> None:
    """Shuffle the rows of one unit.

    Args:
        folder: the scratch folder, with a folder ``buckets``.
        unit: which rows.
        dealing: the table.

    Raises:
        ReadError: a file that cannot be read, which is named.
    """
    target = unit_folder(folder, dealing.role, unit[0])
    if target.exists():
        return
    draft = fresh_name(target)
    draft.mkdir()
    told = _dealt(draft, unit, dealing)
    _tell(draft, told)
    try:
        os.rename(draft, target)
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(draft)  # another worker, which takes this one for dead, was faster


def _dealt(draft: Path, unit: Unit, dealing: Dealing) -> Dealt:
    """Write the files of a unit."""
    import pyarrow as pa  # here, since every run asks this package whether it is needed

    role, side, n = dealing.role, dealing.side, dealing.n
    pairs: dict[str, pl.DataFrame] = {}
    keys = None
    ahead: list[pl.DataFrame] = []
    done = 0
    with ExitStack() as stack:
        writers: dict[int, Any] = {}
        values = None
        if once := once_only(side):
            values = stack.enter_context(Writer(draft, once, -(-n // PER_FILE), hashes_of))
        for batch in _batches_of(dealing, unit):
            rows = batch.with_columns(pl.col(c).cast(t) for c, t in dealing.targets.items())
            here = np.arange(done, done + rows.height, dtype=np.int64)
            if side.table.datum in rows.columns:
                start, order = deal(hashes_of(rows[side.table.datum]), n)
            else:
                start, order = deal(((unit[1] + here) // dealing.per).astype(np.uint64), n)
            if values is not None:
                values.write(rows.with_columns(pl.Series(ROW, here)))
            ordered = rows[order].with_columns(pl.Series(ROW, here[order]))
            plain = (pl.col(name).cast(pl.String) for name in _categorical(rows))
            dealt = ordered.with_columns(plain).to_arrow()
            for bucket in np.flatnonzero(np.diff(start)).tolist():
                if bucket not in writers:
                    file = stack.enter_context(pa.OSFile(str(draft / f"{bucket}.arrow"), "wb"))
                    writers[bucket] = stack.enter_context(pa.ipc.new_file(file, dealt.schema))
                few = dealt.slice(int(start[bucket]), int(start[bucket + 1] - start[bucket]))
                writers[bucket].write_table(few)
            if role == TABLE or "label_value" in rows.columns:
                pairs = together([pairs, meeting.side_pairs({role: rows})])
            if side.naming.wide and "label_key" in rows.columns:
                some = rows["label_key"].drop_nulls().cast(pl.String)
                keys = (some if keys is None else keys.append(some)).unique()
            if dealing.ahead:
                few = rows.select(name for name in dealing.ahead if name in rows.columns).unique()
                ahead = [pl.concat([*ahead, few]).unique()]
            done += rows.height
    return Dealt(done, pairs, keys, sorted(writers), ahead[0] if ahead else None)


def _batches_of(dealing: Dealing, unit: Unit) -> Iterator[pl.DataFrame]:
    """The rows of a unit, in order, some at a time."""
    for part in _parts(dealing, unit):
        yield from batches(dealing.role, part, dealing.where, dealing.plan, dealing.width)


def together(found: Sequence[dict[str, pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """The distinct pairs of all, by side."""
    sides = dict.fromkeys(side for pairs in found for side in pairs)
    return {
        side: pl.concat(
            [pairs[side].drop_nulls() for pairs in found if side in pairs], how="vertical_relaxed"
        ).unique()
        for side in sides
    }


def of_unit(table: Dealing, ends: Sequence[int] | None, unit: Unit) -> Dealing:
    """A table with the files of one unit alone.

    Args:
        table: what is known of the table, with all of its files.
        ends: rows up to the end of each file; None where all files are left to the unit.
        unit: which rows.
    """
    side, before = own_files(table.side, ends, *unit[1:])
    return msgspec.structs.replace(table, side=side, before=before)


def _parts(dealing: Dealing, unit: Unit) -> Iterator[Side]:
    """The table with some of a unit's rows at a time, one query each."""
    _, first, rows = unit
    last = None if rows is None else first + rows
    inside = [cut for cut in dealing.cuts if cut > first and (last is None or cut < last)]
    if not inside:
        yield _part(dealing, unit)
        return
    ends = ends_of(dealing.side.source.files)
    for at, end in pairwise([first, *inside, last]):
        assert at is not None
        many = None if end is None else end - at
        side, before = own_files(dealing.side, ends, at - dealing.before, many)
        few = msgspec.structs.replace(dealing, side=side, before=dealing.before + before)
        yield _part(few, (unit[0], at, many))


def _part(dealing: Dealing, unit: Unit) -> Side:
    """The table with the rows of a unit alone."""
    side = dealing.side
    _, first, rows = unit
    if first == 0 and rows is None:
        return side
    frame = side.source.frame.slice(first - dealing.before, rows)
    source = msgspec.structs.replace(side.source, frame=frame)
    return Side(source, side.table, side.schema, side.naming)


def batches(
    role: str, side: Side, where: dict[str, Condition], plan: SlicePlan, width: int = 1
) -> Iterator[pl.DataFrame]:
    """The rows of a table, in order, some at a time.

    Args:
        role: of the table.
        side: the table.
        where: role to the condition on its rows.
        plan: where slice columns come from.
        width: bytes of a row, about.

    Raises:
        ReadError: a file that cannot be read, which is named.
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


def hashes_of(ids: pl.Series) -> Array:
    """Hashes of ids, the same for equal ones of whatever side; nulls, told later, have one too."""
    if ids.dtype.is_integer():
        wide = pl.UInt64() if ids.dtype == pl.UInt64 else pl.Int64()
        return hash_integers(ids.cast(wide).fill_null(0).to_numpy())
    data, offsets = packed(ids.cast(pl.String).fill_null(""))
    return hash_texts(offsets, data)


def _categorical(frame: pl.DataFrame) -> list[str]:
    """Columns that stand as strings in files; they are slices, whose values become texts anyway.

    Each batch has a dictionary of its own, and a column of an Arrow file can have but one.
    """
    return [name for name, dtype in frame.schema.items() if dtype == pl.Categorical]


def read_rows(files: Sequence[Path], before: Sequence[int]) -> pl.DataFrame:
    """The rows of a bucket, numbered as in their table.

    They are read and not mapped: what is mapped counts as memory, too.

    Args:
        files: those of each unit that has rows of it, in order; one at least.
        before: rows of the table before each of those units.
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
