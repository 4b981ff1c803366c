"""Tallies in files of consecutive datums: codes of datums, groups and stats, file by file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from . import stored
from .datums import Datums, Labels
from .stats import Column, Rows, Stats, same, totals
from .view import View

Array = np.ndarray[Any, Any]

SLICES, COUNTED, STATUS, NEED = "slices", "counted", "status", "need-"
"""Things in a file: slice columns, which datums count, their standing, columns of a need."""


def column_thing(need: str, place: int) -> str:
    """Name of the thing that is one column of a need: each is read by itself."""
    return f"{NEED}{need}.{place}"


def column_of_thing(name: str) -> tuple[str, int]:
    """Need and place of a column by the name of its thing."""
    need, _, place = name.removeprefix(NEED).rpartition(".")
    return need, int(place)


"""Counted datums in a group, the group of each, and how often each counts; None for once."""


class Pieces(msgspec.Struct, frozen=True):
    """Files of a tally, each of consecutive datums, ascending in id from file to file.

    Attributes:
        files: their paths.
        sizes: datums of each.
    """

    files: tuple[str, ...]
    sizes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.files)

    def load(self, piece: int, *names: str) -> list[Any]:
        """Some things of one file."""
        return stored.load_several(self.files[piece], names)


class GroupsInPieces(msgspec.Struct, frozen=True):
    """Group codes of all datums, in a file of int32.

    Attributes:
        path: that file.
        starts: int64 [pieces + 1], where the datums of each piece begin.
        first: the code that counts as 0.
        last: one past the last that counts.
    """

    path: str
    starts: Array
    first: int
    last: int

    def within(self, first: int, last: int) -> GroupsInPieces:
        """Some of the groups, counted from 0."""
        return msgspec.structs.replace(self, first=self.first + first, last=self.first + last)

    def codes(self, piece: int) -> Array:
        """Group of each datum of a piece, int32 [n], -1 for none."""
        begin, end = self.starts[piece : piece + 2]
        offset = int(begin) * np.dtype(np.int32).itemsize
        code = np.fromfile(self.path, np.int32, int(end - begin), offset=offset)
        inside = (code >= self.first) & (code < self.last)
        return np.where(inside, code - self.first, -1).astype(np.int32)


class DatumsInPieces:
    """The datums of a run whose ids and slices stand in files.

    Args:
        pieces: the files.
        blank: what datums there are like, without any.
    """

    def __init__(self, pieces: Pieces, blank: Datums) -> None:
        self._pieces = pieces
        self.slices = blank.slices
        self.id_dtype = blank.id_dtype
        self.starts = np.concatenate([[0], np.cumsum(pieces.sizes)]).astype(np.int64)
        self._known: dict[str, tuple[GroupsInPieces, list[str]]] = {}

    def __len__(self) -> int:
        return int(self.starts[-1])

    def groups(self, column: str) -> tuple[GroupsInPieces, list[str]]:
        """Group codes of all datums, and the groups' names, as :meth:`Datums.groups` has them."""
        if column not in self._known:
            self._known[column] = self._grouped(column)
        return self._known[column]

    def _values(self, column: str) -> Iterator[pl.DataFrame]:
        for piece in range(len(self._pieces)):
            (slices,) = self._pieces.load(piece, SLICES)
            yield slices.select(pl.col(column).alias("value"))

    def _grouped(self, column: str) -> tuple[GroupsInPieces, list[str]]:
        some = [frame.unique().drop_nulls() for frame in self._values(column)]
        found = pl.concat(some, how="vertical_relaxed").unique().sort("value")
        coded = found.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias("code"))
        place = self.slices.columns.index(column)
        path = Path(self._pieces.files[0]).with_name(f"slice-{place}.codes")
        with path.open("wb") as file:
            for values in self._values(column):
                here = values.cast(found.schema).join(
                    coded, on="value", how="left", maintain_order="left"
                )
                here["code"].fill_null(-1).to_numpy().tofile(file)
        groups = GroupsInPieces(str(path), self.starts, 0, found.height)
        return groups, found["value"].cast(pl.String).to_list()


