"""Weights of zero: rows stay, values are null with a reason, and a note reports it."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.rows import label_values, matrix_tables, score
from classification.strategies import modest
from hypothesis import given
from hypothesis import strategies as st
from lazy_imports import LazyModule
from output_frames import numbers
from refusals import noted

import evalengine as ee
from evalengine import metrics

sk = LazyModule("sklearn.metrics")

EVERY = metrics.names("classification")
REASON = "weights are all zero"
DEFINED = ("Counts", "mROCAUCOneVsOne")
"""Empty counts are 0; binary tables have no areas between labels."""

ROWS = pl.DataFrame(
    {
        "actual": [0, 1, 1, 0, 1, 0, 0],
        "score": [0.1, 0.9, 0.3, 0.2, 0.8, 0.6, 0.7],
        "weight": [0.0, 0.0, 0.0, 1.0, 2.0, 0.5, 0.5],
        "part": ["x", "x", "x", "y", "y", "y", "z"],
    }
)


def test_all_weights_zero() -> None:
    """The rows equal those of an unweighted run, and all values are null."""
    card = score((ROWS.with_columns(weight=0.0),), EVERY)
    plain = score((ROWS.drop("weight"),), EVERY)
    names = ["metric", "statistic", "label_value", "average", "k", "score_threshold"]
    assert card.metrics.select(names).equals(plain.metrics.select(names))
    of = card.metrics.filter(~pl.col("metric").is_in(DEFINED))
    assert of["value"].null_count() == of.height
    same = plain.metrics.filter(~pl.col("metric").is_in(DEFINED))["value"].is_not_null()
    assert set(of.filter(same)["reason"]) == {REASON}
    assert of["support"].sum() == 0
    noted(card, "zero_weights", count=7)
    assert card.confusion["count"].sum() == 0
    assert set(card.curves["curve"]) == {"PrecisionRecallCurve"}  # no score has weight
    assert card.curves["precision"].null_count() == card.curves.height
    numbers(card.metrics)


def test_one_slice() -> None:
    card = score((ROWS,), EVERY, by="part")
    for name in "xyz":
        numbers(card.metrics.filter(slice_value=name))
    of = card.metrics.filter(~pl.col("metric").is_in(DEFINED))
    x = of.filter(slice_value="x")
    assert x.height > 20
    assert x["value"].null_count() == x.height
    assert set(x.filter(pl.col("metric") != "RMSCE")["reason"]) == {
        REASON
    }  # of bins with two datums
    assert of.filter(slice_value="y", metric="ROCAUC")["value"].to_list() == [1.0]
    z = of.filter(slice_value="z", metric="ROCAUC")
    assert z["reason"].to_list() == ["only one class: no positive or no negative datum"]
    message = "column 'weight': 1 slice of 'part' with only ground truths of weight 0: 'x'."
    assert message in card.notes
    weighed = score((ROWS.filter(pl.col("weight") > 0),), EVERY)
    columns = ["metric", "statistic", "label_value", "average", "score_threshold", "value"]
    whole = card.metrics.filter(pl.col("slice").is_null(), pl.col("support") > 0)
    other = weighed.metrics.filter(pl.col("support") > 0)
    assert whole.select(columns).equals(other.select(columns))


def test_one_label() -> None:
    truths = pl.DataFrame(
        {"datum_id": [1, 2, 3], "label_value": ["a", "b", "c"], "weight": [1.0, 2.0, 0.0]}
    )
    guesses = pl.DataFrame(
        {"datum_id": [1, 2, 3], "label_value": ["a", "c", "c"], "score": [0.9, 0.8, 0.7]}
    )
    card = score((guesses, truths), ["Recall", "Precision", "ROCAUC", "AP", "Accuracy"])
    assert "'c'" in noted(card, "zero_weights", count=1).message
    of_c = {
        row["metric"]: (row["value"], row["reason"])
        for row in card.metrics.filter(label_value="c").iter_rows(named=True)
    }
    undefined = (None, REASON)
    assert of_c == {
        "Recall": undefined,
        "Precision": (0.0, None),
        "ROCAUC": undefined,
        "AP": undefined,
    }
    assert card.value("Recall", average="macro") == 0.5
    assert card.value("Accuracy") == pytest.approx(1 / 3)


def test_no_note_without_zeros() -> None:
    card = score((ROWS.with_columns(weight=1.0),), ["Accuracy"], by="part")
    assert not [note for note in card.notes if "weight" in note]
    some = ROWS.with_columns(weight=pl.Series([0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]))
    assert not [note for note in score((some,), ["F1"], by="part").notes if "weight" in note]


def test_targets_out_of_reach_have_their_reason() -> None:
    """Weighted precision is at most 0.6, plain 2/3: the zero weight is not the reason."""
    rows = pl.DataFrame(
        {"actual": [1, 0, 1, 0], "score": [0.9, 0.9, 0.8, 0.1], "weight": [0.5, 1.0, 1.0, 0.0]}
    )
    name = "ThresholdAtPrecision"
    plain = score((rows.drop("weight"),), [name], target_precision=0.66)
    assert plain.metrics.filter(statistic="threshold")["value"].to_list() == [0.8]
    card = score((rows,), [name], target_precision=0.66)
    assert card.metrics["value"].null_count() == card.metrics.height > 0
    assert set(card.metrics["reason"]) == {"no threshold reaches it"}


def test_a_missing_class_is_the_reason_for_any_weights() -> None:
    """Only negatives: recall is undefined for that reason, not because of zero weights."""
    rows = pl.DataFrame({"actual": [0, 0], "score": [0.9, 0.8], "weight": [1.0, 0.0]})
    card = score((rows,), ["ROCAUC", "AP", "ThresholdAtRecall"])
    assert set(card.metrics.filter(metric="ROCAUC")["reason"]) == {
        "only one class: no positive or no negative datum"
    }
    others = card.metrics.filter(pl.col("metric") != "ROCAUC")
    assert set(others["reason"]) == {"no ground truth of the label"}


@pytest.mark.parametrize("wrong", [float("nan"), -1.0, None, float("inf")])
def test_refused(wrong: float | None) -> None:
    rows = ROWS.with_columns(weight=pl.Series([1.0, wrong, 1, 1, 1, 1, 1], strict=False))
    with pytest.raises(ee.InputError, match=r"'weight'.*row 1"):
        score((rows,), ["Accuracy"])


@modest
@given(st.integers(0, 10_000), st.integers(6, 30), st.integers(0, 2))
def test_sklearn_with_zeros(seed: int, n: int, silent: int) -> None:
    """Labels without weight: scikit-learn fills or skips them, and so does its dialect."""
    rng = np.random.default_rng(seed)
    truth = np.r_[np.arange(3), rng.integers(0, 3, n - 3)]
    scores = rng.integers(0, 4, (n, 3)) + 0.5
    scores /= scores.sum(axis=1, keepdims=True)
    weight = np.where(truth == silent, 0.0, rng.choice([0.0, 1.0, 2.5], n))
    weight[[at for at in range(3) if at != silent]] = 1.0
    sides, options = matrix_tables(
        truth.tolist(), scores.tolist(), [0, 1, 2], weight=weight.tolist()
    )["one"]
    names = ["F1", "Accuracy", "ROCAUC", "AP", "LogLoss", "Brier", "MCC", "CohenKappa"]
    card = score(sides, names, dialect="sklearn", **options)
    predicted = scores.argmax(axis=1)
    by: dict[str, Any] = {"sample_weight": weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for average in ("macro", "micro", "weighted"):
            theirs = sk.f1_score(truth, predicted, average=average, zero_division=0.0, **by)
            assert card.value("F1", average=average) == pytest.approx(theirs), average
        areas = sk.roc_auc_score(truth, scores, multi_class="ovr", average=None, **by)
        precise = sk.average_precision_score(np.eye(3)[truth], scores, average=None, **by)
    for name, theirs in (("ROCAUC", areas), ("AP", precise)):
        for value, expected in zip(label_values(card, name).values(), theirs, strict=True):
            assert (value is None and math.isnan(expected)) or value == pytest.approx(expected)
    for name, theirs in (
        ("Accuracy", sk.accuracy_score(truth, predicted, **by)),
        ("LogLoss", sk.log_loss(truth, scores, labels=[0, 1, 2], **by)),
        ("Brier", sk.brier_score_loss(truth, scores, labels=[0, 1, 2], **by)),
        ("MCC", sk.matthews_corrcoef(truth, predicted, **by)),
        ("CohenKappa", sk.cohen_kappa_score(truth, predicted, **by)),
    ):
        assert card.value(name) == pytest.approx(theirs), name


@pytest.mark.parametrize("seed", range(20))
def test_no_true_negative_whatever_the_weights(seed: int) -> None:
    """Weighted sums are rounded; their difference is not a true negative."""
    weights = np.random.default_rng(seed).random(7).round(3) + 0.001
    rows = pl.DataFrame(
        {"datum_id": range(7), "actual": [*"aabbbbb"], "predicted": "a", "weight": weights}
    )
    card = score((rows,), ["NPV", "Specificity"])
    assert card.metrics.filter(metric="NPV", label_value="a")["value"].to_list() == [None]
    assert card.metrics.filter(metric="Specificity", label_value="a")["value"].to_list() == [0.0]
