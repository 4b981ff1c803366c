"""Random tables against scikit-learn itself, under its dialect."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.rows import label_values, matrix_tables, one_table, score, two_tables
from classification.strategies import modest
from hypothesis import given
from hypothesis import strategies as st
from lazy_imports import LazyModule

sk = LazyModule("sklearn.metrics")
Array = np.ndarray[Any, Any]


def quiet(call: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Call a function without its warnings about undefined values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **more)


def close(ours: float | None, theirs: float) -> bool:
    """Compare within 1e-10; undefined here is infinite or NaN there."""
    if ours is None:
        return not np.isfinite(theirs)
    return bool(abs(ours - theirs) <= 1e-10)


LABELS = st.sampled_from([(0, 1), (0, 1, 2, 3), ("x", "y"), ("b", "a", "c")])


@st.composite
def hard(draw: st.DrawFn) -> tuple[list[Any], list[Any], list[float] | None]:
    """Truth, prediction and perhaps weights."""
    labels = draw(LABELS)
    n = draw(st.integers(1, 30))
    column = st.lists(st.sampled_from(labels), min_size=n, max_size=n)
    weights = st.lists(st.sampled_from([0.5, 1.0, 2.25]), min_size=n, max_size=n)
    return draw(column), draw(column), draw(st.none() | weights)


@modest
@given(hard(), st.sampled_from([two_tables, one_table]), st.sampled_from([0.0, 1.0, np.nan]))
def test_hard(rows: Any, shape: Any, fill: float) -> None:
    """precision_recall_fscore_support, jaccard, agreement."""
    truth, predicted, weight = rows
    more = {} if weight is None else {"weight": weight}
    given_weight = {"sample_weight": weight}
    card = score(
        shape(truth, predicted, **more),
        ["Precision", "Recall", "F0.5", "Jaccard", "Accuracy", "BalancedAccuracy",
         "BalancedAccuracyAdjusted", "MCC", "CohenKappa", "CohenKappaLinear",
         "CohenKappaQuadratic", "HammingLoss"],
        dialect="sklearn",
        zero_division=fill,
    )  # fmt: skip
    for average in ("macro", "micro", "weighted"):
        theirs = quiet(
            sk.precision_recall_fscore_support, truth, predicted,
            beta=0.5, average=average, zero_division=fill, **given_weight,
        )  # fmt: skip
        for metric, value in zip(("Precision", "Recall", "F0.5"), theirs, strict=False):
            assert close(card.value(metric, average=average), value), (metric, average)
        if not np.isnan(fill):
            value = quiet(
                sk.jaccard_score, truth, predicted,
                average=average, zero_division=fill, **given_weight,
            )  # fmt: skip
            assert close(card.value("Jaccard", average=average), value), average
    for metric, call, options in (
        ("Accuracy", sk.accuracy_score, {}),
        ("BalancedAccuracy", sk.balanced_accuracy_score, {}),
        ("BalancedAccuracyAdjusted", sk.balanced_accuracy_score, {"adjusted": True}),
        ("MCC", sk.matthews_corrcoef, {}),
        ("CohenKappa", sk.cohen_kappa_score, {}),
        ("CohenKappaLinear", sk.cohen_kappa_score, {"weights": "linear"}),
        ("CohenKappaQuadratic", sk.cohen_kappa_score, {"weights": "quadratic"}),
        ("HammingLoss", sk.hamming_loss, {}),
    ):
        value = quiet(call, truth, predicted, **options, **given_weight)
        assert close(card.value(metric), value), (metric, card.value(metric), value)


def generated(seed: int, n_labels: int, n: int, grid: int) -> tuple[Array, Array, Array]:
    """Truth, probabilities that tie often on a grid, weights."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, grid, (n, n_labels)) + 0.5
    truth = rng.integers(0, n_labels, n)
    truth[:n_labels] = np.arange(n_labels)
    return truth, scores / scores.sum(axis=1, keepdims=True), rng.choice([0.5, 1.0, 3.0], n)


SEEDS = st.integers(0, 10_000)