class StatsInPieces(msgspec.Struct, frozen=True):
    """One row a datum, in files.

    Attributes:
        pieces: the files.
        columns: what was tallied, by the need it answers, without a value.
    """

    pieces: Pieces
    columns: dict[str, tuple[Column, ...]]

    def view(self, labels: Labels, **grouping: Any) -> PiecedStatsView:
        """The tally by groups of datums; see :class:`View`."""
        return PiecedStatsView(self, labels, **grouping)


class PiecedView(View):
    """A view of files: what is of one file's datums, and what is added up over all files.

    Args:
        pieces: the files.
        labels: of the run.
        group: of each datum; None for one group of all.
        n_groups: number of groups.
        weights: int64 [n_datums], how often each datum counts, or None.
    """

    def __init__(
        self,
        pieces: Pieces,
        labels: Labels,
        *,
        group: GroupsInPieces | None = None,
        n_groups: int = 1,
        weights: Array | None = None,
    ) -> None:
        super().__init__(labels, None, n_groups, weights)
        self.pieces = pieces
        self._groups = group
        self._starts = np.concatenate([[0], np.cumsum(pieces.sizes)]).astype(np.int64)

    def grouping(self, piece: int) -> dict[str, Any]:
        """Group and weight of each datum of one file, as a view of that file alone takes them."""
        begin, end = self._starts[piece : piece + 2]
        return {
            "group": None if self._groups is None else self._groups.codes(piece),
            "n_groups": self.n_groups,
            "weights": None if self.weights is None else self.weights[begin:end],
        }


class PiecedStatsView(PiecedView):
    """Stats in files by groups of datums: the numbers of :class:`StatsView`, to the bit.

    Sums go on from file to file; they are exact.

    Args:
        stats: the tally.
        labels: of the run; none where the task has no labels.
        **grouping: see :class:`PiecedView`.
    """

    def __init__(self, stats: StatsInPieces, labels: Labels, **grouping: Any) -> None:
        super().__init__(stats.pieces, labels, **grouping)
        self.stats = stats

    def _rows(self, piece: int, counted: Array) -> Rows:
        """Counted datums of a file in a group, the group of each, and how often each counts."""
        return Stats(counted, {}, ((), counted)).view(self.labels, **self.grouping(piece)).rows

    @cached_property
    def support(self) -> Array:
        """Datums that count, float64 [group]."""
        out = np.zeros(self.n_groups)
        for piece in range(len(self.pieces)):
            (counted,) = self.pieces.load(piece, COUNTED)
            _, group, weight = self._rows(piece, counted)
            out += np.bincount(group, weight, minlength=self.n_groups)
        return out

    def _place(self, column: Column) -> tuple[str, int]:
        """Need and place of a column."""
        return next(
            (need, i)
            for need, columns in self.stats.columns.items()
            for i, one in enumerate(columns)
            if one is column
        )

    def _each(self, column: Column) -> Iterator[tuple[Column, Rows]]:
        """The column in every file, which is opened once, and its counted datums."""
        name = column_thing(*self._place(column))
        for piece in range(len(self.pieces)):
            here, counted = self.pieces.load(piece, name, COUNTED)
            yield here, self._rows(piece, counted)

    def standings(self, column: Column) -> tuple[Array, Array, Array]:
        """See :meth:`StatsView.standings`."""
        assert column.status is not None
        width = len(column.status[0])
        pairs, many = [np.zeros(0, np.int64)], [np.zeros(0)]
        for here, (rows, group, weight) in self._each(column):
            assert here.status is not None
            there, place = np.unique(group * width + here.status[1][rows], return_inverse=True)
            pairs.append(there)
            many.append(np.bincount(place, weight).astype(np.float64))
        there, place = np.unique(np.concatenate(pairs), return_inverse=True)
        count = np.bincount(place, np.concatenate(many), minlength=there.size)
        return there // width, there % width, count

    def total(self, column: Column, of: Callable[[Array], Array] = same) -> tuple[Array, Array]:
        """See :meth:`StatsView.total`."""
        each = ((of(here.values), rows) for here, rows in self._each(column))
        return totals(each, of(column.values).shape[1:], self.n_groups)
