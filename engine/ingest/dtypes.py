"""Accepted dtypes per kind of column, and conversions to the canonical ones."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from evalengine.schemas.contract import Column
from evalengine.schemas.wording import option

from .measured import or_measured

_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
TEXTS = (pl.String, pl.Categorical, pl.Enum)
DEFAULTS: dict[str, pl.DataType] = {
    "id": pl.String(),
    "label": pl.String(),
    "items": pl.List(pl.String()),
    "text": pl.String(),
    "raster": pl.String(),
    "text_list": pl.List(pl.String()),
    "verdict": pl.String(),
    "texts": pl.String(),
    "vector": pl.List(pl.Float64()),
    "vectors": pl.List(pl.Float64()),
    "number": pl.Float64(),
    "any": pl.String(),
    "whole": pl.Int64(),
    "flag": pl.Boolean(),
    "polygon": pl.List(pl.List(pl.Float64())),
    "mask": pl.Struct({"size": pl.List(pl.Int64()), "counts": pl.String()}),
    "keypoints": pl.List(pl.Float64()),
}
_WORDS = {
    "id": "integers or strings",
    "label": "integers, strings or booleans, or lists of those",
    "items": "lists of integers or strings",
    "text": "strings",
    "raster": "paths of rasters, or rows of pixels: whole numbers in lists or arrays, two deep",
    "text_list": "strings or lists of strings",
    "verdict": "strings, numbers or booleans",
    "texts": "strings, or lists of strings",
    "vector": "lists or arrays of numbers",
    "vectors": "lists or arrays of numbers, or lists of those",
    "number": "numbers",
    "any": "plain values",
    "whole": "whole numbers",
    "flag": "booleans, or 0 and 1",
    "list": "lists of four numbers",
    "polygon": "lists of rings, WKB, or strings of WKT or GeoJSON",
    "mask": "structs of size and counts, or rows of pixels",
    "keypoints": "lists of numbers, or of points",
}
_WAY_OUT = {
    "id": "Cast it, e.g. to Int64 or String, before scoring.",
    "label": "Cast it, e.g. to Int64, String or Boolean, before scoring.",
    "items": "Give one list a row, e.g. by group_by('query_id').agg('doc_id').",
    "text": "Cast it to String before scoring.",
    "raster": "Give a path a row, or pl.Array(pl.UInt8, (height, width)).",
    "text_list": "Give one string, or one list of strings, a row.",
    "verdict": "Give one word a row.",
    "whole": "Cast it to Int64 before scoring.",
    "texts": "Cast it to String or List(String) before scoring.",
    "vector": "Give each row its vector as a list or array of floats.",
    "vectors": "Give each row its vector, or a list of vectors, of floats.",
    "number": "Cast it to Float64 before scoring.",
    "any": "Give numbers, strings, dates or times.",
    "flag": "Cast it to Boolean before scoring.",
    "list": "Give lists or arrays of numbers, or four columns xmin, ymin, xmax, ymax.",
    "polygon": "Give each row a list of rings [[x, y, x, y, ...], ...], or WKB.",
    "keypoints": "Give each row one list [x, y, visibility, x, y, visibility, ...].",
    "mask": "Give each row {'size': [height, width], 'counts': ...}, as pycocotools encodes it.",
}


def canonical_dtype(column: Column, dtype: pl.DataType) -> pl.DataType | None:
    """Return the canonical dtype of a column, or None if the given dtype is not accepted.

    An all-null column (dtype Null) is accepted for every kind; nulls are checked later. Flags and
    labels stay numeric until their values are checked.
    """
    if dtype == pl.Null:
        return DEFAULTS[column.kind]
    if column.kind == "id":
        return _id(dtype)
    if column.kind == "label":
        return _label(dtype)
    if column.kind == "items":
        return _items(dtype)
    if column.kind == "raster":
        return _raster(dtype)
    if column.kind == "text":
        return pl.String() if isinstance(dtype, TEXTS) or dtype.is_integer() else None
    if column.kind in _PLAIN:
        return _PLAIN[column.kind](dtype)
    if column.kind == "texts":
        return _texts(dtype)
    if column.kind == "number":
        if not dtype.is_numeric():
            return None
        return pl.Float32() if column.single and dtype == pl.Float32 else pl.Float64()
    if column.kind == "flag":
        return dtype if dtype == pl.Boolean or dtype.is_numeric() else None
    if column.kind == "polygon":
        return dtype if dtype in (pl.Binary, pl.String) or numbers_within(dtype) else None
    if column.kind == "mask":
        return dtype if _is_mask(dtype) else None
    if column.kind == "any":
        return None if dtype.is_nested() or dtype == pl.Object or foreign(dtype) else dtype
    return None


def foreign(dtype: pl.DataType) -> bool:
    """Return whether a dtype is another library's, such as periods and intervals of pandas."""
    return isinstance(dtype, getattr(pl, "BaseExtension", ()))


