"""Which files a range of rows needs, of a table in many Parquet files.

A scan of all files opens every file before the rows that are wanted, only to count its rows:
thousands of small files would be opened for every range.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from ..ingest.collecting import Side
from ..ingest.sources.scanning import scan


def ends_of(files: Sequence[str]) -> list[int] | None:
    """How many rows there are up to the end of each file; None where footers do not tell.

    Args:
        files: local Parquet files, in the order of their rows.
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
    """A table with the files of some of its rows alone.

    The first file of the table stays the first: its columns and dtypes are those that all others
    are held against, and a file that has others is refused as it is among all.

    Args:
        side: the table, with all of its files.
        ends: as :func:`ends_of` tells them; None where all files stay.
        first: the first of the rows.
        rows: how many; None for all that follow.

    Returns:
        the table; how many rows of files that are left out stand before the rest.
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
