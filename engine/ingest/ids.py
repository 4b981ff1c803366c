"""Datum ids: codes, distinct values, repeats and formats."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array
from ..schemas.contract import PREDICTIONS, Column, Table
from ..schemas.errors import InputError, OptionError, unknown
from ..schemas.tuning import tuning
from ..schemas.wording import option
from . import dtypes
from .problems import count_of

# Bitmaps of integers: repetitions and codes of ids follow from one scattered pass.


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
        np.add(place, self.of, out=place, where=place < 0)
        place += turns * self.of
        return place


ALL = Bucket()
"""The only bucket."""


def dealt(column: pl.Series, of: int) -> Array | None:
    """Return the buckets of integers, arbitrary for nulls; None for other columns.

    Returns:
        uint64 [n].
    """
    if not is_signed(column):
        return None
    from ..kernels.datums import deal  # Numba, which runs without buckets do without

    buckets = np.empty(len(column), np.uint64)
    deal(column.cast(pl.Int64).fill_null(0).to_numpy(), of, buckets)
    return buckets


def is_signed(column: pl.Series) -> bool:
    """Return whether all integers of a column fit into signed 64 bits."""
    return column.dtype.is_integer() and column.dtype not in (pl.UInt64, pl.Int128, pl.UInt128)


def _first(turns: Array, of: int) -> Array:
    """The bucket with which each turn begins, int64 [n], by a hash of 32 bits."""
    from ..kernels.datums import hash_integers  # Numba, which runs without buckets do without

    shift = np.uint64(32)
    return ((hash_integers(turns) >> shift) * np.uint64(of) >> shift).view(np.int64)


class IdBitmap(msgspec.Struct, frozen=True):
    """Bitmap of integer columns without nulls.

    Attributes:
        flags: bool [span], whether ``low + i`` occurs, or the turn ``low + i``.
    """

    low: int
    flags: Array
    bucket: Bucket = ALL

    @property
    def count(self) -> int:
        """Distinct integers."""
        return int(np.count_nonzero(self.flags))

    def series(self, like: pl.Series) -> pl.Series:
        """The integers, ascending, with the name and dtype of a Series."""
        end = self.low + self.flags.size
        if self.bucket.of == 1 and end < 1 << 63 and self.flags.all():  # without a copy in between
            integers = pl.int_range(self.low, end, dtype=pl.Int64, eager=True)
            return integers.cast(like.dtype).alias(like.name)
        dtype = like.clear().to_numpy().dtype
        set_bits = np.flatnonzero(self.flags)
        if self.bucket.of > 1:
            few = self.bucket.integers(set_bits + self.low).astype(dtype)
        else:
            few = set_bits.astype(dtype, copy=False)
            few += dtype.type(self.low)
        return pl.Series(like.name, few, dtype=like.dtype)


def span_of(column: pl.Series) -> tuple[int, int]:
    """The lowest integer of a column that has rows and no nulls, and one past the highest."""
    low, high = column.min(), column.max()
    assert isinstance(low, int)
    assert isinstance(high, int)
    return low, high + 1


def bitmap_of(columns: Sequence[pl.Series], room: int, bucket: Bucket = ALL) -> IdBitmap | None:
    """Build the bitmap of integer columns with rows; None if it would exceed ``room`` flags."""
    if not all(column.dtype.is_integer() and not column.null_count() for column in columns):
        return None
    if bucket.of > 1 and not all(map(is_signed, columns)):
        bucket = ALL
    lows, highs = zip(*map(span_of, columns), strict=True)
    low, end = min(lows) // bucket.of, (max(highs) - 1) // bucket.of + 1
    if end - low > room:
        return None
    blocks = (block for column in columns for _, block in _blocks(column, bucket.of))
    return IdBitmap(low, _flags_of(blocks, low, end - low, sum(map(len, columns))), bucket)


def _flags_of(blocks: Iterable[Array], low: int, span: int, rows: int) -> Array:
    """Flags of int64 values from ``low`` on, bool [span]."""
    if rows < tuning().unmarked_rows:  # NumPy does without loading the kernel
        flags = np.zeros(span, np.bool_)
        for block in blocks:
            flags[block - signed(low)] = True
        return flags
    from ..kernels.datums import mark

    bits = np.zeros((span + 7) // 8, np.uint8)
    for block in blocks:
        mark(block, signed(low), bits)
    return np.unpackbits(bits, count=span, bitorder="little").view(np.bool_)


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
        elif out.size < tuning().unmarked_rows:
            np.take(code, block - signed(low), out=here)
        else:
            from ..kernels.datums import look_up

            look_up(block, signed(low), code, here)
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
_SPREAD = 8  # a table of codes is used while the range of integers is at most this many per row


def encode(
    columns: list[pl.Series], bucket: Bucket = ALL, *, used_up: bool = False
) -> tuple[pl.Series, list[Array]]:
    """Encode the distinct values of several columns, in ascending order of value.

    Args:
        columns: Series of one dtype, integer or String, without nulls. Strings are ordered by their
            UTF-8 bytes.
        bucket: of their values, if these are integers.
        used_up: allow emptying the list, to free long columns early.

    Returns:
        the distinct values, ascending; int32 codes of each column.
    """
    if not used_up:
        columns = [*columns]
    room = _SPREAD * sum(map(len, columns)) + 1024
    filled = [*filter(len, columns)]
    if not filled or (bitmap := bitmap_of(filled, room, bucket)) is None:
        return _by_hash(columns)
    filled.clear()
    like = columns[0].clear()  # a slice would keep the whole column
    code: Array | None = None
    if not bitmap.flags.all():  # else integers counted from the lowest are their own codes
        code = np.cumsum(bitmap.flags, dtype=np.int32)
        code -= 1
    codes = []
    while columns:
        codes.append(codes_of(columns.pop(0), bitmap.low, code, bitmap.bucket.of))
    return bitmap.series(like), codes


def _by_hash(columns: Sequence[pl.Series]) -> tuple[pl.Series, list[Array]]:
    """Codes by way of hashes, which are compared instead of the values."""
    like = next((c for c in columns if len(c)), columns[0])  # empty ones may have another dtype
    every = pl.concat([(c if len(c) else like.clear()).alias("value") for c in columns])
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    if len(every) < tuning().few_rows:  # a join of few rows costs less than loading the kernel
        every = every.alias("value")
        unique = every.unique().sort()
        table = pl.DataFrame({"value": unique, "code": np.arange(len(unique), dtype=np.int32)})
        joined = every.to_frame().join(table, on="value", how="left", maintain_order="left")
        return unique.alias(columns[0].name), np.split(joined["code"].to_numpy(), cuts)
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

    first = values.hash(seed=0).to_numpy()
    if values.dtype.is_integer():
        return hash_codes(
            first, values.cast(pl.Int64, wrap_numerical=True).to_numpy().view(np.uint64)
        )
    return hash_codes(first, values.hash(seed=_OTHER_SEED).to_numpy())


# Distinct ids and labels, fast for small integers.

_SPAN, _FLAGS = 1 << 22, 8  # flags of a bitmap: any, or per row


def distinct(values: pl.Series) -> pl.Series:
    """Return the distinct values without nulls, ascending (strings by bytes).

    A narrow range of integers uses a bitmap, which reads the column once. Strings, which often
    repeat, are hashed, and only distinct ones are sorted.
    """
    bitmap = _narrow_bitmap(values)
    if bitmap is not None:
        return bitmap.series(values)
    filled = values.drop_nulls()
    if ascending(filled):
        return filled
    if filled.dtype != pl.String or len(filled) < tuning().few_rows:
        return filled.unique().sort()
    unique = filled.gather(by_hash(filled)[1])
    return unique.gather(text_order(unique))


def has_repeats(values: pl.Series) -> bool:
    """Return whether any value except null repeats."""
    bitmap = _narrow_bitmap(values)
    if bitmap is not None:
        return bitmap.count < len(values)
    filled = values.drop_nulls()
    return not ascending(filled) and filled.n_unique() < len(filled)


def ascending(values: pl.Series) -> bool:
    """Return whether values without nulls strictly ascend; the first rows decide most cases."""
    for size in (min(1000, len(values)), len(values)):
        if not (values.slice(1, max(0, size - 1)) > values.head(max(0, size - 1))).all():
            return False
    return True


def _narrow_bitmap(values: pl.Series) -> IdBitmap | None:
    """Return a bitmap of integers in a narrow range; otherwise None."""
    return bitmap_of([values], max(_SPAN, 2 * len(values))) if len(values) else None


_COMPARED = 1_000  # rows that show whether codes are of a table


class DatumIds(msgspec.Struct, frozen=True):
    """Datum ids of all tables of a run, encoded once.

    Attributes:
        values: the distinct ids, ascending.
        codes: table to the code of each row, int32.
        there: table to whether it has an id, bool [n].
    """

    values: pl.Series
    codes: dict[str, Array]
    there: dict[str, Array]

    @classmethod
    def of(cls, columns: Mapping[str, pl.Series], bucket: Bucket) -> DatumIds:
        """Encode the ids of tables."""
        values, codes = encode([*columns.values()], bucket)
        present = {}
        for role, code in zip(columns, codes, strict=True):
            rows = tuning().block_rows
            starts = range(0, code.size, rows)
            blocks = (code[first : first + rows].astype(np.int64) for first in starts)
            present[role] = _flags_of(blocks, 0, len(values), code.size)
            code.flags.writeable = False  # several tallies may read them
        return cls(values.alias("datum_id"), dict(zip(columns, codes, strict=True)), present)

    def of_rows(self, role: str, column: pl.Series) -> Array | None:
        """Return the codes of a table's ids, int32 [n]; None if they are of other rows."""
        code = self.codes.get(role)
        if code is None or code.size != len(column):
            return None
        step = max(1, len(column) // _COMPARED)
        same = column.gather_every(step).equals(self.values.gather(code[::step]))
        return code if same else None

    def count(self, role: str) -> int:
        """Distinct ids of a table."""
        return int(np.count_nonzero(self.there[role]))

    def common(self, role: str, other: str) -> int:
        """Distinct ids that two tables have."""
        return int(np.count_nonzero(self.there[role] & self.there[other]))

    def in_table(self, role: str) -> pl.Series:
        """Distinct ids of a table, ascending."""
        return self.values.filter(pl.Series(self.there[role]))

    def minus(self, role: str, other: str) -> pl.Series:
        """Ids of a table that another one does not have, ascending."""
        return self.values.filter(pl.Series(self.there[role] & ~self.there[other]))


# Detection of repeated keys by the cheapest sufficient proof of uniqueness.
# Order or a bitmap first, then distinct hashes; the exact check, slower, runs only if these fail.


def rows_repeat(frame: pl.DataFrame, key: Sequence[str], bucket: Bucket = ALL) -> bool:
    """Return whether any key is in more than one row.

    Args:
        bucket: of the values of single columns.
    """
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
                if wide and _marked([column], bucket) == len(column):  # all differ in it
                    return False
        marked = _marked(columns, bucket)
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


def _marked(columns: Sequence[pl.Series], bucket: Bucket) -> int | None:
    """Count the distinct rows of integers by a bitmap; None if that would be too large."""
    if not all(column.dtype.is_integer() for column in columns):
        return None
    room = max(_SPAN, _FLAGS * len(columns[0]))
    if len(columns) == 1:
        bitmap = bitmap_of(columns, room, bucket)
        return None if bitmap is None else bitmap.count
    ranges: list[tuple[int, int]] = []
    for column in columns:
        low, end = span_of(column)
        ranges.append((low, end - low))
        room //= end - low
        if room == 0:
            return None
    place: Array | None = None
    for column, (low, span) in zip(columns, ranges, strict=True):
        shifted = column.to_numpy().astype(np.int64, copy=False) - signed(low)
        place = shifted if place is None else place * span + shifted
    assert place is not None
    span = int(np.prod([span for _, span in ranges]))
    return int(np.count_nonzero(_flags_of([place], 0, span, place.size)))


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
_ZEROS_IN = r"(^|[^0-9.])0+([0-9])"  # of every number, but not of decimals


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
        Form("zeros", "leading zeros", lambda ids: ids.str.replace_all(_ZEROS_IN, "$1$2")),
        Form("extension", "file extension", lambda ids: ids.str.replace(_EXTENSION, "")),
        Form("file", "folders", lambda ids: ids.str.replace(_FOLDERS, "")),
        Form(
            "stem",
            "folders and file extension",
            lambda ids: ids.str.replace(_FOLDERS, "").str.replace(_EXTENSION, ""),
        ),
        Form(
            "number",
            "everything but their last number",
            lambda ids: pl.coalesce(ids.str.extract(r"([0-9]+)[^0-9]*$"), ids).str.replace(
                _ZEROS, "$1"
            ),
        ),
    )
}
_NUMBER = "number"
_OF_ONE_PART = frozenset({"extension", "file", "stem", _NUMBER})
_STEP = re.compile(r"[+-][0-9]{1,9}")
_PREDICTED = ("predicted",)  # columns of one table that are the predictions'


