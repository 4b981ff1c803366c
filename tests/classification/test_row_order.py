"""No number depends on the order of rows, to the last bit, or leaves its range."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import evalengine as ee

SCORED = [
    "Accuracy", "Precision", "Recall", "F1", "Jaccard", "BalancedAccuracy", "MCC", "CohenKappa",
    "CohenKappaLinear", "HammingLoss", "Counts", "TopKAccuracy", "ROCAUC", "mROCAUC",
    "mROCAUCOneVsOne", "PartialROCAUC", "AP", "mAP", "ThresholdAtMaxF", "ThresholdAtFPR",
    "LogLoss", "Brier", "ECE", "MCE", "Reliability", "PrecisionRecallCurve", "ROCCurve",
    "DETCurve", "ConfusionMatrix",
]  # fmt: skip


def long_tables(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make probabilities of three labels that tie only between datums, and weighted truths."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    shares = rng.permuted(rng.choice([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2]], n), axis=1)
    predictions = pl.DataFrame(
        {
            "datum_id": np.repeat(np.arange(n), 3),
            "label_value": np.tile(["a", "b", "c"], n),
            "score": shares.ravel(),
        }
    )
    truths = pl.DataFrame(
        {
            "datum_id": np.arange(n),
            "label_value": rng.choice(["a", "b", "c"], n),
            "weight": rng.random(n) * 10.0 ** rng.integers(-6, 6, n),
            "part": rng.choice(["x", "y"], n),
        }
    )
    return predictions, truths


def one_table(seed: int) -> tuple[pl.DataFrame]:
    """Make scores of one label with some ties."""
    rng = np.random.default_rng(seed)
    n = 300
    rows = {
        "actual": rng.integers(0, 2, n),
        "score": rng.random(n).round(int(rng.integers(1, 9))),
        "weight": rng.random(n) * 10.0 ** rng.integers(-6, 6, n),
        "part": rng.choice(["x", "y"], n),
    }
    return (pl.DataFrame(rows),)


OF_ONE = ["Accuracy", "ROCAUC", "AP", "LogLoss", "Brier", "ECE", "ROCCurve", "Counts"]


@pytest.mark.parametrize(("tables", "names"), [(long_tables, SCORED), (one_table, OF_ONE)])
@pytest.mark.parametrize("seed", range(12))
def test_shuffled_rows_give_the_same_bits(seed: int, tables: Any, names: list[str]) -> None:
    sides = tables(seed)
    if seed % 2:
        sides = [side.drop("weight", strict=False) for side in sides]
    options = {"metrics": names, "k": [1, 2], "by": ["part"], "task": "classification"}
    shuffled = [side.sample(fraction=1, shuffle=True, seed=seed + 1) for side in sides]
    card, other = ee.score(*sides, **options), ee.score(*shuffled, **options)
    for name in card.frames:
        assert_frame_equal(
            other.frame(name), card.frame(name), check_exact=True, check_row_order=False
        )


@pytest.mark.parametrize("seed", range(12))
def test_shares_of_weights_stay_in_their_range(seed: int) -> None:
    """Remainders of sums are exact differences: no share exceeds 1, no count is negative."""
    predictions, truths = long_tables(seed)
    card = ee.score(predictions, truths, metrics=SCORED, k=[3], task="classification")
    curves = card.curves
    assert curves.select(pl.col("tp", "fp", "fn", "tn").min()).min_horizontal().item() >= 0
    shares = curves.select(pl.col("fpr", "recall", "precision", "accuracy").max())
    assert shares.max_horizontal().item() <= 1
    last_points = curves.filter(curve="ROCCurve").group_by("label_value").agg(pl.col("fpr").max())
    assert last_points["fpr"].to_list() == [1.0] * 3
    assert card.value("TopKAccuracy", k=3) == 1.0
    counts = card.metrics.filter(metric="Counts")
    assert counts["value"].min() >= 0
