"""compat.sklearn against scikit-learn itself, on random tables."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lazy_imports import LazyModule
from refusals import refused

from evalengine.compat import sklearn as ours

sk = LazyModule("sklearn.metrics")
calibration = LazyModule("sklearn.calibration")

SEEDS = range(int(os.environ.get("EVALENGINE_EXAMPLES", "4")))
LABELS = (
    [0, 1],
    [0, 1, 2],
    [3, -7, 12, 5],
    ["b", "a"],
    ["x", "é", "Zz", "a"],
    [True, False],
    [0.0, 1.0, 2.0],
)


def quiet(call: Callable[..., Any], *args: Any, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **more)


def same(mine: Any, theirs: Any) -> None:
    """Compare values, types, shapes and dtypes."""
    if isinstance(theirs, tuple):
        assert isinstance(mine, tuple)
        for one, other in zip(mine, theirs, strict=True):
            same(one, other)
    elif isinstance(theirs, dict):
        assert list(mine) == list(theirs)
        for name, value in theirs.items():
            same(mine[name], value)
    elif isinstance(theirs, np.ndarray):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)
    elif isinstance(theirs, float):
        assert type(mine) is float
        assert math.isclose(mine, theirs, rel_tol=1e-11, abs_tol=1e-12) or (
            math.isnan(mine) and not math.isfinite(theirs)  # balanced accuracy if chance is 1
        )
    else:
        assert (mine, type(mine)) == (theirs, type(theirs))


def both(name: str, *args: Any, **more: Any) -> None:
    """Compare both functions; if scikit-learn gives an error or NaN, either is accepted."""
    try:
        theirs = quiet(getattr(sk, name), *args, **more)
    except (ValueError, TypeError, ZeroDivisionError, IndexError):
        theirs = math.nan
    if isinstance(theirs, float) and math.isnan(theirs):
        with contextlib.suppress(ValueError):
            assert np.isnan(quiet(getattr(ours, name), *args, **more)).any()
    else:
        same(quiet(getattr(ours, name), *args, **more), theirs)


def random_rows(
    seed: int,
) -> tuple[np.random.Generator, list[Any], list[Any], list[Any], dict[str, Any]]:
    rng = np.random.default_rng(seed)
    names = LABELS[rng.integers(len(LABELS))]
    n = int(rng.integers(1, 25))
    truth = [names[i] for i in rng.integers(0, rng.integers(1, len(names) + 1), n)]
    predicted = [names[i] for i in rng.integers(0, rng.integers(1, len(names) + 1), n)]
    weights = rng.choice([0.0, 0.5, 1.0, 2.25], n) + (rng.random() < 0.5)
    whole = rng.integers(1, 4, n)
    weight = [None, weights.tolist(), whole][rng.integers(3)]
    if weight is not None and not np.any(weight):
        weight = None
    return rng, truth, predicted, names, {"sample_weight": weight}


@pytest.mark.parametrize("seed", SEEDS)
def test_hard_predictions(seed: int) -> None:
    rng, truth, predicted, names, weight = random_rows(seed)
    both("accuracy_score", truth, predicted, **weight, normalize=bool(rng.integers(2)))
    both("zero_one_loss", truth, predicted, **weight)
    both("hamming_loss", truth, predicted, **weight)
    both("balanced_accuracy_score", truth, predicted, **weight, adjusted=bool(rng.integers(2)))
    both("matthews_corrcoef", truth, predicted, **weight)
    both("multilabel_confusion_matrix", truth, predicted, **weight)
    kappa_weights = [None, "linear", "quadratic"][rng.integers(3)]
    both("cohen_kappa_score", truth, predicted, **weight, weights=kappa_weights)
    some = [names[i] for i in rng.permutation(len(names))[: rng.integers(1, len(names) + 1)]]
    both(
        "cohen_kappa_score",
        truth,
        predicted,
        **weight,
        weights=kappa_weights,
        labels=some,
        replace_undefined_by=0.0,
    )
    for normalize in (None, "true", "pred", "all"):
        labels = [None, some][rng.integers(2)]
        both("confusion_matrix", truth, predicted, **weight, labels=labels, normalize=normalize)


@pytest.mark.parametrize("seed", SEEDS[:1])
def test_ratios(seed: int) -> None:
    rng, truth, predicted, names, weight = random_rows(seed + 1000)
    some = [names[i] for i in rng.permutation(len(names))[: rng.integers(1, len(names) + 1)]]
    for average in ("binary", "micro", "macro", "weighted", None):
        for fill in ("warn", 0, 1, np.nan):
            labels = None if average == "binary" else [None, some][rng.integers(2)]
            options = {**weight, "average": average, "zero_division": fill, "labels": labels}
            if average == "binary":
                options["pos_label"] = names[rng.integers(len(names))]
            beta = float(rng.choice([0.0, 0.5, 1.0, 2.0, np.inf]))
            both("precision_recall_fscore_support", truth, predicted, beta=beta, **options)
            name = ["precision_score", "recall_score", "f1_score"][rng.integers(3)]
            both(name, truth, predicted, **options)
            both("fbeta_score", truth, predicted, beta=beta, **options)
            if not (isinstance(fill, float) and math.isnan(fill)):
                both("jaccard_score", truth, predicted, **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_repeated_labels(seed: int) -> None:
    rng, truth, predicted, names, weight = random_rows(seed + 6000)
    labels = [names[i] for i in rng.integers(0, len(names), len(names) + 1)]
    more = {**weight, "labels": labels}
    for average in ("micro", "macro", "weighted", None):
        for fill in ("warn", 1):
            options = {**more, "average": average, "zero_division": fill}
            both("precision_recall_fscore_support", truth, predicted, **options)
            both("jaccard_score", truth, predicted, **options)
    both("multilabel_confusion_matrix", truth, predicted, **more)
    both("confusion_matrix", truth, predicted, **more)
    both("cohen_kappa_score", truth, predicted, **more, weights="linear")
    if weight["sample_weight"] is None:
        both("classification_report", truth, predicted, **more)
    matrix, guess = (rng.integers(0, 2, (6, 3)) for _ in range(2))
    both("f1_score", matrix, guess, average="samples", labels=[2, 0, 2])
    both("multilabel_confusion_matrix", matrix, guess, labels=[2, 0, 2])
    for each in ({}, {"sample_weight": rng.integers(1, 4, 6)}, {"sample_weight": rng.random(6)}):
        both("multilabel_confusion_matrix", matrix, guess, samplewise=True, **each)
    both("multilabel_confusion_matrix", matrix, guess, samplewise=True, labels=[2, 0, 2])


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_report(seed: int) -> None:
    rng, truth, predicted, names, weight = random_rows(seed + 2000)
    if weight["sample_weight"] is not None:  # with halves, sums print the same
        weight = {"sample_weight": (np.round(np.asarray(weight["sample_weight"]) * 2) / 2)}
        if not weight["sample_weight"].any():
            return
    some = [names[i] for i in rng.permutation(len(names))[: rng.integers(1, len(names) + 1)]]
    for labels in (None, some):
        for fill in ("warn", 1.0, np.nan):
            more = {**weight, "labels": labels, "zero_division": fill}
            both("classification_report", truth, predicted, **more, output_dict=True)
            both("classification_report", truth, predicted, **more, digits=int(rng.integers(2, 5)))
    floats = [5.0, *map(float, range(len(truth) - 1))]
    both("classification_report", [5] * len(truth), [5.0] * len(truth), output_dict=True)
    both("classification_report", [5] * len(truth), floats, output_dict=True)
    both("classification_report", [5] * len(truth), floats, labels=[5], output_dict=True)
    called = [f"the label {one}" for one in some]
    both("classification_report", truth, predicted, labels=some, target_names=called)
    both("classification_report", truth, predicted, target_names=called)


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_two_labels(seed: int) -> None:
    rng, truth, _, names, weight = random_rows(seed + 3000)
    names = names[:2]
    truth = [one if one in names else names[0] for one in truth]
    n = len(truth)
    scores = rng.integers(0, 2 + seed % 9, n) / 10 if seed % 2 else rng.random(n)
    scores = scores.astype([np.float64, np.float32][rng.integers(2)])
    positive = names[rng.integers(2)]
    both("roc_auc_score", truth, scores, **weight)
    both("roc_auc_score", truth, scores, **weight, max_fpr=float(rng.choice([0.2, 0.7, 1.0])))
    both("average_precision_score", truth, scores, **weight, pos_label=positive)
    for pos_label in (positive, None):
        for thin in (True, False):
            more = {**weight, "pos_label": pos_label, "drop_intermediate": thin}
            both("precision_recall_curve", truth, scores, **more)
            both("roc_curve", truth, scores, **more)
        for thin in (True, False):
            more = {**weight, "pos_label": pos_label, "drop_intermediate": thin}
            both("det_curve", truth, scores, **more)
        wide = scores.astype(np.float64)  # scikit-learn computes in single precision
        both(
            "brier_score_loss",
            truth,
            wide,
            **weight,
            pos_label=pos_label,
            scale_by_half=["auto", True, False][seed % 3],
        )
    both("log_loss", truth, wide, **weight, normalize=bool(rng.integers(2)))
    both("log_loss", truth, wide, **weight, labels=sorted(names))
    for k in (1, 2):
        both("top_k_accuracy_score", truth, scores, **weight, k=k, normalize=bool(rng.integers(2)))
        both("top_k_accuracy_score", truth, scores * 3 - 1, **weight, k=k)


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_several_labels(seed: int) -> None:
    rng, truth, _, names, weight = random_rows(seed + 4000)
    names = sorted(set(names))
    raw = rng.integers(0, 2 + seed % 5, (len(truth), len(names))) + 0.25
    scores = raw / raw.sum(axis=1, keepdims=True)
    for labels in (None, names):
        for average in ("macro", "weighted", "micro", None) if len(names) > 2 else ():
            more = {"average": average, "labels": labels}
            both("roc_auc_score", truth, scores, **weight, **more, multi_class="ovr")
            if average is not None:
                both("roc_auc_score", truth, scores, **more, multi_class="ovo")
        both("log_loss", truth, scores, **weight, labels=labels)
        for half in ("auto", True, False):
            both("brier_score_loss", truth, scores, **weight, labels=labels, scale_by_half=half)
            if labels is not None:
                one_hot = np.array([[int(one == name) for name in names] for one in truth])
                both("brier_score_loss", one_hot, scores, **weight, scale_by_half=half)
                both("log_loss", one_hot, scores, **weight)
        for k in (1, 2, 3, 9):
            both(
                "top_k_accuracy_score",
                truth,
                scores,
                **weight,
                labels=labels,
                k=k,
                normalize=bool(rng.integers(2)),
            )
    both("roc_auc_score", truth, scores)
    for average in ("macro", "weighted", "micro", "samples", None):
        both("average_precision_score", truth, scores, **weight, average=average)


@pytest.mark.parametrize("seed", SEEDS)
def test_bins_thresholds_and_gains(seed: int) -> None:
    rng = np.random.default_rng(seed + 5000)
    n, n_bins = int(rng.integers(2, 30)), int(rng.integers(1, 12))
    truth = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    edges = np.linspace(0, 1, n_bins + 1)
    scores = rng.choice(edges, n) if seed % 2 else rng.random(n)
    result = ours.calibration_curve(truth, scores, n_bins=n_bins)
    same(result, calibration.calibration_curve(truth, scores, n_bins=n_bins))
    weight = [None, rng.integers(1, 3, n), rng.random(n)][seed % 3]
    both("confusion_matrix_at_thresholds", truth, scores, sample_weight=weight)
    shape = int(rng.integers(1, 5)), int(rng.integers(2, 8))
    gains = rng.integers(0, 4, shape) * [1, 0.3][seed % 2]
    for k in (None, 1, 3):
        both("ndcg_score", gains, rng.integers(0, 4, shape) / 3, k=k)
        both("ndcg_score", gains, rng.random(shape), k=k, ignore_ties=True)
        both("dcg_score", gains - 1, rng.integers(0, 4, shape) / 3, k=k)


def test_signatures() -> None:
    """Compare names, kinds and defaults of every argument."""
    for name in ours.__all__:
        mine = inspect.signature(getattr(ours, name)).parameters.values()
        home = calibration if name == "calibration_curve" else sk
        theirs = inspect.signature(getattr(home, name)).parameters.values()
        random_rows = [
            [(one.name, one.kind, str(one.default)) for one in side] for side in (mine, theirs)
        ]
        assert random_rows[0] == random_rows[1], name


class Tensor:
    """An object with ``__array__`` and no other method."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values if dtype is None else self.values.astype(dtype)


