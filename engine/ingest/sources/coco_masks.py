"""COCO's ``segmentation``: polygons, and run-length masks, compressed or not.

Rows keep the JSON text; it is decoded when the column is read, so that runs that compare boxes do
not pay for it. An empty list means none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas.errors import InputError, ReadError

RINGS = pl.List(pl.List(pl.Float64()))
MASK = pl.Struct({"size": pl.List(pl.Int64()), "counts": pl.String()})
_RUNS = pl.Struct({"size": pl.List(pl.Int64()), "counts": pl.List(pl.Int64())})
_EMPTY = rb"^\[\s*\]$"
_POLARS = "\n\nThis error occurred in the following expression"
_IS_RUNS = r'"counts"\s*:\s*\['


@contextmanager
def said_plainly() -> Iterator[None]:
    """Collect frames in it: errors of decoding come without Polars' words on its expression."""
    try:
        yield
    except InputError as error:
        said, found, _ = str(error).partition(_POLARS)
        if not found:
            raise
        raise type(error)(said) from None


class _Mask(msgspec.Struct):
    size: tuple[int, int]
    counts: str | list[int]


def with_segmentation(frame: pl.DataFrame, name: str, what: str) -> pl.LazyFrame:
    """Replace ``segmentation`` by columns ``polygon`` and ``mask``.

    Args:
        frame: rows with a Binary column ``segmentation``, JSON; others are returned unchanged.

    Returns:
        the rows; ``polygon`` is List(List(Float64)), flat rings, or null; ``mask`` a struct of size
        (height, width) and compressed counts, or null; a column is omitted if no row has a value.
    """
    if "segmentation" not in frame.columns:
        return frame.lazy()
    raw = frame["segmentation"]
    listed = raw.bin.starts_with(b"[") & ~_is_empty(raw)
    runs = raw.bin.starts_with(b"{")
    odd = ~listed & ~runs & ~_is_empty(raw) & raw.is_not_null()
    if odd.any():
        _refuse(frame, odd, name, what)
    columns = []
    for column, rows, dtype, decode in (
        ("polygon", listed, RINGS, _polygons),
        ("mask", runs, MASK, _masks),
    ):
        if not rows.any():
            continue

        def made(index: pl.Series, rows: pl.Series = rows, decode: Any = decode) -> pl.Series:
            return _scattered(raw, index, rows, partial(decode, name=name, what=what))

        at = pl.col("__row").map_batches(made, return_dtype=dtype, is_elementwise=True)
        columns.append(at.alias(column))
    numbered = frame.drop("segmentation").with_row_index("__row").lazy()
    return numbered.with_columns(columns).drop("__row")


def _is_empty(raw: pl.Series) -> pl.Series:
    """Return flags for rows with an explicitly empty segmentation."""
    short = raw.bin.size() <= 64
    texts = raw.set(~short, None).cast(pl.String)
    empty = texts.str.contains(_EMPTY.decode()) | (texts == "null")
    return empty.fill_null(value=False)


def _scattered(raw: pl.Series, index: pl.Series, rows: pl.Series, decode: Any) -> pl.Series:
    """Return the decoded rows at ``index``, null for others."""
    wanted = rows.gather(index)
    places = pl.int_range(len(index), dtype=pl.UInt32, eager=True)
    kept = index.filter(wanted)
    found: pl.Series = decode(raw.gather(kept).cast(pl.String), kept)
    if len(found) == len(index):
        return found
    back = places.filter(wanted)
    at = pl.repeat(None, len(index), dtype=pl.UInt32, eager=True).scatter(
        back, pl.int_range(len(back), dtype=pl.UInt32, eager=True)
    )
    return found.gather(at)


def _polygons(texts: pl.Series, rows: pl.Series, name: str, what: str) -> pl.Series:
    try:
        return texts.str.json_decode(RINGS)
    except pl.exceptions.PolarsError:
        raise _broken(texts, rows, list[list[float]], name, what) from None


def _masks(texts: pl.Series, rows: pl.Series, name: str, what: str) -> pl.Series:
    plain = texts.str.contains(_IS_RUNS)
    try:
        packed = texts.set(plain, None).str.json_decode(MASK)
        runs = texts.filter(plain).str.json_decode(_RUNS)
    except pl.exceptions.PolarsError:
        raise _broken(texts, rows, _Mask, name, what) from None
    fields = packed.struct.unnest()
    if any(column.null_count() > runs.len() for column in fields.iter_columns()):
        raise _broken(texts, rows, _Mask, name, what)
    if not runs.len():
        return packed
    place = (plain.cast(pl.Int64).cum_sum() - 1).clip(0)  # of a row with listed counts among those
    try:
        packed_runs = _compressed(runs, rows.filter(plain), what)
    except InputError as error:
        raise ReadError(f"{name}: {error}") from None
    return packed.zip_with(~plain, packed_runs.gather(place))


def _compressed(runs: pl.Series, rows: pl.Series, what: str) -> pl.Series:
    """Masks with listed counts, their counts as COCO's strings."""
    from evalengine.geometry.masks import read_masks, to_rle  # NumPy and kernels: only where used

    return to_rle(read_masks(runs, side=f"{what}s", rows=rows.to_numpy())).cast(MASK)


def _broken(texts: pl.Series, rows: pl.Series, kind: Any, name: str, what: str) -> ReadError:
    """Return the error for the first invalid segmentation."""
    decoder = msgspec.json.Decoder(kind)
    for text, row in zip(texts, rows, strict=True):
        try:
            decoder.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            reason = re.sub(r" - at `\$.*`$", "", str(error)).replace("`", "'")
            return ReadError(
                f"{name}: {what} {row:,} (counted from 0), field 'segmentation': {reason}."
                " Needed are polygons [[x, y, ...], ...] or"
                " {'size': [height, width], 'counts': ...}."
            )
    return ReadError(f"{name}: the segmentations of its {what}s cannot be decoded.")


def _refuse(frame: pl.DataFrame, odd: pl.Series, name: str, what: str) -> None:
    row = odd.arg_true()[0]
    text = bytes(frame["segmentation"][row])[:40].decode("utf-8", "replace")
    raise ReadError(
        f"{name}: {odd.sum():,} {what}s whose segmentation is neither polygons nor a mask, first"
        f" {what} {row:,} (counted from 0): {text}. Needed are polygons [[x, y, ...], ...] or"
        " {'size': [height, width], 'counts': ...}."
    )
