"""A tally whose parts stay in files: what a part writes, and what is known of all of them.

A part is the tally of one set of datums, with all rows of each. Its file holds its rows, mapped
when they are looked at, and a head that is read at once: what there is without rows, and the values
of its slices. Codes of slices are each part's own and are brought to those of the whole by maps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from . import stored
from .datums import Datums, half_of
from .registry import stored_as

Array = np.ndarray[Any, Any]

HEAD, ROWS, SHOWN = "head", "rows", "shown"
"""Names of the things in a part's file; the last is what frames of single datums need."""


class Place(NamedTuple):
    """Where what is made of parts goes when it is too long to hold.

    Attributes:
        folder: on a disk with room for it.
        rows: how many are held at once.
    """

    folder: str
    rows: int


@stored_as("bucket.head/1")
class Head(msgspec.Struct, frozen=True):
    """What a part tells of its rows.

    Attributes:
        bare: its tally without rows.
        slices: distinct values of each slice column, ascending, which codes stand for.
        datums: how many datums it has.
        scores: how many scored labels, where it has any.
    """

    bare: Any
    slices: tuple[pl.Series, ...]
    datums: int
    scores: int = 0


@stored_as("bucket.rows/1")
class Part(msgspec.Struct, frozen=True):
    """The rows of one part.

    Attributes:
        rows: as its task keeps them.
        codes: int32 [datums] arrays, group of each datum in each slice column, -1 for none.
        keys: uint64 [datums], see :class:`.Datums`.
    """

    rows: Any
    codes: tuple[Array, ...]
    keys: Array | None = None


class Parts(msgspec.Struct, frozen=True):
    """Files of a tally's parts.

    Attributes:
        files: of parts that have datums, as :func:`evalengine.tally.stored.save` writes them; of
            one that has none where all are so.
        maps: of each part int32 arrays, the code in the whole of each of its groups, and -1 behind
            them for none; one a slice column.
        scores: scored labels of all parts.
        place: where long runs go.
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
        """What frames of single datums need of each part."""
        for file in self.files:
            yield stored.mapped(file, SHOWN)


class GroupsByCode(msgspec.Struct, frozen=True):
    """Groups of one slice column, whose codes stand beside the rows.

    Attributes:
        column: place among the slice columns.
        first: the code that counts as 0.
        last: one past the last that counts.
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
    """Two groups of datums, told apart by their keys.

    Attributes:
        seed: which halves.
    """

    seed: int

    def of(self, part: Part) -> Array:
        """Half of each datum of a part, int32 [n]."""
        assert part.keys is not None
        return half_of(part.keys, self.seed).astype(np.int32)


PartGroups = GroupsByCode | Halves


class PartsDatums(Datums, frozen=True, dict=True):
    """The datums of a run whose ids and slices are in files.

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
        """Refused: nothing that is shown needs all ids at once."""
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
    """What is written of the tally of a part, by name.

    Args:
        tallies: of the part.
        bare: what is left of it without rows, datums aside.
        rows: as its task keeps them.
        order: int [n], the datums in the order in which rows have them; None for their own.
        scores: how many scored labels it has.
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
    """What is known of all parts: the heads of those that have datums, their files, the datums.

    Args:
        files: of all parts, of which one that has no datum is left out unless there is no other.
        place: where long runs go.
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
    """Codes of the values of slice columns in all parts.

    Args:
        values: of each part, distinct values of each column.

    Returns:
        names of the groups of each column; of each part the codes of its values in the whole,
        int32 [n + 1], the last for none, one array a column.
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
