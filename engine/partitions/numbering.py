"""Datums numbered in ascending order of id over all buckets, a range of ids at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..tally import stored
from .stages import part_file

Array = np.ndarray[Any, Any]


def codes_file(folder: str | Path, bucket: int) -> Path:
    """Where the codes of a bucket's datums among all datums stand."""
    return Path(folder) / "parts" / f"{bucket}.codes"


def codes_of(folder: str, bucket: int) -> Array:
    """The codes of a bucket's datums among all datums, int32 [n]."""
    return np.fromfile(codes_file(folder, bucket), np.int32)


def code_datums(folder: str, parts: Sequence[int], at_once: int) -> int:
    """Number all datums in ascending order of id, a range of ids at a time.

    Args:
        folder: the scratch folder, whose ``parts`` get a file of codes for each bucket.
        parts: the buckets.
        at_once: datums held at once, about.

    Returns:
        how many datums there are.
    """
    blocks = [stored.head_of(part_file(folder, bucket))["about"]["ids"] for bucket in parts]
    cuts, held = [], 0
    for first, size in sorted((first, size) for own in blocks for first, size in own):
        if held and held + size > at_once // 2:
            cuts.append(first)
            held = 0
        held += size
    drafts = [codes_file(folder, bucket).with_suffix(f".{os.getpid()}.draft") for bucket in parts]
    for draft in drafts:
        draft.write_bytes(b"")
    read = [0] * len(blocks)  # blocks, and their ids
    at = [0] * len(blocks)
    waiting: list[pl.Series | None] = [None] * len(blocks)
    before = 0
    for cut in [*cuts, None]:
        few: list[pl.Series] = []
        for b, (bucket, own) in enumerate(zip(parts, blocks, strict=True)):
            names = []
            while read[b] < len(own) and (cut is None or own[read[b]][0] < cut):
                names.append(f"ids-{at[b]}")
                at[b] += own[read[b]][1]
                read[b] += 1
            found = stored.load_several(part_file(folder, bucket), names) if names else []
            kept = waiting[b]
            ids = found if kept is None else [kept, *found]
            here = pl.concat(ids) if ids else None
            end = 0
            if here is not None:
                end = len(here) if cut is None else int(here.search_sorted(cut, "left"))
                waiting[b] = here.slice(end)
            few.append(pl.Series() if here is None else here.slice(0, end))
        filled = [ids for ids in few if len(ids)]
        if not filled:
            continue
        order = pl.concat(filled).arg_sort().to_numpy()
        code = np.empty(order.size, np.int32)
        code[order] = np.arange(before, before + order.size, dtype=np.int32)
        begin = 0
        for draft, ids in zip(drafts, few, strict=True):
            with open(draft, "ab") as file:
                code[begin : begin + len(ids)].tofile(file)
            begin += len(ids)
        before += order.size
    for bucket, draft in zip(parts, drafts, strict=True):
        os.replace(draft, codes_file(folder, bucket))
    return before
