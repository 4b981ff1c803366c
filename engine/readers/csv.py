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
    (``007``) holds names rather than numbers, so it stays a string.
    """
    separator = "," if remote else _separator(paths[0])
    lazy = pl.scan_csv(
        paths,
        separator=separator,
        infer_schema_length=None,
        storage_options=storage_options,
        glob=remote,
    )
    integers = [name for name, dtype in lazy.collect_schema().items() if dtype.is_integer()]
    if not integers:
        return lazy
    texts = pl.scan_csv(
        paths,
        separator=separator,
        infer_schema=False,
        storage_options=storage_options,
        glob=remote,
    )
    zeros = texts.select(pl.col(integers).str.contains(_ZEROS).any()).collect().row(0)
    overrides = {name: pl.String for name, found in zip(integers, zeros, strict=True) if found}
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


def _separator(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if any(suffix in (".tsv", ".tab") for suffix in suffixes):
        return "\t"
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        return ","
    with open(path, encoding="utf-8", errors="replace") as file:
        header = file.readline()
    return max(",\t;|", key=header.count) if any(mark in header for mark in "\t;|") else ","
