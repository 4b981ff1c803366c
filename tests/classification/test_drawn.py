"""Many draws at once, Wilson's and DeLong's intervals, of classification."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace
from polars.testing import assert_frame_equal
from scipy import stats

import evalengine as ee
from evalengine import metrics
from evalengine.tasks import get

EVERY = [
    name
    for name, one in metrics.all_metrics("classification").items()
    if one.frame == "metrics" and "probabilities" not in one.needs
]
SHAPES = ("labels", "several", "weighted", "keys", "sliced", "ties", "probabilities")


def tables(shape: str, seed: int) -> tuple[pl.DataFrame, pl.DataFrame | None, dict[str, Any]]:
    """Random tables of a shape, and options."""
    rng = np.random.default_rng(seed)
    n = 60
    if shape in ("binary", "ties", "weighted"):
        score = rng.random(n).round(1 if shape == "ties" else 6)
        table = pl.DataFrame(
            {"datum_id": np.arange(n), "score": score, "actual": rng.random(n) < 0.4}
        )
        if shape == "weighted":
            weight = rng.exponential(size=n) * (rng.random(n) < 0.9)
            table = table.with_columns(weight=pl.Series(weight))
        return table, None, {}
    names = np.array(["a", "b", "c", "d"])
    ids = np.array([f"id-{i}" for i in range(n)])
    truth = pl.DataFrame({"datum_id": ids, "label_value": names[rng.integers(0, 3, n)]})
    found = pl.DataFrame({"datum_id": np.repeat(ids, 4), "label_value": np.tile(names, n)})
    found = found.with_columns(score=pl.Series(rng.dirichlet(np.ones(4), n).ravel()))
    options: dict[str, Any] = {}
    if shape == "several":
        extra = truth.with_columns(label_value=pl.Series(names[rng.integers(0, 4, n)]))
        truth = pl.concat([truth, extra]).unique(maintain_order=True)
        options["multilabel"] = True
    elif shape == "keys":
        truth, found = (one.with_columns(label_key=pl.lit("k1")) for one in (truth, found))
        other = [one.with_columns(label_key=pl.lit("k2")) for one in (truth, found)]
        truth, found = pl.concat([truth, other[0].head(40)]), pl.concat([found, other[1]])
    elif shape == "sliced":
        truth = truth.with_columns(
            place=pl.Series(np.array(["x", "y", None])[rng.integers(0, 3, n)])
        )
        options["by"] = ["place"]
    if shape != "probabilities":  # not all labels are listed by every datum
        found = found.sample(fraction=0.8, seed=seed)
    return found, truth, options


@pytest.mark.parametrize("shape", SHAPES)
def test_a_block_of_draws_is_its_draws(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of many draws at once against those of one draw after the other."""
    one, other, options = tables(shape, 3)
    wanted = EVERY
    if shape == "probabilities":
        wanted = [*EVERY, "LogLoss", "Brier", "ECE", "MCE"]
    if shape == "several":
        single = ("MCC", "CohenKappa", "Balanced", "TopK", "mROCAUCOneVsOne")
        wanted = [name for name in wanted if not name.startswith(single)]
    if shape in ("binary", "ties", "weighted"):
        wanted = [name for name in wanted if name not in ("TopKAccuracy", "mROCAUCOneVsOne")]
    asked = {"task": "classification", "intervals": 0.9, "draws": 20, "seed": 5, **options}
    together = ee.score(one, other, metrics=wanted, **asked).metrics
    refused = replace(get("classification"), drawn=None)
    monkeypatch.setattr("evalengine.evaluation.planner.tasks.get", lambda name: refused)
    apart = ee.score(one, other, metrics=wanted, **asked).metrics
    assert together["lower"].is_not_null().any()
    assert_frame_equal(together, apart, abs_tol=1e-9, rel_tol=1e-9)


@pytest.mark.parametrize("shape", ["binary", "labels", "weighted", "several"])
def test_the_order_of_rows_is_of_no_account(shape: str) -> None:
    one, other, options = tables(shape, 8)
    asked = {"task": "classification", "intervals": 0.9, "draws": 40, **options}
    plain = ee.score(one, other, threads=1, **asked).metrics
    mixed = [
        table if table is None else table.sample(fraction=1, shuffle=True, seed=2)
        for table in (one, other)
    ]
    assert_frame_equal(ee.score(*mixed, threads=2, **asked).metrics, plain, check_exact=True)


def test_wilson() -> None:
    """Ends as statsmodels 0.14's proportion_confint(method="wilson") has them."""
    table = pl.DataFrame(
        {"actual": [True] * 50 + [False] * 50, "predicted": [True] * 40 + [False] * 55 + [True] * 5}
    )
    card = ee.score(
        table, intervals=0.95, method="wilson", metrics=["Accuracy", "Precision", "Recall"]
    )
    rows = card.metrics
    accuracy = rows.filter(metric="Accuracy").row(0, named=True)
    assert (accuracy["lower"], accuracy["upper"]) == pytest.approx((0.7672, 0.9069), abs=5e-5)
    recall = rows.filter(pl.col("metric") == "Recall", pl.col("label_value")).row(0, named=True)
    assert (recall["lower"], recall["upper"]) == pytest.approx(
        (0.6696, 0.8876), abs=5e-5
    )  # 40 of 50
    macro = rows.filter(metric="Recall", average="macro").row(0, named=True)
    assert macro["lower"] is None
    assert "proportions" in macro["reason"]


@pytest.mark.parametrize("seed", range(4))
def test_delong_is_the_variance_of_placements(seed: int) -> None:
    """Against the definition: every pair of a positive and a negative looked at."""
    rng = np.random.default_rng(seed)
    score, actual = rng.random(50).round(seed % 2 + 1), rng.random(50) < 0.4
    card = ee.score(
        pl.DataFrame({"score": score, "actual": actual}),
        metrics=["ROCAUC"],
        intervals=0.95,
        method="delong",
    )
    gap = score[actual][:, None] - score[~actual]
    won = (gap > 0) + (gap == 0) / 2
    parts = won.mean(axis=1), won.mean(axis=0)
    se = sum(part.var(ddof=1) / part.size for part in parts) ** 0.5
    row = card.metrics.row(0, named=True)
    assert row["value"] == pytest.approx(won.mean())
    assert row["se"] == pytest.approx(se)
    area = row["value"]
    t = stats.t.ppf(0.975, min(won.shape) - 1)
    odds = np.log(area / (1 - area)) + t * se / (area * (1 - area))
    assert row["upper"] == pytest.approx(1 / (1 + np.exp(-odds)))
