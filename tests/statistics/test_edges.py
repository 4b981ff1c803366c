"""Few datums, constant values, undefined resamples, and refused options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from partitions.cases import in_buckets
from refusals import refused
from scipy.stats import binomtest

import evalengine as ee
from evalengine.outofcore import driver
from evalengine.statistics.intervals import METHODS as EVERY_METHOD
from evalengine.statistics.resamples import NOT_MOVED
from evalengine.tallies.datums import TOO_LARGE

ASKED: dict[str, Any] = {"intervals": 0.95, "draws": 200}
of_draws = pytest.mark.parametrize("method", ["percentile", "recentred", "normal", "bca"])
METHODS = [name for name in EVERY_METHOD if name != "none"]  # which is not an option
every_method = pytest.mark.parametrize(
    "method", ["percentile", "recentred", "normal", "bca", "jackknife"]
)


def queries(relevance: list[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return one document per query, relevant or not."""
    run = pl.DataFrame({"query_id": range(len(relevance)), "doc_id": 0, "score": 1.0})
    return run, run.select("query_id", "doc_id", relevance=pl.Series(relevance))


def row_of(*sides: pl.DataFrame, **options: Any) -> dict[str, Any]:
    (row,) = ee.score(*sides, **{**ASKED, **options}).metrics.iter_rows(named=True)
    return row


@pytest.mark.parametrize("method", METHODS)
def test_one_datum_has_no_interval(method: str) -> None:
    row = row_of(*queries([1]), metrics="P@1", method=method)
    assert row["value"] == 1
    assert (row["lower"], row["upper"], row["se"], row["bias"]) == (None,) * 4
    assert row["reason"].startswith("no interval: ")


@every_method
def test_one_cluster_has_no_interval(method: str) -> None:
    run, judged = queries([1, 0, 1])
    run = run.with_columns(video=pl.lit("a"))
    row = row_of(run, judged, metrics="P@1", method=method, cluster="video")
    assert (row["lower"], row["upper"], row["se"]) == (None,) * 3
    assert row["reason"].startswith("no interval: ")


@of_draws
def test_two_datums(method: str) -> None:
    """Some resamples contain only one of them, others neither."""
    row = row_of(*queries([1, 0]), metrics="P@1", method=method)
    assert (row["value"], row["upper"]) == (0.5, 1)
    assert 0 <= row["lower"] <= (0.1 if method == "recentred" else 0)  # resamples are recentred
    assert 0.2 < row["se"] < 0.5
    missing = 1 - row["draws"] / 200
    assert abs(missing - np.exp(-2)) < 4 * np.sqrt(np.exp(-2) / 200)


@every_method
@pytest.mark.parametrize("value", [0, 1])
def test_values_that_are_all_equal(method: str, value: int) -> None:
    """There is no interval: such data do not show how far off the value may be."""
    row = row_of(*queries([value] * 30), metrics="P@1", method=method)
    assert (row["value"], row["lower"], row["upper"], row["se"]) == (value, None, None, None)
    assert row["reason"] == f"no interval: {NOT_MOVED}"


