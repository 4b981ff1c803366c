"""Differences that no resample moves have no interval, unless the runs are identical."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import evalengine as ee
from evalengine.jobs.gates import parse_gates
from evalengine.jobs.verdicts import Verdict, compare_with, judge_gates, numbers_of
from evalengine.schemas.errors import OptionError

DRAWS = 60
ENDS = ("lower", "upper")


def table(ids: list[Any], prediction: Any, target: Any) -> pl.DataFrame:
    return pl.DataFrame({"datum_id": ids, "prediction": prediction, "target": target})


def judged(gate: str, earlier: ee.Scorecard, card: ee.Scorecard) -> Verdict:
    numbers = numbers_of(card), numbers_of(earlier)
    (result,) = judge_gates(parse_gates([gate], ()), *numbers, compare=compare_with(earlier, card))
    return result


def shuffled(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    return frame.sample(fraction=1, shuffle=True, seed=seed)


def test_a_gate_is_not_sure_of_other_datums_that_are_all_right() -> None:
    labels = list("xyxyxy")
    runs = [table(list(ids), labels, labels) for ids in ("abcdef", "ghijkl")]
    earlier, card = (ee.score(run, metrics=["Accuracy"]) for run in runs)
    assert judged("Accuracy >= baseline - 0.01 surely", earlier, card).status == "failed"
    assert judged("Accuracy >= baseline - 0.01", earlier, card).status == "passed"


def classes() -> tuple[pl.DataFrame, pl.DataFrame, list[str], dict[str, Any]]:
    rng = np.random.default_rng(3)
    ids = [f"d{i}" for i in range(40)]
    scores = pl.DataFrame(
        {"datum_id": np.repeat(ids, 3), "label": ["a", "b", "c"] * 40, "score": rng.random(120)}
    )
    truth = pl.DataFrame({"datum_id": ids, "label": rng.choice(["a", "b", "c"], 40)})
    return scores, truth, ["F1", "ROCAUC"], {"task": "classification"}


def boxes() -> tuple[pl.DataFrame, pl.DataFrame, list[str], dict[str, Any]]:
    rng = np.random.default_rng(4)
    x, y = rng.random((2, 60)) * 10
    truth = pl.DataFrame(
        {"datum_id": np.arange(60) // 2, "label": ["a", "b"] * 30,
         "xmin": x, "ymin": y, "xmax": x + 5, "ymax": y + 5}
    )  # fmt: skip
    found = truth.with_columns(pl.col("xmin") + 1, score=pl.Series(rng.random(60)))
    return found, truth, ["mAP"], {"task": "detection"}


@pytest.mark.parametrize("made", [classes, boxes])
def test_runs_in_another_row_order_are_identical(made: Any) -> None:
    predictions, truth, metrics, options = made()
    again = shuffled(predictions, 1), shuffled(truth, 2)
    rows = ee.compare(
        ee.score(predictions, truth, metrics=metrics, **options),
        ee.score(*again, metrics=metrics, **options),
        draws=DRAWS,
    ).differences.filter(pl.col("difference").is_not_null())
    assert rows.height
    assert set(rows["lower"]) == set(rows["upper"]) == {0.0}


def test_a_gate_is_sure_of_the_same_rows_in_another_order() -> None:
    rng = np.random.default_rng(0)
    run = table(list(range(30)), rng.choice(["a", "b"], 30), rng.choice(["a", "b"], 30))
    earlier, card = (ee.score(one, metrics=["F1"]) for one in (run, shuffled(run, 1)))
    gate = "F1[average=macro] >= baseline surely"
    assert judged(gate, earlier, card).status == "passed"
    swapped = run.with_columns(pl.col("prediction").reverse(), pl.col("target").reverse())
    assert judged(gate, earlier, ee.score(swapped, metrics=["F1"])).status == "failed"


def test_additional_rows_of_one_run_do_not_change_the_others() -> None:
    run = table(list(range(30)), ["a", "b", "b"] * 10, ["a", "b", "a"] * 10)
    more = pl.concat([run, table([99], ["b"], ["a"])])
    asked: dict[str, Any] = {"metrics": ["F1"], "draws": DRAWS}
    result = ee.compare(run, more, common=True, **asked)
    assert (
        result.differences.select(ENDS).to_numpy().tolist() == [[0, 0]] * result.differences.height
    )


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_errors_moved_by_a_constant(unit: float) -> None:
    rng = np.random.default_rng(1)
    target = rng.normal(size=200)
    off = target + rng.random(200) + 0.1
    key = ["u", "v"] * 100
    runs = [
        table(list(range(200)), value * unit, target * unit).with_columns(label_key=pl.Series(key))
        for value in (off, off + 2.05)
    ]
    result = ee.compare(*runs, metrics=["MAE", "MSE"], task="regression", draws=DRAWS)
    rows = result.differences.filter(metric="MAE")
    assert rows["difference"].to_list() == pytest.approx([2.05 * unit] * 3)
    assert rows["lower"].null_count() == rows["upper"].null_count() == 3
    assert result.differences.filter(metric="MSE")["lower"].null_count() == 0
    assert not any("alone" in note for note in result.notes)
    assert result.differences["p"].max() == pytest.approx(1 / (DRAWS + 1))
    assert set(rows["losses"].drop_nulls()) <= {100, 200}


def test_slices_of_shares_on_which_runs_agree() -> None:
    """Tango's bounds are z^2 / (n + z^2) on either side, with the datums of the slice."""
    ids = list(range(40))
    run = table(ids, ["a", "b"] * 20, ["a", "b"] * 20).with_columns(
        night=pl.Series(["yes"] * 10 + ["no"] * 30)
    )
    wrong = pl.when(pl.col("datum_id") >= 39).then(pl.lit("a")).otherwise("prediction")
    rows = ee.compare(
        run, run.with_columns(prediction=wrong), metrics=["Accuracy"], by=["night"], draws=DRAWS
    ).differences.filter(pl.col("slice_value") == "yes")
    z2 = 1.959964**2
    assert rows.select(ENDS).row(0) == pytest.approx((-z2 / (10 + z2), z2 / (10 + z2)), rel=1e-5)


def test_few_datums_are_not_noted_for_wilsons_interval() -> None:
    run = table(list(range(8)), ["a", "b"] * 4, ["a", "b"] * 3 + ["b", "a"])
    for metric, noted in (("Accuracy", False), ("F1", True)):
        notes = ee.score(run, metrics=[metric], intervals=0.95, draws=DRAWS).notes
        assert any("fewer than 20" in note for note in notes) == noted


def test_a_gate_names_the_interval_that_tables_do_not_show() -> None:
    run = table(list(range(30)), ["a", "b"] * 15, ["a", "b"] * 14 + ["b", "b"])
    card = ee.score(run, metrics=["Accuracy"], intervals=0.95, draws=DRAWS)
    (result,) = judge_gates(parse_gates(["Accuracy > 0.5 surely"], ()), numbers_of(card))
    assert result.status == "passed"
    assert result.lower < card.metrics.filter(metric="Accuracy")["lower"][0]
    assert "Clopper" in result.reason


def test_zero_is_not_missing_if_lower_is_better() -> None:
    truth = np.zeros((20, 16, 16), np.uint8)
    truth[:, 4:9, 4:9] = 1
    asked: dict[str, Any] = {"task": "segmentation", "background": 0, "missing": "zero"}
    with refused("option_value", OptionError):
        ee.compare(truth, truth, ground_truths=truth, metrics=["HD95"], draws=DRAWS, **asked)
    ee.compare(truth, truth, ground_truths=truth, metrics=["NSD"], draws=DRAWS, **asked)
