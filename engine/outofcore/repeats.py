"""Uniqueness of values across all buckets.

A bucket contains the rows of its datums, so an annotation id that two datums have may be unique in
every bucket. During the shuffle such values are also partitioned by hash, so that equal ones are in
the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..atomic import whole_file
from ..ingest.checks import Check
from ..ingest.collecting import Prepared, Side
from ..ingest.distinct import has_repeats
from ..ingest.problems import Problem
from ..ingest.shapes import SHAPES
from ..kernels.datum_hash import by_bucket
from ..schemas.arrays import Array
from ..schemas.contract import LABELS, ROW

PER_FILE = 4  # buckets for each file of values, of which a row has two numbers and not a dozen
_SHOWN = 3


class Repeats(msgspec.Struct):
    """Values that occur in several rows."""

    values: int
    rows: int
    first: list[int]


def once_only(side: Side) -> list[str]:
    """Return columns with unique values, except the one that rows are shuffled by."""
    names = [column.name for column in side.table.columns if column.unique]
    return [name for name in names if name != side.table.datum]


def unheld(side: Side) -> Side:
    """Return the table without the uniqueness checks that buckets cannot make."""
    names = once_only(side)

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


class Writer:
    """Shuffle the values of one range of a table's rows."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        n: int,
        hashes: Callable[[pl.Series], Array],
    ) -> None:
        self._folder, self._names, self._n = folder, names, n
        self._hashes = hashes
        self._open: dict[Path, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def write(self, rows: pl.DataFrame) -> None:
        """Take a batch, rows numbered."""
        import pyarrow as pa  # only in a shuffle: no run in memory needs it

        for name in self._names:
            if name not in rows.columns:
                continue
            known = rows.select(name, ROW).drop_nulls(name)
            start, order = by_bucket(self._hashes(known[name]), self._n)
            sorted_rows = known[order].to_arrow()
            for n in np.flatnonzero(np.diff(start)).tolist():
                path = values_file(self._folder, name, n)
                if path not in self._open:
                    file = self._stack.enter_context(pa.OSFile(str(path), "wb"))
                    self._open[path] = self._stack.enter_context(
                        pa.ipc.new_file(file, sorted_rows.schema)
                    )
                few = sorted_rows.slice(int(start[n]), int(start[n + 1] - start[n]))
                self._open[path].write_table(few)


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
    if target.exists():
        return
    files = [(values_file(Path(home), column, n), before) for home, before in ranges]
    # Not every range has values of every file: those that have none never had them, or the twin of
    # this call has deleted them, which it does once the result is there.
    files = [(path, before) for path, before in files if path.exists()]
    try:
        parts = [_numbered(path, before) for path, before in files]
    except FileNotFoundError:
        if target.exists():
            return
        raise
    if target.exists():  # some may have gone before they were looked for
        return
    told = Repeats(0, 0, [])
    rows = pl.concat(parts) if parts else None
    del parts
    if rows is not None and has_repeats(rows[column]):
        some = rows.filter(pl.col(column).is_duplicated())
        first = some[ROW].bottom_k(_SHOWN).sort().to_list()
        told = Repeats(some[column].n_unique(), some.height, first)
    with whole_file(target) as file:
        file.write(msgspec.json.encode(told))
    for path, _ in files:
        path.unlink(missing_ok=True)


def _numbered(path: Path, before: int) -> pl.DataFrame:
    """Return values of one range with their row numbers in the whole table.

    Raises:
        FileNotFoundError: another process has deleted them.
    """
    import pyarrow as pa

    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        return pl.DataFrame(reader.read_all()).with_columns(pl.col(ROW) + before)


def repeated(
    folder: Path,
    ready: Prepared,
    heights: Mapping[str, int],
    rows_at: Callable[[str, Sequence[int]], pl.DataFrame],
) -> list[Problem]:
    """Return the results of :func:`find_repeats` as problems, worded as in memory.

    Args:
        heights: role to number of rows, of the shuffled tables.
        rows_at: returns the rows of a table by their numbers, numbered.
    """
    problems: list[Problem] = []
    for role, side in ready.sides.items():
        if role == LABELS or role not in heights:
            continue
        for name in once_only(side):
            files = sorted((folder / "repeats").glob(f"{role}-{name}-*.json"))
            every = [msgspec.json.decode(file.read_bytes(), type=Repeats) for file in files]
            found = [one for one in every if one.rows]
            if not found:
                continue
            first = sorted(row for one in found for row in one.first)[:_SHOWN]
            check = Check(
                rows_at(role, first),
                side.table,
                SHAPES[side.table.shape],
                side.naming.recognised,
                filtered=role in ready.where,
            )
            check.tell_repeats(
                [name],
                rows=sum(one.rows for one in found),
                values=sum(one.values for one in found),
                shown=check.rows(pl.lit(True), [name]),
            )
            problems += check.problems
    return problems
