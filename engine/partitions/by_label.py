"""The tally of all buckets by groups of labels, whose rows stay on disk."""

from __future__ import annotations

from itertools import pairwise
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import planner
from ..executors.pools import Pool
from ..schemas.errors import InputError
from ..tally import stored
from ..tally.datums import Datums
from ..tally.grouped import RankedGroups
from ..tally.merging import merge_counts, merge_datums, merged_seconds
from . import slabs
from .answering import OnWorkers
from .merging import merge_rows, pieces_of
from .numbering import code_datums, codes_file
from .sizing import Sizes
from .stages import chunks, collected, group_file, is_named, part_file

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
    named_chunks = chunks(per_label.size, sizes.chunks)
    per_chunk = np.array([per_label[a:b].sum() for a, b in named_chunks.values()], np.int64)
    even = -(-int(per_chunk.sum()) // (2 * pool.least)) if pool.apart else sizes.group_rows
    cuts = label_groups(per_chunk, min(even, sizes.group_rows))
    names = list(named_chunks)
    bounds = [*(named_chunks[names[cut]][0] for cut in cuts[:-1]), int(per_label.size)]
    calls: list[tuple[int, tuple[Any, ...]]] = []  # rows, about, and the call
    files: list[tuple[str, ...]] = []
    for group, (first, last) in enumerate(pairwise(cuts)):
        rows = int(per_chunk[first:last].sum())
        keys = [slabs.BEFORE_ALL]
        if rows > sizes.group_rows:  # one chunk, which alone is more
            pieces = [pieces_of(folder, bucket, names[first]) for bucket in parts]
            keys = slabs.slab_keys(pieces, sizes.group_rows // 4)
        several = len(keys) > 1
        calls += [
            (
                rows // len(keys),
                (folder, group, slab, names[first:last], between if several else None, parts),
            )
            for slab, between in enumerate(pairwise([*keys, None]))
        ]
        files.append(tuple(str(group_file(folder, group, slab)) for slab in range(len(keys))))
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
        rows: int64 [n], rows of each label or chunk of labels.
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
