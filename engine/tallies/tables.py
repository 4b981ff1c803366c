"""Tables of a tally: coded key columns and value columns, merged, stored and summed alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec
import numpy as np

from ..kernels.datums import largest_of_cells, on_grid
from ..kernels.sums import ExactSums
from ..schemas.arrays import Array
from ..schemas.errors import InputError
from .datums import Labels, View
from .draws import Draws, Summands, by_draw, finite_step
from .stored import PartGroups, Parts

# Tables, and tables with facts per label, in memory or in files.

T = TypeVar("T", bound=msgspec.Struct)
Blocks = Iterator[tuple[Any, "Array | None", "Array | None"]]
"""Rows of some datums; group of each datum, -1 for none (None: all in one group); key of each
datum, from which its weights in resamples are computed (None in memory, where
:class:`~evalengine.tallies.draws.Draws` has them)."""

Coded = tuple[tuple[str, ...], Array]
"""Names, and a code per row."""
Values = Callable[[Any], Array]
"""From a block to values of one table's rows, [n, ...]."""

_CODED = {"datum": "datum", "label": "label", "actual": "label", "predicted": "label", "key": "key"}
"""Key column -> the codes that it has, a field of :class:`Codes`."""
_FACTS: dict[str, Any] = {"declared": False, "ignored": True, "kind": -1}
"""Fact per label -> its value unless a bucket states another."""
_PIECE = 1 << 16  # values at a time
_FIXED = 3  # names of a status before those that come from tables


class _InMemory(msgspec.Struct, frozen=True):
    """Rows in memory: one block."""

    @property
    def whole(self) -> Any:
        """The struct whose fields other than rows are those of all blocks."""
        return self

    def blocks(self, group: Array | None) -> Blocks:
        """Yield all rows as one block."""
        yield self, group, None


class Table(_InMemory, frozen=True):
    """Key columns (those of :data:`_CODED`), then value columns with rows along the first axis.

    A value column is an array, a dict of arrays, or names and codes. It may be None in buckets that
    do not have it. A table without ``datum`` has one row per datum.

    Attributes:
        fills: value column -> its value in buckets that do not have it.
    """

    fills: ClassVar[Mapping[str, float]] = {}

    def take(self, rows: Any) -> Any:
        """Select rows; empty columns stay empty.

        Args:
            rows: any index.
        """
        columns: dict[str, Any] = {}
        for name in self.__struct_fields__:
            column = getattr(self, name)
            if isinstance(column, np.ndarray):
                column = column[rows] if column.size else column
            elif column:
                column = combined([column], lambda own: own[0][rows] if own[0].size else own[0])
            columns[name] = column
        return type(self)(**columns)

    def bare(self) -> Any:
        """Return the table without rows."""
        return self.take(slice(0, 0))


class Tables(_InMemory, frozen=True):
    """Tables of the same datums; facts per label; flags."""

    def bare(self) -> Any:
        """Return the facts and flags, with tables without rows."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return type(self)(
            **{name: one.bare() if isinstance(one, Table) else one for name, one in fields.items()}
        )


class InFiles(msgspec.Struct, frozen=True):
    """Rows of a run in files of tallies, one block each, with label codes of the run.

    Attributes:
        parts: the files.
        field: field of each bucket's rows that contains the table; empty if they are the table.
        whole: the table without rows.
    """

    parts: Parts
    field: str
    whole: Any

    @property
    def columns(self) -> Any:
        """Columns of per-datum values, without values."""
        return self.whole.columns

    def rows_of(self, part: Any) -> Any:
        """Return the table of one bucket."""
        return getattr(part.rows, self.field) if self.field else part.rows

    def blocks(self, group: PartGroups | None) -> Blocks:
        """Yield the rows of each file."""
        for part in self.parts:
            yield self.rows_of(part), None if group is None else group.of(part), part.keys


class Codes(NamedTuple):
    """New codes of one bucket's datums, labels (then -1 for none) and label keys."""

    datum: Array
    label: Array
    key: Array


def codes_of(
    datums: Sequence[Array],
    labels: Sequence[Array],
    bucket_labels: Sequence[Labels],
    all_labels: Labels,
) -> list[Codes]:
    """Return the new codes per bucket.

    Args:
        datums: new datum codes per bucket.
        labels: new label codes per bucket.
        bucket_labels: labels per bucket.
        all_labels: labels of all buckets.
    """
    place = {name: i for i, name in enumerate(all_labels.key_names)}
    return [
        Codes(
            datum,
            np.append(label, np.int32(-1)).astype(np.int32),
            np.array([place.get(name, 0) for name in one.key_names], np.int32),
        )
        for datum, label, one in zip(datums, labels, bucket_labels, strict=True)
    ]


