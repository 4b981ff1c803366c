"""Shuffle: all rows of a datum go to one bucket."""

from __future__ import annotations

import json
import os
import pickle
import socket
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import scratch
from .._version import __version__
from ..atomic import fresh_name
from ..executors.pools import Pool
from ..ingest import both_sides, recognise
from ..ingest.collecting import Prepared, rows_of
from ..ingest.dtypes import fit_integers
from ..ingest.files import Source
from ..ingest.ids import dealt
from ..ingest.problems import Note
from ..ingest.recognise import Side
from ..ingest.slices import SlicePlan
from ..ingest.sources.formats import explain
from ..ingest.sources.scanning import scan
from ..ingest.sources.tables import READ_FAILURES
from ..ingest.where import Condition
from ..kernels.datums import by_bucket
from ..schemas.arrays import Array
from ..schemas.contract import DEFAULT_LABEL_KEY, GROUND_TRUTHS, LABELS, PREDICTIONS, ROW, TABLE
from ..schemas.errors import ExecutorError, ReadError, ScratchError
from ..schemas.tuning import tuning
from ..schemas.wording import option
from ..tallies.stored import narrowest
from ..tasks.encoding import hashes_of
from .bucket_files import (
    PER_FILE,
    BucketFiles,
    read_tables,
    unique_columns,
    values_file,
    write_values,
)
from .memory import row_bytes, scratch_folder

# Selection of the Parquet files for a range of rows.
#
# A scan of all files would open every file before the wanted rows just to count rows: thousands
# of small files per range.


def row_stops(files: Sequence[str]) -> list[int] | None:
    """Return the cumulative number of rows at the end of each file; None if footers are unreadable.

    Args:
        files: local Parquet files, in row order.
    """
    import pyarrow as pa  # only if workers read tables
    import pyarrow.parquet as pq

    try:
        return [*accumulate(pq.read_metadata(file).num_rows for file in files)]
    except (pa.ArrowException, OSError):  # unknown types; Polars reports other faults
        return None


def own_files(
    side: Side, stops: Sequence[int] | None, first: int, rows: int | None
) -> tuple[Side, int]:
    """Restrict a table to the files of some of its rows.

    The first file is always kept: its columns and dtypes are those that other files are checked
    against, so that a deviating file is refused as in a scan of all.

    Args:
        stops: number of rows up to the end of each file; None to keep all files.
        rows: number of rows; None for all that follow.

    Returns:
        the table; number of rows in omitted files before the rest.
    """
    files = side.source.files
    if stops is None or len(files) < 2:
        return side, 0
    begin = bisect_right(stops, first)
    end = len(files) if rows is None else bisect_left(stops, first + rows) + 1
    if begin < 2:
        chosen, before = files[:end], 0
    else:
        chosen, before = (files[0], *files[begin:end]), stops[begin - 1] - stops[0]
    source = side.source
    frame = scan(chosen, source.format, partitions=source.partitions)
    few = msgspec.structs.replace(source, frame=frame, files=chosen)
    return Side(few, side.table, side.schema, side.naming), before


# Shuffle stage: consecutive rows of one table go into one file per bucket.
#
# One call takes one :class:`RowRange` and writes one folder, renamed when it is complete: a call
# whose worker died is repeated, a finished one is not. Ranges are independent. Rows are numbered
# within their range; the offset is known when all ranges are done, and is added when rows are
# read.


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
        sizes: bytes of each local file where the run was started, if another process reads them.
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
    sizes: tuple[int, ...] = ()


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


def load_summary(folder: str | Path, role: str, span: int) -> Shuffled:
    """Load the summary of a finished range."""
    home = range_folder(folder, role, span)
    names, fields = msgspec.json.decode(scratch.read(home / _SUMMARY), type=tuple[list[str], Any])
    frames = {
        name: pl.read_ipc(scratch.readable(home / f"{_SUMMARY}-{at}"))
        for at, name in enumerate(names)
    }
    ahead, keys = frames.pop(_AHEAD, None), frames.pop(_KEYS, None)
    return Shuffled(pairs=frames, keys=None if keys is None else keys[_KEYS], ahead=ahead, **fields)


def _write_summary(folder: Path, summary: Shuffled) -> None:
    """Write the summary of a range: numbers, and frames in separate files."""
    frames = dict(summary.pairs)
    if summary.keys is not None:
        frames[_KEYS] = summary.keys.alias(_KEYS).to_frame()
    if summary.ahead is not None:
        frames[_AHEAD] = summary.ahead
    for at, frame in enumerate(frames.values()):
        frame.write_ipc(folder / f"{_SUMMARY}-{at}")
    fields = {"rows": summary.rows, "buckets": summary.buckets}
    (folder / _SUMMARY).write_bytes(msgspec.json.encode((list(frames), fields)))


