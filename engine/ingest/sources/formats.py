"""File formats: recognition, completeness, and errors for failed reads."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import polars as pl

from ...schemas.errors import ReadError
from ..files import (
    LONG,
    MemorySize,
    Room,
    Source,
    by_extension,
    measure_arrow,
    measure_text,
    not_utf_8,
)
from .conll import is_conll
from .scanning import foreign, scan, separator
from .trec import layout_of, start_of

# Check that a Parquet file's footer counts the rows in its pages.
#
# Polars trusts the footer, and silently reads no rows if it was partly zeroed. Layout:
# https://github.com/apache/parquet-format (``parquet.thrift``), in Thrift's compact protocol.
# Numbers are those of fields there.

_END = struct.Struct("<I4s")
_PARQUET_MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_REPEATED = 2
_HEADER = 1 << 12
"""Bytes that are read of a page for its header; more if it has long statistics."""
_LONGEST_HEADER = 1 << 24
_SLACK = 100
"""Bytes by which old writers understate a column's size: the header of its dictionary."""
_DATA_PAGE, _DICTIONARY, _DATA_PAGE_2 = 5, 7, 8

Fields = dict[int, Any]
_NOT_WHOLE = (IndexError, KeyError, TypeError, AttributeError, RecursionError, ValueError)
"""Exceptions raised by invalid Thrift or missing parts."""


def refuse_miscounted(path: str) -> dict[str, MemorySize]:
    """Refuse a Parquet file whose footer miscounts rows; return the memory size of its columns.

    Counts page headers of the smallest column in each row group that has one value per row. Cases
    that cannot be checked (encrypted files, only nested columns, unknown page headers) pass.

    Returns:
        column to its bytes; empty if row groups are small.
    """
    with open(path, "rb") as file:
        file.seek(-_END.size, 2)
        end = file.tell()
        length, mark = _END.unpack(file.read(_END.size))
        if mark != _PARQUET_MAGIC or length > end:
            return {}
        file.seek(end - length)
        fields: Fields = {}
        try:
            fields, _ = _struct(file.read(length), 0)
            wrong = _wrong(file, fields)
        except _NOT_WHOLE:
            wrong = "its footer is incomplete"
        if wrong:
            message = f"{path}: cannot be read as Parquet: {wrong}. Write or copy it again."
            raise ReadError(message, code="file_damaged", file=path)
        return _decoded_size(file, fields)


_FEW = 1 << 24  # bytes of a row group that always fit into memory
_WIDTHS = (1, 4, 8, 8, 4, 8, 16, 16)  # bytes of a value in memory, by physical type
_BYTES = 6  # the physical type of texts
_LISTS = 5  # bytes in memory per byte of long lists, over all steps of a run


def _decoded_size(file: IO[bytes], fields: Fields) -> dict[str, MemorySize]:
    """Columns in memory, of the sizes that the footer gives; dictionaries and runs are expanded."""
    result: dict[str, MemorySize] = {}
    try:
        for group in fields[4]:
            chunks = [one[3] for one in group[1] if 3 in one]
            values = max([group[3], *(chunk[5] for chunk in chunks)])
            if max(group[2], 16 * values) * len(group[1]) < _FEW:
                continue
            for chunk in chunks:
                size = max(chunk[6], chunk[5] * _WIDTHS[chunk[1]])
                text = chunk[1] == _BYTES
                size += chunk[5] * _WIDTHS[_BYTES] if text else 0
                if chunk[5] > group[3] and size > group[3] * LONG:  # long lists
                    size *= _LISTS
                name = chunk[3][0].decode(errors="replace")
                long = _long_texts(file, chunk) if text and chunk[6] > LONG else MemorySize()
                result[name] = result.get(name, MemorySize()) | MemorySize(size, total=size) | long
    except _NOT_WHOLE:
        return result
    return result


