"""Hard predictions against scikit-learn's known answers, from two tables and from one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import polars as pl
import pytest
from classification.known_answers import by_name, close, plain
from classification.rows import DEFAULT, Sides, counts_by_cell, one_table, score, two_tables

import evalengine as ee

SHAPES = (two_tables, one_table)
Shape = Callable[..., Sides]

AGREEMENT = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "BalancedAccuracy",
    "balanced_accuracy_adjusted": "BalancedAccuracyAdjusted",
    "mcc": "MCC",
    "kappa": "CohenKappa",
    "kappa_quadratic": "CohenKappaQuadratic",
    "hamming": "HammingLoss",
}

INFINITE = {("single_item_wrong", "BalancedAccuracyAdjusted")}
"""scikit-learn divides by 0 if chance agreement is 1; here the value is undefined."""

RATIO_CASES = [
    "balanced3", "pred_only_class", "both_missing_sides", "one_class_perfect", "string_order",
    "whitespace_case_unicode", "binary01", "binary01_no_pred_pos", "binary_all_neg",
    "bool_strings", "single_item_wrong",
]  # fmt: skip


def cases() -> dict[str, dict[str, Any]]:
    """Read the cases of ``prf.json``."""
    return by_name("classification", "prf.json")


def check_prf(
    card: ee.Scorecard, labels: list[Any], average: str, beta: float, value: list[Any]
) -> None:
    """Compare with precision, recall, F and support of ``precision_recall_fscore_support``."""
    rows = {(row["metric"], row["label_value"]): row for row in card.metrics.iter_rows(named=True)}
    for metric, theirs in zip(("Precision", "Recall", f"F{beta:g}"), value, strict=False):
        if average == "None":
            for at, label in enumerate(labels):
                row = rows[metric, label]
                assert close(row["value"], theirs[at]), (metric, label)
                assert close(row["support"], value[3][at])
        else:
            ours = card.value(metric, average=average)
            assert close(ours, theirs), (metric, average, ours, theirs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", RATIO_CASES)
def test_ratios(name: str, shape: Shape) -> None:
    """Every beta, average and zero_division."""
    case = cases()[name]
    sides = shape(case["inputs"]["y_true"], case["inputs"]["y_pred"])
    expected = plain(case["expected"]["sklearn"])
    labels = case["expected"]["labels"]
    cards: dict[Any, ee.Scorecard] = {}
    for key, answer in expected.items():
        beta, average, fill = (part.split("=")[1] for part in key.split("|"))
        if (beta, fill) not in cards:
            cards[beta, fill] = score(
                sides,
                ["Precision", "Recall", f"F{float(beta):g}"],
                dialect="sklearn",
                zero_division=float(fill),
            )
        check_prf(cards[beta, fill], labels, average, float(beta), answer["value"])
    assert len(expected) == 36


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", RATIO_CASES)
def test_agreement(name: str, shape: Shape) -> None:
    """Accuracy, kappa, correlation, the confusion matrix and Jaccard."""
    case = cases()[name]
    sides = shape(case["inputs"]["y_true"], case["inputs"]["y_pred"])
    expected = plain(case["expected"])
    metrics = [*AGREEMENT.values(), "Jaccard", "ConfusionMatrix"]
    card = score(sides, metrics, dialect="sklearn")
    for theirs, ours in AGREEMENT.items():
        value = card.value(ours)
        if (name, ours) in INFINITE:
            assert (value, expected[theirs]["value"]) == (None, -math.inf)
            continue
        assert close(value, expected[theirs]["value"]), (ours, value, expected[theirs])
    assert close(card.value("Jaccard", average="macro"), expected["jaccard_macro"]["value"])
    labels = expected["labels"]
    cells = {
        (DEFAULT, labels[a], labels[p]): n
        for a, row in enumerate(expected["confusion"]["value"])
        for p, n in enumerate(row)
        if n
    }
    assert counts_by_cell(card.confusion) == cells


@pytest.mark.parametrize("shape", SHAPES)
def test_empty(shape: Shape) -> None:
    """scikit-learn refuses; here there are no rows and no error."""
    none = pl.Series([], dtype=pl.String)
    card = score(shape(none, none), [*AGREEMENT.values(), "F1"], dialect="sklearn")
    assert set(cases()["empty"]["expected"]["accuracy"]) == {"error", "message"}
    assert card.metrics.is_empty()


@pytest.mark.parametrize("shape", SHAPES)
def test_sample_weights(shape: Shape) -> None:
    """Weights of rows; a weighted count is shown as the nearest integer."""
    case = cases()["sample_weight"]
    inputs = case["inputs"]
    sides = shape(inputs["y_true"], inputs["y_pred"], weight=inputs["sample_weight"])
    card = score(
        sides, ["Precision", "Recall", "F1", "Accuracy", "ConfusionMatrix"], dialect="sklearn"
    )
    expected = plain(case["expected"])
    labels = sorted(set(inputs["y_true"]))
    for average, answer in expected["sklearn"].items():
        check_prf(card, labels, average, 1.0, answer["value"])
    assert close(card.value("Accuracy"), expected["accuracy"]["value"])
    ours = counts_by_cell(card.confusion)
    for a, row in enumerate(expected["confusion"]["value"]):
        for p, weight in enumerate(row):
            assert close(ours.get((DEFAULT, labels[a], labels[p]), 0), weight)


@pytest.mark.parametrize("shape", SHAPES)
def test_subset_of_labels(shape: Shape) -> None:
    """labels= names a subset and a label that no row has."""
    case = cases()["labels_subset_and_extra"]
    inputs = case["inputs"]
    sides = shape(inputs["y_true"], inputs["y_pred"])
    for key, answer in plain(case["expected"]["sklearn"]).items():
        average, fill = key.split("|")
        card = score(
            sides,
            ["Precision", "Recall", "F1"],
            dialect="sklearn",
            labels=inputs["labels"],
            zero_division=float(fill.split("=")[1]),
        )
        check_prf(card, inputs["labels"], average, 1.0, answer["value"])


@pytest.mark.parametrize("shape", SHAPES)
def test_absent_class(shape: Shape) -> None:
    """The macro mean of torchmetrics skips labels without any count; scikit-learn's does not."""
    case = cases()["torchmetrics_absent_class"]
    inputs = case["inputs"]
    sides = shape(inputs["y_true"], inputs["y_pred"])
    labels = list(range(inputs["num_classes"]))
    metrics = ["Precision", "Recall", "F1"]
    card = score(sides, metrics, dialect="torchmetrics", labels=labels)
    names = {
        "multiclass_precision": "Precision",
        "multiclass_recall": "Recall",
        "multiclass_f1_score": "F1",
    }
    compared = 0
    for key, answer in plain(case["expected"]["torchmetrics"]).items():
        name, average = key.split("|")
        if name not in names:
            continue
        compared += 1
        if average == "none":
            ours = {
                label: card.value(names[name], label_value=label, average=None) for label in labels
            }
            assert ours == pytest.approx(dict(enumerate(answer["value"])), abs=1e-6)
        else:
            assert card.value(names[name], average=average) == pytest.approx(
                answer["value"], abs=1e-6
            ), key
    assert compared == 12
    card = score(sides, metrics, dialect="sklearn", labels=labels)
    for average, answer in plain(case["expected"]["sklearn"]).items():
        check_prf(card, labels, average, 1.0, answer["value"])


