"""Tallies of partitions merge into the tally of the whole; weights count datums several times."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import evalengine as ee
from evalengine import planner
from evalengine.executors import Threads
from evalengine.inputs.frames import load_frames
from evalengine.schemas.options import make_options
from evalengine.tally.merging import merge_counts, merge_datums, merge_labels, merge_ranked
from evalengine.tasks.detection import Tallies

from .strategies import crowded_tables

METRICS = (
    "AP",
    "mAP",
    "mAPAveragedOverIOUs",
    "mAR",
    "F1",
    "PrecisionRecallCurve",
    "ConfusionMatrix",
)


def tallied(plan: planner.Plan, predictions: pl.DataFrame, truths: pl.DataFrame) -> Any:
    frames = load_frames(predictions, truths, options=plan.options)
    return planner.run(plan, frames, Threads(1))


def merged(parts: list[Any]) -> Tallies:
    datums, datum_codes = merge_datums([part.datums for part in parts])
    labels, label_codes = merge_labels([part.labels for part in parts])
    ranked = merge_ranked(
        [part.ranked for part in parts], datum_codes, label_codes, len(datums), len(labels)
    )
    crossed = merge_counts([part.crossed for part in parts], datum_codes, label_codes)
    return Tallies(datums, labels, ranked, crossed, None, None, {})


@pytest.mark.parametrize("dialect", ["standard", "coco", "valor", "valor-docs"])
def test_partitions_merge_into_the_whole(dialect: str) -> None:
    """To the bit, whatever the partition: metrics, curves and confusion."""
    drawn = crowded_tables(5, datums=12)
    options = make_options(dialect=dialect, metrics=METRICS, score_thresholds=[0.2, 0.5, 0.8])
    plan = planner.make_plan(options, "detection")
    whole, _ = planner.summarise(plan, tallied(plan, drawn.predictions, drawn.truths))
    ids = sorted(drawn.datums)
    parts = []
    for third in (ids[2::3], ids[0::3], ids[1::3]):
        inside = pl.col("datum_id").is_in(third)
        parts.append(tallied(plan, drawn.predictions.filter(inside), drawn.truths.filter(inside)))
    put_together, _ = planner.summarise(plan, merged(parts))
    for name in ("metrics", "curves", "confusion"):
        assert_frame_equal(put_together[name](), whole[name](), check_exact=True)


def test_a_datum_in_two_partitions_is_refused() -> None:
    drawn = crowded_tables(5, datums=4)
    plan = planner.make_plan(make_options(metrics=["mAP"]), "detection")
    part = tallied(plan, drawn.predictions, drawn.truths)
    with pytest.raises(ee.InputError, match="more than one partition"):
        merge_datums([part.datums, part.datums])


@pytest.mark.parametrize("dialect", ["standard", "valor"])
def test_a_weight_counts_a_datum_that_often(dialect: str) -> None:
    """Weights give the numbers of tables in which each datum stands that often."""
    drawn = crowded_tables(8, datums=9)
    rng = np.random.default_rng(4)
    scores = rng.permutation(np.arange(1, drawn.predictions.height + 1)) / 1000  # no ties
    predictions = drawn.predictions.with_columns(score=pl.Series(scores))
    options = make_options(dialect=dialect, metrics=METRICS[:-1], score_thresholds=[0.02, 0.05])
    plan = planner.make_plan(options, "detection")
    tallies = tallied(plan, predictions, drawn.truths)
    weights = rng.integers(0, 4, len(tallies.datums))
    frames, _ = planner.summarise(plan, tallies, weights=weights)
    times = dict(zip(tallies.datums.id.to_list(), weights.tolist(), strict=True))

    def repeated(table: pl.DataFrame) -> pl.DataFrame:
        copies = [
            table.filter(
                pl.col("datum_id").replace_strict(times, return_dtype=pl.Int64) > copy
            ).with_columns(pl.format("{}#{}", "datum_id", pl.lit(copy)).alias("datum_id"))
            for copy in range(3)
        ]
        return pl.concat(copies).drop("annotation_id", strict=False)

    again, _ = planner.summarise(plan, tallied(plan, repeated(predictions), repeated(drawn.truths)))
    key = ["metric", "label_key", "label_value", "average", "iou_threshold", "score_threshold"]
    ours = frames["metrics"]().select(*key, "value", "support")
    theirs = again["metrics"]().select(*key, "value", "support")
    common = ours.join(theirs, on=key, how="inner", nulls_equal=True)
    assert common.height == theirs.height
    assert_frame_equal(
        common.select("value", "support"),
        common.select(value="value_right", support="support_right"),
        abs_tol=1e-12,
    )
