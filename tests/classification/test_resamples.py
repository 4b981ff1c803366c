"""Blocks of resamples, and Wilson's and DeLong's intervals, for classification."""

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
    """Make random tables of a shape, and their options."""
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
    guesses = pl.DataFrame({"datum_id": np.repeat(ids, 4), "label_value": np.tile(names, n)})
    guesses = guesses.with_columns(score=pl.Series(rng.dirichlet(np.ones(4), n).ravel()))
    options: dict[str, Any] = {}
    if shape == "several":
        extra = truth.with_columns(label_value=pl.Series(names[rng.integers(0, 4, n)]))
        truth = pl.concat([truth, extra]).unique(maintain_order=True)
        options["multilabel"] = True
    elif shape == "keys":
        truth, guesses = (one.with_columns(label_key=pl.lit("k1")) for one in (truth, guesses))
        other = [one.with_columns(label_key=pl.lit("k2")) for one in (truth, guesses)]
        truth, guesses = pl.concat([truth, other[0].head(40)]), pl.concat([guesses, other[1]])
    elif shape == "sliced":
        truth = truth.with_columns(
            place=pl.Series(np.array(["x", "y", None])[rng.integers(0, 3, n)])
        )
        options["by"] = ["place"]
    if shape != "probabilities":  # not all labels are listed by every datum
        guesses = guesses.sample(fraction=0.8, seed=seed)
    return guesses, truth, options


@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_match_single_resamples(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of resamples gives the same numbers as one resample at a time."""
    one, other, options = tables(shape, 3)
    wanted = EVERY
    if shape == "probabilities":
        wanted = [*EVERY, "LogLoss", "Brier", "ECE", "MCE"]
    if shape == "several":
        single = ("MCC", "CohenKappa", "Balanced", "TopK", "mROCAUCOneVsOne")
        wanted = [name for name in wanted if not name.startswith(single)]
    if shape in ("binary", "ties", "weighted"):
        wanted = [name for name in wanted if name not in ("TopKAccuracy", "mROCAUCOneVsOne")]
    settings = {"task": "classification", "intervals": 0.9, "draws": 20, "seed": 5, **options}
    blocks = ee.score(one, other, metrics=wanted, **settings).metrics
    refused = replace(get("classification"), drawn=None)
    monkeypatch.setattr("evalengine.evaluation.planner.tasks.get", lambda name: refused)
    single_resamples = ee.score(one, other, metrics=wanted, **settings).metrics
    assert blocks["lower"].is_not_null().any()
    assert_frame_equal(blocks, single_resamples, abs_tol=1e-9, rel_tol=1e-9)


@pytest.mark.parametrize("shape", ["binary", "labels", "weighted", "several"])
def test_row_order_does_not_matter(shape: str) -> None:
    one, other, options = tables(shape, 8)
    settings = {"task": "classification", "intervals": 0.9, "draws": 40, **options}
    plain = ee.score(one, other, threads=1, **settings).metrics
    mixed = [
        table if table is None else table.sample(fraction=1, shuffle=True, seed=2)
        for table in (one, other)
    ]
    assert_frame_equal(ee.score(*mixed, threads=2, **settings).metrics, plain, check_exact=True)


def test_wilson() -> None:
    """Bounds match statsmodels 0.14's proportion_confint(method="wilson")."""
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
    """The variance matches its definition over all pairs of a positive and a negative."""
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