SINGLE_RUNS = ("pred_only_class", "binary01_no_pred_pos")
"""Cases in which each choice of options for F1 needs a run."""
DIVIDED = (
    *SINGLE_RUNS,
    "both_missing_sides",
    "string_order",
    "whitespace_case_unicode",
    "single_item_wrong",
)
"""Cases with a division by zero."""


@pytest.mark.parametrize("name", RATIO_CASES)
def test_phoenix(name: str) -> None:
    """Phoenix's scores under its dialect, over all labels and for one positive label.

    The average and the positive label select numbers of a run, and ``zero_division`` matters only
    for
    divisions by zero. So mostly one run serves all choices.
    """
    case = cases()[name]
    truth = case["inputs"]["y_true"]
    sides = one_table(truth, case["inputs"]["y_pred"])
    cards: dict[Any, ee.Scorecard] = {}
    compared = 0
    for key, answer in plain(case["expected"]["phoenix"]).items():
        parts = dict(part.split("=", 1) for part in key.split("|"))
        beta = float(parts["beta"])
        inputs: dict[str, Any] = {"average": parts["avg"], "beta": beta}
        if "pos" in parts:
            inputs["positive_label"] = type(truth[0])(parts["pos"])
        run = key if name in SINGLE_RUNS and beta == 1 else (beta, name in DIVIDED and parts["zd"])
        if run not in cards:
            cards[run] = score(
                sides,
                ["Precision", "Recall", f"F{beta:g}"],
                dialect="phoenix",
                zero_division=float(parts["zd"]),
                **inputs,
            )
        card = cards[run]
        card.options = msgspec.structs.replace(card.options, **{"positive_label": None, **inputs})
        ours = {values["name"]: values["score"] for values in card.to_phoenix()}
        assert ours == pytest.approx(answer["value"], abs=1e-12, nan_ok=True), key
        compared += 1
    assert compared >= 48
