"""File formats: recognition and completeness."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import IO, Any

from ...schemas.errors import ReadError
from ..files import LONG, MemorySize, Room, by_extension, measure_arrow, measure_text
from .conll import is_conll
from .scanning import foreign
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
_KNOWN = (
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
    head, tail, size = _row_ends(path)
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


def _row_ends(path: str) -> tuple[bytes, bytes, int]:
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
        f"{path}: of no known format. Readable are {_KNOWN}; give the file the extension of its"
        " format if it is one of these.",
        code="format_unknown",
        file=str(path),
    )


def _packed(head: bytes) -> str | None:
    return next((name for mark, name in _PACKED.items() if head.startswith(mark)), None)
