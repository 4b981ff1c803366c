"""Tallies stored in parts on disk: file content of a part, and facts of all parts.

A part is the tally of one set of datums, with all their rows. Its file contains memory-mapped rows
and a head that is read at once: the tally without rows, and its slice values. Slice codes are local
to a part and are mapped to those of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array
from . import stored
from .datums import Datums, half_of
from .registry import stored_as

HEAD, ROWS, SHOWN = "head", "rows", "shown"
"""Names of the entries in a part's file; the last is for per-datum frames."""


class Place(NamedTuple):
    """Storage for merged data that is too long for memory.

    Attributes:
        folder: on a disk with enough space.
        rows: rows in memory at a time.
    """

    folder: str
    rows: int


@stored_as("bucket.head/1")
class Head(msgspec.Struct, frozen=True):
    """Facts of a part.

    Attributes:
        bare: its tally without rows.
        slices: distinct values of each slice column, ascending, indexed by codes.
        datums: number of datums.
        scores: number of scored labels, if any.
    """

    bare: Any
    slices: tuple[pl.Series, ...]
    datums: int
    scores: int = 0


@stored_as("bucket.rows/1")
class Part(msgspec.Struct, frozen=True):
    """Rows of one part.

    Attributes:
        rows: in the task's format.
        codes: int32 [datums] arrays, group of each datum per slice column, -1 for none.
        keys: uint64 [datums], see :class:`.Datums`.
    """

    rows: Any
    codes: tuple[Array, ...]
    keys: Array | None = None


class Parts(msgspec.Struct, frozen=True):
    """Files of a tally's parts.

    Attributes:
        files: files of parts that have datums, written by :func:`evalengine.tally.stored.save`; one
            empty part if all are empty.
        maps: per part and slice column int32 arrays: code in the whole of each group, then -1 for
            none.
        scores: scored labels of all parts.
        place: storage for long merged data.
    """

    files: tuple[str, ...]
    maps: tuple[tuple[Array, ...], ...]
    scores: int
    place: Place

    def __iter__(self) -> Iterator[Part]:
        """The rows of each part, groups under the codes of the whole."""
        for file, maps in zip(self.files, self.maps, strict=True):
            part: Part = stored.mapped(file, ROWS)
            codes = tuple(own[code] for own, code in zip(maps, part.codes, strict=True))
            yield msgspec.structs.replace(part, codes=codes)

    def shown(self) -> Iterator[Any]:
        """Yield each part's data for per-datum frames."""
        for file in self.files:
            yield stored.mapped(file, SHOWN)


class GroupsByCode(msgspec.Struct, frozen=True):
    """Groups of one slice column, whose codes are stored with the rows.

    Attributes:
        column: index among the slice columns.
        first: code that counts as 0.
        last: one past the last code that counts.
    """

    column: int
    first: int
    last: int

    def within(self, first: int, last: int) -> GroupsByCode:
        """Some of the groups, counted from 0."""
        return msgspec.structs.replace(self, first=self.first + first, last=self.first + last)

    def of(self, part: Part) -> Array:
        """Group of each datum of a part, int32 [n], -1 for none."""
        code = part.codes[self.column]
        inside = (code >= self.first) & (code < self.last)
        return np.where(inside, code - self.first, -1).astype(np.int32)


class Halves(msgspec.Struct, frozen=True):
    """Two groups of datums, split by their keys.

    Attributes:
        seed: selects the split.
    """

    seed: int

    def of(self, part: Part) -> Array:
        """Half of each datum of a part, int32 [n]."""
        assert part.keys is not None
        return half_of(part.keys, self.seed).astype(np.int32)


PartGroups = GroupsByCode | Halves


