"""COCO's images and categories, to tables of datums and labels."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas.errors import InputError, ReadError

from .json_rows import misfit

_LISTS = ("pos_category_ids", "neg_category_ids", "not_exhaustive_category_ids")
_CROWDED, _LEVELS = "crowdIndex", (0.2, 0.8)
_SHOWN_BITS = 128  # of a number that messages write out


class _Category(msgspec.Struct):
    id: int | str
    name: str | None = None
    supercategory: str | None = None
    frequency: str | None = None
    isthing: int | bool | None = None
    keypoints: Any = None
    skeleton: Any = None


def there(raw: msgspec.Raw) -> bool:
    return memoryview(raw).nbytes > 0


def read_images(raw: msgspec.Raw, name: str, what: str = "image") -> pl.DataFrame | None:
    """Read images or videos as datums, with their further plain fields, for slices."""
    if not there(raw):
        return None
    try:
        rows = msgspec.json.decode(raw, type=list[dict[str, Any]])
    except msgspec.ValidationError as error:
        raise misfit(error, name, what) from None
    for i, row in enumerate(rows):
        if not isinstance(row.get("id"), (int, str)) or isinstance(row["id"], bool):
            raise ReadError(
                f"{name}: {what} {i:,} (counted from 0), field 'id': an integer or string is"
                f" needed, not {row.get('id')!r}."
            )
    ids = [row["id"] for row in rows]
    columns: dict[str, pl.Series] = {"datum_id": _uniform(ids, name, what)}
    for field in dict.fromkeys(itertools.chain.from_iterable(rows)):
        values = [row.get(field) for row in rows]
        if field in _LISTS:
            columns[field] = _lists(values, field, name)
        elif field not in ("id", "datum_id") and _plain(values):
            columns[field] = pl.Series(values, strict=False)
    frame = pl.DataFrame(columns)
    if frame.schema.get(_CROWDED, pl.Null()).is_numeric():
        frame = frame.with_columns(_level(pl.col(_CROWDED)).alias("crowd_level"))
    return frame


def _level(index: pl.Expr) -> pl.Expr:
    """CrowdPose's three kinds of images, as crowdposetools and xtcocotools part them."""
    low, high = _LEVELS
    word = pl.when(index < low).then(pl.lit("easy")).when(index < high).then(pl.lit("medium"))
    return pl.when(index.is_not_null()).then(word.otherwise(pl.lit("hard")))


def _lists(values: list[Any], field: str, name: str) -> pl.Series:
    """Read lists of categories, as in LVIS; null if an image has none.

    Raises:
        ReadError: other values.
    """
    try:
        kinds = {type(one) for value in values if value is not None for one in value}
        if not kinds <= {int} and not kinds <= {str}:
            raise TypeError
        return pl.Series(values, dtype=pl.List(pl.String if kinds == {str} else pl.Int64))
    except (TypeError, pl.exceptions.PolarsError, OverflowError):
        at = next((i for i, v in enumerate(values) if v is not None and not isinstance(v, list)), 0)
        raise ReadError(
            f"{name}: image {at:,} (counted from 0), field {field!r}: lists of category ids are"
            f" needed, all integers or all strings, not {values[at]!r}."
        ) from None


def _uniform(values: list[Any], name: str, what: str) -> pl.Series:
    if len({type(value) for value in values}) > 1:
        raise InputError(f"{name}: {what} ids are partly strings, partly integers; use one type.")
    refuse_large(values, name, what, "id")
    if values and isinstance(values[0], int) and max(values) >= 2**63 and min(values) >= 0:
        return pl.Series(values, dtype=pl.UInt64)
    return pl.Series(values, dtype=None if values else pl.Int64)


def refuse_large(values: Sequence[Any], name: str, what: str, field: str, done: int = 0) -> None:
    """Refuse ids beyond 64 bits; ignores nulls and strings.

    Raises:
        InputError: names the first.
    """
    for i, value in enumerate(values):
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            said = str(value) if value.bit_length() <= _SHOWN_BITS else f"{hex(value)[:20]}..."
            raise InputError(
                f"{name}: {what} {done + i:,} (counted from 0), field {field!r}: {said} has more"
                " than 64 bits. Write ids as strings, or smaller ones."
            )


def _plain(values: Iterable[Any]) -> bool:
    """Return whether a field has values of one plain type."""
    kinds = {type(value) for value in values if value is not None}
    return kinds in ({int}, {str}, {bool}, {float}, {int, float})


def read_categories(raw: msgspec.Raw, name: str) -> pl.DataFrame | None:
    """Read categories as labels, with name, supercategory, frequency, key point names and
    skeleton.
    """
    if not there(raw):
        return None
    try:
        rows = msgspec.json.decode(raw, type=list[_Category])
    except msgspec.ValidationError as error:
        raise misfit(error, name, "category") from None
    columns = {"label_value": _uniform([row.id for row in rows], name, "category")}
    for field in ("name", "supercategory", "frequency"):
        values = [getattr(row, field) for row in rows]
        if any(value is not None for value in values):
            columns["label_name" if field == "name" else field] = pl.Series(values, dtype=pl.String)
    things = [row.isthing for row in rows]
    if any(thing is not None for thing in things):
        columns["isthing"] = pl.Series(things, dtype=pl.Int64, strict=False)
    for field, dtype in _OF_POINTS.items():
        values = [getattr(row, field) for row in rows]
        if any(values):
            try:
                columns[field] = pl.Series(values, dtype=dtype)
            except (TypeError, pl.exceptions.PolarsError, OverflowError):
                continue  # nothing is computed of them
    return pl.DataFrame(columns)


_OF_POINTS = {"keypoints": pl.List(pl.String), "skeleton": pl.List(pl.List(pl.Int64))}
"""Fields of a category about its key points."""
