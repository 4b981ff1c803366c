"""A bucket's tally of one row a datum as blocks of consecutive datums."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import planner
from ..tally import stored
from ..tasks.task import DatumFiles

BLANK = "blank"
PER_FILE = 8  # blocks of a file: to read one, the list of what is in its file is read
_BLOCKS = 4  # blocks of a bucket in a piece, so that few datums beside it are read with one

Block = tuple[Any, int, int]
"""First id, datums and bytes of consecutive datums of one bucket."""


def files_of(plan: planner.Plan) -> DatumFiles:
    """How tallies of a task that merges them in files are merged."""
    assert plan.does.datum_files is not None
    return plan.does.datum_files


def block_file(folder: str | Path, bucket: int, file: int) -> Path:
    """Where some consecutive blocks of a bucket stand."""
    return Path(folder) / "blocks" / f"{bucket}-{file}.tally"


def write_blocks(
    tallies: Any, plan: planner.Plan, buckets: int, room: int, folder: str | Path, bucket: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A bucket's tally written as blocks of consecutive datums, and one of no datum.

    Args:
        tallies: of the bucket.
        plan: of the run.
        buckets: how many there are.
        room: bytes of a piece of the whole.
        folder: the scratch folder.
        bucket: which one.

    Returns:
        things by name, and what is told of them.
    """
    datums = files_of(plan)
    key = datums.key(tallies)
    n = len(key)
    each = max(1, size_of(tallies) // max(1, n))
    step = max(1, room // (_BLOCKS * buckets * each))
    blocks: list[Block] = []
    here: dict[str, Any] = {}
    for i, first in enumerate(range(0, n, step)):
        many = min(step, n - first)
        here[f"block-{i}"] = datums.cut(tallies, slice(first, first + many))
        blocks.append((key[first], many, many * each))
        if len(here) == PER_FILE or first + many == n:
            stored.save(here, block_file(folder, bucket, i // PER_FILE), lasting=False)
            here = {}
    return {BLANK: datums.cut(tallies, slice(0, 0))}, {"blocks": blocks}


def blocks_between(folder: str | Path, bucket: int, begin: int, end: int) -> Iterator[Any]:
    """Some consecutive blocks of a bucket, one at a time.

    Args:
        folder: the scratch folder.
        bucket: which one.
        begin: the first of its blocks.
        end: one past the last.
    """
    for file in range(begin // PER_FILE, -(-end // PER_FILE)):
        first, last = max(begin, file * PER_FILE), min(end, (file + 1) * PER_FILE)
        names = [f"block-{i}" for i in range(first, last)]
        yield from stored.load_several(block_file(folder, bucket, file), names)


def size_of(thing: Any) -> int:
    """Bytes of the arrays and columns of a tally."""
    if isinstance(thing, msgspec.Struct):
        return sum(size_of(getattr(thing, name)) for name in thing.__struct_fields__)
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, pl.Series | pl.DataFrame):
        return int(thing.estimated_size())
    if isinstance(thing, dict):
        return size_of(tuple(thing.values()))
    if isinstance(thing, tuple | list):
        return sum(size_of(one) for one in thing)
    return 0