def numbers_within(dtype: pl.DataType) -> int:
    """Return the number of list levels around numbers; 0 for other dtypes."""
    depth, inner = _within(dtype)
    return depth if inner.is_numeric() or inner == pl.Null else 0


def _flags_within(dtype: pl.DataType) -> int:
    """Return the number of list levels around booleans; 0 for other dtypes."""
    depth, inner = _within(dtype)
    return depth if inner == pl.Boolean else 0


def _within(dtype: pl.DataType) -> tuple[int, pl.DataType]:
    """Return the number of list or array levels, and the inner dtype."""
    depth = 0
    while isinstance(dtype, (pl.List, pl.Array)):
        depth += 1
        dtype = dtype.inner if isinstance(dtype.inner, pl.DataType) else dtype.inner()
    return depth, dtype


def _is_mask(dtype: pl.DataType) -> bool:
    """A run-length struct, or rows of pixels."""
    if isinstance(dtype, pl.Struct):
        names = {field.name for field in dtype.fields}
        return "size" in names and len(names) > 1
    return numbers_within(dtype) == 2 or _flags_within(dtype) == 2


def _verdict(dtype: pl.DataType) -> pl.DataType | None:
    plain = isinstance(dtype, TEXTS) or dtype.is_numeric() or dtype == pl.Boolean
    return pl.String() if plain else None


def _text_list(dtype: pl.DataType) -> pl.DataType | None:
    """One text, or lists of them."""
    if isinstance(dtype, TEXTS):
        return pl.List(pl.String())
    found = _items(dtype)
    return found if found == pl.List(pl.String()) else None


def _whole(dtype: pl.DataType) -> pl.DataType | None:
    """Return the dtype for whole numbers: floats too, since pandas makes them from integers with
    gaps.
    """
    return pl.Int64() if dtype.is_integer() else pl.Float64() if dtype.is_float() else None


def _vector(dtype: pl.DataType) -> pl.DataType | None:
    """Lists or arrays of floats; single precision stays as it is."""
    if not isinstance(dtype, (pl.List, pl.Array)):
        return None
    inner = dtype.inner if isinstance(dtype.inner, pl.DataType) else dtype.inner()
    if inner.is_nested() or not (inner.is_numeric() or inner == pl.Null):
        return None
    kept = inner if inner in (pl.Float32, pl.Float64) else pl.Float64()
    return pl.Array(kept, dtype.shape[0]) if isinstance(dtype, pl.Array) else pl.List(kept)


def _vectors(dtype: pl.DataType) -> pl.DataType | None:
    """A vector, or a list of them."""
    if isinstance(dtype, pl.Array) and len(dtype.shape) > 1:
        dtype = pl.List(pl.Array(_within(dtype)[1], dtype.shape[1:]))
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    if isinstance(inner, (pl.List, pl.Array)):
        found = _vector(inner)
        return None if found is None else pl.List(found)
    return _vector(dtype)


def _keypoints(dtype: pl.DataType) -> pl.DataType | None:
    return pl.List(pl.Float64()) if numbers_within(dtype) in (1, 2) else None


_PLAIN = {
    "keypoints": _keypoints,
    "verdict": _verdict,
    "text_list": _text_list,
    "whole": _whole,
    "vector": _vector,
    "vectors": _vectors,
}
"""Kind of column -> the dtype it is brought to, or None."""


def _label(dtype: pl.DataType) -> pl.DataType | None:
    if isinstance(dtype, (pl.List, pl.Array)):
        inner = dtype.inner if isinstance(dtype.inner, pl.DataType) else dtype.inner()
        if isinstance(dtype, pl.Array) and len(dtype.shape) > 1:
            return None
        if inner.is_nested():
            return None
        found = pl.String() if inner == pl.Null else _label(inner)
        return pl.List(found) if found is not None else None
    return dtype if dtype == pl.Boolean or dtype.is_float() or dtype in _INTEGERS else _id(dtype)


def _items(dtype: pl.DataType) -> pl.DataType | None:
    """Lists of ids or texts."""
    if not isinstance(dtype, (pl.List, pl.Array)):
        return None
    inner = dtype.inner if isinstance(dtype.inner, pl.DataType) else dtype.inner()
    found = pl.String() if inner == pl.Null else _id(inner)
    return pl.List(found) if found is not None else None


