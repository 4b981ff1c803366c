"""Typed decoding of long JSON arrays, piece by piece, so that memory stays at the columns' size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from evalengine.schemas.errors import ReadError
from evalengine.schemas.tuning import tuning

Row = TypeVar("Row")
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_PLACE = re.compile(r" - at `\$(.*)`$")
_INDEX = re.compile(r"^\[(\d+)\](.*)$")


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Decoding errors that :func:`malformed` explains."""


def decode_rows(
    buffer: Any, row: type[Row], name: str, what: str, times: int = 1
) -> Iterator[list[Row]]:
    """Yield the rows of a JSON array of objects, in chunks of some megabytes.

    The array is cut between objects. If a cut is inside a row, the chunk fails to decode; then the
    rest is decoded in one go.

    Args:
        buffer: bytes, or an object with the buffer interface that ``re`` can search.
        what: name of a row in messages: ``result``, ``annotation``, ...

    Raises:
        ReadError: malformed JSON, or an invalid row; names index and field.
    """
    decoder = msgspec.json.Decoder(list[row])  # type: ignore[valid-type]
    start, done, end = 0, 0, len(buffer)
    size = tuning().json_bytes * times
    opening = b""
    while True:
        cut = _BETWEEN.search(buffer, start + size) if start + size < end else None
        if cut is None:
            yield _decode(decoder, buffer, opening, start, done, name, what)
            return
        piece = opening + bytes(buffer[start : cut.start() + 1]) + b"]"
        try:
            rows = decoder.decode(piece)
        except msgspec.ValidationError as error:
            raise misfit(error, name, what, done) from None
        except UNREADABLE:
            yield _decode(decoder, buffer, opening, start, done, name, what)
            return
        yield rows
        start, done, opening = cut.end() - 1, done + len(rows), b"["


def _decode(
    decoder: msgspec.json.Decoder[list[Row]],
    buffer: Any,
    opening: bytes,
    start: int,
    done: int,
    name: str,
    what: str,
) -> list[Row]:
    piece = opening + bytes(buffer[start:])
    try:
        return decoder.decode(piece)
    except msgspec.ValidationError as error:
        raise misfit(error, name, what, done) from None
    except UNREADABLE as error:
        raise malformed(error, piece, start - len(opening), name) from None


def misfit(error: Exception, name: str, what: str, done: int = 0) -> ReadError:
    """Make the error for a row that is JSON but has an invalid value, with index and field."""
    text = str(error)
    place = _PLACE.search(text)
    reason = text[: place.start()] if place else text
    inside = place.group(1) if place else ""
    index = _INDEX.match(inside)
    where = f"{what} {done + int(index.group(1)):,}" if index else what
    field = (index.group(2) if index else inside).lstrip(".")
    reason = reason.replace("`", "'").replace(
        "Expected 'array' of length 4", "a box needs 4 numbers"
    )
    at = f", field {field!r}" if field else ""
    counted = " (counted from 0)" if index else ""
    return ReadError(f"{name}: {where}{counted}{at}: {reason[0].lower() + reason[1:]}.")


def malformed(error: Exception, piece: bytes, offset: int, name: str) -> ReadError:
    """Make the error for text that is not JSON, with the surrounding text."""
    text = str(error)
    if isinstance(error, RecursionError):
        return ReadError(
            f"{name}: the JSON is nested too deeply to be read: lists or objects within one"
            " another, hundreds of levels down. No table has that; write the file again."
        )
    if "truncated" in text:
        return ReadError(
            f"{name}: the JSON ends in the middle; the file is truncated. Write or copy it again."
        )
    place = re.search(r"byte (\d+)", text)
    if place is None:
        return ReadError(f"{name}: not JSON in UTF-8: {text}. Write it again.")
    at = int(place.group(1))
    around = piece[max(0, at - 40) : at + 20].decode("utf-8", "replace")
    reason = re.sub(r"^JSON is malformed: | \(byte \d+\)$", "", text)
    advice = "Write it again."
    if re.match(rb"-?(NaN|Infinity|inf|nan)", piece[max(0, at - 1) : at + 10].lstrip(b" :,[-")):
        reason, advice = "NaN and Infinity are not JSON", "Repair or remove these values."
    return ReadError(
        f"{name}: malformed JSON at byte {offset + at:,}: {reason}: ...{around}... {advice}"
    )
