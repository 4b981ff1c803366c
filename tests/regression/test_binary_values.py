"""Notes on zeros and ones that are scored as measurements."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import evalengine as ee


@pytest.mark.parametrize(
    ("truths", "predictions", "asked", "noted"),
    [
        ([0, 1, 1], [1, 1, 0], {}, True),
        ([0.0, 1.0, 1.0], [1.0, 1.0, 1.0], {}, True),
        ([0, 1, 2], [1, 1, 0], {}, False),
        ([0, 1, 1], [0.5, 0.2, 0.9], {}, False),
        ([0, 1, 1], [1, 1, 0], {"task": "regression"}, False),
        ([0, 1, 1], [1, 1, 0], {"metrics": ["MAE"]}, False),
    ],
)
def test_zeros_and_ones_scored_as_measurements_are_noted(
    truths: list[float], predictions: list[float], asked: dict[str, Any], noted: bool
) -> None:
    table = pl.DataFrame({"y": truths, "y_hat": predictions})
    card = ee.score(table, **asked)
    assert card.task == "regression"
    assert ("task_inferred" in {one.code for one in card.findings}) == noted
    ids = pl.Series("datum_id", [1, 2, 3])
    sides = [table.select(ids, name) for name in ("y_hat", "y")]
    card = ee.score(*sides, **asked)
    assert ("task_inferred" in {one.code for one in card.findings}) == noted
