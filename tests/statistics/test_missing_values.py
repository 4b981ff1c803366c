"""Means of runs are compared over the datums that have a value in both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee
from evalengine.jobs.gates import parse_gates
from evalengine.jobs.verdicts import (
    Verdict,
    compare_with,
    judge_gates,
    means_differ_in_datums,
    numbers_of,
)
from evalengine.report.verdicts import better

N = 40


def organs(missed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the truth, a run far off in the last 12 images, and one that misses some organs."""
    truth = np.zeros((N, 48, 48), np.uint8)
    truth[:, 20:28, 20:28] = 1
    a = np.zeros_like(truth)
    a[:28, 21:29, 20:28] = 1
    a[28:, 28:36, 20:28] = 1
    b = a.copy()
    b[N - missed :] = 0
    return truth, a, b


def distances(missed: int, metrics: tuple[str, ...] = ("HD95",), **more: Any) -> ee.Comparison:
    truth, a, b = organs(missed)
    given = {"task": "segmentation", "background": 0, "draws": 40, "names": ["a", "b"], **more}
    return ee.compare(a, b, ground_truths=truth, metrics=list(metrics), **given)


@pytest.mark.parametrize(("missed", "message"), [(4, 0), (5, 1), (12, 1)])
def test_distances_of_organs_that_one_run_misses(missed: int, message: int) -> None:
    found = distances(missed, ("HD95", "ASSD", "NSD"))
    for row in found.differences.iter_rows(named=True):
        gone = 0 if row["metric"] == "NSD" else missed
        assert (row["missing_a"], row["missing_b"]) == (0, gone)
        assert row["coverage"] == pytest.approx(1 - gone / N)
        assert (row["a"] == row["b"]) == (row["metric"] != "NSD")
        if gone:
            assert (row["wins"], row["ties"], row["losses"]) == (0, N - missed, 0)
            assert (row["p"], better(found, row)) == (1.0, 0)
    assert len(found.warnings) == message
    assert ("No verdict" in found.verdict) == bool(message)
    assert f"for {missed} datums" in found.verdict


def test_a_worse_run_does_not_gain_from_missing_values() -> None:
    """b is off by one pixel more in all images that it finds; in five others it finds nothing."""
    truth, a, _ = organs(0)
    b = np.roll(a, 1, axis=1)
    b[-5:] = 0
    result = ee.compare(
        a, b, ground_truths=truth, metrics=["HD95"], background=0, task="segmentation", draws=200
    )
    row = result.differences.row(0, named=True)
    both = [ee.score(one[:-5], truth[:-5], metrics=["HD95"], background=0, task="segmentation")
            for one in (a, b)]  # fmt: skip
    own = [card.metrics["value"][0] for card in both]
    assert [row["a"], row["b"]] == pytest.approx(own)
    assert row["p"] < 0.05
    assert better(result, row) == 0  # 5 of 40 datums are missing, more than a tenth


def test_exchanged_sides_mirror_missing_values() -> None:
    truth, a, b = organs(3)
    given = {"ground_truths": truth, "metrics": ["HD95"], "background": 0, "task": "segmentation"}
    rows = [ee.compare(*runs, draws=60, **given).differences.row(0, named=True)
            for runs in ((a, b), (b, a))]  # fmt: skip
    assert (rows[0]["missing_b"], rows[1]["missing_a"]) == (3, 3)
    assert rows[0]["p"] == rows[1]["p"]
    assert rows[0]["difference"] == -rows[1]["difference"]


def similar(zero: int, shift: float = 0.0) -> pl.DataFrame:
    """Return embeddings; the last ones are zero vectors, which have no cosine."""
    angle = np.linspace(0.1, 1.2, 30)
    own = [[float(np.cos(x - shift)), float(np.sin(x - shift))] for x in angle]
    own[30 - zero :] = [[0.0, 0.0]] * zero
    return pl.DataFrame(
        {
            "datum_id": range(30),
            "embedding": own,
            "reference_embedding": [[1.0, 0.0]] * 30,
            "half": ["first"] * 15 + ["second"] * 15,
        }
    )


def cosines(*runs: pl.DataFrame, **more: Any) -> ee.Comparison:
    given = {"metrics": ["SemanticSimilarity"], "draws": 60, "names": ["a", "b"], **more}
    return ee.compare(*runs, **given)


def test_cosines_of_zero_vectors(tmp_path: Path) -> None:
    found = cosines(similar(0), similar(2, 0.01), by="half")
    whole, first, second = found.differences.sort("slice_value", nulls_last=False).rows(named=True)
    assert [(row["missing_a"], row["missing_b"]) for row in (whole, first, second)] == [
        (0, 2),
        (0, 0),
        (0, 2),
    ]
    assert whole["coverage"] == pytest.approx(28 / 30)
    assert second["coverage"] == pytest.approx(13 / 15)
    assert not better(found, second)
    assert whole["a"] == pytest.approx(np.cos(np.linspace(0.1, 1.2, 30)[:28]).mean())
    ee.score(similar(0), by="half", metrics=["SemanticSimilarity"]).save(tmp_path / "a")
    ee.score(similar(2, 0.01), by="half", metrics=["SemanticSimilarity"],
             memory_limit="4GB").save(tmp_path / "b")  # fmt: skip
    saved = cosines(tmp_path / "a", tmp_path / "b")
    assert saved.differences.select("a", "b", "p", "missing_b", "coverage").equals(
        found.differences.select("a", "b", "p", "missing_b", "coverage")
    )


