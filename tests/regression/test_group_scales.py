"""Intervals of groups and targets of very different magnitudes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import evalengine as ee

NAMES = ["MAE", "MSE", "R2", "Pearson"]


def of_two(large: int, small: int) -> pl.DataFrame:
    """Generate rows of two groups with magnitudes 1e9 and 1e-5."""
    rng = np.random.default_rng(5)
    size = np.repeat([1e9, 1e-5], [large, small])
    target = rng.normal(size=size.size) * size
    predicted = target + rng.normal(size=size.size) * size / 10
    group = np.repeat(["large", "small"], [large, small])
    return pl.DataFrame({"prediction": predicted, "target": target, "s": group})


@pytest.mark.parametrize(("large", "small"), [(1000, 8), (8, 60)])
def test_groups_have_the_intervals_of_separate_runs(large: int, small: int) -> None:
    rows = of_two(large, small).with_columns(
        datum_id=pl.concat([pl.int_range(large, eager=True), pl.int_range(small, eager=True)])
    )
    options = {"task": "regression", "metrics": NAMES, "intervals": 0.9, "draws": 100}
    keyed = ee.score(rows.rename({"s": "label_key"}), **options).metrics
    shown = ("value", "lower", "upper")
    for name in ("large", "small"):
        separate = rows.filter(s=name).drop("s")
        if separate.height < max(large, small):  # resamples depend on the number of datums
            continue
        expected = ee.score(separate, **options).metrics.select("metric", *shown)
        result = keyed.filter(label_key=name).select("metric", *shown)
        assert result.equals(expected), (name, result, expected)
    sliced = ee.score(of_two(large, small), by=["s"], **options).metrics
    for table in (sliced.filter(pl.col("slice").is_not_null()), keyed.drop_nulls("label_key")):
        inside = (pl.col("lower") <= pl.col("value")) & (pl.col("value") <= pl.col("upper"))
        assert table.height >= 8
        assert table.select((inside & (pl.col("lower") < pl.col("upper"))).all()).item(), table
