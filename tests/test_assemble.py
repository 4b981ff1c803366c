"""Cells become rows with the dtypes of the frame's schema, whatever dtypes the cells have."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from evalengine.evaluation.summary import frame_of, label_axes, rows_of
from evalengine.metrics.registry import Metric
from evalengine.schemas.results import frame_schema
from evalengine.tallies.datums import Cells, Labels

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
    """Counts are integers, or sums of weights; frames of several metrics are concatenated."""
    numbers = np.array([0, 1], dtype)
    cells = Cells(axes=("label",), columns={"value": numbers, "support": numbers}, shape=(2,))
    schema = frame_schema("metrics", label=pl.String(), weighted=weighted)
    rows = rows_of(METRIC, cells, label_axes(LABELS), schema, None, {})
    frame = frame_of([rows], schema)
    assert frame.schema == pl.Schema(schema)
    assert frame["support"].dtype == (pl.Float64 if weighted else pl.Int64)
    assert frame["value"].to_list() == frame["support"].to_list() == [0, 1]
    assert frame["label_value"].to_list() == ["a", "b"]


def test_parts_with_other_columns_become_one_frame() -> None:
    """Arrays, constants and values on axes may share a column; missing columns are null."""
    of_labels = Cells(
        axes=("label",),
        columns={"value": np.array([np.nan, 1.0]), "support": np.array([2, 3])},
        shape=(2,),
        reason="nothing to divide by",
    )
    mean = Cells(
        axes=("group",),
        columns={"value": np.array([0.5]), "average": "macro", "support": np.array([5.0])},
        shape=(1,),
    )
    at_cuts = Cells(
        axes=("label", "k"),
        values={"k": (1, None)},
        columns={"value": np.array([[0.1, 0.2], [0.3, 0.4]]), "support": 7, "area": "small"},
        keep=np.array([[False], [True]]),
        shape=(2, 2),
        reason=np.array([["", ""], ["few", ""]]),
        always=True,
    )
    other = Cells(axes=("group",), columns={"value": np.array([0.6]), "support": 9}, shape=(1,))
    schema = frame_schema("metrics", label=pl.String())
    shared: dict[Any, Any] = {}
    cells = (of_labels, mean, at_cuts, other, of_labels)
    axes = label_axes(LABELS)
    parts = [rows_of(METRIC, one, axes, schema, None, shared) for one in cells]
    frame = frame_of(parts, schema)
    assert frame.schema == pl.Schema(schema)
    columns = ("label_value", "average", "k", "area", "value", "support", "reason")
    twice = [
        ("a", None, None, None, None, 2, "nothing to divide by"),
        ("b", None, None, None, 1.0, 3, None),
    ]
    assert frame.select(columns).rows() == [
        *twice,
        (None, "macro", None, None, 0.5, 5, None),
        ("b", None, 1, "small", 0.3, 7, "few"),
        ("b", None, None, "small", 0.4, 7, None),
        (None, None, None, None, 0.6, 9, None),
        *twice,
    ]
    assert frame["metric"].to_list() == ["Made"] * 8
    assert frame_of([], schema).schema == pl.Schema(schema)
