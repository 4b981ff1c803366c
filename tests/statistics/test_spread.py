"""Spread of values over groups: definitions, equal groups, gates."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee
from evalengine.cli import main


def table(n: int = 300, seed: int = 0, bias: float = 0.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.choice(["x", "y", "z"], n, p=[0.5, 0.3, 0.2])
    actual = rng.random(n) < 0.4
    right = rng.random(n) < np.where(group == "z", 0.8 - bias, 0.8)
    return pl.DataFrame(
        {
            "datum_id": np.arange(n),
            "actual": actual,
            "predicted": np.where(right, actual, ~actual),
            "group": group,
            "place": np.arange(n) // 10,
        }
    )


def rates(rows: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return selection rate, recall and false-positive rate of True by group."""
    found: dict[str, dict[str, float]] = {"SelectionRate": {}, "Recall": {}, "FPR": {}}
    for group in rows["group"].unique():
        own = rows.filter(group=group)
        found["SelectionRate"][group] = own["predicted"].mean()
        found["Recall"][group] = own.filter("actual")["predicted"].mean()
        found["FPR"][group] = own.filter(~pl.col("actual"))["predicted"].mean()
    return found


FAIR = ["DemographicParity", "EqualisedOdds", "EqualOpportunity"]


@pytest.mark.parametrize("seed", range(5))
def test_differences_and_ratios_are_those_of_the_definitions(seed):
    rows = table(seed=seed, bias=0.2)
    frame = ee.score(rows, metrics=FAIR, spread="group", draws=20).spread.filter(label_value=True)
    found = rates(rows)
    for metric, values in found.items():
        row = frame.row(by_predicate=pl.col("metric") == metric, named=True)
        low, high = min(values.values()), max(values.values())
        assert (row["lowest"], row["highest"]) == pytest.approx((low, high))
        assert (row["difference"], row["ratio"]) == pytest.approx((high - low, low / high))
        assert values[row["lowest_group"]] == pytest.approx(low)
        assert values[row["highest_group"]] == pytest.approx(high)
        assert row["groups"] == 3
    odds = frame.row(by_predicate=pl.col("metric") == "EqualisedOdds", named=True)
    both = [(max(v.values()), min(v.values())) for v in (found["Recall"], found["FPR"])]
    assert odds["difference"] == pytest.approx(max(high - low for high, low in both))
    assert odds["ratio"] == pytest.approx(min(low / high for high, low in both))
    for name, metric in (("DemographicParity", "SelectionRate"), ("EqualOpportunity", "Recall")):
        one, other = (
            frame.filter(metric=of).select("difference", "ratio") for of in (name, metric)
        )
        assert one.equals(other)


def test_equal_groups_are_expected_and_others_exceed_them():
    equal = ee.score(table(2000), metrics=["Accuracy"], spread="group", draws=100)
    row = equal.spread.row(0, named=True)
    assert 0 < row["expected"] < row["expected_95"] < 0.1
    assert row["excess"] == pytest.approx(max(row["difference"] - row["expected"], 0))
    assert "groups_differ" not in [one.code for one in equal.findings]
    biased = ee.score(table(2000, bias=0.3), metrics=["Accuracy"], spread="group", draws=100)
    assert biased.spread["excess"][0] > 0.2
    assert biased.spread["lowest_group"][0] == "z"
    assert "groups_differ" in [one.code for one in biased.findings]


def test_expected_differences_are_those_of_shuffled_groups():
    """The mean difference of two groups of 50 follows the hypergeometric distribution."""
    rng = np.random.default_rng(1)
    right = np.arange(100) < 70
    rows = pl.DataFrame(
        {
            "datum_id": np.arange(100),
            "actual": True,
            "predicted": right,
            "group": np.where(np.arange(100) % 2, "x", "y"),
        }
    )
    row = ee.score(rows, metrics=["Accuracy"], spread="group", draws=400).spread.row(0, named=True)
    first = rng.hypergeometric(70, 30, 50, 100_000)
    difference = np.abs(2 * first - 70) / 50
    assert row["expected"] == pytest.approx(difference.mean(), abs=0.012)
    assert row["expected_95"] == pytest.approx(np.quantile(difference, 0.95), abs=0.041)