@modest
@given(SEEDS, st.integers(3, 5), st.integers(6, 40), st.sampled_from([2, 3, 1000]), st.booleans(),
       st.sampled_from(["long", "wide", "one"]))  # fmt: skip
def test_matrix(seed: int, n_labels: int, n: int, grid: int, weighted: bool, shape: str) -> None:
    """Areas, average precision, log loss, Brier and top-k of several labels."""
    truth, scores, weight = generated(seed, n_labels, n, grid)
    labels = list(range(n_labels))
    more = {"weight": weight.tolist()} if weighted else {}
    sides, options = matrix_tables(truth.tolist(), scores.tolist(), labels, **more)[shape]
    card = score(
        sides,
        ["ROCAUC", "mROCAUC", "AP", "LogLoss", "Brier", "TopKAccuracy", "Accuracy"],
        dialect="sklearn",
        average="micro",
        k=[1, 2],
        **options,
    )
    by = {"sample_weight": weight} if weighted else {}
    for average in ("macro", "weighted", "micro"):
        value = sk.roc_auc_score(truth, scores, multi_class="ovr", average=average, **by)
        assert close(card.value("mROCAUC", average=average), value), average
    areas = sk.roc_auc_score(truth, scores, multi_class="ovr", average=None, **by)
    assert label_values(card, "ROCAUC") == pytest.approx(dict(enumerate(areas)), abs=1e-10)
    one_hot = np.eye(n_labels)[truth]
    values = sk.average_precision_score(one_hot, scores, average=None, **by)
    assert label_values(card, "AP") == pytest.approx(dict(enumerate(values)), abs=1e-10)
    assert close(card.value("LogLoss"), sk.log_loss(truth, scores, labels=labels, **by))
    assert close(card.value("Brier"), sk.brier_score_loss(truth, scores, labels=labels, **by))
    for k in (1, 2):
        value = sk.top_k_accuracy_score(truth, scores, k=k, labels=labels, **by)
        assert close(card.value("TopKAccuracy", k=k), value), k
    if not weighted:
        card = score(sides, ["mROCAUCOneVsOne"], dialect="sklearn", **options)
        for average in ("macro", "weighted"):
            value = sk.roc_auc_score(truth, scores, multi_class="ovo", average=average)
            assert close(card.value("mROCAUCOneVsOne", average=average), value)


@modest
@given(SEEDS, st.integers(2, 40), st.sampled_from([2, 3, 1000]), st.sampled_from([0.1, 0.5, 1.0]),
       st.booleans(), st.booleans())  # fmt: skip
def test_binary(seed: int, n: int, grid: int, max_fpr: float, weighted: bool, single: bool) -> None:
    """Areas and curves of one positive label."""
    truth, scores, weight = generated(seed, 2, n, grid)
    one = scores[:, 1].astype(np.float32 if single else np.float64)
    more = {"weight": weight} if weighted else {}
    by = {"sample_weight": weight} if weighted else {}
    table = pl.DataFrame({"actual": truth, "score": one, **more})
    card = score(
        (table,),
        ["ROCAUC", "PartialROCAUC", "AP", "LogLoss", "Brier", "ROCCurve",
         "ScorePrecisionRecallCurve", "DETCurve"],
        dialect="sklearn",
        max_fpr=max_fpr,
        thin_curves=bool(seed % 2),
    )  # fmt: skip
    wide = one.astype(np.float64)
    assert close(card.value("ROCAUC", label_value=1), sk.roc_auc_score(truth, wide, **by))
    assert close(card.value("AP", label_value=1), sk.average_precision_score(truth, wide, **by))
    value = sk.roc_auc_score(truth, wide, max_fpr=max_fpr, **by)
    assert close(card.value("PartialROCAUC", label_value=1), value)
    assert close(card.value("Brier"), sk.brier_score_loss(truth, wide, **by))
    assert close(card.value("LogLoss"), sk.log_loss(truth, wide, **by))
    frames = {name: card.curves.filter(pl.col("curve") == name) for name in CURVES}
    fpr, tpr, at = sk.roc_curve(truth, wide, drop_intermediate=bool(seed % 2), **by)
    same(frames["ROCCurve"], {"fpr": fpr, "recall": tpr, "score_threshold": at})
    precision, recall, at = sk.precision_recall_curve(truth, wide, **by)
    points = frames["ScorePrecisionRecallCurve"].reverse()
    same(points, {"recall": recall, "score_threshold": np.r_[at, np.inf]})
    assert points["precision"].to_list()[:-1] == pytest.approx(precision[:-1], abs=1e-10)
    fpr, fnr, at = sk.det_curve(truth, wide, **by)
    points = frames["DETCurve"].reverse().with_columns(fnr=1 - pl.col("recall"))
    same(points, {"fpr": fpr, "fnr": fnr, "score_threshold": at})


