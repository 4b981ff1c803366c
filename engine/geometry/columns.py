"""Columns of nested lists as flat arrays, and places in a user's table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array
from ..schemas.errors import N_EXAMPLES, InputError

# Columns of nested lists and strings as flat arrays. To import PyArrow takes 33 MB and 0.06 s.


def as_lists(column: pl.Series) -> pl.Series:
    """The column with lists in place of arrays of fixed length."""
    dtype = _listed(column.dtype)
    return column if dtype == column.dtype else column.cast(dtype)


def _listed(dtype: pl.DataType) -> pl.DataType:
    if isinstance(dtype, pl.Array):
        # an array of several dimensions names its scalar type, not its rows
        for _ in range(len(dtype.shape) - 1):
            dtype = dtype.inner  # type: ignore[assignment]
            return pl.List(_listed(dtype))
        return pl.List(_listed(dtype.inner))  # type: ignore[arg-type]
    if isinstance(dtype, pl.List):
        return pl.List(_listed(dtype.inner))  # type: ignore[arg-type]
    return dtype


def depth_of(dtype: pl.DataType) -> tuple[int, pl.DataType]:
    """Return the number of list levels of a dtype, and its innermost dtype."""
    levels = 0
    listed = _listed(dtype)
    while isinstance(listed, pl.List):
        levels += 1
        listed = listed.inner  # type: ignore[assignment]
    return levels, listed


def flat(column: pl.Series) -> tuple[pl.Series, list[Array]]:
    """Return the innermost values of nested lists, and the offsets of every level from outside in.

    Args:
        column: lists, of lists and so on; nulls count as empty.

    Returns:
        the innermost values, with their nulls; int64 [n + 1], [sum of lengths + 1], ...
    """
    column, offsets = as_lists(column), []
    while isinstance(column.dtype, pl.List):
        sizes = column.list.len()
        sizes = sizes.fill_null(0) if sizes.null_count() else sizes
        offsets.append(offsets_of(sizes.to_numpy()))
        column = column.explode(empty_as_null=False, keep_nulls=False)
    return column.rechunk(), offsets


_FEW_TEXTS = 256
"""Texts that Python encodes faster than Polars."""


def text_bytes(column: pl.Series) -> tuple[Array, Array]:
    """Bytes of strings or binaries without nulls: uint8, and their offsets int64 [n + 1]."""
    if not column.len():
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    if column.len() <= _FEW_TEXTS and column.dtype == pl.String:
        texts = [text.encode() for text in column.to_list()]
        sizes = np.array([len(text) for text in texts])
        return np.frombuffer(b"".join(texts), np.uint8), offsets_of(sizes)
    values, (offsets,) = flat(column.cast(pl.Binary).cast(pl.List(pl.UInt8)))
    return values.to_numpy(), offsets


def text_column(data: Array, offset: Array) -> pl.Series:
    """A column of strings from their UTF-8 bytes and offsets."""
    return binary_column(data, offset).cast(pl.String)


def binary_column(data: Array, offset: Array) -> pl.Series:
    """A column of binaries from all bytes, uint8, and their offsets, int64 [n + 1]."""
    first, size = pl.Series(offset[:-1]), pl.Series(np.diff(offset))
    return pl.select(pl.lit(data.tobytes()).bin.slice(first, size).alias("")).to_series()


# Location of values in a user's table, for errors that name column, count and first rows.

_LONGEST = 80


class Origin(msgspec.Struct, frozen=True, eq=False):
    """Names, for errors, of the rows of a table that was filtered and encoded before geometry is
    parsed.

    Attributes:
        number: maps a row to its number in the user's table, from 0; called only for errors.
        datum: maps a row to its datum id.
    """

    number: Callable[[int], int]
    datum: Callable[[int], Any]

    def describe(self, row: int) -> str:
        """``row 17 (datum_id='a')``."""
        return f"row {self.number(row)} (datum_id={self.datum(row)!r})"


class Place(msgspec.Struct, frozen=True, eq=False):
    """Column of a side.

    Attributes:
        side: the table, e.g. ``predictions``.
        rows: int64 [n], row numbers of the values in the table, from 0; None for all, in order.
        origin: the user's names of those rows; None if the numbers are the user's.
    """

    side: str
    column: str
    rows: Array | None = None
    origin: Origin | None = None

    def _at(self, index: int) -> int:
        return index if self.rows is None else int(self.rows[index])

    def row(self, index: int) -> int:
        """The user's row number of a value."""
        at = self._at(index)
        return at if self.origin is None else self.origin.number(at)

    def named(self, index: int) -> str:
        """Return ``row 17``, with the datum's id if known."""
        at = self._at(index)
        return f"row {at}" if self.origin is None else self.origin.describe(at)

    def take(self, rows: Array) -> Place:
        """The place of some of the values (integer [k])."""
        numbers = np.asarray(rows) if self.rows is None else self.rows[rows]
        return msgspec.structs.replace(self, rows=numbers)

    def refuse(
        self,
        code: str,
        wrong: Array,
        what: str,
        hint: str,
        value_of: Callable[[int], Any] | None = None,
        **facts: Any,
    ) -> None:
        """Raise if anything is wrong.

        Args:
            code: that of the error.
            wrong: bool [n].
            what: fault, after the number of rows: ``with ...``, ``without ...``.
            hint: the way out, a sentence.
            value_of: text shown of a row, by its index.
            **facts: of the error, in addition to side, column, count and the first rows.

        Raises:
            InputError: naming the column, the count and the first rows.
        """
        bad = np.flatnonzero(wrong)
        if not bad.size:
            return
        examples = [self._example(int(i), value_of) for i in bad[:N_EXAMPLES]]
        rows = "row" if bad.size == 1 else "rows"
        numbers = [self.row(int(i)) for i in bad[:N_EXAMPLES]]
        first = f"first (rows count from 0): {'; '.join(examples)}. {hint}"
        message = f": {bad.size:,} {rows} {what}, {first}"
        raise self.error(code, message, count=bad.size, rows=numbers, **facts)

    def error(self, code: str, message: str, **facts: Any) -> InputError:
        """Return an error about the column; ``message`` follows its name."""
        start = f"{self.side.replace('_', ' ')}: column {self.column!r}"
        return InputError(
            f"{start}{message}", code=code, side=self.side, column=self.column, **facts
        )

    def _example(self, index: int, value_of: Callable[[int], Any] | None) -> str:
        name = self.named(index)
        if value_of is None:
            return name
        text = str(as_example(value_of(index)))
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
        return f"{name[:-1]}, {text})" if name.endswith(")") else f"{name} ({text})"