def merged(parts: Sequence[T], codes: Sequence[Codes], all_labels: Labels | None = None) -> T:
    """Merge tables of disjoint sets of datums, sorted by datum, label key and labels.

    Args:
        parts: a :class:`Table` or :class:`Tables` per bucket.
        codes: new codes per bucket.
        all_labels: labels of all buckets; None if the table has none.
    """
    kind = type(parts[0])
    columns = {name: [getattr(part, name) for part in parts] for name in kind.__struct_fields__}
    if not issubclass(kind, Table):
        assert all_labels is not None
        return kind(
            **{name: _merged(name, some, codes, all_labels) for name, some in columns.items()}
        )
    for name, fill in kind.fills.items():
        if any(column is not None for column in columns[name]):
            pairs = zip(columns["datum"], columns[name], strict=True)
            columns[name] = [np.full(d.size, fill) if c is None else c for d, c in pairs]
    keys = {}
    for name in columns.keys() & _CODED.keys():
        pairs = zip(codes, columns[name], strict=True)
        columns[name] = [getattr(code, _CODED[name])[column] for code, column in pairs]
        keys[name] = np.concatenate(columns[name]).astype(np.int32, copy=False)
    ranks = [keys[name] for name in columns if name in keys]
    if "datum" not in keys:
        ranks = [np.concatenate([code.datum for code in codes]), *ranks]
    elif all_labels is not None and "actual" in keys:  # either may be -1, for none
        ranks.insert(1, all_labels.key[np.maximum(keys["actual"], keys["predicted"])])
    order = np.lexsort(ranks[::-1])
    result = {
        name: keys[name][order]
        if name in keys
        else combined(some, lambda arrays: _stacked(arrays)[order])
        for name, some in columns.items()
    }
    return kind(**result)


def _merged(name: str, values: Sequence[Any], codes: Sequence[Codes], labels: Labels) -> Any:
    """Merge a field of :class:`Tables`: a table, a fact per label or a flag."""
    if isinstance(values[0], Table):
        return merged(values, codes, labels)
    if name not in _FACTS:
        return any(values)
    filled = [(facts, code) for facts, code in zip(values, codes, strict=True) if facts is not None]
    if not filled:
        return None
    out = np.full(len(labels), _FACTS[name], filled[0][0].dtype)
    for facts, code in filled:
        stated = np.flatnonzero(facts != _FACTS[name])
        out[code.label[stated]] = facts[stated]
    return out


def combined(own: Sequence[Any], of: Callable[[Sequence[Array]], Array]) -> Any:
    """Combine columns of the same form: all of their arrays, the rest from the first.

    Args:
        own: a column per bucket.
        of: maps the arrays of all buckets to one.
    """
    own = [one for one in own if one is not None]
    if not own:
        return None
    first = own[0]
    if isinstance(first, np.ndarray):
        return of(own)
    if isinstance(first, msgspec.Struct):
        names = first.__struct_fields__
        return type(first)(
            **{name: combined([getattr(one, name) for one in own], of) for name in names}
        )
    if isinstance(first, dict):
        return {name: combined([one[name] for one in own], of) for name in first}
    if isinstance(first, tuple) and first:
        if isinstance(first[-1], np.ndarray):
            names, codes = _recoded(own)
            return names, of(codes)
        if isinstance(first[0], msgspec.Struct):
            return tuple(combined(some, of) for some in zip(*own, strict=True))
    return first


def _stacked(arrays: Sequence[Array]) -> Array:
    """Concatenate; arrays without rows may have another number of columns."""
    return np.concatenate([array for array in arrays if len(array)] or arrays[:1])


def stacked(parts: Sequence[T]) -> T:
    """Return the rows of tables one after the other, with their codes."""
    return combined(parts, _stacked)


def _recoded(coded: Sequence[Coded]) -> tuple[tuple[str, ...], list[Array]]:
    """Return the names of all buckets in the order of one run, and each bucket's new codes.

    Names of a task are the same in all buckets. Judged metrics add names from the tables,
    ascending, after three fixed ones.

    Raises:
        InputError: names do not match.
    """
    names = coded[0][0]
    if all(other == names for other, _ in coded):
        return names, [codes for _, codes in coded]
    if any(other[:_FIXED] != names[:_FIXED] for other, _ in coded):
        raise InputError("partitions name the status of datums differently.")
    names = (*names[:_FIXED], *sorted({name for other, _ in coded for name in other[_FIXED:]}))
    place = {name: i for i, name in enumerate(names)}
    return names, [np.array([place[name] for name in old], c.dtype)[c] for old, c in coded]