CURVES = ("ROCCurve", "ScorePrecisionRecallCurve", "DETCurve")


def same(frame: pl.DataFrame, columns: dict[str, Array]) -> None:
    """Compare columns of a curve; the threshold above all scores is null here."""
    for name, theirs in columns.items():
        finite = np.where(np.isinf(theirs), np.nan, theirs)
        np.testing.assert_allclose(frame[name].to_numpy(), finite, rtol=0, atol=1e-10)


@modest
@given(SEEDS, st.integers(2, 20), st.integers(2, 4), st.sampled_from([0.0, 1.0]))
def test_several_labels(seed: int, n: int, n_labels: int, fill: float) -> None:
    """Counts at a threshold, exact matches and Hamming loss of a label matrix."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((n, n_labels)) < 0.4).astype(int)
    scores = rng.integers(0, 5, (n, n_labels)) / 4
    labels = list(range(n_labels))
    (predictions, _), _ = matrix_tables([0] * n, scores.tolist(), labels)["long"]
    at, value = np.nonzero(truth)
    truths = pl.DataFrame({"datum_id": at, "label_value": value}).cast(pl.Int64)
    card = score(
        (predictions, truths),
        ["Precision", "Recall", "F1", "Accuracy", "HammingLoss", "Jaccard"],
        dialect="sklearn",
        multilabel=True,
        zero_division=fill,
    )
    predicted = (scores >= 0.5).astype(int)
    if not truth.any():
        return
    for average in ("macro", "micro", "weighted", "samples"):
        used = np.flatnonzero(truth.any(axis=0) | predicted.any(axis=0))
        theirs = quiet(
            sk.precision_recall_fscore_support, truth, predicted,
            labels=used, average=average, zero_division=fill,
        )  # fmt: skip
        for metric, value in zip(("Precision", "Recall", "F1"), theirs, strict=False):
            assert close(card.value(metric, average=average), value), (metric, average)
        value = quiet(
            sk.jaccard_score, truth, predicted, labels=used, average=average, zero_division=fill
        )
        assert close(card.value("Jaccard", average=average), value), average
    assert close(card.value("Accuracy"), sk.accuracy_score(truth, predicted))
    if used.size == n_labels:
        assert close(card.value("HammingLoss"), sk.hamming_loss(truth, predicted))


@modest
@given(st.integers(0, 2**32 - 1))
def test_a_label_that_is_never_true_has_no_weight(seed: int) -> None:
    """The weighted mean is that of the other labels; the plain one is undefined."""
    rng = np.random.default_rng(seed)
    truth = np.stack([*(rng.permutation(np.arange(6) % 2) for _ in "ab"), np.zeros(6, int)], 1)
    scores = rng.integers(0, 5, (6, 3)) / 5
    row, label = (place.ravel() for place in np.indices(truth.shape))
    predictions = pl.DataFrame({"datum_id": row, "label_value": label, "score": scores.ravel()})
    true = predictions.filter(pl.Series(truth.ravel() > 0)).drop("score")
    card = score((predictions, true), ["mROCAUC"], average="weighted", multilabel=True,
                 dialect="sklearn", datums=pl.DataFrame({"datum_id": range(6)}))  # fmt: skip
    theirs = quiet(sk.roc_auc_score, truth, scores, average="weighted")
    assert np.isfinite(theirs)
    assert close(card.value("mROCAUC", average="weighted"), theirs)
    assert card.value("mROCAUC", average="macro") is None
