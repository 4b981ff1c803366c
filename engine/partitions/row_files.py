"""Units and scored labels of a classification in files: a range or a slab at a time, on workers.

Units are brought together by ranges of what they stand in the order of (ids of datums, or rows of
the one table), scored labels by slabs of label and score (:mod:`.slabs`), equal scores by their
place in the input. What a run in memory would add up row by row is then added up in its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import planner
from ..executors.pools import Pool
from ..tally import stored
from ..tally.datums import Labels
from ..tally.filed_view import Filed
from ..tally.score_rows import merge_rows, rows_between
from ..tally.unit_blocks import UnitBlock, cut, merge_blocks
from . import slabs
from .by_datum import size_of_files
from .ranges import cuts, ends, overlapping
from .row_pieces import KINDS, SLICES, UNITS, place, read_few
from .scratch import look_for_room
from .sizing import Sizes
from .stages import collected, part_file

Array = np.ndarray[Any, Any]

LABELS = "labels"
"""Name of the labels of the run, beside the codes of every bucket."""


def _codes_file(folder: str) -> Path:
    return Path(folder) / "slices.tally"


def _range_file(folder: str, number: int) -> Path:
    return Path(folder) / "units" / f"{number}.tally"


def _slab_file(folder: str, kind: str, number: int) -> Path:
    return Path(folder) / kind / f"{number}.tally"


def _recoded(codes: tuple[Array, ...], maps: tuple[Array, ...]) -> tuple[Array, ...]:
    """Group codes of a bucket as those of the whole; -1 stays."""
    return tuple(own[code] for own, code in zip(maps, codes, strict=True))


def code_slices(folder: str, parts: Sequence[int], labels: Labels) -> list[list[str]]:
    """Give all values of slice columns their codes, in a file beside the labels of the run.

    Returns:
        names of the groups of each column.
    """
    values = [stored.load(part_file(folder, bucket), SLICES) for bucket in parts]
    names, maps = [], []
    for columns in zip(*values, strict=True):
        frames = [column.rename("value").to_frame() for column in columns]
        filled = [frame for frame in frames if frame.height] or frames[:1]
        every = pl.concat(filled, how="vertical_relaxed").unique().sort("value")
        coded = every.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias("code"))
        names.append(every["value"].cast(pl.String).to_list())
        maps.append([_codes(frame.cast(every.schema), coded) for frame in frames])
    coded = {str(bucket): tuple(column[i] for column in maps) for i, bucket in enumerate(parts)}
    stored.save(coded | {LABELS: labels}, _codes_file(folder), lasting=False)
    return names


def _codes(values: pl.DataFrame, coded: pl.DataFrame) -> Array:
    """Codes of a bucket's values, int32 [n + 1], the last for none."""
    found = values.join(coded, on="value", how="left", maintain_order="left")["code"]
    return np.append(found.to_numpy(), np.int32(-1)).astype(np.int32)


def merge_range(
    folder: str,
    number: int,
    between: tuple[Any, Any],
    blocks: Sequence[tuple[int, int, int]],
) -> None:
    """Bring the units of a range together from all buckets.

    Args:
        folder: the scratch folder.
        number: of the range.
        between: its first key and that of the next one; None where it has no such end.
        blocks: buckets, the first of their blocks to look into, and one past the last.
    """
    target = _range_file(folder, number)
    if target.exists():
        return
    parts: list[UnitBlock] = []
    about = [LABELS, *(str(bucket) for bucket, _, _ in blocks)]
    labels, *maps = stored.load_several(_codes_file(folder), about)
    for (bucket, begin, end), own in zip(blocks, maps, strict=True):
        for block in read_few(folder, bucket, UNITS, begin, end):
            some = cut(block, *ends(block.key, between))
            codes = _recoded(some.codes, own)
            parts.append(msgspec.structs.replace(some, codes=codes))
    merged = merge_blocks(parts, labels)
    # Groups stand beside the units, which stand in order: each is a datum of its own from here on.
    units = msgspec.structs.replace(merged.units, datum=None, row=None)
    stored.save(msgspec.structs.replace(merged, ids=None, units=units), target, lasting=False)


