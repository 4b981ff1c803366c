"""Lists of numbers of many rows of COCO's as one column, without an object a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress, repeat
from typing import Any

import msgspec
import numpy as np
import polars as pl

from evalengine.schemas.errors import ReadError

_NEEDED = {
    "keypoints": "[x, y, visibility, ...]",
    "bbox": "[x, y, width, height]",
    "obb": "[cx, cy, width, height, angle]",
}
_LINES = bytes.maketrans(b",", b"\n")
_LEFT_OUT = b"[] \t\r\n"


def lists(
    texts: Sequence[bytes], name: str, what: str, done: int, field: str = "keypoints"
) -> pl.Series:
    """Lists of numbers as one column, List(Float64); of an empty text and of null, null.

    Args:
        texts: JSON of each row's field.
        name: the file, for messages.
        what: what a row is called there.
        done: rows of the file before these.
        field: the field.

    Raises:
        ReadError: something else than numbers, naming the first row.
    """
    import pyarrow as pa

    n = len(texts)
    missing = np.zeros(n, np.bool_)
    if b"" in texts or b"null" in texts:
        missing = np.fromiter((text in (b"", b"null") for text in texts), np.bool_, n)
    commas = np.fromiter(map(bytes.count, texts, repeat(b",")), np.int64, n)
    empty = missing.copy()
    for row in np.flatnonzero((commas == 0) & ~missing).tolist():
        empty[row] = not texts[row].translate(None, _LEFT_OUT)
    lengths = np.where(empty, 0, commas + 1)
    full = [*compress(texts, (~empty).tolist())] if empty.any() else texts
    joined = b",".join(full)
    values = np.empty(0)
    if full:
        try:  # CSV is read several times as fast, and rounded as exactly, as JSON is
            values = pl.read_csv(
                joined.translate(_LINES, _LEFT_OUT),
                has_header=False,
                quote_char=None,
                schema={"number": pl.Float64},
            )["number"].to_numpy()
        except pl.exceptions.PolarsError:
            raise _broken(texts, name, what, done, field) from None
        nested = joined.count(b"[") != len(full)
        if nested or values.size != lengths.sum() or np.isnan(values).any():
            raise _broken(texts, name, what, done, field)
    start = np.concatenate([[0], np.cumsum(lengths)])
    mask = pa.array(missing) if missing.any() else None
    column: Any = pa.LargeListArray.from_arrays(pa.array(start), pa.array(values), mask=mask)
    return pl.Series(field, pl.from_arrow(column))


def _broken(texts: Sequence[bytes], name: str, what: str, done: int, field: str) -> ReadError:
    """The first row whose list is not one of numbers."""
    decoder = msgspec.json.Decoder(list[float] | None)
    for row, text in enumerate(texts):
        try:
            decoder.decode(text or b"null")
        except msgspec.DecodeError as error:
            reason = re.sub(r" - at `\$.*`$", "", str(error)).replace("`", "'")
            return ReadError(
                f"{name}: {what} {done + row:,} (counted from 0), field {field!r}: {reason}."
                f" Needed is one list {_NEEDED[field]}."
            )
    return ReadError(f"{name}: field {field!r} of its {what}s cannot be read.")