@every_method
@pytest.mark.parametrize("right", [0, 5])
def test_constant_shares_have_wilsons_interval(method: str, right: int) -> None:
    row = row_of(*queries([right // 5] * 5), metrics="Success@1", method=method)
    own = binomtest(right, 5).proportion_ci(0.95, method="wilson")
    assert (row["lower"], row["upper"]) == pytest.approx((own.low, own.high), abs=1e-12)
    assert row["trials"] == 5


def test_shares_of_datums_have_wilsons_interval() -> None:
    """Single labels have it, unless weights, clusters or a method are given.

    Each is over the predicted or true datums of the label.
    """
    table = labels(6)
    result = ee.score(table, metrics=["Accuracy", "Recall", "Precision", "F1"], **ASKED).metrics
    for row in result.iter_rows(named=True):
        many = {
            "Accuracy": table.height,
            "Recall": table.filter(actual=row["label_value"] or "").height,
            "Precision": table.filter(predicted=row["label_value"] or "").height,
        }.get(row["metric"])
        if row["average"] is not None or row["metric"] == "F1":
            assert row["trials"] is None
        elif many:
            own = binomtest(round(row["value"] * many), many).proportion_ci(0.95, method="wilson")
            assert row["trials"] == many
            assert (row["lower"], row["upper"]) == pytest.approx((own.low, own.high), abs=1e-12)
    own = ee.score(table, metrics=["Accuracy", "Recall"], method="percentile", **ASKED).metrics
    assert own.filter(pl.col("value") < 1)["trials"].null_count() == own.height - 1
    assert own.filter(pl.col("value") < 1)["lower"].null_count() == 0


def labels(n_rare: int) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    actual = np.array(["a"] * 40 + ["b"] * 40 + ["rare"] * n_rare)
    predicted = np.where(rng.random(actual.size) < 0.7, actual, "a")
    return pl.DataFrame({"actual": actual, "predicted": predicted})


def test_a_label_missing_in_some_resamples() -> None:
    """It has its value in the resamples that contain it, and none in the others."""
    card = ee.score(labels(1), metrics="Recall", **ASKED)
    rows = {row["label_value"] or row["average"]: row for row in card.metrics.iter_rows(named=True)}
    assert rows["a"]["draws"] == rows["macro"]["draws"] == 200
    missing = 1 - rows["rare"]["draws"] / 200
    assert abs(missing - np.exp(-1)) < 4 * np.sqrt(np.exp(-1) / 200)


def test_a_value_missing_in_most_resamples() -> None:
    """Groups of a slice may be so small that hardly any resample has a value."""
    rng = np.random.default_rng(2)
    table = pl.DataFrame(
        {"actual": [1, 1, *[0] * 30], "score": rng.random(32), "part": ["x", "y", *["x"] * 30]}
    )
    card = ee.score(table, metrics="ROCAUC", by="part", method="percentile", **ASKED)
    whole, x, y = (row for row in card.metrics.iter_rows(named=True))
    assert whole["draws"] > x["draws"] > 100
    assert (y["value"], y["lower"], y["draws"], y["se"]) == (None, None, 0, None)
    assert "one class" in y["reason"]
    assert whole["reason"] is None


def test_a_value_missing_in_too_many_resamples() -> None:
    """An interval requires at least twenty values."""
    card = ee.score(labels(1), metrics="F2", intervals=0.95, draws=20, method="percentile")
    row = card.metrics.row(by_predicate=pl.col("label_value") == "rare", named=True)
    assert 5 < row["draws"] < 20
    assert (row["lower"], row["upper"], row["se"], row["bias"]) == (None,) * 4
    assert f"{row['draws']} of 20 resamples" in row["reason"]


def boxes(n: int) -> pl.DataFrame:
    side = dict.fromkeys(("xmin", "ymin"), 0.0) | dict.fromkeys(("xmax", "ymax"), 5.0)
    return pl.DataFrame({"datum_id": range(n), "label_value": "x", **side})


@pytest.mark.parametrize("empty", ["predictions", "ground truths"])
def test_an_empty_side(empty: str) -> None:
    predictions, truths = boxes(5).with_columns(score=0.5), boxes(5)
    sides = (
        (predictions.clear(), truths) if empty == "predictions" else (predictions, truths.clear())
    )
    card = ee.score(*sides, task="detection", metrics=["AP", "mAP"], **ASKED)
    assert set(card.metrics["metric"]) == {"AP", "mAP"}
    for row in card.metrics.iter_rows(named=True):
        if empty == "predictions":
            assert (row["value"], row["lower"], row["upper"]) == (0, None, None)
        else:
            assert (row["value"], row["lower"], row["upper"], row["draws"]) == (None, None, None, 0)
            assert row["reason"].startswith("no ")


def test_no_nan_in_any_frame() -> None:
    for method in METHODS:
        card = ee.score(labels(1), **ASKED, method=method)
        numbers = card.metrics.select(pl.col(pl.Float64))
        assert not numbers.select(pl.any_horizontal(pl.all().is_nan().any())).item()


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"intervals": 0}, {"code": "option_value", "option": "intervals", "value": 0.0}),
        ({"intervals": 150}, {"code": "option_value", "option": "intervals"}),
        ({"intervals": 100}, {"code": "option_value", "option": "intervals"}),
        ({"intervals": 1}, {"code": "option_value", "option": "intervals"}),
        ({"intervals": -0.5}, {"code": "option_value", "option": "intervals"}),
        ({"intervals": float("nan")}, {"code": "option_value", "option": "intervals"}),
        ({"draws": 100}, {"code": "option_unread", "option": "draws", "value": 100}),
        ({"seed": 3}, {"code": "option_unread", "option": "seed", "value": 3}),
        ({"cluster": "video"}, {"code": "option_unread", "option": "cluster", "value": "video"}),
        ({"method": "bca"}, {"code": "option_unread", "option": "method", "value": "bca"}),
        ({"intervals": 95, "draws": 19}, {"code": "option_value", "option": "draws", "value": 19}),
        ({"intervals": 95, "method": "bcq"}, {"code": "unknown_name", "value": "bcq"}),
    ],
)
def test_meaningless_options_are_refused(options: dict[str, Any], refusal: dict[str, Any]) -> None:
    with refused(**refusal):
        ee.score(*queries([1, 0]), metrics="P@1", **options)


