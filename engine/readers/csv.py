"""CSV and TSV: separator by extension or header, and ids with leading zeros stay strings."""

from __future__ import annotations

from pathlib import Path

import polars as pl

_ZEROS = r"^[+-]?0\d"


def scan_csv(
    paths: list[str], storage_options: dict[str, str] | None = None, *, remote: bool = False
) -> pl.LazyFrame:
    """CSV files as a lazy table.

    Types follow from all rows, not the first hundred. An integer column with leading zeros
    (``007``) holds names rather than numbers, so it stays a string, and so does one of integers
    that no type holds.
    """
    separator = "," if remote else _separator(paths[0])
    lazy = pl.scan_csv(
        paths,
        separator=separator,
        infer_schema_length=None,
        storage_options=storage_options,
        glob=remote,
    )
    dtypes = {name: dtype for name, dtype in lazy.collect_schema().items() if dtype.is_integer()}
    integers = [*dtypes]
    if not integers:
        return lazy
    texts = pl.scan_csv(
        paths,
        separator=separator,
        infer_schema=False,
        storage_options=storage_options,
        glob=remote,
    )
    names = texts.select(_is_name(name, dtypes[name]) for name in integers).collect().row(0)
    overrides: dict[str, type[pl.DataType]] = {
        name: pl.String for name, found in zip(integers, names, strict=True) if found
    }
    large = [name for name in integers if dtypes[name] == pl.Int128 and name not in overrides]
    fits = texts.select(_fits(name) for name in large).collect().row(0) if large else ()
    overrides |= {name: pl.UInt64 for name, found in zip(large, fits, strict=True) if found}
    if not overrides:
        return lazy
    return pl.scan_csv(
        paths,
        separator=separator,
        infer_schema_length=None,
        schema_overrides=overrides,
        storage_options=storage_options,
        glob=remote,
    )


def _is_name(column: str, dtype: pl.DataType) -> pl.Expr:
    """Whether a column of digits holds names: leading zeros, or more digits than integers have."""
    text = pl.col(column)
    found = text.str.contains(_ZEROS).any()
    if dtype == pl.Int128:
        found |= (text.is_not_null() & text.cast(pl.Int128, strict=False).is_null()).any()
    return found


def _fits(column: str) -> pl.Expr:
    """Whether all values of a column of digits are unsigned integers of 64 bits."""
    text = pl.col(column)
    return (text.is_null() | text.cast(pl.UInt64, strict=False).is_not_null()).all()


def _separator(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if any(suffix in (".tsv", ".tab") for suffix in suffixes):
        return "\t"
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        return ","
    with open(path, encoding="utf-8", errors="replace") as file:
        header = file.readline()
    return max(",\t;|", key=header.count) if any(mark in header for mark in "\t;|") else ","
