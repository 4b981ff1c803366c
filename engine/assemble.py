"""Cells to frames: codes become labels, groups become slice values, NaN becomes null."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from .metrics.registry import Metric
from .schemas.results import frame_schema
from .tally.cells import Cells
from .tally.datums import Labels

Array = np.ndarray[Any, Any]

_NAME_COLUMN = {"metrics": "metric", "curves": "curve"}


def _spread(column: Any, n: int, dtype: pl.DataType) -> pl.Series:
    """A column of n rows: an array as it stands (NaN to null), a constant repeated."""
    if isinstance(column, np.ndarray):
        series = pl.Series(column)
        if series.dtype.is_float():
            series = series.fill_nan(None)
        return series.cast(dtype)
    return pl.Series([column], dtype=dtype, strict=False).new_from_index(0, n)


def frame_of(
    name: str,
    metric: Metric,
    cells: Cells,
    labels: Labels,
    datum: pl.DataType,
    slice_name: str | None,
    groups: list[str],
) -> pl.DataFrame:
    """Rows of the ``metrics`` or ``curves`` frame from one array of cells.

    Args:
        name: which of the two.
        metric: whose cells they are.
        cells: numbers on named axes.
        labels: what label codes stand for.
        datum: dtype of datum ids.
        slice_name: the slice column, None for the whole set.
        groups: names of its groups.
    """
    schema = frame_schema(name, label=labels.dtype, datum=datum)
    index, columns = cells.rows()
    n = next(iter(index.values())).size
    made: dict[str, Any] = {_NAME_COLUMN[name]: metric.name, "slice": slice_name, **columns}
    series = {key: _spread(value, n, schema[key]) for key, value in made.items()}
    for axis, at in index.items():
        if axis == "group":
            if slice_name is not None:
                series["slice_value"] = pl.Series(groups, dtype=pl.String).gather(at)
        elif axis == "label":
            for column in ("label_key", "label_value"):
                series[column] = labels.frame[column].gather(at)
        elif axis == "key":
            series["label_key"] = pl.Series(labels.key_names, dtype=pl.String).gather(at)
        elif axis in cells.values:
            values = pl.Series(list(cells.values[axis]), dtype=schema[axis])
            series[axis] = values.gather(at)
    if cells.reason is not None and "reason" in schema:
        undefined = series["value"].is_null()
        if undefined.any():
            reasons = pl.Series([None, cells.reason], dtype=pl.String)
            series["reason"] = reasons.gather(undefined.cast(pl.UInt32))
    blank = {
        column: pl.Series([None], dtype=dtype).new_from_index(0, n)
        for column, dtype in schema.items()
        if column not in series
    }
    return pl.DataFrame({column: series.get(column, blank.get(column)) for column in schema})