def _raster(dtype: pl.DataType) -> pl.DataType | None:
    """Paths, or pixels: arrays of whole numbers as objects or two lists deep."""
    if isinstance(dtype, TEXTS):
        return pl.String()
    if dtype == pl.Object:
        return dtype
    inner, depth = dtype, 0
    while isinstance(inner, (pl.List, pl.Array)):
        depth += len(inner.shape) if isinstance(inner, pl.Array) else 1
        found = inner.inner
        while isinstance(inner, pl.Array) and isinstance(found, pl.Array):
            found = found.inner
        inner = found if isinstance(found, pl.DataType) else found()
    whole = inner == pl.Boolean or inner.is_integer()
    return dtype if depth == 2 and whole else None


def _texts(dtype: pl.DataType) -> pl.DataType | None:
    """A text, or a list of them."""
    if not isinstance(dtype, (pl.List, pl.Array)):
        return pl.String() if isinstance(dtype, TEXTS) or dtype.is_integer() else None
    inner = dtype.inner if isinstance(dtype.inner, pl.DataType) else dtype.inner()
    fits = inner == pl.Null or isinstance(inner, TEXTS) or inner.is_integer()
    return pl.List(pl.String()) if fits else None


def _id(dtype: pl.DataType) -> pl.DataType | None:
    if isinstance(dtype, TEXTS):
        return pl.String()
    if dtype == pl.UInt64:
        return pl.UInt64()
    if dtype == pl.Int128:  # what CSV gives for integers beyond 64 bits: names, by their digits
        return pl.String()
    return pl.Int64() if dtype in _INTEGERS else None


def cast(expr: pl.Expr, dtype: pl.DataType, target: pl.DataType) -> pl.Expr:
    """Cast an expression if the dtype differs; a single text becomes a list."""
    if isinstance(target, pl.List) and not dtype.is_nested():
        one = expr.cast(target.inner)
        return pl.when(one.is_not_null()).then(pl.concat_list(one))
    return expr if dtype == target else expr.cast(target)


def kind_of(dtype: pl.DataType) -> str:
    """``integers``, ``strings`` or ``booleans``, for sentences about ids and labels."""
    dtype = inner_of(dtype)
    return {pl.String: "strings", pl.Boolean: "booleans"}.get(dtype.base_type(), "integers")


def inner_of(dtype: pl.DataType) -> pl.DataType:
    if not isinstance(dtype, pl.List):
        return dtype
    return dtype.inner if isinstance(dtype.inner, pl.DataType) else dtype.inner()


def common(found: Sequence[pl.DataType]) -> pl.DataType:
    """Return the common dtype of ids or labels: strings, booleans if all are, or integers."""
    if any(dtype == pl.String for dtype in found):
        return pl.String()
    if len(set(found)) == 1:
        return found[0]
    return pl.UInt64() if any(dtype == pl.UInt64 for dtype in found) else pl.Int64()


def like(dtype: pl.DataType, target: pl.DataType) -> pl.DataType:
    """Return the target dtype, in a list if the given dtype is a list."""
    return pl.List(target) if isinstance(dtype, pl.List) else target


_UNSIGNED = getattr(pl, "UInt128", pl.Int128)  # of later versions


def wrong_type(column: Column, original: str, dtype: pl.DataType) -> str:
    """The sentence about a column whose dtype cannot serve."""
    seen = f" (from {original!r})" if original != column.name else ""
    advice = column.way_out or _WAY_OUT[column.kind]
    if column.single and dtype == pl.Boolean:
        advice = "True and false are not scores; predicted labels need none."
    if column.single and dtype.is_nested():
        advice = f"Give each label a column of its own and name these in {option('score_columns')}."
    if column.kind == "id" and dtype.is_float():
        advice = (
            "Ids and labels stay as they are, so that 1.0 never matches 1 by accident: cast it to"
            " Int64 before scoring (in pandas a missing value turns integers into floats)."
        )
    held = _WORDS[column.kind]
    if dtype in (pl.Int128, _UNSIGNED):
        held, advice = "numbers of at most 64 bits", "Cast it to Int64 or UInt64 where they fit"
        advice += ", else to String." if column.kind in ("id", "label") else "."
    if column.kind in ("id", "label") and (dtype.is_float() or dtype.is_decimal()):
        advice += or_measured([original])
    return f"column {column.name!r}{seen} has dtype {dtype}; it must hold {held}. {advice}"


def fit_integers(frame: pl.DataFrame) -> pl.DataFrame:
    """Cast UInt64 ids that fit to Int64, so that both sides have the same dtype."""
    small = [
        series.cast(like(series.dtype, pl.Int64()))
        for series in frame.iter_columns()
        if inner_of(series.dtype) == pl.UInt64 and _fits(series)
    ]
    return frame.with_columns(small) if small else frame


def _fits(series: pl.Series) -> bool:
    top = series.list.max().max() if isinstance(series.dtype, pl.List) else series.max()
    return top is None or (isinstance(top, int) and top < 2**63)
