"""Calibration metrics: their range under chance, the debiased error, refused intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee


def table(score: Any, actual: Any, **columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"score": score, "actual": actual, **columns})


def calibrated(seed: int, n: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return table(score, rng.random(n) < score)


def values(frame: pl.DataFrame, *metrics: str, **options: Any) -> list[float]:
    card = ee.score(frame, metrics=[*metrics], task="classification", **options)
    return [card.value(name) for name in metrics]


def test_the_debiased_error_by_hand() -> None:
    score = [0.15, 0.15, 0.15, 0.15, 0.85, 0.85, 0.05]
    actual = [True, True, True, False, True, False, False]
    first = (0.75 - 0.15) ** 2 - 0.75 * 0.25 / 3
    second = (0.5 - 0.85) ** 2 - 0.5 * 0.5 / 1
    mean = (4 * first + 2 * second) / 6  # a bin of one datum contributes nothing
    assert values(table(score, actual), "RMSCE", n_bins=10) == pytest.approx([mean**0.5])


def test_equal_weights_change_nothing() -> None:
    frame = calibrated(6, 120)
    names = "ECE", "ECECalibrated", "RMSCE"
    weighed = values(frame.with_columns(weight=pl.lit(0.5)), *names)
    assert weighed == pytest.approx(values(frame, *names))
    halves = pl.concat([frame, frame]).with_columns(weight=pl.lit(1.0))
    assert values(halves, "ECECalibrated")[0] < values(frame, "ECECalibrated")[0]


def test_the_debiased_square_is_unbiased() -> None:
    """For a calibrated model its mean is 0; that of the square of ECE is not."""
    rng = np.random.default_rng(0)
    squares = []
    for _ in range(400):
        score = rng.choice([0.25, 0.75], 60)
        true = np.where(score < 0.5, 0.45, 0.75)  # off by 0.2 and by 0
        (error,) = values(table(score, rng.random(60) < true), "RMSCE", n_bins=2)
        squares.append(error**2)
    assert np.mean(squares) == pytest.approx(0.5 * 0.2**2, abs=0.004)


def test_a_calibrated_model_is_within_its_range() -> None:
    beyond = []
    for seed in range(120):
        ece, limit = values(calibrated(seed, 150), "ECE", "ECECalibrated")
        beyond.append(ece > limit)
    assert 0.005 < np.mean(beyond) < 0.11  # nominal 0.05
    rng = np.random.default_rng(1)
    score = rng.random(150)
    ece, limit = values(table(score, rng.random(150) < score**3), "ECE", "ECECalibrated")
    assert ece > limit


def test_the_range_is_independent_of_order_and_slices() -> None:
    frame = calibrated(3, 90).with_columns(part=pl.int_range(90) % 2)
    whole = values(frame, "ECECalibrated")
    assert values(frame.sample(fraction=1, shuffle=True, seed=1), "ECECalibrated") == whole
    card = ee.score(frame, metrics=["ECECalibrated"], task="classification", by=["part"])
    for part in (0, 1):
        own = values(frame.filter(part=part).drop("part"), "ECECalibrated")
        assert [card.value("ECECalibrated", slice="part", slice_value=str(part))] == own


def test_bca_of_calibration_is_refused_with_a_reason() -> None:
    card = ee.score(
        calibrated(4, 80), metrics=["ECE", "MCE", "RMSCE"], task="classification", intervals=0.95,
        method="bca", draws=40,
    )  # fmt: skip
    assert card.metrics["lower"].null_count() == 3
    assert card.metrics["reason"].str.contains("bca").all()
    assert any(one.code == "no_interval" for one in card.findings)


@pytest.mark.parametrize("method", [None, "bca", "jackknife", "normal"])
def test_the_largest_error_has_no_interval(method: str | None) -> None:
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"datum_id": range(50), "target": rng.normal(0, 1, 50)})
    runs = [frame.with_columns(prediction=pl.col("target") + rng.normal(0, 1, 50)) for _ in "ab"]
    asked: dict[str, Any] = {"metrics": ["MaxError", "MAE"], "draws": 40}
    card = ee.score(runs[0], task="regression", intervals=0.95, method=method, **asked)
    largest, mean = (
        card.metrics.row(by_predicate=pl.col("metric") == m, named=True) for m in asked["metrics"]
    )
    assert (largest["lower"], largest["se"]) == (None, None)
    assert largest["reason"]
    assert mean["lower"] is not None
    if method is None:
        result = ee.compare(*runs, task="regression", **asked).differences
        assert result.filter(metric="MaxError")["lower"].to_list() == [None]
        assert result.filter(metric="MaxError")["p"][0] is not None
        assert result.filter(metric="MAE")["lower"][0] is not None