_SUMMARY = "told"
_KEYS, _AHEAD = "label keys", "ahead"  # in addition to the sides of tables


def shuffle_range(folder: str, span: RowRange, shuffle: bytes) -> None:
    """Shuffle the rows of one range, in any process; see :func:`shuffle_rows`.

    Args:
        shuffle: the table, pickled. Passed with the call instead of a file, since it may contain
            credentials of an object store.

    Raises:
        ReadError: the files cannot be read here, or are others.
    """
    check_worker(folder)
    table: Shuffle = pickle.loads(shuffle)
    _check_files(table.side.source.files, table.sizes)
    shuffle_rows(folder, span, table)


_VERSIONS = "versions.json"

VERSIONS = {"evalengine": __version__, "polars": pl.__version__, "numpy": np.__version__}
"""Versions of this process."""

_AGREEING = {"evalengine": "minor", "polars": "major", "numpy": "major"}
"""Part of each version up to which workers and the starting process must agree."""


def check_versions(theirs: Mapping[str, str]) -> None:
    """Check that this process may work on a run that was started elsewhere.

    Args:
        theirs: :data:`VERSIONS` of the process that started it.

    Raises:
        ExecutorError: another minor version of evalengine, or major version of Polars or NumPy.
    """
    for name, part in _AGREEING.items():
        ours, n = VERSIONS[name], 2 if part == "minor" else 1
        if ours.split(".")[:n] != theirs[name].split(".")[:n]:
            required = ".".join(theirs[name].split(".")[:n])
            raise ExecutorError(
                f"worker {socket.gethostname()} has {name} {ours}, and the process that started"
                f" the run {theirs[name]}. Their {part} versions must be equal: install {name}"
                f" {required}.* there.",
                code="versions_differ",
                package=name,
                versions=[ours, theirs[name]],
            )


@lru_cache(maxsize=2)
def check_worker(folder: str) -> None:
    """Check that this process can work on a run.

    Raises:
        ScratchError: it does not see the run's folder.
        ExecutorError: its versions differ too much from those of the process that started the run.
    """
    try:
        theirs = json.loads(scratch.read(Path(folder) / _VERSIONS))
    except FileNotFoundError as error:
        place, remedy = (
            folder,
            f"on a file system that all workers have: {option('scratch', '/mnt/common')}",
        )
        if scratch.local(folder) is None:
            place, remedy = error.filename, "in a store that has one address for all workers"
        raise ScratchError(
            f"{place}: worker {socket.gethostname()} does not see this place. Name one {remedy}.",
            code="scratch_unseen",
            worker=socket.gethostname(),
        ) from error
    check_versions(theirs)


def shuffle_rows(folder: str | Path, span: RowRange, shuffle: Shuffle) -> None:
    """Shuffle the rows of one range.

    Args:
        folder: the scratch folder, with a folder ``buckets``.

    Raises:
        ReadError: a file that cannot be read; names it.
    """
    if not scratch.exists(range_folder(folder, shuffle.role, span[0]) / _SUMMARY):
        _write_range(folder, span, shuffle, _batches_of(shuffle, span))


def shuffle_here(folder: Path, shuffle: Shuffle, most: int | None) -> list[RowRange]:
    """Shuffle all rows of a table in this process; return the ranges.

    Args:
        most: approximate bytes of a range; None for a single one.
    """
    ranges: list[RowRange] = []
    batches, first, ended = _batches_of(shuffle, (0, 0, None)), 0, False

    def some() -> Iterator[pl.DataFrame]:
        nonlocal ended
        size = 0.0
        for rows in batches:
            yield rows
            size += rows.estimated_size()
            if most is not None and size > most:
                return
        ended = True

    while not ended:
        rows = _write_range(folder, (len(ranges), first, None), shuffle, some())
        ranges.append((len(ranges), first, rows))
        first += rows
    return ranges


def _write_range(
    folder: str | Path, span: RowRange, shuffle: Shuffle, rows: Iterable[pl.DataFrame]
) -> int:
    """Write the folder of a range, and return its number of rows."""
    target = range_folder(folder, shuffle.role, span[0])
    with ExitStack() as stack:
        draft = fresh_name(target)
        if scratch.local(str(target)) is None:
            draft = stack.enter_context(scratch_folder(None, 0)) / draft.name
        draft.mkdir()
        summary = _written(draft, span[1], shuffle, rows)
        _write_summary(draft, summary)
        scratch.put_folder(draft, target, _SUMMARY)
    return summary.rows


