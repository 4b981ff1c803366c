"""A bucket's tally of one row a datum as blocks of consecutive datums."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import planner

BLANK = "blank"
_BLOCKS = 4  # blocks of a bucket in a piece, so that few datums beside it are read with one

Block = tuple[Any, int, int]
"""First id, datums and bytes of consecutive datums of one bucket."""


def in_pieces(module: ModuleType) -> bool:
    """Whether a task's tallies are merged in files."""
    return hasattr(module, "of_pieces")


def apart(
    tallies: Any, plan: planner.Plan, buckets: int, room: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A bucket's tally as blocks of consecutive datums, and one of no datum.

    Args:
        tallies: of the bucket.
        plan: of the run.
        buckets: how many there are.
        room: bytes of a piece of the whole.

    Returns:
        things by name, and what is told of them.
    """
    module = plan.module
    key = module.key_of(tallies)
    n = len(key)
    each = max(1, size_of(tallies) // max(1, n))
    step = max(1, room // (_BLOCKS * buckets * each))
    things = {BLANK: module.cut(tallies, slice(0, 0))}
    blocks: list[Block] = []
    for i, first in enumerate(range(0, n, step)):
        many = min(step, n - first)
        things[f"block-{i}"] = module.cut(tallies, slice(first, first + many))
        blocks.append((key[first], many, many * each))
    return things, {"blocks": blocks}


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
