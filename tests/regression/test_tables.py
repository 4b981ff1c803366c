"""Tables of regression: inference of the task, one-sided datums, undefined numbers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from refusals import refused

import evalengine as ee

TRUE, PREDICTED = [0.5, 1.25, 3.0, 4.0], [0.25, 1.5, 3.0, 5.0]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("y_pred", "y_true"), ("prediction", "target"), ("forecast", "actual"), ("yhat", "y")],
)
def test_numbers_with_fractions_are_regression(ours: str, theirs: str) -> None:
    rows = pl.DataFrame({ours: PREDICTED, theirs: TRUE})
    assert ee.score(rows).task == "regression"
    ids = pl.Series("datum_id", range(4))
    two = rows.select(ids, ours), rows.select(ids, theirs)
    assert ee.score(*two).task == "regression"


def test_integers_are_classes() -> None:
    rows = pl.DataFrame({"y_pred": [0.0, 1.0, 1.0], "y_true": [0.0, 1.0, 0.0]})
    assert ee.score(rows).task == "classification"
    assert ee.score(rows, task="regression").value("MAE") == pytest.approx(1 / 3)
    assert ee.score([1, 2, 4], [1, 2, 3], task="regression").value("MAE") == pytest.approx(1 / 3)


def test_integers_with_names_of_forecasts_are_regression() -> None:
    rows = pl.DataFrame({"unique_id": ["a", "b", "c"], "yhat": [0.5, 1.0, 1.0], "y": [2, 1, 0]})
    assert ee.score(rows).task == "regression"
    ids = pl.Series("datum_id", range(3))
    two = rows.select(ids, "yhat"), rows.select(ids, "y")
    assert ee.score(*two).task == "regression"
    scores = pl.DataFrame({"y_pred": [0.5, 1.0, 1.0], "y_true": [1, 1, 0]})
    with pytest.raises(ee.InputError, match="write task='regression'"):
        ee.score(scores)


def test_plain_values() -> None:
    assert ee.score(PREDICTED, TRUE).value("MAE") == 0.375
    assert ee.score(np.array(PREDICTED), np.array(TRUE)).task == "regression"


def test_an_uncertain_inference_of_the_task_is_noted() -> None:
    def noted(**columns: list[float]) -> bool:
        notes = ee.score(pl.DataFrame(columns)).notes
        return any("taken for regression" in note and "classification" in note for note in notes)

    assert noted(y_pred=PREDICTED, y_true=TRUE)
    assert not noted(forecast=PREDICTED, actual=TRUE)
    assert any("taken for regression" in note for note in ee.score(PREDICTED, TRUE).notes)
    asked = ee.score(PREDICTED, TRUE, metrics=["MAE"])
    assert not any("taken for regression" in note for note in asked.notes)


def test_arrays_of_several_targets() -> None:
    rng = np.random.default_rng(0)
    true, predicted = rng.normal(size=(9, 12)), rng.normal(size=(9, 12))
    card = ee.score(predicted, true, task="regression", metrics=["R2"])
    rows = card.metrics.filter(pl.col("average").is_null())
    assert rows["label_key"].to_list() == [f"{i:02d}" for i in range(12)]
    for i, value in enumerate(rows["value"]):
        one = ee.score(predicted[:, i], true[:, i], metrics=["R2"])
        assert value == one.value("R2")
    names = [f"t{i:02d}" for i in range(12)]
    assert (
        ee.score(predicted, true, metrics=["R2"], labels=names).value("R2", label_key="t03")
        == (rows["value"][3])
    )
    flat = ee.score(predicted[:, :1], true[:, 0], metrics=["R2"])
    assert flat.value("R2") == rows["value"][0]
    with refused("task_ambiguous", match="task='regression'"):
        ee.score(predicted, true)
    with refused("shapes_differ", shapes=[(9, 12), (9, 11)]):
        ee.score(predicted, true[:, 1:], task="regression")
    with refused("lengths_differ", option="labels", count=3, of=12):
        ee.score(predicted, true, task="regression", labels=names[:3])
    assert ee.score(predicted, true, task="text").task == "text"


def test_swapped_tables_are_refused() -> None:
    ids = pl.Series("datum_id", range(4))
    for mine, other in (("prediction", "target"), ("forecast", "actual"), ("prediction", "value")):
        predicted, true = (
            pl.DataFrame({"datum_id": ids, mine: PREDICTED}),
            pl.DataFrame({"datum_id": ids, other: TRUE}),
        )
        assert ee.score(predicted, true).task == "regression"
        for options in ({}, {"task": "regression"}):
            with pytest.raises(ee.InputError, match="tables swapped"):
                ee.score(true, predicted, **options)


def test_one_sided_datums() -> None:
    predicted = pl.DataFrame({"datum_id": [1, 2, 3], "prediction": [1.5, 2.5, 3.5]})
    true = pl.DataFrame({"datum_id": [2, 3, 4], "target": [2.0, 4.0, 4.5]})
    card = ee.score(predicted, true)
    assert (card.value("MAE"), card.value("MeanError")) == (0.5, 0.0)
    assert card.frame("per_datum")["status"].to_list() == [
        "no_target", "scored", "scored", "no_prediction",
    ]  # fmt: skip
    assert any("1 datum without predictions: 4" in note for note in card.notes)
    keyed = [
        side.with_columns(label_key=pl.Series(keys))
        for side, keys in ((predicted, ["a", "a", "b"]), (true, ["a", "a", "a"]))
    ]
    notes = ee.score(*keyed, task="regression").notes
    assert any("datums: 3" in note for note in notes)


def test_undefined_numbers_have_a_reason() -> None:
    def value_and_reason(
        true: list[float], predicted: list[float], metric: str, **options: object
    ) -> object:
        rows = pl.DataFrame({"target": true, "prediction": predicted, "weight": [1.0] * len(true)})
        card = ee.score(rows, task="regression", metrics=[metric], **options)
        return card.metrics.select("value", "reason").row(0)

    assert value_and_reason([1.5], [2.5], "R2") == (None, "a single row")
    assert "target is constant" in value_and_reason([1.5, 1.5], [2.5, 1.0], "R2")[1]
    assert value_and_reason([1.5, 1.5], [2.5, 1.0], "R2", dialect="sklearn") == (0.0, None)
    assert value_and_reason([0.1] * 3, [0.1] * 3, "R2", dialect="sklearn") == (1.0, None)
    reason = "the least and the largest target have no loss as quantiles 0 and 1"
    assert value_and_reason([1.5, 2.5], [2.5, 1.0], "D2Pinball", quantile=0) == (None, reason)
    assert value_and_reason([0.0, 1.5], [2.5, 1.0], "MAPE") == (None, "a target is 0")
    assert value_and_reason([0.0, 0.0], [2.5, 1.0], "WAPE") == (None, "all targets are 0")
    assert "constant" in value_and_reason([1.0, 2.0], [3.0, 3.0], "Pearson")[1]
    rows = pl.DataFrame({"target": [1.5], "prediction": [2.5], "weight": [0.0]})
    none = ee.score(rows, task="regression", metrics=["MAE", "MedianAE"]).metrics
    assert none["reason"].to_list() == ["weights are all zero"] * 2


def test_sums_are_exact() -> None:
    """Variances do not depend on the offset, and huge errors do not absorb small ones."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 1000, 500) / 8
    predicted = target + rng.integers(-8, 8, 500) / 8
    plain = ee.score(predicted, target, metrics=["R2", "Pearson"])
    shifted = ee.score(predicted + 2.0**40, target + 2.0**40, metrics=["R2", "Pearson"])
    for name in ("R2", "Pearson"):
        assert shifted.value(name) == pytest.approx(plain.value(name), rel=1e-15)
    huge = ee.score([1e200, -1e200, 1.5], [0.5, 0.5, 0.5], metrics=["MeanError"])
    assert huge.value("MeanError") == 1 / 3


