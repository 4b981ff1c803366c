"""Ranges of keys, such as ids of datums, over blocks that every bucket has in their order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl


def cuts(blocks: Sequence[tuple[Any, int, int]], room: int) -> list[Any]:
    """Keys at which ranges begin, but the first.

    Args:
        blocks: of all buckets: first key, rows and bytes.
        room: bytes of a range, about.
    """
    found, held = [], 0
    for first, _, size in sorted(blocks):
        if held and held + size > room:
            found.append(first)
            held = 0
        held += size
    return found


def overlapping(
    firsts: Mapping[int, Sequence[Any]], between: tuple[Any, Any]
) -> list[tuple[int, int, int]]:
    """Buckets with the first of their blocks that may have keys of a range, and the end.

    Args:
        firsts: bucket -> the first key of each of its blocks, ascending.
        between: the first key of the range and that of the next; None where it has no such end.
    """
    low, high = between
    found = []
    for bucket, known in firsts.items():
        begin = 0 if low is None else max(0, bisect_right(known, low) - 1)
        end = len(known) if high is None else bisect_left(known, high)
        if begin < end:
            found.append((bucket, begin, end))
    return found


def ends(key: pl.Series, between: tuple[Any, Any]) -> tuple[int, int]:
    """Where the keys of a range begin and end among those of a block."""
    low, high = between
    begin = 0 if low is None else int(key.search_sorted(low, "left"))
    return begin, len(key) if high is None else int(key.search_sorted(high, "left"))
