"""Values, intervals and p-values are independent of row order, ids, units of scores and sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import evalengine as ee

GIVEN: dict[str, Any] = {"task": "classification", "draws": 60, "threads": 1}
FEW = settings(max_examples=12, deadline=None)
SEEDS = st.integers(0, 10_000)


def runs(seed: int, n: int = 60) -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(seed)
    actual = rng.random(n) < 0.4
    shared = rng.normal(size=n) + actual
    one, other = (
        pl.DataFrame(
            {
                "datum_id": [f"d{i}" for i in range(n)],
                "actual": actual.astype(int),
                "score": np.round(1 / (1 + np.exp(-shared - rng.normal(size=n))), 2),
            }
        )
        for _ in range(2)
    )
    return one, other


def compared(first: pl.DataFrame, second: pl.DataFrame, *names: str, **more: Any) -> pl.DataFrame:
    result = ee.compare(first, second, metrics=[*names], **GIVEN, **more).differences
    return result.sort("metric", "label_value", "average", nulls_last=True)


@FEW
@given(SEEDS)
def test_row_order(seed: int) -> None:
    one, other = runs(seed)
    names = "F1", "ROCAUC", "AP"
    asked: dict[str, Any] = {**GIVEN, "metrics": [*names], "intervals": 0.95}
    mixed = [run.sample(fraction=1.0, shuffle=True, seed=seed) for run in (one, other)]
    assert_frame_equal(ee.score(mixed[0], **asked).metrics, ee.score(one, **asked).metrics)
    assert_frame_equal(compared(*mixed, *names), compared(one, other, *names))


@FEW
@given(SEEDS)
def test_swapped_runs(seed: int) -> None:
    one, other = runs(seed)
    there, back = compared(one, other, "F1", "ROCAUC"), compared(other, one, "F1", "ROCAUC")
    assert there["p"].equals(back["p"])
    for name, turned in (("difference", "difference"), ("lower", "upper"), ("upper", "lower")):
        own, negated = there[name].fill_null(9.0), (-back[turned]).fill_null(9.0)
        assert np.allclose(own, negated, rtol=0, atol=1e-12)


@FEW
@given(SEEDS, st.sampled_from(["randomisation", "delong"]))
def test_increasing_transforms_of_the_scores_of_one_run(seed: int, test: str) -> None:
    one, other = runs(seed)
    moved = other.with_columns(score=pl.col("score") ** 3)
    result = [compared(one, run, "ROCAUC", test=test) for run in (other, moved)]
    assert_frame_equal(*result, check_exact=True)


@FEW
@given(SEEDS)
def test_names_of_ids(seed: int) -> None:
    """Closed-form intervals and tests of values do not change; resamples do."""
    pair = runs(seed)
    asked: dict[str, Any] = {**GIVEN, "metrics": ["Recall", "BalancedAccuracy"], "intervals": 0.9}
    renamed = [run.with_columns(datum_id="x" + pl.col("datum_id").str.reverse()) for run in pair]
    bounds = [
        ee.score(run, **asked).metrics.filter(
            pl.col("average").is_null() | (pl.col("average") == "macro")
        )
        for run in (pair[0], renamed[0])
    ]
    columns = ["value", "lower", "upper"]
    assert_frame_equal(bounds[0].select(columns), bounds[1].select(columns))
    tested = [compared(*two, "Accuracy", test="mcnemar") for two in (pair, renamed)]
    assert tested[0]["p"].equals(tested[1]["p"])
    assert_frame_equal(tested[0].select("lower", "upper"), tested[1].select("lower", "upper"))
