"""Arrow files of buckets, and the search for values that repeat across buckets.

A bucket contains the rows of its datums, so an annotation id that two datums have may be unique
in every bucket. During the shuffle such values are also partitioned by hash, so that equal ones
are in the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import scratch
from ..atomic import whole_file
from ..ingest.collecting import Prepared
from ..ingest.ids import has_repeats
from ..ingest.problems import Problem, count_of
from ..ingest.recognise import Side
from ..kernels.datums import by_bucket
from ..schemas.arrays import Array
from ..schemas.contract import LABELS, ROW
from ..schemas.errors import N_EXAMPLES
from ..schemas.wording import option
from ..tasks.encoding import hashes_of

PER_FILE = 4  # buckets for each file of values, of which a row has two numbers and not a dozen


class Repeats(msgspec.Struct):
    """Values that occur in several rows."""

    values: int
    rows: int
    first: list[int]


def unique_columns(side: Side) -> list[str]:
    """Return columns with unique values, except the one that rows are shuffled by."""
    names = [column.name for column in side.table.columns if column.unique]
    return [name for name in names if name != side.table.datum]


def without_unique_checks(side: Side) -> Side:
    """Return the table without the uniqueness checks that buckets cannot make."""
    names = unique_columns(side)

    def without(columns: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(
            msgspec.structs.replace(column, unique=False) if column.name in names else column
            for column in columns
        )

    table = msgspec.structs.replace(
        side.table, required=without(side.table.required), optional=without(side.table.optional)
    )
    return Side(side.source, table, side.schema, side.naming)


def values_file(folder: Path, column: str, n: int) -> Path:
    """File of some values of a column, with the numbers of their rows, of one range of rows."""
    return folder / f"{column}-{n}.values"


def repeats_file(folder: str | Path, role: str, column: str, n: int) -> Path:
    """Return the path of the result of :func:`find_repeats`."""
    return Path(folder) / "repeats" / f"{role}-{column}-{n}.json"


class BucketFiles:
    """One file of Arrow streams per bucket, opened when its first rows are written.

    Attributes:
        open: bucket to its file, its writer, and the writer's schema.
    """

    def __init__(self, stack: ExitStack, path_of: Callable[[int], Path]) -> None:
        self._stack, self._path_of = stack, path_of
        self.open: dict[int, tuple[Any, Any, Any]] = {}

    def write(self, rows: Any, start: Array) -> None:
        """Write the rows of an Arrow table, of which those of bucket b begin at ``start[b]``."""
        import pyarrow as pa  # only in a shuffle: no run in memory needs it

        for n in np.flatnonzero(np.diff(start)).tolist():
            if n not in self.open:
                file = self._stack.enter_context(pa.OSFile(str(self._path_of(n)), "wb"))
                self.open[n] = file, pa.ipc.new_stream(file, rows.schema), rows.schema
                self._stack.callback(self._close, n)
            file, writer, schema = self.open[n]
            if schema != rows.schema:  # columns became wider
                writer.close()
                writer = pa.ipc.new_stream(file, rows.schema)
                self.open[n] = file, writer, rows.schema
            writer.write_table(rows.slice(int(start[n]), int(start[n + 1] - start[n])))

    def _close(self, n: int) -> None:
        self.open[n][1].close()


def read_tables(path: Path) -> list[Any]:
    """Read the Arrow streams of a file."""
    import pyarrow as pa  # here, since every run asks this package whether it is needed

    tables = []
    with scratch.arrow_file(path) as file:
        while file.tell() < file.size():
            tables.append(pa.ipc.open_stream(file).read_all())
    return tables


def write_values(files: BucketFiles, values: pl.Series, rows: Array, n: int) -> None:
    """Shuffle values that must be unique to n files, with the numbers of their rows."""
    filled = pl.DataFrame([values, pl.Series(ROW, rows)]).drop_nulls(values.name)
    start, order = by_bucket(hashes_of(filled[values.name]), n)
    files.write(filled[order].to_arrow(), start)


def find_repeats(
    folder: str, role: str, column: str, n: int, ranges: Sequence[tuple[str, int]]
) -> None:
    """Write a file with the repeated values of one hash partition, if any.

    A worker presumed dead may be alive, and its call may run twice at once: the result is written
    before the values are deleted, so a process that finds them deleted also finds the result.

    Args:
        ranges: folder of each range of rows, and number of rows of the table before it.
    """
    target = repeats_file(folder, role, column, n)
    if scratch.exists(target):
        return
    files = [(values_file(Path(home), column, n), before) for home, before in ranges]
    # Not every range has values of every file: those that have none never had them, or the twin of
    # this call has deleted them, which it does once the result is there.
    files = [(path, before) for path, before in files if scratch.exists(path)]
    try:
        parts = [_numbered(path, before) for path, before in files]
    except FileNotFoundError:
        if scratch.exists(target):
            return
        raise
    if scratch.exists(target):  # some may have gone before they were looked for
        return
    repeats = Repeats(0, 0, [])
    rows = pl.concat(parts) if parts else None
    del parts
    if rows is not None and has_repeats(rows[column]):
        some = rows.filter(pl.col(column).is_duplicated())
        first = some[ROW].bottom_k(N_EXAMPLES).sort().to_list()
        repeats = Repeats(some[column].n_unique(), some.height, first)
    with whole_file(target) as file:
        file.write(msgspec.json.encode(repeats))
    scratch.delete(path for path, _ in files)


def _numbered(path: Path, before: int) -> pl.DataFrame:
    """Return values of one range with their row numbers in the whole table.

    Raises:
        FileNotFoundError: another process has deleted them.
    """
    return pl.concat(map(pl.DataFrame, read_tables(path))).with_columns(pl.col(ROW) + before)


def repeated(folder: Path, ready: Prepared, heights: Mapping[str, int], n: int) -> list[Problem]:
    """Return the results of :func:`find_repeats` as problems.

    Args:
        n: number of buckets.
        heights: role to number of rows, of the shuffled tables.
    """
    problems: list[Problem] = []
    for role, side in ready.sides.items():
        if role == LABELS or role not in heights:
            continue
        own = {name: mine for mine, name in side.naming.recognised.items()}
        for name in unique_columns(side):
            files = (repeats_file(folder, role, name, i) for i in range(-(-n // PER_FILE)))
            entries = [
                msgspec.json.decode(scratch.read(file), type=Repeats)
                for file in files
                if scratch.exists(file)
            ]
            rows, values = (sum(getattr(one, of) for one in entries) for of in ("rows", "values"))
            if not rows:
                continue
            first = sorted(row for one in entries for row in one.first)[:N_EXAMPLES]
            counted = f"rows that {option('where')} keeps" if role in ready.where else "rows"
            message = (
                f"column {own.get(name, name)!r}: {count_of(rows, 'row')} with a value in more than"
                f" one row, first ({counted} count from 0): rows {', '.join(map(str, first))}. Each"
                " may appear once; was a file read twice?"
            )
            problems.append(
                Problem(
                    side.table.side,
                    name,
                    message,
                    rows,
                    tuple((row, f"row {row}") for row in first),
                    kind="repeated_values",
                    facts={"values": values, "key": [name]},
                )
            )
    return problems
