"""Classification in compat.torchmetrics against known answers of torchmetrics."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from classification.known_answers import by_name, plain
from lazy_imports import LazyModule
from refusals import refused

from evalengine.compat import torchmetrics as tm

sk = LazyModule("sklearn.metrics")


def cases(file: str) -> dict[str, dict[str, Any]]:
    return by_name("classification", file)


def in_batches(metric: Any, preds: Any, target: Any, sizes: int = 3) -> Any:
    """Compute the value of several updates, with reused arrays and pickling in between."""
    preds, target = np.asarray(preds), np.asarray(target)
    for part in np.array_split(np.arange(len(target)), min(sizes, len(target))):
        batch = preds[part], target[part]
        metric.update(*batch)
        for side in batch:
            side[...] = 0
    return pickle.loads(pickle.dumps(metric)).compute()


@pytest.mark.parametrize("average", ["macro", "micro", "weighted", "none"])
def test_ratios_of_classes(average: str) -> None:
    case = plain(cases("prf.json")["torchmetrics_absent_class"])
    inputs = case["inputs"]["y_pred"], case["inputs"]["y_true"]
    for cls, name in ((tm.Precision, "precision"), (tm.Recall, "recall"), (tm.F1Score, "f1_score"),
                      (tm.Accuracy, "accuracy")):  # fmt: skip
        metric = cls(task="multiclass", num_classes=5, average=average)
        theirs = case["expected"]["torchmetrics"][f"multiclass_{name}|{average}"]["value"]
        assert in_batches(metric, *inputs) == pytest.approx(theirs, abs=1e-6), name
    beta = tm.FBetaScore("multiclass", beta=1.0, num_classes=5, average=average)
    theirs = case["expected"]["torchmetrics"][f"multiclass_f1_score|{average}"]["value"]
    assert in_batches(beta, *inputs) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("name", ["medium60x4", "rounded_ties", "single_class_truth"])
def test_areas_and_calibration_of_classes(name: str) -> None:
    case = plain(cases("multiclass_rank.json")[name])
    inputs = case["inputs"]["y_score"], case["inputs"]["y_true"]
    n = len(case["inputs"]["labels"])
    for cls, theirs in ((tm.AUROC, "tm_auroc"), (tm.AveragePrecision, "tm_ap")):
        for average in ("macro", "weighted", "none"):
            metric = cls(task="multiclass", num_classes=n, average=average)
            expected = case["expected"][f"{theirs}_{average}"]["value"]
            expected = np.array(expected, dtype=float)
            np.testing.assert_allclose(in_batches(metric, *inputs), expected, atol=1e-6)
    single = np.asarray(inputs[0], np.float32)
    error = in_batches(tm.CalibrationError("multiclass", num_classes=n), single, inputs[1])
    assert error == pytest.approx(case["expected"]["ece15"]["value"], abs=1e-6)


@pytest.mark.parametrize("name", [*cases("binary_rank.json")])
def test_areas_and_calibration_of_two(name: str) -> None:
    case = plain(cases("binary_rank.json")[name])
    if case["inputs"].get("sample_weight") is not None or not case["inputs"]["y_true"]:
        return  # torchmetrics supports neither weights nor empty tables
    inputs = np.asarray(case["inputs"]["y_score"], np.float64), case["inputs"]["y_true"]
    expected = case["expected"]
    inside = ((inputs[0] >= 0) & (inputs[0] <= 1)).all()
    for cls, key in ((tm.AUROC, "torchmetrics_auroc"), (tm.AveragePrecision, "torchmetrics_ap")):
        theirs = expected.get(key, {}).get("value")
        if theirs is not None and inside:
            assert in_batches(cls("binary"), *inputs) == pytest.approx(
                theirs, abs=1e-6, nan_ok=True
            )
    for norm, key in (("l1", "ece15"), ("max", "mce15")):
        if expected.get(key, {}).get("value") is not None and inside:
            result = in_batches(tm.CalibrationError("binary", norm=norm), *inputs)
            assert result == pytest.approx(expected[key]["value"], abs=1e-6)


def test_confusion_and_agreement() -> None:
    rng = np.random.default_rng(3)
    preds, target = rng.integers(0, 4, (2, 50))
    matrix = in_batches(tm.ConfusionMatrix("multiclass", num_classes=5), preds, target)
    theirs = sk.confusion_matrix(target, preds, labels=range(5))
    assert matrix.dtype == np.int64
    assert matrix.tolist() == theirs.tolist()
    for weights in (None, "linear", "quadratic"):
        metric = tm.CohenKappa("multiclass", num_classes=5, weights=weights)
        theirs = sk.cohen_kappa_score(preds, target, weights=weights)
        assert in_batches(metric, preds, target) == pytest.approx(theirs)
    metric = tm.MatthewsCorrCoef("multiclass", num_classes=5)
    assert in_batches(metric, preds, target) == pytest.approx(sk.matthews_corrcoef(preds, target))
    shares = in_batches(tm.ConfusionMatrix("binary", normalize="true"), preds > 1, target // 2)
    assert shares.sum(axis=1).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("preds", "target", "value"),
    [
        ([1, 1, 1], [1, 1, 1], 1.0),
        ([0, 0], [0, 0], 1.0),
        ([0, 1], [1, 0], -1.0),
        ([1, 1, 1], [1, 1, 0], 2.0**-11.5 * 1 / (3 * 2 * 1 * 2**-23) ** 0.5),
        ([1, 0, 0], [0, 0, 0], 2.0**-11.5 * 1 / (1 * 2**-23 * 3 * 2) ** 0.5),
        ([0, 0, 0], [1, 1, 0], 2.0**-11.5 * -1 / (2**-23 * 2 * 1 * 3) ** 0.5),
    ],
)
def test_matthews_correlation_of_one_class(preds: Any, target: Any, value: float) -> None:
    """By hand from torchmetrics 1.9: sqrt(eps) times a difference, over sides of at least eps."""
    for metric in (tm.MatthewsCorrCoef("binary"), tm.MatthewsCorrCoef("multiclass", num_classes=2)):
        assert in_batches(metric, preds, target) == pytest.approx(value, rel=1e-5)
    several = tm.MatthewsCorrCoef("multiclass", num_classes=3)
    assert in_batches(several, [1, 1, 1], [1, 1, 1]) == 0.0


def test_scores_of_exactly_one_have_a_separate_bin() -> None:
    """By hand: the bins of 1 and 2 rows have errors of 0.95 and 0.5."""
    preds, target = [0.95, 1.0, 1.0], [0, 1, 0]
    for norm, value in (("l1", (0.95 + 2 * 0.5) / 3), ("max", 0.95)):
        metric = tm.CalibrationError("binary", n_bins=10, norm=norm)
        assert in_batches(metric, preds, target) == pytest.approx(value)
    # 0.2 begins a bin in its precision; below the edge of single precision, its bin had 0.15 too.
    metric = tm.CalibrationError("binary", n_bins=10, norm="max")
    assert in_batches(metric, [0.15, 0.2, 1.0], [0, 1, 1]) == pytest.approx(0.8)
    wide = np.array([[0.05, 0.95], [0.0, 1.0], [0.0, 1.0]])
    metric = tm.CalibrationError("multiclass", num_classes=2, n_bins=10)
    assert in_batches(metric, wide, target) == pytest.approx((0.95 + 2 * 0.5) / 3)


def test_scores_become_labels() -> None:
    """Above the threshold, not equal to it; logits by sigmoid; classes by the best score."""
    target = [1, 0, 1, 0]
    for cls, theirs in (
        (tm.Accuracy, 0.5),
        (tm.Precision, 0.5),
        (tm.Recall, 0.5),
        (tm.F1Score, 0.5),
    ):
        assert in_batches(cls("binary"), [0.9, 0.8, 0.5, 0.1], target) == theirs
    assert in_batches(tm.Accuracy("binary"), [2.0, -1.0, 0.3, -0.1], target, 1) == 1.0
    assert in_batches(tm.Accuracy("binary", threshold=0.85), [0.9, 0.8, 0.95, 0.1], target) == 1.0
    scores = np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    metric = tm.Accuracy("multiclass", num_classes=3)
    assert in_batches(metric, scores, [1, 0, 1]) == pytest.approx(2 / 3)
    close = np.array([[1e-9, 2e-9, -5.0]], np.float32)  # equal after the softmax
    assert in_batches(tm.Accuracy("multiclass", num_classes=3), close, [1], 1) == 1.0
    logits = tm.AUROC("multiclass", num_classes=3, average="none")
    result = in_batches(logits, np.log(scores) * 3 - 1, [1, 0, 2], 1)
    assert result.tolist() == [1, 1, 1]


def test_more_dimensions_and_ignored_rows() -> None:
    rng = np.random.default_rng(1)
    scores, target = rng.random((6, 3, 2, 5)), rng.integers(-1, 3, (6, 2, 5))
    metric = tm.Accuracy("multiclass", num_classes=3, ignore_index=-1)
    there = target >= 0
    right = (scores.argmax(axis=1) == target)[there].mean()
    assert in_batches(metric, scores, target) == pytest.approx(right)


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda **more: tm.Accuracy("binary", **more), 0.0),
        (lambda **more: tm.Precision("binary", zero_division=1, **more), 1.0),
        (lambda **more: tm.F1Score("multiclass", num_classes=3, zero_division=1, **more), 1.0),
        (
            lambda **more: tm.F1Score(
                "multiclass", num_classes=3, zero_division=1, average="macro", **more
            ),
            0.0,
        ),
        (
            lambda **more: tm.Recall(
                "multiclass", num_classes=3, zero_division=1, average="none", **more
            ),
            [1.0] * 3,
        ),
        (lambda **more: tm.ConfusionMatrix("binary", **more), [[0, 0], [0, 0]]),
        (lambda **more: tm.CohenKappa("binary", **more), math.nan),
        (lambda **more: tm.MatthewsCorrCoef("binary", **more), 0.0),
        (lambda **more: tm.CalibrationError("binary", **more), math.nan),
        (lambda **more: tm.CalibrationError("binary", norm="max", **more), 0.0),
    ],
)
def test_all_rows_are_ignored(make: Any, value: Any) -> None:
    """Values of torchmetrics 1.9."""
    metric = make(ignore_index=-1)
    wide = metric.task == "multiclass"
    scores = np.full((2, 3), 1 / 3) if wide else np.array([0.2, 0.7])
    np.testing.assert_equal(in_batches(metric, scores, [-1, -1]), np.array(value))


def test_ignored_rows_decide_on_logits() -> None:
    """Only in ratios, as in torchmetrics 1.9: the sigmoid of 0.4 is above 0.5."""
    inputs = [3.0, 0.4], [-1, 1]
    assert in_batches(tm.Accuracy("binary", ignore_index=-1), *inputs, 1) == 1.0
    matrix = in_batches(tm.ConfusionMatrix("binary", ignore_index=-1), *inputs, 1)
    assert matrix.tolist() == [[0, 0], [1, 0]]


def test_calls_merging_and_reset() -> None:
    metric, other = tm.Accuracy("binary"), tm.Accuracy("binary")
    assert metric([1, 1], [1, 0]) == 0.5
    other.update([1, 1], [1, 1])
    metric.merge_state(other)
    assert metric.compute() == 0.75
    metric.reset()
    with pytest.raises(ValueError, match="update was not called"):
        metric.compute()
    with pytest.raises(ValueError, match="other arguments"):
        metric.merge_state(tm.Accuracy("binary", threshold=0.1))


def test_undefined_values() -> None:
    assert in_batches(tm.AUROC("binary"), [0.1, 0.2], [1, 1]) == 0.0
    assert in_batches(tm.AUROC("binary"), [0, 1, 1], [0, 1, 0]) == 0.75
    assert math.isnan(in_batches(tm.CohenKappa("binary"), [1, 1], [1, 1]))
    assert in_batches(tm.Precision("binary"), [0, 0], [1, 0]) == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: tm.Accuracy("multilabel", num_labels=3),
            {"code": "option_unfit", "option": "task", "value": "multilabel"},
        ),
        (
            lambda: tm.Accuracy("multiclass"),
            {"code": "option_unfit", "option": "num_classes", "value": None},
        ),
        (
            lambda: tm.Accuracy("multiclass", num_classes=3, top_k=2),
            {"code": "option_unfit", "option": "top_k"},
        ),
        (
            lambda: tm.AUROC("binary", thresholds=100),
            {"code": "option_unfit", "option": "thresholds"},
        ),
        (
            lambda: tm.CalibrationError("binary", norm="l2"),
            {"code": "option_value", "option": "norm", "value": "l2"},
        ),
        (
            lambda: tm.Precision("binary", multidim_average="samplewise"),
            {"code": "option_value", "option": "multidim_average", "value": "samplewise"},
        ),
        (
            lambda: tm.Accuracy("binary").update([0.1, 0.2], [1]),
            {"code": "shapes_differ", "shapes": [(2,), (1,)]},
        ),
        (
            lambda: tm.Accuracy("binary").update([0.1, math.nan], [1, 0]),
            {"code": "not_finite", "option": "preds", "count": 1},
        ),
        (
            lambda: tm.Accuracy("binary").update([1, 0], [1, 2]),
            {"code": "unknown_label", "option": "target", "count": 1},
        ),
        (lambda: tm.AveragePrecision("binary").update([1, 0], [1, 0]), {"code": "scores_missing"}),
    ],
)
def test_refused(make: Any, message: dict[str, Any]) -> None:
    with refused(**message):
        make()