# Views: sums of tables by group of datums and code, exact, or under the weights of resamples.


class TableView(View):
    """Tables by groups of datums.

    Args:
        tally: a :class:`Table`, :class:`Tables` or :class:`InFiles`.
        draws: a block of resamples, which become groups: all groups of one resample together.
        **grouping: see :class:`View`.
    """

    def __init__(
        self, tally: Any, labels: Labels, *, draws: Draws | None = None, **grouping: Any
    ) -> None:
        super().__init__(labels, **grouping)
        self.tally = tally
        self.draws = draws
        self.slices = self.n_groups  # groups of one resample
        if draws is not None:
            self.n_groups *= len(draws)
        self._rows: dict[tuple[str, str], tuple[Array, Array, Array | None]] = {}
        self._sizes: dict[tuple[str, str], Array] = {}

    @property
    def whole(self) -> Any:
        """The tally with the facts of all blocks; without rows if these are in files."""
        return self.tally.whole

    def n_codes(self, by: str) -> int:
        """Return the number of labels or label keys."""
        return len(self.labels.key_names) if by == "key" else len(self.labels)

    def blocks(self) -> Iterator[tuple[Any, Array | None]]:
        """Yield rows, and the group of each datum."""
        for rows, group, _ in self.tally.blocks(self.group):
            if rows is not self.tally:
                self.refuse_draws()
            yield rows, group

    def drawn_sums(
        self,
        name: str,
        by: str,
        of: Callable[[Any, Array], Array] | None,
        n_cells: int,
        *,
        counts: bool = False,
    ) -> Array:
        """Return sums over the rows of a table in each resample, [resamples * groups, cells, ...].

        Args:
            name: the table.
            by: ``label`` or ``key``.
            of: computes values on a grid from rows and their cells; None to count rows.
            n_cells: number of cells of all groups.
            counts: count the defined values instead.
        """
        assert self.draws is not None

        def summands() -> Summands:
            for rows, group, keys in self.tally.blocks(self.group):
                datum, cell = self.placed(rows, group, name, by)
                yield keys, datum, cell, None if of is None else of(rows, cell)

        return by_draw(self.draws.sums(n_cells, summands, counts=counts), self.slices)

    def placed(
        self, rows: Any, group: Array | None, name: str, by: str
    ) -> tuple[Array | None, Array]:
        """Return datum (None: row i is datum i) and cell [group, code] of each row, -1 outside.

        Args:
            name: a table among the rows.
            by: ``label`` or ``key``.
        """
        table = getattr(rows, name)
        code = self.code_of(table, by)
        if group is None:
            return table.datum, code
        at = group[table.datum].astype(np.int64)
        return table.datum, np.where(at < 0, -1, at * self.n_codes(by) + code)

    def code_of(self, table: Any, by: str) -> Array:
        """Return the label or label key of each row."""
        code = getattr(table, by, None)
        return self.labels.key[table.label] if code is None else code

    def in_groups(self, name: str, by: str) -> Iterator[tuple[Any, Array, Array, Array | None]]:
        """Yield blocks, with the rows of a table in groups, their cells and their weights."""
        for rows, group in self.blocks():
            cached = self._rows.get((name, by)) if rows is self.tally else None
            if cached is None:
                datum, cell = self.placed(rows, group, name, by)
                inside = np.flatnonzero(cell >= 0)
                times = None
                if self.weights is not None:
                    times = self.weights[inside if datum is None else datum[inside]]
                cached = inside, cell[inside], times
                if rows is self.tally:
                    self._rows[name, by] = cached
            yield rows, *cached

    def size(self, name: str, by: str = "label") -> Array:
        """Return the number of rows, with multiplicity in resamples, float64 [group, code]."""
        if (name, by) in self._sizes:
            return self._sizes[name, by]
        n_cells = self.slices * self.n_codes(by)
        if self.draws is None:
            out = np.zeros(n_cells)
            for _, _, cell, times in self.in_groups(name, by):
                out += np.bincount(cell, times, minlength=n_cells)
        else:
            out = self.drawn_sums(name, by, None, n_cells)
        self._sizes[name, by] = out.reshape(self.n_groups, self.n_codes(by))
        return self._sizes[name, by]

    def exact_sums(self, name: str, of: Values, by: str = "label") -> tuple[Array, Array]:
        """Return exact sums by group and code, without undefined values.

        Args:
            name: the table.
            of: computes float64 values.
            by: ``label`` or ``key``.

        Returns:
            sums, and number of values in each, float64 [group, code, ...].
        """
        if self.draws is not None:
            return self._drawn_sums(name, of, by, self.draws)
        n_cells = self.n_groups * self.n_codes(by)
        trailing: tuple[int, ...] = ()
        sums, many = ExactSums(0), np.zeros(0)
        for rows, inside, cell, times in self.in_groups(name, by):
            values, trailing = _flat(of(rows))
            width = values.shape[1]
            if not sums.cells:
                sums, many = ExactSums(n_cells * width), np.zeros(n_cells * width)
            for value, at, weight in _pieces(values, inside, cell, times, many.size):
                defined = ~np.isnan(value)
                if not defined.all():
                    value, at = value[defined], at[defined]
                    weight = None if weight is None else weight[defined]
                sums.add(value if weight is None else value * weight, at)
                many += np.bincount(at, weight, minlength=many.size)
        shape = self.n_groups, self.n_codes(by), *trailing
        return sums.rounded().reshape(shape), many.reshape(shape)

    def integer_sums(self, name: str, of: Values, by: str = "label") -> Array:
        """Return sums of integers or flags by group and code, int64 [group, code, ...].

        Args:
            name: the table.
            of: computes the integers.
            by: ``label`` or ``key``.
        """
        n_cells = self.slices * self.n_codes(by)
        trailing: tuple[int, ...] = ()
        shape = self.n_groups, self.n_codes(by)
        if self.draws is not None:
            drawn = self.drawn_sums(name, by, lambda rows, _: of(rows).astype(float), n_cells)
            return drawn.astype(np.int64)
        out = np.zeros(0, np.int64)
        for rows, inside, cell, times in self.in_groups(name, by):
            values, trailing = _flat(of(rows))
            if not out.size:
                out = np.zeros(n_cells * values.shape[1], np.int64)
            for value, at, weight in _pieces(values, inside, cell, times, out.size):
                value = value.astype(np.int64, copy=False)
                np.add.at(out, at, value if weight is None else value * weight)
        return out.reshape(*shape, *trailing)

    def _drawn_sums(self, name: str, of: Values, by: str, draws: Draws) -> tuple[Array, Array]:
        """:meth:`exact_sums` per resample: sums of values on a grid on which no addition rounds."""
        steps, complete = draws.once(lambda: self._steps(name, of, by))

        def on_steps(rows: Any, cell: Array) -> Array:
            values = of(rows)
            step = steps if len(steps) == 1 else steps[cell]
            return on_grid(_flat(values)[0], step).reshape(values.shape)

        sums = self.drawn_sums(name, by, on_steps, len(steps))
        if complete:
            sizes = self.size(name, by)
            sizes = sizes.reshape(*sizes.shape, *[1] * (sums.ndim - 2))
            return sums, np.broadcast_to(sizes, sums.shape)
        return sums, self.drawn_sums(name, by, on_steps, len(steps), counts=True)

    def _steps(self, name: str, of: Values, by: str) -> tuple[Array, bool]:
        """Return the grid step of each cell's values, [cells, columns]; True if all are defined.

        Raises:
            OneByOne: a value is infinite.
        """
        n_cells, complete = self.slices * self.n_codes(by), True
        n, largest = np.zeros((2, 0, n_cells))
        for rows, group, _ in self.tally.blocks(self.group):
            _, cell = self.placed(rows, group, name, by)
            values, _ = _flat(of(rows))
            if not len(n):
                n, largest = np.zeros((2, values.shape[1], n_cells))
            defined = ~np.isnan(values)
            complete = complete and bool(defined[cell >= 0].all())
            for j in range(len(n)):
                largest_of_cells(cell, np.where(defined[:, j], values[:, j], 0.0), n[j], largest[j])
        return finite_step(largest, n).T, complete


def _flat(values: Array) -> tuple[Array, tuple[int, ...]]:
    """Return values as a matrix of rows and columns, and the shape of the columns."""
    trailing = values.shape[1:]
    return values.reshape(values.shape[0], math.prod(trailing)), trailing


def _pieces(
    values: Array, inside: Array, cell: Array, times: Array | None, n_cells: int
) -> Iterator[tuple[Array, Array, Array | None]]:
    """Yield values of all columns row by row, with their cells [cell, column] and weights.

    Args:
        values: [n, columns].
        inside: int64 [m], rows that count.
        cell: int [m], their cells.
        times: int64 [m], their weights, or None.
        n_cells: number of cells and columns.
    """
    width = values.shape[1]
    if width == 1:
        yield values[inside, 0], cell, times
        return
    step = max(_PIECE, n_cells) // max(width, 1)
    for first in range(0, inside.size, max(step, 1)):
        some = slice(first, first + step)
        at = (cell[some].astype(np.int64)[:, None] * width + np.arange(width)).ravel()
        weight = None if times is None else times[some].repeat(width)
        yield values[inside[some]].ravel(), at, weight
