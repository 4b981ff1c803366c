"""Tables in memory: of Polars, pyarrow, pandas, ranx or plain Python, or with Arrow streams."""

from __future__ import annotations

import glob
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from evalengine.schemas.errors import InputError, ReadError, TruthsMissingError

from ..extensions import by_extension
from .arrays import as_array, is_array
from .coco_objects import open_coco_object
from .label_maps import are_label_maps, open_label_maps
from .mappings import source_of
from .paths import is_remote, looks_wild
from .per_image import are_images, open_images
from .source import SEGMENTED, Source
from .table_formats import classes_of, table_of

# Columns of Python values of several types, which a typed table cannot represent.

_SHOWN = 3
_LONGEST = 60
_WORDS = {
    str: "strings",
    int: "integers",
    float: "floats",
    bool: "booleans",
    list: "lists",
    dict: "dicts",
    bytes: "bytes",
}


def mixed_columns(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Describe each column whose values are of several types, ignoring nulls.

    Args:
        columns: name to values; integers may be mixed with floats.

    Returns:
        one line per such column: its types, the number of rows that are not of the most common one,
            the first of them, and a remedy.
    """
    return [line for name, values in columns.items() if (line := _line(name, values))]


def _line(name: str, values: Sequence[Any]) -> str:
    kinds = [_kind(value) for value in values]
    counts = Counter(kind for kind in kinds if kind is not None)
    if len(counts) < 2 or set(counts) == {int, float}:
        return ""
    usual = counts.most_common(1)[0][0]
    odd = [row for row, kind in enumerate(kinds) if kind is not None and kind is not usual]
    first = "; ".join(f"row {row} ({_short(values[row])})" for row in odd[:_SHOWN])
    shares = ", ".join(
        f"{_WORDS.get(kind, kind.__name__)} in {n:,} row{'s' if n > 1 else ''}"
        for kind, n in counts.most_common()
    )
    return (
        f"- column {name!r} mixes types: {shares}. First rows (counted from 0) of the other kind:"
        f" {first}. Bring all values to one type, for instance each to str(value)."
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _kind(value: Any) -> type | None:
    """A value's type as a table knows it; None for nulls, NaN and NaT among them."""
    if value is None or type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, float) and value != value:
        return None
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return type(value.item())  # NumPy's scalars stand for Python's
    return type(value)


def open_object(
    thing: Any, box_format: str | None = None, *, wanted: frozenset[str] = SEGMENTED
) -> Source:
    """Open a table in memory as a source; also label maps, lists of images, and COCO in memory.

    Args:
        box_format: of boxes, if given.
        wanted: geometry fields of COCO rows to read, in addition to boxes.

    Raises:
        InputError: not a table, or one that cannot be converted.
    """
    thing = _native(thing)
    if isinstance(thing, pl.LazyFrame):
        return Source(thing, "polars.LazyFrame")
    if isinstance(thing, pl.DataFrame):
        return Source(thing.lazy(), f"polars.DataFrame of {thing.height:,} rows")
    if are_label_maps(thing):
        return open_label_maps(thing)
    if are_images(thing):
        return open_images(thing, box_format)
    coco = open_coco_object(thing, box_format, wanted=wanted)
    if coco is not None:
        return coco
    name = _name(thing)
    if _is_column(thing):
        raise TruthsMissingError(f"one {name} is not a table. {COLUMNS}")
    table = table_of(thing)
    if table is not None:
        return Source(table, name, classes=classes_of(thing))
    if any(_is(thing, "ranx", kind) for kind in ("Run", "Qrels")):
        thing = thing.to_dict()
    if _nested(thing):
        return source_of(thing, f"{name} of {len(thing):,} queries")
    try:
        frame = _convert(thing)
    except (ReadError, MemoryError):
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        mixed = mixed_columns(_object_columns(thing))
        if mixed:
            raise InputError(f"{name} cannot be used:\n" + "\n".join(mixed)) from error
        reason = str(error).strip().splitlines()[0] if str(error).strip() else ""
        if "Int256" in reason:
            reason = f"decimals of more than {_DIGITS} digits. Cast them, e.g. to float64."
        lengths = _lengths(thing)
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{key!r} {count}" for key, count in list(lengths.items())[:_COLUMNS])
            raise InputError(
                f"{name}: columns of a table have one length, and these have {told}. Give each the"
                " same number of values, None where one is missing."
            ) from error
        raise InputError(f"{name}: cannot be made a table: {reason}") from error
    classes = classes_of(thing) if _is(thing, "pyarrow", "Table") else None
    return Source(frame.lazy(), f"{name} of {frame.height:,} rows", classes=classes)


