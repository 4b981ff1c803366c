"""mAP corrected for small sets, compared with scoring half-samples one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee
from evalengine.kernels.datums import swap_bits
from evalengine.tasks.encoding import hashes_of

IMAGES, PAIRS, SEED = 24, 20, 3
T_22, NORMAL = 1.7171443744, 1.6448536270  # quantiles at 0.95
ASKED: dict[str, Any] = {
    "task": "detection", "iou_thresholds": [0.5, 0.7], "iou_thresholds_to_return": [0.5],
    "metrics": ["mAP", "mAPAveragedOverIOUs", "AP", "APAveragedOverIOUs"],
}  # fmt: skip
MEANS = {"mAP": "AP", "mAPAveragedOverIOUs": "APAveragedOverIOUs"}


def tables() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return boxes of three labels, one of them rare; no scores are equal."""
    rng = np.random.default_rng(1)
    n = 90
    label = np.where(np.arange(n) < 3, 2, rng.integers(0, 2, n))
    left = 100.0 * np.arange(n)
    truths = pl.DataFrame({
        "datum_id": rng.integers(0, IMAGES, n), "label_value": label,
        "xmin": left, "ymin": 0.0, "xmax": left + 40, "ymax": 40.0,
    })  # fmt: skip
    predictions = pl.concat(
        [truths, truths.sample(40, seed=1).with_columns(ymin=500.0, ymax=540.0)]
    )
    shift = rng.uniform(0, 14, predictions.height)
    predictions = predictions.with_columns(
        xmin=pl.col("xmin") + shift, xmax=pl.col("xmax") + shift,
        score=pl.Series(rng.permutation(predictions.height) / predictions.height),
    )  # fmt: skip
    video = pl.col("datum_id") // 2
    return predictions.with_columns(video=video), truths.with_columns(video=video)


@pytest.mark.parametrize("cluster", [None, "video"])
def test_halves_are_scored_one_by_one(cluster: str | None) -> None:
    predictions, truths = tables()
    made = ee.score(
        predictions, truths, **ASKED, intervals=0.9, draws=200, seed=SEED, cluster=cluster
    ).metrics
    ids = np.arange(IMAGES)
    keys = hashes_of(pl.Series(ids) if cluster is None else pl.Series(ids // 2).cast(pl.String))
    bits = swap_bits(keys, SEED, 0, PAIRS)
    halves: dict[tuple[str, int], list[float]] = {}
    for half in np.concatenate([bits, 1 - bits], axis=1).T:
        inside = pl.col("datum_id").is_in(ids[half == 1].tolist())
        one = ee.score(predictions.filter(inside), truths.filter(inside), **ASKED).metrics
        for row in one.filter(pl.col("label_value").is_not_null()).iter_rows(named=True):
            if row["value"] is not None:
                halves.setdefault((row["metric"], row["label_value"]), []).append(row["value"])
    for mean, of_label in MEANS.items():
        row = made.row(by_predicate=pl.col("metric") == mean, named=True)
        labels = made.filter(metric=of_label)
        gaps = [
            np.mean(halves[of_label, label]) - value
            for label, value in labels.select("label_value", "value").iter_rows()
        ]
        excess = np.mean(gaps) / (2 ** (2 / 3) - 1)
        value, corrected = row["value"], row["value"] - excess
        assert row["corrected"] == pytest.approx(corrected, abs=1e-12)
        scaled = row["se"] * max(1, (1 - corrected) / (1 - value))
        wider = math.sqrt(scaled**2 + (excess / 4) ** 2) / row["se"]
        if cluster is None:  # Student's t of 23 images; 12 clusters have wider percentiles
            wider *= T_22 / NORMAL
        for end in ("lower", "upper"):
            expected = corrected + wider * (row[end] - value)
            assert 0 < row[end] < 1
            assert row[f"corrected_{end}"] == pytest.approx(expected, abs=1e-9)
    others = made.filter(~pl.col("metric").is_in([*MEANS]))
    assert others["corrected"].null_count() == others.height


def test_a_label_of_a_single_object() -> None:
    """An object is in one half of each pair; so is a label with two objects in one image."""
    predictions, truths = tables()
    some = pl.col("label_value") < 2
    sides = [
        pl.concat([side.filter(some), side.filter(~some).head(1)]) for side in (predictions, truths)
    ]
    row = ee.score(*sides, **ASKED, intervals=0.9, draws=100).metrics.row(0, named=True)
    assert row["metric"] == "mAP"
    assert row["corrected"] is not None


def test_perfect_boxes_have_none() -> None:
    _, truths = tables()
    row = ee.score(truths.with_columns(score=0.5), truths, **ASKED, intervals=0.9).metrics.row(
        0, named=True
    )
    assert (row["value"], row["lower"]) == (1.0, None)
    assert (row["corrected"], row["corrected_lower"], row["corrected_upper"]) == (None,) * 3


def test_without_resamples_there_is_none() -> None:
    made = ee.score(*tables(), **ASKED, intervals=0.9, method="jackknife").metrics
    assert made["corrected"].null_count() == made.height
