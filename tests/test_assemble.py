"""Cells become rows whose columns have the dtypes of the frame's schema, whatever cells have."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from evalengine.metrics.registry import Metric
from evalengine.plan.summary import frame_of, label_axes, rows_of
from evalengine.schemas.results import frame_schema
from evalengine.tally.cells import Cells
from evalengine.tally.datums import Labels

METRIC = Metric(
    name="Made", task="detection", frame="metrics", needs=(), definition="", formula="", source=""
)
LABELS = Labels(
    pl.DataFrame({"label_key": "label", "label_value": ["a", "b"], "label_name": None}),
    np.zeros(2, np.int32),
    ("label",),
)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_columns_have_the_dtypes_of_the_schema(dtype: Any, weighted: bool) -> None:
    """Counts are whole numbers, or sums of weights; frames of several metrics are put together."""
    numbers = np.array([0, 1], dtype)
    cells = Cells(axes=("label",), columns={"value": numbers, "support": numbers}, shape=(2,))
    schema = frame_schema("metrics", label=pl.String(), weighted=weighted)
    rows = rows_of(METRIC, cells, label_axes(LABELS), schema, None, {})
    frame = frame_of([rows], schema)
    assert frame.schema == pl.Schema(schema)
    assert frame["support"].dtype == (pl.Float64 if weighted else pl.Int64)
    assert frame["value"].to_list() == frame["support"].to_list() == [0, 1]
    assert frame["label_value"].to_list() == ["a", "b"]
