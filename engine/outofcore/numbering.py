"""Datums numbered in ascending order of id over all buckets, a range of ids at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..schemas.arrays import Array
from ..tally import stored
from .stages import part_file


def codes_file(folder: str | Path, bucket: int) -> Path:
    """Return the path of the codes of a bucket's datums among all datums."""
    return Path(folder) / "parts" / f"{bucket}.codes"


def codes_of(folder: str, bucket: int) -> Array:
    """The codes of a bucket's datums among all datums, int32 [n]."""
    return np.fromfile(codes_file(folder, bucket), np.int32)


def code_datums(folder: str, parts: Sequence[int], at_once: int) -> int:
    """Number all datums in ascending order of id, a range of ids at a time.

    Args:
        folder: the scratch folder, whose ``parts`` get one file of codes per bucket.
        at_once: approximate number of datums in memory.

    Returns:
        number of datums.
    """
    sources = [_Ids(folder, bucket) for bucket in parts]
    cuts, held = [], 0
    for first, size in sorted(block for source in sources for block in source.blocks):
        if held and held + size > at_once // 2:
            cuts.append(first)
            held = 0
        held += size
    before = 0
    for cut in [*cuts, None]:
        few = [source.below(cut) for source in sources]
        filled = [ids for ids in few if ids is not None]
        if not filled:
            continue
        order = pl.concat(filled).arg_sort().to_numpy()
        code = np.empty(order.size, np.int32)
        code[order] = np.arange(before, before + order.size, dtype=np.int32)
        begin = 0
        for source, ids in zip(sources, few, strict=True):
            end = begin + (0 if ids is None else len(ids))
            source.write(code[begin:end])
            begin = end
        before += order.size
    return before


class _Ids:
    """Ids of one bucket, read block by block in order, and its file of codes."""

    def __init__(self, folder: str, bucket: int) -> None:
        self._part = part_file(folder, bucket)
        told = stored.head_of(self._part)["about"]["ids"]
        self.blocks: list[tuple[Any, int]] = [(first, size) for first, size in told]
        self._codes = codes_file(folder, bucket)
        self._codes.write_bytes(b"")
        self._read = self._at = 0  # blocks, and the ids in them
        self._waiting: pl.Series | None = None

    def below(self, cut: Any) -> pl.Series | None:
        """Return the next ids below a value; all remaining ones for None."""
        names = []
        while self._read < len(self.blocks):
            first, size = self.blocks[self._read]
            if cut is not None and first >= cut:
                break
            names.append(f"ids-{self._at}")
            self._at += size
            self._read += 1
        ids: list[pl.Series] = [] if self._waiting is None else [self._waiting]
        if names:
            ids += stored.load_several(self._part, names)
        if not ids:
            return None
        here = pl.concat(ids)
        end = len(here) if cut is None else int(here.search_sorted(cut, "left"))
        self._waiting = here.slice(end) if end < len(here) else None
        return here.slice(0, end) if end else None

    def write(self, codes: Array) -> None:
        """Add the codes of the next ids."""
        with open(self._codes, "ab") as file:
            codes.tofile(file)