def _long_texts(file: IO[bytes], chunk: Fields) -> MemorySize:
    """Bound the longest text of a column by the largest page of few texts."""
    place = min(start for start in (chunk[9], chunk.get(11, 0)) if start > 0)
    end, longest = place + chunk[7], MemorySize()
    while place < end and (header := _page(file, place)) is not None:
        fields, length = header
        size, values = fields.get(2, 0), 1
        for kind in (_DATA_PAGE, _DICTIONARY, _DATA_PAGE_2):
            values = max(values, fields.get(kind, {}).get(1, 0))
        if size > LONG and size > values << 11:
            longest |= MemorySize(cell=size, least=size // values)
        place += length + max(fields.get(3, 0), 0)
    return longest


def _wrong(file: IO[bytes], fields: Fields) -> str:
    """Return the fault of a file, as a clause; empty if none is known."""
    groups, rows = fields[4], fields[3]
    counted = sum(group[3] for group in groups)
    if counted != rows:
        return f"its footer counts {rows:,} rows in all, but {counted:,} in its row groups"
    if 8 in fields:  # encrypted
        return ""
    names, flat = _names(fields[2])
    for place, group in enumerate(groups, 1):
        where = f" of row group {place:,}" if groups[1:] else ""
        if wrong := _wrong_group(file, group, names, flat, where):
            return wrong
    return ""


def _wrong_group(
    file: IO[bytes], group: Fields, names: set[bytes], flat: dict[bytes, int], where: str
) -> str:
    """The same of a row group, with its place in words."""
    if any(chunk.get(1) or 8 in chunk or 3 not in chunk for chunk in group[1]):
        return ""  # in another file, or encrypted
    chunks, count = [chunk[3] for chunk in group[1]], group[3]
    if {chunk[3][0] for chunk in chunks} != names:
        return f"its footer names other columns for the rows{where} than for the table"
    plain = [chunk for chunk in chunks if chunk[3][0] in flat]
    for chunk in plain:
        name = chunk[3][0].decode(errors="replace")
        if chunk[1] != flat[chunk[3][0]]:
            return f"its footer gives two types of values in column {name!r}"
        if chunk[5] != count:
            return (
                f"its footer counts {count:,} rows{where}, but {chunk[5]:,} values of column"
                f" {name!r}"
            )
    counted = _values(file, min(plain, key=lambda chunk: int(chunk[7]))) if plain else None
    if counted is not None and counted != count:
        return f"its footer counts {count:,} rows{where}, but its pages contain {counted:,}"
    return ""


def _names(schema: list[Fields]) -> tuple[set[bytes], dict[bytes, int]]:
    """Return the columns directly below the root, and the types of those with one value per row.

    Nested columns and lists may have more values, or none.
    """
    names, flat = set(), {}
    place, left = 1, schema[0].get(5, 0)
    while left:
        one = schema[place]
        names.add(one[4])
        if not one.get(5) and one.get(3) != _REPEATED:
            flat[one[4]] = one[1]
        below = 1  # elements of this one that are still to come
        while below:
            below += schema[place].get(5, 0) - 1
            place += 1
        left -= 1
    return names, flat


def _values(file: IO[bytes], chunk: Fields) -> int | None:
    """Count the values in the pages of a column in a row group; None if unknown."""
    starts = [start for start in (chunk[9], chunk.get(11, 0)) if start > 0]
    if not starts:
        return 0
    place = min(starts)
    end, counted = place + chunk[7], 0
    while place < end or (counted < chunk[5] and place < end + _SLACK):
        header = _page(file, place)
        if header is None:
            return None
        fields, length = header
        for kind in (_DATA_PAGE, _DATA_PAGE_2):
            if kind in fields:
                counted += fields[kind].get(1, 0)
        if fields.get(3, -1) < 0:
            return None
        place += length + fields[3]
    return counted


def _page(file: IO[bytes], place: int) -> tuple[Fields, int] | None:
    """Return a page's header and its length; None if invalid."""
    size = _HEADER
    while size <= _LONGEST_HEADER:
        file.seek(place)
        data = file.read(size)
        try:
            return _struct(data, 0)
        except IndexError:
            if len(data) < size:
                return None
            size *= 16
        except (KeyError, TypeError, struct.error):
            return None
    return None


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7


def _struct(data: bytes, place: int) -> tuple[Fields, int]:
    """Parse a struct; return its fields and the position after it.

    Raises:
        IndexError: the data end before it.
        TypeError: an unknown Thrift type.
    """
    fields: Fields = {}
    field = 0
    while head := data[place]:
        place += 1
        if head >> 4:
            field += head >> 4
        else:
            number, place = _varint(data, place)
            field = (number >> 1) ^ -(number & 1)
        kind = head & 15
        if kind in (_TRUE, _FALSE):
            fields[field] = kind == _TRUE
        else:
            fields[field], place = _value(data, place, kind)
    return fields, place + 1


def _value(data: bytes, place: int, kind: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        number, place = _varint(data, place)
        return (number >> 1) ^ -(number & 1), place
    if kind == _BINARY:
        length, place = _varint(data, place)
        if place + length > len(data):
            raise IndexError(place)
        return data[place : place + length], place + length
    if kind == _STRUCT:
        return _struct(data, place)
    if kind in (_LIST, _SET):
        head = data[place]
        length, place = head >> 4, place + 1
        if length == 15:
            length, place = _varint(data, place)
        if length > len(data):
            raise IndexError(place)
        items = []
        for _ in range(length):
            item, place = _value(data, place, head & 15)
            items.append(item)
        return items, place
    if kind in (_TRUE, _FALSE, _BYTE):
        return data[place], place + 1
    if kind == _DOUBLE:
        return None, place + 8
    raise TypeError(kind)


# Detection of file formats, by suffix or first bytes, and of truncated files.

NAMES = {
    "parquet": "Parquet",
    "ipc": "Arrow IPC",
    "ipc_stream": "Arrow IPC stream",
    "csv": "CSV",
    "ndjson": "JSON Lines",
    "json": "JSON",
    "trec": "TREC",
    "conll": "CoNLL",
    "raster": "a label map",
}
_READABLE = (
    "Parquet, Arrow IPC (feather), CSV, TSV, JSON Lines, JSON, runs and qrels as TREC has them,"
    " tags as CoNLL has them, and label maps of segmentation (PNG, TIFF, BMP, GIF, PGM)"
)
_SIGNATURES = {
    b"PAR1": "parquet",
    b"ARROW1": "ipc",
    b"\xff\xff\xff\xff": "ipc_stream",
    b"\x89PNG\r\n\x1a\n": "raster",
}
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}


def detect(path: str, sizes: dict[str, MemorySize] | None = None, room: Room | None = None) -> str:
    """Return the format of a local file, after checking that it looks complete.

    Args:
        sizes: receives the memory size of its columns, added to that of other files; the name of
            text columns is empty.
    """
    head, tail, size = _row_bounds(path)
    format_ = by_extension(path)

    def refuse(message: str, code: str, **facts: Any) -> ReadError:
        return ReadError(f"{path}: {message}", code=code, file=str(path), **facts)

    if size == 0:
        of = f" {NAMES[format_].removeprefix('a ')}" if format_ else ""
        raise refuse(f"the{of} file is empty (0 bytes). Write it again.", "file_empty")
    magic = next((name for mark, name in _SIGNATURES.items() if head.startswith(mark)), None)
    unnamed = format_ in (None, "csv", "trec") and ".csv" not in Path(path).name.lower()
    if magic is None and unnamed and is_conll(head):
        return "conll"
    if magic is None and unnamed and layout_of(start_of(head), named=format_ == "trec"):
        return "trec"
    if magic is None and format_ in (None, "csv", "json", "ndjson", "parquet", "ipc"):
        other = foreign(head, path)
        if other is not None:
            raise refuse(other, "format_unknown")
    if format_ is None or format_ == "trec":
        format_ = magic or _text_format(path, head)
    if format_ == "ipc" and magic == "ipc_stream":
        format_ = "ipc_stream"
    binary, packed = format_ in ("parquet", "ipc"), _packed(head)
    unread = magic or packed in ("zip", "bzip2", "xz")
    if (binary and magic != format_) or (format_ in ("csv", "ndjson", "json") and unread):
        if packed:
            seen = f"it is {packed}-compressed; decompress it first"
        elif magic:
            seen = f"it contains {NAMES[magic]}; rename it"
        else:
            seen = f"it begins with {head[:8]!r}; write it again, or give it its format's extension"
        message = f"not a {NAMES[format_]} file despite its name: {seen}."
        raise refuse(message, "wrong_format", format=magic)
    end = {"parquet": b"PAR1", "ipc": b"ARROW1"}.get(format_, b"")
    if not tail.endswith(end) or (format_ == "parquet" and size < 12):
        raise refuse(
            f"the {NAMES[format_]} file is truncated (its end mark {end.decode()!r} is missing)."
            " Write or copy it again.",
            "file_truncated",
        )
    if format_ == "parquet":
        _note(sizes, refuse_miscounted(path))
    if format_ == "ndjson" and not magic:
        with open(path, "rb") as file:
            refuse_repeated_keys(file.read(HEAD_OF_LINES), path)
    if format_ in ("ipc", "ipc_stream") and (size > LONG or (room is not None and room.given)):
        _note(sizes, measure_arrow(path, streamed=format_ == "ipc_stream"))
    if format_ in ("csv", "ndjson") and sizes is not None:
        _note(sizes, {"": measure_text(path, room)})
    return format_


HEAD_OF_LINES = 1 << 16
_BETWEEN = re.compile(r"[\s,\[\ufeff]*")
_CHECKED_OBJECTS = 200


def refuse_repeated_keys(head: bytes, path: str) -> None:
    """Raise ReadError if one of the first objects of JSON text has a key twice.

    Parsers disagree about its value: Python's takes the last, Polars' the first.

    Args:
        head: first bytes of JSON Lines or of an array of objects.
    """
    line = 0

    def once(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs]
        if len({*keys}) < len(keys):
            key = next(key for i, key in enumerate(keys) if key in keys[:i])
            raise ReadError(
                f"{path}: the object in line {line} has the key {key!r} twice, and only one value"
                " can be read. Write each key once per object.",
                code="repeated_key",
                file=path,
                line=line,
                column=key,
            )

    decoder, text, at = json.JSONDecoder(object_pairs_hook=once), head.decode("utf-8", "ignore"), 0
    for _ in range(_CHECKED_OBJECTS):
        between = _BETWEEN.match(text, at)
        assert between is not None
        line = text.count("\n", 0, between.end()) + 1
        try:
            _, at = decoder.raw_decode(text, between.end())
        except ReadError:
            raise
        except (ValueError, RecursionError):  # the end, or refused by the reader
            return


def _note(sizes: dict[str, MemorySize] | None, measured: dict[str, MemorySize]) -> None:
    if sizes is not None:
        for name, one in measured.items():
            sizes[name] = sizes.get(name, MemorySize()) | one


def _row_bounds(path: str) -> tuple[bytes, bytes, int]:
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
            size = file.seek(0, 2)
            file.seek(max(0, size - 8))
            return head, file.read(8), size
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror or error}.") from None


