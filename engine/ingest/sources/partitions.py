"""Hive-partitioned columns, stored only in paths: ``year=2024/month=1/part.parquet``."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from urllib.parse import unquote

import polars as pl

from evalengine.schemas.errors import ReadError

PATH = "__evalengine_path"
"""Helper column of a scan: the file of each row, as given."""

_WHOLE = re.compile(r"[+-]?\d{1,18}")
_NULL = "__HIVE_DEFAULT_PARTITION__"


def partitions_of(files: Sequence[str], description: str) -> dict[str, pl.DataType]:
    """Return the partition columns of files, and their dtypes: Int64, or String.

    Raises:
        ReadError: partitioned files mixed with others, or partitions of different columns.
    """
    own = [_values(file) for file in files]
    first = next((i for i, values in enumerate(own) if values), None)
    if first is None:
        return {}
    odd = next((i for i, values in enumerate(own) if [*values] != [*own[first]]), None)
    if odd is not None:
        there = ", ".join(own[odd]) or "none"
        raise ReadError(
            f"{description}: {files[first]} lies in partitions ({', '.join(own[first])}), and"
            f" {files[odd]} in others ({there}). Give the files of one table, whose folders name"
            " the same columns."
        )
    found: dict[str, pl.DataType] = {}
    for name in own[first]:
        known = [value for values in own if (value := values[name]) is not None]
        whole = bool(known) and all(map(_WHOLE.fullmatch, known))
        found[name] = pl.Int64() if whole else pl.String()
    return found


def with_partitions(
    frame: pl.LazyFrame, files: Sequence[str], partitions: dict[str, pl.DataType]
) -> pl.LazyFrame:
    """Replace the path column of a scan by its partition columns.

    Args:
        frame: of these files, with a column ``PATH``.
        partitions: columns to their dtypes; a column in the files takes precedence.
    """
    there = frame.collect_schema()
    own = [_values(file) for file in files]
    made = [
        pl.col(PATH)
        .replace_strict(list(files), [values[name] for values in own], return_dtype=pl.String)
        .cast(dtype)
        .alias(name)
        for name, dtype in partitions.items()
        if name not in there
    ]
    return frame.with_columns(made).drop(PATH)


def _values(file: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for folder in os.path.dirname(file).split(os.sep):
        name, sign, value = folder.partition("=")
        if sign and name:
            found[unquote(name)] = None if value == _NULL else unquote(value)
    return found