def test_missing_values_may_count() -> None:
    angle = np.cos(np.linspace(0.1, 1.2, 30))
    for missing, value in (("zero", 0.0), ("worst", -1.0)):
        found = cosines(similar(0), similar(6), missing=missing)
        row = found.differences.row(0, named=True)
        assert row["a"] == pytest.approx(angle.mean())
        assert row["b"] == pytest.approx(np.r_[angle[:24], [value] * 6].mean())
        assert (row["missing_b"], row["coverage"], row["losses"]) == (6, 1.0, 6)
        assert not found.warnings
    lacking = similar(6), similar(6)
    both = cosines(*lacking, missing="worst").differences.row(0, named=True)
    assert both["a"] == pytest.approx(angle[:24].mean())  # values missing in both are not filled
    assert both["missing_a"] == 0


def test_datums_without_a_prediction_may_count() -> None:
    qrels = {f"q{q}": {"good": 1} for q in range(12)}
    whole = {f"q{q}": {"good": 1.0} for q in range(12)}
    few = {query: result for query, result in whole.items() if query not in ("q0", "q1", "q2")}
    given: dict[str, Any] = {"ground_truths": qrels, "metrics": ["MRR"], "draws": 40}
    row = ee.compare(whole, few, **given).differences.row(0, named=True)
    assert (row["missing_a"], row["missing_b"], row["coverage"]) == (0, 3, 0.75)
    for missing in ("zero", "worst"):
        result = ee.compare(whole, few, missing=missing, **given)
        row = result.differences.row(0, named=True)
        assert (row["a"], row["b"], row["coverage"]) == (1.0, 0.75, 1.0)
        assert (row["missing_b"], row["losses"], result.n) == (3, 3, 12)


def verdicts(failed: int, biased: float) -> pl.DataFrame:
    """Return the bias of 40 texts; the last ones were not judged."""
    rng = np.random.default_rng(5)
    share = rng.random(40) < biased
    return pl.DataFrame(
        {
            "datum_id": range(40),
            "metric": ["Bias"] * 40,
            "verdict": ["yes" if one else "no" for one in share[: 40 - failed]] + [None] * failed,
            "status": ["ok"] * (40 - failed) + ["timeout"] * failed,
        }
    )


@pytest.mark.parametrize(("failed", "verdict"), [(3, True), (8, False)])
def test_verdicts_that_failed(failed: int, verdict: bool) -> None:
    result = ee.compare(verdicts(0, 0.9), verdicts(failed, 0.1), metrics=["Bias"], draws=200)
    row = result.differences.row(0, named=True)
    assert (row["missing_a"], row["missing_b"]) == (0, failed)
    assert row["a"] == ee.score(verdicts(0, 0.9).head(40 - failed), metrics=["Bias"]).value("Bias")
    assert row["p"] < 0.05
    assert better(result, row) == int(verdict)
    assert ("No verdict" in result.verdict) == (not verdict)
    worst = ee.compare(
        verdicts(0, 0.9), verdicts(failed, 0.1), metrics=["Bias"], draws=60, missing="worst"
    )
    assert worst.differences["b"][0] == pytest.approx((row["b"] * (40 - failed) + failed) / 40)
    assert worst.differences["a"][0] == ee.score(verdicts(0, 0.9), metrics=["Bias"]).value("Bias")


@pytest.mark.parametrize("missing", ["worst", "nothing"])
def test_metrics_without_a_worst_value(missing: str) -> None:
    with pytest.raises(ee.OptionError, match="missing"):
        distances(3, missing="nothing")
    table = pl.DataFrame({"actual": ["a", "b"] * 9, "predicted": ["a", "a"] * 9})
    with pytest.raises(ee.OptionError, match="missing"):
        ee.compare(table, table, missing=missing)


def test_a_missed_organ_is_as_far_away_as_the_image_allows() -> None:
    worst = distances(5, ("HD95", "ASSD", "NSD"), missing="worst", pixel_spacing=(2, 0.5))
    skipped = distances(0, ("HD95",), pixel_spacing=(2, 0.5))
    rows = {row["metric"]: row for row in worst.differences.iter_rows(named=True)}
    found, full = rows["HD95"], skipped.differences.row(0, named=True)
    furthest = np.hypot(47 * 2, 47 * 0.5)
    truth, a, _ = organs(5)
    last = ee.score(
        a[-5:], truth[-5:], metrics=["HD95"], background=0, task="segmentation",
        pixel_spacing=(2, 0.5),
    ).value("HD95")  # fmt: skip
    assert found["a"] == pytest.approx(full["a"])
    assert found["b"] == pytest.approx(full["a"] + 5 / N * (furthest - last))
    assert (found["coverage"], rows["ASSD"]["wins"]) == (1.0, 0)
    assert "No verdict" not in worst.verdict


