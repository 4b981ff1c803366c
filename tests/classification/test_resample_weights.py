"""Weights on datums: one bootstrap resample against repeated rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.strategies import Drawn, drawn, modest, some_weights
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from evalengine.evaluation import planner
from evalengine.evaluation.summary import summarise
from evalengine.executors import Threads
from evalengine.ingest.frames import checked_frames
from evalengine.ingest.opening import Tables, open_inputs
from evalengine.schemas.option_values import make_options

METRICS = [
    "Accuracy", "Precision", "Recall", "F1", "Jaccard", "Counts", "ROCAUC", "mROCAUC", "AP",
    "mAP", "PartialROCAUC", "ThresholdAtMaxF", "PrecisionRecallCurve", "HammingLoss",
]  # fmt: skip
SINGLE = [
    "BalancedAccuracy", "MCC", "CohenKappa", "CohenKappaLinear", "CohenKappaQuadratic",
    "mROCAUCOneVsOne", "LogLoss", "Brier", "ECE", "MCE", "TopKAccuracy", "ConfusionMatrix",
]  # fmt: skip


def tallied(plan: planner.Plan, *sides: pl.DataFrame) -> Any:
    """Tally two tables."""
    inputs = open_inputs(Tables(*sides), plan.options)
    return planner.run(plan, checked_frames(inputs, plan.task, plan.options), Threads(1))


def repeated(table: pl.DataFrame, times: dict[Any, int]) -> pl.DataFrame:
    """Repeat the rows of every datum by its count, with a new id for each copy."""
    often = pl.col("datum_id").replace_strict(times, return_dtype=pl.Int64)
    return pl.concat(
        table.filter(often > copy).with_columns(
            pl.format("{}#{}", "datum_id", pl.lit(copy)).alias("datum_id")
        )
        for copy in range(3)
    )


def check(tables: Drawn, times: dict[Any, int], metrics: list[str], **more: Any) -> None:
    """Compare one resample with repeated rows; rows without weight may be present or not."""
    options = make_options(metrics=metrics, score_thresholds=[0.25, 0.6], average="micro", **more)
    plan = planner.make_plan(options, "classification")
    predictions, truths = tables.frames()
    tallies = tallied(plan, predictions, truths)
    weights = np.array([times[i] for i in tallies.datums.id.to_list()], np.int64)
    drawn_frames, _ = summarise(plan, tallies, weights=weights)
    sides = repeated(predictions, times), repeated(truths, times)
    again, _ = summarise(plan, tallied(plan, *sides))
    for name in ("metrics", "curves", "confusion"):
        if name not in again:
            continue
        first, second = drawn_frames[name](), again[name]()
        if name == "confusion":
            first = first.filter(pl.col("count") > 0)
        assert_frame_equal(first, second, abs_tol=1e-12)


@pytest.mark.parametrize("several", [False, True])
@modest
@given(st.data())
def test_a_resample_is_repeated_datums(several: bool, data: st.DataObject) -> None:
    """With one label per datum, and with several."""
    tables = data.draw(drawn(several=several))
    times = data.draw(some_weights(tables.datums))
    if comparable(tables, times):
        names = METRICS if several else [*METRICS, *SINGLE]
        check(tables, times, names, multilabel=several or None)


def comparable(tables: Drawn, times: dict[Any, int]) -> bool:
    """Check that the weighted rows share a datum and still have every label."""
    remaining = tables.on([datum for datum, n in times.items() if n])
    both = {row[0] for row in remaining.predictions} & {row[0] for row in remaining.truths}
    same = remaining.oracle().labels == tables.oracle().labels
    return same and (bool(both) or not remaining.predictions or not remaining.truths)
