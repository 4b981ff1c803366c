"""The tally of all buckets by groups of labels, whose rows stay on disk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..executors.pools import Pool
from ..plan import planner
from ..schemas.errors import InputError
from ..tally import stored
from ..tally.datums import Datums
from ..tally.merging import merge_counts, merge_datums, merged_seconds
from ..tally.ranked_groups import RankedGroups
from .answering import OnWorkers
from .label_merging import cut, merge_rows
from .memory_plan import Sizes
from .numbering import code_datums, codes_file
from .score_ranges import ScoreRange
from .stages import collected, group_file, is_named, part_file

Array = np.ndarray[Any, Any]


def merged_by_labels(
    folder: str,
    parts: list[int],
    heads: list[dict[str, Any]],
    plan: planner.Plan,
    sizes: Sizes,
    pool: Pool,
) -> tuple[Any, int]:
    """The tally of all buckets, whose ranked rows stay on disk by groups of labels."""
    per_label: Array = np.array([head["labels"] for head in heads], np.int64).sum(axis=0)
    total = code_datums(folder, parts, sizes.datums_at_once)
    even = -(-int(per_label.sum()) // (2 * pool.least)) if pool.apart else sizes.group_rows
    bounds = label_groups(per_label, min(even, sizes.group_rows))
    calls: list[tuple[int, tuple[Any, ...]]] = []  # rows, about, and the call
    files: list[tuple[str, ...]] = []
    for group, labels in enumerate(pairwise(bounds)):
        rows = int(per_label[slice(*labels)].sum())
        ranges: Sequence[ScoreRange | None] = [None]
        if rows > sizes.group_rows:  # one label, which alone is more
            ranges = cut(folder, labels, sizes.group_rows // 4, parts)
        calls += [(rows // len(ranges), (folder, group, labels, span, parts)) for span in ranges]
        files.append(tuple(str(group_file(folder, group, at)) for at in range(len(ranges))))
    # The largest first: what is left at the end is small, and no worker waits long for another.
    calls.sort(key=itemgetter(0), reverse=True)
    if calls:
        collected(pool.run(merge_rows, [call for _, call in calls]))
    tallies = [stored.load(part_file(folder, bucket)) for bucket in parts]
    first_part = tallies[0]
    datums = Datums(None, pl.DataFrame(), None, total)
    whole = first_part
    if is_named(first_part):
        datums, _ = merge_datums([one.datums for one in tallies])
        whole = planner.merge(plan, [msgspec.structs.replace(one, crossed=None) for one in tallies])
    crossed = [one.crossed for one in tallies if one.crossed is not None]
    single = {one.ranked.single for one in tallies}
    if len(single) > 1:
        raise InputError("scores differ in precision between files: cast them to one.")
    met = None
    if crossed:
        codes = [np.fromfile(codes_file(folder, bucket), np.int32) for bucket in parts]
        same = np.arange(len(whole.labels), dtype=np.int32)
        met = merge_counts(crossed, codes, [same] * len(parts))
    ranked = RankedGroups(
        tuple(files),
        tuple(bounds),
        first_part.ranked,
        int(per_label.sum()),
        sizes.at_once,
        OnWorkers(folder, pool) if pool.apart else None,
    )
    return (
        msgspec.structs.replace(
            whole,
            datums=datums,
            ranked=ranked,
            crossed=met,
            seconds=merged_seconds(tallies),
        ),
        total,
    )


def label_groups(rows: Array, most: int) -> list[int]:
    """Bounds of groups of consecutive labels of at most so many rows; a larger one stands alone.

    Args:
        rows: int64 [n], rows of each label.
        most: rows of a group.
    """
    bounds, held = [0], 0
    for label, size in enumerate(rows.tolist()):
        if held and held + size > most:
            bounds.append(label)
            held = 0
        held += size
    if rows.size or len(bounds) == 1:
        bounds.append(int(rows.size))
    return bounds
