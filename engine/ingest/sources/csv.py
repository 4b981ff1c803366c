"""CSV and TSV: separator by extension or header, and ids with leading zeros stay strings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from evalengine.schemas.errors import ReadError

from ..file_memory import LONG, Held

_AGAIN = re.compile(r"_duplicated_\d+$")  # how Polars names another column of one name
_INTEGER = r"^-?\d+$"
_ZEROS = r"^-?0\d"
_FLOAT = r"^[-+]?((\d*\.\d+)([eE][-+]?\d+)?|inf|NaN|\d+[eE][-+]?\d+|\d+\.)$"
_TRUTH = r"(?i)^(true|false)$"
_WHOLE, _NAME, _NUMBER, _BOOL, _TEXT = 1, 2, 4, 8, 16
"""Kinds of values as bits; the kinds of a column are their sum."""
_LONG = 18  # digits that every integer of 64 bits has room for


def scan_csv(
    paths: list[str],
    storage_options: dict[str, str] | None = None,
    *,
    remote: bool = False,
    path: str | None = None,
    held: dict[str, Held] | None = None,
) -> pl.LazyFrame:
    """Scan CSV files as a lazy table.

    Types are inferred from all rows, not the first hundred, with the rules of Polars. Rows are read
    in batches, so that large or highly compressed files are not loaded at once. An integer column
    with leading zeros (``007``), or with integers too large for any type, stays a string.

    Args:
        remote: whether paths are of an object store.
        held: receives the sizes of columns of long texts.
    """

    def scan(dtypes: dict[str, pl.DataType], path: str | None = None) -> pl.LazyFrame:
        return pl.scan_csv(
            paths,
            separator="," if remote else separator(paths[0]),
            infer_schema=False,
            schema_overrides=dtypes,
            storage_options=storage_options,
            glob=remote,
            include_file_paths=path,
        )

    return scan(_dtypes(scan({}), paths[0], held), path)


def _dtypes(
    texts: pl.LazyFrame, path: str, held: dict[str, Held] | None = None
) -> dict[str, pl.DataType]:
    """Infer the type of every column from all of its values.

    Args:
        texts: the table, all columns strings; nulls are ignored.

    Raises:
        ReadError: a header that names a column twice.
    """
    names = texts.collect_schema().names()
    _refuse_repeated(names, path)
    asked = [pl.col(name) for name in names]
    seen = texts.select(
        *(_kind(column).bitwise_or().alias(f"kind {i}") for i, column in enumerate(asked)),
        *(column.str.len_bytes().max().alias(f"length {i}") for i, column in enumerate(asked)),
    )
    row = seen.collect(engine="streaming").row(0) if names else ()
    kinds, lengths = row[: len(names)], row[len(names) :]
    if held is not None:
        long_texts = ((name, n) for name, n in zip(names, lengths, strict=True) if n and n > LONG)
        held.update((name, Held(cell=n, least=n)) for name, n in long_texts)
    found = {name: _dtype(kind or 0) for name, kind in zip(names, kinds, strict=True)}
    long = [
        name
        for name, length in zip(names, lengths, strict=True)
        if found[name] == pl.Int64 and length > _LONG
    ]
    return found | (_long_integers(texts, long) if long else {})


def _refuse_repeated(names: Sequence[str], path: str) -> None:
    twice = [
        name[: found.start()]
        for name in names
        if (found := _AGAIN.search(name)) and name[: found.start()] in names
    ]
    if any(twice):  # unnamed columns, as of commas at the line's end, are none
        named = ", ".join(map(repr, dict.fromkeys(filter(None, twice))))
        raise ReadError(
            f"{path}: the header names {named} more than once. Rename the columns, so that it"
            " is clear which is meant."
        )


def _kind(column: pl.Expr) -> pl.Expr:
    """Return the kind of each text, uint8; 0 for nulls."""
    text = column.str
    return (
        pl.when(text.contains(_INTEGER))
        .then(pl.when(text.contains(_ZEROS)).then(_NAME).otherwise(_WHOLE))
        .when(text.contains(_FLOAT))
        .then(_NUMBER)
        .when(text.contains(_TRUTH))
        .then(_BOOL)
        .when(column.is_not_null())
        .then(_TEXT)
        .otherwise(0)
        .cast(pl.UInt8)
    )


def _dtype(kinds: int) -> pl.DataType:
    """The type of a column whose values are of these kinds."""
    if kinds == _WHOLE:
        return pl.Int64()
    if kinds & _NUMBER and not kinds & (_BOOL | _TEXT):
        return pl.Float64()  # leading zeros beside fractions are no names
    return pl.Boolean() if kinds == _BOOL else pl.String()


def _long_integers(texts: pl.LazyFrame, names: list[str]) -> dict[str, pl.DataType]:
    """Return the narrowest integer type for columns of many digits.

    Integers too large for any type stay strings.
    """
    dtypes: tuple[pl.DataType, ...] = (pl.Int64(), pl.UInt64(), pl.Int128())
    fits = texts.select(
        (pl.col(name).is_null() | pl.col(name).cast(dtype, strict=False).is_not_null())
        .all()
        .alias(f"{i} {dtype}")
        for i, name in enumerate(names)
        for dtype in dtypes
    )
    row = iter(fits.collect(engine="streaming").row(0))
    return {
        name: next((dtype for dtype, fit in whole if fit), pl.String())
        for name in names
        for whole in ([(dtype, next(row)) for dtype in dtypes],)
    }


def separator(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if any(suffix in (".tsv", ".tab") for suffix in suffixes):
        return "\t"
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        return ","
    with open(path, encoding="utf-8", errors="replace") as file:
        header = file.readline()
    return max(",\t;|", key=header.count) if any(mark in header for mark in "\t;|") else ","
