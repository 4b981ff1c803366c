"""Check that a Parquet file's footer counts the rows in its pages.

Polars trusts the footer, and silently reads no rows if it was partly zeroed. Layout:
https://github.com/apache/parquet-format (``parquet.thrift``), in Thrift's compact protocol. Numbers
are those of fields there.
"""

from __future__ import annotations

import struct
from typing import IO, Any

from evalengine.schemas.errors import ReadError

from ..files import LONG, Held

_END = struct.Struct("<I4s")
_MAGIC = b"PAR1"
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


def refuse_miscounted(path: str) -> dict[str, Held]:
    """Refuse a Parquet file whose footer miscounts rows; return the memory size of its columns.

    Counts page headers of the smallest column in each row group that has one value per row. Cases
    that cannot be checked (encrypted files, only nested columns, unknown page headers) pass.

    Returns:
        column to its bytes; empty if row groups are small.

    Raises:
        ReadError: the counts differ.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        file.seek(-_END.size, 2)
        end = file.tell()
        length, mark = _END.unpack(file.read(_END.size))
        if mark != _MAGIC or length > end:
            return {}
        file.seek(end - length)
        told: Fields = {}
        try:
            told, _ = _struct(file.read(length), 0)
            wrong = _wrong(file, told)
        except _NOT_WHOLE:
            wrong = "its footer lacks parts that every footer has"
        if wrong:
            said = f"{path}: cannot be read as Parquet: {wrong}. Write or copy it again."
            raise ReadError(said, code="file_damaged", file=path)
        return _held(file, told)


_FEW = 1 << 24  # bytes of a row group in memory, of which nothing is to be feared
_WIDTHS = (1, 4, 8, 8, 4, 8, 16, 16)  # bytes of a value in memory, by physical type
_BYTES = 6  # the physical type of texts


def _held(file: IO[bytes], told: Fields) -> dict[str, Held]:
    """Columns in memory, of the sizes that the footer gives; dictionaries and runs are expanded."""
    found: dict[str, Held] = {}
    try:
        for group in told[4]:
            if max(group[2], 16 * group[3]) * len(group[1]) < _FEW:
                continue
            for chunk in (one[3] for one in group[1] if 3 in one):
                size = max(chunk[6], chunk[5] * _WIDTHS[chunk[1]])
                text = chunk[1] == _BYTES
                size += chunk[5] * _WIDTHS[_BYTES] if text else 0
                name = chunk[3][0].decode(errors="replace")
                long = _long_texts(file, chunk) if text and chunk[6] > LONG else Held()
                found[name] = found.get(name, Held()) | Held(size, total=size) | long
    except _NOT_WHOLE:
        return found
    return found


def _long_texts(file: IO[bytes], chunk: Fields) -> Held:
    """Bound the longest text of a column by the largest page of few texts."""
    place = min(start for start in (chunk[9], chunk.get(11, 0)) if start > 0)
    end, longest = place + chunk[7], Held()
    while place < end and (header := _page(file, place)) is not None:
        fields, length = header
        size, values = fields.get(2, 0), 1
        for kind in (_DATA_PAGE, _DICTIONARY, _DATA_PAGE_2):
            values = max(values, fields.get(kind, {}).get(1, 0))
        if size > LONG and size > values << 11:
            longest |= Held(cell=size, least=size // values)
        place += length + max(fields.get(3, 0), 0)
    return longest


def _wrong(file: IO[bytes], told: Fields) -> str:
    """Return the fault of a file, as a clause; empty if none is known."""
    groups, rows = told[4], told[3]
    own = sum(group[3] for group in groups)
    if own != rows:
        return f"its footer counts {rows:,} rows in all, but {own:,} in its row groups"
    if 8 in told:  # encrypted
        return ""
    names, flat = _names(told[2])
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
    known = [chunk for chunk in chunks if chunk[3][0] in flat]
    for chunk in known:
        name = chunk[3][0].decode(errors="replace")
        if chunk[1] != flat[chunk[3][0]]:
            return f"its footer gives two types of values in column {name!r}"
        if chunk[5] != count:
            return (
                f"its footer counts {count:,} rows{where}, but {chunk[5]:,} values of column"
                f" {name!r}"
            )
    held = _values(file, min(known, key=lambda chunk: int(chunk[7]))) if known else None
    if held is not None and held != count:
        return f"its footer counts {count:,} rows{where}, but its pages hold {held:,}"
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
        place, left = _behind(schema, place), left - 1
    return names, flat


def _behind(schema: list[Fields], place: int) -> int:
    """The place behind an element of a schema and all below it."""
    left = 1
    while left:
        left += schema[place].get(5, 0) - 1
        place += 1
    return place


def _values(file: IO[bytes], chunk: Fields) -> int | None:
    """Count the values in the pages of a column in a row group; None if headers do not define
    it.
    """
    starts = [start for start in (chunk[9], chunk.get(11, 0)) if start > 0]
    if not starts:
        return 0
    place = min(starts)
    end, counted = place + chunk[7], 0
    while place < end or (counted < chunk[5] and place < end + _SLACK):
        header = _page(file, place)
        if header is None:
            return None
        told, length = header
        for kind in (_DATA_PAGE, _DATA_PAGE_2):
            if kind in told:
                counted += told[kind].get(1, 0)
        if told.get(3, -1) < 0:
            return None
        place += length + told[3]
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
    found: Fields = {}
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
            found[field] = kind == _TRUE
        else:
            found[field], place = _value(data, place, kind)
    return found, place + 1


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
