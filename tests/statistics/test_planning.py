"""Plans state the data that intervals and comparisons need; tests generate that much data."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused
from scipy import stats

import evalengine as ee


def table(n: int, seed: int, right: float = 0.8, **columns: Any) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    target = rng.choice(["a", "b", "b", "b"], n)
    other = np.where(target == "a", "b", "a")
    prediction = np.where(rng.random(n) < right, target, other)
    return pl.DataFrame(
        {"datum_id": range(n), "target": target, "prediction": prediction, **columns}
    )


def width(frame: pl.DataFrame, metric: str, **row: Any) -> float:
    card = ee.score(frame, metrics=[metric], task="classification", intervals=0.95, draws=500)
    rows = card.metrics.filter(**row) if row else card.metrics
    low, high = rows.select("lower", "upper").row(0)
    return (high - low) / 2


@pytest.mark.parametrize(("metric", "row"), [("Accuracy", {}), ("F1", {"label_value": "a"})])
def test_planned_data_have_the_width(metric: str, row: dict[str, Any]) -> None:
    pilot = table(2000, 0)
    plan = ee.find_plan(pilot, metrics=[metric], task="classification", half_width=0.01, draws=500)
    frame = plan.frame.filter(**row) if row else plan.frame
    assert width(table(frame["datums"][0], 1), metric, **row) == pytest.approx(0.01, rel=0.1)


def test_proportions_are_wilsons_at_any_size() -> None:
    pilot = table(40, 2)
    frame = ee.find_plan(pilot, metrics=["Accuracy"], task="classification", half_width=0.2).frame
    n = frame["datums"][0]
    p = frame["value"][0]
    z = stats.norm.ppf(0.975)

    def half(n: float) -> float:
        return z / (1 + z * z / n) * (p * (1 - p) / n + z * z / 4 / n / n) ** 0.5

    assert half(n) <= 0.2 < half(n - 1)


def test_positives_and_clusters_scale_with_the_datums() -> None:
    pilot = table(600, 3, doc=np.arange(600) // 6)
    frame = ee.find_plan(
        pilot, metrics=["Recall"], task="classification", half_width=0.02, cluster="doc"
    ).frame.filter(label_value="a")
    row = frame.row(0, named=True)
    assert row["datums"] == pytest.approx(600 * row["factor"], abs=1)
    assert row["clusters"] == pytest.approx(100 * row["factor"], abs=1)
    many = pilot.filter(target="a").height
    assert row["positives"] == pytest.approx(many * row["factor"], abs=1)


def test_a_planned_comparison_finds_the_difference() -> None:
    runs = [table(500, seed, right) for seed, right in ((4, 0.8), (4, 0.84))]
    plan = ee.find_plan(
        runs[1], against=runs[0], metrics=["Accuracy"], task="classification", detect=0.04,
        draws=500,
    )  # fmt: skip
    n = plan.frame["datums"][0]
    assert n == pytest.approx(500 * (plan.frame["now"][0] / 0.04) ** 2, abs=1)
    found = 0
    for seed in range(40):
        both = [table(n, seed, right) for right in (0.8, 0.84)]
        p = ee.compare(*both, metrics=["Accuracy"], task="classification", test="mcnemar", draws=20)
        found += p.differences["p"][0] < 0.05
    assert 22 <= found <= 38  # power 0.8 gives 32 of 40


def test_pilots_without_a_standard_error_have_no_plan() -> None:
    """Pilots are a run against itself, a proportion of one verdict, and too few datums."""
    asked: dict[str, Any] = {"task": "classification", "detect": 0.01, "draws": 50}
    pilot = table(100, 7)
    right = pilot.with_columns(prediction="target")
    wrong = right.with_columns(prediction=pl.lit("c"))
    few = [one.head(5) for one in (pilot, right)]
    for run, against, metric in (
        (pilot, pilot, "Accuracy"), (pilot, pilot, "F1"), (right, wrong, "Accuracy"),
        (*few, "Accuracy"),
    ):  # fmt: skip
        plan = ee.find_plan(run, against=against, metrics=[metric], **asked)
        frame = plan.frame
        sizes = frame.select("now", "factor", "datums")
        assert sizes.null_count().row(0) == (frame.height,) * 3
        assert frame.height
        assert len(plan.notes) >= 2
    plan = ee.find_plan(pilot, against=right, metrics=["Accuracy"], **asked)
    assert plan.frame["datums"].null_count() == 0
    assert len(plan.notes) == 2  # assumptions, and the sign of differences


def test_few_pilots_take_the_standard_errors_of_the_comparison() -> None:
    pilots = table(12, 8), table(12, 8, 0.5)
    asked: dict[str, Any] = {"metrics": ["F1"], "task": "classification", "draws": 200}
    seen = ee.compare(*pilots, **asked).differences
    for power in (0.8, 0.95):
        plan = ee.find_plan(pilots[1], against=pilots[0], detect=0.1, power=power, **asked).frame
        more = stats.norm.ppf(power) - stats.norm.ppf(0.8)
        expected = seen["detectable"] + more * seen["se"]
        assert len(expected.drop_nulls()) > 0
        assert plan["now"].drop_nulls().to_list() == pytest.approx(expected.drop_nulls().to_list())


def test_tiny_plans_and_judges_are_noted() -> None:
    result = ee.find_plan(table(400, 1), metrics=["Accuracy", "Recall"], half_width=0.3)
    assert (result.frame["datums"] < 20).any()
    assert any("fewer than 20 datums" in one for one in result.notes)
    assert not any(
        "fewer than 20" in one
        for one in ee.find_plan(table(400, 1), metrics="Accuracy", half_width=0.01).notes
    )
    judged = ee.find_plan("examples/judged/many.parquet", half_width=0.05)
    assert any("judge's numbers" in one for one in judged.notes)


def test_values_without_an_interval_give_the_reason() -> None:
    right = table(50, 10).with_columns(prediction="target")
    for metric, notes in (("F2", 2), ("F1", None)):  # all right: F1 has Wilson's, without an se
        plan = ee.find_plan(right, metrics=[metric], task="classification", half_width=0.1)
        assert plan.frame.height
        assert plan.frame["datums"].null_count() == plan.frame.height
        assert notes in (None, len(plan.notes))


def test_saved_runs_without_intervals_can_be_planned(tmp_path: Any) -> None:
    card = ee.score(table(200, 5), metrics=["Accuracy"], task="classification")
    card.save(tmp_path / "run")
    plan = ee.find_plan(tmp_path / "run", half_width=0.03)
    assert plan.frame["datums"][0] > 200
    assert plan.n == 200


def test_saved_runs_are_planned_for_the_requested_metrics(tmp_path: Any) -> None:
    ee.score(table(200, 5), task="classification").save(tmp_path / "run")
    for name in ("Accuracy", "F1"):
        plan = ee.find_plan(tmp_path / "run", half_width=0.03, metrics=[name])
        assert {*plan.frame["metric"]} == {name}
    with refused("unknown_name", value="Acuracy"):
        ee.find_plan(tmp_path / "run", half_width=0.03, metrics=["Acuracy"])
    with refused("option_unread", option="beta", value=2.0):
        ee.find_plan(tmp_path / "run", half_width=0.03, beta=2.0)


def test_a_name_of_the_dialect_selects_its_means(tmp_path: Any) -> None:
    """AP of COCO is a mean of labels; saved runs are compared and planned by it as tables are."""
    rng = np.random.default_rng(0)
    truth = pl.DataFrame(
        {
            "datum_id": np.arange(40) // 2,
            "label_value": ["car", "van"] * 20,
            **{name: rng.uniform(0, 50, 40) for name in ("xmin", "ymin")},
        }
    ).with_columns(xmax=pl.col("xmin") + 50, ymax=pl.col("ymin") + 50)
    for run, shift in (("a", 20), ("b", 10)):
        boxes = truth.with_columns(pl.col("xmin") + rng.uniform(0, shift, 40))
        boxes = boxes.with_columns(score=pl.Series(rng.uniform(0.1, 0.9, 40)))
        ee.score(boxes, truth, dialect="coco").save(tmp_path / run)
    compared = ee.compare(tmp_path / "a", tmp_path / "b", metrics=["AP"], draws=50)
    assert {"mAPAveragedOverIOUs", "AP"} <= {*compared.differences["metric"]}
    assert "AP 0." in compared.verdict
    plan = ee.find_plan(tmp_path / "a", metrics=["AP"], half_width=0.05, draws=50)
    assert plan.frame.filter(metric="mAPAveragedOverIOUs", area="all").height == 1
    assert " 100 " in str(plan)  # caps are whole numbers, and shown as such


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({}, {"code": "option_missing"}),
        ({"half_width": 0.1, "detect": 0.1}, {"code": "options_conflict"}),
        ({"half_width": -1}, {"code": "option_value"}),
        ({"half_width": 0.1, "power": 1.0}, {"code": "option_value"}),
        ({"detect": 0.1}, {"code": "option_missing", "option": "against"}),
        ({"half_width": 0.5}, {"code": "option_value", "option": "half_width"}),
    ],
)
def test_invalid_targets_are_refused(asked: dict[str, Any], refusal: dict[str, Any]) -> None:
    with refused(**refusal):
        ee.find_plan(table(30, 6), task="classification", **asked)