def _text_format(path: str, head: bytes) -> str:
    packed = _packed(head)
    if packed == "zip" and path.lower().endswith((".xlsx", ".xlsm", ".ods")):
        raise ReadError(
            f"{path}: is a workbook, which is not read. Save its sheet as CSV (Excel: CSV UTF-8).",
            code="format_unknown",
            file=path,
        )
    if packed:
        raise ReadError(
            f"{path}: the file is {packed}-compressed. Decompress it first.",
            code="compressed",
            file=str(path),
        )
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] == b"[":
        return "json"
    if start[:1] == b"{":
        first_line = start.split(b"\n", 1)[0].rstrip()
        return "ndjson" if first_line.endswith(b"}") and len(first_line) < len(start) else "json"
    line = head.split(b"\n", 1)[0]
    if b"\x00" not in head and (b"," in line or b"\t" in line or b";" in line):
        return "csv"
    raise ReadError(
        f"{path}: of no known format. Readable are {_READABLE}; give the file the extension of its"
        " format if it is one of these.",
        code="format_unknown",
        file=str(path),
    )


def _packed(head: bytes) -> str | None:
    return next((name for mark, name in _PACKED.items() if head.startswith(mark)), None)


# Messages for failed reads: file, format, reason, remedy.

_REPAIR = {
    "parquet": "Write or copy it again.",
    "ipc": "Write or copy it again.",
    "ipc_stream": "Write or copy it again.",
    "csv": "Check the rows around that place; every row needs as many fields as the header.",
    "ndjson": "Every line must be one whole JSON object.",
}


