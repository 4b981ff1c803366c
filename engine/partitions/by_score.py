"""The tally of all buckets by counts: scored labels are counted slab by slab, on workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from .. import planner
from ..executors.pools import Pool
from ..tally import stored
from ..tally.score_counts import (
    ScoreCounts,
    SlabSums,
    merge_counts,
    rows_between,
    sum_slab,
)
from . import slabs
from .score_pieces import UNITS, place
from .sizing import Sizes
from .stages import collected, group_file, part_file

Array = np.ndarray[Any, Any]


class Slab(msgspec.Struct, frozen=True):
    """Which rows are counted together.

    Attributes:
        first: the key at which they begin.
        after: the key at which the next ones do; None for the last.
        n_labels: labels of the run.
        thresholds: ascending; scores at or above each are counted.
    """

    first: slabs.Key
    after: slabs.Key | None
    n_labels: int
    thresholds: tuple[float, ...]


def count_slab(folder: str, number: int, slab: Slab, parts: Sequence[int]) -> None:
    """Count the rows of all buckets that stand in one slab.

    Args:
        folder: the scratch folder.
        number: of the slab.
        slab: which rows.
        parts: the buckets.
    """
    target = group_file(folder, 0, number)
    if target.exists():
        return
    rows: list[ScoreCounts] = []
    for bucket in parts:
        wanted = slabs.needed(_pieces_of(folder, bucket), slab.first, slab.after)
        found = stored.load_several(part_file(folder, bucket), [one.name for one in wanted])
        rows += [rows_between(one, place(one, slab.first), place(one, slab.after))
                 for one in found]  # fmt: skip
        del found  # views hold what they need of it
    together = merge_counts(rows, slab.n_labels)
    stored.save(sum_slab(together, np.array(slab.thresholds)), target)


def _pieces_of(folder: str, bucket: int) -> list[slabs.Piece]:
    told = stored.head_of(part_file(folder, bucket))["about"]["pieces"]
    return msgspec.convert(told, list[slabs.Piece])


def merged_by_scores(
    folder: str,
    parts: list[int],
    heads: list[dict[str, Any]],
    plan: planner.Plan,
    sizes: Sizes,
    pool: Pool,
) -> tuple[Any, int]:
    """The tally of all buckets, of which counts are left."""
    wholes, units = [], []
    for bucket in parts:
        one, counted = stored.load_several(part_file(folder, bucket), [stored.WHOLE, UNITS])
        wholes.append(one)
        units.append(counted)
    singles = {one.scored.single for one, head in zip(wholes, heads, strict=True)
               if one.scored is not None and head["scored"]}  # fmt: skip
    thresholds = tuple(plan.module.thresholds_of(plan.settings, single=singles == {True}).tolist())
    pieces = [msgspec.convert(head["pieces"], list[slabs.Piece]) for head in heads]
    sums: list[SlabSums] = []
    if any(pieces):
        keys = slabs.slab_keys(pieces, sizes.group_rows // 2)
        n_labels = max(len(one.labels) for one in wholes)
        calls = [
            (folder, number, Slab(first, after, n_labels, thresholds), parts)
            for number, (first, after) in enumerate(zip(keys, [*keys[1:], None], strict=True))
        ]
        collected(pool.run(count_slab, calls))
        sums = [stored.load(group_file(folder, 0, number)) for number in range(len(calls))]
    scored = [head["scored"] for head in heads]
    whole = plan.module.merge_counted(wholes, units, scored, sums, plan.settings)
    return whole, len(whole.datums)