@pytest.mark.parametrize(
    "shape",
    [list, np.asarray, pd.Series, pl.Series, Tensor, tuple, lambda x: np.asarray(x)[:, None]],
)
def test_shapes_of_input(shape: Any) -> None:
    for labels in ([0, 1, 1, 0, 1], ["a", "b", "b", "a", "b"], [True, False, False, True, False]):
        turned = labels[1:] + labels[:1]
        result = quiet(ours.f1_score, shape(labels), shape(turned), average="macro")
        assert result == pytest.approx(sk.f1_score(labels, turned, average="macro"))
    scores = [0.1, 0.4, 0.35, 0.8, 0.2]
    result = ours.roc_auc_score(
        shape([0, 0, 1, 1, 0]), shape(scores), sample_weight=shape([1, 2, 1, 1, 3])
    )
    theirs = sk.roc_auc_score([0, 0, 1, 1, 0], scores, sample_weight=[1, 2, 1, 1, 3])
    assert result == pytest.approx(theirs)


def test_categories_are_labels() -> None:
    truth = pd.Series(["a", "b", "a"], dtype="category")
    assert ours.accuracy_score(truth, pl.Series(["a", "a", "a"], dtype=pl.Categorical)) == 2 / 3
    assert ours.accuracy_score(pd.Series([1, 2, 1], dtype="category"), [1, 2, 2]) == 2 / 3
    assert ours.accuracy_score(pd.array([1, 2, 1]), pl.DataFrame({"a": [1, 2, 2]})) == 2 / 3
    with refused(code="null_values", option="y_true", count=1):
        ours.accuracy_score(pd.array([1, None, 1]), [1, 2, 1])


