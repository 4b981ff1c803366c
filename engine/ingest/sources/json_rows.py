"""JSON arrays and mappings, decoded in pieces."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl

from ...schemas.errors import InputError, ReadError
from ...schemas.tuning import tuning
from ..files import not_utf_8
from ..problems import Note
from ..source import Source

# Typed decoding of long JSON arrays, piece by piece, so that memory stays at the columns' size.

Row = TypeVar("Row")
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_PLACE = re.compile(r" - at `\$(.*)`$")
_INDEX = re.compile(r"^\[(\d+)\](.*)$")


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Decoding errors that :func:`malformed` explains."""


def decode_rows(buffer: Any, row: type[Row], name: str, what: str) -> Iterator[list[Row]]:
    """Yield the rows of a JSON array of objects, in chunks of some megabytes.

    The array is cut between objects. If a cut is inside a row, the chunk fails to decode; then the
    rest is decoded in one go.

    Args:
        what: name of a row in messages: ``result``, ``annotation``, ...
    """
    decoder = msgspec.json.Decoder(list[row])  # type: ignore[valid-type]
    start, done, end = 0, 0, len(buffer)
    size = tuning().json_bytes
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
        raise malformed(error, piece, start - len(opening), name, buffer) from None


def decoded(buffer: Any, kind: type[Row], name: str, what: str) -> Row:
    """Decode JSON; rows with invalid values, and other content, raise ReadError."""
    try:
        return msgspec.json.decode(buffer, type=kind)
    except msgspec.ValidationError as error:
        raise misfit(error, name, what) from None
    except UNREADABLE as error:
        raise malformed(error, bytes(buffer), 0, name) from None


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
    message = f"{name}: {where}{counted}{at}: {reason[0].lower() + reason[1:]}."
    row = done + int(index.group(1)) if index else None
    return ReadError(message, code="file_malformed", field=field, row=row)


def malformed(
    error: Exception, piece: bytes, offset: int, name: str, whole: Any = None
) -> ReadError:
    """Make the error for text that is not JSON, with its place and the surrounding text.

    Args:
        whole: the file's bytes, if the piece is a part of them.
    """
    text = str(error)
    if isinstance(error, RecursionError):
        return ReadError(
            f"{name}: the JSON is nested too deeply to be read: lists or objects within one"
            " another, hundreds of levels down. No table has that; write the file again.",
            code="nested_too_deeply",
        )
    if "truncated" in text:
        return ReadError(
            f"{name}: the JSON ends in the middle; the file is truncated. Write or copy it again.",
            code="file_truncated",
        )
    if isinstance(error, UnicodeDecodeError):
        return ReadError(f"{name}: {not_utf_8(error)}", code="file_encoding", file=name)
    place = re.search(r"byte (\d+)", text)
    if place is None:
        return ReadError(f"{name}: not JSON in UTF-8: {text}. Write it again.", code="not_json")
    at = int(place.group(1))
    around = " ".join(piece[max(0, at - 40) : at + 20].decode("utf-8", "replace").split())
    reason = re.sub(r"^JSON is malformed: | \(byte \d+\)$", "", text)
    advice, code = "Write it again.", "not_json"
    if re.match(rb"-?(NaN|Infinity|inf|nan)", piece[max(0, at - 1) : at + 10].lstrip(b" :,[-")):
        reason, advice = "NaN and Infinity are not JSON", "Repair or remove these values."
        code = "not_finite"
    line, column = _line_and_column(piece if whole is None else whole, offset + at)
    return ReadError(
        f"{name}: malformed JSON at line {line:,}, column {column:,}: {reason}: ...{around}..."
        f" {advice}",
        code=code,
        byte=offset + at,
        line=line,
    )


_CHUNK = 1 << 20
_WITHIN_CHARACTERS = bytes(range(0x80, 0xC0))  # of UTF-8: all bytes but the first


def _line_and_column(whole: Any, place: int) -> tuple[int, int]:
    """Return line and column of a byte, both from 1; columns are characters."""
    line, column = 1, 1
    for start in range(0, place, _CHUNK):
        chunk = bytes(whole[start : min(start + _CHUNK, place)])
        if breaks := chunk.count(b"\n"):
            line, column, chunk = line + breaks, 1, chunk[chunk.rfind(b"\n") + 1 :]
        column += len(chunk.translate(None, _WITHIN_CHARACTERS))
    return line, column


# Mappings ``{"q1": {"d1": 1.5}}``, as many retrieval tools keep runs and qrels, to columns.

_COCO = (b"info", b"images", b"annotations", b"categories", b"licenses", b"type")
EXACT = 2.0**53  # floats are exact for integers up to here
_OPENING = re.compile(
    rb'\{\s*"(?P<key>(?:[^"\\]|\\.)*)"\s*:\s*\{\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:\s*[-0-9])'
)
"""An object whose first value is an object of numbers, or an empty one."""


def is_nested(head: bytes) -> bool:
    """Return whether a JSON object begins as queries to documents to numbers."""
    match = _OPENING.match(head)
    return match is not None and match["key"] not in _COCO


