"""COCO's images and categories, to tables of datums and labels."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas.errors import InputError, ReadError

from .json_rows import misfit


class _Category(msgspec.Struct):
    id: int | str
    name: str | None = None
    supercategory: str | None = None
    frequency: str | None = None


def there(raw: msgspec.Raw) -> bool:
    """Whether a field of a file is there at all."""
    return memoryview(raw).nbytes > 0


def read_images(raw: msgspec.Raw, name: str) -> pl.DataFrame | None:
    """Images as datums, with whatever plain fields they have beside, for slices."""
    if not there(raw):
        return None
    try:
        rows = msgspec.json.decode(raw, type=list[dict[str, Any]])
    except msgspec.ValidationError as error:
        raise misfit(error, name, "image") from None
    for i, row in enumerate(rows):
        if not isinstance(row.get("id"), (int, str)) or isinstance(row["id"], bool):
            raise ReadError(
                f"{name}: image {i:,} (counted from 0), field 'id': an integer or string is"
                f" needed, not {row.get('id')!r}."
            )
    columns: dict[str, pl.Series] = {"datum_id": _uniform([row["id"] for row in rows], name)}
    for field in dict.fromkeys(itertools.chain.from_iterable(rows)):
        values = [row.get(field) for row in rows]
        if field in ("id", "datum_id") or not _plain(values):
            continue
        columns[field] = pl.Series(values, strict=False)
    return pl.DataFrame(columns)


def _uniform(values: list[Any], name: str) -> pl.Series:
    if len({type(value) for value in values}) > 1:
        raise InputError(f"{name}: image ids are partly strings, partly integers; use one type.")
    return pl.Series(values, dtype=None if values else pl.Int64)


def _plain(values: Iterable[Any]) -> bool:
    """Whether a field holds values of one plain type."""
    kinds = {type(value) for value in values if value is not None}
    return kinds in ({int}, {str}, {bool}, {float}, {int, float})


def read_categories(raw: msgspec.Raw, name: str) -> pl.DataFrame | None:
    """Categories as labels: label_value and what they have of name, supercategory, frequency."""
    if not there(raw):
        return None
    try:
        rows = msgspec.json.decode(raw, type=list[_Category])
    except msgspec.ValidationError as error:
        raise misfit(error, name, "category") from None
    columns = {"label_value": _uniform([row.id for row in rows], name)}
    for field in ("name", "supercategory", "frequency"):
        values = [getattr(row, field) for row in rows]
        if any(value is not None for value in values):
            columns["label_name" if field == "name" else field] = pl.Series(values, dtype=pl.String)
    return pl.DataFrame(columns)
