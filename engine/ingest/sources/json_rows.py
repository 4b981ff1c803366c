"""JSON arrays, mappings and lines as rows; long arrays of flat objects become columns."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import binary_column
from ...kernels import json as scanner
from ...kernels.json import FLOAT, MISSING, NUMBERS, WHOLE
from ...schemas.arrays import Array
from ...schemas.errors import InputError, ReadError
from ...schemas.tables import TABLES
from ...schemas.tuning import tuning
from ..dtypes import CALLS_AS_TEXT, JSON_TEXT, are_calls, calls_in, folded
from ..files import Source, not_utf_8
from ..problems import Note, listing

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
            f' {{"q1": {{"d1": 1.5}}}}: {error}. For a table of pandas write orient="records".',
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
    if columns := _columns_in(nested):
        raise InputError(
            f"{description}: a mapping of columns to rows, as pandas writes it:"
            f" {listing(columns)} are names of columns, not queries. Write a list of rows:"
            " to_json(orient='records') or to_dict(orient='records').",
            code="wrong_format",
            columns=columns,
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


def _columns_in(nested: Mapping[Any, Mapping[Any, Any]]) -> list[str]:
    """Return the queries that are names of columns, at least two, if all have the same documents
    and these are numbers of rows.
    """
    rows = [*next(iter(nested.values()), ())]
    if not rows or not all(str(row).isdecimal() for row in rows):
        return []
    known = {
        folded(name)
        for table in TABLES
        for column in table.columns
        for name in (column.name, *column.aliases)
    }
    columns = [str(name) for name in nested if folded(str(name)) in known]
    whole = all([*scores] == rows for scores in nested.values())
    return columns if whole and len(columns) > 1 else []


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


_CLOSING, _CLOSING_BRACE = b"]}"
_ARRAY_START = re.compile(rb"[ \t\r\n]*\[[ \t\r\n]*")
_NUMBER = re.compile(rb"[-+.0-9eE]+")
_BLANK = b" \t\r\n"
_QUOTE, _TRUE, _FALSE, _NULL, _ARRAY, _OBJECT = b'"tfn[{'
_ROW_BYTES = 16  # of the shortest rows; shorter ones end a piece earlier
_SLOW = 1 << 12
_COMPILED = 32  # by which shorter texts are worth the kernel once it is loaded


class NotFlat(Exception):
    """Text that is no array of objects of one form, or is not worth the kernel."""


def scan(
    buffer: Any, fields: Sequence[str], raw: Collection[str] = (), offsets: list[int] | None = None
) -> Iterator[pl.DataFrame]:
    """Yield some fields of an array of objects, some megabytes of text at a time.

    Columns have the dtype of their values: Int64, Float64, Boolean, String, Binary for JSON text,
    List(Float64), or Array if all lists of a piece have one length, and Null. Missing fields and
    null become null; JSON text contains null.

    Args:
        raw: fields whose arrays and objects remain JSON text; other arrays contain numbers.
        offsets: receives the position after the array, which may be followed by the rest of an
            object.

    Raises:
        NotFlat: short texts, damaged ones, repeated fields, integers beyond Int64, infinite
            numbers, fields of several types: all that a general parser has to read or to explain.
    """
    size, end = 2 * tuning().json_bytes, len(buffer)
    kernel: Any = scanner.scan_rows
    start = _ARRAY_START.match(buffer)
    if start is None or end < (size // _COMPILED if kernel.variants else size):
        raise NotFlat
    while buffer[end - 1] in _BLANK:
        end -= 1
    last = _CLOSING if offsets is None else _CLOSING_BRACE
    if buffer[end - 1] != last:  # cut off: the kernel relies on it
        raise NotFlat
    text = np.frombuffer(buffer, np.uint8, end)
    words = [b'"%s"' % field.encode() for field in fields] + [b"true", b"false", b"null"]
    limits = np.cumsum([0, *map(len, words)])
    joined = np.frombuffer(b"".join(words) + bytes(8), np.uint8)  # the kernel reads eight at once
    is_raw = np.array([field in raw for field in fields])
    names = joined, limits, is_raw, scanner.powers_of_five()
    slow, out = np.empty((_SLOW, 3), np.int64), np.array([start.end(), 0, 0])
    state = np.zeros(len(fields) + 1, np.int64), slow, out
    dtypes: dict[str, type[pl.DataType]] = {}
    rows = 0
    while True:
        if rows <= size // _ROW_BYTES:  # memory that is not used costs nothing
            rows = size // _ROW_BYTES + 1
            kind = np.empty((len(fields), rows), np.uint8)
            value = np.empty((len(fields), rows), np.uint64)
            pool = np.empty((len(fields), size // 2), np.uint64)
            columns = kind, value, pool, pool.view(np.uint8)
        at, used = int(out[0]), np.zeros(len(fields), np.int64)
        reason = kernel(text, at, at + size, *names, *columns, used, *state)
        height = int(out[1])
        ended = reason == scanner.ENDED
        if reason == scanner.ODD or (ended and offsets is None and out[0] != end):
            raise NotFlat
        for column, place, begin in slow[: out[2]].tolist():
            number = float(_NUMBER.match(buffer, begin)[0])  # type: ignore[index]
            part = value[column] if column >= 0 else pool[-1 - column]
            part.view(np.float64)[place] = number
        if height == 0:  # a row that is longer than a piece
            if size > 2 * end:
                raise NotFlat
            size *= 2
            continue
        frame = []
        for k, field in enumerate(fields):
            piece = kind[k, :height], value[k, :height], pool[k]
            column = _column(field, *piece, raw=field in raw)
            frame.append(column)
            dtype = type(column.dtype)
            dtype = pl.List if dtype == pl.Array else pl.Float64 if dtype == pl.Int64 else dtype
            if dtype != pl.Null and dtypes.setdefault(field, dtype) != dtype:
                raise NotFlat
        yield pl.DataFrame(frame)
        if ended:
            if offsets is not None:
                offsets.append(int(out[0]))
            return


def list_column(flat: Array, limits: Array, missing: Array | None) -> pl.Series:
    """Make a column of lists; their dtype is Array if all have one length.

    Args:
        flat: the numbers of all lists.
        limits: [n + 1], where each begins and ends.
        missing: [n], rows that are null; None if no row is.
    """
    n, each = limits.size - 1, limits[1]
    if missing is None and each and (np.diff(limits) == each).all():
        return pl.Series(flat.reshape(n, each))
    if missing is not None and missing.all():
        return pl.Series([None] * n, dtype=pl.Null)
    import pyarrow as pa  # takes a while

    mask = None if missing is None else pa.array(missing)
    arrow = pa.LargeListArray.from_arrays(pa.array(limits), pa.array(flat), mask=mask)
    return pl.Series(pl.from_arrow(arrow))


def _column(name: str, kind: Array, value: Array, pool: Array, *, raw: bool) -> pl.Series:
    one_kind = (kind == kind[0]).all()
    kinds = {int(kind[0])} if one_kind else {*np.flatnonzero(np.bincount(kind)).tolist()}
    absent = {MISSING} if raw else {MISSING, _NULL}
    present = kinds - absent
    missing = (kind == MISSING) | (kind == _NULL) & (not raw) if kinds & absent else None
    values: Any
    if not present:
        return pl.Series(name, [None], dtype=pl.Null).new_from_index(0, kind.size)
    if raw or present == {NUMBERS} or present == {_QUOTE}:
        if raw and not present <= {_ARRAY, _OBJECT, _NULL}:
            raise NotFlat
        offsets = value.view(np.int64)
        if missing is not None:
            offsets = np.maximum.accumulate(np.where(missing, 0, offsets))
        limits = np.concatenate([[0], offsets])
        if present == {NUMBERS}:
            flat = pool[: limits[-1]].view(np.float64).copy()
            return list_column(flat, limits, missing).alias(name)
        joined = pool.view(np.uint8)[: limits[-1]]
        column = binary_column(joined, limits).alias(name)
        if missing is not None:
            column = column.set(pl.Series(missing), None)
        if raw:
            return column
        if (joined == ord("\\")).any():
            raise NotFlat
        try:
            return column.cast(pl.String)
        except pl.exceptions.PolarsError:  # not UTF-8
            raise NotFlat from None
    if present == {WHOLE}:
        values = value.view(np.int64).copy()
    elif present <= {WHOLE, FLOAT}:
        values = value.view(np.float64).copy()
        if WHOLE in present:
            integral = kind == WHOLE
            values[integral] = value.view(np.int64)[integral]
    elif present <= {_TRUE, _FALSE}:
        values = kind == _TRUE
    else:
        raise NotFlat
    column = pl.Series(name, values)
    return column if missing is None else column.set(pl.Series(missing), None)


# Tool calls as JSON text: their arguments have a type per row, and columns have one dtype.

_LINE = "__evalengine_line"
_TEXTS = pl.List(pl.String)
_MATCHING = 1_000  # lines in which lists are looked for
_NESTED = (pl.List, pl.Array, pl.Struct, pl.String)
_BLOCK = r'"content"\s*:\s*\[\s*\{'
_ROWS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
WRITE_TEXT = "Give each row a value of the same type, or JSON as text."


def _names(kind: str) -> frozenset[str]:
    columns = [one for table in TABLES for one in (*table.required, *table.optional)]
    groups = [(one.name, *one.aliases) for one in columns if one.kind == kind]
    return frozenset(name.casefold() for names in groups for name in names)


_LISTS, _OBJECTS = _names("calls"), _names("json")


def scan_lines(
    paths: list[str],
    storage_options: dict[str, str] | None = None,
    path: str | None = None,
    *,
    remote: bool = False,
) -> pl.LazyFrame:
    """Scan JSON Lines; columns of tool calls contain the JSON text of each call.

    Columns of strings and of lists of strings are lists.

    Args:
        path: name of a column for the file of each row.

    Raises:
        ReadError: values of a column have no common dtype.
    """
    frame = pl.scan_ndjson(
        paths, infer_schema_length=None, storage_options=storage_options, include_file_paths=path
    )
    text = pl.col(_LINE)
    lines = (
        pl.scan_lines(
            paths, name=_LINE, storage_options=storage_options, include_file_paths=path, glob=remote
        )
        .with_columns(text.str.strip_prefix("\ufeff").str.strip_chars())
        .filter(text != "")
    )
    try:
        schema = dict(frame.collect_schema())
        schema.pop(path or "", None)
        kinds = {name: _target(name, dtype) for name, dtype in schema.items()}
        kinds |= dict.fromkeys(calls_in(schema), CALLS_AS_TEXT)
        for name in [one for one, dtype in schema.items() if not kinds[one] and _is_talk(dtype)]:
            blocks = lines.filter(text.str.contains(_BLOCK)).select(_LINE).collect()[_LINE]
            values = [msgspec.json.decode(_ROWS.decode(one).get(name, b"null")) for one in blocks]
            kinds[name] = _of_values(name, values)
        strings = [one for one, dtype in schema.items() if dtype == pl.String and not kinds[one]]
        kinds |= dict.fromkeys(_sometimes_lists(strings, lines), _TEXTS)
    except pl.exceptions.PolarsError as error:
        schema = _by_column(lines.select(_LINE).collect()[_LINE], paths[0], error)
        kinds = {name: _target(name, dtype) for name, dtype in schema.items()}
    texts = {name: dtype for name, dtype in kinds.items() if dtype is not None}
    if not texts:
        return frame
    others = {name: dtype for name, dtype in schema.items() if name not in texts}
    decoded = text.str.json_decode(pl.Struct(others)).struct
    columns = [
        text.map_batches(_reader(name, texts[name]), texts[name], is_elementwise=True).alias(name)
        if name in texts
        else decoded.field(name)
        for name in schema
    ]
    return lines.select(*columns, *([path] if path else []))


def _sometimes_lists(names: Sequence[str], lines: pl.LazyFrame) -> list[str]:
    """Return the columns of strings that have lists of strings in some rows."""
    if not names:
        return []
    keys = [msgspec.json.encode(name).decode() for name in names]
    begins = [f"{key}{colon}[" for key in keys for colon in (":", ": ")]
    matching = lines.filter(pl.col(_LINE).str.contains_any(begins)).select(_LINE)
    try:
        rows = [msgspec.json.decode(line) for line in matching.head(_MATCHING).collect()[_LINE]]
    except UNREADABLE:
        return []
    values = {
        name: [row[name] for row in rows if isinstance(row.get(name), list)] for name in names
    }
    return [
        name
        for name, lists in values.items()
        if lists and all(isinstance(one, str) for value in lists for one in value)
    ]


def _is_talk(dtype: pl.DataType) -> bool:
    """Return whether a dtype is that of messages whose content may be text or blocks."""
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    fields = {one.name: one.dtype for one in inner.fields} if isinstance(inner, pl.Struct) else {}
    return "role" in fields and fields.get("content") == pl.String


def _target(name: str, dtype: pl.DataType) -> pl.DataType | None:
    """Return the dtype of a column that is read as JSON text; None for others."""
    folded = name.casefold()
    if dtype == CALLS_AS_TEXT:
        return dtype
    if folded in _LISTS and isinstance(dtype, (pl.List, pl.Array)):
        return CALLS_AS_TEXT
    return pl.String() if folded in _LISTS | _OBJECTS and isinstance(dtype, _NESTED) else None


def _by_column(lines: pl.Series, file: str, error: Exception) -> dict[str, pl.DataType]:
    """Infer the dtypes of columns one by one, those of calls as JSON text."""
    try:
        rows = [_ROWS.decode(line) for line in lines]
    except (msgspec.DecodeError, RecursionError):
        raise error from None
    schema: dict[str, pl.DataType] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        raw = [row.get(name, b"null") for row in rows]

        def infer(n: int, raw: Sequence[Any] = raw) -> pl.DataType:
            text = b"\n".join(b'{"x":%b}' % bytes(one) for one in raw[:n])
            return pl.read_ndjson(text, infer_schema_length=None)["x"].dtype

        try:
            schema[name] = infer(len(rows))
        except pl.exceptions.PolarsError as failed:
            dtype = _of_values(name, _decoded(raw, error))
            if dtype is None:
                row = first_misfit(len(rows), infer)
                reason = str(failed).strip().splitlines()[0]
                raise ReadError(
                    f"{file}: column {name!r}: the values up to row {row:,} have no common type:"
                    f" {reason}. {WRITE_TEXT}",
                    code="types_mixed",
                    file=file,
                    column=name,
                    row=row,
                ) from None
            schema[name] = dtype
    return schema


def _decoded(raw: Sequence[Any], error: Exception) -> list[Any]:
    try:
        return [msgspec.json.decode(one) for one in raw]
    except (msgspec.DecodeError, RecursionError):
        raise error from None


def first_misfit(n: int, make: Callable[[int], Any]) -> int:
    """Return the first row, from 1, with which ``make`` of so many rows fails; it fails for n."""
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        try:
            make(middle)
            low = middle
        except (Exception, pl.exceptions.PanicException):
            high = middle
    return high


def _reader(name: str, dtype: pl.DataType) -> Callable[[pl.Series], pl.Series]:
    def read(lines: pl.Series) -> pl.Series:
        raw = [_ROWS.decode(line).get(name, b"null") for line in lines]
        if dtype == pl.String:
            return pl.Series(name, [_text(one) for one in raw], pl.String)
        if dtype == _TEXTS:
            return pl.Series(name, [_elements(one) for one in raw], _TEXTS)
        return _wrapped(name, [_elements(one) for one in raw])

    return read


def _text(raw: Any) -> str | None:
    """Return JSON as text; null and strings are decoded."""
    text = bytes(raw)
    return msgspec.json.decode(text) if text[:1] in b'"n' else text.decode()


def _elements(raw: Any) -> list[str | None] | None:
    if bytes(raw).startswith(b"["):
        return [_text(one) for one in _ITEMS.decode(raw)]
    return None if (text := _text(raw)) is None else [text]


def _wrapped(name: str, lists: Sequence[Sequence[str | None] | None]) -> pl.Series:
    texts = pl.Series(name, lists, pl.List(pl.String))
    element = pl.element()
    struct = pl.when(element.is_not_null()).then(pl.struct(element.alias(JSON_TEXT)))
    return texts.list.eval(struct).cast(CALLS_AS_TEXT)


# The same of Python's values.


def _of_values(name: str, values: Iterable[Any]) -> pl.DataType | None:
    """Return the dtype of JSON text for Python values of a column; None for other columns."""
    folded, values = name.casefold(), [one for one in values if one is not None]
    items = [one for value in values if isinstance(value, (list, tuple)) for one in value]
    objects = [one for one in items if isinstance(one, Mapping)]
    if objects and (folded in _LISTS or are_calls(objects)):
        return CALLS_AS_TEXT
    inside = any(isinstance(one, Mapping) for one in values)
    return pl.String() if inside and folded in _LISTS | _OBJECTS else None


def column_of_calls(name: str, values: Sequence[Any]) -> pl.Series | None:
    """Return Python's lists of calls, or arguments, as JSON text; None for other columns."""
    dtype = _of_values(name, values)
    if dtype is None:
        return None
    if dtype == pl.String:
        return pl.Series(name, [_written(one) for one in values], pl.String)
    several = (
        value if isinstance(value, (list, tuple)) or value is None else [value] for value in values
    )
    lists = [None if value is None else [_written(one) for one in value] for value in several]
    return _wrapped(name, lists)


def _written(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value, enc_hook=_plain).decode()


def _plain(value: Any) -> Any:
    """Return NumPy's values and other mappings as plain ones."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON")