def _native(thing: Any) -> Any:
    """Unwrap narwhals frames and series, and load a Dask frame; return other objects unchanged.

    Raises:
        InputError: an array of more than three axes.
    """
    module = type(thing).__module__.split(".")[0]
    if module == "narwhals" and hasattr(thing, "to_native"):
        return thing.to_native()
    if module in ("dask", "dask_expr") and hasattr(thing, "columns"):
        return thing.compute()
    if is_array(thing) and len(shape := tuple(thing.shape)) > _AXES:
        single = next((axis for axis in range(1, len(shape)) if shape[axis] == 1), None)
        if single is not None:
            raise InputError(
                f"an array of shape {shape} is not a table, and label maps are [n, h, w]. Write"
                f" .squeeze({single}) to remove the axis of length 1."
            )
        raise InputError(
            f"an array of shape {shape} is not a table, and label maps are [n, h, w]. If an axis"
            " counts classes, write .argmax(1), or another axis of classes. Volumes [n, d, h, w] go"
            " in as .reshape(n, d * h, w): IoU, Dice and the counts of pixels are then those of"
            " the volumes, distances of surfaces are not."
        )
    return thing


def _nested(thing: Any) -> bool:
    """Return whether a mapping is from queries to mappings of documents, not from names to
    columns.
    """
    return (
        isinstance(thing, Mapping)
        and len(thing) > 0
        and any(isinstance(value, Mapping) for value in thing.values())
    )


def _object_columns(thing: Any) -> dict[str, list[Any]]:
    """Return columns of plain Python values, by name, which may be of several types."""
    if _is(thing, "pandas", "DataFrame"):
        return {
            str(name): list(thing.iloc[:, i])
            for i, name in enumerate(thing.columns)
            if thing.dtypes.iloc[i].kind == "O"
        }
    if isinstance(thing, Mapping):
        return {
            str(name): list(values)
            for name, values in thing.items()
            if isinstance(values, (list, tuple))
        }
    if isinstance(thing, Sequence) and all(isinstance(row, Mapping) for row in thing):
        names = dict.fromkeys(name for row in thing for name in row)
        return {str(name): [row.get(name) for row in thing] for name in names}
    return {}


COLUMNS = (
    "Give both sides as values, in one order, or a dict of columns, such as"
    " {'actual': [...], 'predicted': [...]}."
)
_AXES = 3  # of a stack of label maps
_COLUMNS = 6  # whose lengths are told
_TEXTS = 1000  # distinct ones of a list that are looked at


def _is_column(thing: Any) -> bool:
    """Return whether a value is a series, or an array of one or two axes, without column names."""
    if _is(thing, "numpy", "ndarray"):
        return thing.ndim in (1, 2) and thing.dtype.names is None
    if isinstance(thing, pl.Series):
        return thing.dtype != pl.Struct
    return _is(thing, "pandas", "Series")