def merge_slab(
    folder: str,
    kind: str,
    number: int,
    between: tuple[slabs.Key, slabs.Key | None],
    pieces: Sequence[tuple[int, int, int]],
) -> None:
    """Bring the scored labels of a slab together from all buckets.

    Args:
        folder: the scratch folder.
        kind: one of :data:`KINDS`.
        number: of the slab.
        between: its first key and that of the next one; None where it has no such end.
        pieces: buckets, the first of their pieces of which rows stand there, and one past the last.
    """
    target = _slab_file(folder, kind, number)
    if target.exists():
        return
    parts = []
    maps = stored.load_several(_codes_file(folder), [str(bucket) for bucket, _, _ in pieces])
    for (bucket, begin, end), own in zip(pieces, maps, strict=True):
        for rows in read_few(folder, bucket, kind, begin, end):
            some = rows_between(rows, place(rows, between[0]), place(rows, between[1]))
            parts.append(msgspec.structs.replace(some, codes=_recoded(some.codes, own)))
    merged = msgspec.structs.replace(
        merge_rows(parts), row=np.zeros(0, np.int64)
    )  # they are in order
    stored.save(merged, target, lasting=False)


def merged_in_files(
    folder: str,
    parts: Sequence[int],
    heads: Sequence[dict[str, Any]],
    plan: planner.Plan,
    sizes: Sizes,
    pool: Pool,
) -> tuple[Any, int]:
    """The tally of all buckets, whose rows are in files, and how many datums it has.

    Raises:
        ScratchError: the disk has no room for the merged files, which are as large as those that
            they are made of: how large those are is known by now.
    """
    look_for_room(Path(folder).parent, size_of_files(Path(folder) / "blocks"), " more")
    wholes = [stored.load(part_file(folder, bucket)) for bucket in parts]
    names = code_slices(folder, parts, wholes[0].labels)
    units = _merged_units(folder, parts, heads, sizes.piece, pool)
    scores, pooled = (_merged_scores(folder, kind, parts, heads, sizes, pool) for kind in KINDS)
    counts = [head["counts"] for head in heads]
    total = {name: sum(own[name] for own in counts) for name in counts[0]}
    alone = all(head["alone"] for head in heads) and total["units"] == total["datums"]
    some = [b for b, own in zip(parts, counts, strict=True) if own["datums"]] or parts[:1]
    shown = some if all(head["shown"] for head in heads) else []
    filed = Filed(
        units,
        scores,
        pooled,
        total,
        alone,
        tuple((str(part_file(folder, bucket)), str(bucket)) for bucket in shown),
        str(_codes_file(folder)),
    )
    assert plan.does.row_files is not None
    return plan.does.row_files.of_files(wholes, counts, names, filed), total["datums"]


def _merged_units(
    folder: str, parts: Sequence[int], heads: Sequence[dict[str, Any]], room: int, pool: Pool
) -> tuple[str, ...]:
    """Files of units, in their order."""
    _range_file(folder, 0).parent.mkdir()
    blocks = [tuple(block) for head in heads for block in head["blocks"]]
    if not blocks:
        return ()
    firsts = {
        bucket: [first for first, _, _ in head["blocks"]]
        for bucket, head in zip(parts, heads, strict=True)
    }
    bounds = cuts(blocks, room)
    calls = [
        (folder, number, between, overlapping(firsts, between))
        for number, between in enumerate(zip([None, *bounds], [*bounds, None], strict=True))
    ]
    collected(pool.run(merge_range, calls))
    return tuple(str(_range_file(folder, number)) for number in range(len(calls)))


def _merged_scores(
    folder: str,
    kind: str,
    parts: Sequence[int],
    heads: Sequence[dict[str, Any]],
    sizes: Sizes,
    pool: Pool,
) -> tuple[str, ...]:
    """Files of scored labels, by rising label and score."""
    told = [msgspec.convert(head["pieces"].get(kind, []), list[slabs.Piece]) for head in heads]
    if not any(told):
        return ()
    _slab_file(folder, kind, 0).parent.mkdir()
    keys = slabs.slab_keys([own for own in told if own], sizes.group_rows)
    calls = []
    for number, between in enumerate(zip(keys, [*keys[1:], None], strict=True)):
        some = [
            (bucket, int(few[0].name), int(few[-1].name) + 1)
            for bucket, own in zip(parts, told, strict=True)
            if own and (few := slabs.needed(own, *between))
        ]
        calls.append((folder, kind, number, between, some))
    collected(pool.run(merge_slab, calls))
    return tuple(str(_slab_file(folder, kind, number)) for number in range(len(calls)))
