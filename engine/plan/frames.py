"""Cells to frames: codes become labels, groups become slice values, NaN becomes null."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..metrics.registry import Metric
from ..schemas.arrays import Array
from ..tally.cells import Cells
from ..tally.datums import Labels


def _looked_up(
    cells: Cells,
    labels: Labels,
    schema: dict[str, pl.DataType],
    slice_name: str | None,
    groups: list[str],
) -> dict[str, pl.Series]:
    """Return the label and group columns of rows, from their positions on the axes.

    Rows are taken by ``[]``: Polars turns ``gather`` into a query, which takes twenty times as long
    for few rows.
    """
    made: dict[str, pl.Series] = {}
    for axis, at in cells.index().items():
        index = pl.Series(at)
        if axis == "group":
            if slice_name is not None:
                made["slice_value"] = pl.Series(groups, dtype=pl.String)[index]
        elif axis == "label":
            for column in ("label_key", "label_value"):
                made[column] = labels.frame[column][index]
        elif axis == "key":
            made["label_key"] = pl.Series(labels.key_names, dtype=pl.String)[index]
        elif axis in cells.values:
            made[axis] = pl.Series(list(cells.values[axis]), dtype=schema[axis])[index]
    return {key: _fitted(made[key], key, dtype) for key, dtype in schema.items() if key in made}


def _fitted(column: pl.Series, name: str, dtype: pl.DataType) -> pl.Series:
    """A column under its name, with its dtype."""
    return (column if column.dtype == dtype else column.cast(dtype)).alias(name)


def _words(reason: Array, shown: Array) -> pl.Series:
    """Return reasons for the rows in ``shown``, null for others; most are null, and strings are
    slow.

    Args:
        reason: str [n].
        shown: bool [n].
    """
    words = pl.Series([None, *reason[shown].tolist()], dtype=pl.String)
    place = np.zeros(reason.size, np.uint32)
    place[shown] = np.arange(1, len(words), dtype=np.uint32)
    return words[pl.Series(place)]


def frame_of(
    metric: Metric,
    cells: Cells,
    labels: Labels,
    schema: dict[str, pl.DataType],
    slice_name: str | None,
    groups: list[str],
    shared: dict[tuple[Any, ...], dict[str, pl.Series]],
) -> pl.DataFrame:
    """Build rows of the ``metrics`` or ``curves`` frame from one array of cells.

    Args:
        slice_name: the slice column, None for the whole set.
        shared: cache of axis columns for the same frame, slice column and groups, by
            :attr:`Cells.place`: most metrics share a grid, and these columns are the bulk of the
            work.
    """
    place = cells.place
    if place not in shared:
        shared[place] = _looked_up(cells, labels, schema, slice_name, groups)
    made = dict(shared[place])
    found = cells.rows()
    for key, value in found.items():
        if key in schema:
            column = (
                _words(value, (value != "") if cells.always else np.isnan(found["value"]))
                if key == "reason"
                else pl.Series(value, nan_to_null=value.dtype.kind == "f")
            )
            made[key] = _fitted(column, key, schema[key])
    height = len(made["value"]) if "value" in made else len(next(iter(made.values())))
    constants = {next(iter(schema)): metric.name, "slice": slice_name, **cells.columns}
    same = shared.setdefault(("constants", height), {})

    # Series by series: for small frames, one expression per column costs more than the data.
    def output(key: str, dtype: pl.DataType) -> pl.Series:
        if key in made:
            return made[key]
        if key == "reason" and cells.reason is not None and made["value"].null_count():
            words = pl.Series(key, [None, cells.reason], dtype=dtype)
            return words[pl.Series(np.isnan(found["value"]).astype(np.uint32))]
        value = constants.get(key)
        if value is None and key in same:  # most columns of most frames
            return same[key]
        column = pl.Series(key, [value], dtype=dtype).new_from_index(0, height)
        if value is None:
            same[key] = column
        return column

    return pl.DataFrame([output(key, dtype) for key, dtype in schema.items()])
