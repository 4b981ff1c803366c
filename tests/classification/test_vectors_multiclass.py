"""Score matrices against known answers, with one label per datum and with several."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from classification.known_answers import by_name, close, plain
from classification.rows import Sides, label_values, matrix_tables, score

import evalengine as ee

CASES = ["medium60x4", "rounded_ties", "single_class_truth", "rows_not_sum1"]
MULTILABEL = ["multilabel_absent_label", "multilabel_ok"]
SHAPES = ["long", "wide", "one"]


def cases() -> dict[str, dict[str, Any]]:
    """Read the cases of ``multiclass_rank.json``."""
    return by_name("classification", "multiclass_rank.json")


def run(
    name: str, shape: str, metrics: list[str], dtype: Any = pl.Float64, **options: Any
) -> ee.Scorecard:
    """Score a case with one label per datum."""
    inputs = cases()[name]["inputs"]
    sides, more = matrix_tables(inputs["y_true"], inputs["y_score"], inputs["labels"], dtype)[shape]
    return score(sides, metrics, **{"dialect": "sklearn", **more, **options})


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_areas(name: str, shape: str) -> None:
    """One against the rest, one against one, average precision."""
    expected = plain(cases()[name]["expected"])
    card = run(name, shape, ["ROCAUC", "mROCAUC", "mROCAUCOneVsOne", "AP"], average="micro")
    ours = {f"sk_ovr_{average}": card.value("mROCAUC", average=average)
            for average in ("macro", "weighted", "micro")}  # fmt: skip
    ours |= {f"sk_ovo_{average}": card.value("mROCAUCOneVsOne", average=average)
             for average in ("macro", "weighted")}  # fmt: skip
    for key, value in ours.items():
        if "value" in expected[key]:
            assert close(value, expected[key]["value"]), (key, value, expected[key])
        elif name == "single_class_truth":
            assert value is None, key
    if "value" in expected["sk_ovr_None"]:
        areas = label_values(card, "ROCAUC")
        for label, value in enumerate(expected["sk_ovr_None"]["value"]):
            assert close(areas[label], value)
    else:
        # scikit-learn requires rows that sum to 1; torchmetrics does not
        assert name == "rows_not_sum1"
        theirs = expected["tm_auroc_none"]["value"]
        assert list(label_values(card, "ROCAUC").values()) == pytest.approx(theirs, abs=1e-6)
    for label, value in enumerate(expected["ap_ovr"]["value"]):
        assert close(label_values(card, "AP")[label], value)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_torchmetrics(name: str, shape: str) -> None:
    """torchmetrics gives a missing class an area of 0 and includes it in the macro mean."""
    expected = plain(cases()[name]["expected"])
    card = run(name, shape, ["ROCAUC", "mROCAUC", "AP", "mAP"], dialect="torchmetrics")
    for metric, mean, theirs in (("ROCAUC", "mROCAUC", "tm_auroc"), ("AP", "mAP", "tm_ap")):
        values = list(label_values(card, metric).values())
        assert values == pytest.approx(expected[f"{theirs}_none"]["value"], abs=1e-6)
        for average in ("macro", "weighted"):
            assert card.value(mean, average=average) == pytest.approx(
                expected[f"{theirs}_{average}"]["value"], abs=1e-6
            ), (mean, average)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_probabilities(name: str, shape: str) -> None:
    """Log loss, Brier, top-k of scikit-learn; calibration of torchmetrics; the first argmax."""
    expected = plain(cases()[name]["expected"])
    inputs = cases()[name]["inputs"]
    names = ["LogLoss", "Brier", "TopKAccuracy", "Accuracy", "Outcomes"]
    card = run(name, shape, names, k=[1, 2, 3])
    assert close(card.value("LogLoss"), expected["log_loss"]["value"])
    assert close(card.value("Brier"), expected["brier"]["value"])
    single = run(name, shape, ["ECE"], pl.Float32)  # 0.6 is a bin edge in some precision
    assert single.value("ECE") == pytest.approx(expected["ece15"]["value"], abs=1e-6)
    for k in (1, 2, 3):
        assert close(card.value("TopKAccuracy", k=k), expected[f"top{k}"]["value"]), k
    predicted = card.outcomes.filter(pl.col("outcome").str.starts_with("fn").not_())
    hard = dict(predicted.select("datum_id", "label_value").iter_rows())
    assert [hard[i] for i in range(len(inputs["y_true"]))] == expected["argmax_first"]
    right = sum(a == b for a, b in zip(inputs["y_true"], expected["argmax_first"], strict=True))
    assert close(card.value("Accuracy"), right / len(inputs["y_true"]))


def several(name: str, shape: str) -> tuple[Sides, dict[str, Any]]:
    """Make a multilabel case: ground truths are the entries that are 1."""
    inputs = cases()[name]["inputs"]
    labels = list(range(len(inputs["y_score"][0])))
    first = [0] * len(inputs["y_score"])
    (predictions, _), more = matrix_tables(first, inputs["y_score"], labels)[shape]
    rows = [
        {"datum_id": i, "label_value": label}
        for i, row in enumerate(inputs["y_true"])
        for label in labels
        if row[label]
    ]
    truths = pl.DataFrame(rows, schema={"datum_id": pl.Int64, "label_value": pl.Int64})
    return (predictions, truths), more


@pytest.mark.parametrize("shape", ["long", "wide"])
@pytest.mark.parametrize("name", MULTILABEL)
def test_several_labels(name: str, shape: str) -> None:
    """Areas, average precision, and counts at 0.5; datums without any true label count."""
    expected = plain(cases()[name]["expected"])
    sides, more = several(name, shape)
    names = ["ROCAUC", "mROCAUC", "AP", "mAP", "Precision", "Recall", "F1", "Counts", "Accuracy",
             "HammingLoss"]  # fmt: skip
    card = score(sides, names, dialect="sklearn", multilabel=True, average="micro", **more)
    for metric, mean, theirs in (("ROCAUC", "mROCAUC", "auc"), ("AP", "mAP", "ap")):
        for label, value in enumerate(expected[f"{theirs}_None"]["value"]):
            ours = label_values(card, metric)[label]
            assert close(ours, value), (metric, label, ours, value)
        for average in ("macro", "micro", "weighted"):
            ours = card.value(mean, average=average)
            value = expected[f"{theirs}_{average}"]["value"]
            assert close(ours, value), (mean, average, ours, value)
    for average in ("macro", "micro", "weighted", "samples"):
        value = expected[f"prf05_{average}"]["value"]
        for metric, theirs in zip(("Precision", "Recall", "F1"), value, strict=False):
            ours = card.value(metric, average=average)
            assert close(ours, theirs), (metric, average, ours, theirs)
    for at, metric in enumerate(("Precision", "Recall", "F1")):
        theirs = expected["prf05_None"]["value"][at]
        assert list(label_values(card, metric).values()) == pytest.approx(theirs, abs=1e-12)
    for label, ((tn, fp), (fn, tp)) in enumerate(expected["mlcm"]["value"]):
        for name_, value in (("tn", tn), ("fp", fp), ("fn", fn), ("tp", tp)):
            assert card.value("Counts", statistic=name_, label_value=label) == value
    inputs = cases()[name]["inputs"]
    cells = [
        [bool(t) == (s >= 0.5) for t, s in zip(truth, row, strict=True)]
        for truth, row in zip(inputs["y_true"], inputs["y_score"], strict=True)
    ]
    assert close(card.value("Accuracy"), sum(map(all, cells)) / len(cells))
    wrong = sum(not cell for row in cells for cell in row)
    assert close(card.value("HammingLoss"), wrong / sum(map(len, cells)))


@pytest.mark.parametrize("shape", ["long", "wide"])
@pytest.mark.parametrize("dialect", ["sklearn", "torchmetrics"])
def test_means_of_several_labels_cover_every_column(dialect: str, shape: str) -> None:
    """Labels 0 and 3 are neither true nor predicted; scikit-learn's ``f1_score`` counts them as 0.

    torchmetrics' ``MultilabelF1Score`` also averages over all columns.
    """
    (predictions, _), more = matrix_tables([0], [[0.02, 0.79, 0.51, 0.12]], list(range(4)))[shape]
    truths = pl.DataFrame({"datum_id": [0, 0], "label_value": [1, 2]})
    options: dict[str, Any] = {"multilabel": True, "decision_threshold": 0.75}
    card = score((predictions, truths), ["F1"], dialect=dialect, **options, **more)
    assert card.value("F1", average="macro") == 0.25
    assert label_values(card, "F1") == {0: 0.0, 1: 1.0, 2: 0.0, 3: 0.0}
    empty = pl.DataFrame({"actual": [[]], "a": [0.1], "b": [0.2]})
    columns: dict[str, Any] = {"score_columns": ["a", "b"], "multilabel": True}
    empty = empty.cast({"actual": pl.List(pl.String)})
    card = ee.score(empty, dialect="sklearn", metrics=["F1"], zero_division=1, **columns)
    assert card.value("F1", average="weighted") == 1.0


@pytest.mark.parametrize("limit", [None, "500MB"])
def test_torchmetrics_mean_skips_classes_that_no_datum_has(limit: str | None) -> None:
    """``MulticlassAveragePrecision`` ignores NaN; ``MultilabelAveragePrecision`` counts it as 0.

    In release 1.9.0 a target of only zeros has recall 1. With several labels this is the target of
    every
    absent label; with one it is the whole target if all datums have class 0.
    """
    scores = [[0.2, 0.7, 0.1], [0.3, 0.1, 0.6], [0.5, 0.4, 0.1], [0.1, 0.3, 0.6]]

    def mean(truth: list[int], **options: Any) -> tuple[float | None, list[float | None]]:
        ids = [i for i in range(4) for _ in range(3)]
        predictions = pl.DataFrame(
            {
                "datum_id": ids,
                "label_value": [0, 1, 2] * 4,
                "score": [one for row in scores for one in row],
            }
        )
        truths = pl.DataFrame({"datum_id": range(4), "label_value": truth})
        options = {
            "dialect": "torchmetrics",
            "metrics": ["AP", "mAP"],
            "labels": [0, 1, 2],
            **options,
        }
        card = ee.score(predictions, truths, memory_limit=limit, **options)
        return card.value("mAP", average="macro"), list(label_values(card, "AP").values())

    assert mean([1, 2, 1, 2]) == (1.0, [None, 1.0, 1.0])
    assert mean([1, 1, 1, 1]) == (1.0, [None, 1.0, None])
    assert mean([0, 0, 0, 0]) == (pytest.approx(1 / 3), [1.0, 0.0, 0.0])
    assert mean([1, 2, 1, 2], multilabel=True) == (pytest.approx(2 / 3), [0.0, 1.0, 1.0])
    assert mean([1, 2, 1, 2], dialect="sklearn")[0] == pytest.approx(2 / 3)
