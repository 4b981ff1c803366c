"""Digests of checked tables, free of the order of rows, file format and names of columns."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..geometry.columns import text_bytes
from ..kernels.datums import add_floats, add_integers, hash_bytes, hash_lists, sum_rows
from ..schemas.arrays import Array
from ..schemas.contract import LABELS, ROW
from ..schemas.option_values import TableObject
from ..schemas.options import TABLE_OPTIONS, Options

UNKNOWN = ""
"""Digest of a table whose content is not all in its columns."""

Digests = Mapping[str, str]
"""Table -> 32 hexadecimal digits, or :data:`UNKNOWN`."""

_UNREAD = ("dataset", ROW, "series", "time", "cutoff", "horizon")
"""Columns that change no number, or that are read only for slices."""
_FILES = "raster"
"""Column of paths: the content is elsewhere."""
_LONG = (pl.Int128, getattr(pl, "UInt128", pl.Int128))
_BITS = 128
_BLOCK = 1 << 17
"""Rows that are hashed at once."""


def digests_of(tables: Mapping[str, pl.DataFrame], options: Options) -> Digests:
    """Return the digests of a run's tables, and of options that are tables or files."""
    digests = {name: digest_of(table) for name, table in tables.items()}
    return {**digests, **option_digests(options)}


def option_digests(options: Options) -> Digests:
    """Return the digests of options that are tables or files, by name."""
    values = {name: getattr(options, name) for name in TABLE_OPTIONS}
    digests = {name: _of_option(value) for name, value in values.items() if value is not None}
    return {name: digest for name, digest in digests.items() if digest is not None}


def _of_option(value: Any) -> str | None:
    """Return the digest of a table or of files; None for other values."""
    if isinstance(value, TableObject):
        return value.digest[: _BITS // 4]
    paths = [value] if isinstance(value, (str, Path)) else value
    if isinstance(paths, (list, tuple)) and paths:
        if not all(isinstance(path, (str, Path)) and os.path.isfile(path) for path in paths):
            return None
        digest = hashlib.sha256()
        for path in paths:
            digest.update(Path(path).read_bytes())
        return digest.hexdigest()[: _BITS // 4]
    return digest_of(pl.DataFrame(value)) if hasattr(value, "columns") else None


def of_buckets(parts: Sequence[Digests]) -> Digests:
    """Return the digests of tables from those of buckets, each of which has all labels."""
    merged = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        digests = [part[name] for part in parts if name in part]
        if name == LABELS or UNKNOWN in digests:
            merged[name] = digests[0] if name == LABELS else UNKNOWN
        else:
            merged[name] = _as_text(sum(int(one, 16) for one in digests) % (1 << _BITS))
    return merged


def _as_text(total: int) -> str:
    return f"{total:0{_BITS // 4}x}"


def digest_of(table: pl.DataFrame) -> str:
    """Return the sum, modulo 2^128, of the hashes of a table's rows, as 32 hexadecimal digits."""
    columns = [column for column in table.iter_columns() if column.name not in _UNREAD]
    if any(
        one.dtype == pl.Object or (one.name == _FILES and one.dtype == pl.String) for one in columns
    ):
        return UNKNOWN
    total = np.zeros(2, np.uint64)
    for first in range(0, table.height, _BLOCK):
        rows = np.zeros(min(_BLOCK, table.height - first), np.uint64)
        for column in columns:
            _add(column.slice(first, _BLOCK), column.name, rows)
        sum_rows(rows, total)
    return _as_text(int(total[0]) + (int(total[1]) << 64))


def _add(column: pl.Series, name: str, rows: Array) -> None:
    """Add the hashes of a column to those of its rows."""
    salt = zlib.crc32(name.encode()) << 16
    present = np.empty(0, np.bool_)
    if column.null_count():
        present = column.is_not_null().to_numpy()
    dtype = column.dtype
    if isinstance(dtype, pl.Struct):
        for field in dtype.fields:
            _add(column.struct.field(field.name), f"{name}.{field.name}", rows)
    elif dtype.is_float():
        add_floats(_filled(column.cast(pl.Float64), 0.0).to_numpy(), present, salt, rows)
    elif dtype != pl.Null:
        add_integers(_hashes(column), present, salt, rows)


def _filled(column: pl.Series, value: Any) -> pl.Series:
    """Return a column with nulls replaced; without any, Polars would take a query to find out."""
    return column.fill_null(value) if column.null_count() else column


def _hashes(column: pl.Series) -> Array:
    """Return 64 bits per value, the integers themselves; anything for nulls."""
    dtype = column.dtype
    if isinstance(dtype, pl.Array):
        column = column.arr.to_list()
        dtype = column.dtype
    if dtype == pl.Boolean or (dtype.is_integer() and dtype not in _LONG):
        wide = pl.UInt64() if dtype == pl.UInt64 else pl.Int64()
        return _filled(column.cast(wide), 0).to_numpy().view(np.uint64)
    if isinstance(dtype, pl.List):
        items = column.explode(keep_nulls=False, empty_as_null=False)
        lengths = _filled(column.list.len(), 0).to_numpy()
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
        of_items = np.zeros(len(items), np.uint64)
        _add(items, "", of_items)
        out = np.empty(len(column), np.uint64)
        hash_lists(offsets, of_items, out)
        return out
    text = column if dtype == pl.Binary else column.cast(pl.String)
    data, start = text_bytes(_filled(text, b"" if dtype == pl.Binary else ""))
    out = np.empty(len(column), np.uint64)
    hash_bytes(start, data, out)
    return out