def _written(draft: Path, first: int, shuffle: Shuffle, blocks: Iterable[pl.DataFrame]) -> Shuffled:
    """Write the files of a range, whose first row in the table is ``first``."""
    role, side, n = shuffle.role, shuffle.side, shuffle.n
    summary = Shuffled(0, {}, None, [])
    with ExitStack() as stack:
        files = BucketFiles(stack, lambda bucket: draft / f"{bucket}.arrow")
        unique = {
            name: BucketFiles(stack, partial(values_file, draft, name))
            for name in unique_columns(side)
        }
        kinds: dict[str, Any] = {}
        for batch in blocks:
            rows = batch.with_columns(pl.col(c).cast(t) for c, t in shuffle.targets.items())
            here = np.arange(summary.rows, summary.rows + rows.height, dtype=np.int64)
            order: Array | slice
            if side.table.datum in rows.columns:
                ids = rows[side.table.datum]
                buckets = dealt(ids, n)
                start, order = by_bucket(hashes_of(ids) if buckets is None else buckets, n)
            else:  # each row is a datum, and rows are sorted by bucket
                order = slice(None)
                begin = first + summary.rows
                start = np.clip(np.arange(n + 1) * shuffle.per - begin, 0, rows.height)
                start[n] = rows.height
            for name in unique.keys() & {*rows.columns}:
                write_values(unique[name], rows[name], here, -(-n // PER_FILE))
            number = here.astype(np.uint32) if here.size and here[-1] < _WIDE_ROWS else here
            numbered = _narrowed(rows, kinds).with_columns(pl.Series(ROW, number))
            files.write(_as_written(numbered[order]), start)
            _add_rows(summary, role, side, rows, shuffle.ahead)
    summary.buckets = sorted(files.open)
    return summary


def _add_rows(
    summary: Shuffled, role: str, side: Side, rows: pl.DataFrame, ahead: tuple[str, ...]
) -> None:
    """Add rows to a summary."""
    if role == TABLE or "label_value" in rows.columns:
        summary.pairs = distinct_pairs([summary.pairs, both_sides.side_pairs({role: rows})])
    if side.naming.wide and "label_key" in rows.columns:
        some = rows["label_key"].drop_nulls().cast(pl.String)
        summary.keys = (some if summary.keys is None else summary.keys.append(some)).unique()
    if ahead:
        few = rows.select(name for name in ahead if name in rows.columns).unique()
        summary.ahead = few if summary.ahead is None else pl.concat([summary.ahead, few]).unique()
    summary.rows += rows.height


WIDE = (pl.Int64, pl.UInt64, pl.Float64)
"""Dtypes of columns that are narrower on disk, if no value changes."""


def _narrowed(rows: pl.DataFrame, kinds: dict[str, Any]) -> pl.DataFrame:
    """Cast columns to the narrowest dtypes that keep the values of all batches so far.

    Args:
        kinds: column to dtype so far, which becomes wider here if need be.
    """
    for column in rows.iter_columns():
        kind = kinds.get(column.name)
        if column.dtype not in WIDE or (kind is not None and kind.itemsize == _WIDTH):
            continue
        values = column.drop_nulls().to_numpy()
        if values.size:
            narrow = narrowest(values)
            kinds[column.name] = narrow if kind is None else np.promote_types(kind, narrow)
    return rows.cast(
        {
            name: pl.Series(np.empty(0, kind)).dtype
            for name, kind in kinds.items()
            if kind.itemsize < _WIDTH
        }
    )


_WIDTH = 8  # bytes of WIDE dtypes
_WIDE_ROWS = 1 << 32  # of one range, from which row numbers have 64 bits


def _as_written(rows: pl.DataFrame) -> Any:
    """The Arrow table of a batch.

    Each batch has another dictionary, and a column of an Arrow file can have only one. These are
    labels and slices, whose values become text anyway.
    """
    kinds = rows.schema.items()
    return rows.with_columns(
        pl.col(name).cast(pl.String) for name, dtype in kinds if dtype == pl.Categorical
    ).to_arrow()


def _batches_of(shuffle: Shuffle, span: RowRange) -> Iterator[pl.DataFrame]:
    """The rows of a range, in order, some at a time."""
    for part in _parts(shuffle, span):
        yield from batches(shuffle.role, part, shuffle.where, shuffle.plan, shuffle.width)


def distinct_pairs(frame: Sequence[dict[str, pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """The distinct pairs of all, by side, sorted."""
    sides = dict.fromkeys(side for pairs in frame for side in pairs)
    return {
        side: pl.concat(
            [pairs[side].drop_nulls() for pairs in frame if side in pairs], how="vertical_relaxed"
        )
        .unique()
        .sort(pl.all())
        for side in sides
    }


def of_range(table: Shuffle, stops: Sequence[int] | None, span: RowRange) -> Shuffle:
    """Restrict a table to the files of one range.

    Args:
        stops: cumulative number of rows at the end of each file; None to keep all files.
    """
    side, before = own_files(table.side, stops, *span[1:])
    return msgspec.structs.replace(table, side=side, before=before)


def _parts(shuffle: Shuffle, span: RowRange) -> Iterator[Side]:
    """The table with some of a range's rows at a time, one query each."""
    _, first, rows = span
    last = None if rows is None else first + rows
    inside = [cut for cut in shuffle.cuts if cut > first and (last is None or cut < last)]
    if not inside:
        yield _part(shuffle, span)
        return
    file_stops = row_stops(shuffle.side.source.files)
    for at, end in pairwise([first, *inside, last]):
        assert at is not None
        many = None if end is None else end - at
        side, before = own_files(shuffle.side, file_stops, at - shuffle.before, many)
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
            raise  # the fault is in an output file
        raise explain(side.source, error) from error


def read_rows(files: Sequence[Path], before: Sequence[int]) -> pl.DataFrame:
    """Read the rows of a bucket, numbered as in their table.

    Not memory-mapped: mapped pages count as memory, too. Columns may be narrower than in the table.

    Args:
        files: those of each range that has rows of it, in order; at least one.
    """
    import pyarrow as pa  # here, since every run asks this package whether it is needed

    by_file = [read_tables(path) for path in files]
    tables = [table for of_file in by_file for table in of_file]
    rows = pl.DataFrame(pa.concat_tables(tables, promote_options="permissive"))
    rows.columns = tables[0].column_names  # a column without a name would be given one
    if not any(before):
        return rows
    offsets = np.repeat(
        np.asarray(before, np.int64), [sum(one.num_rows for one in own) for own in by_file]
    )
    return rows.with_columns(pl.col(ROW) + pl.Series(offsets))


# Shuffle: all rows of a datum, on either side, go to one bucket.
#
# Every table is read once, in ranges of consecutive rows, each a :class:`RowRange`.
# Each range reports its number of rows and its
# labels; merged, these are the facts about the whole that buckets need.

PER_BUCKET = 4  # ranges per bucket, so that an uneven one does not delay the rest
MOST_FILES = 1 << 15  # of rows dealt out: ranges of all tables by buckets, about


class Whole(msgspec.Struct):
    """Facts about the whole input after the shuffle.

    Attributes:
        heights: role to number of rows after filtering.
        before: role to number of rows before filtering.
        blanks: role to a frame of its columns without rows.
        pairs: side to the distinct (label_key, label_value) of its rows, score columns under every
            key; also of the declared ones.
        labels: declared labels, or None.
        begins: role to the number of rows before each of its ranges.
        filled: role to the buckets with rows of each of its ranges.
        ahead: distinct combinations of the requested columns.
    """

    n: int
    heights: dict[str, int]
    before: dict[str, int]
    blanks: dict[str, pl.DataFrame]
    labels: pl.DataFrame | None
    notes: list[Note]
    begins: dict[str, tuple[int, ...]]
    filled: dict[str, list[frozenset[int]]]
    pairs: dict[str, pl.DataFrame] = msgspec.field(default_factory=dict)
    ahead: pl.DataFrame = msgspec.field(default_factory=pl.DataFrame)

    @property
    def all_labels(self) -> pl.DataFrame | None:
        """Labels of all sides; None for tasks without labels."""
        of_rows = [frame for side, frame in self.pairs.items() if side != LABELS]
        return pl.concat(of_rows, how="vertical_relaxed").unique() if of_rows else None

    def rows_of_bucket(self, folder: Path, role: str, bucket: int) -> tuple[list[Path], list[int]]:
        """Return files of the rows of one table in a bucket, and the number of rows before each
        range.
        """
        ranges = [span for span, some in enumerate(self.filled[role]) if bucket in some]
        files = [bucket_file(folder, role, span, bucket) for span in ranges]
        return files, [self.begins[role][span] for span in ranges]

    def read(self, folder: Path, role: str, bucket: int) -> pl.DataFrame:
        """Read the rows of one table in a bucket."""
        files, before = self.rows_of_bucket(folder, role, bucket)
        blank = self.blanks[role]
        wide = {name: dtype for name, dtype in blank.schema.items() if dtype in WIDE}
        return read_rows(files, before).cast(wide) if files else blank  # type: ignore[arg-type]

    def read_left(self, folder: Path, role: str, bucket: int, ready: Prepared) -> pl.DataFrame:
        """Read the rows of one table in a bucket, without datums that a condition removes."""
        rows = self.read(folder, role, bucket)
        for other, condition in ready.where.items():
            if condition.whole_datums and other != role:
                left = self.read(folder, other, bucket)[ready.sides[other].table.datum].unique()
                datum = pl.col(ready.sides[role].table.datum)
                rows = rows.filter(datum.is_in(left.implode()))
        return rows

    def fullest(self, folder: Path) -> int:
        """Bytes of the rows of the largest bucket."""
        scratch.list_sizes(folder / "buckets")
        return max(
            sum(
                scratch.size(path)
                for role in self.filled
                for path in self.rows_of_bucket(folder, role, bucket)[0]
            )
            for bucket in range(self.n)
        )


def first_rows(ready: Prepared, rows: int = 1000) -> dict[str, pl.DataFrame]:
    """The first rows of every table but that of labels."""
    return {
        role: _read(ready, role, rows_of(role, side, ready.where, ready.plan).head(rows))
        for role, side in ready.sides.items()
        if role != LABELS
    }


def heights_of(ready: Prepared) -> dict[str, int]:
    """Rows of every table but that of labels, conditions not applied."""
    return {
        role: int(_read(ready, role, side.source.frame.select(pl.len())).item())
        for role, side in ready.sides.items()
        if role != LABELS
    }


class Keys(msgspec.Struct):
    """Sizes that decide about memory, counted in the columns of keys alone.

    Attributes:
        labels: distinct pairs of label key and label value, about.
        groups: distinct values of all slice columns, about.
        fullest: bytes of the rows of the largest datum, at most.
    """

    labels: int
    groups: int
    fullest: int


def keys_of(ready: Prepared, heads: Mapping[str, pl.DataFrame]) -> Keys | None:
    """Count the keys of all rows in memory of a fixed size; None if that means parsing text.

    Equal keys have equal hashes. A table of flags per key column has a flag for every hash of a
    value (linear counting); a table of sums has the bytes of the rows of datums by hash.
    """
    if any(side.source.format in _TEXT for side in ready.sides.values()):
        return None
    keys = {**ready.plan.parts, _LABELS: ["label_key", "label_value"]}
    flags: dict[tuple[str, str], Array] = {}
    sums = np.zeros(_SUMS)
    for role, head in heads.items():
        side = ready.sides[role]
        here = {
            key: [name for name in names if name in head.columns] for key, names in keys.items()
        }
        here[_DATUM] = [name for name in (side.table.datum,) if name in head.columns]
        exprs = [
            pl.sum_horizontal(_hash(name, head.schema[name]) for name in names).alias(key)
            for key, names in here.items()
            if names
        ]
        width = 1.05 * _as_written(head).nbytes / max(1, head.height) + _ROW
        query = rows_of(role, side, ready.where, ready.plan).select(exprs)
        try:
            for batch in query.collect_batches(chunk_size=tuning().shuffle_rows):
                for key, column in batch.to_dict().items():
                    if key == _DATUM:
                        cells = (column.to_numpy() & np.uint64(_SUMS - 1)).view(np.int64)
                        sums += width * np.bincount(cells, minlength=_SUMS)
                    else:
                        kind = (key, repr([head.schema[name] for name in here[key]]))
                        if kind not in flags:
                            flags[kind] = np.zeros(_FLAGS, np.bool_)
                        flags[kind][column.to_numpy() & np.uint64(_FLAGS - 1)] = True
        except READ_FAILURES as error:
            raise explain(side.source, error) from error
    counts = dict.fromkeys(keys, 0)
    for (key, _), key_flags in flags.items():
        counts[key] = max(counts[key], _distinct(key_flags))
    labels = counts.pop(_LABELS)
    for side in ready.sides.values():
        if side.naming.wide:
            labels = max(labels, len(side.naming.labels))
    return Keys(labels, sum(counts.values()), int(sums.max()))


def _hash(name: str, dtype: pl.DataType) -> pl.Expr:
    """Hash of a key, equal for integers of all widths."""
    column = pl.col(name).cast(pl.Int64 if dtype.is_integer() else pl.String, strict=False)
    return column.hash(len(name)).cast(pl.UInt64)


def _distinct(flags: Array) -> int:
    """Distinct values, from the share of flags that are not set, to three digits."""
    free = max(1, flags.size - int(np.count_nonzero(flags)))
    return int(float(f"{flags.size * np.log(flags.size / free):.3g}"))


_TEXT = ("csv", "ndjson")
_LABELS, _DATUM = "label key and label value", "datum id"
_FLAGS, _SUMS = 1 << 22, 1 << 16  # powers of 2
_ROW = 8  # bytes of a row's number


def _read(ready: Prepared, role: str, query: pl.LazyFrame) -> pl.DataFrame:
    try:
        return query.collect()
    except READ_FAILURES as error:
        raise explain(ready.sides[role].source, error) from error


def split(
    ready: Prepared,
    heads: dict[str, pl.DataFrame],
    heights: dict[str, int],
    folder: Path,
    n: int,
    pool: Pool,
    ahead: tuple[str, ...] = (),
    *,
    client_reads: bool = False,
    most: int | None = None,
    mapped: bool = False,
) -> Whole:
    """Shuffle all rows: those of Parquet files on workers that can read them, others here.

    Args:
        heads: result of :func:`first_rows`.
        heights: result of :func:`heights_of`.
        ahead: columns of a single table whose distinct combinations are collected.
        client_reads: this process reads all tables.
        most: approximate bytes of a range; None for any number.
        mapped: a label map may unify integers and strings.

    Raises:
        InputError: ids or labels that are integers on one side and strings on the other.
        ReadError: a file that cannot be read; names it.
    """
    scratch.make_folder(folder / "buckets")
    scratch.write(folder / _VERSIONS, json.dumps(VERSIONS).encode())
    targets, notes = common_dtypes(ready, heads, mapped=mapped)
    by_workers, unreadable = _readable(ready, pool, client_reads)
    notes += unreadable
    ranges = ranges_of_tables(ready, heads, heights, n, pool.least, by_workers, most)
    calls: list[tuple[str, RowRange, bytes]] = []
    roles: list[str] = []
    for role in heads:
        per = -(-max(1, heights[role]) // n)
        side = ready.sides[role]
        first_columns = ahead if role == TABLE else ()
        width = int(row_bytes(heads[role]))
        table = Shuffle(
            role,
            side,
            ready.where,
            ready.plan,
            targets[role],
            n,
            per,
            cuts=query_starts(side, heads[role], heights[role]),
            ahead=first_columns,
            width=width,
        )
        if role in by_workers:
            file_stops = row_stops(side.source.files) if len(ranges[role]) > 1 else None
            for span in ranges[role]:
                part = of_range(table, file_stops, span)
                part.sizes = tuple(map(os.path.getsize, part.side.source.files))
                calls.append((str(folder), span, pickle.dumps(part)))
                roles.append(role)
        else:
            ranges[role] = shuffle_here(folder, table, most)
    unread: dict[str, list[str]] = {}
    for role, call, failure in zip(
        roles, calls, pool.run(shuffle_range, calls) if calls else (), strict=True
    ):
        if isinstance(failure, ReadError):  # this process can read it, or raises the same
            shuffle_range(*call)
            unread.setdefault(role, []).append(str(failure))
        elif failure is not None:
            raise failure
    for role, reasons in unread.items():
        notes.append(
            Note(
                "client_reads",
                f"{role.replace('_', ' ')}: this process read {len(reasons)} of"
                f" {len(ranges[role])} ranges of rows, because a worker could not:"
                f" {reasons[0]}",
                facts={"side": role, "count": len(reasons)},
            )
        )
    summaries = {
        role: [load_summary(folder, role, span) for span, *_ in ranges[role]] for role in heads
    }
    blanks = {}
    for role in heads:
        blank = heads[role].clear().cast(targets[role])  # type: ignore[arg-type]
        blanks[role] = blank.with_columns(pl.lit(0, dtype=pl.Int64).alias(ROW).head(0))
    labels, declared = None, ready.sides.get(LABELS)
    if declared is not None:
        labels = _read(ready, LABELS, rows_of(LABELS, declared, ready.where, ready.plan))
    whole = Whole(
        n=n,
        heights={role: sum(one.rows for one in parts) for role, parts in summaries.items()},
        before={role: heights[role] for role in ready.where},
        blanks=blanks,
        labels=labels,
        notes=notes,
        begins={
            role: (0, *accumulate(one.rows for one in parts[:-1]))
            for role, parts in summaries.items()
        },
        filled={
            role: [frozenset(one.buckets) for one in parts] for role, parts in summaries.items()
        },
    )
    if any(condition.whole_datums for condition in ready.where.values()):
        for role, bucket in product(heads, range(n)):
            rows = whole.read_left(folder, role, bucket, ready)
            summaries[role] = summaries[role] if bucket else [Shuffled(0, {}, None, [])]
            _add_rows(summaries[role][0], role, ready.sides[role], rows, ahead)
    key = ["label_key", "label_value"]
    pairs = distinct_pairs([one.pairs for parts in summaries.values() for one in parts])
    frames = [frame.select(set(ahead) & {*frame.columns}) for frame in blanks.values()]
    if ahead and not any(frame.columns for frame in frames):  # columns decide instead of rows
        sliced = [expr.meta.output_name() for expr in ready.plan.extra.get(TABLE, ())]
        frames.append(blanks[TABLE].drop(*sliced, ROW))
    frames += [one.ahead for parts in summaries.values() for one in parts if one.ahead is not None]
    keys = [one.keys for parts in summaries.values() for one in parts if one.keys is not None]
    pairs |= of_score_columns(ready, pairs, pl.concat(keys).unique() if keys else None)
    if labels is not None and pairs:
        pairs[LABELS] = both_sides.label_pairs(labels)
    fitted = {side: fit_integers(frame) for side, frame in pairs.items()}
    if all(pl.UInt64 not in frame.dtypes for frame in fitted.values()):
        pairs = fitted  # as in memory; all sides, since Polars has no integers for both kinds
    whole.pairs = {side: frame.sort(key) for side, frame in pairs.items()}
    whole.ahead = pl.concat(frames, how="diagonal").unique()
    return whole


def of_score_columns(
    ready: Prepared, pairs: dict[str, pl.DataFrame], keys: pl.Series | None
) -> dict[str, pl.DataFrame]:
    """Add the labels of score columns as predictions, and return them in the dtype of the true
    ones.

    A bucket knows only the label keys of its rows: with different labels its counts could not be
    added.

    Args:
        pairs: side to the labels of its rows.
        keys: the distinct label keys of the table with score columns, or None.
    """
    names = next((side.naming.labels for side in ready.sides.values() if side.naming.wide), None)
    if names is None or GROUND_TRUTHS not in pairs:
        return {}
    true = pairs[GROUND_TRUTHS]["label_value"].unique().sort()
    labels = recognise.label_series(names, true.dtype if len(true) else None, true)
    frames = {GROUND_TRUTHS: pairs[GROUND_TRUTHS], both_sides.SCORES: labels.to_frame()}
    both_sides.same_kind(frames, both_sides.LABEL_COLUMNS, {})
    label_keys = pl.Series([DEFAULT_LABEL_KEY]) if keys is None else keys
    scored = label_keys.alias("label_key").to_frame().join(frames[both_sides.SCORES], how="cross")
    if PREDICTIONS in pairs:
        scored = pl.concat([pairs[PREDICTIONS], scored], how="vertical_relaxed").unique()
    return {GROUND_TRUTHS: frames[GROUND_TRUTHS], PREDICTIONS: scored}


def ranges_of_tables(
    ready: Prepared,
    heads: Mapping[str, pl.DataFrame],
    heights: Mapping[str, int],
    n: int,
    least: int,
    by_workers: Sequence[str],
    most: int | None,
) -> dict[str, list[RowRange]]:
    """Return the ranges of rows in which each table is shuffled.

    Args:
        heights: role to number of rows before filtering.
        least: minimum number of buckets.
        by_workers: the tables that workers shuffle.
        most: approximate bytes of a range; None for any number.

    Returns:
        role to its ranges, in row order; a single one if this process shuffles the table, or if the
        bucket of a row depends on the number of filtered rows before it.
    """
    size = rows_of_range(sum(heights[role] for role in heads), n, least)
    result: dict[str, list[RowRange]] = {}
    for role, head in heads.items():
        side = ready.sides[role]
        counted = side.table.datum not in head.columns and role in ready.where
        if counted or role not in by_workers:
            result[role] = [(0, 0, None)]
            continue
        rows = size
        if most is not None:
            width = row_bytes(head) + _ROW
            rows = min(size, max(tuning().range_rows or tuning().shuffle_rows, int(most / width)))
        cuts = _cuts(side.source.files, heights[role], rows)
        stops = [*cuts[1:], None]
        result[role] = [
            (span, first, None if end is None else end - first)
            for span, (first, end) in enumerate(zip(cuts, stops, strict=True))
        ]
    return result


def rows_of_range(rows: int, n: int, least: int) -> int:
    """Return the approximate number of rows per range."""
    sizes = tuning()
    if sizes.range_rows is not None:
        return sizes.range_rows
    return max(sizes.shuffle_rows, -(-rows // (PER_BUCKET * least)), rows * n // MOST_FILES)


def query_starts(side: Side, head: pl.DataFrame, height: int) -> tuple[int, ...]:
    """Return rows of local Parquet files at which a new query begins.

    Polars decodes about twenty row groups ahead, which may exceed a bucket.
    """
    files = side.source.files
    if side.source.format != "parquet" or not files:
        return ()
    each = row_bytes(head) + 1
    return tuple(_cuts(files, height, max(1, int(tuning().query_bytes / each)))[1:])


def _readable(ready: Prepared, pool: Pool, client_reads: bool) -> tuple[list[str], list[Note]]:
    """Return the tables that workers shuffle, and notes on those that they cannot read.

    Parquet allows reading rows without those before them. Workers on other machines are asked
    whether they see the same files.
    """
    readable: list[str] = []
    notes: list[Note] = []
    for role, side in ready.sides.items():
        if role == LABELS or client_reads or not pool.reads_tables:
            continue
        if side.source.format != "parquet":
            continue
        if side.source.files:
            side.source = _absolute(side.source)
        sizes = [os.path.getsize(file) for file in side.source.files]
        refusal = getattr(pool, "refusal", None)  # pools of plug-ins may have none
        reason = (
            refusal(open_table, (pickle.dumps(side.source), sizes, VERSIONS)) if refusal else ""
        )
        if not reason:
            readable.append(role)
            continue
        notes.append(
            Note(
                "client_reads",
                f"{role.replace('_', ' ')}: this process reads {side.source.description}, which is"
                f" slower, because a worker cannot. Worker {reason} Give a path that all"
                f" workers see. {option('client_reads', True)} does not ask them.",
                facts={"side": role},
            )
        )
    return readable, notes


def _absolute(source: Source) -> Source:
    """Return a table of Parquet files by absolute paths: workers have other working folders."""
    files = tuple(os.path.abspath(file) for file in source.files)
    if files == source.files:
        return source
    frame = scan(files, source.format, partitions=source.partitions)
    return msgspec.structs.replace(source, frame=frame, files=files)


def open_table(source: bytes, sizes: Sequence[int], versions: Mapping[str, str]) -> None:
    """Open a table on a worker.

    Args:
        source: the table, pickled; passed with the call, since it may contain credentials.
        sizes: bytes of each of its local files.
        versions: of the process that started the run.

    Raises:
        ReadError: it cannot be read, or is another file.
        ExecutorError: the versions here differ too much.
    """
    check_versions(versions)
    table: Source = pickle.loads(source)
    _check_files(table.files, sizes)
    try:
        table.frame.head(1).collect()
    except READ_FAILURES as error:
        raise explain(table, error) from error


def _check_files(files: Sequence[str], sizes: Sequence[int]) -> None:
    """Refuse files of this machine that are missing or have other sizes than where a run began."""
    for file, size in zip(files, sizes, strict=False):
        here = socket.gethostname()
        try:
            actual = os.path.getsize(file)
        except OSError as error:
            raise ReadError(
                f"{file}: {error.strerror or error} (on {here}).", code="file_missing"
            ) from error
        if actual != size:
            raise ReadError(
                f"{file}: has {actual:,} bytes on {here}, and {size:,} where the run was started.",
                code="file_differs",
            )


def _cuts(files: Sequence[str], height: int, size: int) -> list[int]:
    """Return rows at which ranges of about ``size`` rows begin; at row group boundaries in local
    files.

    A row group is decoded as a whole, so sharing one between ranges doubles its cost. Boundaries in
    small files are ignored: each range then reads at most one more row group.
    """
    cuts = list(range(0, max(height, 1), size))
    if len(cuts) == 1 or not files or height // len(files) < size // 8:
        return cuts
    import pyarrow as pa  # only if tables are large
    import pyarrow.parquet as pq

    stops, at = [0], 0
    for file in files:
        try:
            footer = pq.read_metadata(file)
        except (pa.ArrowException, OSError):  # unknown types; other faults are reported below
            return cuts
        for group in range(footer.num_row_groups):
            at += footer.row_group(group).num_rows
            stops.append(at)
    bounds = np.array(stops)
    nearest = {int(bounds[np.abs(bounds - cut).argmin()]) for cut in cuts}
    return sorted(nearest - {height})


def common_dtypes(
    ready: Prepared, heads: Mapping[str, pl.DataFrame], *, mapped: bool = False
) -> tuple[dict[str, dict[str, pl.DataType]], list[Note]]:
    """Return the common dtypes of ids and labels of all tables if they change, and notes on them.

    Args:
        heads: result of :func:`first_rows`.
        mapped: a label map may unify integers and strings.

    Raises:
        InputError: ids or labels that are integers on one side and strings on the other.
    """
    text = {role: side.source.text for role, side in ready.sides.items()}
    named = {
        role: head.rename({ready.sides[role].table.datum: "datum_id"}, strict=False)
        for role, head in heads.items()
    }
    before = {role: dict(frame.schema) for role, frame in named.items()}
    common = {
        column.name
        for role in named
        for column in ready.sides[role].table.columns
        if column.name in ready.sides[role].table.either and column.kind == "id"
    }
    notes: list[Note] = []
    for names in (("datum_id",), *((name,) for name in sorted(common)), both_sides.LABEL_COLUMNS):
        notes += both_sides.same_kind(named, names, text)
        if names != both_sides.LABEL_COLUMNS or not mapped:
            both_sides.check_kinds(named, names)
    targets: dict[str, dict[str, pl.DataType]] = {}
    for role, frame in named.items():
        datum_column = ready.sides[role].table.datum
        targets[role] = {
            datum_column if name == "datum_id" else name: dtype
            for name, dtype in frame.schema.items()
            if dtype != before[role][name]
        }
    return targets, notes