_STORE = "object-store error: "
"""Polars' prefix of messages from a store or server."""

_AWAY = (
    (
        "range request not supported",
        "The server does not give parts of files. Download the file and give its path.",
    ),
    ("404", "Correct the address; one that has no listing takes no pattern."),
    ("not found", "Correct the address."),
    ("", "Check the address, access and connection, and try again; or download the file."),
)
"""Message from a store or server, first match wins -> remedy."""


_COMPRESSED = (".gz", ".zst")
_CUT_OFF = "unexpected end of file"


def explain(source: Source, error: BaseException) -> ReadError:
    """Return the error to raise for a source that could not be read.

    With several files each is tried separately, first its columns, then its rows, so that the
    message names the broken one.
    """
    if wide := _wide_decimals(source, error):
        return ReadError(wide, code="wrong_dtype")
    if len(source.files) > 1:
        result = _mixed(source) or _broken(source)
        if result is not None:
            return result
    name = source.files[0] if len(source.files) == 1 else source.description
    return _unreadable(name, source.format, error)


_DIGITS = 38  # of decimals that Polars has


def _wide_decimals(source: Source, error: BaseException) -> str:
    """Return the message about a column of 256-bit decimals, if that is the error; otherwise ""."""
    if not any(sign in str(error) for sign in ("Int256", "precision must be")):
        return ""
    schema = source.frame.collect_schema()
    decimals = {name: one for name, one in schema.items() if isinstance(one, pl.Decimal)}
    wide = {name: one for name, one in decimals.items() if (one.precision or 0) > _DIGITS}
    name, dtype = next(iter((wide or decimals).items()))
    return (
        f"{source.description}: column {name!r} has dtype {dtype} in 256 bits; decimals have 128"
        f" bits and {_DIGITS} digits at most. Cast it, e.g. to float64 or decimal128, and write the"
        " table again."
    )