def written(ids: pl.Expr, forms: Sequence[str]) -> pl.Expr:
    """Rewrite string ids in forms, one after the other.

    Args:
        forms: names of ``FORMS``, or regular expressions whose first group is the id; ids that do
            not match are unchanged.
    """
    for form in forms:
        named_form = FORMS.get(form)
        ids = named_form.write(ids) if named_form else pl.coalesce(ids.str.extract(form), ids)
    return ids


def keeps_parts(form: str) -> bool:
    """Return whether a form applies to composite ids, of which others would drop parts."""
    return form not in _OF_ONE_PART and not _STEP.fullmatch(form)


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
    names = [*dict.fromkeys(new.meta.root_names())]
    old = pl.concat_str(names, separator="/") if len(names) > 1 else pl.col(names[0])
    pairs = rows.select(old=old, new=new).drop_nulls().unique()
    merged = pairs.filter(pl.col("new").is_duplicated()).sort("new", "old").collect()
    if merged.height:
        n = merged["new"].n_unique()
        first = merged.filter(pl.col("new") == merged["new"][0])["old"].head(3).to_list()
        raise InputError(
            f"{table.side.replace('_', ' ')}: {option('id_format', list(forms))} makes one "
            f"{table.datum} of several, {count_of(n, 'time')}, first {merged['new'][0]!r} of "
            f"{', '.join(map(repr, first))}: these would be scored as one. Choose a form that "
            "keeps them distinct.",
            code="ids_merged",
            side=table.side,
            count=n,
        )
