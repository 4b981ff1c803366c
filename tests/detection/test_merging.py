"""Refused merges of partitions; weights count datums several times."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from loading import load_frames
from polars.testing import assert_frame_equal

import evalengine as ee
from evalengine.evaluation import planner
from evalengine.evaluation.summary import summarise
from evalengine.executors import Threads
from evalengine.schemas.option_values import make_options
from evalengine.tallies.merging import merge_datums

from .strategies import BOX_DIALECTS, crowded_tables, more_tables

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
    ids, labels = (
        pl.concat([predictions[name], truths[name]]) for name in ("datum_id", "label_value")
    )
    more = more_tables(plan.dialect.name, ids, labels)
    frames = load_frames(predictions, truths, options=plan.options, **more)
    return planner.run(plan, frames, Threads(1))


def test_a_datum_in_two_partitions_is_refused() -> None:
    drawn = crowded_tables(5, datums=4)
    plan = planner.make_plan(make_options(metrics=["mAP"]), "detection")
    part = tallied(plan, drawn.predictions, drawn.truths)
    with pytest.raises(ee.InputError, match="one partition"):
        merge_datums([part.datums, part.datums])


def test_partitions_with_other_dtypes_of_scores_are_refused() -> None:
    """One has single and one double precision, so their thresholds would differ."""
    drawn = crowded_tables(5, datums=6)
    plan = planner.make_plan(make_options(metrics=["mAP"]), "detection")
    first = pl.col("datum_id") == sorted(drawn.datums)[0]
    parts = [
        tallied(
            plan, drawn.predictions.filter(side).cast({"score": dtype}), drawn.truths.filter(side)
        )
        for side, dtype in ((first, pl.Float32), (~first, pl.Float64))
    ]
    with pytest.raises(ee.InputError, match="single precision"):
        planner.merge(plan, parts)


@pytest.mark.parametrize("dialect", BOX_DIALECTS)
def test_a_weight_equals_repeated_datums(dialect: str) -> None:
    """Weights give the frames of tables in which datums are repeated.

    Scores are distinct: equal scores of a repeated datum would be ranked by datum, while a weight
    counts them at once.
    """
    drawn = crowded_tables(8, datums=9)
    rng = np.random.default_rng(4)
    scores = rng.permutation(np.arange(1, drawn.predictions.height + 1)) / 1000
    predictions = drawn.predictions.with_columns(score=pl.Series(scores))
    options = make_options(dialect=dialect, metrics=METRICS, score_thresholds=[0.02, 0.05])
    plan = planner.make_plan(options, "detection")
    tallies = tallied(plan, predictions, drawn.truths)
    weights = rng.integers(0, 4, len(tallies.datums))
    frames, _ = summarise(plan, tallies, weights=weights)
    times = dict(zip(tallies.datums.id.to_list(), weights.tolist(), strict=True))

    def repeated(table: pl.DataFrame) -> pl.DataFrame:
        often = pl.col("datum_id").replace_strict(times, return_dtype=pl.Int64)
        copies = [
            table.filter(often > copy).with_columns(
                pl.format("{}#{}", "datum_id", pl.lit(copy)).alias("datum_id")
            )
            for copy in range(3)
        ]
        return pl.concat(copies).drop("annotation_id", strict=False)

    again, _ = summarise(plan, tallied(plan, repeated(predictions), repeated(drawn.truths)))
    for name in ("metrics", "curves", "confusion"):
        assert_frame_equal(frames[name](), again[name](), abs_tol=1e-12)
