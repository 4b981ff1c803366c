"""The tally of all buckets by counts: pairs of scores are counted slab by slab, on workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from .. import planner
from ..executors.pools import Pool
from ..tally import stored
from ..tally.score_counts import KINDS, Kind, Run, SlabSums, rows_between, sum_slab
from . import slabs
from .score_pieces import SCORES, UNITS, place
from .sizing import Sizes
from .stages import collected, group_file, part_file

Array = np.ndarray[Any, Any]


class Slab(msgspec.Struct, frozen=True):
    """Which rows are counted together.

    Attributes:
        first: the key at which they begin.
        after: the key at which the next ones do; None for the last.
        names: of each bucket and each kind of run the pieces that hold any of them.
        n_labels: labels of the run.
    """

    first: slabs.Key
    after: slabs.Key | None
    names: tuple[tuple[tuple[str, ...], ...], ...]
    n_labels: int


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
    rows: dict[Kind, list[Run]] = {kind: [] for kind in KINDS}
    for bucket, names in zip(parts, slab.names, strict=True):
        flat = [name for own in names for name in own]
        if not flat:
            continue
        found = iter(stored.load_several(part_file(folder, bucket), flat))
        for kind, own in zip(KINDS, names, strict=True):
            for _ in own:
                run = next(found)
                few = rows_between(run, place(run, slab.first), place(run, slab.after))
                if few.score.size:
                    rows[kind].append(few)
    stored.save(sum_slab(rows, slab.n_labels), target, lasting=False)


def pieces_told(about: dict[str, Any]) -> list[list[slabs.Piece]]:
    """The pieces of each kind of run, by what a bucket's file says of itself."""
    return msgspec.convert(about["pieces"], list[list[slabs.Piece]])


def merged_by_scores(
    folder: str,
    parts: list[int],
    heads: list[dict[str, Any]],
    plan: planner.Plan,
    sizes: Sizes,
    pool: Pool,
) -> tuple[Any, int]:
    """The tally of all buckets, of which counts are left."""
    wholes, units, scores = [], [], []
    for bucket, head in zip(parts, heads, strict=True):
        names = [stored.WHOLE, UNITS, *([SCORES] if head["scored"] else [])]
        one, counted, *scored = stored.load_several(part_file(folder, bucket), names)
        wholes.append(one)
        units.append(counted)
        scores.append(scored[0] if scored else None)
    pieces = [pieces_told(head) for head in heads]
    each = [own for kinds in pieces for own in kinds]
    sums: list[SlabSums] = []
    if any(each):
        keys = slabs.slab_keys(each, _IN_A_SLAB * sizes.group_rows)
        n_labels = max(len(one.labels) for one in wholes)
        calls = [
            (folder, number, Slab(first, after, _names(pieces, first, after), n_labels), parts)
            for number, (first, after) in enumerate(zip(keys, [*keys[1:], None], strict=True))
        ]
        collected(pool.run(count_slab, calls))
        sums = [stored.load(group_file(folder, 0, number)) for number in range(len(calls))]
    assert plan.does.counting is not None
    whole = plan.does.counting.merge(wholes, units, scores, sums, plan.settings)
    return whole, len(whole.datums)


def _names(
    pieces: Sequence[Sequence[Sequence[slabs.Piece]]], first: slabs.Key, after: slabs.Key | None
) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """The pieces of each bucket and kind of which rows stand between two keys."""
    return tuple(
        tuple(
            tuple(piece.name for piece in slabs.needed(own, first, after)) if own else ()
            for own in kinds
        )
        for kinds in pieces
    )


_IN_A_SLAB = 2  # rows of a slab for each ranked row of a label group, which takes far more bytes
