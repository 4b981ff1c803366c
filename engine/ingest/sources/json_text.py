"""Tool calls of JSON as text: their arguments have a type per row, and columns have one dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from ...schemas.errors import ReadError
from ...schemas.tables import TABLES
from ..dtypes import CALLS_AS_TEXT, JSON_TEXT, are_calls, calls_in

_LINE = "__evalengine_line"
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