def as_example(value: Any) -> Any:
    """Return a value as its user wrote it: a list instead of a Polars series."""
    return value.to_list() if hasattr(value, "to_list") else value


# Work on ranges of shapes, in parallel if the caller provides threads.

Over = Callable[[Array, Callable[[int, int], Any]], list[Any]]
"""Executor's ``over``: calls ``function(first, last)`` on ranges of groups, with CSR offsets as the
amount of work, and returns the results in order.
"""

R = TypeVar("R")


def in_ranges(over: Over | None, offsets: Array, function: Callable[[int, int], R]) -> list[R]:
    """The results of ``function`` on ranges that cover all groups; one range without ``over``."""
    return [function(0, offsets.size - 1)] if over is None else over(offsets, function)


def concatenated(
    over: Over | None,
    offsets: Array,
    function: Callable[[int, int], Array],
    dtype: Any = np.float64,
) -> Array:
    """The results of :func:`in_ranges`, one after the other."""
    return np.concatenate([np.zeros(0, dtype), *in_ranges(over, offsets, function)])


def offsets_of(counts: Array) -> Array:
    """CSR offsets, int64 [n + 1], of groups of some sizes."""
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, dtype=np.int64, out=offsets[1:])
    return offsets


# Rings of polygons as flat arrays, and the forms that a column of polygons may have.

FORMS = (
    "A polygon is a list of rings of [x, y] points (the first outside, the rest holes), one ring of"
    " points, several polygons, flat rings [x, y, x, y, ...] as in COCO, WKB, WKT or GeoJSON."
)


class Rings(msgspec.Struct, frozen=True, eq=False):
    """Rings of n polygons of several parts each; the first ring of a part is its exterior.

    Attributes:
        xy: float64 [p, 2], points in pixels; a ring need not repeat its first point.
        ring_start: int64 [r + 1], offsets of the rings' points.
        part_start: int64 [q + 1], offsets of the parts' rings.
        start: int64 [n + 1], offsets of the polygons' parts.
    """

    xy: Array
    ring_start: Array
    part_start: Array
    start: Array

    def take(self, rows: Array) -> Rings:
        """The rings of some polygons (integer [k]), in their order."""
        parts, start = members(self.start, rows)
        rings, part_start = members(self.part_start, parts)
        points, ring_start = members(self.ring_start, rings)
        return Rings(self.xy[points], ring_start, part_start, start)

    def between(self, first: int, last: int) -> Rings:
        """The rings of the polygons from one up to another, whose points are not copied."""
        start = self.start[first : last + 1]
        part_start = self.part_start[start[0] : start[-1] + 1]
        ring_start = self.ring_start[part_start[0] : part_start[-1] + 1]
        return Rings(
            self.xy[ring_start[0] : ring_start[-1]],
            ring_start - ring_start[0],
            part_start - part_start[0],
            start - start[0],
        )

    @property
    def of_ring(self) -> Array:
        """The polygon of each ring, int64 [r]."""
        first_ring = self.part_start[self.start]
        return np.repeat(np.arange(self.start.size - 1), np.diff(first_ring))


def members(offset: Array, rows: Array) -> tuple[Array, Array]:
    """Indices of the members of some groups, one after the other, and their offsets."""
    counts = (offset[1:] - offset[:-1])[rows]
    to = offsets_of(counts)
    return np.repeat(offset[:-1][rows] - to[:-1], counts) + np.arange(int(to[-1])), to
