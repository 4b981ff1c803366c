"""Selection of the Parquet files for a range of rows.

A scan of all files would open every file before the wanted rows just to count rows: thousands of
small files per range.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from ..ingest.collecting import Side
from ..ingest.sources.scanning import scan


def ends_of(files: Sequence[str]) -> list[int] | None:
    """Return the cumulative number of rows at the end of each file; None if footers are unreadable.

    Args:
        files: local Parquet files, in row order.
    """
    import pyarrow as pa  # only where workers read tables
    import pyarrow.parquet as pq

    try:
        return [*accumulate(pq.read_metadata(file).num_rows for file in files)]
    except (pa.ArrowException, OSError):  # of a type that is not known there; or told by Polars
        return None


def own_files(
    side: Side, ends: Sequence[int] | None, first: int, rows: int | None
) -> tuple[Side, int]:
    """Restrict a table to the files of some of its rows.

    The first file is always kept: its columns and dtypes are those that other files are checked
    against, so that a deviating file is refused as in a scan of all.

    Args:
        ends: result of :func:`ends_of`; None to keep all files.
        rows: number of rows; None for all that follow.

    Returns:
        the table; number of rows in omitted files before the rest.
    """
    files = side.source.files
    if ends is None or len(files) < 2:
        return side, 0
    begin = bisect_right(ends, first)
    end = len(files) if rows is None else bisect_left(ends, first + rows) + 1
    if begin < 2:
        chosen, before = files[:end], 0
    else:
        chosen, before = (files[0], *files[begin:end]), ends[begin - 1] - ends[0]
    source = side.source
    frame = scan(chosen, source.format, partitions=source.partitions)
    few = msgspec.structs.replace(source, frame=frame, files=chosen)
    return Side(few, side.table, side.schema, side.naming), before
