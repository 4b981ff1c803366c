"""Populations of the benchmarks of intervals and comparisons have the stated values."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
STUDIES = ("labels", "scores", "queries", "texts", "videos", "boxes", "classes")


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a module of the benchmarks by its name."""
    for path in BENCHMARKS.glob("*.py"):
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


@pytest.mark.parametrize("name", STUDIES)
def test_large_samples_have_the_populations_numbers(module: Any, name: str) -> None:
    data = module("interval_coverage_data")
    assert set(STUDIES) == set(data.STUDIES)
    study = data.STUDIES[name]
    truth = study.truth()
    many = 4000 if name == "videos" else 20_000
    sides = study.sample(np.random.default_rng(2), many)
    metrics = [one.metric for one in study.numbers]
    frame = ee.score(*sides, task=study.task, metrics=metrics).metrics
    for one in study.numbers:
        values = frame.filter(one.row)["value"].to_list()
        assert values == pytest.approx(truth[one.metric], abs=0.02)
        assert 0.1 < values[0] < 0.95


@pytest.mark.parametrize("name", ["boxes", "videos"])
def test_the_page_of_coverage(module: Any, name: str) -> None:
    coverage = module("interval_coverage")
    study = coverage.data.STUDIES[name]
    found = coverage.measured(study, study.sizes[:1], n_sets=3, draws=40)
    page = coverage.page({name: found}, 3, 40, 1.0)
    shown = [line for line in page.splitlines() if line.startswith("| ") and "**" in line]
    assert len(shown) == len(study.numbers)
    assert all(0 <= one.coverage <= 1 and one.of_mean <= 1 for one in found.values())
    n = 3 * (5 if name == "boxes" else 1)
    first = found[study.numbers[0].title, "", study.sizes[0], "recentred"]
    assert len(first.rows) + first.missing == n
    assert ("without cluster=" in page) == (name == "videos")


def test_coverage_is_of_the_truth_and_of_the_mean(module: Any) -> None:
    """Two labels have values of 0.5 and 0.7, which are 0.1 too high on average."""
    coverage = module("interval_coverage").Coverage()
    for value, low, high in ((0.55, 0.45, 0.65), (0.65, 0.58, 0.75)):
        coverage.rows.append((0, value, low, high, 0.5, 0.0))
        coverage.rows.append((1, value + 0.2, low + 0.2, high + 0.2, 0.7, 0.0))
    assert (coverage.coverage, coverage.of_mean) == (0.5, 1.0)
    assert coverage.own_bias == pytest.approx(0.1 / 0.05)


@pytest.mark.parametrize("name", ["answers", "videos", "frames", "queries", "texts", "boxes"])
def test_pairs_of_runs(module: Any, name: str) -> None:
    """The second run is better if it should be, and has the same ground truths."""
    alarms = module("comparison_alarms")
    case = alarms.CASES[name]
    assert alarms.true_difference(case) > 0.01
    first, second, *_ = case.make(np.random.default_rng(1), 20, 0.0)
    assert first.columns == second.columns
    for same in {"actual", "video", "reference"} & set(first.columns):
        assert first[same].equals(second[same])
    row = alarms.compared(case, case.make(np.random.default_rng(1), case.size, 0.0), draws=20)
    assert row["lower"] <= row["difference"] <= row["upper"]
    assert 0 < row["p"] <= 1


def test_the_detectable_difference_predicts_the_power(module: Any) -> None:
    result = module("comparison_alarms").Alarms(0.05, 0.95, 0.1, 0.1, 0.8)
    assert result.promised == pytest.approx(0.8, abs=1e-3)
    assert module("comparison_alarms").Alarms(0.05, 0.95, 0.1, 0.0, 0.8).promised == pytest.approx(
        0.05
    )


def test_nightly_alarms(module: Any) -> None:
    alarms = module("nightly_alarms")
    found = alarms.measured("accuracy 0.98", 3, 12)
    assert found["first"] <= 12
    assert 0 <= found["high"] <= 1
    for _, make in alarms.CELLS.values():
        assert make(np.random.default_rng(0), 7).shape[0] == 7
    assert alarms.f1(np.random.default_rng(0), 4000).mean() == pytest.approx(0.736, abs=0.01)


@pytest.mark.parametrize("name", ["coverage", "comparisons"])
def test_the_pages_exist(name: str) -> None:
    page = (BENCHMARKS.parent / "docs" / "benchmarks" / "intervals.md").read_text(encoding="utf-8")
    assert f"<!-- benchmark {name}: begin -->" in page
    assert pl.Series(page.splitlines()).str.contains("coverage").any()


def test_the_page_of_costs(module: Any) -> None:
    cost = module("intervals_cost")
    found = {name: cost.measured(case, 1, 0.002) for name, case in cost.CASES.items()}
    page = cost.page(found, 1, 100.0)
    assert page.count("at most") == len(cost.CASES)
    assert "NumPy loop" in page
