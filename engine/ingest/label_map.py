"""Label maps: every way of writing one becomes one table of four columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from evalengine.ingest.sources.explain import explain
from evalengine.ingest.sources.tables import READ_FAILURES, local_path, open_source
from evalengine.schemas.errors import InputError, OptionError, ReadError, did_you_mean

from . import dtypes
from .problems import count_of, listing

COLUMNS = ("label_key", "label_value", "new_label_key", "new_label_value")
_WAYS = (
    "Write {'van': 'car'}, {('class', 'van'): ('kind', 'car')}, 'van=car', 'class:van=kind:car', or"
    " give a table with label_value and new_label_value (label_key, new_label_key)."
)
Entry = tuple[str | None, Any, str | None, Any]


def read_label_map(label_map: Any) -> pl.DataFrame:
    """Parse a label map in any form to a table.

    Args:
        label_map: a dict of value or (key, value) to value or (key, value); a list of such pairs
            (Valor's ``[[["k", "v"], ["k", "v"]], ...]``); strings ``van=car`` or
            ``class:van=kind:car``, one or a list; a path to JSON, CSV or Parquet, or a table, with
            the columns label_value and new_label_value and optionally label_key and new_label_key.

    Returns:
        label_key, label_value, new_label_key, new_label_value; a null key means any key, a null new
        key means no change.

    Raises:
        InputError: an unknown form, or one label mapped to two.
    """
    entries = _entries(_loaded(label_map))
    if entries is None:
        frame = _from_table(label_map)
    else:
        _one_type([value for _, value, _, _ in entries], "mapped")
        _one_type([value for _, _, _, value in entries], "new")
        data = {name: [entry[place] for entry in entries] for place, name in enumerate(COLUMNS)}
        text = {"label_key": pl.String, "new_label_key": pl.String}
        frame = pl.DataFrame(data, schema_overrides=text)
    return _without_contradiction(frame)


def _loaded(label_map: Any) -> Any:
    """Return the content of a JSON file, unless that is a table of records; other values
    unchanged.
    """
    path = local_path(label_map)
    if path is None or path.suffix.lower() != ".json" or not path.is_file():
        return label_map
    try:
        found = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReadError(
            f"label_map ({path}): not JSON that can be read: {error}.",
            code="file_unreadable",
            file=str(path),
        ) from None
    records = isinstance(found, list) and all(isinstance(row, dict) for row in found)
    return label_map if records else found


def _entries(label_map: Any) -> list[Entry] | None:
    """Forms in Python as entries; None for a table or a path."""
    if isinstance(label_map, str):
        return [_from_text(label_map)] if "=" in label_map else None
    if isinstance(label_map, Mapping):
        return [(*_label(old, truth=True), *_label(new)) for old, new in label_map.items()]
    if isinstance(label_map, Sequence):
        return [_from_item(item) for item in label_map]
    return None


def _from_item(item: Any) -> Entry:
    if isinstance(item, str):
        return _from_text(item)
    if isinstance(item, Sequence) and len(item) == 2:
        return (*_label(item[0], truth=True), *_label(item[1]))
    raise OptionError(f"label_map: {item!r} is not a pair of labels. {_WAYS}")


def _from_text(text: str) -> Entry:
    old, separator, new = text.partition("=")
    if not separator or not old.strip() or not new.strip():
        raise OptionError(f"label_map: {text!r} does not say what becomes what. {_WAYS}")
    return (*_keyed(old.strip()), *_keyed(new.strip()))


def _keyed(text: str) -> tuple[str | None, str]:
    key, separator, value = text.partition(":")
    return (key, value) if separator else (None, text)


def _label(label: Any, *, truth: bool = False) -> tuple[str | None, Any]:
    """A value, or a (key, value) pair; with ``truth`` true and false count as 1 and 0."""
    value = label
    if isinstance(label, (list, tuple)):
        key, value = (label[0], label[1]) if len(label) == 2 else (None, None)
        if isinstance(key, str) and _plain(value):
            return key, value
    elif truth and isinstance(value, bool):
        return None, int(value)
    elif _plain(value):
        return None, value
    raise OptionError(f"label_map: {label!r} is neither a value nor a (key, value) pair. {_WAYS}")


def _plain(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _one_type(values: list[Any], which: str) -> None:
    if len({isinstance(value, str) for value in values}) > 1:
        text = next(value for value in values if isinstance(value, str))
        number = next(value for value in values if not isinstance(value, str))
        raise OptionError(
            f"label_map: {which} labels are partly strings, partly integers ({text!r}, {number!r})."
            " Write all in the type the tables have."
        )


def _from_table(thing: Any) -> pl.DataFrame:
    source = open_source(thing)
    try:
        frame = source.frame.collect()
    except READ_FAILURES as error:
        raise explain(source, error) from error
    missing = [name for name in ("label_value", "new_label_value") if name not in frame.columns]
    if missing:
        raise InputError(
            f"label_map ({source.description}): column {missing[0]!r} is missing."
            f"{did_you_mean(missing[0], frame.columns)} Columns there:"
            f" {', '.join(frame.columns) or 'none'}. {_WAYS}"
        )
    columns = []
    for name in COLUMNS:
        if name not in frame.columns:
            columns.append(pl.lit(None, pl.String).alias(name))
            continue
        dtype = frame.schema[name]
        text = name.endswith("key")
        if not (isinstance(dtype, dtypes.TEXTS) or dtype.is_integer() or dtype == pl.Null):
            raise InputError(
                f"label_map ({source.description}): column {name!r} has dtype {dtype}; labels are"
                " integers or strings."
            )
        columns.append(
            pl.col(name).cast(pl.Int64 if dtype.is_integer() and not text else pl.String)
        )
    found = frame.select(columns)
    holes = found.filter(pl.col("label_value").is_null() | pl.col("new_label_value").is_null())
    if holes.height:
        raise InputError(
            f"label_map ({source.description}): {count_of(holes.height, 'row')} without a"
            " label_value or new_label_value. Fill or remove them."
        )
    return found


def _without_contradiction(frame: pl.DataFrame) -> pl.DataFrame:
    frame = frame.select(COLUMNS).unique(maintain_order=True)
    twice = frame.filter(pl.struct("label_key", "label_value").is_duplicated())
    if twice.height:
        _, value, _, _ = twice.row(0)
        new = twice.filter(pl.col("label_value") == value)["new_label_value"].to_list()
        raise InputError(
            f"label_map: label {value!r} is mapped to several labels: {listing(new)}. Keep one."
        )
    return frame