def read_mapping(buffer: Any, name: str) -> Source:
    """Read a JSON file ``{"q1": {"d1": 1.5, ...}, ...}``: a run, or qrels."""
    try:
        nested = msgspec.json.decode(buffer, type=dict[str, dict[str, int | float]])
    except msgspec.ValidationError as error:
        raise ReadError(
            f"{name}: a mapping of queries to documents to numbers is needed, as in"
            f' {{"q1": {{"d1": 1.5}}}}: {error}.',
            code="wrong_format",
            file=str(name),
        ) from None
    except UNREADABLE as error:
        raise malformed(error, bytes(buffer), 0, name) from None
    return source_of(nested, name, (name,))


def source_of(
    nested: Mapping[Any, Mapping[Any, Any]], description: str, files: tuple[str, ...] = ()
) -> Source:
    """Convert a mapping to a table of ``query_id``, ``doc_id`` and ``score`` (Float64).

    The side of the table decides if the numbers are scores or relevance.

    Args:
        nested: query to document to number; ids are strings or integers, all of one kind.
    """
    for query, scores in nested.items():
        if not isinstance(scores, Mapping):
            raise InputError(
                f"{description}: query {query!r} has {scores!r:.60}, but needs a mapping of "
                'documents to numbers, as in {"q1": {"d1": 1.5}}.',
                code="wrong_type",
                query=query,
            )
    sizes = [len(scores) for scores in nested.values()]
    queries = _ids(list(nested), "query", description)
    documents = list(itertools.chain.from_iterable(nested.values()))
    frame = pl.DataFrame(
        {
            "query_id": queries.gather(np.repeat(np.arange(len(sizes)), sizes)),
            "doc_id": _ids(documents, "document", description),
            "score": _numbers(nested, description),
        }
    )
    empty = sizes.count(0)
    notes = _rounded(nested, frame["score"], description)
    if empty:
        message = f"{description}: {empty:,} queries without documents are skipped."
        notes += (Note("queries_without_documents", message, empty),)
    return Source(frame.lazy(), description, "mapping", files, notes=notes)


def _ids(ids: list[Any], what: str, description: str) -> pl.Series:
    kinds = set(map(type, ids))
    if kinds <= {str}:
        return pl.Series(ids, dtype=pl.String)
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        low, high = min(ids), max(ids)
        for dtype in (np.int64, np.uint64):
            if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
                return pl.Series(np.fromiter(ids, dtype, len(ids)))
        raise InputError(
            f"{description}: {what} ids go from {low} to {high}, which exceeds 64-bit integers. "
            "Write str(id) for each of them.",
            code="number_too_large",
            what=what,
        )
    if all(issubclass(kind, str) for kind in kinds):
        return pl.Series([str(one) for one in ids], dtype=pl.String)
    odd = next((one for one in ids if type(one) is not type(ids[0])), ids[0])
    raise InputError(
        f"{description}: {what} ids must be all strings or all integers; there are {ids[0]!r} and"
        f" {odd!r}. Write str(id) for each of them.",
        code="types_mixed",
        what=what,
    )


def _numbers(nested: Mapping[Any, Mapping[Any, Any]], description: str) -> pl.Series:
    values = list(itertools.chain.from_iterable(one.values() for one in nested.values()))
    if all(issubclass(kind, (int, float, np.number)) for kind in set(map(type, values))):
        try:
            return pl.Series(np.fromiter(values, np.float64, len(values)))
        except OverflowError:
            large = max(values, key=abs)
            raise InputError(
                f"{description}: a value is too large for float64: {str(large)[:20]}..., of "
                f"{len(str(abs(large)))} digits. Remove such documents, or divide all values.",
                code="number_too_large",
            ) from None
    bad = [
        (query, document, value)
        for query, scores in nested.items()
        for document, value in scores.items()
        if not isinstance(value, (int, float, np.number))
    ]
    query, document, value = bad[0]
    raise InputError(
        f"{description}: {len(bad):,} values are not numbers, first {value!r:.60} of query "
        f"{query!r}, document {document!r}. Remove such documents.",
        code="wrong_type",
        count=len(bad),
        query=query,
    )


def _rounded(
    nested: Mapping[Any, Mapping[Any, Any]], score: pl.Series, description: str
) -> tuple[Note, ...]:
    """A note of integers that are others as floats, so that different ones may be equal."""
    if not len(score) or not bool((score.abs() >= EXACT).any()):
        return ()
    values = itertools.chain.from_iterable(one.values() for one in nested.values())
    inexact = [
        value
        for value in values
        if isinstance(value, (int, np.integer)) and int(float(value)) != value
    ]
    if not inexact:
        return ()
    message = rounded_words(description, len(inexact), int(inexact[0]))
    return (Note("values_rounded", message, len(inexact)),)


def rounded_words(where: str, count: int, first: int) -> str:
    """Return the message about integers that floats change."""
    word = "integer" if count == 1 else "integers"
    return (
        f"{where}: {count:,} {word} beyond 2^53 rounded to float64, first {first}; different ones"
        " may tie."
    )
