"""Correlations and concordance, compared with SciPy, repeated rows and all pairs."""

from __future__ import annotations

import os

import numpy as np
import polars as pl
import pytest
from scipy import stats

import evalengine as ee

N = int(os.environ.get("EVALENGINE_EXAMPLES", "6"))
NAMES = ["Pearson", "Spearman", "Kendall", "CIndex", "Concordance"]


def random_table(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    n = int(rng.choice([2, 3, 6, 40]))
    target = rng.normal(size=n).round(int(rng.choice([0, 1, 8])))
    predicted = (target * rng.choice([-1, 1]) + rng.normal(size=n)).round(int(rng.choice([0, 8])))
    return pl.DataFrame({"prediction": predicted, "target": target,
                         "weight": rng.integers(1, 4, n).astype(float)})  # fmt: skip


def values(table: pl.DataFrame, names: list[str] = NAMES) -> dict[str, float | None]:
    rows = ee.score(table, task="regression", metrics=names).metrics
    return dict(rows.select("metric", "value").iter_rows())


def by_pairs(target: np.ndarray, predicted: np.ndarray) -> float:
    """Compute Harrell's C over all pairs."""
    true_order = np.sign(target[:, None] - target)
    order = np.sign(predicted[:, None] - predicted)
    greater = true_order > 0
    return float((order[greater] > 0).sum() + (order[greater] == 0).sum() / 2) / greater.sum()


@pytest.mark.filterwarnings("ignore")
def test_against_scipy() -> None:
    for seed in range(N):
        table = random_table(seed)
        target, predicted = table["target"].to_numpy(), table["prediction"].to_numpy()
        ours = values(table.drop("weight"))
        expected = {
            "Pearson": stats.pearsonr(target, predicted).statistic,
            "Spearman": stats.spearmanr(target, predicted).statistic,
            "Kendall": stats.kendalltau(target, predicted).statistic,
        }
        for name, value in expected.items():
            if np.isnan(value):
                assert ours[name] is None
            else:
                assert ours[name] == pytest.approx(value, rel=0, abs=1e-15), (seed, name)
        if np.ptp(target) > 0:
            assert ours["CIndex"] == pytest.approx(by_pairs(target, predicted), rel=1e-14)
        else:
            assert ours["CIndex"] is None
        difference = predicted.mean() - target.mean()
        bottom = predicted.var() + target.var() + difference**2
        if bottom:
            lin = 2 * np.cov(target, predicted, ddof=0)[0, 1] / bottom
            assert ours["Concordance"] == pytest.approx(lin, rel=1e-12, abs=1e-14)


def test_integer_weights_equal_repeated_rows() -> None:
    for seed in range(N):
        table = random_table(seed)
        times = table["weight"].cast(pl.Int64).to_numpy()
        repeated = table.drop("weight")[np.repeat(np.arange(table.height), times)]
        ours, theirs = values(table), values(repeated)
        for name, value in theirs.items():
            assert ours[name] == (value if value is None else pytest.approx(value, rel=1e-12))


def test_within_groups() -> None:
    rng = np.random.default_rng(1)
    table = pl.DataFrame(
        {
            "group_id": rng.integers(0, 6, 40),
            "target": rng.normal(size=40),
            "prediction": rng.normal(size=40),
        }
    )
    single = pl.DataFrame({"group_id": [9], "target": [1.0], "prediction": [2.0]})
    each = [
        stats.spearmanr(one["target"], one["prediction"]).statistic
        for one in table.partition_by("group_id")
    ]
    (value,) = values(pl.concat([table, single]), ["GroupSpearman"]).values()
    assert value == pytest.approx(np.mean(each), rel=1e-12)


def test_many_rows_in_the_opposite_order() -> None:
    """Counts of pairs are exact if they fit a double."""
    n = 20_000
    table = pl.DataFrame({"target": np.arange(n) / 2, "prediction": np.arange(n)[::-1] / 2})
    assert values(table, ["Kendall", "CIndex", "Spearman"]) == {
        "Kendall": -1.0,
        "CIndex": 0.0,
        "Spearman": -1.0,
    }