def column_of(thing: Any) -> pl.Series | None:
    """Convert unnamed values to a series: lists of scalars or of lists, arrays, series.

    Arrays have one axis or two; lists of texts that may be paths are excluded.

    Raises:
        InputError: values of several types, or an array that cannot be read.
    """
    thing = _native(thing)
    if isinstance(thing, pl.Series):
        return None if thing.dtype == pl.Struct else thing
    try:
        if _is(thing, "pandas", "Series") or _is(thing, "pandas", "Index"):
            return pl.Series(thing)
        if _is(thing, "pyarrow", "Array") or _is(thing, "pyarrow", "ChunkedArray"):
            found = pl.from_arrow(thing)
            return found if isinstance(found, pl.Series) and found.dtype != pl.Struct else None
        if is_array(thing):
            return _of_array(as_array(thing))
        if isinstance(thing, Sequence) and not isinstance(thing, (str, bytes)):
            return _of_values(thing)
    except (pl.exceptions.PolarsError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        raise InputError(f"a {_name(thing)} cannot be read as values: {reason}") from None
    return None


def _of_array(array: np.ndarray) -> pl.Series | None:
    if array.dtype.names is not None or array.ndim not in (1, 2):
        return None
    if array.ndim == 2 and array.shape[1] == 1:  # a column, as of a table
        array = array[:, 0]
    return pl.Series(array.tolist() if array.dtype.kind in "OU" else array)


def _of_values(values: Sequence[Any]) -> pl.Series | None:
    kinds = {type(value) for value in values} - {type(None)}
    plain = all(issubclass(kind, (bool, int, float, str, np.generic)) for kind in kinds)
    deep = all(issubclass(kind, (list, tuple)) for kind in kinds)
    if not deep and not plain and all(map(is_array, values)):
        arrays = [as_array(value) for value in values]
        if {array.ndim for array in arrays} == {0}:
            return pl.Series([array.item() for array in arrays])
        if {array.ndim for array in arrays} != {1}:
            return None
        values, deep = [array.tolist() for array in arrays], True
    texts = [value for value in values if isinstance(value, str)]
    if not kinds or not (plain or deep) or are_paths(texts):
        return None
    if deep and any(isinstance(item, Mapping) for value in values if value for item in value):
        return None
    if plain and any(issubclass(kind, np.generic) for kind in kinds):
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
    whole = {type(value) for value in values} - {type(None)}
    if len(whole) > 1 and whole != {int, float} and not deep:
        raise TypeError("there are " + " and ".join(sorted(kind.__name__ for kind in whole)))
    column = _column(list(values))
    return column if isinstance(column, pl.Series) else pl.Series(column)


def are_paths(texts: Sequence[str]) -> bool:
    """Return whether texts of a list are paths: of existing files, or by their form.

    Folders count only if all texts are folders: a class may have a folder's name.
    """
    some = list(dict.fromkeys(texts))[:_TEXTS]
    return any(map(_may_be_file, some)) or (bool(some) and all(map(os.path.isdir, some)))


def _may_be_file(text: str) -> bool:
    if is_remote(text) or os.path.isfile(text):
        return True
    if looks_wild([text]) and glob.glob(text):
        return True
    if any(map(str.isspace, text)):
        return False
    folder = os.path.dirname(text)
    return by_extension(text) is not None or (folder != "" and os.path.isdir(folder))


def _lengths(thing: Any) -> dict[Any, int]:
    """Return the columns of a mapping and their lengths; empty if some have none."""
    if not isinstance(thing, Mapping):
        return {}
    try:
        return {name: len(values) for name, values in thing.items()}
    except TypeError:
        return {}


def _name(thing: Any) -> str:
    kind = type(thing)
    module = kind.__module__.split(".")[0]
    return kind.__name__ if module == "builtins" else f"{module}.{kind.__name__}"


def _convert(thing: Any) -> pl.DataFrame:
    if _is(thing, "pandas", "DataFrame"):
        named = [name for name in thing.index.names if name is not None]
        kept = all(isinstance(name, str) and name not in thing.columns for name in named)
        thing = thing.reset_index(named) if named and kept else thing
        return pl.from_pandas(_plain(thing))
    if _is(thing, "pyarrow", "Table") or _is(thing, "pyarrow", "RecordBatch"):
        thing = _narrow(thing)
        return _frame(pl.from_arrow(thing))
    if hasattr(thing, "__arrow_c_stream__") or hasattr(thing, "__arrow_c_array__"):
        return pl.DataFrame(thing)
    if isinstance(thing, Mapping):
        return pl.DataFrame({name: _column(values) for name, values in thing.items()})
    if isinstance(thing, Sequence) and not isinstance(thing, (str, bytes)):
        if all(isinstance(row, Mapping) for row in thing):
            return frame_of_rows(thing)
        raise ReadError(
            "a list given as a table must hold rows as dicts, or paths; this one holds"
            f" {_name(next(row for row in thing if not isinstance(row, Mapping)))}. {COLUMNS}"
        )
    raise ReadError(
        f"a {_name(thing)} is not a table. Give a path or glob, a Polars, pandas or pyarrow"
        f" table, a"
        " dict of columns, a list of dicts, a dict of queries to documents to numbers, label maps"
        " as an array [n, h, w] or a list or dict of arrays [h, w], or anything with the Arrow"
        " stream interface."
    )


def _narrow(table: Any) -> Any:
    """Cast 256-bit decimals of a pyarrow table to 128 bits.

    Raises:
        ReadError: a column has too many digits.
    """
    wide = [one for one in table.schema if str(one.type).startswith("decimal256")]
    if not wide:
        return table
    import pyarrow as pa

    for one in wide:
        if one.type.precision > _DIGITS:
            raise ReadError(
                f"column {one.name!r} is {one.type}, and decimals have {_DIGITS} digits at most."
                " Cast it, e.g. to float64, or leave it out."
            )
        place = table.schema.get_field_index(one.name)
        narrow = table.column(place).cast(pa.decimal128(one.type.precision, one.type.scale))
        table = table.set_column(place, one.name, narrow)
    return table


_DIGITS = 38


def _plain(frame: Any) -> Any:
    """Convert intervals and periods of a pandas frame, also as categories, to text."""
    mended = None
    for i, dtype in enumerate(frame.dtypes):
        kind = dtype.categories.dtype if hasattr(dtype, "categories") else dtype
        if type(kind).__name__ in ("IntervalDtype", "PeriodDtype"):
            mended = frame.copy(deep=False) if mended is None else mended
            held = frame.iloc[:, i]
            texts = (
                held.astype(object).map(str, na_action="ignore")
                if kind is dtype
                else held.cat.rename_categories(str)
            )
            mended.isetitem(i, texts)
    return frame if mended is None else mended


def frame_of_rows(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Convert dicts to a table; missing fields become null."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame({name: _column([row.get(name) for row in rows]) for name in names})


def _column(values: Any) -> Any:
    """Convert mixed integers and floats, plain or in lists, to floats; others unchanged."""
    if is_array(values):
        return as_array(values)
    if not isinstance(values, (list, tuple)):
        return values
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {int, float}:
        return pl.Series(values, dtype=pl.Float64)
    if kinds and kinds <= {list, tuple}:
        inner = {type(item) for value in values if value is not None for item in value}
        if inner - {type(None)} == {int, float}:
            floats = [
                None if value is None else [None if x is None else float(x) for x in value]
                for value in values
            ]
            return pl.Series(floats, dtype=pl.List(pl.Float64))
    return values


def _is(thing: Any, module: str, name: str) -> bool:
    """Return whether an object is an instance of a class, without importing its module."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(thing, getattr(loaded, name))


def _frame(converted: pl.DataFrame | pl.Series) -> pl.DataFrame:
    return converted if isinstance(converted, pl.DataFrame) else converted.struct.unnest()