def _unreadable(name: str, format_: str, error: BaseException) -> ReadError:
    kind = NAMES.get(format_, "table")
    message = re.sub(r" \(path: [^)]*\)", "", reason(error))  # of the store's first read, any file
    if "expanded paths were empty" in message:
        return ReadError(
            f"{name}: no file matches. Correct the address.", code="file_missing", file=name
        )
    repair = _REPAIR.get(format_, "")
    if name.endswith(_COMPRESSED) and os.path.isfile(name):
        measure_text(name)  # raises if the file is damaged
    fault = _place(name, format_)
    if fault:
        line = re.match(r"line ([\d,]+)", fault)
        return ReadError(
            f"{name}: cannot be read as {kind}: {fault}",
            code="file_encoding" if " is not UTF-8 " in fault else "file_malformed",
            file=name,
            line=int(line[1].replace(",", "")) if line else None,
        )
    if name.endswith(_COMPRESSED) and _CUT_OFF in message:
        repair = "The compressed file is cut off: copy or write it again."
    if message.startswith(_STORE):  # unrelated to the file's content
        message = message.removeprefix(_STORE)
        # Whole words: a port number may contain the 404 of a status.
        repair = next(
            what
            for mark, what in _AWAY
            if re.search(rf"(?<!\w){mark}(?!\w)", message.lower()) or not mark
        )
    return ReadError(
        f"{name}: cannot be read as {kind}: {message}. {repair}".rstrip(),
        code="file_unreadable",
        file=name,
    )


def _place(name: str, format_: str) -> str:
    """Return the fault of the first wrong line of a plain local file, and a remedy; or ""."""
    if format_ not in ("csv", "ndjson") or name.endswith(_COMPRESSED):
        return ""
    try:
        with open(name, "rb") as file:
            for number, line in enumerate(file, 1):
                fault = _wrong_line(line, format_)
                if fault:
                    return f"line {number} {fault}"
        if format_ == "csv":
            return _misfit(name)
        with open(name, "rb") as file:
            rows = (json.loads(line) if line.strip() else {} for line in file)
            return mixed_flags(rows, "line")
    except OSError:  # an address, or gone
        return ""


def mixed_flags(rows: Iterable[Mapping[str, Any]], unit: str) -> str:
    """Return the first boolean in a column of numbers, or reverse, and a remedy; or "".

    Args:
        unit: word for a row of the file.
    """
    first: dict[str, tuple[bool, int, str]] = {}
    for number, row in enumerate(rows, 1):
        for key, value in row.items():
            if isinstance(value, (bool, int, float)):
                flag, text = isinstance(value, bool), json.dumps(value)
                other, at, before = first.setdefault(key, (flag, number, text))
                if other != flag:
                    return (
                        f"{unit} {number} has {key!r} {text}, and {unit} {at} has {before}: a"
                        " column contains numbers or booleans. Write 1 and 0 for true and false."
                    )
    return ""


