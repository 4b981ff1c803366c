"""Datum ids: codes, distinct values, repeats and formats."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..schemas.arrays import Array
from ..schemas.contract import PREDICTIONS, Column, Table
from ..schemas.errors import InputError, OptionError, unknown
from ..schemas.tuning import tuning
from ..schemas.wording import option
from . import dtypes
from .problems import count_of

# Bitmap of the integers in a column, built once.
# Repetitions, equality of both sides and codes of ids follow from it: one scattered pass.


class Bucket(NamedTuple):
    """Subset of the integers: one of several buckets, or all.

    Consecutive integers ("a turn") are dealt one to each bucket, starting at a bucket chosen by a
    hash of the turn, so that integers in any steps fill buckets evenly. Each bucket has one integer
    per turn, so the turn identifies and orders its integers, and is as dense as the original range.
    """

    number: int = 0
    of: int = 1

    def integers(self, turns: Array) -> Array:
        """The integers that this bucket has of some turns, int64."""
        if self.of == 1:
            return turns
        place = self.number - _first(turns, self.of)
        place[place < 0] += self.of
        place += turns * self.of
        return place


ALL = Bucket()
"""The only bucket."""


def dealt(column: pl.Series, of: int) -> Array | None:
    """Return the buckets of integers, modulo the number of buckets; arbitrary for nulls; None for
    other columns.

    Returns:
        uint64 [n].
    """
    if not _signed(column):
        return None
    values: Array = column.cast(pl.Int64).fill_null(0).to_numpy()
    turns = values // of
    found: Array = values - turns * of + _first(turns, of)
    return found.view(np.uint64)


def _signed(column: pl.Series) -> bool:
    """Return whether all integers of a column fit into signed 64 bits."""
    return column.dtype.is_integer() and column.dtype not in (pl.UInt64, pl.Int128, pl.UInt128)


def _first(turns: Array, of: int) -> Array:
    """The bucket with which each turn begins, int64 [n], by a hash of 32 bits."""
    from ..kernels.datums import hash_integers  # Numba, which runs without buckets do without

    shift = np.uint64(32)
    return ((hash_integers(turns) >> shift) * np.uint64(of) >> shift).view(np.int64)


class Marks(msgspec.Struct, frozen=True, dict=True):
    """Bitmap of an integer column without nulls.

    Attributes:
        flags: bool [span], whether ``low + i`` occurs; the last one does.
    """

    low: int
    flags: Array
    rows: int
    bucket: Bucket = ALL

    @property
    def end(self) -> int:
        """One past the highest, or its turn."""
        return self.low + int(self.flags.size)

    @cached_property
    def count(self) -> int:
        """Distinct integers."""
        return int(np.count_nonzero(self.flags))

    def series(self, like: pl.Series, most: int | None = None) -> pl.Series:
        """The integers, or the lowest ones, ascending, with the name and dtype of a Series."""
        whole = self.count == self.flags.size and self.bucket.of == 1
        if whole and self.end < 1 << 63:  # without a copy in between
            end = self.end if most is None else min(self.low + most, self.end)
            found = pl.int_range(self.low, end, dtype=pl.Int64, eager=True)
            return found.cast(like.dtype).alias(like.name)
        dtype = like.clear().to_numpy().dtype
        few = self._shifted(np.flatnonzero(self.flags)[:most], dtype)
        return pl.Series(like.name, few, dtype=like.dtype)

    def within(self, low: int, end: int) -> Array:
        """The flags of the integers from ``low`` to below ``end``, bool [end - low]."""
        if low == self.low and end == self.end:
            return self.flags
        out = np.zeros(end - low, np.bool_)
        first, last = max(low, self.low), min(end, self.end)
        if first < last:
            out[first - low : last - low] = self.flags[first - self.low : last - self.low]
        return out

    def lacking(self, other: Marks, dtype: Any) -> Array:
        """Return the integers that are missing in the other column, ascending."""
        theirs = other.within(self.low, self.end)
        if theirs is other.flags and np.array_equal(self.flags, theirs):
            return np.zeros(0, dtype)
        return self._shifted(np.flatnonzero(self.flags > theirs), dtype)

    def _shifted(self, found: Array, dtype: Any) -> Array:
        """Counts from ``low`` as the integers themselves, whatever sign these have."""
        if self.bucket.of > 1:
            return self.bucket.integers(found + self.low).astype(dtype)
        out = found.astype(dtype, copy=False)
        out += np.dtype(dtype).type(self.low)
        return out


def span_of(column: pl.Series) -> tuple[int, int]:
    """The lowest integer of a column that has rows and no nulls, and one past the highest."""
    low, high = column.min(), column.max()
    assert isinstance(low, int)
    assert isinstance(high, int)
    return low, high + 1


def marks_of(column: pl.Series, room: int, bucket: Bucket = ALL) -> Marks | None:
    """Build the bitmap of an integer column; None if it would exceed ``room`` flags."""
    if not column.dtype.is_integer() or column.null_count() or not len(column):
        return None
    if bucket.of > 1 and not _signed(column):
        return None
    low, end = span_of(column)
    low, end = low // bucket.of, (end - 1) // bucket.of + 1
    if end - low > room:
        return None
    if end - low <= 2:  # only the lowest and the highest fit
        return Marks(low, np.ones(end - low, np.bool_), len(column), bucket)
    flags = np.zeros(end - low, np.bool_)
    for _, block in _blocks(column, bucket.of):
        flags[block - signed(low)] = True
    return Marks(low, flags, len(column), bucket)


def codes_of(column: pl.Series, low: int, code: Array | None, of: int = 1) -> Array:
    """Return codes of integers, int32 [n].

    Args:
        code: int32 [span], the code of each integer from ``low`` on; None for the identity.
        of: number of buckets, of whose turns ``low`` is one.
    """
    out = np.empty(len(column), np.int32)
    for first, block in _blocks(column, of):
        here = out[first : first + block.size]
        if code is None:
            np.subtract(block, signed(low), out=here, casting="unsafe")
        else:
            np.take(code, block - signed(low), out=here)
    return out


def signed(value: int) -> int:
    """An integer of 64 bits as the signed one of the same bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _blocks(column: pl.Series, of: int) -> Iterator[tuple[int, Array]]:
    """First row and int64 values, or turns, of short pieces; unsigned ones keep their bits."""
    first = 0
    for chunk in column.get_chunks():
        values = chunk.to_numpy()
        rows = tuning().block_rows
        for at in range(0, values.size, rows):
            block = values[at : at + rows]
            if block.dtype == np.uint64:
                yield first + at, block.view(np.int64)
            else:
                block = block.astype(np.int64, copy=False)
                yield first + at, block if of == 1 else block // of
        first += values.size


