"""JSON arrays of flat objects as columns, without a Python object per value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from ...kernels import json as scanner
from ...kernels.json import FLOAT, MISSING, NUMBERS, WHOLE
from ...schemas.arrays import Array
from ...schemas.tuning import tuning

_CLOSING, _CLOSING_BRACE = b"]}"
_OPENING = re.compile(rb"[ \t\r\n]*\[[ \t\r\n]*")
_NUMBER = re.compile(rb"[-+.0-9eE]+")
_BLANK = b" \t\r\n"
_QUOTE, _TRUE, _FALSE, _NULL, _ARRAY, _OBJECT = b'"tfn[{'
_ROW_BYTES = 16  # of the shortest rows; shorter ones end a piece earlier
_SLOW = 1 << 12
_COMPILED = 32  # by which shorter texts are worth the kernel once it is loaded


class NotFlat(Exception):
    """Text that is no array of objects of one form, or is not worth the kernel."""


def scan(
    buffer: Any, fields: Sequence[str], raw: Collection[str] = (), ends: list[int] | None = None
) -> Iterator[pl.DataFrame]:
    """Yield some fields of an array of objects, some megabytes of text at a time.

    Columns have the dtype of their values: Int64, Float64, Boolean, String, Binary for JSON text,
    List(Float64), or Array if all lists of a piece have one length, and Null. Missing fields and
    null become null; JSON text contains null.

    Args:
        raw: fields whose arrays and objects remain JSON text; other arrays contain numbers.
        ends: receives the position after the array, which may be followed by the rest of an object.

    Raises:
        NotFlat: short texts, damaged ones, repeated fields, integers beyond Int64, infinite
            numbers, fields of several types: all that a general parser has to read or to explain.
    """
    size, end = 2 * tuning().json_bytes, len(buffer)
    kernel: Any = scanner.scan_rows
    start = _OPENING.match(buffer)
    if start is None or end < (size // _COMPILED if kernel.variants else size):
        raise NotFlat
    while buffer[end - 1] in _BLANK:
        end -= 1
    last = _CLOSING if ends is None else _CLOSING_BRACE
    if buffer[end - 1] != last:  # cut off: the kernel relies on it
        raise NotFlat
    text = np.frombuffer(buffer, np.uint8, end)
    words = [b'"%s"' % field.encode() for field in fields] + [b"true", b"false", b"null"]
    limits, joined = np.cumsum([0, *map(len, words)]), np.frombuffer(b"".join(words), np.uint8)
    is_raw = np.array([field in raw for field in fields])
    names = joined, limits, is_raw, scanner.powers_of_five()
    slow, out = np.empty((_SLOW, 3), np.int64), np.array([start.end(), 0, 0])
    state = np.zeros(len(fields) + 1, np.int64), slow, out
    dtypes: dict[str, type[pl.DataType]] = {}
    rows = 0
    while True:
        if rows <= size // _ROW_BYTES:  # memory that is not used costs nothing
            rows = size // _ROW_BYTES + 1
            kind = np.empty((len(fields), rows), np.uint8)
            value = np.empty((len(fields), rows), np.uint64)
            pool = np.empty((len(fields), size // 2), np.uint64)
            columns = kind, value, pool, pool.view(np.uint8)
        at, used = int(out[0]), np.zeros(len(fields), np.int64)
        reason = kernel(text, at, at + size, *names, *columns, used, *state)
        height = int(out[1])
        ended = reason == scanner.ENDED
        if reason == scanner.ODD or (ended and ends is None and out[0] != end):
            raise NotFlat
        for column, place, begin in slow[: out[2]].tolist():
            number = float(_NUMBER.match(buffer, begin)[0])  # type: ignore[index]
            part = value[column] if column >= 0 else pool[-1 - column]
            part.view(np.float64)[place] = number
        if height == 0:  # a row that is longer than a piece
            if size > 2 * end:
                raise NotFlat
            size *= 2
            continue
        frame = []
        for k, field in enumerate(fields):
            piece = kind[k, :height], value[k, :height], pool[k]
            column = _column(field, *piece, raw=field in raw)
            frame.append(column)
            dtype = type(column.dtype)
            dtype = pl.List if dtype == pl.Array else pl.Float64 if dtype == pl.Int64 else dtype
            if dtype != pl.Null and dtypes.setdefault(field, dtype) != dtype:
                raise NotFlat
        yield pl.DataFrame(frame)
        if ended:
            if ends is not None:
                ends.append(int(out[0]))
            return


def list_column(flat: Array, limits: Array, lacking: Array | None) -> pl.Series:
    """Make a column of lists; their dtype is Array if all have one length.

    Args:
        flat: the numbers of all lists.
        limits: [n + 1], where each begins and ends.
        lacking: [n], rows that are null; None if no row is.
    """
    n, each = limits.size - 1, limits[1]
    if lacking is None and each and (np.diff(limits) == each).all():
        return pl.Series(flat.reshape(n, each))
    if lacking is not None and lacking.all():
        return pl.Series([None] * n, dtype=pl.Null)
    import pyarrow as pa  # takes a while

    mask = None if lacking is None else pa.array(lacking)
    arrow = pa.LargeListArray.from_arrays(pa.array(limits), pa.array(flat), mask=mask)
    return pl.Series(pl.from_arrow(arrow))


def _column(name: str, kind: Array, value: Array, pool: Array, *, raw: bool) -> pl.Series:
    alike = (kind == kind[0]).all()
    kinds = {int(kind[0])} if alike else {*np.flatnonzero(np.bincount(kind)).tolist()}
    absent = {MISSING} if raw else {MISSING, _NULL}
    present = kinds - absent
    lacking = (kind == MISSING) | (kind == _NULL) & (not raw) if kinds & absent else None
    values: Any
    if not present:
        return pl.Series(name, [None], dtype=pl.Null).new_from_index(0, kind.size)
    if raw or present == {NUMBERS} or present == {_QUOTE}:
        if raw and not present <= {_ARRAY, _OBJECT, _NULL}:
            raise NotFlat
        ends = value.view(np.int64)
        if lacking is not None:
            ends = np.maximum.accumulate(np.where(lacking, 0, ends))
        limits = np.concatenate([[0], ends])
        if present == {NUMBERS}:
            flat = pool[: limits[-1]].view(np.float64).copy()
            return list_column(flat, limits, lacking).alias(name)
        import pyarrow as pa

        joined = pool.view(np.uint8)[: limits[-1]].copy()
        valid = None if lacking is None else pa.array(~lacking).buffers()[1]
        parts = [valid, pa.py_buffer(limits), pa.py_buffer(joined)]
        arrow = pa.LargeBinaryArray.from_buffers(pa.large_binary(), kind.size, parts)
        column = pl.Series(name, pl.from_arrow(arrow))
        if raw:
            return column
        if (joined == ord("\\")).any():
            raise NotFlat
        try:
            return column.cast(pl.String)
        except pl.exceptions.PolarsError:  # not UTF-8
            raise NotFlat from None
    if present == {WHOLE}:
        values = value.view(np.int64).copy()
    elif present <= {WHOLE, FLOAT}:
        values = value.view(np.float64).copy()
        if WHOLE in present:
            integral = kind == WHOLE
            values[integral] = value.view(np.int64)[integral]
    elif present <= {_TRUE, _FALSE}:
        values = kind == _TRUE
    else:
        raise NotFlat
    column = pl.Series(name, values)
    return column if lacking is None else column.set(pl.Series(lacking), None)