def test_clusters_exchange_groups():
    """Rows of a cluster are alike, so that groups of few clusters differ by chance."""
    rng = np.random.default_rng(2)
    place = np.arange(600) // 30
    right = (rng.random(20) < 0.5)[place]
    rows = pl.DataFrame(
        {
            "datum_id": np.arange(600),
            "actual": True,
            "predicted": right,
            "group": np.where(place % 2, "x", "y"),
            "place": place,
        }
    )
    plain = ee.score(rows, metrics=["Accuracy"], spread="group", draws=100).spread
    by_place = ee.score(
        rows, metrics=["Accuracy"], spread="group", cluster="place", draws=100
    ).spread
    assert by_place["expected"][0] > 2.5 * plain["expected"][0]


def test_a_datum_without_a_cluster_is_a_cluster():
    place = pl.when(pl.col("datum_id") % 2 == 0).then(pl.col("place").cast(pl.String))
    alone = pl.format("z{}", pl.col("datum_id").cast(pl.String).str.zfill(4))
    rows = table(600, bias=0.2).with_columns(place=place)
    named = rows.with_columns(pl.col("place").fill_null(alone))
    asked = {"metrics": ["Accuracy"], "spread": "group", "cluster": "place", "draws": 50}
    one, other = (ee.score(each, **asked).spread for each in (rows, named))
    assert one.equals(other)


def test_numbers_of_any_task_and_kind(tmp_path):
    text = pl.DataFrame(
        {
            "datum_id": range(6),
            "text": ["a b", "a c", "a", "b", "c d", "d"],
            "reference": ["a b", "a b", "b", "b", "c", "d"],
            "group": list("xxyyzz"),
        }
    )
    card = ee.score(text, metrics=["ROUGE1"], spread="group", draws=20)
    assert set(card.spread["statistic"]) == {None, "precision", "recall"}
    card.save(tmp_path / "run")
    assert ee.load(tmp_path / "run").spread.equals(card.spread)
    mixed = ee.score(text.reverse(), metrics=["ROUGE1"], spread="group", draws=20)
    assert mixed.spread.equals(card.spread)


@pytest.mark.parametrize(
    ("gate", "status"),
    [
        ("Accuracy[group=* spread] <= 0.1", 1),
        ("Accuracy[group=* spread] <= 0.4", 0),
        ("DemographicParity[group=* spread, label=true] <= 0.9", 0),
        ("Accuracy[group=* spread] <= 0.4 surely", 2),
        ("Accuracy[group=*] >= 0.3", 0),
        ("Accuracy[group=*] >= 0.9", 1),
    ],
)
def test_gates_on_the_excess(tmp_path: Any, gate: str, status: int) -> None:
    table(1000, bias=0.3).write_parquet(tmp_path / "rows.parquet")
    asked = ["--spread", "group", "--draws", "20", "--metric", "Accuracy,DemographicParity"]
    words = ["score", str(tmp_path / "rows.parquet"), *asked, "--fail-under", gate]
    assert main(words) == status


def test_a_group_of_that_name_is_meant_in_quotes(tmp_path):
    named = pl.col("group").replace("x", "* spread")
    table(1000, bias=0.3).with_columns(named).write_parquet(tmp_path / "rows.parquet")
    words = ["score", str(tmp_path / "rows.parquet"), "--spread", "group", "--draws", "20"]
    words += ["--metric", "Accuracy", "--fail-under"]
    assert main([*words, "Accuracy[group='* spread'] >= 0.7"]) == 0
    assert main([*words, "Accuracy[group=* spread] >= 0.7"]) == 1


def test_a_gate_on_the_spread_needs_the_option():
    words = ["score", "rows.parquet", "--metric", "Accuracy"]
    assert main([*words, "--fail-under", "Accuracy[group=* spread] <= 0.1"]) == 2
