"""Messages for failed reads: file, format, reason, remedy."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from evalengine.schemas.errors import ReadError

from ..files import Source, measure_text, not_utf_8
from .formats import NAMES
from .scanning import scan, separator

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
                fault = _wrong(line, format_)
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
                flag, shown = isinstance(value, bool), json.dumps(value)
                other, at, before = first.setdefault(key, (flag, number, shown))
                if other != flag:
                    return (
                        f"{unit} {number} has {key!r} {shown}, and {unit} {at} has {before}: a"
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


def _wrong(line: bytes, format_: str) -> str:
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
    shown = text.strip()[:_SHOWN]
    if is_object and strange:
        return f"has {strange[0]}, which is no finite number of JSON: {shown!r}. Write null."
    return "" if is_object else f"{fault}: {shown!r}. Every line must be one whole JSON object."


_SHOWN = 40


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
            return ReadError(
                f"{source.description}: the files differ: {fault}", code="files_differ", file=file
            )
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