def common_start(texts: Sequence[Any]) -> Any:
    """Return the characters with which all of some texts begin."""
    return os.path.commonprefix(texts)  # noqa: RUF071 - characters are wanted


# Byte order of many strings by integer sorting.
# Eight bytes form a big-endian integer. The common prefix is skipped; only ties are refined.

_WORD = 8


def text_order(values: pl.Series) -> Array:
    """Return the rows in ascending order of their strings' UTF-8 bytes, int64 [n].

    Args:
        values: distinct strings without nulls.
    """
    n = len(values)
    if n < tuning().few_texts:
        return values.arg_sort().to_numpy().astype(np.int64)
    low, high = values.min(), values.max()
    assert isinstance(low, str)
    assert isinstance(high, str)
    # The common prefix of the first and the last is that of all.
    at = len(common_start([low.encode(), high.encode()]))
    binary = values.cast(pl.Binary)
    longest = binary.bin.size().max()
    assert isinstance(longest, int)
    word = _word(binary, at)
    order = np.argsort(word).astype(np.int64, copy=False)
    run, tied = _ties(word[order], np.zeros(n, np.int64))
    places = np.flatnonzero(tied)  # in the order, ascending
    run = run[places]
    while places.size:
        at += _WORD
        rows = order[places]
        left = binary.gather(rows)
        if (
            places.size < tuning().few_texts or at >= longest
        ):  # at the end, only zeros distinguish them
            table = pl.DataFrame({"run": run, "value": left})
            by = table.select(pl.arg_sort_by("run", "value")).to_series().to_numpy()
            order[places] = rows[by]
            break
        word = _word(left, at)
        by = np.argsort(word)
        by = by[np.argsort(run[by], kind="stable")]
        order[places] = rows[by]
        run, tied = _ties(word[by], run)
        places, run = places[tied], run[tied]
    return order


def _ties(word: Array, run: Array) -> tuple[Array, Array]:
    """New runs of equal words within runs, int64 [n], and who is in one with others, bool [n]."""
    same = (word[1:] == word[:-1]) & (run[1:] == run[:-1])
    return np.cumsum(np.r_[True, ~same]), np.r_[False, same] | np.r_[same, False]