def test_worst_datums() -> None:
    rows = pl.DataFrame({"datum_id": range(4), "prediction": PREDICTED, "target": TRUE})
    worst = ee.find_errors(rows)
    assert worst.datums["datum_id"][0] == 3
    assert "predicted 5" in str(worst.datums.row(0))


def test_per_datum_rows_of_several_targets() -> None:
    """One row per common pair of datum and target, and one per datum without any."""
    predicted = pl.DataFrame(
        {"datum_id": [1, 1, 2, 4], "label_key": ["a", "b", "b", "a"], "prediction": [1.5, 2, 3, 4]}
    )
    true = pl.DataFrame(
        {"datum_id": [1, 2, 2, 3], "label_key": ["a", "a", "b", "c"], "target": [1.0, 2, 5, 1.5]}
    )
    frame = ee.score(predicted, true, task="regression", metrics=["MAE"]).frame("per_datum")
    rows = frame.select("datum_id", "value", "status", "parameters").rows()
    assert rows == [
        (1, 0.5, "scored", '{"label_key": "a"}'),
        (2, 2.0, "scored", '{"label_key": "b"}'),
        (3, None, "no_prediction", None),
        (4, None, "no_target", None),
    ]
    worst = ee.find_errors(predicted, true, task="regression").datums
    assert worst["datum_id"].to_list()[:2] == [2, 1]


def test_metrics_without_a_direction_have_no_wins() -> None:
    runs = [
        pl.DataFrame({"datum_id": range(4), "prediction": of, "target": TRUE})
        for of in (PREDICTED, [1.0, 1.0, 3.5, 4.0])
    ]
    made = ee.compare(*runs, task="regression", metrics=["MAE", "MeanError"], draws=100)
    votes = made.differences.select("metric", "wins", "ties", "losses").rows()
    assert votes == [("MAE", 1, 1, 2), ("MeanError", None, None, None)]


def test_slices_have_rows_only_of_their_label_keys() -> None:
    """A key without rows in a slice has no number there, and macro means skip it."""
    table = pl.DataFrame(
        {
            "datum_id": [1, 2, 3, 4],
            "label_key": ["a", "a", "b", "b"],
            "prediction": [1.5, 2.5, 3.5, 4.0],
            "target": [1.0, 2.0, 3.0, 5.5],
            "half": ["x", "x", "y", "y"],
        }
    )
    frame = ee.score(table, task="regression", metrics=["MAE"], by="half").metrics
    rows = frame.filter(pl.col("slice_value").is_not_null())
    assert {*rows.select("slice_value", "label_key", "value", "support").iter_rows()} == {
        ("x", "a", 0.5, 2),
        ("y", "b", 1.0, 2),
        ("x", None, 0.5, 2),
        ("y", None, 1.0, 2),
    }
