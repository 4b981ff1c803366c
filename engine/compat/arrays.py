"""Conversion of lists, arrays, Series and tensors to columns."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..api import score
from ..schemas.arrays import Array
from ..schemas.errors import InputError, OptionError
from ..scorecard.card import Scorecard


class Column(NamedTuple):
    """Labels of one side.

    Attributes:
        values: integers or strings; booleans became 0 and 1.
        kind: original type: bool, float, int or str.
    """

    values: pl.Series
    kind: type


def column(name: str, values: Any) -> Column:
    """Convert labels to a Series of integers or strings.

    Args:
        name: of the argument, for errors.
        values: one-dimensional, or a single column: a sequence, an array, a Series, anything with
            ``__array__``.

    Raises:
        InputError: several columns, a null, or a type other than integer, string or boolean.
    """
    series = _series(name, values)
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        series = series.cast(pl.String)
    if series.null_count():
        raise InputError(f"{name}: {series.null_count()} of {len(series)} labels are missing.")
    if series.dtype == pl.Boolean:
        return Column(series.cast(pl.Int64), bool)
    if series.dtype.is_float():
        whole = series.cast(pl.Int64, strict=False)
        wrong = series.filter((whole.cast(series.dtype) != series).fill_null(True))
        if len(wrong):
            raise InputError(
                f"{name}: {len(wrong)} of {len(series)} labels are not whole numbers, first"
                f" {wrong[:3].to_list()}. Are these scores?"
            )
        return Column(whole, float)
    if series.dtype.is_integer():
        return Column(series.cast(pl.Int64), int)
    if series.dtype != pl.String:
        raise InputError(f"{name}: labels are integers, strings or booleans, not {series.dtype}.")
    return Column(series, str)


def _series(name: str, values: Any) -> pl.Series:
    if isinstance(values, pl.Series):
        return values
    if isinstance(values, (pl.DataFrame, str, bytes, dict)):
        raise InputError(f"{name}: one column of labels is needed, not a {type(values).__name__}.")
    if "pandas" in type(values).__module__ and getattr(values, "ndim", 2) == 1:
        return pl.Series(values)
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"{name} has the shape {array.shape}: one label a row is needed. Several labels a row"
            " are scored by evalengine.score(..., multilabel=True)."
        )
    if array.dtype.kind == "S":
        raise InputError(f"{name}: labels are bytes; decode them to strings.")
    if array.dtype.kind in "OU":
        found = array.tolist()
        kinds = {type(one) for one in found}
        if len({str if issubclass(kind, str) else float for kind in kinds}) > 1:
            raise InputError(
                f"{name}: labels are of several types:"
                f" {', '.join(sorted(kind.__name__ for kind in kinds))}."
            )
        return pl.Series(found, strict=False)
    return pl.Series(array)


def alike(columns: dict[str, pl.Series]) -> None:
    """Refuse label columns of different lengths or types, and empty ones.

    Raises:
        InputError: they differ, or have no rows.
    """
    lengths = {name: len(one) for name, one in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"inconsistent numbers of rows: {told(lengths)}.")
    if not all(lengths.values()):
        raise InputError(f"{' and '.join(lengths)} are empty: at least one row is needed.")
    kinds = {name: one.dtype for name, one in columns.items()}
    if len(set(kinds.values())) > 1:
        raise InputError(f"labels are a mix of strings and numbers: {told(kinds)}.")


def told(by_name: dict[str, Any]) -> str:
    return ", ".join(f"{name} {one}" for name, one in by_name.items())


def numbers(
    name: str, values: Any, *, rows: int | None = None, dims: Sequence[int] = (1,)
) -> Array:
    """Convert scores or weights to an array of floats; single precision is kept.

    Args:
        name: of the argument, for errors.
        rows: required number of rows.
        dims: allowed numbers of dimensions; a single column becomes one dimension.

    Raises:
        InputError: not numeric, NaN or infinite, or another shape.
    """
    array = np.asarray(values.to_numpy() if isinstance(values, pl.Series) else values)
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: numbers are needed: {error}.") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name}: numbers are needed, not {array.dtype}.")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in dims:
        raise InputError(f"{name} has the shape {array.shape}, which does not fit the labels.")
    if rows is not None and len(array) != rows:
        raise InputError(f"inconsistent numbers of rows: labels {rows}, {name} {len(array)}.")
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    broken = int(np.count_nonzero(~np.isfinite(array)))
    if broken:
        raise InputError(f"{name}: {broken} of {array.size} numbers are NaN or infinite.")
    return array.astype(np.float32) if array.dtype.itemsize < 4 else array


def weights(values: Any, rows: int) -> dict[str, Array]:
    """Return the column ``weight``, or an empty dict without weights.

    Raises:
        InputError: as in :func:`numbers`; all weights are 0.
    """
    if values is None:
        return {}
    array = numbers("sample_weight", values, rows=rows).astype(np.float64, copy=False)
    if not array.any():
        raise InputError("sample_weight: all weights are 0, so that nothing counts.")
    return {"weight": array}


def chosen(name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Refuse an unsupported value of an argument.

    Raises:
        OptionError: the value is not in ``allowed``.
    """
    if not any(value is one or (type(value) is type(one) and value == one) for one in allowed):
        raise OptionError(f"{name}={value!r}: write one of {', '.join(map(repr, allowed))}.")


def undefined(message: str) -> None:
    """Warn of an undefined value, with scikit-learn's class if that is imported."""
    kind = getattr(sys.modules.get("sklearn.exceptions"), "UndefinedMetricWarning", UserWarning)
    warnings.warn(message, kind, stacklevel=4)


def classify(table: pl.DataFrame, *metrics: str, dialect: str, **options: Any) -> Scorecard:
    """Score a table of both sides."""
    return score(table, task="classification", dialect=dialect, metrics=metrics, **options)
