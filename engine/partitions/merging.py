"""The stage that brings the rows of labels together from all buckets, whole or slab by slab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..tally import grouped, stored
from ..tally.ranked import Ranked
from . import slabs
from .numbering import codes_of
from .stages import group_file, part_file

Array = np.ndarray[Any, Any]


def merge_rows(
    folder: str,
    group: int,
    slab: int,
    names: Sequence[str],
    between: tuple[slabs.Key, slabs.Key | None] | None,
    parts: Sequence[int],
) -> None:
    """Bring rows of some labels together from all buckets: all of them, or one slab.

    Args:
        folder: the scratch folder.
        group: number of the group.
        slab: number of the slab; 0 of a group that has one.
        names: the group's chunks of labels; one, of which a slab is wanted.
        between: the key at which a slab begins, and that at which the next one does; None for a
            whole group.
        parts: the buckets.
    """
    if between is None:
        merge_labels(folder, group, names, parts)
    else:
        merge_slab(folder, group, slab, names[0], between, parts)


def merge_labels(folder: str, group: int, names: Sequence[str], parts: Sequence[int]) -> None:
    """Bring the rows of some labels together from all buckets.

    Args:
        folder: the scratch folder.
        group: number of the group.
        names: its chunks of labels.
        parts: the buckets.
    """
    target = group_file(folder, group)
    if target.exists():
        return
    rows: list[Ranked] = []
    for bucket in parts:
        with stored.opened(part_file(folder, bucket)) as file:
            known = _pieces_of(file.head, names)
            found = iter(file.load([piece.name for name in names for piece in known[name]]))
        labels = [_below([next(found) for _ in known[name]]) for name in names]
        rows.append(grouped.with_datums(_beside(labels), codes_of(folder, bucket)))
    stored.save(grouped.merge_groups(rows), target, lasting=False)


def merge_slab(
    folder: str,
    group: int,
    slab: int,
    name: str,
    between: tuple[slabs.Key, slabs.Key | None],
    parts: Sequence[int],
) -> None:
    """Bring together the rows of one group of labels that stand between two keys.

    Args:
        folder: the scratch folder.
        group: number of the group.
        slab: number of the slab.
        name: the group's one chunk of labels.
        between: the key at which the slab begins, and that at which the next one does.
        parts: the buckets.
    """
    target = group_file(folder, group, slab)
    if target.exists():
        return
    rows: list[Ranked] = []
    for bucket in parts:
        codes = codes_of(folder, bucket)
        with stored.opened(part_file(folder, bucket)) as file:
            wanted = slabs.needed(_recoded(file.head, name, codes), *between)
            found = file.load([one.name for one in wanted])
        rows += [
            slabs.within(grouped.with_datums(one, codes), piece.key, *between)
            for one, piece in zip(found, wanted, strict=True)
        ]
    stored.save(grouped.merge_groups(rows), target, lasting=False)


def pieces_of(folder: str, bucket: int, name: str) -> list[slabs.Piece]:
    """The pieces of a chunk of labels in one bucket, datums under the codes of the whole."""
    return _recoded(stored.head_of(part_file(folder, bucket)), name, codes_of(folder, bucket))


def _recoded(head: dict[str, Any], name: str, codes: Array) -> list[slabs.Piece]:
    """The pieces of a chunk of labels, datums under the codes of the whole.

    Args:
        head: of the bucket's file.
        name: the chunk.
        codes: int64 [datums of the bucket], those of the whole.
    """
    return [
        msgspec.structs.replace(
            piece, key=msgspec.structs.replace(piece.key, datum=int(codes[piece.key.datum]))
        )
        if piece.key.of_row
        else piece
        for piece in _pieces_of(head, [name])[name]
    ]


def _pieces_of(head: dict[str, Any], names: Sequence[str]) -> dict[str, list[slabs.Piece]]:
    told = head["about"]["pieces"]
    return {name: msgspec.convert(told[name], list[slabs.Piece]) for name in names}


def _beside(labels: Sequence[Ranked]) -> Ranked:
    """Tallies of consecutive labels as one of all of them."""
    if len(labels) == 1:
        return labels[0]
    rows = {name: np.concatenate([getattr(one, name) for one in labels], axis=-1) for name in _ROWS}
    return msgspec.structs.replace(
        labels[0],
        start=_starts([one.start for one in labels]),
        gt_start=_starts([one.gt_start for one in labels]),
        **rows,
    )


def _below(pieces: Sequence[Ranked]) -> Ranked:
    """Pieces of the same labels, whose rows stand one after the other, as one."""
    if len(pieces) == 1:
        return pieces[0]
    rows = {name: np.concatenate([getattr(one, name) for one in pieces], axis=-1)
            for name in _ROWS}  # fmt: skip
    return msgspec.structs.replace(
        pieces[0],
        start=np.sum([one.start for one in pieces], axis=0),
        gt_start=np.sum([one.gt_start for one in pieces], axis=0),
        **rows,
    )


_ROWS = (
    "score", "datum", "row", "rank", "hit", "ignored", "skipped", "tie",
    "gt_datum", "gt_row", "gt_counted",
)  # fmt: skip


def _starts(parts: Sequence[Array]) -> Array:
    """Offsets of rows one after the other."""
    sizes = np.concatenate([np.diff(start) for start in parts])
    out = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out
