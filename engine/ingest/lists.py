"""``datums=`` and ``labels=``: any table, or a plain list of ids or values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import polars as pl

from evalengine.ingest.sources.source import Source
from evalengine.ingest.sources.tables import open_source
from evalengine.schemas.errors import InputError

from .label_map_files import open_set


def open_datums(thing: Any, storage_options: dict[str, str] | None = None) -> Source:
    """A table of datums, or a plain list of their ids."""
    return _open(thing, "datum_id", "datums", storage_options)


def open_labels(thing: Any, storage_options: dict[str, str] | None = None) -> Source:
    """A table of labels, a list of their values, a dict of value and name, or a set's name."""
    if isinstance(thing, Mapping) and thing and not any(map(_is_column, thing.values())):
        frame = _frame({"label_value": list(thing), "label_name": list(thing.values())}, "labels")
        return Source(frame.lazy(), f"dict of {frame.height:,} labels")
    known = open_set(thing) if isinstance(thing, str) else None
    return known or _open(thing, "label_value", "labels", storage_options)


def _open(thing: Any, column: str, role: str, storage_options: dict[str, str] | None) -> Source:
    values = _values(thing)
    if values is None:
        return open_source(thing, storage_options=storage_options)
    frame = _frame({column: values}, role)
    return Source(frame.lazy(), f"list of {frame.height:,} {role}")


def _values(thing: Any) -> list[Any] | pl.Series | None:
    """The thing as plain values, or None if it is a table or a path."""
    if isinstance(thing, pl.Series):
        return thing
    if isinstance(thing, (str, bytes, Mapping)):
        return None
    if getattr(thing, "ndim", 0) == 1 and hasattr(thing, "tolist"):
        thing = thing.tolist()
    if isinstance(thing, (Sequence, Set)):
        items = list(thing)
        return items if all(isinstance(item, (str, int)) for item in items) else None
    return None


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def _frame(columns: dict[str, Any], role: str) -> pl.DataFrame:
    try:
        return pl.DataFrame(columns)
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise InputError(
            f"{role}: a list must hold integers or strings, not both: {error}"
        ) from None