class PartsDatums(Datums, frozen=True, dict=True):
    """Datums of a run whose ids and slices are on disk.

    Attributes:
        kind: dtype of ids.
        names: groups of each slice column.
        parts: the files.
    """

    kind: Any = None
    names: tuple[list[str], ...] = ()
    parts: Parts | None = None

    def key_blocks(self) -> Iterator[Array]:
        for part in () if self.parts is None else self.parts:
            if part.keys is not None:
                yield part.keys

    def grouped_keys(self, group: Any) -> Iterator[tuple[Array, Array]]:
        for part in () if self.parts is None else self.parts:
            if part.keys is not None:
                yield part.keys, group.of(part)

    def halves(self, seed: int) -> Halves:  # type: ignore[override]
        return Halves(seed)

    @property
    def id(self) -> Any:
        """Not available: no displayed result needs all ids at once."""
        raise RuntimeError("ids of datums are in files: this frame needs all of them at once")

    @property
    def id_dtype(self) -> Any:
        return self.kind

    def groups(self, column: str) -> tuple[GroupsByCode, list[str]]:  # type: ignore[override]
        """Groups of all datums, and their names, as :meth:`Datums.groups` has them."""
        place = self.slices.columns.index(column)
        return GroupsByCode(place, 0, len(self.names[place])), self.names[place]


def things_of_part(
    tallies: Any, bare: Any, rows: Any, order: Array | None = None, scores: int = 0
) -> dict[str, Any]:
    """Return the file entries of a part's tally, by name.

    Args:
        bare: the tally without rows and datums.
        rows: in the task's format.
        order: int [n], datums in the order of ``rows``; None if unchanged.
        scores: number of scored labels.
    """
    datums: Datums = tallies.datums
    columns = datums.slices.columns
    codes = (datums.groups(name)[0] for name in columns)
    slices = tuple(datums.slices[name].drop_nulls().unique().sort() for name in columns)
    none = None if datums.dataset is None else datums.dataset[:0]
    bare = msgspec.structs.replace(bare, datums=Datums(datums.id[:0], datums.slices[:0], none))
    ordered = tuple(code if order is None else code[order] for code in codes)
    keys = datums.keys if datums.keys is None or order is None else datums.keys[order]
    return {HEAD: Head(bare, slices, len(datums), scores), ROWS: Part(rows, ordered, keys)}


def parts_of(files: Sequence[str], place: Place) -> tuple[list[Head], Parts, PartsDatums]:
    """Return the heads, files and datums of all parts.

    Args:
        files: files of all parts. Empty parts are dropped unless all are empty.
        place: storage for long merged data.
    """
    every: list[Head] = [stored.load(file, HEAD) for file in files]
    filled = [i for i, head in enumerate(every) if head.datums] or [0]
    heads = [every[i] for i in filled]
    names, maps = _code_slices([head.slices for head in heads])
    scores = sum(head.scores for head in heads)
    blank: Datums = heads[0].bare.datums
    n = sum(head.datums for head in heads)
    parts = Parts(tuple(files[i] for i in filled), tuple(maps), scores, place)
    datums = PartsDatums(
        None, blank.slices, rows=n, kind=blank.id_dtype, names=tuple(names), parts=parts
    )
    return heads, parts, datums


def _code_slices(
    values: Sequence[tuple[pl.Series, ...]],
) -> tuple[list[list[str]], list[tuple[Array, ...]]]:
    """Code the values of slice columns over all parts.

    Args:
        values: per part, distinct values of each column.

    Returns:
        group names per column; per part and column the code in the whole of each value, int32
        [n + 1], the last for none.
    """
    names: list[list[str]] = []
    maps: list[list[Array]] = [[] for _ in values]
    for columns in zip(*values, strict=True):
        frames = [column.rename("value").to_frame() for column in columns]
        filled = [frame for frame in frames if frame.height] or frames[:1]
        every = pl.concat(filled, how="vertical_relaxed").unique().sort("value")
        coded = every.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias("code"))
        names.append(every["value"].cast(pl.String).to_list())
        for own, frame in zip(maps, frames, strict=True):
            found = frame.cast(every.schema).join(
                coded, on="value", how="left", maintain_order="left"
            )["code"]
            own.append(np.append(found.to_numpy(), np.int32(-1)).astype(np.int32))
    return names, [tuple(own) for own in maps]