def test_targets_that_one_run_does_not_predict() -> None:
    keys = ["x", "y"] * 30
    truth = pl.DataFrame(
        {"datum_id": np.repeat(range(30), 2), "label_key": keys, "target": np.arange(60.0)}
    )
    error = np.where(np.arange(60) < 6, 9.0, 1.0)
    a = truth.select("datum_id", "label_key", prediction=pl.col("target") + error)
    b = a.filter(~((pl.col("label_key") == "y") & (pl.col("datum_id") < 3)))
    result = ee.compare(a, b, ground_truths=truth, metrics=["MAE"], draws=40, task="regression")
    rows = {row["label_key"]: row for row in result.differences.iter_rows(named=True)}
    assert (rows["y"]["missing_a"], rows["y"]["missing_b"]) == (0, 3)
    assert (rows["y"]["a"], rows["y"]["b"]) == (1.0, 1.0)
    assert rows["x"]["missing_b"] == 0
    assert rows["x"]["a"] == rows["x"]["b"] == pytest.approx(1 + 8 * 3 / 30)


def test_three_runs_are_compared_over_their_common_datums() -> None:
    result = ee.compare(
        similar(0), similar(2), similar(0, 0.01), metrics=["SemanticSimilarity"], draws=40
    )
    shown = result.differences.select("run_a", "run_b", "missing_a", "missing_b").rows()
    assert shown == [("a", "b", 0, 2), ("a", "c", 0, 0), ("b", "c", 2, 0)]
    values = {row["run_a"]: row["a"] for row in result.differences.iter_rows(named=True)}
    assert values["a"] == values["b"]


# -- gates -----------------------------------------------------------------------------------------


def judged(missed: int, *gates: str, folder: Path | None = None) -> list[Verdict]:
    truth, a, b = organs(missed)
    cards = [
        ee.score(one, truth, metrics=["HD95"], background=0, task="segmentation") for one in (a, b)
    ]
    if folder is not None:
        cards = [ee.load(card.save(folder / str(i))) for i, card in enumerate(cards)]
    earlier, card = cards
    return judge_gates(
        parse_gates(gates, ()),
        numbers_of(card),
        numbers_of(earlier),
        compare=compare_with(earlier, card),
        differ=means_differ_in_datums(earlier, card),
    )


@pytest.mark.parametrize("saved", [False, True])
def test_gates_about_a_baseline_use_common_datums(saved: bool, tmp_path: Path) -> None:
    folder = tmp_path if saved else None
    few, lower = judged(4, "HD95 <= baseline", "HD95 <= baseline - 0.1", folder=folder)
    assert (few.status, lower.status) == ("passed", "failed")  # its own mean is lower by 0.5
    assert few.value == few.baseline
    assert "for 4 datums" in few.reason


def test_gates_fail_if_too_many_values_are_missing() -> None:
    (many,) = judged(12, "HD95 <= baseline")
    assert (many.status, many.value, many.baseline) == ("failed", 1.0, 1.0)
    assert "for 12 datums" in many.reason
    accepted, _ = judged(12, "HD95 <= baseline", "coverage >= 0.6")
    assert accepted.status == "passed"


def test_a_baseline_without_a_tally() -> None:
    """Common datums are unknown; the share of scored datums of each run decides."""
    truth, a, b = organs(12)
    earlier, card, few = (
        numbers_of(ee.score(one, truth, metrics=["HD95"], background=0, task="segmentation"))
        for one in (a, b, organs(3)[2])
    )
    gates = parse_gates(["HD95 <= baseline"], ())
    assert judge_gates(gates, card, earlier, differ=None)[0].status == "failed"
    assert judge_gates(gates, few, earlier, differ=None)[0].status == "passed"
    gates = parse_gates(["HD95 <= baseline", "coverage >= 0.5"], ())
    assert judge_gates(gates, card, earlier, differ=None)[0].status == "passed"


def test_missing_values_of_every_statistic() -> None:
    """A standard deviation of one datum is undefined, but the datum has a value."""
    first = pl.DataFrame({"datum_id": range(12), "metric": "x", "value": [*range(12)]})
    second = first.with_columns(value=pl.when(pl.col("datum_id") > 1).then(pl.col("value") + 1))
    statistics = ["mean", "median", "std", "p90"]
    found = ee.compare(first, second, task="values", statistics=statistics, draws=20)
    rows = found.differences.select("statistic", "missing_a", "missing_b", "coverage").rows()
    assert rows == [(name, 0, 2, 10 / 12) for name in statistics]


@pytest.mark.parametrize("method", [None, "jackknife", "percentile"])
def test_intervals_of_no_rows(method: str | None) -> None:
    table = pl.DataFrame(schema={"prediction": pl.Float64, "target": pl.Float64})
    card = ee.score(table, task="regression", intervals=0.9, method=method)
    assert card.metrics.is_empty()
    assert [one.code for one in card.findings if one.severity == "warning"] == ["no_rows"]