def _misfit(name: str) -> str:
    """The first row of a CSV file with more fields than its header, or an open quote."""
    with open(name, encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter=separator(name), strict=True)
        header = next(rows, [])
        if header[:1] and header[0].lower().startswith("sep="):
            header = next(rows, [])
        width, last = len(header), rows.line_num
        try:
            for row in rows:
                if len(row) > width:
                    return (
                        f"line {last + 1} has {len(row)} fields, and the header {width}. Quote "
                        "fields that contain the separator, or name the others in the header."
                    )
                last = rows.line_num
        except csv.Error as error:
            return f"line {last + 1}: {error}. Close the quote, or double it within a field."
    with open(name, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if b"\r" in line.rstrip(b"\r\n"):
                return f"line {number} has a carriage return without a line feed. Write line feeds."
    return ""


def _wrong_line(line: bytes, format_: str) -> str:
    """Return the fault of one line, and a remedy."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return not_utf_8(error)
    if format_ != "ndjson" or not text.strip():
        return ""
    if text[0] == "\ufeff":
        return "begins with a byte order mark. Save the file as UTF-8 without it."
    strange: list[str] = []  # Python reads NaN and Infinity, which JSON does not have

    def number(written: str) -> float:
        if math.isinf(value := float(written)):
            strange.append(written)
        return value

    try:
        read = json.loads(text.rstrip(), parse_constant=strange.append, parse_float=number)
        is_object = isinstance(read, dict)
        fault = "is not a JSON object"
    except json.JSONDecodeError as error:
        is_object, fault = False, f"is not JSON (column {error.colno}: {error.msg})"
    except (ValueError, RecursionError) as error:
        is_object, fault = False, f"is not JSON ({error})"
    quote = text.strip()[:_LONGEST_QUOTE]
    if is_object and strange:
        return f"has {strange[0]}, which is no finite number of JSON: {quote!r}. Write null."
    if is_object:
        return ""
    array = " An array of objects is read from a file called .json." * text.startswith("[")
    return f"{fault}: {quote!r}. Every line must be one whole JSON object.{array}"


_LONGEST_QUOTE = 40


def reason(error: BaseException) -> str:
    """The first sentence of an error, without a plan or a stop at its end."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def _mixed(source: Source) -> ReadError | None:
    """The first file whose columns differ from the first file's."""
    first: Mapping[str, pl.DataType] | None = None
    for file in source.files:
        try:
            schema = dict(scan([file], source.format).collect_schema())
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            return _unreadable(file, source.format, error)
        if first is None:
            first = schema
            continue
        fault = difference(first, schema, source.files[0], file)
        if fault:
            if len(first) == 1 and " " in (line := next(iter(first))):  # no header of a CSV
                fault = (
                    f"they have neither a header nor lines of a known format, first {line!r} in"
                    f" {source.files[0]}. Coordinates of YOLO are shares of the image, from 0 to 1."
                )
                code = "format_unknown"
            else:
                fault, code = f"the files differ: {fault}", "files_differ"
            return ReadError(f"{source.description}: {fault}", code=code, file=file)
    return None


def difference(
    first: Mapping[str, pl.DataType], other: Mapping[str, pl.DataType], one: str, two: str
) -> str:
    """The first column in which two files differ, as a sentence; empty if they agree."""
    for name in {**first, **other}:
        if name not in first or name not in other:
            here, without = (one, two) if name in first else (two, one)
            dtype = first.get(name) or other[name]
            return (
                f"column {name!r} ({dtype}) of {here} is missing in {without}. Write the files with"
                " the same columns."
            )
        if other[name] != first[name]:
            return (
                f"column {name!r} is {first[name]} in {one} but {other[name]} in {two}. Write the"
                " files with the same dtypes."
            )
    return ""


def _broken(source: Source) -> ReadError | None:
    """The first file whose rows cannot be read."""
    for file in source.files:
        try:
            scan([file], source.format).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            return _unreadable(file, source.format, error)
    return None
