"""Real data against scikit-learn's known answers, and fairlearn's two crossed slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.known_answers import close, plain
from classification.rows import Sides, counts_by_cell, curve, label_values, score
from output_frames import of_slice
from reference_data import ANSWERS, known_answers

import evalengine as ee

NAMES = ["digits", "breast_cancer", "wine"]
KEY = "class"
GRID = [i / 20 for i in range(1, 20)]

METRICS = [
    "Precision", "Recall", "F1", "Accuracy", "BalancedAccuracy", "MCC", "CohenKappa", "LogLoss",
    "ECE", "TopKAccuracy", "ROCAUC", "mROCAUC", "mROCAUCOneVsOne", "AP", "Brier",
    "ConfusionMatrix", "PrecisionRecallCurve", "ROCCurve",
]  # fmt: skip


def expected(name: str) -> dict[str, Any]:
    """Read the reference's answer."""
    answer: dict[str, Any] = known_answers("classification", "real_data_expected.json")["datasets"][
        name
    ]
    return plain(answer)


def tables(name: str) -> Sides:
    """Read both sides from Parquet."""
    sides = ("predictions", "groundtruths")
    return tuple(
        pl.read_parquet(ANSWERS / "classification" / f"{name}_{side}.parquet") for side in sides
    )


def as_one(name: str) -> tuple[Sides, dict[str, Any]]:
    """Make the same rows as one table with a column per label."""
    predictions, truths = tables(name)
    wide = predictions.pivot("label_value", index="datum_id", values="score")
    labels = predictions["label_value"].unique(maintain_order=True).to_list()
    table = truths.join(wide, on="datum_id", maintain_order="left").rename(
        {"label_value": "actual"}
    )
    table = table.rename({label: f"p_{label}" for label in labels})
    return (table,), {"score_columns": {label: f"p_{label}" for label in labels}}


def run(name: str, shape: str, **options: Any) -> ee.Scorecard:
    """Score by fold, from two tables or one."""
    sides, more = as_one(name) if shape == "one" else (tables(name), {})
    return score(sides, METRICS, **{"dialect": "sklearn", "k": 2, "by": "fold", **more, **options})


@pytest.mark.parametrize("shape", ["long", "one"])
@pytest.mark.parametrize("name", NAMES)
def test_real_data(name: str, shape: str) -> None:
    """classification_report, agreement, areas, log loss and counts, also by fold."""
    card, theirs = run(name, shape), expected(name)
    labels = theirs["labels"]
    for metric, column in (("Precision", "precision"), ("Recall", "recall"), ("F1", "f1-score")):
        for label in labels:
            ours = card.value(metric, label_value=label)
            assert close(ours, theirs["report"][label][column]), (metric, label)
        for average in ("macro", "weighted"):
            ours = card.value(metric, average=average)
            assert close(ours, theirs["report"][f"{average} avg"][column]), (metric, average)
    for metric, key in (
        ("Accuracy", "accuracy"), ("BalancedAccuracy", "balanced_accuracy"), ("MCC", "mcc"),
        ("CohenKappa", "kappa"), ("LogLoss", "log_loss"), ("TopKAccuracy", "top2"),
        ("Brier", "brier"),
    ):  # fmt: skip
        if key in theirs:
            assert close(card.value(metric), theirs[key]), metric
    assert card.value("ECE") == pytest.approx(theirs["ece15"], abs=1e-6)
    for metric, key in (("ROCAUC", "auc_per_label"), ("AP", "ap_per_label")):
        ours_by_label = label_values(card, metric, KEY)
        for label, value in zip(labels, theirs[key], strict=True):
            assert close(ours_by_label[label], value), (metric, label)
    for metric, kind in (("mROCAUC", "ovr"), ("mROCAUCOneVsOne", "ovo")):
        for average in ("macro", "weighted"):
            if f"auc_{kind}_{average}" in theirs:
                ours = card.value(metric, average=average)
                assert close(ours, theirs[f"auc_{kind}_{average}"]), (metric, average)
    cells = {
        (KEY, labels[a], labels[p]): n
        for a, row in enumerate(theirs["confusion"])
        for p, n in enumerate(row)
        if n
    }
    assert counts_by_cell(of_slice(card.confusion)) == cells


