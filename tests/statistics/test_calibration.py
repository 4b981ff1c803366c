"""Calibration of scores, compared with bins filled row by row and scikit-learn's isotonic fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.test_parts import CASES
from partitions.cases import in_buckets, next_seed, write_sides
from polars.testing import assert_frame_equal
from refusals import refused
from sizes import tune
from sklearn.isotonic import IsotonicRegression
from unsliced_cases import plain

import evalengine as ee
from evalengine.metrics.thresholds import (
    ScoredSegments,
    bins_of,
    ece_of,
    fitted_isotonic,
    fitted_temperature,
    heated,
)
from evalengine.tallies.datums import half_of
from evalengine.tasks.encoding import draw_keys

Array = np.ndarray[Any, Any]


def segments_of(score: Array, right: Array) -> ScoredSegments:
    """Aggregate rows into distinct scores, descending."""
    distinct, place = np.unique(score, return_inverse=True)
    n = np.bincount(place).astype(np.float64)
    return ScoredSegments(
        np.array([0, distinct.size]), distinct[::-1], np.bincount(place, right)[::-1], n[::-1]
    )


def slow_ece(score: Array, right: Array, n_bins: int) -> tuple[float, float]:
    """Compute ECE and MCE row by row."""
    place = [max(i for i in range(n_bins) if one >= i / n_bins) for one in score]
    gaps, share = [], []
    for i in set(place):
        inside = np.array(place) == i
        gaps.append(abs(right[inside].mean() - score[inside].mean()))
        share.append(inside.mean())
    return float(np.dot(gaps, share)), max(gaps)


def random_rows(seed: int) -> tuple[Array, Array]:
    """Return random scores with ties and both extremes; higher scores are more often right."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    score = np.round(rng.random(n), int(rng.integers(1, 4)))
    return score, (rng.random(n) < score ** rng.choice([0.5, 1.0, 3.0])).astype(np.float64)


@pytest.mark.parametrize("seed", range(30))
def test_fits(seed: int) -> None:
    score, right = random_rows(seed)
    told = segments_of(score, right)
    fit = fitted_isotonic(told)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(score, right)
    at = np.linspace(-0.1, 1.1, 61)
    for some in (score, at):
        np.testing.assert_allclose(fit.of(some), theirs.predict(some), rtol=0, atol=1e-12)
    n_bins = seed % 20 + 1
    ece, mce = slow_ece(score, right, n_bins)
    assert ece_of([told], n_bins) == pytest.approx(ece, abs=1e-12)
    assert bins_of(told, n_bins).largest[0] == pytest.approx(mce, abs=1e-12)
    temperature = fitted_temperature(told)
    if np.isnan(temperature):
        return

    def loss(t: float) -> float:
        p = heated(score, t)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(right > 0, np.log(p), np.log1p(-p))
        return float(-logs.sum())

    near = temperature * np.exp(np.linspace(-0.5, 0.5, 101))
    assert loss(temperature) <= min(map(loss, near)) + 1e-9


def test_fits_that_do_not_exist() -> None:
    for score, right in (([0.2, 0.8], [1.0, 1.0]), ([0.2, 0.8], [1.0, 0.0]), ([0.5], [1.0])):
        assert np.isnan(fitted_temperature(segments_of(np.array(score), np.array(right))))
    rng = np.random.default_rng(0)
    score = rng.random(4000)
    sharp = (rng.random(4000) < heated(score, 0.5)).astype(np.float64)
    assert fitted_temperature(segments_of(score, sharp)) == pytest.approx(0.5, abs=0.05)
    assert np.isnan(bins_of(segments_of(np.array([0.5, 1.5]), np.ones(2)), 5).expected[0])