@pytest.mark.parametrize(
    ("name", "args", "more", "refusal"),
    [
        (
            "accuracy_score",
            ([1, 2], [1]),
            {},
            {"code": "lengths_differ", "lengths": {"y_true": 2, "y_pred": 1}},
        ),
        ("accuracy_score", ([], []), {}, {"code": "empty"}),
        ("accuracy_score", ([1, 2], ["1", "2"]), {}, {"code": "types_mixed"}),
        (
            "accuracy_score",
            ([1, 2], [0.5, 2.0]),
            {},
            {"code": "not_whole", "option": "y_pred", "count": 1},
        ),
        (
            "accuracy_score",
            ([1, None], [1, 2]),
            {},
            {"code": "null_values", "option": "y_true", "count": 1},
        ),
        ("accuracy_score", ([[1, 0], [0, 1]], [1, 0]), {}, {"code": "forms_differ"}),
        (
            "accuracy_score",
            ([[1, 0], [0, 1]], [[1, 2], [0, 1]]),
            {},
            {"code": "wrong_shape", "option": "y_pred", "shape": (2, 2)},
        ),
        (
            "accuracy_score",
            ([[1, 0]], [[1, 0, 1]]),
            {},
            {"code": "shapes_differ", "shapes": [(1, 2), (1, 3)]},
        ),
        (
            "matthews_corrcoef",
            ([[1, 0], [0, 1]], [[1, 0], [0, 1]]),
            {},
            {"code": "wrong_shape", "option": "y_true", "shape": (2, 2)},
        ),
        (
            "f1_score",
            ([1, 2], [1, 2]),
            {"average": "samples"},
            {"code": "option_unfit", "option": "average", "value": "samples"},
        ),
        (
            "f1_score",
            ([[1, 0]], [[1, 0]]),
            {},
            {"code": "option_unfit", "option": "average", "value": "binary"},
        ),
        (
            "f1_score",
            ([[1, 0]], [[1, 0]]),
            {"average": None, "labels": [2]},
            {"code": "unknown_label", "option": "labels", "value": [2]},
        ),
        (
            "roc_auc_score",
            ([[1, 0]], [0.5]),
            {},
            {"code": "shapes_differ", "shapes": [(1, 2), (1,)]},
        ),
        (
            "calibration_curve",
            ([0, 1], [0.1, 1.1]),
            {},
            {"code": "not_probabilities", "option": "y_prob"},
        ),
        (
            "calibration_curve",
            ([0, 1], [0.1, 1]),
            {"strategy": "quantile"},
            {"code": "option_value", "option": "strategy", "value": "quantile"},
        ),
        ("ndcg_score", ([[0, -1]], [[1, 2]]), {}, {"code": "too_low", "option": "y_true"}),
        (
            "f1_score",
            ([1, 2, 3], [1, 2, 3]),
            {},
            {"code": "option_unfit", "option": "average", "value": "binary", "count": 3},
        ),
        (
            "f1_score",
            ([1, 2], [1, 2]),
            {"pos_label": 5},
            {"code": "unknown_label", "option": "pos_label", "value": 5},
        ),
        (
            "f1_score",
            ([0, 1], [0, 1]),
            {"zero_division": 0.5},
            {"code": "option_value", "option": "zero_division", "value": 0.5},
        ),
        ("f1_score", ([0, 1], [0, 1]), {"sample_weight": [0, 0]}, {"code": "zero_weights"}),
        (
            "f1_score",
            ([0, 1], [0, 1]),
            {"sample_weight": [-1, 2]},
            {"code": "too_low", "side": "table", "column": "weight", "count": 1, "rows": [0]},
        ),
        (
            "roc_auc_score",
            ([0, 1], [0.1, math.nan]),
            {},
            {"code": "not_finite", "option": "y_score", "count": 1},
        ),
        (
            "roc_auc_score",
            ([0, 1, 2], np.eye(3)),
            {},
            {"code": "option_missing", "option": "multi_class"},
        ),
        (
            "log_loss",
            ([0, 1], [0.1, 1.2]),
            {},
            {"code": "not_probabilities", "option": "y_proba", "count": 1},
        ),
        (
            "roc_curve",
            (["a", "b"], [0.1, 0.2]),
            {},
            {"code": "option_missing", "option": "pos_label"},
        ),
        (
            "log_loss",
            (np.array([[1, 0], [1, 1], [0, 0]]), np.full((3, 2), 0.5)),
            {},
            {"code": "wrong_shape", "option": "y_true", "count": 2},
        ),
    ],
)
def test_refused(name: str, args: Any, more: Any, refusal: dict[str, Any]) -> None:
    with refused(**refusal):
        getattr(ours, name)(*args, **more)


def test_missing_functions_are_named() -> None:
    with pytest.raises(ImportError, match="import it from sklearn"):
        from evalengine.compat.sklearn import silhouette_score  # noqa: F401


def test_undefined_values_warn() -> None:
    with pytest.warns(UserWarning, match="Precision is undefined"):
        assert ours.precision_score([0, 1], [0, 0]) == 0.0
    with pytest.warns(UserWarning, match="one class"):
        assert math.isnan(ours.roc_auc_score([1, 1], [0.1, 0.2]))
    with pytest.warns(UserWarning, match="one class"):
        assert math.isnan(ours.roc_auc_score([1, 1], [[0.9, 0.1], [0.8, 0.2]]))