@pytest.mark.parametrize("shape", ["long", "one"])
@pytest.mark.parametrize("name", NAMES)
def test_slices_and_curves(name: str, shape: str) -> None:
    """Areas and accuracy of every fold; counts at the 19 thresholds; the ROC curve."""
    card, theirs = run(name, shape, thin_curves=True), expected(name)
    labels = theirs["labels"]
    for fold, values in theirs["auc_by_fold"].items():
        selection = {"slice": "fold", "slice_value": fold}
        assert close(card.value("Accuracy", **selection), theirs["accuracy_by_fold"][fold])
        for label, value in zip(labels, values, strict=True):
            assert close(card.value("ROCAUC", label_value=label, **selection), value), (fold, label)
    for label, cells in theirs["counts_19"].items():
        frame = curve(card, "PrecisionRecallCurve", label)
        assert frame["score_threshold"].to_list() == GRID
        for row, counts in zip(frame.iter_rows(named=True), cells.values(), strict=True):
            assert {k: row[k] for k in ("tp", "fp", "fn", "tn")} == counts
    if "roc_curve" in theirs:
        frame = curve(card, "ROCCurve", labels[1])
        for column, values in zip(
            ("fpr", "recall", "score_threshold"), theirs["roc_curve"], strict=True
        ):
            ours = frame[column].to_numpy()
            finite = np.where(np.isinf(values), np.nan, values)
            np.testing.assert_allclose(ours, finite, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", ["two", "one"])
def test_crossed_slices(shape: str) -> None:
    """fairlearn's MetricFrame over two features: by group, and overall."""
    case = plain(known_answers("classification", "slices.json")["cases"][0])
    inputs, theirs = case["inputs"], case["expected"]["fairlearn"]["value"]
    groups = {"g1": inputs["g1"], "g2": inputs["g2"]}
    if shape == "one":
        sides: Sides = (
            pl.DataFrame({"actual": inputs["y_true"], "predicted": inputs["y_pred"], **groups}),
        )
    else:
        ids = list(range(len(inputs["y_true"])))
        sides = (
            pl.DataFrame({"datum_id": ids, "label_value": inputs["y_pred"]}),
            pl.DataFrame({"datum_id": ids, "label_value": inputs["y_true"], **groups}),
        )
    card = score(
        sides, ["Accuracy", "Precision", "Recall", "Counts"], dialect="sklearn", by="g1*g2"
    )
    names = card.metrics["slice_value"].drop_nulls().unique().to_list()
    compared = 0
    for group, values in [(None, theirs["overall"]), *theirs["by_group"].items()]:
        if group is not None and np.isnan(values["accuracy"]):
            assert not any(set(group.split("|")) == set(name.split(" * ")) for name in names)
            continue
        selection: dict[str, Any] = {}
        if group is not None:
            first, second = group.split("|")
            (name,) = [n for n in names if n[0] == first and n[-1] == second]
            selection = {"slice": "g1*g2", "slice_value": name}
        assert close(card.value("Accuracy", **selection), values["accuracy"])
        assert close(card.value("Precision", label_value=1, **selection), values["precision"])
        assert close(card.value("Recall", label_value=1, **selection), values["recall"])
        tp, fp, tn = (
            card.value("Counts", statistic=s, label_value=1, **selection)
            for s in ("tp", "fp", "tn")
        )
        fn = card.value("Counts", statistic="fn", label_value=1, **selection)
        assert tp is not None
        assert fp is not None
        assert tn is not None
        assert fn is not None
        assert close((tp + fp) / (tp + fp + tn + fn), values["selection_rate"])
        if fp + tn:
            assert close(fp / (fp + tn), values["fpr"])
        compared += 1
    assert compared == 8
