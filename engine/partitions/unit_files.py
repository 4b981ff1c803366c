"""The files of a unit: of a table in many Parquet files, those that its rows stand in.

A scan of all files opens each one that stands before the rows it is after, only to count its rows:
thousands of small files would be opened by every unit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from ..inputs.collecting import Side
from ..readers.tables import scan
from .dealing import Dealing, Unit


def ends_of(files: Sequence[str]) -> list[int] | None:
    """How many rows stand up to the end of each file; None where footers do not tell.

    Args:
        files: local Parquet files, in the order of their rows.
    """
    import pyarrow as pa  # only where tables are dealt out by workers
    import pyarrow.parquet as pq

    try:
        return [*accumulate(pq.read_metadata(file).num_rows for file in files)]
    except (pa.ArrowException, OSError):  # of a type that is not known there; or told by Polars
        return None


def of_unit(table: Dealing, ends: Sequence[int] | None, unit: Unit) -> Dealing:
    """A table with the files of one unit alone.

    The first file of the table stays the first: its columns and dtypes are those that all others
    are held against, and a file that has others is refused as it is among all.

    Args:
        table: what is known of the table, with all of its files.
        ends: as :func:`ends_of` tells them; None where all files are left to the unit.
        unit: which rows.
    """
    files = table.side.source.files
    _, first, rows = unit
    if ends is None or len(files) < 2:
        return table
    begin = bisect_right(ends, first)
    end = len(files) if rows is None else bisect_left(ends, first + rows) + 1
    if begin < 2:
        chosen, before = files[:end], 0
    else:
        chosen, before = (files[0], *files[begin:end]), ends[begin - 1] - ends[0]
    source = table.side.source
    few = msgspec.structs.replace(source, frame=scan(chosen, source.format), files=chosen)
    side = Side(few, table.side.table, table.side.schema, table.side.naming)
    return msgspec.structs.replace(table, side=side, before=before)
