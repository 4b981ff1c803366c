"""Groups and targets of very different sizes: each has the intervals that it has by itself."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import evalengine as ee

NAMES = ["MAE", "MSE", "R2", "Pearson"]


def of_two(large: int, small: int) -> pl.DataFrame:
    """Rows of two groups, one at 1e9 and one at 1e-5."""
    rng = np.random.default_rng(5)
    size = np.repeat([1e9, 1e-5], [large, small])
    target = rng.normal(size=size.size) * size
    found = target + rng.normal(size=size.size) * size / 10
    group = np.repeat(["large", "small"], [large, small])
    return pl.DataFrame({"prediction": found, "target": target, "s": group})


@pytest.mark.parametrize(("large", "small"), [(1000, 8), (8, 60)])
def test_small_groups_beside_large_ones(large: int, small: int) -> None:
    rows = of_two(large, small).with_columns(
        datum_id=pl.concat([pl.int_range(large, eager=True), pl.int_range(small, eager=True)])
    )
    options = {"task": "regression", "metrics": NAMES, "intervals": 0.9, "draws": 100}
    keyed = ee.score(rows.rename({"s": "label_key"}), **options).metrics
    shown = ("value", "lower", "upper")
    for name in ("large", "small"):
        alone = rows.filter(s=name).drop("s")
        if alone.height < max(large, small):  # the draws of a datum are those of its number
            continue
        expected = ee.score(alone, **options).metrics.select("metric", *shown)
        found = keyed.filter(label_key=name).select("metric", *shown)
        assert found.equals(expected), (name, found, expected)
    sliced = ee.score(of_two(large, small), by=["s"], **options).metrics
    for table in (sliced.filter(pl.col("slice").is_not_null()), keyed.drop_nulls("label_key")):
        inside = (pl.col("lower") <= pl.col("value")) & (pl.col("value") <= pl.col("upper"))
        assert table.height >= 8
        assert table.select((inside & (pl.col("lower") < pl.col("upper"))).all()).item(), table
