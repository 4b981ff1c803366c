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
    looked_up: dict[str, tuple[str, pl.Series]] = {}  # output column -> axis and its values
    for axis in index:
        if axis == "group":
            if slice_name is not None:
                looked_up["slice_value"] = axis, pl.Series(groups, dtype=pl.String)
        elif axis == "label":
            for column in ("label_key", "label_value"):
                looked_up[column] = axis, labels.frame[column]
        elif axis == "key":
            looked_up["label_key"] = axis, pl.Series(labels.key_names, dtype=pl.String)
        elif axis in cells.values:
            looked_up[axis] = axis, pl.Series(list(cells.values[axis]), dtype=schema[axis])
    arrays = {key: value for key, value in columns.items() if isinstance(value, np.ndarray)}
    constants = {_NAME_COLUMN[name]: metric.name, "slice": slice_name, **columns}
    rows = pl.DataFrame(
        {f"axis {axis}": at.astype(np.uint32) for axis, at in index.items()}
        | {key: pl.Series(value, nan_to_null=True) for key, value in arrays.items()}
    )

    def output(key: str, dtype: pl.DataType) -> pl.Expr:
        if key in arrays:
            return pl.col(key).cast(dtype)
        if key in looked_up:
            axis, values = looked_up[key]
            return pl.lit(values).gather(pl.col(f"axis {axis}")).alias(key)
        if key == "reason" and cells.reason is not None:
            return pl.when(pl.col("value").is_null()).then(pl.lit(cells.reason)).alias(key)
        return pl.lit(constants.get(key), dtype=dtype).alias(key)

    return rows.select(output(key, dtype) for key, dtype in schema.items())