@pytest.mark.parametrize("name", ["detection", "keypoints"])
def test_metrics_of_detections(name: str) -> None:
    """Rows of the frame of outcomes are binned one by one."""
    case = plain(name, 4)
    given = {**case.options, **case.tables, "task": "detection", "n_bins": 4}
    card = ee.score(*case.sides, **given, metrics=["ECE", "MCE", "Reliability", "Outcomes"])
    rows = card.frame("outcomes").filter(
        pl.col("iou_threshold").is_between(0.499, 0.501), pl.col("outcome").str.contains("^[tf]p")
    )
    assert rows.height
    errors = card.metrics.filter(pl.col("slice").is_null())
    for value in [None, *rows["label_value"].unique().to_list()]:
        own = rows if value is None else rows.filter(pl.col("label_value") == value)
        score = own["score"].cast(pl.Float64).to_numpy()
        right = (own["outcome"] == "tp").to_numpy().astype(np.float64)
        expected = dict(zip(("ECE", "MCE"), slow_ece(score, right, 4), strict=True))
        of = errors.filter(
            pl.col("label_value").eq_missing(pl.lit(value, errors["label_value"].dtype))
        )
        for metric, number in expected.items():
            found = of.filter(pl.col("metric") == metric)
            assert found["value"].item() == pytest.approx(number, abs=1e-12), (metric, value)
            assert found["support"].item() == own.height
        shares = of.filter(pl.col("metric") == "Reliability", pl.col("statistic") == "share")
        assert shares["value"].sum() == pytest.approx(1.0)


def test_held_out_errors() -> None:
    rng = np.random.default_rng(1)
    score = np.round(rng.random(300), 2)
    right = rng.random(300) < score**2
    table = pl.DataFrame({"actual": right, "score": score})
    result = ee.find_calibration(table, n_bins=5, draws=20)
    row = result.frame.row(0, named=True)
    assert (row["n"], row["right"]) == (300.0, right.mean())
    assert row["ece"] == pytest.approx(slow_ece(score, right.astype(float), 5)[0], abs=1e-12)
    half = half_of(draw_keys(pl.Series(np.arange(300)), pl.DataFrame(), None), 0)
    made = {"isotonic": np.empty(300), "temperature": np.empty(300)}
    for mine in (half, ~half):
        other = segments_of(score[~mine], right[~mine])
        made["isotonic"][mine] = fitted_isotonic(other).of(score[mine])
        made["temperature"][mine] = heated(score[mine], fitted_temperature(other))
    for fit, scores in made.items():
        expected = slow_ece(scores, right.astype(float), 5)[0]
        assert row[f"held_out_ece_{fit}"] == pytest.approx(expected, abs=1e-12)
    assert row["ece_isotonic"] < 1e-12 < row["held_out_ece_isotonic"]
    assert row["lower"] < row["ece"] < row["upper"]
    assert result.reliability["n"].sum() == 300
    assert result.isotonic["value"].is_sorted()
    with refused("option_unread", option="metrics"):
        ee.find_calibration(table, metrics=["ECE"])


@pytest.mark.parametrize("name", ["detection", "classification"])
def test_of_buckets_and_saved_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, task = plain(name, next_seed()), CASES[name][0]
    sides = write_sides(case, tmp_path, files=2)
    given = {**case.options, **case.tables, "task": task}
    whole = ee.find_calibration(*sides, **given, draws=20)
    ee.score(*sides, **given).save(tmp_path / "run")
    saved = ee.find_calibration(tmp_path / "run", draws=20)
    assert_frame_equal(whole.frame, saved.frame, check_exact=True)
    in_buckets(monkeypatch)
    tune(calibrated_scores=7)  # scores are stored in files, a few at a time
    bounded = ee.find_calibration(
        *sides, **given, draws=20, memory_limit="1GB", scratch=str(tmp_path / "s")
    )
    assert_frame_equal(whole.frame, bounded.frame, check_exact=True)
    for frame in ("reliability", "isotonic"):
        assert_frame_equal(getattr(whole, frame), getattr(bounded, frame), check_exact=True)


def test_counts_of_weighted_rows_are_named_weight() -> None:
    table = pl.DataFrame({"actual": [0, 1] * 20, "score": np.linspace(0, 1, 40), "weight": 2.5})
    for rows, name in ((table, "weight"), (table.drop("weight"), "rows")):
        result = ee.find_calibration(rows, draws=20)
        assert name in str(result).splitlines()[2].split()