def _word(values: pl.Series, at: int) -> Array:
    """Return eight bytes from a position as integers, uint64 [n]; zeros after the end."""
    padding = pl.lit(bytes(_WORD), dtype=pl.Binary)
    return (
        values.alias("value")
        .to_frame()
        .select(
            (pl.col("value").bin.slice(at, _WORD) + padding)
            .bin.head(_WORD)
            .bin.reinterpret(dtype=pl.UInt64, endianness="big")
        )
        .to_series()
        .to_numpy()
    )


# Encoding of ids as dense codes; later steps handle only codes.

_OTHER_SEED = 0x9E3779B97F4A7C15
_SAMPLE = 20_000  # strings looked at to see whether they repeat, spread out or in a row
_DISTINCT = 0.7  # share of them that may differ
_SPREAD = 8  # a table of codes is used while the range of integers is at most this many per row


class Coded(msgspec.Struct, frozen=True):
    """Dictionary-encoded column of strings, if there are few distinct values.

    Attributes:
        values: the distinct values, in order of first appearance.
        codes: int32 [n], index in ``values``.
    """

    values: pl.Series
    codes: Array


def coded(column: pl.Series) -> Coded | None:
    """Dictionary-encode strings; None if samples show too few repetitions."""
    if column.dtype != pl.String or len(column) < tuning().few_rows:
        return None
    # A spread sample finds repetitions in unsorted columns, a contiguous one in sorted columns.
    spread = column.gather_every(max(1, len(column) // _SAMPLE)).head(_SAMPLE)
    together = column.slice((len(column) - _SAMPLE) // 2 if len(column) > _SAMPLE else 0, _SAMPLE)
    if all(some.n_unique() > _DISTINCT * len(some) for some in (spread, together)):
        return None
    codes, rows = by_hash(column)
    return Coded(column.gather(rows), codes)


def encode(
    columns: list[pl.Series], made: Sequence[Marks | Coded | None] = (), *, used_up: bool = False
) -> tuple[pl.Series, list[Array]]:
    """Encode the distinct values of several columns, in ascending order of value.

    Args:
        columns: Series of one dtype, integer or String, without nulls. Strings are ordered by their
            UTF-8 bytes.
        made: precomputed flags, or distinct values, of the first columns; None for others.
        used_up: allow emptying the list, to free long columns early.

    Returns:
        the distinct values, ascending; int32 codes of each column.
    """
    made = [*made, *[None] * (len(columns) - len(made))]
    if columns[0].dtype.is_integer():
        marks = [one if isinstance(one, Marks) else None for one in made]
        result = _table(columns if used_up else [*columns], marks)
        if result is not None:
            return result
    known = [one if isinstance(one, Coded) else None for one in made]
    if any(known):
        return _by_values(columns, known)
    return _by_hash(columns)


def _by_values(
    columns: Sequence[pl.Series], known: Sequence[Coded | None]
) -> tuple[pl.Series, list[Array]]:
    """Codes of columns of which some are known by their distinct values already."""
    short = [
        column if one is None else one.values for column, one in zip(columns, known, strict=True)
    ]
    values, codes = _by_hash(short)
    return values.alias(columns[0].name), [
        new if one is None else new.take(one.codes) for new, one in zip(codes, known, strict=True)
    ]


def _table(
    columns: list[pl.Series], made: Sequence[Marks | None]
) -> tuple[pl.Series, list[Array]] | None:
    """Encode by a lookup table as long as the range of values; None if that is too long.

    Empties the list on success.
    """
    filled = [(column, marks) for column, marks in zip(columns, made, strict=True) if len(column)]
    if not filled:
        return None
    buckets = {ALL if marks is None else marks.bucket for _, marks in filled}
    if len(buckets) > 1:  # flags that do not compare
        filled, buckets = [(column, None) for column, _ in filled], {ALL}
    (bucket,) = buckets
    ends = [span_of(c) if marks is None else (marks.low, marks.end) for c, marks in filled]
    low, end = min(first for first, _ in ends), max(last for _, last in ends)
    n_rows = sum(len(column) for column in columns)
    if end - low > _SPREAD * n_rows + 1024:
        return None
    present: Array | None = None
    for column, marks in filled:
        found = marks or marks_of(column, end - low)
        assert found is not None
        flags = found.within(low, end)
        present = flags if present is None else present | flags
    assert present is not None
    filled.clear()
    del column  # or the last one would stay
    like = columns[0].clear()  # a slice would keep the whole column
    code: Array | None = None
    if not present.all():  # else integers counted from the lowest are their own codes
        code = np.cumsum(present, dtype=np.int32)
        code -= 1
    codes = []
    while columns:
        codes.append(codes_of(columns.pop(0), low, code, bucket.of))
    return Marks(low, present, n_rows, bucket).series(like), codes


def _by_hash(columns: Sequence[pl.Series]) -> tuple[pl.Series, list[Array]]:
    """Codes by way of hashes, which are compared instead of the values."""
    every = columns[0] if len(columns) == 1 else pl.concat([c.alias("value") for c in columns])
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    if len(every) < tuning().few_rows:  # a join of few rows costs less than loading the kernel
        every = every.alias("value")
        found = every.unique().sort()
        table = pl.DataFrame({"value": found, "code": np.arange(len(found), dtype=np.int32)})
        joined = every.to_frame().join(table, on="value", how="left", maintain_order="left")
        return found.alias(columns[0].name), np.split(joined["code"].to_numpy(), cuts)
    codes, rows = by_hash(every)
    values = every.gather(rows)
    order = text_order(values) if values.dtype == pl.String else values.arg_sort().to_numpy()
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    codes = place.take(codes)
    return values.gather(order).alias(columns[0].name), np.split(codes, cuts)


def by_hash(values: pl.Series) -> tuple[Array, Array]:
    """Return codes by first appearance, int32 [n], and the first row of each, int64 [k]."""
    from ..kernels.datums import hash_codes  # Numba, which few rows do without

    return hash_codes(*_hashes(values))


def _hashes(values: pl.Series) -> tuple[Array, Array]:
    """Return two hashes of every value, uint64 [n]; the second of an integer is itself."""
    first = values.hash(seed=0).to_numpy()
    if values.dtype.is_integer():
        return first, values.cast(pl.Int64, wrap_numerical=True).to_numpy().view(np.uint64)
    return first, values.hash(seed=_OTHER_SEED).to_numpy()


# Distinct ids and labels, fast for small integers.

_SPAN = 1 << 22


def distinct(values: pl.Series) -> pl.Series:
    """Return the distinct values without nulls, ascending (strings by bytes).

    A narrow range of integers uses a bitmap, which reads the column once. Strings, which often
    repeat, are hashed, and only distinct ones are sorted.
    """
    marks = _marks(values)
    if marks is not None:
        return marks.series(values)
    known = values.drop_nulls()
    if ascending(known):
        return known
    if known.dtype != pl.String or len(known) < tuning().few_rows:
        return known.unique().sort()
    found = known.gather(by_hash(known)[1])
    return found.gather(text_order(found))


def has_repeats(values: pl.Series) -> bool:
    """Return whether any value except null repeats."""
    marks = _marks(values)
    if marks is not None:
        return marks.count < len(values)
    known = values.drop_nulls()
    return not ascending(known) and known.n_unique() < len(known)


def ascending(values: pl.Series) -> bool:
    """Return whether values without nulls strictly ascend; the first rows decide most cases."""
    for size in (min(1000, len(values)), len(values)):
        if not (values.slice(1, max(0, size - 1)) > values.head(max(0, size - 1))).all():
            return False
    return True


def _marks(values: pl.Series) -> Marks | None:
    """Return a bitmap of integers in a narrow range; otherwise None."""
    return marks_of(values, max(_SPAN, 2 * len(values)))


# Datum ids of one table, computed lazily for comparison with another.

_SEED = 20_000_003
_FLAGS = 8  # flags per id that it may have beyond that


def marks_in_bucket(frame: pl.DataFrame, name: str, bucket: Bucket) -> dict[str, Marks]:
    """Return a bitmap of a bucket's ids by column; empty if their range is too wide."""
    marks = _marks_of_known(frame[name], bucket) if name in frame.columns else None
    return {} if marks is None else {name: marks}


def _marks_of_known(values: pl.Series, bucket: Bucket = ALL) -> Marks | None:
    return marks_of(values, max(_SPAN, _FLAGS * len(values)), bucket)


class Known:
    """Distinct ids of a table.

    Integers are compared directly. Strings are compared by 64-bit hashes, which sort much faster;
    the results are used only in notes and errors, never in numbers.

    Args:
        values: the ids, row by row, without nulls.
    """

    def __init__(self, values: pl.Series, made: Marks | None = None) -> None:
        self.values = values
        self._made = made
        self._lacking: dict[int, tuple[Known, Lone]] = {}

    @cached_property
    def marks(self) -> Marks | None:
        """Bitmap of integers in a narrow range; otherwise None."""
        return self._made or _marks_of_known(self.values)

    @cached_property
    def coded(self) -> Coded | None:
        """Distinct values of strings if many repeat; otherwise None."""
        return coded(self.values)

    @property
    def made(self) -> Marks | Coded | None:
        """Precomputed bitmap or distinct values for encoding."""
        return self.coded if self.marks is None else self.marks

    @cached_property
    def ordered(self) -> pl.Series:
        """The ids themselves, each once, ascending."""
        if self.coded is not None:
            return self.coded.values.sort()
        return distinct(self.values) if self.marks is None else self.marks.series(self.values)

    def lowest(self, most: int) -> pl.Series:
        """The lowest of the ids, ascending."""
        if self.marks is None:
            return self.ordered.head(most)
        return self.marks.series(self.values, most)

    @cached_property
    def keys(self) -> NDArray[Any]:
        """Comparison key of each id (integer or hash), distinct, ascending."""
        if self.values.dtype.is_integer():
            return self.ordered.to_numpy()
        told = self.values if self.coded is None else self.coded.values
        hashed = told.hash(seed=_SEED).to_numpy(writable=True)
        hashed.sort()
        first = np.ones(hashed.size, dtype=np.bool_)
        np.not_equal(hashed[1:], hashed[:-1], out=first[1:])
        return hashed if first.all() else hashed[first]

    def __len__(self) -> int:
        return int(self.keys.size) if self.marks is None else self.marks.count

    def _flags(self, other: Known) -> tuple[Marks, Marks] | None:
        """Return the bitmaps of both, if they are comparable."""
        ours, theirs = self.marks, other.marks
        if ours is None or theirs is None or ours.bucket != theirs.bucket:
            return None
        return ours, theirs

    def lacking(self, other: Known) -> Lone:
        """Return the ids that the other table does not have; cached."""
        if id(other) not in self._lacking:
            self._lacking[id(other)] = other, self._not_in(other)
        return self._lacking[id(other)][1]

    def _not_in(self, other: Known) -> Lone:
        if (flags := self._flags(other)) is not None:
            dtype = self.values.clear().to_numpy().dtype
            return Lone(self, flags[0].lacking(flags[1], dtype))
        ours, theirs = self.keys, other.keys
        if self is other or (ours.size == theirs.size and bool((ours == theirs).all())):
            return Lone(self, ours[:0])
        if theirs.size == 0:
            return Lone(self, ours)
        place = np.searchsorted(theirs, ours)
        np.minimum(place, theirs.size - 1, out=place)
        return Lone(self, ours[theirs[place] != ours])

    @property
    def _few(self) -> pl.Series:
        """Return the ids, deduplicated if they are dictionary-encoded."""
        return self.values if self.coded is None else self.coded.values

    def first(self, keys: NDArray[Any], most: int) -> list[Any]:
        """Return the lowest ids for some keys."""
        if self.values.dtype.is_integer():
            return pl.Series(keys[:most]).to_list()
        if keys.size == len(self):
            return self._few.unique().bottom_k(most).sort().to_list()
        wanted = self._few.hash(seed=_SEED).is_in(pl.Series(keys).implode())
        return self._few.filter(wanted).unique().bottom_k(most).sort().to_list()


class Lone:
    """Ids of one table that are missing in another."""

    def __init__(self, home: Known, keys: NDArray[Any]) -> None:
        self._home = home
        self._keys = keys

    def __len__(self) -> int:
        return int(self._keys.size)

    def first(self, most: int = 5) -> list[Any]:
        """The lowest of them."""
        return self._home.first(self._keys, most) if len(self) else []


# Detection of repeated keys by the cheapest sufficient proof of uniqueness.
# Order or a bitmap first, then distinct hashes; the exact check, slower, runs only if these fail.


def rows_repeat(
    frame: pl.DataFrame, key: Sequence[str], made: dict[str, Marks] | None = None
) -> bool:
    """Return whether any key is in more than one row."""
    made = {} if made is None else made
    columns = [frame[name] for name in key]
    if frame.height < 2:
        return False
    if not any(column.null_count() for column in columns):
        columns = [
            column
            for column in columns
            if not (bool(column[-1] == column[0]) and bool((column == column[0]).all()))
        ]
        if not columns:
            return True
        if any(ascending(column) for column in columns) or _in_order(columns):
            return False
        for column in columns[:-1] if len(columns) > 1 else ():
            if column.dtype.is_integer():
                low, end = span_of(column)
                wide = end - low >= len(column)
                if wide and _marked([column], made) == len(column):  # all differ in it
                    return False
        marked = _marked(columns, made)
        if marked is not None:
            return marked < frame.height
        if pl.DataFrame(columns).hash_rows().n_unique() == len(columns[0]):
            return False
    return bool(frame.select(key).is_duplicated().any())


def _in_order(columns: Sequence[pl.Series]) -> bool:
    """Return whether the rows are in strict lexicographic order of several columns."""
    if len(columns) == 1:
        return False  # asked already
    at, size = 0, 1000  # a look at the first few spares most others
    while at < len(columns[0]) - 1:
        if not _rise([column.slice(at, size + 1) for column in columns]):
            return False
        at, size = at + size, tuning().pair_rows
    return True


def _rise(columns: Sequence[pl.Series]) -> bool:
    """Return whether a few rows are in strict lexicographic order of the columns."""
    equal: pl.Series | None = None  # in all columns before
    for column in columns[:-1]:
        above, below = column.head(len(column) - 1), column.slice(1)
        same = above == below
        # Testing texts for equality is much faster than ordering them.
        changed = ~same if equal is None else equal & ~same
        if not (below.filter(changed) > above.filter(changed)).all():
            return False
        equal = same if equal is None else equal & same
    last = columns[-1]
    later = last.slice(1) > last.head(len(last) - 1)
    return bool((later if equal is None else later | ~equal).all())


def _marked(columns: Sequence[pl.Series], made: dict[str, Marks]) -> int | None:
    """Count the distinct rows of integers by a bitmap; None if that would be too large."""
    if not all(column.dtype.is_integer() for column in columns):
        return None
    room = max(1 << 22, _FLAGS * len(columns[0]))
    if len(columns) == 1:
        marks = made.get(columns[0].name) or marks_of(columns[0], room)
        if marks is None:
            return None
        made[columns[0].name] = marks
        return marks.count
    ranges: list[tuple[int, int]] = []
    for column in columns:
        low, end = span_of(column)
        ranges.append((low, end - low))
        room //= end - low
        if room == 0:
            return None
    place: NDArray[np.int64] | None = None
    for column, (low, span) in zip(columns, ranges, strict=True):
        shifted = column.to_numpy() - np.array(low, dtype=column.to_numpy().dtype)
        place = shifted.astype(np.int64, copy=False) if place is None else place * span + shifted
    assert place is not None
    flags = np.zeros(int(np.prod([span for _, span in ranges])), dtype=np.bool_)
    flags[place] = True
    return int(np.count_nonzero(flags))


# Normalisation of ids and labels: ``id_format`` and ``label_format``.


class Form(NamedTuple):
    """One way of writing ids.

    Attributes:
        name: value of ``id_format``.
        write: strings to strings.
    """

    name: str
    differ: str
    write: Callable[[pl.Expr], pl.Expr]


_FOLDERS, _EXTENSION = r"^.*[/\\]", r"\.[A-Za-z][A-Za-z0-9]{0,4}$"
_ZEROS = r"^0+([0-9]+)$"


def _stem(ids: pl.Expr) -> pl.Expr:
    return ids.str.replace(_FOLDERS, "").str.replace(_EXTENSION, "")


def _last_number(ids: pl.Expr) -> pl.Expr:
    return pl.coalesce(ids.str.extract(r"([0-9]+)[^0-9]*$"), ids).str.replace(_ZEROS, "$1")


FORMS = {
    form.name: form
    for form in (
        Form("text", "type (integers and strings)", lambda ids: ids),
        Form("case", "letter case", lambda ids: ids.str.to_lowercase()),
        Form("blanks", "surrounding blanks", lambda ids: ids.str.strip_chars()),
        Form(
            "unicode",
            "Unicode form (composed or not, as file names of macOS)",
            lambda ids: ids.str.normalize("NFC"),
        ),
        Form("zeros", "leading zeros", lambda ids: ids.str.replace(_ZEROS, "$1")),
        Form("extension", "file extension", lambda ids: ids.str.replace(_EXTENSION, "")),
        Form("file", "folders", lambda ids: ids.str.replace(_FOLDERS, "")),
        Form("stem", "folders and file extension", _stem),
        Form("number", "everything but their last number", _last_number),
    )
}
_NUMBER = "number"
_STEP = re.compile(r"[+-][0-9]{1,9}")
_PREDICTED = ("predicted",)  # columns of one table that are the predictions'


def written(ids: pl.Expr, forms: Sequence[str]) -> pl.Expr:
    """Rewrite string ids in forms, one after the other.

    Args:
        forms: names of ``FORMS``, or regular expressions whose first group is the id; ids that do
            not match are unchanged.
    """
    for form in forms:
        known = FORMS.get(form)
        ids = known.write(ids) if known else pl.coalesce(ids.str.extract(form), ids)
    return ids


def stepped(ids: pl.Expr, step: int) -> pl.Expr:
    """Texts of whole numbers with a step added to them; other texts as they are."""
    moved = ids.cast(pl.Int64, strict=False) + step
    return pl.coalesce(moved.cast(pl.String), ids)


def check_forms(name: str, forms: Sequence[str]) -> None:
    """Refuse forms that do not exist."""
    for form in forms:
        if form in FORMS or _STEP.fullmatch(form):
            continue
        if "(" not in form:
            after = (
                " Or a step that is added to the predictions' (+1), or a regular expression "
                "whose first group is the id: 'frame_([0-9]+)'."
            )
            raise unknown(name, form, FORMS, after=after)
        try:
            pl.select(pl.lit("").str.extract(form))
        except pl.exceptions.PolarsError as error:
            why = str(error).split("\n\n")[0]
            raise OptionError(
                f"{name}: {form!r} is not a regular expression that can be read: {why}.",
                code="option_value",
                option=name,
                value=form,
            ) from None


def steps_of(forms: Sequence[str] | None) -> int:
    """Return the sum of the steps among forms, added to numbers of the predictions."""
    return sum(int(form) for form in forms or () if _STEP.fullmatch(form))


def formed(
    values: pl.Expr, dtype: pl.DataType, table: Table, column: Column, forms: Sequence[str]
) -> pl.Expr:
    """Apply ``id_format`` or ``label_format`` to ids or labels.

    Args:
        dtype: of ``values``; forms apply to strings and integers, also in lists.

    Raises:
        InputError: a step for values that are neither integers nor texts that end in a number.
    """
    if isinstance(dtype, pl.List):
        inner = dtypes.inner_of(dtype)
        return values.list.eval(formed(pl.element(), inner, table, column, forms))
    predicted = table.side == PREDICTIONS or column.name in _PREDICTED
    for i, form in enumerate(forms):
        if not _STEP.fullmatch(form):
            values = written(values.cast(pl.String), [form])
            dtype = pl.String()
        elif _NUMBER in forms[:i]:
            values = stepped(values, int(form)) if predicted else values
        elif not dtype.is_integer():
            raise InputError(
                f"{form} is added to integers, and the {table.side.replace('_', ' ')} have "
                f"{dtype} in {column.name}. Cast it, or omit the step.",
                code="wrong_dtype",
                side=table.side,
                column=column.name,
            )
        elif predicted:
            values = values + int(form)
    return values


def refuse_merged(
    rows: pl.LazyFrame, exprs: Mapping[str, pl.Expr], table: Table, forms: Sequence[str]
) -> None:
    """Refuse forms that merge distinct ids."""
    if table.datum not in exprs:
        return
    new = exprs[table.datum]
    pairs = rows.select(old=new.meta.root_names()[0], new=new).drop_nulls().unique()
    met = pairs.filter(pl.col("new").is_duplicated()).sort("new", "old").collect()
    if met.height:
        n = met["new"].n_unique()
        first = met.filter(pl.col("new") == met["new"][0])["old"].head(3).to_list()
        raise InputError(
            f"{table.side.replace('_', ' ')}: {option('id_format', list(forms))} makes one "
            f"{table.datum} of several, {count_of(n, 'time')}, first {met['new'][0]!r} of "
            f"{', '.join(map(repr, first))}: these would be scored as one. Choose a form that "
            "keeps them distinct.",
            code="ids_merged",
            side=table.side,
            count=n,
        )