def test_a_missing_cluster_column() -> None:
    with refused("column_missing", column="vidio"):
        ee.score(*queries([1, 0]), metrics="P@1", intervals=95, cluster="vidio")


def test_a_datum_of_two_clusters() -> None:
    run, judged = queries([1, 0])
    run = pl.concat([run, run.with_columns(doc_id=1)]).with_columns(video=pl.Series(list("abca")))
    with pytest.raises(ee.InputError, match="video"):
        ee.score(run, judged, metrics="P@1", intervals=95, cluster="video")


def test_ninety_five_is_95_percent() -> None:
    sides = queries([1, 0, 1, 1, 0])
    first, second = (row_of(*sides, metrics="P@1", intervals=level) for level in (95, 0.95))
    assert first == second
    narrow = row_of(*sides, metrics="P@1", intervals=50)
    assert first["lower"] < narrow["lower"] < narrow["upper"] < first["upper"]
    assert narrow["se"] == first["se"]


def test_explain_states_the_resampling() -> None:
    table = pl.DataFrame({"score": [0.1, 0.9], "actual": [False, True], "video": ["a", "b"]})
    plan = ee.explain(table, intervals=90, draws=50, cluster="video", method="normal")
    line = next(line for line in plan.splitlines() if line.startswith("intervals"))
    assert re.findall(r"\d+|'\w+'|\w+$", line) == ["90", "50", "'video'", "0", "normal"]
    assert not any(line.startswith("intervals") for line in ee.explain(table).splitlines())


def test_a_slice_of_one_cluster_has_no_interval(tmp_path: Path) -> None:
    """Other slices have one; in memory and in files."""
    run, judged = queries([1, 0, 1, 0, 0, 1])
    run = run.with_columns(video=pl.Series(list("aabccc")), place=pl.Series(list("ssttuu")))
    given: dict[str, Any] = {**ASKED, "metrics": "P@1", "by": "place", "cluster": "video"}
    for limit in ({}, {"memory_limit": "1GB", "scratch": str(tmp_path / "s")}):
        result = ee.score(run, judged, **given, **limit).metrics
        by_name = {row["slice_value"]: row for row in result.iter_rows(named=True)}
        assert (by_name["t"]["lower"], by_name["t"]["upper"]) == (0, 1)
        for name in "su":
            assert by_name[name]["lower"] is None
            assert "cluster of 'video'" in by_name[name]["reason"]


def test_resamples_without_any_of_few_datums_are_noted() -> None:
    (message,) = (
        note
        for note in ee.score(*queries([1, 0, 1]), metrics="P@1", **ASKED).notes
        if "in some resamples" in note
    )
    assert "so few" in message


def test_a_memory_limit_of_a_comparison_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, judged = queries([1, 0, 1, 1])
    other, _ = queries([1, 1, 0, 1])
    asked: dict[str, Any] = {"ground_truths": judged, "metrics": "P@1"}
    whole = ee.compare(run, other, **asked)
    in_buckets(monkeypatch)
    asked |= {"memory_limit": "1GB", "scratch": str(tmp_path / "s")}
    assert ee.compare(run, other, **asked).differences.equals(whole.differences)
    monkeypatch.setattr(driver, "BASE", 1 << 30)  # no memory for tallies is available
    with refused("memory_limit_too_small", ee.ResultError):
        ee.compare(run, other, **asked)


def test_resamples_that_overflow_are_not_called_rare() -> None:
    largest = pl.DataFrame({"target": [1.0, 2.0] * 3, "prediction": [3e154, 1.0, 1.5, 2.0, 1.5, 2]})
    card = ee.score(largest, metrics=["MSE"], task="regression", intervals=0.95, draws=200)
    (note,) = [note for note in card.notes if "no value in some resamples" in note]
    assert TOO_LARGE in note
